//! The run view: the progress of a plan, no matter which process runs it, and actions on it: approve, reject, answer,
//! pause, resume, cancel, retry. Shows bounded snapshots; runs and writes nothing itself.

mod commands;
mod draw;
mod layout;
mod log;
mod merge_questions;
pub(crate) mod messages;
mod model;
mod task_text;

use ratatui::crossterm::event::{MouseButton, MouseEventKind};
use ratatui::layout::{Position, Rect};
use waypost_core::{EffectiveStatus, Phase, TaskId};
use waypost_run::Control;
use waypost_service::{AnswerChoice, MergeQuestion, Seen};

pub(crate) use self::commands::statuses as task_statuses;
pub use self::messages::{
    Intent, LOG_BYTES_MAX, PARTICULAR_BYTES_MAX, PREVIEW_BYTES_MAX, PREVIEW_TASKS_MAX, PlanAction, Preview,
    PreviewedTask, RunEffect, RunReply, Started, TaskDetail,
};
pub use self::model::{CONFLICTS_MAX, Group, PlanSnapshot, ROWS_MAX, Row, TaskQuestion};
use crate::keys::Action;
use crate::messages::{Effect, Purpose, Reply};
use crate::note::{ErrorMessage, NoteKind};
use crate::plan::PlanKey;
use crate::screen::{Context, Destination, Event, Flow};
use crate::styled_text::StyledText;
use crate::text_input::TextInput;

const DRY_RUN: &str = "dry run: the plan is not changed; open it without --dry-run";

/// The state of the run in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LocalRun {
    NotRunning,
    Starting,
    Running,
    Stopping(Control),
}

/// The purpose of the open dialog.
#[derive(Clone, Debug, PartialEq)]
enum OpenDialog {
    Approve(Seen),
    /// The plan changed while this was reviewed; the preview is of the latest version.
    Changed(Seen, Box<Preview>),
    Reject,
    /// The task, the digest of what it asks, and the answers that can be chosen.
    Answer(TaskId, String, Vec<Choosable>),
    /// Text for an answer that was chosen: the task, the digest, and what stands before the text.
    Finish(TaskId, String, &'static str),
    /// The statuses that can be chosen for a task.
    TaskStatus(Vec<PlanAction>),
    CancelTask(TaskId),
    CancelPlan,
    /// What clones disagree about, and the answers that can be chosen.
    Resolve(Box<MergeQuestion>, Vec<Resolution>),
    /// Another text as the answer to it.
    ResolveText(String),
    Leave,
}

/// An answer that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Choosable {
    /// The answer as it is.
    Whole(String),
    /// This word, and a text that is asked for.
    WithText(&'static str),
}

/// An answer to what clones disagree about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Resolution {
    /// This one.
    Whole(AnswerChoice),
    /// A text that is asked for.
    Text,
    /// None yet; what else is open.
    Later,
}

/// A line of the preview, and whether it is the first of a task.
type PreviewLine = (String, bool);

/// The part that has the focus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Focus {
    Tasks,
    Text,
}

#[derive(Debug)]
pub struct RunView {
    plan: PlanKey,
    intent: Intent,
    snapshot: Option<Box<PlanSnapshot>>,
    error: Option<ErrorMessage>,
    preview: Option<Box<Preview>>,
    /// Whether the approval dialog opens as soon as the preview is loaded.
    approves_preview: bool,
    /// The preview wrapped to this many columns.
    preview_lines: Option<(usize, Vec<PreviewLine>)>,
    local_run: LocalRun,
    open_dialog: Option<OpenDialog>,
    focus: Focus,
    /// The selected task; `None` follows the most interesting one.
    chosen: Option<TaskId>,
    top: usize,
    detail: Option<(TaskId, Box<TaskDetail>)>,
    /// The commits of the task that was shown last on the whole screen.
    commits: Option<(TaskId, String)>,
    /// The text of the task whose details are loaded: its log, or everything about it if it has the whole screen.
    text: StyledText,
    /// Whether the text has the whole screen.
    is_zoomed: bool,
    /// Whether the log shows when each line was written.
    shows_times: bool,
    /// The search that is typed.
    find: Option<TextInput>,
    /// What is searched in the text.
    search: String,
    /// The line of the text that was gone to.
    marked: Option<usize>,
    /// The rows of the state above the tasks.
    state_rows: u16,
    /// Rows between the end of the text and the visible part; 0 follows the end.
    behind: usize,
    /// The first visible line of the preview.
    preview_top: usize,
    snapshot_request: PendingRequest,
    detail_request: PendingRequest,
}

