//! What the program is doing, and what follows from whatever happens: [`update`] is a plain function. Knows no store, no
//! clock and no terminal.

mod quit;

use std::collections::{BTreeSet, VecDeque};

use ratatui::crossterm::event::{KeyEvent, KeyEventKind, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};
use waypost_core::{Command, Draft, PlanId, Standing, Timestamp};
use waypost_store::{Conflict, Head, Page, Query};

use crate::dialog::{Choice, Dialog, Outcome};
use crate::editor::Editor;
use crate::help::Help;
use crate::history::{History, HistoryEffect, HistoryReply};
use crate::keys::{Action, Chord, Keys, Place};
use crate::plan_list::PlanList;
use crate::run_view::{Intent, RunEffect, RunReply, RunView};
use crate::theme::Theme;

/// The smallest terminal that everything fits into.
pub const COLUMNS_MIN: u16 = 60;
/// Its rows.
pub const ROWS_MIN: u16 = 15;
/// Seconds that a note stays.
pub const NOTE_SECONDS: u64 = 8;

/// A plan, and which of the stores it lives in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanKey {
    /// The store: its place in [`Settings::stores`].
    pub store: usize,
    /// The plan.
    pub id: PlanId,
}

/// What the program is told once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The names of the stores, as the list of plans shows them: `repo`, `user`.
    pub stores: Vec<String>,
    /// Whether nothing is run, only said.
    pub dry_run: bool,
    /// Which key does what.
    pub keys: Keys,
    /// What it looks like.
    pub theme: Theme,
}

/// A plan as the editor takes it.
#[derive(Clone, Debug)]
pub struct LoadedPlan {
    /// The plan, its tasks in their order.
    pub draft: Draft,
    /// Where each of them stands.
    pub standings: Vec<Standing>,
    /// Whether a person has yet to approve before machines run it.
    pub awaits_approval: bool,
}

impl LoadedPlan {
    /// Of a plan of the store.
    pub fn of(plan: &waypost_core::Plan) -> Self {
        let standing = |id: &str| plan.standing(id).unwrap_or(Standing::Blocked);
        Self {
            draft: plan.to_draft(),
            standings: plan.tasks().map(|(task, _)| standing(task.spec.id.as_str())).collect(),
            awaits_approval: plan.state().approval_required && plan.state().approval.is_none(),
        }
    }
}

/// Something that went wrong outside, in words for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorMessage {
    /// What happened, and to what.
    pub what: String,
    /// What to do next; may be empty.
    pub hint: String,
}

impl ErrorMessage {
    /// It, at the bottom of the screen.
    pub fn note(&self) -> Note {
        let text =
            if self.hint.is_empty() { self.what.clone() } else { format!("{} ({})", self.what, self.hint) };
        Note { kind: NoteKind::Wrong, text }
    }
}

/// Why edits are not written.
#[derive(Clone, Debug)]
pub enum SaveError {
    /// Somebody else wrote meanwhile; this is what changed.
    Conflict(Box<Conflict>),
    /// The plan or the store said no.
    Refused(ErrorMessage),
}

/// What a text in `$EDITOR` is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The whole plan.
    Plan(PlanKey),
    /// A field of the form that is open.
    Field,
}

/// One page of the list of plans.
#[derive(Clone, Debug)]
pub struct PlanPage {
    /// The plans.
    pub page: Page<Head>,
    /// What could not be read, one line each.
    pub warnings: Vec<String>,
}

