//! Plans that are run: the configuration, the scheduler as data in and data out, simulations with faults, real processes.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod agents;
mod config;
mod containers;
mod http;
mod kubernetes;
mod processes;
mod scheduler;
mod server;
mod simulation;
mod world;
