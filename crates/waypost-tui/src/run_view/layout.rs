//! The layout of the run view: summary, tasks and text.

use ratatui::layout::Rect;

/// Minimum width at which tasks and text are side by side.
const SIDE_BY_SIDE: u16 = 100;

#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub(super) summary: Rect,
    /// Including the border.
    pub(super) list: Rect,
    /// Including the border.
    pub(super) text: Rect,
}

/// The parts, with so many rows for the state of the plan; if the text has the whole screen, there is no list.
pub(super) fn parts(area: Rect, state_rows: u16, is_zoomed: bool) -> Parts {
    // The row above is for the progress.
    let summary = Rect { height: (1 + state_rows).min(area.height), ..area };
    let rest = Rect { y: area.y + summary.height, height: area.height - summary.height, ..area };
    if is_zoomed {
        return Parts { summary, list: Rect { height: 0, ..rest }, text: rest };
    }
    let (list, text) = if area.width >= SIDE_BY_SIDE {
        let left = rest.width * 9 / 20;
        (Rect { width: left, ..rest }, Rect { x: rest.x + left, width: rest.width - left, ..rest })
    } else {
        let above = (rest.height / 2).max(4).min(rest.height);
        (Rect { height: above, ..rest }, Rect { y: rest.y + above, height: rest.height - above, ..rest })
    };
    Parts { summary, list, text }
}
