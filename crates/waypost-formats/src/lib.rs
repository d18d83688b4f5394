//! The formats that Waypost reads and writes: text in, [`Draft`](waypost_core::Draft)s out, and back.
//!
//! Pure: no files, no clock. A reader accepts everything that can be understood and reports every problem; checking
//! the graph itself is `waypost_core::validate`. A writer lists what its format cannot hold.

mod agora;
mod backlog;
mod beads;
pub mod checklist;
pub mod clido;
mod codec;
mod conversion;
mod dialect;
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

pub use backlog::read_many as read_backlog;
pub use checklist::render_plan_command;
pub use codec::{read, schema, write, write_many};
pub use conversion::{Loss, Reading, Unreadable, Writing};
pub use dialect::{Dialect, Form, UnknownDialect};
pub use layout::{Places, places};
pub use sniff::sniff;
pub use update::{NoUpdate, Update, Written, keep_foreign, update};
