//! The formats that Waypost reads and writes: text in, [`Draft`]s out, and back.
//!
//! Pure: no files, no clock. A reader accepts everything that can be understood and reports every problem; checking
//! the graph itself is `waypost_core::validate`. A writer lists what its format cannot hold.

mod agora;
mod backlog;
mod beads;
pub mod checklist;
pub mod clido;
mod dot;
pub mod frctl;
mod front_matter;
mod graph;
mod graphml;
pub mod jaato;
mod kept;
mod label;
mod layout;
mod loss;
mod markdown;
mod mermaid;
mod native;
mod plan_document;
mod read;
mod sniff;
mod svg;
mod task_lines;
mod task_master;
mod task_text;
mod update;
mod write;

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use waypost_core::{Draft, Problem};

pub use backlog::read_many as read_backlog;
pub use checklist::render_plan_command;
pub use layout::{Places, places};
pub use sniff::sniff;
pub use update::{NoUpdate, Update, Written, keep_foreign, update};

/// A format, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
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
    /// A Markdown checklist.
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
    pub const ALL: [Self; 15] = [
        Self::Native,
        Self::Clido,
        Self::Jaato,
        Self::Frctl,
        Self::Agora,
        Self::PlanDocument,
        Self::Markdown,
        Self::Checklist,
        Self::TaskMaster,
        Self::Beads,
        Self::Backlog,
        Self::Mermaid,
        Self::Dot,
        Self::Graphml,
        Self::Svg,
    ];

    /// The name, as people type it and as [`waypost_core::Foreign`] files its fields.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Clido => "clido",
            Self::Jaato => "jaato",
            Self::Frctl => "frctl",
            Self::Agora => "agora",
            Self::PlanDocument => "plan-document",
            Self::Markdown => "markdown",
            Self::Checklist => "checklist",
            Self::TaskMaster => "task-master",
            Self::Beads => "beads",
            Self::Backlog => "backlog",
            Self::Mermaid => "mermaid",
            Self::Dot => "dot",
            Self::Graphml => "graphml",
            Self::Svg => "svg",
        }
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

impl FromStr for Dialect {
    type Err = UnknownDialect;
    fn from_str(text: &str) -> Result<Self, UnknownDialect> {
        Self::ALL
            .into_iter()
            .find(|dialect| dialect.name() == text)
            .ok_or_else(|| UnknownDialect(text.to_owned()))
    }
}

/// What a reader made of a text.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The format that it was read as.
    pub dialect: Dialect,
    /// The plans in it, in their order.
    pub drafts: Vec<Draft>,
    /// What is wrong with the text as a text of its format (types, missing fields, contradictions).
    pub problems: Vec<Problem>,
    /// What a person should know although it is not wrong.
    pub notes: Vec<String>,
}

/// Something that a format could not hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Loss {
    /// The task, or nothing for the plan itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The field, in Waypost's words.
    pub field: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.task {
            Some(task) => write!(f, "task {task}: {}", self.field),
            None => write!(f, "plan: {}", self.field),
        }
    }
}

/// What a writer made of a draft.
#[derive(Clone, Debug)]
pub struct Writing {
    /// The text.
    pub text: String,
    /// What it could not hold.
    pub losses: Vec<Loss>,
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

/// A text that cannot be read at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Nothing tells which format it is.
    #[error("this is no plan in any format that Waypost knows")]
    UnknownFormat,
    /// It is not even JSON.
    #[error("line {line}, column {column}: {detail}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        detail: String,
    },
    /// The format cannot be read, only written.
    #[error("{0} can be written but not read")]
    WriteOnly(Dialect),
    /// The format cannot be written, only read.
    #[error("{0} can be read but not written")]
    ReadOnly(Dialect),
    /// Nothing in it is a plan.
    #[error("{0}")]
    NoPlan(String),
}

/// Reads `text` as `dialect`, or as whatever it looks like.
pub fn read(text: &str, dialect: Option<Dialect>, file_name: Option<&str>) -> Result<Reading, Unreadable> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(dialect) = dialect.or_else(|| sniff(text, file_name)) else {
        return Err(sniff::why_unknown(text));
    };
    match dialect {
        Dialect::Native => native::read(text, file_name),
        Dialect::Clido => clido::read(text, file_name),
        Dialect::Jaato => jaato::read(text, file_name),
        Dialect::Frctl => frctl::read(text, file_name),
        Dialect::Agora => agora::read(text, file_name),
        Dialect::PlanDocument => plan_document::read(text, file_name),
        Dialect::Markdown => markdown::read(text, file_name),
        Dialect::Checklist => checklist::read(text, file_name),
        Dialect::TaskMaster => task_master::read(text, file_name),
        Dialect::Beads => beads::read(text, file_name),
        Dialect::Backlog => backlog::read(text, file_name),
        Dialect::Mermaid | Dialect::Dot | Dialect::Graphml | Dialect::Svg => {
            Err(Unreadable::WriteOnly(dialect))
        }
    }
}

/// Writes `draft` as `dialect`.
pub fn write(draft: &Draft, dialect: Dialect, form: Form) -> Result<Writing, Unreadable> {
    match dialect {
        Dialect::Native => native::write(draft, form),
        Dialect::Clido => clido::write(draft, form),
        Dialect::Jaato => jaato::write(draft, form),
        Dialect::Frctl => frctl::write(draft, form),
        Dialect::Agora => agora::write(draft, form),
        Dialect::PlanDocument => plan_document::write(draft, form),
        Dialect::Markdown => markdown::write(draft, form),
        Dialect::Checklist => checklist::write(draft, form),
        Dialect::Mermaid => mermaid::write(draft, form),
        Dialect::Dot => dot::write(draft, form),
        Dialect::Graphml => graphml::write(draft, form),
        Dialect::Svg => svg::write(draft, form),
        Dialect::TaskMaster | Dialect::Beads | Dialect::Backlog => Err(Unreadable::ReadOnly(dialect)),
    }
}

/// Writes several plans into one text. Only jaato's store files hold more than one; any other format takes exactly one.
pub fn write_many(drafts: &[Draft], dialect: Dialect, form: Form) -> Result<Writing, Unreadable> {
    match (dialect, drafts) {
        (Dialect::Jaato, _) => jaato::write_store(drafts, form),
        (_, [draft]) => write(draft, dialect, form),
        (_, _) => Err(Unreadable::NoPlan(format!(
            "{dialect} holds one plan in a text, and there are {}",
            drafts.len()
        ))),
    }
}

/// The JSON Schema (draft 2020-12) of a JSON format.
pub fn schema(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::Native => Some(include_str!("../../../schemas/waypost-1.schema.json")),
        Dialect::Clido => Some(include_str!("../../../schemas/clido-plan.schema.json")),
        Dialect::Jaato => Some(include_str!("../../../schemas/jaato-plan.schema.json")),
        Dialect::Frctl => Some(include_str!("../../../schemas/plan-v1.schema.json")),
        Dialect::Agora => Some(include_str!("../../../schemas/agora-run.schema.json")),
        Dialect::PlanDocument => Some(include_str!("../../../schemas/plan-document.schema.json")),
        Dialect::Markdown
        | Dialect::Checklist
        | Dialect::TaskMaster
        | Dialect::Beads
        | Dialect::Backlog
        | Dialect::Mermaid
        | Dialect::Dot
        | Dialect::Graphml
        | Dialect::Svg => None,
    }
}
