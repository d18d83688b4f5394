//! A tool: its definition as the protocol has it, and its handler.

use rmcp::model::Tool as Definition;
use serde_json::Value;

use crate::tool_call::Call;
use crate::tool_error::ToolError;

pub(crate) type Handler = fn(&Call) -> Result<Answer, ToolError>;

/// A tool.
pub(crate) struct Tool {
    /// Every word of it is paid for in every conversation.
    pub(crate) definition: Definition,
    pub(crate) run: Handler,
}

impl Tool {
    /// The tools of a file of definitions, each with the handler of its name.
    pub(crate) fn all(definitions: &str, handlers: &[(&str, Handler)]) -> Vec<Self> {
        let definitions: Vec<Definition> = serde_json::from_str(definitions).unwrap_or_default();
        let handler = |name: &str| handlers.iter().find(|(handled, _)| *handled == name);
        let tools = definitions.into_iter().filter_map(|definition| {
            let &(_, run) = handler(&definition.name)?;
            Some(Self { definition, run })
        });
        tools.collect()
    }
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
