//! Keys in, screen text out.

mod runs;
