//! The loop between the terminal, the stores and the program: waits until something happens, lets [`update`] think, sees to
//! it that the effects are done, draws once. Decides nothing.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseEventKind};
use waypost_core::{Actor, Timestamp};

use crate::app::{
    App, Effect, ErrorMessage, Message, Note, NoteKind, PlanKey, Purpose, Reply, Screen as Page, Settings,
    update,
};
use crate::editor::Editor;
use crate::effects::{EffectRunner, Workspace, now};
use crate::frame;
use crate::run_view::{Intent, RunView};
use crate::terminal::{InputReader, Screen, SignalRequest, Signals, TerminalOwner};

/// Messages that are heard before anything is drawn again.
const MESSAGES_PER_DRAWING: usize = 512;
/// Between two looks at the clock while one is shown.
const TICK: Duration = Duration::from_secs(1);

/// What is seen first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// All plans.
    PlanList,
    /// One plan in the editor, all plans below it.
    Editor(PlanKey),
    /// The run of one plan, all plans below it.
    Run(PlanKey, Intent),
}

/// Lets a person edit a text in another program: the text, the ending of its file's name. Nothing when it is as it was.
pub type EditText = Box<dyn FnMut(&str, &str) -> Result<Option<String>, ErrorMessage>>;

/// Keeps the text of a plan owner edits nobody could save, as the program is ended from outside.
pub type SaveRecovery = Box<dyn FnMut(&PlanKey, &str)>;

/// What the program works with.
pub struct Wiring {
    /// The stores, in the order of [`Settings::stores`].
    pub workspaces: Vec<Workspace>,
    /// The person at the terminal.
    pub by: Actor,
    /// Another program for texts.
    pub edit: EditText,
    /// A place for texts that would be lost.
    pub keep: SaveRecovery,
    /// Whether the mouse is heard.
    pub mouse: bool,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The person left.
    Left,
    /// A signal, or a terminal that is gone, ended it.
    Terminated,
}

/// Takes the terminal until the person leaves. What this process runs by then is stopped, and can go on later.
pub fn open(settings: Settings, start: Start, wiring: Wiring) -> io::Result<Ended> {
    let Wiring { workspaces, by, edit, keep, mouse } = wiring;
    let (sender, incoming) = channel();
    let message_sender = sender.clone();
    let send = Arc::new(move |message: Message| drop(message_sender.send(Incoming::Happened(message))));
    let clock = Clock::new(workspaces.first().and_then(|workspace| now(&workspace.plans()).ok()));
    let screen = Screen::take(mouse)?;
    let signalled = sender.clone();
    let signals = Signals::start(move |asked| drop(signalled.send(Incoming::Signal(asked))))?;
    let input = InputReader::start(move |event| forward_input(&sender, event))?;
    let hands = EffectRunner::start(workspaces, by, send)?;
    let size = crossterm::terminal::size()?;
    let (app, effects) = App::new(settings, Page::PlanList(Box::default()), clock.now(), size);
    let mut event_loop = EventLoop { app, screen, input, signals, hands, clock, edit, keep, incoming };
    let ended = event_loop.begin(start, effects);
    event_loop.end(matches!(ended, Ok(Ended::Left)));
    ended
}

/// What reaches the loop.
enum Incoming {
    Happened(Message),
    Signal(SignalRequest),
    /// The terminal is gone.
    Gone,
}

/// Tells the loop of what a person did; says whether there is anybody to send.
fn forward_input(sender: &Sender<Incoming>, event: Option<Event>) -> bool {
    let message = match event {
        None => return sender.send(Incoming::Gone).is_ok(),
        Some(Event::Key(key)) => Message::Key(key),
        // Nothing here follows the pointer about.
        Some(Event::Mouse(mouse))
            if matches!(mouse.kind, MouseEventKind::Moved | MouseEventKind::Drag(_)) =>
        {
            return true;
        }
        Some(Event::Mouse(mouse)) => Message::Mouse(mouse),
        Some(Event::Paste(text)) => Message::Paste(text),
        Some(Event::Resize(columns, rows)) => Message::Resize { columns, rows },
        Some(Event::FocusGained | Event::FocusLost) => return true,
    };
    sender.send(Incoming::Happened(message)).is_ok()
}

/// The store's time, from its last word on.
#[derive(Clone, Copy, Debug)]
struct Clock {
    store_time: Timestamp,
    at: Instant,
}

impl Clock {
    fn new(store_time: Option<Timestamp>) -> Self {
        Self { store_time: store_time.unwrap_or(Timestamp::from_micros(0)), at: Instant::now() }
    }