/// Keeps at most one request pending.
#[derive(Debug, Default)]
struct PendingRequest {
    under_way: bool,
    again: bool,
}

impl PendingRequest {
    /// Returns whether to send the request now. If one is pending, it is repeated afterwards.
    fn ask(&mut self) -> bool {
        self.again = self.under_way;
        !std::mem::replace(&mut self.under_way, true)
    }

    /// Handles a reply. Returns whether to repeat the request.
    fn answered(&mut self) -> bool {
        self.under_way = std::mem::take(&mut self.again);
        self.under_way
    }
}

impl RunView {
    /// The plan is loaded when the screen is shown.
    pub fn new(plan: PlanKey, intent: Intent) -> Self {
        Self {
            plan,
            intent,
            snapshot: None,
            error: None,
            preview: None,
            approves_preview: false,
            preview_lines: None,
            local_run: LocalRun::NotRunning,
            open_dialog: None,
            focus: Focus::Tasks,
            chosen: None,
            top: 0,
            detail: None,
            commits: None,
            text: StyledText::default(),
            is_zoomed: false,
            shows_times: false,
            find: None,
            search: String::new(),
            marked: None,
            state_rows: 1,
            behind: 0,
            preview_top: 0,
            snapshot_request: PendingRequest::default(),
            detail_request: PendingRequest::default(),
        }
    }

    /// Whether the screen changes without input.
    pub fn needs_tick(&self) -> bool {
        let runs =
            |snapshot: &PlanSnapshot| snapshot.phase == Phase::Active || snapshot.counts.in_progress() > 0;
        self.snapshot.as_deref().is_some_and(runs)
    }

    pub(crate) fn update(&mut self, event: Event<'_>, context: &mut Context<'_>) {
        match event {
            Event::Shown => self.shown(context),
            Event::Action(action) => self.act(action, context),
            Event::Chosen(choice, typed) => self.chose(choice, typed, context),
            Event::DialogClosed => self.open_dialog = None,
            Event::Reply(Reply::Run(reply)) => self.reply(reply, context),
            Event::Written(store, plans) => {
                if store == self.plan.store && plans.iter().any(|(id, _)| *id == self.plan.id) {
                    self.load_snapshot(context);
                }
            }
            Event::Tick => {
                // Progress does not create a version, so no `Written` event announces it.
                if self.snapshot.as_ref().is_some_and(|snapshot| snapshot.counts.running > 0) {
                    self.load_snapshot(context);
                }
                if self.row().is_some_and(|row| row.standing == EffectiveStatus::Running) {
                    self.load_detail(context);
                }
            }
            Event::Mouse(mouse) => {
                let at = Position::new(mouse.column, mouse.row);
                self.mouse(mouse.kind, at, context);
            }
            Event::Key(key) => self.type_key(key, context),
            Event::Paste(text) => self.paste(text),
            Event::Reply(Reply::Edited { purpose: Purpose::Resolve(plan, seen), text })
                if *plan == self.plan =>
            {
                self.resolve_edited(seen, text, context);
            }
            Event::Reply(_) => {}
        }
        self.settle(context);
    }

    pub(crate) fn is_typing(&self) -> bool {
        self.find.is_some()
    }

    fn shown(&mut self, context: &mut Context<'_>) {
        self.load_snapshot(context);
        self.load_detail(context);
        if context.runs.contains(&self.plan) && self.local_run == LocalRun::NotRunning {
            self.local_run = LocalRun::Running;
        }
        match self.intent {
            Intent::Execute if self.local_run == LocalRun::NotRunning => self.start(context),
            Intent::Review => {
                self.intent = Intent::Watch;
                if context.settings.dry_run {
                    context.notify(NoteKind::Warning, DRY_RUN);
                } else {
                    self.approve(context);
                }
            }
            Intent::Execute | Intent::Watch | Intent::Resolve => {}
        }
    }