/// The answer to an [`Effect`].
#[derive(Clone, Debug)]
pub enum Reply {
    /// To [`Effect::LoadPlanPage`].
    PlanPage {
        /// The store.
        store: usize,
        /// The number of the question, so that a late answer to an old one is told apart.
        ticket: u64,
        /// The page.
        heads: Result<Box<PlanPage>, ErrorMessage>,
    },
    /// To [`Effect::LoadPlan`].
    Plan {
        /// Which.
        plan: PlanKey,
        /// The plan.
        loaded: Result<Box<LoadedPlan>, ErrorMessage>,
    },
    /// To [`Effect::Save`]: the new version.
    Saved {
        /// Which.
        plan: PlanKey,
        /// The version, or why there is none.
        saved: Result<u64, SaveError>,
    },
    /// To [`Effect::CreatePlan`].
    Created {
        /// The new plan.
        plan: Result<PlanKey, ErrorMessage>,
    },
    /// To [`Effect::EditText`]: nothing when the text is as it was.
    Edited {
        /// What it is for.
        purpose: Purpose,
        /// The text.
        text: Result<Option<String>, ErrorMessage>,
    },
    /// Something to tell, whatever it answers.
    Note(Note),
    /// To [`Effect::Run`].
    Run(RunReply),
    /// To [`Effect::History`].
    History(HistoryReply),
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Message {
    /// A key was pressed.
    Key(KeyEvent),
    /// The mouse did something.
    Mouse(MouseEvent),
    /// Text was pasted.
    Paste(String),
    /// The terminal has another size.
    Resize {
        /// Columns.
        columns: u16,
        /// Rows.
        rows: u16,
    },
    /// Nothing else happened for a while; the time now.
    Tick(Timestamp),
    /// An effect is through.
    Reply(Reply),
    /// Somebody, perhaps another process, wrote these plans.
    Written {
        /// The store.
        store: usize,
        /// The plans with their versions.
        plans: Vec<(PlanId, u64)>,
    },
}

/// What the loop is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Leave.
    Quit,
    /// Read a page of the list of plans.
    LoadPlanPage {
        /// The store.
        store: usize,
        /// The number to answer with.
        ticket: u64,
        /// Which plans.
        query: Box<Query>,
    },
    /// Read a plan.
    LoadPlan(PlanKey),
    /// Write commands as one version, if the plan still is at the version that is known.
    Save {
        /// Which.
        plan: PlanKey,
        /// The version that the edits were made on.
        version: u64,
        /// The edits.
        commands: Vec<Command>,
    },
    /// Make a plan with this title and no tasks.
    CreatePlan {
        /// The store.
        store: usize,
        /// The title.
        title: String,
    },
    /// Let a person edit a text in `$EDITOR`.
    EditText {
        /// What it is for.
        purpose: Purpose,
        /// The text.
        text: String,
        /// The ending of the file's name: `md`, `txt`.
        ending: &'static str,
    },
    /// Run a plan. The program goes to the run view by itself.
    Execute(PlanKey),
    /// What the run view wants.
    Run(RunEffect),
    /// What the history wants.
    History(HistoryEffect),
    /// Stop until the shell lets it go on.
    Suspend,
}

/// A line at the bottom of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What it is.
    pub kind: NoteKind,
    /// What it says.
    pub text: String,
}

/// What kind of thing a note says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// It is as it should be.
    Good,
    /// Somebody should know.
    Warning,
    /// Something went wrong.
    Wrong,
}

/// A screen. What is below it on the stack stays as it was.
#[derive(Debug)]
pub enum Screen {
    /// All plans.
    PlanList(Box<PlanList>),
    /// One plan, to be edited.
    Editor(Box<Editor>),
    /// How one plan is worked on.
    Run(Box<RunView>),
    /// The versions of one plan.
    History(Box<History>),
    /// The keys.
    Help(Box<Help>),
}

