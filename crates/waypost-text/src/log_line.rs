//! What a line of program output is for somebody who looks for the cause of a failure: an error, a warning, or neither. The
//! dashboard follows the same rules (`web/src/lib/log.ts`). Knows no colours and no files.

/// What a line of a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLineKind {
    /// It reports an error.
    Error,
    /// It reports a warning.
    Warning,
    /// Anything else.
    Plain,
}

/// Words that report an error where they stand alone.
const ERROR_WORDS: [&str; 8] =
    ["error", "fatal", "panicked", "panic", "traceback", "exception", "fail", "failed"];
/// Nouns that report success with a zero or a `no` before them.
const COUNTED_WORDS: [&str; 4] = ["error", "errors", "failed", "failures"];
/// Words that report a warning.
const WARNING_WORDS: [&str; 2] = ["warn", "warning"];
/// The length of a compiler's error number: `E0308`.
const ERROR_NUMBER_BYTES: usize = 5;

/// By these, a program talks to its worker: they are shown elsewhere, as progress, question and output.
const PROTOCOL: [&str; 3] = ["waypost:progress", "waypost:question", "waypost:output"];

impl LogLineKind {
    /// Returns the kind of a line without escape sequences.
    pub fn of(line: &str) -> Self {
        let line = line.to_lowercase();
        let words: Vec<(usize, &str)> = split_words(&line).collect();
        let is_counted = |at: usize| {
            at > 0 && matches!(words[at - 1].1, "0" | "no") && COUNTED_WORDS.contains(&words[at].1)
        };
        if (0..words.len()).any(is_counted) {
            return Self::warning(&words);
        }
        let reports = |&(at, word): &(usize, &str)| {
            let after = &line[at + word.len()..];
            (ERROR_WORDS.contains(&word) || is_error_number(word)) && !is_zero(after)
        };
        let asserts = || {
            let at = words.iter().position(|(_, word)| *word == "assertion");
            at.is_some_and(|at| words[at..].iter().any(|(_, word)| *word == "failed"))
        };
        if words.iter().any(reports) || asserts() { Self::Error } else { Self::warning(&words) }
    }

    fn warning(words: &[(usize, &str)]) -> Self {
        let warns = words.iter().any(|(_, word)| WARNING_WORDS.contains(word));
        if warns { Self::Warning } else { Self::Plain }
    }
}

/// Whether a line belongs to the protocol between a program and its worker.
pub fn is_protocol_line(line: &str) -> bool {
    PROTOCOL.iter().any(|word| {
        line.strip_prefix(word)
            .is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
    })
}

/// The words of a line, each with its place. A hyphen joins: `error-chain` is one word.
fn split_words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-');
    let mut end = 0;
    let pieces = line.split_inclusive(move |character: char| !is_part(character));
    let words = pieces.map(move |piece| {
        let at = end;
        end += piece.len();
        (at, piece.trim_end_matches(|character: char| !is_part(character)))
    });
    words.filter(|(_, word)| !word.is_empty())
}

fn is_error_number(word: &str) -> bool {
    word.len() == ERROR_NUMBER_BYTES
        && word.strip_prefix('e').is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Whether a count of nothing follows: `errors: 0`, `failed=0`.
fn is_zero(after: &str) -> bool {
    let value = after.trim_start_matches(' ').strip_prefix([':', '=']).map(str::trim_start);
    value.is_some_and(|value| {
        value.strip_prefix('0').is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
    })
}
