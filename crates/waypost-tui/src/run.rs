//! The run view: how a plan is worked on, by this process or by others, and what a person may say to it. Looks at bounded
//! summaries that the loop brings; runs nothing itself.

mod draw;
mod orders;
mod standing;
mod told;

use ratatui::crossterm::event::{MouseButton, MouseEventKind};
use ratatui::layout::Position;
use waypost_core::{Command, Phase, Standing, TaskId};
use waypost_run::Control;

pub use self::standing::{Asked, Group, ROWS_MAX, Row, Standings};
pub use self::told::{Closer, Preview, PreviewedTask, RunAnswer, RunEffect, Started};
use crate::app::{Answer, Context, Effect, Event, Flow, NoteKind, PlanKey, Screen, Trouble};
use crate::editor::Editor;
use crate::history::History;
use crate::keys::Action;

/// Bytes of a log's end that are looked at.
pub const LOG_BYTES_MAX: u64 = 64 * 1024;
/// Tasks that a plan would have done, as far as they are shown.
pub const PREVIEW_TASKS_MAX: usize = 1_000;
/// Bytes of what is shown of them.
pub const PREVIEW_BYTES_MAX: usize = 256 * 1024;
/// Bytes of one text among them.
pub const PARTICULAR_BYTES_MAX: usize = 32 * 1024;

/// What this process does for the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ours {
    /// Nothing.
    Nothing,
    /// It was asked to run it.
    Starting,
    /// It runs it.
    Running,
    /// It was asked to end.
    Ending(Control),
}

/// What a dialog of this screen is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Asking {
    Approve(u64),
    Reject,
    Answer(TaskId),
    CancelTask(TaskId),
    CancelPlan,
    Leave,
}

/// A line of the preview, and whether a task begins with it.
type Broken = (String, bool);

/// Which part has the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Focus {
    Tasks,
    Text,
}

/// Why one looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// To see how it goes.
    Watch,
    /// To run it here, as soon as it may.
    Execute,
}

/// The run view.
#[derive(Debug)]
pub struct RunView {
    plan: PlanKey,
    intent: Intent,
    standings: Option<Box<Standings>>,
    trouble: Option<Trouble>,
    preview: Option<Box<Preview>>,
    /// The preview, broken into lines for so many columns.
    broken: Option<(usize, Vec<Broken>)>,
    ours: Ours,
    asking: Option<Asking>,
    focus: Focus,
    /// The task that a person chose; nothing: whatever is the most interesting.
    chosen: Option<TaskId>,
    top: usize,
    closer: Option<(TaskId, Box<Closer>)>,
    /// Lines between the end of the log and what is seen of it; 0 follows the end.
    behind: usize,
    /// The first line that is seen of what will run.
    preview_top: usize,
    looks: Pending,
    closer_looks: Pending,
}

/// A question that is under way, so that none is asked twice.
#[derive(Debug, Default)]
struct Pending {
    under_way: bool,
    again: bool,
}

impl Pending {
    /// Whether to ask now.
    fn ask(&mut self) -> bool {
        self.again = self.under_way;
        !std::mem::replace(&mut self.under_way, true)
    }

    /// An answer came. Whether to ask again.
    fn answered(&mut self) -> bool {
        self.under_way = std::mem::take(&mut self.again);
        self.under_way
    }
}

impl RunView {
    /// Of a plan, which is looked at when the screen is shown.
    pub fn new(plan: PlanKey, intent: Intent) -> Self {
        Self {
            plan,
            intent,
            standings: None,
            trouble: None,
            preview: None,
            broken: None,
            ours: Ours::Nothing,
            asking: None,
            focus: Focus::Tasks,
            chosen: None,
            top: 0,
            closer: None,
            behind: 0,
            preview_top: 0,
            looks: Pending::default(),
            closer_looks: Pending::default(),
        }
    }

    /// Whether something on the screen changes by itself.
    pub fn has_a_clock(&self) -> bool {
        let runs =
            |standings: &Standings| standings.phase == Phase::Active || standings.counts.in_progress() > 0;
        self.standings.as_deref().is_some_and(runs)
    }

    pub(crate) fn update(&mut self, event: Event<'_>, context: &mut Context<'_>) -> Flow {
        let flow = match event {
            Event::Shown => self.shown(context),
            Event::Action(action) => self.act(action, context),
            Event::Chosen(choice, typed) => self.chose(choice, typed, context),
            Event::Answer(Answer::Run(answer)) => self.told(answer, context),
            Event::Written(store, plans) => {
                if store == self.plan.store && plans.iter().any(|(id, _)| *id == self.plan.id) {
                    self.look(context);
                }
                Flow::Stay
            }
            Event::Tick => {
                if self.row().is_some_and(|row| row.standing == Standing::Running) {
                    self.look_closer(context);
                }
                Flow::Stay
            }
            Event::Mouse(mouse) => {
                let at = Position::new(mouse.column, mouse.row);
                self.mouse(mouse.kind, at, context);
                Flow::Stay
            }
            Event::Key(_) | Event::Paste(_) | Event::Answer(_) => Flow::Stay,
        };
        self.settle(context);
        flow
    }

