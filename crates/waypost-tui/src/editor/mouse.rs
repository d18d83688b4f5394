//! The mouse in the plan editor: selects tasks in the list and in the graph, and fields in the form.

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::layout::{areas, inside, row_at};
use super::{Editor, draw_overlays};
use crate::graph::GraphCanvas;
use crate::screen::Context;

impl Editor {
    #[expect(clippy::wildcard_enum_match_arm, reason = "a mouse does more than means something here")]
    pub(super) fn mouse(&mut self, mouse: MouseEvent, context: &mut Context<'_>) {
        let scroll = match mouse.kind {
            MouseEventKind::ScrollUp => -3,
            MouseEventKind::ScrollDown => 3,
            _ => 0,
        };
        if let (Some(picker), Some(buffer)) = (&mut self.picker, &self.buffer) {
            picker.scroll(scroll, draw_overlays::picker_rows(context.area));
            if mouse.kind == MouseEventKind::Down(MouseButton::Left)
                && let Some(row) = draw_overlays::picker_row_at(context.area, mouse)
                && picker.top + row < picker.found.len()
            {
                picker.selected = picker.top + row;
                picker.toggle(buffer);
            }
            return;
        }
        if let Some(form) = &mut self.form {
            if mouse.kind == MouseEventKind::Down(MouseButton::Left)
                && let Some(field) = draw_overlays::field_at(form, context.area, mouse)
            {
                form.focus = field;
            }
            return;
        }
        self.selected = self.selected.saturating_add_signed(scroll);
        if mouse.kind == MouseEventKind::Down(MouseButton::Left) {
            self.click(Position::new(mouse.column, mouse.row), context);
        }
    }

    fn click(&mut self, at: Position, context: &Context<'_>) {
        let areas = areas(context.area, self.graph);
        if let Some(row) = row_at(&areas, at) {
            let clicked = self.top + row;
            if clicked == self.selected {
                self.open_form();
            } else if clicked < self.visible.len() {
                self.selected = clicked;
            }
        } else if let (Some(graph), Some(buffer), Some(selected)) = (areas.graph, &self.buffer, self.at()) {
            let inside = inside(graph);
            let canvas = GraphCanvas::of(buffer, selected, usize::from(inside.height));
            let id = canvas.hit(selected, inside, at).map(|at| buffer.rows()[at].id().clone());
            if id.is_some() {
                self.select_task(id.as_ref());
            }
        }
    }
}
