//! Those who do the work of tasks, as the configuration describes them.

use std::collections::BTreeMap;

use super::Template;

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
    /// An agent on this machine.
    Agent(Box<Agent>),
    /// Somebody who is called over HTTP.
    Http(Box<Http>),
}

impl Worker {
    /// Seconds that an attempt may take, where the configuration says.
    pub fn timeout_seconds(&self) -> Option<u32> {
        match self {
            Self::Process(process) => process.timeout_seconds,
            Self::Agent(agent) => agent.process.timeout_seconds,
            Self::Http(http) => http.timeout_seconds,
        }
    }
}

/// An agent's command line program that gets a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The program, with all flags that the configuration says.
    pub process: Process,
    /// How it gets the prompt.
    pub prompt_to: PromptTo,
    /// What it is told.
    pub prompt: Prompt,
    /// What it writes at the end.
    pub answer: Answer,
    /// Whether each attempt gets a git worktree of its own.
    pub worktree: bool,
    /// Whose name stands on what is committed there, as `Name <mail>`; otherwise git knows.
    pub author: Option<String>,
}

/// How an agent gets its prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptTo {
    /// On its standard input.
    Stdin,
    /// In the one argument in which `{prompt}` stands.
    Argument,
}

/// Where an agent's prompt comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// It is known.
    Known(Template),
    /// It is in this file of the workspace, which nobody has read yet.
    File {
        /// The file, relative to the workspace.
        file: String,
        /// Where in the configuration it is named.
        place: String,
        /// The line there.
        line: usize,
    },
}

/// What an agent writes to its standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Its answer.
    Plain,
    /// Claude Code's object, in which `result` is the answer.
    Claude,
    /// Gemini's object, in which `response` is the answer.
    Gemini,
}

/// A worker that is called over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// Where the job is sent.
    pub url: String,
    /// How.
    pub method: Method,
    /// What else is sent.
    pub headers: Vec<(String, Header)>,
    /// What requests are signed with.
    pub hmac: Option<Secret>,
    /// How often a request is sent before the attempt gives up.
    pub tries: u32,
    /// Seconds between two questions whether the work is done, where the other side does not say.
    pub poll_seconds: u32,
    /// Seconds that an attempt may take.
    pub timeout_seconds: Option<u32>,
}

/// How a job is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By `POST`.
    Post,
    /// By `PUT`.
    Put,
}

impl Method {
    /// As it stands in a request.
    pub fn word(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }
}

/// The value of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Header {
    /// This.
    Text(String),
    /// A secret.
    Secret(Secret),
}