    fn shown(&mut self, context: &mut Context<'_>) -> Flow {
        self.look(context);
        self.look_closer(context);
        if context.runs.contains(&self.plan) && self.ours == Ours::Nothing {
            self.ours = Ours::Running;
        }
        if self.intent == Intent::Execute && self.ours == Ours::Nothing {
            self.start(context);
        }
        Flow::Stay
    }

    fn ask(&self, effect: RunEffect, context: &mut Context<'_>) {
        context.effects.push(Effect::Run(effect));
    }

    fn look(&mut self, context: &mut Context<'_>) {
        if self.looks.ask() {
            self.ask(RunEffect::Look(self.plan.clone()), context);
        }
    }

    /// Asks for more of the selected task.
    fn look_closer(&mut self, context: &mut Context<'_>) {
        if let Some(task) = self.row().map(|row| row.id.clone())
            && self.closer_looks.ask()
        {
            self.ask(RunEffect::LookCloser(self.plan.clone(), task), context);
        }
    }

    fn start(&mut self, context: &mut Context<'_>) {
        if context.settings.dry_run {
            self.ask(RunEffect::Preview(self.plan.clone()), context);
            context.say(NoteKind::Warning, "dry run: this is what would be run, and nothing is");
            return;
        }
        self.intent = Intent::Execute;
        self.ours = Ours::Starting;
        self.ask(RunEffect::Start(self.plan.clone()), context);
    }

    /// The selected task.
    fn row(&self) -> Option<&Row> {
        self.standings.as_ref()?.rows.get(self.selected())
    }

    /// Its place in the list.
    fn selected(&self) -> usize {
        let rows = self.standings.as_ref().map_or(&[][..], |standings| &standings.rows);
        let chosen = self.chosen.as_ref();
        chosen.and_then(|chosen| rows.iter().position(|row| row.id == *chosen)).unwrap_or(0)
    }

    /// Whether what machines would do is shown in place of a task.
    fn shows_preview(&self) -> bool {
        self.preview.is_some() && self.ours != Ours::Running
    }

    fn told(&mut self, answer: &RunAnswer, context: &mut Context<'_>) -> Flow {
        match answer {
            RunAnswer::Stands(plan, stands) if *plan == self.plan => {
                self.stands(stands, context);
                Flow::Stay
            }
            RunAnswer::Closer(plan, task, closer) if *plan == self.plan => {
                let again = self.closer_looks.answered();
                if self.row().is_some_and(|row| row.id == *task) {
                    self.closer = Some((task.clone(), closer.clone()));
                } else {
                    self.look_closer(context);
                }
                if again && let Some(row) = self.row() {
                    self.ask(RunEffect::LookCloser(self.plan.clone(), row.id.clone()), context);
                }
                Flow::Stay
            }
            RunAnswer::Preview(plan, preview) if *plan == self.plan => {
                match preview {
                    Ok(preview) => (self.preview, self.broken) = (Some(preview.clone()), None),
                    Err(trouble) => context.trouble(trouble),
                }
                Flow::Stay
            }
            RunAnswer::Started(plan, started) if *plan == self.plan => self.started(started, context),
            RunAnswer::Approved(plan, approved) if *plan == self.plan => {
                match approved {
                    Ok(version) => {
                        context.say(NoteKind::Good, format!("approved version {version}"));
                        self.preview = None;
                        if self.intent == Intent::Execute {
                            self.start(context);
                        }
                    }
                    Err(trouble) => {
                        context.trouble(trouble);
                        // Somebody may have changed what was looked at.
                        self.ask(RunEffect::Preview(self.plan.clone()), context);
                    }
                }
                Flow::Stay
            }
            RunAnswer::Ended(plan, _) if *plan == self.plan => {
                (self.ours, self.intent) = (Ours::Nothing, Intent::Watch);
                self.look(context);
                Flow::Stay
            }
            RunAnswer::Stands(..)
            | RunAnswer::Closer(..)
            | RunAnswer::Preview(..)
            | RunAnswer::Started(..)
            | RunAnswer::Approved(..)
            | RunAnswer::Ended(..) => Flow::Stay,
        }
    }

    fn stands(&mut self, stands: &Result<Box<Standings>, Trouble>, context: &mut Context<'_>) {
        if self.looks.answered() {
            self.ask(RunEffect::Look(self.plan.clone()), context);
        }
        match stands {
            Ok(stands) => {
                let (before, needed) = (self.row().cloned(), stands.needs_approval);
                self.standings = Some(stands.clone());
                self.trouble = None;
                if needed && self.preview.as_ref().is_none_or(|known| known.version != stands.version) {
                    self.ask(RunEffect::Preview(self.plan.clone()), context);
                }
                if !needed && !context.settings.dry_run {
                    self.preview = None;
                }
                if self.row() != before.as_ref() {
                    self.look_closer(context);
                }
            }
            Err(trouble) => self.trouble = Some(trouble.clone()),
        }
    }

