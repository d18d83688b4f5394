//! Those who do the work of tasks, as the configuration describes them.

use std::collections::BTreeMap;

/// Where a secret is read when a process starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// From this variable of our own environment.
    Variable(String),
    /// From this file; one line end at its end is left out.
    File(String),
}

/// A program that is run for a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The program and its arguments; with `shell`, one text for `sh -c`.
    pub command: Vec<String>,
    /// Whether `sh -c` reads the command.
    pub shell: bool,
    /// The folder that it starts in, relative to the workspace; the workspace itself where none is named.
    pub directory: String,
    /// Variables of our environment that it sees.
    pub environment: Vec<String>,
    /// Variables that it gets, with where their values are read.
    pub secrets: BTreeMap<String, Secret>,
    /// Seconds that an attempt may take.
    pub timeout_seconds: Option<u32>,
}

/// Variables that a process sees unless its configuration names others.
pub const ENVIRONMENT_DEFAULT: [&str; 8] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "TERM"];

/// Somebody who does the work of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Worker {
    /// A program on this machine.
    Process(Process),
}

impl Worker {
    /// Seconds that an attempt may take, where the configuration says.
    pub fn timeout_seconds(&self) -> Option<u32> {
        match self {
            Self::Process(process) => process.timeout_seconds,
        }
    }
}
