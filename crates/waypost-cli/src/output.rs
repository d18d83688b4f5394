//! Output: data to stdout, messages to stderr, colour only on terminals. Knows nothing of plans.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use waypost_text::{escape_json, sanitize, sanitize_line, terminal_text, truncate};

use crate::error::{Failure, Outcome};
use crate::runner::typeable;
use crate::style::Look;

/// The width that is assumed without a terminal.
const COLUMNS_DEFAULT: usize = 120;
/// The minimum width of the layout.
const COLUMNS_MIN: usize = 40;

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    // If the output is a terminal that knows colours and `NO_COLOR` is not set.
    #[default]
    Auto,
    Always,
    Never,
}

/// The output of a command. Data is buffered and written at the end.
#[derive(Debug)]
pub struct Output {
    /// Whether the output is JSON for programs.
    pub json: bool,
    /// The width of the layout.
    pub columns: usize,
    color: bool,
    pub color_talk: bool,
    data: String,
    notes: Vec<String>,
}

impl Output {
    pub fn new(json: bool, color: Color) -> Self {
        let wanted = |terminal: bool| match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let is_empty = |name: &str| std::env::var_os(name).is_none_or(|value| value.is_empty());
                terminal && is_empty("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
            }
        };
        Self {
            json,
            columns: columns().max(COLUMNS_MIN),
            color: wanted(io::stdout().is_terminal()),
            color_talk: wanted(io::stderr().is_terminal()),
            data: String::new(),
            notes: Vec::new(),
        }
    }

    /// Whether a person sees stdout as it is, in the width of a terminal.
    pub fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Whether stdout may have colours.
    pub fn has_colour(&self) -> bool {
        self.color
    }

    /// Adds a line of data. It is sanitized for terminals, because its text may come from anyone.
    pub fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref().trim_end_matches(' ');
        // Programs get every character of a text, unsafe ones as escapes.
        let line = if self.json { escape_json(line) } else { with_colours(line, self.color) };
        self.data.push_str(&line);
        self.data.push('\n');
    }

    /// Adds data verbatim. On a terminal, control sequences of a plan or a worker are removed.
    pub fn text(&mut self, text: &str) {
        if io::stdout().is_terminal() {
            self.data.push_str(&without_control_sequences(text));
        } else {
            self.data.push_str(text);
        }
    }

    /// Adds the output of a program. Its colours stay where there are any; every other control sequence is removed, also for
    /// a pipe, at whose end is often a terminal.
    pub fn program_output(&mut self, text: &str) {
        self.data.push_str(&terminal_text(text, self.color));
    }

    /// Adds data verbatim, and ends its last line.
    pub fn whole_lines(&mut self, text: &str) {
        self.text(text);
        if !text.ends_with('\n') {
            self.data.push('\n');
        }
    }

    /// Adds one JSON value, for programs, with the notes made so far.
    pub fn value(&mut self, value: &impl Serialize) -> Outcome {
        let failed = |error: serde_json::Error| Failure::failed(error.to_string(), "");
        let mut value = serde_json::to_value(value).map_err(failed)?;
        if let Some(fields) = value.as_object_mut().filter(|_| !self.notes.is_empty()) {
            fields.insert("notes".to_owned(), std::mem::take(&mut self.notes).into());
        }
        // People see it indented; programs, and models that pay for every space, get one line.
        let text = if io::stdout().is_terminal() {
            serde_json::to_string_pretty(&value)
        } else {
            serde_json::to_string(&value)
        };
        self.data.push_str(&escape_json(&text.map_err(failed)?));
        self.data.push('\n');
        Ok(())
    }

    /// Prints a message for people to stderr. Omitted with JSON output.
    pub fn say(&self, words: impl AsRef<str>) {
        if !self.json {
            self.talk(&sanitize(&typeable(words.as_ref())));
        }
    }

    /// Reports a note to people, or to programs in the JSON output, because it may matter to them. Its commands in
    /// backquotes can be typed here.
    pub fn note(&mut self, words: impl AsRef<str>) {
        self.note_fact(typeable(words.as_ref()));
    }

    /// Reports a note that quotes the text of a plan or a file: no command in it is one to be typed here.
    pub fn note_fact(&mut self, words: impl AsRef<str>) {
        if self.json {
            self.notes.push(words.as_ref().to_owned());
        } else {
            self.write_note(words.as_ref());
        }
    }

    /// Reports a note to stderr at once, for programs as a JSON object: for commands whose output is not one JSON value.
    pub fn note_now(&self, words: impl AsRef<str>) {
        self.write_note(&typeable(words.as_ref()));
    }

    fn write_note(&self, words: &str) {
        if self.json {
            return self.talk(&json_line(&serde_json::json!({ "note": sanitize(words) })));
        }
        let note = painted("note:", Look::Cyan, self.color_talk);
        self.talk(&format!("{note} {}", sanitize(words)));
    }

    /// Prints the failure that ends the process.
    pub fn failure(&self, failure: &Failure) {
        if self.json {
            return self.talk(&json_line(&failure.to_json(&self.notes)));
        }
        let error = painted("error:", Look::Red, self.color_talk);
        self.talk(&format!("{error} {}", sanitize(&failure.message)));
        for detail in &failure.details {
            self.talk(&sanitize(detail));
        }
        if !failure.hint.is_empty() {
            let hint = painted("hint:", Look::Cyan, self.color_talk);
            self.talk(&format!("{hint} {}", sanitize(&typeable(&failure.hint))));
        }
    }

    /// The output for messages while an operation runs.
    pub fn live(&self) -> LiveOutput {
        let terminal = io::stderr().is_terminal();
        LiveOutput { silent: self.json, terminal, color: self.color_talk, columns: self.columns }
    }

    fn talk(&self, line: &str) {
        // If stderr is gone, there is nowhere to report it.
        let _gone = writeln!(io::stderr().lock(), "{line}");
    }

    /// Applies a look, if colour is on.
    pub fn paint(&self, text: &str, look: Look) -> String {
        painted(text, look, self.color)
    }

    /// Writes the buffered data, before something else takes over the screen.
    pub fn flush(&mut self) -> Outcome {
        self.finish()?;
        self.data.clear();
        Ok(())
    }

    /// Writes all data. A reader that closed the pipe is not a failure: it has read what it wanted.
    pub fn finish(&mut self) -> Outcome {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(self.data.as_bytes()).and_then(|()| stdout.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(Failure::unwritten(&error)),
        }
    }
}

