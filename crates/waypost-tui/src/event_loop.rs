//! The event loop: waits for a message, calls [`update`], starts the effects, draws once. Makes no decisions.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseEventKind};
use waypost_core::Timestamp;
use waypost_service::Caller;

use crate::app::{self, App, Screen as Page, update};
use crate::effects::{EffectRunner, Workspace, now};
use crate::messages::{Effect, Message, Purpose, Reply};
use crate::note::{ErrorMessage, Note, NoteKind};
use crate::plan::PlanKey;
use crate::run_view::Intent;
use crate::screen::{Destination, Settings};
use crate::terminal::{InputReader, Screen, SignalRequest, Signals, TerminalOwner};

/// Maximum number of messages handled before the screen is drawn again.
const MESSAGES_PER_DRAWING: usize = 512;
/// The interval of ticks while the screen shows something that changes with time.
const TICK: Duration = Duration::from_secs(1);

/// The first screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    PlanList,
    /// On top of the list of plans.
    Editor(PlanKey),
    Run(PlanKey, Intent),
}

/// Opens a text in another program; the arguments are the text and a file name extension. `None` if the text was not changed.
pub type EditText = Box<dyn FnMut(&str, &str) -> Result<Option<String>, ErrorMessage>>;

/// Saves the text of a plan with unsaved edits when the program ends other than by quitting.
pub type SaveRecovery = Box<dyn FnMut(&PlanKey, &str)>;

/// Everything the program depends on.
pub struct Wiring {
    /// The stores, in the order of [`Settings::stores`].
    pub workspaces: Vec<Workspace>,
    /// The user at the terminal.
    pub by: Caller,
    pub edit: EditText,
    pub keep: SaveRecovery,
    /// Whether to capture the mouse.
    pub mouse: bool,
}

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Left,
    /// By a signal, or because the terminal disappeared.
    Terminated,
}

/// Takes over the terminal until the user quits. Then stops the runs of this process, which can be continued later.
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
    let runner = EffectRunner::new(workspaces, by, send)?;
    let size = crossterm::terminal::size()?;
    let (app, effects) = App::new(settings, Page::PlanList(Box::default()), clock.now(), size);
    let shown_at = Instant::now();
    let mut event_loop =
        EventLoop { app, screen, input, signals, runner, clock, edit, keep, incoming, shown_at };
    let ended = event_loop.begin(start, effects);
    event_loop.end(matches!(ended, Ok(Ended::Left)));
    ended
}

enum Incoming {
    Happened(Message),
    /// Keys, clicks and pastes, with the time when they were read.
    Input(Instant, Message),
    Signal(SignalRequest),
    /// The terminal disappeared.
    Gone,
}

/// Sends terminal input to the event loop. Returns false when the event loop has ended.
fn forward_input(sender: &Sender<Incoming>, event: Option<Event>) -> bool {
    let message = match event {
        None => return sender.send(Incoming::Gone).is_ok(),
        Some(Event::Key(key)) => Message::Key(key),
        // No screen reacts to mouse movement.
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
    sender.send(Incoming::Input(Instant::now(), message)).is_ok()
}

/// The store's time, extrapolated from when it was last read.
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
    runner: EffectRunner,
    clock: Clock,
    edit: EditText,
    keep: SaveRecovery,
    incoming: Receiver<Incoming>,
    /// When more of a text that has to be read before a decision was last drawn.
    shown_at: Instant,
}

/// `Some` when the program ends.
type LoopStep = io::Result<Option<Ended>>;

impl EventLoop {
    fn begin(&mut self, start: Start, effects: Vec<Effect>) -> io::Result<Ended> {
        if let Some(ended) = self.act(effects)? {
            return Ok(ended);
        }
        let effects = match start {
            Start::PlanList => Vec::new(),
            Start::Editor(plan) => self.app.open(Destination::Editor(plan)),
            Start::Run(plan, intent) => self.app.open(Destination::Run(plan, intent)),
        };
        if let Some(ended) = self.act(effects)? {
            return Ok(ended);
        }
        loop {
            let shows_more = self.app.note_shown();
            self.screen.draw(|frame| app::render(&self.app, frame))?;
            if shows_more {
                self.shown_at = Instant::now();
            }
            if let Some(ended) = self.step()? {
                return Ok(ended);
            }
            if self.screen.has_panicked() {
                return Err(io::Error::other("a thread of the program panicked"));
            }
        }
    }

    /// Waits for a message, then handles all messages that have arrived, up to a limit.
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
            // Typed ahead: whoever pressed the key had not seen what it would decide.
            Incoming::Input(at, _) if at < self.shown_at && self.app.awaits_decision() => return Ok(None),
            Incoming::Happened(message) | Incoming::Input(_, message) => message,
        };
        self.app.now = self.clock.now();
        let effects = update(&mut self.app, message);
        self.act(effects)
    }

    fn act(&mut self, effects: Vec<Effect>) -> LoopStep {
        for effect in effects {
            let ended = match self.runner.start(effect) {
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

    /// Returns the terminal to the shell until the process is continued.
    fn suspend(&mut self) -> LoopStep {
        if !Screen::can_suspend() {
            let text = "cannot suspend: no shell could continue the program".to_owned();
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
        let reply = Reply::Edited { purpose, text: edited? };
        let mut effects = update(&mut self.app, Message::Reply(reply));
        let resized = self.resized()?;
        effects.extend(update(&mut self.app, resized));
        self.act(effects)
    }

    /// Restores the terminal first, so that the user does not see a screen that no longer reacts, then saves unsaved
    /// edits, then waits for the runs to stop.
    fn end(self, was_left: bool) {
        let Self { app, screen, mut input, signals, runner, mut keep, .. } = self;
        signals.set_owner(TerminalOwner::Finishing(Instant::now()));
        input.close();
        drop(screen);
        if !was_left {
            app.unsaved_texts().iter().for_each(|(plan, text)| keep(plan, text));
        }
        runner.finish();
        signals.set_owner(TerminalOwner::Released);
    }
}
