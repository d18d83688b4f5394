//! How the work of an attempt is done. The plan names an executor; what that is stands in the configuration.

mod agent;
mod attempt;
mod container;
mod http;
mod job;
mod kubernetes;
mod line;
mod log;
mod naming;
mod process;
mod prompt;
mod question;
mod remote;
mod threads;
mod web;
mod workshop;
mod worktree;

pub(crate) use attempt::Handle;
pub(crate) use container::{end_left_behind, engines};
pub(crate) use job::Job;
pub use log::{log_path, log_tail};
pub(crate) use workshop::{Prepared, Workshop};

use std::collections::BTreeMap;
use std::path::PathBuf;

/// What the work of tasks finds around it.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The folder that no work starts outside of.
    pub workspace: PathBuf,
    /// The folder that logs of attempts are kept in.
    pub logs: PathBuf,
    /// Our own environment, of which the configuration lets some through.
    pub variables: BTreeMap<String, String>,
    /// The name of this run, by which its processes can be found after its death.
    pub worker: String,
}
