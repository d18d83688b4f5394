//! The text that every front end shows, by examples.

mod layout;
mod log_line;
mod quantity;
mod sanitize;
mod sgr;
mod status;
mod truncate;
