//! The history of a plan: its versions, the differences between two of them, and restoring one. Writes nothing itself.

mod draw;
mod layout;
pub(crate) mod messages;

use std::collections::BTreeMap;

use ratatui::crossterm::event::{MouseButton, MouseEventKind};
use ratatui::layout::Position;
use waypost_core::TaskId;
use waypost_service::RestorePreview;

use crate::dialog::{Button, Choice, Dialog};
use crate::keys::Action;
use crate::messages::{Effect, Reply};
use crate::note::{ErrorMessage, NoteKind};
use crate::plan::PlanKey;
use crate::screen::{Context, Destination, Event, Flow};
use layout::{list_rows, parts};

pub use messages::{Compared, DIFF_LINES_MAX, HistoryEffect, HistoryReply, VERSIONS_PAGE, Version, Versions};

/// Number of tasks that a preview names of each kind.
const NAMES_MAX: usize = 5;
/// Maximum number of cached comparisons.
const DIFFS_KEPT: usize = 50;

/// The part that has the focus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Focus {
    Versions,
    Differences,
}

#[derive(Debug)]
pub struct History {
    plan: PlanKey,
    versions: Versions,
    error: Option<ErrorMessage>,
    reading: bool,
    selected: usize,
    top: usize,
    /// The version to compare the selected one with; `None` means its predecessor.
    marked: Option<u64>,
    compared: BTreeMap<(u64, u64), Result<Box<Compared>, ErrorMessage>>,
    comparing: Option<(u64, u64)>,
    diff_top: usize,
    focus: Focus,
    /// Whether the differences have the whole screen.
    is_zoomed: bool,
    /// The version to restore, and the one that it would replace.
    restoring: Option<(u64, u64)>,
}

impl History {
    /// The versions are loaded when the screen is shown.
    pub fn new(plan: PlanKey) -> Self {
        Self {
            plan,
            versions: Versions::default(),
            error: None,
            reading: false,
            selected: 0,
            top: 0,
            marked: None,
            compared: BTreeMap::new(),
            comparing: None,
            diff_top: 0,
            focus: Focus::Versions,
            is_zoomed: false,
            restoring: None,
        }
    }

    /// Compares the latest version with this one.
    pub fn since(plan: PlanKey, version: u64) -> Self {
        Self { marked: Some(version), ..Self::new(plan) }
    }

    pub(crate) fn plan(&self) -> &PlanKey {
        &self.plan
    }

    pub(crate) fn update(&mut self, event: Event<'_>, context: &mut Context<'_>) {
        match event {
            Event::Shown => self.read(None, context),
            Event::Action(action) => self.act(action, context),
            Event::Chosen(choice, _) => {
                if let (Choice::Confirm, Some((version, known))) = (choice, self.restoring.take()) {
                    let plan = self.plan.clone();
                    self.ask(HistoryEffect::Restore { plan, version, known }, context);
                }
            }
            Event::Reply(Reply::History(reply)) => self.reply(reply, context),
            Event::Written(store, plans) => {
                if store == self.plan.store && plans.iter().any(|(id, _)| *id == self.plan.id) {
                    self.read(None, context);
                }
            }
            Event::Mouse(mouse) => self.mouse(mouse.kind, Position::new(mouse.column, mouse.row), context),
            Event::Key(_) | Event::Paste(_) | Event::Tick | Event::Reply(_) | Event::DialogClosed => {}
        }
        self.settle(context);
    }

    fn ask(&self, effect: HistoryEffect, context: &mut Context<'_>) {
        context.effects.push(Effect::History(effect));
    }

    fn read(&mut self, before: Option<u64>, context: &mut Context<'_>) {
        if !std::mem::replace(&mut self.reading, true) {
            self.ask(HistoryEffect::Versions(self.plan.clone(), before), context);
        }
    }