/// What a screen is told.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A key that means this here.
    Action(Action),
    /// A key that means nothing here, or any key while text is being typed.
    Key(KeyEvent),
    /// The mouse, in coordinates of the terminal.
    Mouse(MouseEvent),
    /// Pasted text.
    Paste(&'a str),
    /// Time went by.
    Tick,
    /// An effect is through. Every screen hears of it.
    Reply(&'a Reply),
    /// Plans of a store were written. Every screen hears of it.
    Written(usize, &'a [(PlanId, u64)]),
    /// Somebody chose in the dialog that this screen opened; the text is what was typed, if anything could be.
    Chosen(&'a Choice, &'a str),
    /// The screen is on top now, for the first time or again.
    Shown,
}

/// Where to go from here.
#[derive(Debug)]
pub enum Flow {
    /// Nowhere.
    Stay,
    /// To another screen, from which one comes back.
    Push(Screen),
    /// To another screen instead of this one.
    Replace(Screen),
    /// Back.
    Pop,
    /// Nowhere before this is answered.
    Ask(Dialog),
    /// Out of the program.
    Quit,
}

/// What a screen may use while it thinks.
pub struct Context<'a> {
    /// What was told once.
    pub settings: &'a Settings,
    /// The time.
    pub now: Timestamp,
    /// The part of the terminal that is the screen's.
    pub area: Rect,
    /// What the loop is to do.
    pub effects: &'a mut Vec<Effect>,
    /// The plans that this process runs.
    pub runs: &'a BTreeSet<PlanKey>,
    notes: &'a mut VecDeque<Note>,
}

impl Context<'_> {
    /// Says something at the bottom of the screen.
    pub fn notify(&mut self, kind: NoteKind, text: impl Into<String>) {
        self.notes.push_back(Note { kind, text: text.into() });
    }

    /// Says what went wrong at the bottom of the screen.
    pub fn notify_error(&mut self, error: &ErrorMessage) {
        self.notes.push_back(error.note());
    }
}

impl Screen {
    /// What the footer offers.
    pub(crate) fn actions(&self, app: &App) -> Vec<Action> {
        match self {
            Self::PlanList(_) => PlanList::KEYS.to_vec(),
            Self::Editor(_) => Editor::KEYS.to_vec(),
            Self::Run(run) => run.keys(app),
            Self::History(_) => History::KEYS.to_vec(),
            Self::Help(_) => vec![Action::Back],
        }
    }

    /// Whose keys hold.
    pub fn place(&self) -> Place {
        match self {
            Self::PlanList(_) => Place::PlanList,
            Self::Editor(editor) => editor.place(),
            Self::Run(_) => Place::Run,
            Self::History(_) => Place::History,
            Self::Help(_) => Place::Anywhere,
        }
    }

    /// Whether keys are text now, except those that mean something to the part that has them.
    pub fn is_typing(&self) -> bool {
        match self {
            Self::PlanList(plan_list) => plan_list.is_typing(),
            Self::Editor(editor) => editor.is_typing(),
            Self::Run(_) | Self::History(_) | Self::Help(_) => false,
        }
    }

    /// What tells it from the others, whatever part of it has the keys.
    fn name(&self) -> ScreenName {
        match self {
            Self::PlanList(_) => (Place::PlanList, None),
            Self::Editor(editor) => (Place::Editor, Some(editor.plan().clone())),
            Self::Run(run) => (Place::Run, Some(run.plan().clone())),
            Self::History(history) => (Place::History, Some(history.plan().clone())),
            Self::Help(_) => (Place::Anywhere, None),
        }
    }

    /// The plan that is in hand, to be looked at otherwise.
    fn plan(&self) -> Option<PlanKey> {
        match self {
            Self::PlanList(plan_list) => plan_list.selected(),
            Self::Editor(editor) => Some(editor.plan().clone()),
            Self::Run(_) | Self::History(_) | Self::Help(_) => None,
        }
    }

    fn update(&mut self, event: Event<'_>, context: &mut Context<'_>) -> Flow {
        match self {
            Self::PlanList(plan_list) => plan_list.update(event, context),
            Self::Editor(editor) => editor.update(event, context),
            Self::Run(run) => run.update(event, context),
            Self::History(history) => history.update(event, context),
            Self::Help(help) => help.update(event, context),
        }
    }
}

