//! What is wrong in a configuration.

use std::fmt;

/// Something wrong in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The file, or the variable of the environment.
    pub place: String,
    /// The line in it, from 1; nothing for a variable.
    pub line: Option<usize>,
    /// What is wrong, a lowercase clause.
    pub what: String,
    /// What to do about it; may be empty.
    pub hint: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.place, self.what),
            None => write!(f, "{}: {}", self.place, self.what),
        }
    }
}

/// Everything that is wrong in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has {} {}", problems.len(), if problems.len() == 1 { "problem" } else { "problems" })]
pub struct BadConfig {
    /// All of it, in the order of the layers.
    pub problems: Vec<ConfigProblem>,
}
