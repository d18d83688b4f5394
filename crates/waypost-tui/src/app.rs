//! The state of the program. [`update`] is a plain function from a message to effects; it uses no store, no clock and no
//! terminal.

mod draw;
mod quit;
mod stack;

pub use draw::render;
pub use stack::Screen;

use std::collections::{BTreeSet, VecDeque};

use ratatui::crossterm::event::{KeyEvent, KeyEventKind, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};
use waypost_core::Timestamp;

use crate::dialog::{Choice, Dialog, Outcome};
use crate::frame::{is_too_small, parts};
use crate::keys::{Action, Chord, Place};
use crate::messages::{Effect, Message, Reply};
use crate::note::{Note, NoteKind};
use crate::palette::{self, Palette, SearchHit, Target};
use crate::plan::PlanKey;
use crate::run_view::Intent;
use crate::screen::{Context, Destination, Event, Flow, Settings};
use stack::ScreenName;

/// How long a note stays visible: so long, and longer the more there is to read.
const NOTE_SECONDS: u64 = 8;
const CHARACTERS_PER_SECOND: usize = 15;

/// The state of the program.
#[derive(Debug)]
pub struct App {
    pub settings: Settings,
    /// A stack; only the last screen is drawn. Never empty.
    pub screens: Vec<Screen>,
    /// Receives all keys while it is open.
    pub dialog: Option<Dialog>,
    /// Receives all keys while it is open.
    pub palette: Option<Palette>,
    /// The visible note, and when it disappears.
    pub note: Option<(Note, Timestamp)>,
    /// Whether the visible note is a warning about the key before: it is out of date at the next one.
    is_about_key: bool,
    /// The size of the terminal.
    pub size: Rect,
    /// The time of the latest tick.
    pub now: Timestamp,
    /// The plans that this process runs.
    pub runs: BTreeSet<PlanKey>,
    /// Whether the program quits when the last of its runs ends.
    pub quit_after_runs: bool,
    /// Navigation requested by covered screens, carried out once they are shown again; the earliest first.
    deferred: VecDeque<(ScreenName, Flow)>,
}

impl App {
    /// Starts with this screen. Also returns the first effects.
    pub fn new(
        settings: Settings,
        first: Screen,
        now: Timestamp,
        (columns, rows): (u16, u16),
    ) -> (Self, Vec<Effect>) {
        let size = Rect::new(0, 0, columns, rows);
        let mut app = Self {
            settings,
            screens: vec![first],
            dialog: None,
            palette: None,
            note: None,
            is_about_key: false,
            size,
            now,
            runs: BTreeSet::new(),
            quit_after_runs: false,
            deferred: VecDeque::new(),
        };
        let effects = app.dispatch_top(Event::Shown);
        (app, effects)
    }

    pub fn top(&self) -> Option<&Screen> {
        self.screens.last()
    }

    pub fn is_too_small(&self) -> bool {
        is_too_small(self.size)
    }

    /// The area between heading and footer.
    pub fn area(&self) -> Rect {
        parts(self.size).body
    }

    /// Notes what is drawn next: an approval counts only once all of its text was on screen. Returns whether more of it is now.
    pub fn note_shown(&mut self) -> bool {
        let (size, is_shown) = (self.size, !self.is_too_small());
        self.dialog.as_mut().is_some_and(|dialog| is_shown && dialog.note_shown(size))
    }

    /// Whether the next key may decide about a text that had to be read.
    pub(crate) fn awaits_decision(&self) -> bool {
        let is_read = |dialog: &Dialog| dialog.read.is_some() && !dialog.is_unread(self.size);
        self.dialog.as_ref().is_some_and(is_read)
    }

