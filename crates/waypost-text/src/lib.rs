//! Text for every front end: the sanitizer, truncation and wrapping by columns, plurals, ages and durations, and the
//! table of status signs. Does not know plans, the clock or the terminal; depends on no other Waypost crate.
//!
//! Models and strangers write plans. [`sanitize`], [`sanitize_line`] and [`one_line`] are the only functions that
//! decide which of their characters reach a terminal, a log, a browser or a model.

#![warn(clippy::wildcard_enum_match_arm)]

mod layout;
mod log_line;
mod parse_error;
mod quantity;
mod quote;
mod redact;
mod sanitize;
mod sgr;
mod status;
mod truncate;

pub use layout::{fit, fit_right, pad, skip_columns, wrap};
pub use log_line::{LogLineKind, is_protocol_line};
pub use parse_error::plain_parse_error;
pub use quantity::{age, ago, byte_size, count, duration, from_hex, hex};
pub use quote::{fence, quote, quote_unless_word, shell_word};
pub use redact::{Redactor, secret_in};
pub use sanitize::{
    REPLACEMENT, escape_json, has_hidden, is_unsafe_char, one_line, reveal, reveal_lines, sanitize,
    sanitize_line, unsafe_typescript,
};
pub use sgr::{Hue, SgrReader, StyledText, TextStyle, terminal_text};
pub use status::{PlanGroup, Role, StatusSign, status_typescript};
pub use truncate::{
    ELLIPSIS, excerpt, excerpt_bytes, head_bytes, tail_bytes, truncate, truncate_bytes, width,
};
