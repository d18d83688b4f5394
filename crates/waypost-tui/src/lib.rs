//! The people's door in a terminal: a browser of plans and an editor of plans.
//!
//! [`app::update`] is pure: keys, the time and answers go in, [`app::Effect`]s come out; [`view::draw`] paints what there is.
//! Nothing here opens a store, reads a clock or touches a terminal: that is for the loop that feeds it.

pub mod app;
pub mod browser;
pub mod dialog;
pub mod editor;
pub mod graph;
pub mod help;
pub mod input;
pub mod keys;
pub mod sheet;
pub mod text;
pub mod theme;
pub mod view;