    fn dispatch(&mut self, at: usize, event: Event<'_>, effects: &mut Vec<Effect>) -> Flow {
        let mut notes = VecDeque::new();
        let is_input = matches!(event, Event::Action(_) | Event::Key(_) | Event::Mouse(_));
        let area = self.area();
        let mut context = Context {
            settings: &self.settings,
            now: self.now,
            area,
            effects,
            runs: &self.runs,
            notes: &mut notes,
            flow: Flow::Stay,
        };
        if let Some(screen) = self.screens.get_mut(at) {
            screen.update(event, &mut context);
        }
        let flow = context.flow;
        if let Some(note) = notes.pop_back() {
            let is_about_key = is_input && note.kind == NoteKind::Warning;
            self.show(note);
            self.is_about_key = is_about_key;
        }
        flow
    }

    fn show(&mut self, note: Note) {
        let seconds = NOTE_SECONDS.max((note.text.len() / CHARACTERS_PER_SECOND) as u64);
        self.note = Some((note, self.now.plus_seconds(seconds)));
        self.is_about_key = false;
    }

    /// Takes away a warning about the key before: what is shown by now may be something else.
    fn forget_key_note(&mut self) {
        if std::mem::take(&mut self.is_about_key) {
            self.note = None;
        }
    }

    fn dispatch_top(&mut self, event: Event<'_>) -> Vec<Effect> {
        let mut effects = Vec::new();
        let flow = self.dispatch(self.screens.len() - 1, event, &mut effects);
        self.navigate(flow, &mut effects);
        effects
    }

    /// Sends the event to every screen. Only the screen on top may navigate, and only if no dialog is open; navigation of
    /// the others is deferred until they are shown again.
    fn broadcast(&mut self, event: Event<'_>) -> Vec<Effect> {
        let mut effects = Vec::new();
        let last = self.screens.len() - 1;
        for at in 0..=last {
            let flow = self.dispatch(at, event, &mut effects);
            match flow {
                Flow::Stay => {}
                Flow::Replace(dialog) if at == last => self.replace_dialog(*dialog),
                flow @ (Flow::Open(_) | Flow::Pop | Flow::Ask(_) | Flow::Replace(_) | Flow::Quit) => {
                    match at == last && self.is_free() {
                        true => self.navigate(flow, &mut effects),
                        false => self.defer(at, flow),
                    }
                }
            }
        }
        effects
    }

    /// Puts a dialog in the place of the one that the screen on top has open.
    fn replace_dialog(&mut self, mut dialog: Dialog) {
        if let Some(open) = &mut self.dialog {
            dialog.resume(open);
            *open = dialog;
        }
    }

    /// Defers a screen's navigation until it is shown; a deferred dialog is announced with a note.
    fn defer(&mut self, at: usize, flow: Flow) {
        let Some(name) = self.screens.get(at).map(Screen::name) else { return };
        if let Flow::Ask(dialog) = &flow {
            let text = format!("{}: asked when you return to that screen", dialog.title);
            self.show(Note { kind: NoteKind::Wrong, text });
        }
        self.deferred.push_back((name, flow));
    }

    /// Whether keys go to the screen on top.
    fn is_free(&self) -> bool {
        self.dialog.is_none() && self.palette.is_none()
    }

    /// Carries out the navigation that the screen on top requested while it was covered.
    fn resume_deferred(&mut self, effects: &mut Vec<Effect>) {
        let Some(name) = self.top().map(Screen::name).filter(|_| self.is_free()) else { return };
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
                self.dialog = Some(*dialog);
                return;
            }
            Flow::Replace(dialog) => return self.replace_dialog(*dialog),
            // The editor has already asked about its own edits.
            Flow::Quit => return self.quit(self.screens.len() - 1, effects),
            Flow::Open(destination) => {
                let screen = Screen::from(destination);
                let screen = self.take_open_editor(&screen).unwrap_or(screen);
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

    /// Removes an open editor of the same plan from the stack and returns it, so that its edits are not lost.
    fn take_open_editor(&mut self, wanted: &Screen) -> Option<Screen> {
        let Screen::Editor(new) = wanted else { return None };
        let at = self.screens.iter().position(|screen| screen.name() == wanted.name())?;
        let mut screen = self.screens.remove(at);
        if let (Screen::Editor(editor), Some(task)) = (&mut screen, new.requested_task()) {
            editor.look_at(task);
        }
        Some(screen)
    }

    /// Opens a screen on top of the others.
    pub fn open(&mut self, destination: Destination) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.navigate(Flow::Open(destination), &mut effects);
        effects
    }

