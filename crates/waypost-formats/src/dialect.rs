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
    /// clido's plan files, and a model's reply in their form.
    Clido,
    /// jaato's todo plugin: one plan, or a store file with many.
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
    /// All formats: first those that can be read and written, then the read-only, then the write-only ones.
    pub fn all() -> impl Iterator<Item = Self> {
        <Self as strum::IntoEnumIterator>::iter()
    }

    /// Whether plans can be read from it.
    pub fn can_read(self) -> bool {
        !matches!(self, Self::Mermaid | Self::Dot | Self::Graphml | Self::Svg)
    }

    /// Whether plans can be written as it.
    pub fn can_write(self) -> bool {
        !matches!(self, Self::TaskMaster | Self::Beads | Self::Backlog)
    }

    /// The name, as people type it and as the key in [`waypost_core::ForeignFields`].
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error for a name that is not a format.
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
    /// The form in which the plan was read; otherwise the documented one.
    #[default]
    AsRead,
    /// The form in the format's documentation.
    Document,
    /// The form that the format's program really writes.
    Program,
}
