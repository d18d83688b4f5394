//! The layout of the history: versions and differences.

use ratatui::layout::Rect;

/// Minimum width at which both are side by side.
const SIDE_BY_SIDE: u16 = 100;

#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// Including the border.
    pub(super) list: Rect,
    /// Including the border.
    pub(super) diff: Rect,
}

/// The parts; if the differences have the whole screen, there is no list.
pub(super) fn parts(area: Rect, is_zoomed: bool) -> Parts {
    if is_zoomed {
        return Parts { list: Rect { height: 0, ..area }, diff: area };
    }
    if area.width >= SIDE_BY_SIDE {
        let left = area.width / 2;
        let diff = Rect { x: area.x + left, width: area.width - left, ..area };
        return Parts { list: Rect { width: left, ..area }, diff };
    }
    let above = area.height / 2;
    let diff = Rect { y: area.y + above, height: area.height - above, ..area };
    Parts { list: Rect { height: above, ..area }, diff }
}

/// The number of visible versions.
pub(super) fn list_rows(area: Rect) -> usize {
    usize::from(parts(area, false).list.height.saturating_sub(2))
}