    fn reply(&mut self, reply: &HistoryReply, context: &mut Context<'_>) {
        match reply {
            HistoryReply::Versions(plan, before, versions) if *plan == self.plan => {
                self.reading = false;
                match versions {
                    Ok(versions) => self.take(*before, versions),
                    Err(error) => self.error = Some(error.clone()),
                }
            }
            HistoryReply::Compared(plan, pair, compared) if *plan == self.plan => {
                if self.comparing == Some(*pair) {
                    self.comparing = None;
                }
                if self.compared.len() >= DIFFS_KEPT {
                    self.compared.clear();
                }
                self.compared.insert(*pair, compared.clone());
            }
            HistoryReply::Restored(plan, version, restored) if *plan == self.plan => match restored {
                Ok(new) if *new == self.versions.current => {
                    context
                        .notify(NoteKind::Good, format!("the plan is already the same as version {version}"));
                }
                Ok(new) => {
                    context.notify(NoteKind::Good, format!("restored version {version} as version {new}"));
                    self.selected = 0;
                }
                Err(error) => context.notify_error(error),
            },
            HistoryReply::Preview(plan, pair, preview)
                if *plan == self.plan && self.restoring == Some(*pair) =>
            {
                match preview {
                    Ok(preview) => confirm_restore(*pair, preview, context),
                    Err(error) => context.notify_error(error),
                }
            }
            HistoryReply::Versions(..)
            | HistoryReply::Compared(..)
            | HistoryReply::Preview(..)
            | HistoryReply::Restored(..) => {}
        }
    }

    /// Adds a page. The selection stays on its version.
    fn take(&mut self, before: Option<u64>, page: &Versions) {
        self.error = None;
        let selected = self.row().map(|row| row.number);
        if before.is_some() {
            self.versions.rows.extend(page.rows.iter().cloned());
            self.versions.more = page.more;
        } else {
            let oldest = page.rows.last().map_or(0, |row| row.number);
            let known = std::mem::take(&mut self.versions.rows);
            let had_more = self.versions.more;
            self.versions = page.clone();
            let earlier: Vec<Version> = known.into_iter().filter(|row| row.number < oldest).collect();
            if !earlier.is_empty() {
                self.versions.more = had_more;
                self.versions.rows.extend(earlier);
            }
        }
        let rows = &self.versions.rows;
        let place = selected.and_then(|selected| rows.iter().position(|row| row.number == selected));
        // If the latest version was selected, the new latest one is.
        self.selected = if self.selected == 0 { 0 } else { place.unwrap_or(self.selected) };
    }

    fn row(&self) -> Option<&Version> {
        self.versions.rows.get(self.selected)
    }

    /// The two versions to compare, the earlier first.
    fn pair(&self) -> Option<(u64, u64)> {
        let number = self.row()?.number;
        let other = self.marked.filter(|&marked| marked != number).unwrap_or(number - 1);
        Some((other.min(number), other.max(number)))
    }

    fn act(&mut self, action: Action, context: &mut Context<'_>) {
        let page = list_rows(context.area).max(1) as isize;
        match action {
            Action::Up => self.step(-1),
            Action::Down => self.step(1),
            Action::PageUp => self.step(-page),
            Action::PageDown => self.step(page),
            Action::First => self.step(isize::MIN),
            Action::Last => self.step(isize::MAX),
            Action::Focus => {
                self.focus = match self.focus {
                    Focus::Versions => Focus::Differences,
                    Focus::Differences => Focus::Versions,
                };
            }
            Action::Mark => {
                let number = self.row().map(|row| row.number);
                self.marked = if self.marked == number { None } else { number };
            }
            Action::Restore => self.restore(context),
            Action::Zoom => self.is_zoomed = !self.is_zoomed,
            Action::Edit => context.go(Flow::Open(Destination::Editor(self.plan.clone()))),
            Action::Back if self.is_zoomed => self.is_zoomed = false,
            Action::Quit => context.go(Flow::Quit),
            Action::Back => context.go(Flow::Pop),
            Action::Open
            | Action::Help
            | Action::Palette
            | Action::Filter
            | Action::Next
            | Action::Previous
            | Action::Sort
            | Action::Archived
            | Action::Refresh
            | Action::New
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
            | Action::Suspend => {}
        }
    }

    fn restore(&mut self, context: &mut Context<'_>) {
        let Some(row) = self.row() else { return };
        if row.number == self.versions.current {
            context.notify(NoteKind::Warning, "this is the current version");
            return;
        }
        let (plan, version, known) = (self.plan.clone(), row.number, self.versions.current);
        self.restoring = Some((version, known));
        self.ask(HistoryEffect::Preview { plan, version, known }, context);
    }

