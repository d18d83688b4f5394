//! Those who do the work of tasks, as the configuration describes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::template::Template;

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

/// Somebody who does the work of a task. Every attempt has its own, so that a copy must cost nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Worker {
    /// A program on this machine.
    Process(Arc<Process>),
    /// An agent on this machine.
    Agent(Arc<Agent>),
    /// Somebody who is called over HTTP.
    Http(Arc<Http>),
    /// A container on this machine.
    Container(Arc<Container>),
    /// A Job of a Kubernetes cluster.
    Kubernetes(Arc<Kubernetes>),
    /// A job of a Slurm cluster.
    Slurm(Arc<Slurm>),
}

impl Worker {
    /// Seconds that an attempt may take, where the configuration says.
    pub fn timeout_seconds(&self) -> Option<u32> {
        match self {
            Self::Process(process) => process.timeout_seconds,
            Self::Agent(agent) => agent.process.timeout_seconds,
            Self::Http(http) => http.timeout_seconds,
            Self::Container(container) => container.timeout_seconds,
            Self::Kubernetes(kubernetes) => kubernetes.timeout_seconds,
            Self::Slurm(slurm) => slurm.process.timeout_seconds,
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
        line: usize,
    },
}

/// What an agent writes to its standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
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
    pub method: Method,
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
    pub fn as_str(self) -> &'static str {
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
    Secret(Secret),
}

/// A container that is started for each attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The program that starts containers; nothing where the first one that is found is meant.
    pub engine: Option<String>,
    pub image: String,
    /// The program in it and its arguments; the image's own where there is none.
    pub command: Vec<String>,
    /// Folders and files of the workspace that it sees.
    pub mounts: Vec<Mount>,
    /// The folder in it that the program starts in.
    pub workdir: Option<String>,
    /// Memory that it may use, as the engine reads it.
    pub memory: Option<String>,
    /// Processors that it may use, as the engine reads it.
    pub cpus: Option<String>,
    /// Processes that it may have.
    pub pids: Option<u32>,
    /// The network that it sees.
    pub network: String,
    pub user: Option<String>,
    /// Whether a small first process takes care of the others.
    pub init: bool,
    /// Variables of our environment that it sees.
    pub environment: Vec<String>,
    /// Variables that it gets, with where their values are read.
    pub secrets: BTreeMap<String, Secret>,
    /// Seconds that an attempt may take.
    pub timeout_seconds: Option<u32>,
}

/// Something of the workspace that a container sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Relative to the workspace; empty for the workspace itself.
    pub source: String,
    pub target: String,
    /// Whether it may be changed from inside.
    pub write: bool,
}

/// A Job of a Kubernetes cluster that is made for each attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubernetes {
    /// The file that says where the cluster is; otherwise it is found as `kubectl` finds it.
    pub kubeconfig: Option<String>,
    /// Which of the clusters in it; otherwise the current one.
    pub context: Option<String>,
    /// The namespace; otherwise that of the context.
    pub namespace: Option<String>,
    pub image: String,
    /// The program in it and its arguments; the image's own where there is none.
    pub command: Vec<String>,
    /// Whom it acts as in the cluster.
    pub service_account: Option<String>,
    /// What the images are fetched with.
    pub pull_secrets: Vec<String>,
    /// What a node must have to take it.
    pub requests: BTreeMap<String, String>,
    pub limits: BTreeMap<String, String>,
    /// Variables that it gets.
    pub variables: BTreeMap<String, String>,
    /// Variables that it gets from a Secret of the cluster, and a key in it.
    pub secrets: BTreeMap<String, (String, String)>,
    /// Seconds after its end after which the cluster takes a Job away that nobody else has.
    pub ttl_seconds: u32,
    /// Seconds that an attempt may take.
    pub timeout_seconds: Option<u32>,
}

/// A job of a Slurm cluster that is submitted for each attempt, with others that start at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slurm {
    /// The program that is run on a node.
    pub process: Process,
    /// The folder that we and the nodes share; relative to the workspace, or a full path.
    pub folder: String,
    /// The partition; otherwise the cluster's own choice.
    pub partition: Option<String>,
    pub account: Option<String>,
    /// The quality of service.
    pub qos: Option<String>,
    /// Processors of a job.
    pub cpus: Option<u32>,
    /// Memory of a job, as Slurm reads it.
    pub memory: Option<String>,
    /// Graphics processors of a job, as Slurm reads it.
    pub gpus: Option<String>,
    /// Other resources of a job, as Slurm reads it.
    pub gres: Option<String>,
    /// Minutes after which Slurm ends a job.
    pub time_minutes: Option<u32>,
    /// The niceness of a task whose priority is 0.
    pub nice: u32,
    /// Jobs that are submitted at once.
    pub array_max: u32,
    /// Other options of `sbatch`.
    pub options: Vec<String>,
}
