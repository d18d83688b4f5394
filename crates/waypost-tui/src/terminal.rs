//! The terminal: raw mode and the alternate screen. Restored at the end, on an error, on a panic, on suspend and while
//! another program uses it. Knows no plans.

mod input;
mod signals;

use std::io::{self, IsTerminal, Stdout, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::Show;
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{execute, queue};
use ratatui::backend::CrosstermBackend;
use ratatui::{Frame, Terminal};
use rustix::process::{Signal, getppid, getsid, kill_current_process_group};

pub(crate) use input::InputReader;
pub(crate) use signals::{SignalRequest, Signals, TerminalOwner};

/// Why the terminal cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Standard input or standard output is not a terminal.
    #[error("there is no terminal: standard input and output must both be one")]
    NoTerminal,
    /// The terminal can only print lines.
    #[error("this terminal (TERM=dumb) can only print lines")]
    Dumb,
}

impl Unfit {
    /// What to do next.
    pub fn hint(self) -> &'static str {
        match self {
            Self::NoTerminal => {
                "start it in a terminal, without pipes; scripts use `waypost list`, `show`, `edit` and `run`"
            }
            Self::Dumb => {
                "set TERM to what your terminal is, for example TERM=xterm-256color; or use `waypost list`, `show`, `edit` and `run`"
            }
        }
    }
}

/// Whether a full screen can be drawn. `term` is the value of `TERM`.
pub fn fits(term: Option<&str>) -> Result<(), Unfit> {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(Unfit::NoTerminal);
    }
    match term {
        Some("dumb") => Err(Unfit::Dumb),
        Some(_) | None => Ok(()),
    }
}

/// The terminal while Waypost uses it.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    mouse: bool,
    state: Arc<State>,
}

/// State shared with the panic hook.
#[derive(Debug, Default)]
struct State {
    taken: AtomicBool,
    panicked: AtomicBool,
}

impl State {
    /// Restores the terminal, once.
    fn give_back(&self) {
        if self.taken.swap(false, Ordering::AcqRel) {
            // An error cannot be reported: the terminal is what failed.
            let _gone = execute!(
                io::stdout(),
                DisableMouseCapture,
                DisableBracketedPaste,
                LeaveAlternateScreen,
                Show
            );
            let _gone = disable_raw_mode();
        }
    }
}

impl Screen {
    /// Takes over the terminal. A panic restores it before printing its message.
    pub(crate) fn take(mouse: bool) -> io::Result<Self> {
        let state = Arc::<State>::default();
        let (before, hooked) = (std::panic::take_hook(), Arc::clone(&state));
        std::panic::set_hook(Box::new(move |panic| {
            hooked.panicked.store(true, Ordering::Release);
            hooked.give_back();
            before(panic);
        }));
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        let mut screen = Self { terminal, mouse, state };
        screen.enter()?;
        Ok(screen)
    }

    fn enter(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        self.state.taken.store(true, Ordering::Release);
        let mut stdout = io::stdout();
        queue!(stdout, EnterAlternateScreen, EnableBracketedPaste)?;
        if self.mouse {
            queue!(stdout, EnableMouseCapture)?;
        }
        stdout.flush()?;
        self.terminal.clear()
    }

    /// Draws the differences from the previous frame.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw)?;
        Ok(())
    }

    /// Whether any thread panicked. If so, the terminal has been restored already.
    pub(crate) fn has_panicked(&self) -> bool {
        self.state.panicked.load(Ordering::Acquire)
    }

    /// Restores the terminal while `work` runs.
    pub(crate) fn outside<R>(&mut self, work: impl FnOnce() -> R) -> io::Result<R> {
        self.state.give_back();
        let result = work();
        self.enter()?;
        Ok(result)
    }

    /// Whether there is a shell that can continue the process.
    pub(crate) fn can_suspend() -> bool {
        let own = getsid(None);
        getppid().is_some_and(|parent| getsid(Some(parent)).is_ok_and(|session| own == Ok(session)))
    }

    /// Stops the process group, like Ctrl-Z, until the shell continues it. A parent in the same job stops as well;
    /// otherwise the shell would wait for it.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        self.outside(|| kill_current_process_group(Signal::STOP))?.map_err(Into::into)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.state.give_back();
    }
}
