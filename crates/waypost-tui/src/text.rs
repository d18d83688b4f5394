//! Text of plans on a terminal, as every front end shows it.

pub use waypost_text::{
    ELLIPSIS, age, count, duration, excerpt, fit, fit_right, head_bytes, reveal, reveal_lines, sanitize,
    sanitize_line, skip_columns, truncate, width, wrap,
};
