//! Problems of a configuration.

use std::fmt;

/// One problem of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The file or the environment variable.
    pub place: String,
    /// The line in the file, from 1; `None` if the problem has no line.
    pub line: Option<usize>,
    /// The problem, as a lowercase clause.
    pub what: String,
    /// How to fix it; may be empty.
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

/// All problems of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has {} {}", problems.len(), if problems.len() == 1 { "problem" } else { "problems" })]
pub struct BadConfig {
    /// In the order of the layers.
    pub problems: Vec<ConfigProblem>,
}