    /// Whether anything visible changes with time.
    pub fn needs_tick(&self) -> bool {
        let moves = match self.top() {
            Some(Screen::Run(run)) => run.needs_tick(),
            Some(Screen::PlanList(plan_list)) => plan_list.needs_tick(),
            Some(Screen::Editor(editor)) => editor.needs_tick(),
            Some(Screen::History(_) | Screen::Text(_) | Screen::Help(_)) | None => false,
        };
        moves || self.note.is_some()
    }

    fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let anywhere = self.settings.keys.action(Place::Anywhere, key);
        // A typed character is text, even if it is bound to an action.
        let is_typed = Chord::of(key).is_character()
            && (self.dialog.is_some() || self.palette.is_some() || self.top().is_some_and(Screen::is_typing));
        if anywhere == Some(Action::Suspend) && !is_typed {
            return vec![Effect::Suspend];
        }
        if self.is_too_small() {
            // Nothing is shown, so no other key may change anything.
            let mut effects = Vec::new();
            if anywhere == Some(Action::Quit) && !is_typed && self.dialog.is_none() {
                self.quit(self.screens.len(), &mut effects);
            }
            return effects;
        }
        self.forget_key_note();
        if let Some(dialog) = &mut self.dialog {
            let outcome = dialog.key(key, self.size);
            return self.answered(outcome);
        }
        if let Some(palette) = &mut self.palette {
            let outcome = palette.key(key, self.size);
            return self.picked(outcome);
        }
        let Some(top) = self.top() else { return Vec::new() };
        let (place, typing) = (top.place(), top.is_typing() || top.takes(key));
        let action = if typing { None } else { self.settings.keys.action(place, key) };
        match action {
            Some(action) => self.act(action),
            None => self.dispatch_top(Event::Key(key)),
        }
    }

    fn act(&mut self, action: Action) -> Vec<Effect> {
        let Some(top) = self.top() else { return Vec::new() };
        let place = top.place();
        // These screens are already shown.
        let is_shown = match (action, top) {
            (Action::Watch, Screen::Run(_)) | (Action::History, Screen::History(_)) => true,
            (Action::ViewText, Screen::Text(_)) => true,
            (_, _) => false,
        };
        match (action, top.plan().filter(|_| !is_shown)) {
            (Action::Palette, plan) if !matches!(top, Screen::Help(_)) => {
                let (palette, search) = Palette::new(&self.settings.keys, place, plan);
                self.palette = Some(palette);
                vec![search]
            }
            (Action::Help, _) if !matches!(top, Screen::Help(_)) => self.open(Destination::Help(place)),
            (Action::Watch, Some(plan)) => self.open(Destination::Run(plan, Intent::Watch)),
            (Action::History, Some(plan)) => self.open(Destination::History(plan)),
            (Action::ViewText, Some(plan)) => self.open(Destination::Text(plan)),
            (Action::Approve, Some(plan)) if !matches!(top, Screen::Run(_)) => {
                self.open(Destination::Run(plan, Intent::Review))
            }
            (Action::Questions, Some(plan)) if !matches!(top, Screen::Run(_)) => {
                self.open(Destination::Run(plan, Intent::Resolve))
            }
            (action, _) => {
                let (depth, shown) = (self.screens.len(), self.note.clone());
                let effects = self.dispatch_top(Event::Action(action));
                let is_wrong = shown.as_ref().is_some_and(|(note, _)| note.kind == NoteKind::Wrong);
                // An error of the screen that was left would seem to be one of the screen below it.
                if is_wrong && self.screens.len() < depth && self.note == shown {
                    self.note = None;
                }
                effects
            }
        }
    }

    /// A click on a key in the footer acts like that key; all other mouse events go to the screen.
    fn mouse(&mut self, mouse: MouseEvent) -> Vec<Effect> {
        if let Some(dialog) = &mut self.dialog {
            let outcome = dialog.mouse(mouse, self.size);
            return self.answered(outcome);
        }
        if let Some(palette) = &mut self.palette {
            let outcome = palette.mouse(mouse, self.size);
            return self.picked(outcome);
        }
        let clicked = mouse.kind == MouseEventKind::Down(MouseButton::Left);
        let at = Position::new(mouse.column, mouse.row);
        let hit = self.footer_hit(at).filter(|_| clicked);
        if clicked {
            self.forget_key_note();
        }
        match hit {
            Some(action) => self.act(action),
            None => self.dispatch_top(Event::Mouse(mouse)),
        }
    }

    fn picked(&mut self, outcome: palette::Outcome) -> Vec<Effect> {
        match outcome {
            palette::Outcome::Open => Vec::new(),
            palette::Outcome::Search(search) => vec![search],
            palette::Outcome::Closed => {
                self.palette = None;
                let mut effects = Vec::new();
                self.resume_deferred(&mut effects);
                effects
            }
            palette::Outcome::Chosen(target) => {
                self.palette = None;
                match target {
                    Target::Command(action) => self.act(action),
                    Target::Hit(SearchHit { plan, task: Some(task), .. }) => {
                        self.open(Destination::Task(plan, task))
                    }
                    Target::Hit(SearchHit { plan, is_draft: true, .. }) => {
                        self.open(Destination::Editor(plan))
                    }
                    Target::Hit(SearchHit { plan, .. }) => self.open(Destination::Run(plan, Intent::Watch)),
                }
            }
        }
    }

    fn answered(&mut self, outcome: Outcome) -> Vec<Effect> {
        match outcome {
            Outcome::Open => Vec::new(),
            Outcome::Closed => {
                self.dialog = None;
                let mut effects = self.dispatch_top(Event::DialogClosed);
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
                let text = "quits when its runs have ended".to_owned();
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

/// Handles a message: changes the state, and returns effects for the event loop.
pub fn update(app: &mut App, message: Message) -> Vec<Effect> {
    let mut effects = Vec::new();
    for effect in handle(app, message) {
        match effect {
            Effect::Execute(plan) => effects.extend(app.open(Destination::Run(plan, Intent::Execute))),
            other @ (Effect::Quit
            | Effect::Suspend
            | Effect::LoadPlanPage { .. }
            | Effect::LoadPlan(_)
            | Effect::LoadText(_)
            | Effect::Search(_)
            | Effect::Save { .. }
            | Effect::CreatePlan { .. }
            | Effect::EditText { .. }
            | Effect::Run(_)
            | Effect::History(_)) => effects.push(other),
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
        Message::Paste(text) => match (&mut app.dialog, &mut app.palette) {
            (Some(dialog), _) => {
                dialog.paste(&text);
                Vec::new()
            }
            (None, Some(palette)) => {
                let outcome = palette.paste(&text);
                app.picked(outcome)
            }
            (None, None) => app.dispatch_top(Event::Paste(&text)),
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
        Message::Reply(Reply::Found(ticket, hits)) => {
            if let Some(palette) = &mut app.palette {
                palette.found(ticket, &hits);
            }
            Vec::new()
        }
        Message::Reply(reply) => {
            let mut effects = match &reply {
                Reply::Run(reply) => app.track_run(reply),
                Reply::PlanPage { .. }
                | Reply::Plan { .. }
                | Reply::Text(..)
                | Reply::Found(..)
                | Reply::Saved { .. }
                | Reply::Created { .. }
                | Reply::Edited { .. }
                | Reply::Note(_)
                | Reply::History(_) => Vec::new(),
            };
            effects.extend(app.broadcast(Event::Reply(&reply)));
            effects
        }
        Message::Written { store, plans } => app.broadcast(Event::Written(store, &plans)),
    }
}
