//! The formats by name. Knows nothing of their texts.

use std::fmt;

use serde::Serialize;

/// A format, by name.
#[derive(Serialize, strum::EnumIter, strum::EnumString, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", parse_err_fn = unknown, parse_err_ty = UnknownDialect)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// Waypost's own JSON.
    Native,
    /// clido's plan files, and a model's answer in their shape.
    Clido,
    /// jaato's todo plugin: one plan, or a store file of many.
    Jaato,
    /// frctl's goal trees, and their index.
    Frctl,
    /// agora's runs.
    Agora,
    /// docker-agent's stored plan documents.
    PlanDocument,
    /// A Markdown text with front matter.
    Markdown,
    Checklist,
    /// task-master's tasks.json; read only.
    TaskMaster,
    /// beads' issues as JSON lines; read only.
    Beads,
    /// One task file of Backlog.md; read only.
    Backlog,
    /// A Mermaid flowchart; write only.
    Mermaid,
    /// Graphviz; write only.
    Dot,
    /// GraphML; write only.
    Graphml,
    /// A picture; write only.
    Svg,
}

impl Dialect {
    /// All of them: what can be read and written, then what can only be read, then what can only be written.
    pub fn all() -> impl Iterator<Item = Self> {
        <Self as strum::IntoEnumIterator>::iter()
    }

    /// The name, as people type it and as [`waypost_core::ForeignFields`] files its fields.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that names no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no format is called {0:?}")]
pub struct UnknownDialect(pub String);

fn unknown(text: &str) -> UnknownDialect {
    UnknownDialect(text.to_owned())
}

/// Which of a format's two forms to write, where it has two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// The form that the plan was read in; the document's where it was read in none.
    #[default]
    AsRead,
    /// The form that the format's document describes.
    Document,
    /// The form that the program behind it really writes.
    Program,
}