/// The program.
#[derive(Debug)]
pub struct App {
    /// What was told once.
    pub settings: Settings,
    /// The screens; the last is seen. Never empty.
    pub screens: Vec<Screen>,
    /// What has to be answered before anything else.
    pub dialog: Option<Dialog>,
    /// The note that is shown, and until when.
    pub note: Option<(Note, Timestamp)>,
    /// The terminal.
    pub size: Rect,
    /// The time that was last told.
    pub now: Timestamp,
    /// The plans that this process runs.
    pub runs: BTreeSet<PlanKey>,
    /// Whether the program ends with the last of its runs.
    pub quit_after_runs: bool,
    /// Where screens wanted to go while something else was looked at, the earliest first.
    deferred: VecDeque<(ScreenName, Flow)>,
}

/// What tells one screen from the others.
type ScreenName = (Place, Option<PlanKey>);

impl App {
    /// A program that begins with these screens, at a time, in a terminal of a size. The effects are the first to be done.
    pub fn new(
        settings: Settings,
        first: Screen,
        now: Timestamp,
        (columns, rows): (u16, u16),
    ) -> (Self, Vec<Effect>) {
        let size = Rect::new(0, 0, columns, rows);
        let runs = BTreeSet::new();
        let mut app = Self {
            settings,
            screens: vec![first],
            dialog: None,
            note: None,
            size,
            now,
            runs,
            quit_after_runs: false,
            deferred: VecDeque::new(),
        };
        let effects = app.dispatch_top(Event::Shown);
        (app, effects)
    }

    /// The screen that is seen.
    pub fn top(&self) -> Option<&Screen> {
        self.screens.last()
    }

    /// Whether the terminal is too small to show anything but that.
    pub fn is_too_small(&self) -> bool {
        self.size.width < COLUMNS_MIN || self.size.height < ROWS_MIN
    }

    /// The part of the terminal between the heading and the footer.
    pub fn area(&self) -> Rect {
        crate::frame::parts(self.size).body
    }

    fn dispatch(&mut self, at: usize, event: Event<'_>, effects: &mut Vec<Effect>) -> Flow {
        let mut notes = VecDeque::new();
        let area = self.area();
        let mut context = Context {
            settings: &self.settings,
            now: self.now,
            area,
            effects,
            runs: &self.runs,
            notes: &mut notes,
        };
        let flow = match self.screens.get_mut(at) {
            Some(screen) => screen.update(event, &mut context),
            None => Flow::Stay,
        };
        if let Some(note) = notes.pop_back() {
            self.show(note);
        }
        flow
    }

    fn show(&mut self, note: Note) {
        self.note = Some((note, self.now.plus_seconds(NOTE_SECONDS)));
    }

    fn dispatch_top(&mut self, event: Event<'_>) -> Vec<Effect> {
        let mut effects = Vec::new();
        let flow = self.dispatch(self.screens.len() - 1, event, &mut effects);
        self.navigate(flow, &mut effects);
        effects
    }

    /// Every screen hears; only the one that is seen may go somewhere, and not while a question is open. The others go when
    /// they are seen again.
    fn broadcast(&mut self, event: Event<'_>) -> Vec<Effect> {
        let mut effects = Vec::new();
        let last = self.screens.len() - 1;
        for at in 0..=last {
            let flow = self.dispatch(at, event, &mut effects);
            match flow {
                Flow::Stay => {}
                flow if at == last && self.dialog.is_none() => self.navigate(flow, &mut effects),
                flow => self.defer(at, flow),
            }
        }
        effects
    }

    /// Keeps where a screen wants to go until it is seen; says so where somebody waits for it.
    fn defer(&mut self, at: usize, flow: Flow) {
        let Some(name) = self.screens.get(at).map(Screen::name) else { return };
        if let Flow::Ask(dialog) = &flow {
            let text = format!("{}: the question is asked when you are back there", dialog.title);
            self.show(Note { kind: NoteKind::Wrong, text });
        }
        self.deferred.push_back((name, flow));
    }

