//! Plans that are run: the configuration, the scheduler as data in and data out, simulations with faults, real processes.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod config;
mod processes;
mod scheduler;
mod several;
mod simulation;
mod world;
