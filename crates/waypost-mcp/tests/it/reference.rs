//! The pages that describe toolsets, held against the definitions.

use std::path::Path;

use serde_json::Value;
use waypost_mcp::Toolset;

use crate::session::session;

/// Every tool has its row on the page, and the row names every argument, the needed ones in bold.
fn check(toolset: Toolset, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = std::fs::read_to_string(path).unwrap();
    for tool in session(toolset, "main").tools() {
        let beginning = format!("| `{}` |", tool.name);
        let row = text.lines().find(|line| line.starts_with(&beginning));
        let row = row.unwrap_or_else(|| panic!("{page} has no row for {}", tool.name));
        let schema = Value::Object((*tool.input_schema).clone());
        let needed = schema["required"].as_array().cloned().unwrap_or_default();
        for name in schema["properties"].as_object().unwrap().keys() {
            let bold = format!("**`{name}`**");
            let is_needed = needed.iter().any(|needed| needed == name);
            assert_eq!(row.contains(&bold), is_needed, "{page}: {name} of {}", tool.name);
            assert!(row.contains(&format!("`{name}`")), "{page}: {name} of {}", tool.name);
        }
    }
}

#[test]
fn the_page_of_plan_documents_names_every_tool_and_argument() {
    check(Toolset::Plans, "plan-documents.md");
}

#[test]
fn the_page_of_runs_names_every_tool_and_argument() {
    check(Toolset::Orchestrator, "orchestrator.md");
}
