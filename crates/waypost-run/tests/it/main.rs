//! Plans that are run: the configuration, the scheduler as data in and data out, simulations with faults, real processes.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod agents;
#[path = "../../../waypost-core/tests/it/committed.rs"]
mod committed;
mod containers;
mod direct_writes;
mod evidence;
mod faulty_store;
mod git_worktrees;
mod http;
mod kubernetes;
mod machines;
mod own_plan;
mod processes;
mod scheduler;
mod server;
mod several;
mod shapes;
mod simulation;
mod slow_store;
mod strangers;
mod webhooks;
mod world;
#[expect(clippy::disallowed_methods, reason = "a store in front of another passes writes on")]
#[path = "../../../waypost-store/tests/it/wrapped.rs"]
mod wrapped;
