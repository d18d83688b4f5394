//! Keys in, screen text out.
