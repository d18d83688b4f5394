//! The graph of a plan's tasks for the drawing formats and the dashboard: its groups, and the layout of its boxes and edges.

mod bands;
mod channel;
mod columns;
mod drawing;
mod folding;
mod groups;
mod levels;
mod model;
mod order;
mod strip;

pub use drawing::{CONTAINER_HEAD, Drawing, Frame, Item, crossings, draw};
pub use folding::{BOXES_MAX, BoxKind, CELLS_MIN, Shown, ShownBox, open_at_first, open_path, shown};
pub use groups::{Group, Grouping, Groups, Member, Unit, grouped};
pub(crate) use levels::levels;
pub use levels::{backward, depths};
pub(crate) use model::{Graph, Step};
