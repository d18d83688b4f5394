//! Replies as the plugin gives them: an object, bounded, and every error an object with `error`.

use serde_json::{Map, Value};
use waypost_core::Plan;
use waypost_formats::jaato::tool_output;

use crate::reply_text;
use crate::tool::Answer;
use crate::tool_error::ToolError;

pub(super) type Reply = Result<Map<String, Value>, ToolError>;

/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 192 * 1024;
/// What an answer says in which something was cut.
pub(super) const CUT: &str =
    "long texts were cut; the resource waypost://plans/{plan_id}/tasks/{step_id} has a step as a whole";
/// Steps in one answer.
pub(super) const STEPS_MAX: usize = 200;

/// Which plan, and where it stands.
pub(super) fn head(plan: &Plan) -> Map<String, Value> {
    Map::from_iter([
        ("plan_id".to_owned(), plan.id().as_str().into()),
        ("title".to_owned(), plan.spec().title.as_str().into()),
        ("status".to_owned(), tool_output::plan_word(plan.state().phase).into()),
    ])
}

/// An answer within its bound: of one that is longer, the long texts are cut, and the answer says so.
fn bounded(answer: Map<String, Value>) -> Value {
    let (mut value, was_cut) = reply_text::shortened(&Value::Object(answer), ANSWER_BYTES_MAX);
    if was_cut && value.is_object() {
        value["cut"] = CUT.into();
    }
    value
}

/// Every refusal is an object with an `error`, as the plugin has it; the text says the same.
pub(super) fn finish(told: Reply) -> Result<Answer, ToolError> {
    match told {
        Ok(answer) => Ok(Answer::of(bounded(answer))),
        Err(refused) if refused.facts.contains_key("error") => Err(refused),
        Err(refused) => {
            let text = refused.text();
            Err(refused.with_fact("error", text))
        }
    }
}

/// A refusal in the plugin's words.
pub(super) fn error(text: impl Into<String>) -> ToolError {
    let refused = ToolError::new(text, "");
    let text = refused.text();
    refused.with_fact("error", text)
}
