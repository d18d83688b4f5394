//! The definition of a tool: its name and description for models, the schema of its arguments, its effect and its handler.

use serde_json::Value;

use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// A tool.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    /// For the model. Every word of it is paid for in every conversation.
    pub(crate) description: &'static str,
    /// JSON Schema of the arguments, as text.
    pub(crate) arguments: &'static str,
    /// JSON Schema of the answer, as text; sent only when somebody wants it.
    pub(crate) answer: &'static str,
    pub(crate) effect: Effect,
    pub(crate) run: fn(&Call) -> Result<Answer, ToolError>,
}

/// What a tool does to the plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Reads,
    /// Each call adds something.
    Adds,
    /// Each call changes something.
    Changes,
    /// A repeated call changes nothing more.
    Idempotent,
    /// It may overwrite or remove what others want.
    Destroys,
}

/// What a tool says.
#[derive(Debug)]
pub(crate) struct Answer {
    /// For programs: an object.
    pub(crate) value: Value,
    /// For models that read only text.
    pub(crate) text: String,
}

impl Answer {
    /// The same for both.
    pub(crate) fn of(value: Value) -> Self {
        let text = value.to_string();
        Self { value, text }
    }
}