    fn ask(&self, effect: RunEffect, context: &mut Context<'_>) {
        context.effects.push(Effect::Run(effect));
    }

    fn load_snapshot(&mut self, context: &mut Context<'_>) {
        if self.snapshot_request.ask() {
            self.ask(RunEffect::LoadSnapshot(self.plan.clone()), context);
        }
    }

    /// Loads the details of the selected task.
    fn load_detail(&mut self, context: &mut Context<'_>) {
        if let Some(task) = self.row().map(|row| row.id.clone())
            && self.detail_request.ask()
        {
            self.ask(RunEffect::LoadTaskDetail(self.plan.clone(), task), context);
        }
    }

    fn start(&mut self, context: &mut Context<'_>) {
        if context.settings.dry_run {
            self.ask(RunEffect::Preview(self.plan.clone()), context);
            context.notify(NoteKind::Warning, "dry run: this would run; nothing was run");
            return;
        }
        self.intent = Intent::Execute;
        self.local_run = LocalRun::Starting;
        self.ask(RunEffect::Start(self.plan.clone()), context);
    }

    fn row(&self) -> Option<&Row> {
        self.snapshot.as_ref()?.rows.get(self.selected())
    }

    fn selected(&self) -> usize {
        let rows = self.snapshot.as_ref().map_or(&[][..], |snapshot| &snapshot.rows);
        let chosen = self.chosen.as_ref();
        chosen.and_then(|chosen| rows.iter().position(|row| row.id == *chosen)).unwrap_or(0)
    }

    /// Whether the preview is shown in place of a task.
    fn shows_preview(&self) -> bool {
        self.preview.is_some() && self.local_run != LocalRun::Running
    }

    fn reply(&mut self, reply: &RunReply, context: &mut Context<'_>) {
        match reply {
            RunReply::Snapshot(plan, snapshot) if *plan == self.plan => self.set_snapshot(snapshot, context),
            RunReply::TaskDetail(plan, task, detail) if *plan == self.plan => {
                let again = self.detail_request.answered();
                if self.row().is_some_and(|row| row.id == *task) {
                    self.set_detail(task, detail, context);
                } else {
                    self.load_detail(context);
                }
                if again && let Some(row) = self.row() {
                    self.ask(RunEffect::LoadTaskDetail(self.plan.clone(), row.id.clone()), context);
                }
            }
            RunReply::Commits(plan, task, commits) if *plan == self.plan => {
                self.commits = Some((task.clone(), commits.clone()));
                self.set_text(context);
            }
            RunReply::Preview(plan, preview) if *plan == self.plan => {
                match (preview, std::mem::take(&mut self.approves_preview)) {
                    (Ok(preview), true) => self.offer_approval(preview, context),
                    (Ok(preview), false) => {
                        let needed = self.snapshot.as_ref().is_some_and(|snapshot| snapshot.needs_approval);
                        if needed || self.reviewed_version().is_none() {
                            (self.preview, self.preview_lines) = (Some(preview.clone()), None);
                        }
                        self.update_review(preview, context);
                    }
                    (Err(error), _) => context.notify_error(error),
                }
            }
            RunReply::Started(plan, started) if *plan == self.plan => self.started(started, context),
            RunReply::Approved(plan, approved) if *plan == self.plan => {
                match approved {
                    Ok(version) => {
                        context.notify(NoteKind::Good, format!("approved version {version}"));
                        self.preview = None;
                        if self.intent == Intent::Execute {
                            self.start(context);
                        }
                    }
                    Err(error) => {
                        context.notify_error(error);
                        // The plan may have changed since the preview.
                        self.ask(RunEffect::Preview(self.plan.clone()), context);
                    }
                }
            }
            RunReply::Ended(plan, _) if *plan == self.plan => {
                (self.local_run, self.intent) = (LocalRun::NotRunning, Intent::Watch);
                self.load_snapshot(context);
            }
            RunReply::Snapshot(..)
            | RunReply::TaskDetail(..)
            | RunReply::Commits(..)
            | RunReply::Preview(..)
            | RunReply::Started(..)
            | RunReply::Approved(..)
            | RunReply::Ended(..) => {}
        }
    }