    fn step(&mut self, by: isize) {
        match self.focus {
            Focus::Versions if !self.is_zoomed => {
                let last = self.versions.rows.len().saturating_sub(1);
                self.selected = self.selected.saturating_add_signed(by).min(last);
                self.diff_top = 0;
            }
            Focus::Versions | Focus::Differences => self.diff_top = self.diff_top.saturating_add_signed(by),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a mouse does more than means something here")]
    fn mouse(&mut self, kind: MouseEventKind, at: Position, context: &Context<'_>) {
        let parts = parts(context.area, self.is_zoomed);
        let is_diff = parts.diff.contains(at);
        let turn = |by: isize, history: &mut Self| {
            let focus = std::mem::replace(
                &mut history.focus,
                if is_diff { Focus::Differences } else { Focus::Versions },
            );
            history.step(by);
            history.focus = focus;
        };
        match kind {
            MouseEventKind::ScrollUp => turn(-3, self),
            MouseEventKind::ScrollDown => turn(3, self),
            MouseEventKind::Down(MouseButton::Left) if is_diff => self.focus = Focus::Differences,
            MouseEventKind::Down(MouseButton::Left) if parts.list.contains(at) => {
                self.focus = Focus::Versions;
                let row = self.top + usize::from(at.y.saturating_sub(parts.list.y + 1));
                if row < self.versions.rows.len() {
                    (self.selected, self.diff_top) = (row, 0);
                }
            }
            _ => {}
        }
    }

    /// Loads what is missing, and keeps the selection visible.
    fn settle(&mut self, context: &mut Context<'_>) {
        let rows = list_rows(context.area).max(1);
        self.selected = self.selected.min(self.versions.rows.len().saturating_sub(1));
        self.top = self.top.clamp((self.selected + 1).saturating_sub(rows), self.selected);
        if let Some(pair) = self.pair()
            && self.comparing.is_none()
            && !self.compared.contains_key(&pair)
        {
            self.comparing = Some(pair);
            self.ask(HistoryEffect::Compare(self.plan.clone(), pair.0, pair.1), context);
        }
        let lines = match self.pair().and_then(|pair| self.compared.get(&pair)) {
            Some(Ok(compared)) => compared.lines.len(),
            Some(Err(_)) | None => 0,
        };
        self.diff_top = self.diff_top.min(lines.saturating_sub(1));
        let last = self.versions.rows.last().map(|row| row.number);
        if self.versions.more && self.selected + rows >= self.versions.rows.len() {
            self.read(last, context);
        }
    }
}

/// Shows what a restore would do before it is done.
fn confirm_restore((version, known): (u64, u64), preview: &RestorePreview, context: &mut Context<'_>) {
    if let Some(refusal) = &preview.refused {
        context.notify(NoteKind::Warning, format!("it cannot be restored now: {refusal}"));
        return;
    }
    let lost = match preview.outputs_lost.as_slice() {
        [] => "No result and no output is lost.".to_owned(),
        lost => format!("Results and outputs are lost: {}.", named(lost)),
    };
    let effects = [
        ("Pending again, because their work differs", &preview.reset),
        ("Back as pending", &preview.added),
        ("Removed", &preview.removed),
    ];
    let effects = effects.into_iter().filter(|(_, tasks)| !tasks.is_empty());
    let effects = effects.map(|(what, tasks)| format!("{what}: {}.", named(tasks)));
    let first = format!("Version {} will be a copy of version {version}. The history is kept.", known + 1);
    let lines = [first, lost].into_iter().chain(effects).collect();
    let buttons = vec![Button::new('r', "restore", Choice::Confirm), Button::close('b', "back")];
    context.ask(Dialog::new(format!("Restore version {version}"), lines, buttons));
}

/// Names the first of several tasks.
fn named(tasks: &[TaskId]) -> String {
    let names: Vec<&str> = tasks.iter().take(NAMES_MAX).map(TaskId::as_str).collect();
    match tasks.len() - names.len() {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
