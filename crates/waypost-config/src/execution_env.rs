//! The environment of attempts and model clients: folders, environment variables, and the secrets that the
//! configuration names. The only module of this crate that reads files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::executor::Secret;

/// The environment in which tasks are executed.
#[derive(Clone, Debug)]
pub struct ExecutionEnv {
    /// The folder outside of which no work starts.
    pub workspace: PathBuf,
    /// The folder of the attempts' logs.
    pub logs: PathBuf,
    /// The folder of the notes of remote jobs. Whoever writes there has requests sent, with secrets: it is the account's.
    pub remote_notes: PathBuf,
    /// Our own environment. The configuration decides which variables are passed on.
    pub variables: BTreeMap<String, String>,
    /// The name of this run. Its processes are found by it if the run dies.
    pub worker: String,
}

impl ExecutionEnv {
    /// Reads the value of a secret. One newline at its end is removed.
    pub fn secret(&self, name: &str, secret: &Secret) -> Result<String, String> {
        let value = match secret {
            Secret::Variable(variable) => self.variables.get(variable).cloned(),
            Secret::File(file) => std::fs::read_to_string(self.workspace.join(file)).ok(),
        };
        let value = value.ok_or_else(|| format!("the secret {name} is not where the configuration says"))?;
        Ok(value.strip_suffix('\n').unwrap_or(&value).to_owned())
    }
}
