//! The formats that Waypost reads and writes: text in, [`Draft`](waypost_core::Draft)s out, and back.
//!
//! Pure: no files, no clock. A reader accepts everything that can be understood and reports every problem;
//! `waypost_core::validate` checks the graph itself. A writer lists the fields that its format cannot hold.

#![warn(clippy::wildcard_enum_match_arm)]

mod agora;
mod apply_text;
mod backlog;
mod beads;
pub mod checklist;
pub mod clido;
mod codec;
mod conversion;
mod derived_id;
mod detect;
mod dialect;
mod dot;
mod field_reader;
mod field_writer;
mod fit;
pub mod frctl;
mod front_matter;
mod graph;
mod graphml;
mod ignored_fields;
pub mod jaato;
mod label;
mod long_numbers;
mod markdown;
mod mermaid;
mod native;
pub mod plan_document;
mod preserved_fields;
mod repeated_keys;
mod silence;
mod svg;
mod task_master;
mod unsupported_fields;
mod wrong_values;

pub use apply_text::{NoUpdate, Update, Written, update};
pub use backlog::read_many as read_backlog;
pub use checklist::render_plan_command;
pub use codec::{read, schema, write, write_back, write_many};
pub use conversion::{Loss, Reading, Unreadable, Writing};
pub use derived_id::alternative_id;
pub use detect::sniff;
pub use dialect::{Dialect, Form, UnknownDialect};
pub use fit::{Baseline, Untaken, fit_to_plan, written_and_read};
pub use graph::{
    BOXES_MAX, BoxKind, CELLS_MIN, CONTAINER_HEAD, Drawing, Frame, Group, Grouping, Groups, Item, Member,
    Shown, ShownBox, Unit, backward, crossings, depths, draw, grouped, open_at_first, open_path, shown,
};
pub use native::read_part;
pub use wrong_values::{WrongValue, wrong_values};
