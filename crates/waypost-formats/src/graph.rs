//! The graph of a plan's tasks for the drawing formats, and the layout of its boxes.

mod layout;
mod model;

pub(crate) use layout::{Layout, Route, layered, levels};
pub use layout::{Places, backward, depths, places};
pub(crate) use model::{Graph, Step};
