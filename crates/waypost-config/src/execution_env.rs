//! What attempts and model clients find around them: folders, environment variables, and the secrets that the
//! configuration names. The only place here that reads a file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::executor::Secret;

/// What the work of tasks finds around it.
#[derive(Clone, Debug)]
pub struct ExecutionEnv {
    /// The folder that no work starts outside of.
    pub workspace: PathBuf,
    /// The folder that logs of attempts are kept in.
    pub logs: PathBuf,
    /// Our own environment, of which the configuration lets some through.
    pub variables: BTreeMap<String, String>,
    /// The name of this run, by which its processes can be found after its death.
    pub worker: String,
}

impl ExecutionEnv {
    /// The value of a secret, read where the configuration says.
    pub fn secret(&self, name: &str, secret: &Secret) -> Result<String, String> {
        let value = match secret {
            Secret::Variable(variable) => self.variables.get(variable).cloned(),
            Secret::File(file) => std::fs::read_to_string(self.workspace.join(file)).ok(),
        };
        let value = value.ok_or_else(|| format!("the secret {name} is not where the configuration says"))?;
        Ok(value.strip_suffix('\n').unwrap_or(&value).to_owned())
    }
}
