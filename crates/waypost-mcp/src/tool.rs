//! A tool: its definition in the protocol's form, and its handler.

use rmcp::model::Tool as Definition;
use serde::Serialize;
use serde_json::{Value, json};

use crate::reply_text;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

pub(crate) type Handler = fn(&Call) -> Result<Answer, ToolError>;

pub(crate) struct Tool {
    /// Every conversation pays for each word of it.
    pub(crate) definition: Definition,
    pub(crate) run: Handler,
}

impl Tool {
    /// Pairs the definitions in a JSON file with the handlers by name. A test finds a definition without a handler, which
    /// would be dropped here.
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

/// The reply of a tool.
#[derive(Debug)]
pub(crate) struct Answer {
    /// For programs: an object.
    pub(crate) value: Value,
    /// For models that read only text.
    pub(crate) text: String,
}

impl Answer {
    /// Uses the value's JSON as the text.
    pub(crate) fn of(value: Value) -> Self {
        let text = value.to_string();
        Self { value, text }
    }

    /// Adds a fact to both.
    pub(crate) fn add(&mut self, field: &str, value: impl Serialize, text: &str) {
        self.value[field] = json!(value);
        self.text.push_str(text);
    }

    /// Adds names after a label, if there are any.
    pub(crate) fn add_names(&mut self, field: &str, label: &str, names: &[impl AsRef<str> + Serialize]) {
        if !names.is_empty() {
            let joined = names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
            self.add(field, names, &format!("{label}{joined}"));
        }
    }

    /// Adds damage to the files of what was read.
    pub(crate) fn warn(&mut self, warnings: &[String]) {
        if warnings.is_empty() {
            return;
        }
        let is_json = self.text == self.value.to_string();
        self.value["warnings"] = json!(warnings);
        if is_json {
            self.text = self.value.to_string();
        } else {
            warnings.iter().for_each(|warning| self.text.push_str(&format!("\nwarning: {warning}")));
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
