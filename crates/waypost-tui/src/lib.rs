//! The people's door in a terminal: a plan_list of plans, a plan editor, a view of runs, a history.
//!
//! [`app::update`] is pure: keys, the time and answers go in, [`app::Effect`]s come out; [`frame::draw`] paints what there is.
//! They open no store, read no clock and touch no terminal: that is for the loop that feeds them ([`open`]), its threads
//! (`effects`) and [`terminal`].

pub mod app;
pub mod dialog;
pub mod edit_buffer;
pub mod editor;
mod effects;
mod event_loop;
pub mod frame;
pub mod graph;
pub mod help;
pub mod history;
pub mod keys;
pub mod plan_list;
pub mod run_view;
pub mod terminal;
pub mod text;
pub mod text_input;
pub mod theme;

pub use effects::{CreateStore, Workspace};
pub use event_loop::{EditText, Ended, SaveRecovery, Start, Wiring, open};
