//! The terminal front end: a list of plans, a plan editor, a run view, a history, the text of a plan, and a palette of commands.
//!
//! [`app::update`] is pure: [`messages::Message`]s go in, [`messages::Effect`]s come out, and [`app::render`] draws the state.
//! They open no store, read no clock and touch no terminal. The event loop behind [`open`] calls them, carries out effects on
//! threads, and owns the [`terminal`].

#![warn(clippy::wildcard_enum_match_arm)]

pub mod app;
pub mod dialog;
pub mod edit_buffer;
pub mod editor;
mod effects;
mod event_loop;
pub mod frame;
pub mod graph;
pub mod help;
mod hint_text;
pub mod history;
pub mod keys;
pub mod markdown;
pub mod messages;
pub mod note;
pub mod palette;
pub mod plan;
pub mod plan_list;
pub mod plan_text;
pub mod run_view;
pub mod screen;
pub mod styled_text;
pub mod terminal;
pub mod text;
pub mod text_input;
pub mod theme;

pub use effects::{CreateStore, Workspace};
pub use event_loop::{EditText, Ended, SaveRecovery, Start, Wiring, open};