    fn now(&self) -> Timestamp {
        let since = i64::try_from(self.at.elapsed().as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(self.store_time.as_micros().saturating_add(since))
    }
}

struct EventLoop {
    app: App,
    screen: Screen,
    input: InputReader,
    signals: Signals,
    hands: EffectRunner,
    clock: Clock,
    edit: EditText,
    keep: SaveRecovery,
    incoming: Receiver<Incoming>,
}

/// Whether to go on.
type LoopStep = io::Result<Option<Ended>>;

impl EventLoop {
    fn begin(&mut self, start: Start, effects: Vec<Effect>) -> io::Result<Ended> {
        if let Some(ended) = self.act(effects)? {
            return Ok(ended);
        }
        let effects = match start {
            Start::PlanList => Vec::new(),
            Start::Editor(plan) => self.app.open(Page::Editor(Box::new(Editor::new(plan)))),
            Start::Run(plan, intent) => self.app.open(Page::Run(Box::new(RunView::new(plan, intent)))),
        };
        if let Some(ended) = self.act(effects)? {
            return Ok(ended);
        }
        loop {
            self.screen.draw(|frame| frame::draw(&self.app, frame))?;
            if let Some(ended) = self.step()? {
                return Ok(ended);
            }
            if self.screen.has_panicked() {
                return Err(io::Error::other("a part of the program broke down"));
            }
        }
    }

    /// Waits until something happens, and hears all of it.
    fn step(&mut self) -> LoopStep {
        let first = if self.app.needs_tick() {
            self.incoming.recv_timeout(TICK)
        } else {
            self.incoming.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        let mut next = match first {
            Ok(incoming) => Some(incoming),
            Err(RecvTimeoutError::Timeout) => Some(Incoming::Happened(Message::Tick(self.clock.now()))),
            Err(RecvTimeoutError::Disconnected) => return Ok(Some(Ended::Terminated)),
        };
        for _ in 0..MESSAGES_PER_DRAWING {
            let Some(incoming) = next else { break };
            if let Some(ended) = self.take(incoming)? {
                return Ok(Some(ended));
            }
            next = self.incoming.try_recv().ok();
        }
        Ok(None)
    }

    fn take(&mut self, incoming: Incoming) -> LoopStep {
        let message = match incoming {
            Incoming::Gone | Incoming::Signal(SignalRequest::Terminate) => {
                return Ok(Some(Ended::Terminated));
            }
            Incoming::Signal(SignalRequest::Interrupt) => {
                Message::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL))
            }
            Incoming::Signal(SignalRequest::Suspend) => return self.suspend(),
            Incoming::Signal(SignalRequest::Resize) => self.resized()?,
            Incoming::Happened(Message::Tick(store_time)) => {
                self.clock = Clock::new(Some(store_time));
                Message::Tick(store_time)
            }
            Incoming::Happened(message) => message,
        };
        // What is said with a time is said with the time that it is.
        self.app.now = self.clock.now();
        let effects = update(&mut self.app, message);
        self.act(effects)
    }

    /// Sees to it that effects are done.
    fn act(&mut self, effects: Vec<Effect>) -> LoopStep {
        for effect in effects {
            let ended = match self.hands.take(effect) {
                None => None,
                Some(Effect::Suspend) => self.suspend()?,
                Some(Effect::EditText { purpose, text, ending }) => self.edit_text(purpose, &text, ending)?,
                Some(_) => Some(Ended::Left),
            };
            if ended.is_some() {
                return Ok(ended);
            }
        }
        Ok(None)
    }

    fn resized(&self) -> io::Result<Message> {
        let (columns, rows) = crossterm::terminal::size()?;
        Ok(Message::Resize { columns, rows })
    }

    /// Lets the shell have the terminal until it lets us go on.
    fn suspend(&mut self) -> LoopStep {
        if !Screen::can_suspend() {
            let text = "there is no shell here that could let it go on again".to_owned();
            let note = Reply::Note(Note { kind: NoteKind::Warning, text });
            let effects = update(&mut self.app, Message::Reply(note));
            return self.act(effects);
        }
        self.input.close();
        let suspended = self.screen.suspend();
        self.input.open();
        suspended?;
        let resized = self.resized()?;
        let effects = update(&mut self.app, resized);
        self.act(effects)
    }

    fn edit_text(&mut self, purpose: Purpose, text: &str, ending: &str) -> LoopStep {
        self.input.close();
        self.signals.set_owner(TerminalOwner::OtherProgram);
        let edit = &mut self.edit;
        let edited = self.screen.outside(|| edit(text, ending));
        self.signals.set_owner(TerminalOwner::Waypost);
        self.input.open();
        let answer = Reply::Edited { purpose, text: edited? };
        let mut effects = update(&mut self.app, Message::Reply(answer));
        let resized = self.resized()?;
        effects.extend(update(&mut self.app, resized));
        self.act(effects)
    }

    /// Gives the terminal back first: whoever left need not look at a screen that no longer answers. Edits that nobody was
    /// asked about are kept before what runs is waited for.
    fn end(self, was_left: bool) {
        let Self { app, screen, mut input, signals, hands, mut keep, .. } = self;
        signals.set_owner(TerminalOwner::Finishing(Instant::now()));
        input.close();
        drop(screen);
        if !was_left {
            app.unsaved_texts().iter().for_each(|(plan, text)| keep(plan, text));
        }
        hands.finish();
        signals.set_owner(TerminalOwner::Released);
    }
}
