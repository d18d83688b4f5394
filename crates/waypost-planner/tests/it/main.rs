//! The tests of the planner, in one binary.

#![expect(clippy::unwrap_used, reason = "a test that finds nothing where something must be has failed")]
#![expect(clippy::print_stderr, reason = "tests say what they could not look at")]

mod anything;
mod breaking_down;
mod digesting;
mod extracting;
mod generating;
mod kit;
mod observed;
mod prompting;
mod refining;
mod spending;
mod texts;
