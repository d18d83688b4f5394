//! The native tools: good and bad cases, limits, and what they cost.

use serde_json::json;
use waypost_mcp::Toolset;

use crate::session::session;

#[test]
fn a_new_store_lists_no_plans() {
    let session = session(Toolset::Native, "main");
    assert!(!session.tools().is_empty());
    assert_eq!(session.call("plan_list", json!({})).value["plans"], json!([]));
}
