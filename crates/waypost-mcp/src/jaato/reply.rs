//! Replies in the plugin's form: a bounded object; every error is an object with `error`.

use serde_json::{Map, Value};
use waypost_core::Plan;
use waypost_formats::jaato::tool_output;

use crate::reply_text;
use crate::tool::Answer;
use crate::tool_error::ToolError;

pub(super) type Reply = Result<Map<String, Value>, ToolError>;

/// Maximum bytes of a reply.
const ANSWER_BYTES_MAX: usize = 192 * 1024;
/// The note in a reply whose long texts were cut.
pub(super) const CUT: &str =
    "long texts were cut; the resource waypost://plans/{plan_id}/tasks/{step_id} has a step as a whole";
/// Maximum number of steps in a reply.
pub(super) const STEPS_MAX: usize = 200;

/// The id, title and status of a plan.
pub(super) fn head(plan: &Plan) -> Map<String, Value> {
    Map::from_iter([
        ("plan_id".to_owned(), plan.id().as_str().into()),
        ("title".to_owned(), plan.spec().title.as_str().into()),
        ("status".to_owned(), tool_output::plan_word(plan.state().phase).into()),
    ])
}

/// Limits a reply to its maximum: cuts its long texts if needed, and notes that.
fn bounded(answer: Map<String, Value>) -> Value {
    let (mut value, was_cut) = reply_text::shortened(&Value::Object(answer), ANSWER_BYTES_MAX);
    if was_cut && value.is_object() {
        value["cut"] = CUT.into();
    }
    value
}

/// Gives every refusal an `error` field, as the plugin does. The text is the same.
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

/// The codes of refusals for which the other front ends have one; the plugin has only words.
pub(super) const NO_SUCH_PLAN: &str = "no_such_plan";
pub(super) const NO_SUCH_TASK: &str = "no_such_task";

/// A refusal in the plugin's wording.
pub(super) fn error(text: impl Into<String>) -> ToolError {
    let refused = ToolError::new(text, "");
    let text = refused.text();
    refused.with_fact("error", text)
}
