//! Questions to the person at the terminal. Ctrl-C at a question ends the command like any other failure, so that it can
//! say so and clean up. What an answer means is decided by the caller.

use std::io::{self, ErrorKind, IsTerminal, Write};

use rustix::event::{PollFd, PollFlags, poll};
use waypost_account::Terminal;
use waypost_text::sanitize;

use crate::error::{Exit, Failure, Outcome};
use crate::signals::while_asking;

/// Whether a person can be prompted: stdin and stderr are terminals.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Prompts a person, and returns the answer without its newline; `None` at the end of the input (Ctrl-D).
pub fn ask(question: &str) -> Outcome<Option<String>> {
    let asked = while_asking(|| {
        let mut stderr = io::stderr().lock();
        write!(stderr, "{} ", sanitize(question))?;
        stderr.flush()?;
        let mut answer = String::new();
        // Only this wait is interrupted: reading is begun again by itself.
        let read = poll(&mut [PollFd::new(&io::stdin(), PollFlags::IN)], None)
            .map_err(io::Error::from)
            .and_then(|_ready| io::stdin().read_line(&mut answer));
        if !answer.ends_with('\n') {
            // The cursor still stands behind the question.
            writeln!(stderr)?;
        }
        read.map(|bytes| (bytes > 0).then_some(answer))
    });
    let answer = asked.map_err(unanswered)?;
    Ok(answer.map(|answer| answer.trim_end_matches(['\n', '\r']).to_owned()))
}

/// Prompts a person for confirmation. Any other answer than yes is no; without one the command fails.
pub fn confirm(question: &str) -> Outcome<bool> {
    let answer = ask(question)?.ok_or_else(|| Failure::failed(UNANSWERED, ""))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes" | "Yes"))
}

/// Asks at the terminal of the person, whatever stdin is, and returns the line that is typed; it is empty at Ctrl-D.
pub fn ask_at(terminal: &mut Terminal, question: &str) -> Outcome<String> {
    while_asking(|| terminal.ask(question)).map_err(unanswered)
}

const UNANSWERED: &str = "the question was not answered";

fn unanswered(error: io::Error) -> Failure {
    match error.kind() == ErrorKind::Interrupted {
        true => Failure::new(Exit::Interrupted, UNANSWERED, ""),
        false => unusable(error),
    }
}

/// The failure of a terminal.
pub fn unusable(error: io::Error) -> Failure {
    Failure::failed(format!("the terminal cannot be used: {error}"), "")
}
