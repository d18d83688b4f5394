//! The layout of the editor: tasks, details and graph.

use ratatui::layout::{Margin, Position, Rect};

/// Minimum width at which the graph is drawn next to the list.
const WIDE: u16 = 110;

/// The parts of the editor, including their borders.
#[derive(Clone, Copy, Debug)]
pub(super) struct Areas {
    pub(super) list: Rect,
    pub(super) details: Option<Rect>,
    pub(super) graph: Option<Rect>,
}

pub(super) fn shows_graph(area: Rect, wanted: Option<bool>) -> bool {
    wanted.unwrap_or(area.width >= WIDE)
}

pub(super) fn areas(area: Rect, graph: Option<bool>) -> Areas {
    let below = (area.height / 3).clamp(5, 13);
    let top = Rect { height: area.height - below.min(area.height), ..area };
    let bottom = Rect { y: top.bottom(), height: area.height - top.height, ..area };
    if !shows_graph(area, graph) {
        return Areas { list: top, details: Some(bottom), graph: None };
    }
    if area.width < WIDE {
        return Areas { list: top, details: None, graph: Some(bottom) };
    }
    let left = area.width * 11 / 20;
    let side = Rect { x: area.x + left, width: area.width - left, ..area };
    Areas {
        list: Rect { width: left, ..top },
        details: Some(Rect { width: left, ..bottom }),
        graph: Some(side),
    }
}

/// A part without its border.
pub(super) fn inside(area: Rect) -> Rect {
    area.inner(Margin::new(1, 1))
}

/// The number of tasks that fit into the list.
pub(super) fn rows(area: Rect, graph: Option<bool>) -> usize {
    usize::from(inside(areas(area, graph).list).height)
}

/// The visible row of the list at a position of the terminal, counted from the first.
pub(super) fn row_at(areas: &Areas, at: Position) -> Option<usize> {
    let list = inside(areas.list);
    list.contains(at).then(|| usize::from(at.y - list.y))
}
