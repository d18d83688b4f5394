//! A tool: its definition as the protocol has it, and its handler.

use rmcp::model::Tool as Definition;
use serde::Serialize;
use serde_json::{Value, json};

use crate::reply_text;
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

    /// Adds a fact for both.
    pub(crate) fn add(&mut self, field: &str, value: impl Serialize, text: &str) {
        self.value[field] = json!(value);
        self.text.push_str(text);
    }

    /// Adds names behind a label, if there are any.
    pub(crate) fn add_names(&mut self, field: &str, label: &str, names: &[impl AsRef<str> + Serialize]) {
        if !names.is_empty() {
            let joined = names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
            self.add(field, names, &format!("{label}{joined}"));
        }
    }

    /// Adds the first few notes about what was read or written.
    pub(crate) fn add_notes(&mut self, notes: &[String]) {
        let notes = reply_text::notes(notes);
        if !notes.is_empty() {
            self.add("notes", &notes, &format!("; note: {}", notes.join("; ")));
        }
    }
}