    fn set_snapshot(
        &mut self,
        snapshot: &Result<Box<PlanSnapshot>, ErrorMessage>,
        context: &mut Context<'_>,
    ) {
        if self.snapshot_request.answered() {
            self.ask(RunEffect::LoadSnapshot(self.plan.clone()), context);
        }
        match snapshot {
            Ok(snapshot) => {
                let (before, needed) = (self.row().cloned(), snapshot.needs_approval);
                // What a task waits for may be the plan, of which its row says nothing.
                let is_new = self.snapshot.as_ref().is_none_or(|known| known.version != snapshot.version);
                self.snapshot = Some(snapshot.clone());
                self.error = None;
                let reviewed = self.reviewed_version();
                let shown = reviewed.or(self.preview.as_ref().map(|known| known.version));
                if (needed || reviewed.is_some()) && shown != Some(snapshot.version) {
                    self.ask(RunEffect::Preview(self.plan.clone()), context);
                }
                if !needed && !context.settings.dry_run {
                    self.preview = None;
                }
                if is_new || self.row() != before.as_ref() {
                    self.load_detail(context);
                }
                if self.intent == Intent::Resolve {
                    self.intent = Intent::Watch;
                    self.resolve_next(context);
                }
            }
            Err(error) => self.error = Some(error.clone()),
        }
    }

    fn started(&mut self, started: &Result<Started, ErrorMessage>, context: &mut Context<'_>) {
        match started {
            Ok(Started::Runs) => {
                self.local_run = LocalRun::Running;
                context.notify(NoteKind::Good, "running here");
            }
            Ok(Started::NeedsApproval) => {
                self.local_run = LocalRun::NotRunning;
                self.ask(RunEffect::Preview(self.plan.clone()), context);
                context.notify(NoteKind::Warning, "approve what will run first");
            }
            Err(error) => {
                (self.local_run, self.intent) = (LocalRun::NotRunning, Intent::Watch);
                self.not_started(error, context);
            }
        }
        self.load_snapshot(context);
    }

    pub(crate) fn plan(&self) -> &PlanKey {
        &self.plan
    }

    fn act(&mut self, action: Action, context: &mut Context<'_>) {
        let asks = |row: &Row| row.question.is_some() || !row.conflicts.is_empty();
        let answers = action == Action::Open && self.row().is_some_and(asks);
        if context.settings.dry_run && (is_write(action) || answers) {
            context.notify(NoteKind::Warning, DRY_RUN);
            return;
        }
        let page = self.list_rows(context.area);
        match action {
            Action::Up => self.step(-1),
            Action::Down => self.step(1),
            Action::PageUp => self.step(-(page as isize)),
            Action::PageDown => self.step(page as isize),
            Action::First => self.step(isize::MIN),
            Action::Last => self.step(isize::MAX),
            Action::Focus => {
                self.focus = if self.focus == Focus::Tasks { Focus::Text } else { Focus::Tasks };
            }
            Action::Follow => (self.chosen, self.behind, self.marked) = (None, 0, None),
            Action::Zoom => self.zoom(!self.is_zoomed, context),
            Action::Times => self.toggle_times(context),
            Action::Filter => self.find = Some(TextInput::line("")),
            Action::Next => self.jump(false, context),
            Action::Previous => self.jump(true, context),
            Action::Set => return self.set_status(context),
            Action::Back if self.is_zoomed => self.zoom(false, context),
            Action::Quit => return context.go(Flow::Quit),
            Action::Back => return self.leave(context),
            Action::History => {
                return context.go(Flow::Open(Destination::History(self.plan.clone())));
            }
            Action::Edit => {
                return context.go(Flow::Open(Destination::Editor(self.plan.clone())));
            }
            Action::Execute => match self.local_run {
                LocalRun::NotRunning => self.start(context),
                LocalRun::Starting | LocalRun::Running | LocalRun::Stopping(_) => {
                    context.notify(NoteKind::Warning, "already running here");
                }
            },
            Action::Stop => return self.stop(context),
            Action::Approve => return self.approve(context),
            Action::Reject => return self.reject(context),
            Action::Pause => self.pause_or_resume(context),
            Action::Hold => self.hold_or_lift(context),
            Action::Cancel => return self.cancel_task(context),
            Action::CancelPlan => return self.cancel_plan(context),
            Action::Retry => self.retry(context),
            Action::RetryAll => self.write(PlanAction::RetryAll, "failed tasks will be retried", context),
            Action::Open if self.row().is_some_and(|row| row.question.is_some()) => {
                return self.answer(context);
            }
            Action::Open if self.row().is_some_and(|row| !row.conflicts.is_empty()) => {
                return self.resolve_task(context);
            }
            Action::Questions => return self.resolve_next(context),
            Action::Open => self.zoom(!self.is_zoomed, context),
            Action::Help
            | Action::Palette
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
            | Action::Undo
            | Action::Redo
            | Action::External
            | Action::Dependencies
            | Action::Upstream
            | Action::Downstream
            | Action::Graph
            | Action::Fold
            | Action::Status
            | Action::NextField
            | Action::PreviousField
            | Action::Accept
            | Action::Toggle
            | Action::ViewTasks
            | Action::Watch
            | Action::ViewText
            | Action::Mark
            | Action::Restore
            | Action::Suspend => {}
        }
        self.load_detail(context);
    }

