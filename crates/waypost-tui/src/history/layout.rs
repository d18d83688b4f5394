//! Where the versions and the differences stand on the screen.

use ratatui::layout::Rect;

/// From so many columns on, both stand side by side.
const SIDE_BY_SIDE: u16 = 100;

/// Where things stand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// The versions, with their edge.
    pub(super) list: Rect,
    /// The differences, with their edge.
    pub(super) diff: Rect,
}

/// Where things stand in an area.
pub(super) fn parts(area: Rect) -> Parts {
    if area.width >= SIDE_BY_SIDE {
        let left = area.width / 2;
        let diff = Rect { x: area.x + left, width: area.width - left, ..area };
        return Parts { list: Rect { width: left, ..area }, diff };
    }
    let above = area.height / 2;
    let diff = Rect { y: area.y + above, height: area.height - above, ..area };
    Parts { list: Rect { height: above, ..area }, diff }
}

/// Versions that are seen at the same time.
pub(super) fn list_rows(area: Rect) -> usize {
    usize::from(parts(area).list.height.saturating_sub(2))
}