    /// Goes where the screen that is seen wanted to go meanwhile.
    fn resume_deferred(&mut self, effects: &mut Vec<Effect>) {
        let Some(name) = self.top().map(Screen::name).filter(|_| self.dialog.is_none()) else { return };
        if let Some(at) = self.deferred.iter().position(|(deferred, _)| *deferred == name)
            && let Some((_, flow)) = self.deferred.remove(at)
        {
            self.navigate(flow, effects);
        }
    }

    fn navigate(&mut self, flow: Flow, effects: &mut Vec<Effect>) {
        match flow {
            Flow::Stay => return,
            Flow::Ask(dialog) => {
                self.dialog = Some(dialog);
                return;
            }
            // Whoever leaves an editor has been asked about what is in it.
            Flow::Quit => return self.quit(self.screens.len() - 1, effects),
            Flow::Push(screen) => {
                let screen = self.take_open_editor(&screen).unwrap_or(screen);
                self.screens.push(screen);
            }
            Flow::Replace(screen) => {
                self.screens.pop();
                self.screens.push(screen);
            }
            Flow::Pop if self.screens.len() == 1 => return self.quit(0, effects),
            Flow::Pop => {
                let left = self.screens.pop().map(|screen| screen.name());
                let is_gone = |name: &ScreenName| Some(name) == left.as_ref();
                self.deferred.retain(|(name, _)| !is_gone(name));
            }
        }
        let flow = self.dispatch(self.screens.len() - 1, Event::Shown, effects);
        self.navigate(flow, effects);
        self.resume_deferred(effects);
    }

    /// The editor of the same plan that is open already, taken from where it stands: its edits are the ones to go on with.
    fn take_open_editor(&mut self, wanted: &Screen) -> Option<Screen> {
        let Screen::Editor(_) = wanted else { return None };
        let at = self.screens.iter().position(|screen| screen.name() == wanted.name())?;
        Some(self.screens.remove(at))
    }

