//! Everything about the selected task on the whole screen: what does not fit below the list.

use super::Editor;
use super::draw::details;
use super::layout::inside;
use super::overlay::Zoom;
use crate::keys::Action;
use crate::markdown::markdown_lines;
use crate::screen::Context;
use crate::styled_text::{StyledLine, StyledText};

impl Editor {
    /// Shows the selected task on the whole screen.
    pub(super) fn open_zoom(&mut self, context: &Context<'_>) {
        let (Some(buffer), Some(at)) = (&self.buffer, self.at()) else { return };
        let theme = context.settings.theme;
        let row = &buffer.rows()[at];
        let mut lines = Vec::new();
        for (label, value, style) in details(buffer, at, theme) {
            if !label.is_empty() {
                lines.push(StyledLine::plain(label, theme.quiet()));
            }
            match label {
                "" | "notes" => lines.extend(markdown_lines(&value, theme).0),
                _ => lines.extend(value.lines().map(|line| StyledLine::plain(line, style))),
            }
            lines.push(StyledLine::default());
        }
        let title = format!("{} · {}", row.id(), buffer.sign(row).label());
        let mut zoom = Zoom { title, text: StyledText::new(lines, Vec::new()), top: 0 };
        zoom.text.wrap(usize::from(inside(context.area).width));
        self.zoom = Some(zoom);
    }

    /// Wraps the text again when the terminal has another size.
    pub(super) fn wrap_zoom(&mut self, context: &Context<'_>) {
        if let Some(zoom) = &mut self.zoom {
            let within = inside(context.area);
            zoom.text.wrap(usize::from(within.width));
            zoom.top = zoom.top.min(zoom.text.rows().saturating_sub(usize::from(within.height)));
        }
    }

    /// Handles the keys that scroll or close it. Returns false for keys of the editor.
    pub(super) fn zoom_act(&mut self, action: Action, context: &mut Context<'_>) -> bool {
        let Some(zoom) = &mut self.zoom else { return false };
        let within = inside(context.area);
        zoom.text.wrap(usize::from(within.width));
        let page = usize::from(within.height).max(1);
        match action {
            Action::Up => zoom.top = zoom.top.saturating_sub(1),
            Action::Down => zoom.top += 1,
            Action::PageUp => zoom.top = zoom.top.saturating_sub(page),
            Action::PageDown => zoom.top += page,
            Action::First => zoom.top = 0,
            Action::Last => zoom.top = usize::MAX / 2,
            Action::Zoom | Action::Back => {
                self.zoom = None;
                return true;
            }
            Action::Open
            | Action::Help
            | Action::Palette
            | Action::Quit
            | Action::Filter
            | Action::Next
            | Action::Previous
            | Action::Sort
            | Action::Archived
            | Action::Refresh
            | Action::New
            | Action::Edit
            | Action::Delete
            | Action::Skip
            | Action::MoveUp
            | Action::MoveDown
            | Action::Indent
            | Action::Outdent
            | Action::Save
            | Action::Execute
            | Action::Undo
            | Action::Redo
            | Action::External
            | Action::Dependencies
            | Action::Upstream
            | Action::Downstream
            | Action::Graph
            | Action::Fold
            | Action::Set
            | Action::Status
            | Action::NextField
            | Action::PreviousField
            | Action::Accept
            | Action::Toggle
            | Action::Focus
            | Action::Follow
            | Action::Times
            | Action::Approve
            | Action::Questions
            | Action::Reject
            | Action::Pause
            | Action::Hold
            | Action::Cancel
            | Action::CancelPlan
            | Action::Retry
            | Action::RetryAll
            | Action::Stop
            | Action::ViewTasks
            | Action::Watch
            | Action::History
            | Action::ViewText
            | Action::Mark
            | Action::Restore
            | Action::Suspend => {
                self.zoom = None;
                return false;
            }
        }
        zoom.top = zoom.top.min(zoom.text.rows().saturating_sub(page));
        true
    }
}
