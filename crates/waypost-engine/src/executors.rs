//! How the work of an attempt is done. The plan names an executor; what that is stands in the configuration.

mod agent;
mod attempt;
mod container;
pub(crate) mod http;
mod job;
mod kubernetes;
mod line;
pub(crate) mod log;
mod naming;
mod process;
mod prompt;
mod question;
pub(crate) mod remote;
mod slurm;
mod threads;
pub(crate) mod web;
mod workshop;
mod worktree;

pub(crate) use attempt::Handle;
pub(crate) use container::{end_left_behind, engines};
pub(crate) use job::Job;
pub use log::{log_path, log_tail};
pub use slurm::look as look_at_slurm;
pub(crate) use threads::soon;
pub(crate) use workshop::{Prepared, Workshop};

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::config::Secret;

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

impl Surroundings {
    /// The value of a secret, read where the configuration says.
    pub(crate) fn secret(&self, name: &str, secret: &Secret) -> Result<String, String> {
        let value = match secret {
            Secret::Variable(variable) => self.variables.get(variable).cloned(),
            Secret::File(file) => std::fs::read_to_string(self.workspace.join(file)).ok(),
        };
        let value = value
            .ok_or_else(|| format!("the secret {name} is not to be had where the configuration says"))?;
        Ok(value.strip_suffix('\n').unwrap_or(&value).to_owned())
    }
}