    /// Goes to a screen, from which one comes back.
    pub fn open(&mut self, screen: Screen) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.navigate(Flow::Push(screen), &mut effects);
        effects
    }

    /// Whether something on the screen changes as time goes by.
    pub fn needs_tick(&self) -> bool {
        let moves = match self.top() {
            Some(Screen::Run(run)) => run.needs_tick(),
            Some(Screen::PlanList(plan_list)) => plan_list.needs_tick(),
            Some(Screen::Editor(editor)) => editor.needs_tick(),
            Some(Screen::History(_) | Screen::Help(_)) | None => false,
        };
        moves || self.note.is_some()
    }

    fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let anywhere = self.settings.keys.action(Place::Anywhere, key);
        // A character that is typed is one, whatever else it means.
        let is_typed = Chord::of(key).is_character()
            && (self.dialog.is_some() || self.top().is_some_and(Screen::is_typing));
        if anywhere == Some(Action::Suspend) && !is_typed {
            return vec![Effect::Suspend];
        }
        if self.is_too_small() {
            // Nobody sees what any other key would do.
            let mut effects = Vec::new();
            if anywhere == Some(Action::Quit) && !is_typed && self.dialog.is_none() {
                self.quit(self.screens.len(), &mut effects);
            }
            return effects;
        }
        if let Some(dialog) = &mut self.dialog {
            let outcome = dialog.key(key, self.size);
            return self.answered(outcome);
        }
        let Some(top) = self.top() else { return Vec::new() };
        let (place, typing) = (top.place(), top.is_typing());
        let action = if typing { None } else { self.settings.keys.action(place, key) };
        match action {
            Some(action) => self.act(action),
            None => self.dispatch_top(Event::Key(key)),
        }
    }

    /// Does what a key of the screen on top asks for.
    fn act(&mut self, action: Action) -> Vec<Effect> {
        let Some(top) = self.top() else { return Vec::new() };
        match (action, top.plan()) {
            (Action::Help, _) if !matches!(top, Screen::Help(_)) => {
                let help = Help::new(top.place());
                self.open(Screen::Help(Box::new(help)))
            }
            (Action::Watch, Some(plan)) => {
                self.open(Screen::Run(Box::new(RunView::new(plan, Intent::Watch))))
            }
            (Action::History, Some(plan)) => self.open(Screen::History(Box::new(History::new(plan)))),
            (action, _) => self.dispatch_top(Event::Action(action)),
        }
    }

    /// A click on the footer is the key that it names; everything else is the screen's.
    fn mouse(&mut self, mouse: MouseEvent) -> Vec<Effect> {
        if let Some(dialog) = &mut self.dialog {
            let outcome = dialog.mouse(mouse, self.size);
            return self.answered(outcome);
        }
        let clicked = mouse.kind == MouseEventKind::Down(MouseButton::Left);
        let at = Position::new(mouse.column, mouse.row);
        match crate::frame::footer_hit(self, at).filter(|_| clicked) {
            Some(action) => self.act(action),
            None => self.dispatch_top(Event::Mouse(mouse)),
        }
    }

    fn answered(&mut self, outcome: Outcome) -> Vec<Effect> {
        match outcome {
            Outcome::Open => Vec::new(),
            Outcome::Closed => {
                self.dialog = None;
                let mut effects = Vec::new();
                self.resume_deferred(&mut effects);
                effects
            }
            Outcome::Chosen(Choice::GoToEdits, _) => {
                self.dialog = None;
                self.go_to_edits()
            }
            Outcome::Chosen(Choice::DiscardAndLeave, _) => {
                self.dialog = None;
                let mut effects = Vec::new();
                self.quit_after_edits(&mut effects);
                effects
            }
            Outcome::Chosen(Choice::StopAndLeave, _) => vec![Effect::Quit],
            Outcome::Chosen(Choice::QuitAfterRuns, _) => {
                (self.dialog, self.quit_after_runs) = (None, true);
                let text = "leaves when what this process runs has ended".to_owned();
                self.show(Note { kind: NoteKind::Warning, text });
                Vec::new()
            }
            Outcome::Chosen(choice, typed) => {
                self.dialog = None;
                let mut effects = self.dispatch_top(Event::Chosen(&choice, &typed));
                self.resume_deferred(&mut effects);
                effects
            }
        }
    }
}

/// What follows from a message: the program changes, and the loop gets to do something.
pub fn update(app: &mut App, message: Message) -> Vec<Effect> {
    let mut effects = Vec::new();
    for effect in handle(app, message) {
        match effect {
            Effect::Execute(plan) => {
                let run = RunView::new(plan, Intent::Execute);
                effects.extend(app.open(Screen::Run(Box::new(run))));
            }
            other => effects.push(other),
        }
    }
    effects
}

fn handle(app: &mut App, message: Message) -> Vec<Effect> {
    match message {
        Message::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
        Message::Key(key) => app.key(key),
        Message::Mouse(_) | Message::Paste(_) if app.is_too_small() => Vec::new(),
        Message::Mouse(mouse) => app.mouse(mouse),
        Message::Paste(text) => match &mut app.dialog {
            Some(dialog) => {
                dialog.paste(&text);
                Vec::new()
            }
            None => app.dispatch_top(Event::Paste(&text)),
        },
        Message::Resize { columns, rows } => {
            app.size = Rect::new(0, 0, columns, rows);
            app.broadcast(Event::Tick)
        }
        Message::Tick(now) => {
            app.now = now;
            if app.note.as_ref().is_some_and(|(_, until)| *until <= now) {
                app.note = None;
            }
            app.broadcast(Event::Tick)
        }
        Message::Reply(Reply::Note(note)) => {
            app.show(note);
            Vec::new()
        }
        Message::Reply(answer) => {
            let mut effects = match &answer {
                Reply::Run(answer) => app.track_run(answer),
                _ => Vec::new(),
            };
            effects.extend(app.broadcast(Event::Reply(&answer)));
            effects
        }
        Message::Written { store, plans } => app.broadcast(Event::Written(store, &plans)),
    }
}
