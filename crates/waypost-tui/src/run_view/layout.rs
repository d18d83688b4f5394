//! The layout of the run view: summary, tasks and text.

use ratatui::layout::Rect;

/// Minimum width at which tasks and text are side by side.
const SIDE_BY_SIDE: u16 = 100;
/// Rows above the tasks.
const SUMMARY_ROWS: u16 = 2;

#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub(super) summary: Rect,
    /// Including the border.
    pub(super) list: Rect,
    /// Including the border.
    pub(super) text: Rect,
}

pub(super) fn parts(area: Rect) -> Parts {
    let summary = Rect { height: SUMMARY_ROWS.min(area.height), ..area };
    let rest = Rect { y: area.y + summary.height, height: area.height - summary.height, ..area };
    let (list, text) = if area.width >= SIDE_BY_SIDE {
        let left = rest.width * 9 / 20;
        (Rect { width: left, ..rest }, Rect { x: rest.x + left, width: rest.width - left, ..rest })
    } else {
        let above = (rest.height / 2).max(4).min(rest.height);
        (Rect { height: above, ..rest }, Rect { y: rest.y + above, height: rest.height - above, ..rest })
    };
    Parts { summary, list, text }
}
