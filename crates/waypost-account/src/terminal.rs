//! The terminal of the person who calls. It is opened by itself, not through stdin or stdout, which whoever starts the
//! program can replace.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp, tcgetwinsize};

/// How long a question waits for its answer.
const ANSWER_SECONDS_MAX: u64 = 600;
/// The size that is assumed for a terminal that does not report one.
const ROWS_DEFAULT: usize = 24;
const COLUMNS_DEFAULT: usize = 80;

/// A terminal whose foreground process we are.
#[derive(Debug)]
pub struct Terminal {
    file: File,
    rows: usize,
    columns: usize,
    /// What a test types.
    #[cfg(feature = "injected")]
    typed: Option<String>,
}

impl Terminal {
    /// Opens the controlling terminal. Fails, with a clause that says why, if there is none or if we run in the background
    /// of it.
    pub fn open() -> Result<Self, &'static str> {
        const NONE: &str = "there is none";
        #[cfg(feature = "injected")]
        if let Some(typed) = crate::injected::terminal() {
            let file = OpenOptions::new().write(true).open("/dev/null").map_err(|_| NONE)?;
            let typed = (!typed.is_empty()).then_some(typed).ok_or(NONE)?;
            return Ok(Self { file, rows: usize::MAX, columns: COLUMNS_DEFAULT, typed: Some(typed) });
        }
        let file = OpenOptions::new().read(true).write(true).open("/dev/tty").map_err(|_| NONE)?;
        if tcgetpgrp(&file).map_err(|_| NONE)? != getpgrp() {
            return Err("this runs in the background of one");
        }
        let size = tcgetwinsize(&file).ok();
        let given = |found: Option<u16>, default: usize| {
            found.map(usize::from).filter(|&found| found > 0).unwrap_or(default)
        };
        let rows = given(size.map(|size| size.ws_row), ROWS_DEFAULT);
        let columns = given(size.map(|size| size.ws_col), COLUMNS_DEFAULT);
        Ok(Self {
            file,
            rows,
            columns,
            #[cfg(feature = "injected")]
            typed: None,
        })
    }

    /// The number of rows on the screen.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of rows that a line takes.
    pub fn rows_of(&self, line: &str) -> usize {
        waypost_text::width(line).div_ceil(self.columns).max(1)
    }

    pub fn write_line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.file, "{line}")
    }

    /// Asks a question and returns the line that is typed in answer, which is empty at the end of the input (Ctrl-D); what was
    /// typed before the question does not count.
    pub fn ask(&mut self, question: &str) -> io::Result<String> {
        #[cfg(feature = "injected")]
        if let Some(typed) = &self.typed {
            return Ok(typed.clone());
        }
        write!(self.file, "{question}")?;
        self.file.flush()?;
        tcflush(&self.file, QueueSelector::IFlush)?;
        let limit = Timespec::try_from(Duration::from_secs(ANSWER_SECONDS_MAX)).ok();
        let mut answer = String::new();
        let asked = match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], limit.as_ref()) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::TimedOut, "nobody answered within ten minutes")),
            Ok(_) => BufReader::new(&self.file).read_line(&mut answer).map(drop),
            Err(interrupted) => Err(interrupted.into()),
        };
        if !answer.ends_with('\n') {
            // The cursor still stands behind the question.
            writeln!(self.file)?;
        }
        asked.map(|()| answer)
    }
}
