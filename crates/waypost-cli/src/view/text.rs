//! Text helpers of the command line: those that all front ends share, and the current time. Knows nothing of plans.

use std::time::{SystemTime, UNIX_EPOCH};

use waypost_core::Timestamp;
pub use waypost_text::{
    ago, byte_size, count, duration, excerpt, one_line, pad, reveal_lines, sanitize, sanitize_line, truncate,
    width, wrap,
};

/// The current time, for ages and for what a task waits for. Writes carry the store's own time.
#[expect(
    clippy::disallowed_methods,
    reason = "a command that looks needs no store to say how long ago something was"
)]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// The age of a timestamp, for a column; `-` without one.
pub fn age(at: Option<Timestamp>, now: Timestamp) -> String {
    at.map_or_else(|| "-".to_owned(), |at| waypost_text::age(now.since(at)))
}

/// The first `max` names, and the number of the others.
pub fn names(names: impl ExactSizeIterator<Item: ToString>, max: usize) -> String {
    let more = names.len().checked_sub(max).filter(|&more| more > 0).map(|more| format!("+{more}"));
    let shown: Vec<String> = names.take(max).map(|name| name.to_string()).chain(more).collect();
    shown.join(", ")
}