    fn started(&mut self, started: &Result<Started, Trouble>, context: &mut Context<'_>) -> Flow {
        let mut flow = Flow::Stay;
        match started {
            Ok(Started::Runs) => {
                self.ours = Ours::Running;
                context.say(NoteKind::Good, "runs here");
            }
            Ok(Started::NeedsApproval) => {
                self.ours = Ours::Nothing;
                self.ask(RunEffect::Preview(self.plan.clone()), context);
                context.say(NoteKind::Warning, "nothing runs before a person approves what will be run");
            }
            Err(trouble) => {
                (self.ours, self.intent) = (Ours::Nothing, Intent::Watch);
                flow = self.not_started(trouble);
            }
        }
        self.look(context);
        flow
    }

    /// Which plan.
    pub(crate) fn plan(&self) -> &PlanKey {
        &self.plan
    }

    fn act(&mut self, action: Action, context: &mut Context<'_>) -> Flow {
        if context.settings.dry_run && orders::is_order(action) {
            let words = "dry run: nothing is said to the plan from here; open it without --dry-run for that";
            context.say(NoteKind::Warning, words);
            return Flow::Stay;
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
            Action::Follow => (self.chosen, self.behind) = (None, 0),
            Action::Quit => return Flow::Quit,
            Action::Back => return self.leave(),
            Action::History => {
                return Flow::Push(Screen::History(Box::new(History::new(self.plan.clone()))));
            }
            Action::Edit => {
                return Flow::Push(Screen::Editor(Box::new(Editor::new(self.plan.clone()))));
            }
            Action::Execute => match self.ours {
                Ours::Nothing => self.start(context),
                Ours::Starting | Ours::Running | Ours::Ending(_) => {
                    context.say(NoteKind::Warning, "it runs here already");
                }
            },
            Action::Stop => return self.stop(context),
            Action::Approve => return self.approve(context),
            Action::Reject => return self.reject(context),
            Action::Pause => self.pause_or_resume(context),
            Action::Cancel => return self.cancel_task(context),
            Action::CancelPlan => return self.cancel_plan(),
            Action::Retry => self.retry(context),
            Action::RetryAll => self.order(Command::RetryPlan, "what failed is to be done again", context),
            Action::Answer | Action::Open => return self.answer(context),
            _ => {}
        }
        self.look_closer(context);
        Flow::Stay
    }

    /// Moves the selection, or the text.
    fn step(&mut self, by: isize) {
        if self.focus == Focus::Text {
            return self.scroll(by);
        }
        let Some(standings) = &self.standings else { return };
        let last = standings.rows.len().saturating_sub(1);
        let to = self.selected().saturating_add_signed(by).min(last);
        self.chosen = standings.rows.get(to).map(|row| row.id.clone());
        self.behind = 0;
    }

    /// Moves the text by lines.
    fn scroll(&mut self, by: isize) {
        if self.shows_preview() {
            self.preview_top = self.preview_top.saturating_add_signed(by);
        } else {
            self.behind = self.behind.saturating_add_signed(by.saturating_neg());
        }
    }

    fn mouse(&mut self, kind: MouseEventKind, at: Position, context: &mut Context<'_>) {
        let parts = draw::parts(context.area);
        match kind {
            MouseEventKind::ScrollUp if parts.text.contains(at) => self.scroll(-3),
            MouseEventKind::ScrollDown if parts.text.contains(at) => self.scroll(3),
            MouseEventKind::ScrollUp => self.step(-3),
            MouseEventKind::ScrollDown => self.step(3),
            MouseEventKind::Down(MouseButton::Left) if parts.list.contains(at) => {
                self.focus = Focus::Tasks;
                let row = usize::from(at.y.saturating_sub(parts.list.y + 1));
                let row = if row < self.list_rows(context.area) { self.top + row } else { usize::MAX };
                if let Some(row) = self.standings.as_ref().and_then(|standings| standings.rows.get(row)) {
                    self.chosen = Some(row.id.clone());
                    self.behind = 0;
                    self.look_closer(context);
                }
            }
            MouseEventKind::Down(MouseButton::Left) if parts.text.contains(at) => self.focus = Focus::Text,
            _ => {}
        }
    }

    /// Keeps the selection on the screen, and the text inside of what there is.
    fn settle(&mut self, context: &Context<'_>) {
        let rows = self.list_rows(context.area);
        let selected = self.selected();
        self.top = self.top.clamp((selected + 1).saturating_sub(rows), selected);
        self.break_preview(context.area);
        let last = self.text_lines(context.area).saturating_sub(1);
        (self.behind, self.preview_top) = (self.behind.min(last), self.preview_top.min(last));
    }
}
