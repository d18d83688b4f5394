//! The tests of the core, in one binary.

#![expect(clippy::unwrap_used, reason = "a test that finds nothing where something must be has failed")]

mod behaviour;
mod committed;
mod consequences;
mod evidence;
mod golden;
mod kit;
mod oracle;
mod questions;
mod simulation;
mod soundness;
mod states;
mod validation;
mod visited_specs;
mod work_digest;
