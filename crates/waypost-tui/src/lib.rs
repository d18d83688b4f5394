//! The people's door in a terminal: a browser of plans, a plan editor, a view of runs, a history.
//!
//! [`app::update`] is pure: keys, the time and answers go in, [`app::Effect`]s come out; [`view::draw`] paints what there is.
//! They open no store, read no clock and touch no terminal: that is for the loop that feeds them ([`open`]), its threads
//! (`hands`) and [`terminal`].

pub mod app;
pub mod browser;
pub mod dialog;
pub mod editor;
pub mod graph;
mod hands;
pub mod help;
pub mod history;
pub mod input;
pub mod keys;
pub mod run;
pub mod sheet;
pub mod terminal;
pub mod text;
pub mod theme;
mod turns;
pub mod view;

pub use hands::{Ground, Make};
pub use turns::{EditText, Ended, KeepText, Start, Wiring, open};
