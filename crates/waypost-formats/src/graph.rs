//! The graph of a plan's tasks as the drawing formats need it, and where its boxes stand.

mod layout;
mod model;

pub(crate) use layout::{Layout, Route, layered, levels};
pub use layout::{Places, backward, depths, places};
pub(crate) use model::{Graph, Step};