    /// Moves the selection, or scrolls the text if it has the focus.
    fn step(&mut self, by: isize) {
        if self.focus == Focus::Text || self.is_zoomed {
            return self.scroll(by);
        }
        let Some(snapshot) = &self.snapshot else { return };
        let last = snapshot.rows.len().saturating_sub(1);
        let to = self.selected().saturating_add_signed(by).min(last);
        self.chosen = snapshot.rows.get(to).map(|row| row.id.clone());
        (self.behind, self.marked) = (0, None);
    }

    /// Scrolls the text by lines.
    fn scroll(&mut self, by: isize) {
        if self.shows_preview() {
            self.preview_top = self.preview_top.saturating_add_signed(by);
        } else {
            self.behind = self.behind.saturating_add_signed(by.saturating_neg());
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a mouse does more than means something here")]
    fn mouse(&mut self, kind: MouseEventKind, at: Position, context: &mut Context<'_>) {
        let parts = self.parts(context.area);
        match kind {
            MouseEventKind::ScrollUp if parts.text.contains(at) => self.scroll(-3),
            MouseEventKind::ScrollDown if parts.text.contains(at) => self.scroll(3),
            MouseEventKind::ScrollUp => self.step(-3),
            MouseEventKind::ScrollDown => self.step(3),
            MouseEventKind::Down(MouseButton::Left) if parts.list.contains(at) => {
                self.focus = Focus::Tasks;
                let row = usize::from(at.y.saturating_sub(parts.list.y + 1));
                let row = if row < self.list_rows(context.area) { self.top + row } else { usize::MAX };
                if let Some(row) = self.snapshot.as_ref().and_then(|snapshot| snapshot.rows.get(row)) {
                    self.chosen = Some(row.id.clone());
                    (self.behind, self.marked) = (0, None);
                    self.load_detail(context);
                }
            }
            MouseEventKind::Down(MouseButton::Left) if parts.text.contains(at) => self.focus = Focus::Text,
            _ => {}
        }
    }

    /// Keeps the selection visible, and the scroll position inside the text.
    fn parts(&self, area: Rect) -> layout::Parts {
        layout::parts(area, self.state_rows, self.is_zoomed)
    }

    fn settle(&mut self, context: &Context<'_>) {
        self.state_rows = self.state_rows(context.settings, context.now, context.area);
        let rows = self.list_rows(context.area);
        let selected = self.selected();
        self.top = self.top.clamp((selected + 1).saturating_sub(rows), selected);
        self.wrap_preview(context.area);
        self.wrap_text(context.area);
        let preview = self.preview_lines.as_ref().map_or(0, |(_, lines)| lines.len());
        self.preview_top = self.preview_top.min(preview.saturating_sub(1));
        self.behind = self.behind.min(self.text.rows().saturating_sub(1));
    }
}

/// Whether an action writes to the plan, so that a dry run must refuse it.
fn is_write(action: Action) -> bool {
    matches!(
        action,
        Action::Approve
            | Action::Reject
            | Action::Pause
            | Action::Hold
            | Action::Cancel
            | Action::CancelPlan
            | Action::Retry
            | Action::RetryAll
            | Action::Set
            | Action::Questions
    )
}
