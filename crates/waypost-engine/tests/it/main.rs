//! Plans that are run: the configuration, the scheduler as data in and data out, simulations with faults, real processes.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod config;
mod faulty_store;
mod processes;
mod scheduler;
mod shapes;
mod simulation;
mod strangers;
mod world;
#[path = "../../../waypost-store/tests/it/wrapped.rs"]
mod wrapped;