/// The width of the verb in a live message.
const VERB_COLUMNS: usize = 7;

/// Messages while an operation runs, from any thread: permanent lines, and on a terminal one status line that is redrawn.
#[derive(Clone, Debug)]
pub struct LiveOutput {
    silent: bool,
    terminal: bool,
    color: bool,
    columns: usize,
}

impl LiveOutput {
    /// Prints a permanent line.
    pub fn line(&self, look: Look, verb: &str, words: &str) {
        if self.silent {
            return;
        }
        let verb = format!("{verb:>VERB_COLUMNS$}");
        let verb = painted(&verb, look, self.color);
        let clear = if self.terminal { "\r\u{1b}[2K" } else { "" };
        // If stderr is gone, there is nowhere to report it.
        let _gone = writeln!(io::stderr().lock(), "{clear}{verb}  {}", sanitize_line(words));
    }

    /// Redraws the status line, which stays until it is overwritten. Only a terminal has one.
    pub fn status(&self, words: &str) {
        if self.silent || !self.terminal {
            return;
        }
        let words = truncate(words, self.columns.saturating_sub(1));
        let mut stderr = io::stderr().lock();
        let _gone = write!(stderr, "\r\u{1b}[2K{words}").and_then(|()| stderr.flush());
    }
}

/// Returns a value as one line of JSON that is inert in a terminal.
pub fn json_line(value: &impl Serialize) -> String {
    escape_json(&serde_json::to_string(value).unwrap_or_default()).into_owned()
}

/// Wraps a text in the escape sequences of a look, if colour is on.
pub fn painted(text: &str, look: Look, color: bool) -> String {
    if !color || look == Look::Plain || text.is_empty() {
        return text.to_owned();
    }
    format!("\u{1b}[{}m{text}\u{1b}[0m", look.code())
}

/// The width of the terminal. `COLUMNS` takes precedence.
fn columns() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let seen = || {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        (size.ws_col > 0).then_some(usize::from(size.ws_col))
    };
    said.or_else(seen).unwrap_or(COLUMNS_DEFAULT)
}

/// Removes escape sequences and characters that reorder text.
fn without_control_sequences(text: &str) -> String {
    let shown = anstream::adapter::strip_str(text).to_string();
    sanitize(&shown).into_owned()
}

/// Removes all escape sequences except those of our own colours.
fn with_colours(line: &str, has_colour: bool) -> Cow<'_, str> {
    if !has_colour || !line.contains('\u{1b}') {
        return sanitize(line);
    }
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\u{1b}') {
        let (before, sequence) = rest.split_at(at);
        shown.push_str(&sanitize(before));
        let ours = Look::SEQUENCES.iter().find(|ours| sequence.starts_with(**ours));
        shown.push_str(ours.copied().unwrap_or("\u{fffd}"));
        rest = &sequence[ours.map_or(1, |ours| ours.len())..];
    }
    shown.push_str(&sanitize(rest));
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_as_it_stands_steers_no_terminal() {
        let hostile = "\u{1b}[2J\u{1b}]8;;http://evil\u{7}link\u{1b}]8;;\u{7} \u{1b}[32mgreen\u{1b}[0m\r\u{202e}end\n\tnext\n";
        assert_eq!(without_control_sequences(hostile), "link green\n�end\n\tnext\n");
    }

    #[test]
    fn a_line_has_our_colours_and_nothing_else_that_a_terminal_obeys() {
        let line = "\u{1b}[31mfailed\u{1b}[0m \u{1b}[2J\u{1b}[5;1H\u{9b}1A\u{202e}x\ty";
        assert_eq!(with_colours(line, true), "\u{1b}[31mfailed\u{1b}[0m �[2J�[5;1H�1A�x\ty");
        assert_eq!(with_colours(line, false), "�[31mfailed�[0m �[2J�[5;1H�1A�x\ty");
        for look in [Look::Bold, Look::Dim, Look::Green, Look::Red, Look::Yellow, Look::Magenta, Look::Cyan] {
            let painted = format!("\u{1b}[{}mx\u{1b}[0m", look.code());
            assert_eq!(with_colours(&painted, true), painted, "{look:?}");
        }
    }
}
