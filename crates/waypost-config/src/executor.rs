//! The workers that execute tasks, as the configuration describes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use waypost_core::canonical::sha256;
use waypost_text::hex;

use crate::template::Template;

/// Where a secret is read from when a process starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Secret {
    /// This variable of our own environment.
    Variable(String),
    /// This file; one newline at its end is removed.
    File(String),
}

/// A program that is run for a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Process {
    /// The program and its arguments; with `shell`, a single string for `sh -c`.
    pub command: Vec<String>,
    /// Whether the command runs through `sh -c`.
    pub shell: bool,
    /// The working directory, relative to the workspace; empty for the workspace itself.
    pub directory: String,
    /// Variables of our environment that are passed on.
    pub environment: Vec<String>,
    /// Variables that are set to secrets, with the source of each value.
    pub secrets: BTreeMap<String, Secret>,
    /// The time limit of an attempt.
    pub timeout_seconds: Option<u32>,
}

/// Variables that are passed on to a process unless its configuration names others.
pub const ENVIRONMENT_DEFAULT: [&str; 8] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "TERM"];

/// Executes the work of a task. Every attempt holds its own copy, so cloning must be cheap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Worker {
    /// A program on this machine.
    Process(Arc<Process>),
    /// An agent on this machine.
    Agent(Arc<Agent>),
    /// A service that is called over HTTP.
    Http(Arc<Http>),
    /// A container on this machine.
    Container(Arc<Container>),
    /// A Job of a Kubernetes cluster.
    Kubernetes(Arc<Kubernetes>),
    /// A job of a Slurm cluster.
    Slurm(Arc<Slurm>),
    /// A job of a remote service, for which a program speaks.
    Program(Arc<RemoteProgram>),
}

impl Serialize for Worker {
    /// As its kind and all that is configured.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Process(process) => serializer.collect_map([("process", &**process)]),
            Self::Agent(agent) => serializer.collect_map([("agent", &**agent)]),
            Self::Http(http) => serializer.collect_map([("http", &**http)]),
            Self::Container(container) => serializer.collect_map([("container", &**container)]),
            Self::Kubernetes(kubernetes) => serializer.collect_map([("kubernetes", &**kubernetes)]),
            Self::Slurm(slurm) => serializer.collect_map([("slurm", &**slurm)]),
            Self::Program(program) => serializer.collect_map([("program", &**program)]),
        }
    }
}

impl Worker {
    /// The folder below the workspace in which its program runs; empty for the workspace itself.
    pub fn directory(&self) -> &str {
        match self {
            Self::Process(process) => &process.directory,
            Self::Agent(agent) => &agent.process.directory,
            Self::Slurm(slurm) => &slurm.process.directory,
            Self::Program(program) => &program.process.directory,
            Self::Http(_) | Self::Container(_) | Self::Kubernetes(_) => "",
        }
    }

    /// The file that says in which cluster it runs, and as whom.
    pub(crate) fn kubeconfig(&self) -> Option<&str> {
        match self {
            Self::Kubernetes(kubernetes) => kubernetes.kubeconfig.as_deref(),
            Self::Process(_)
            | Self::Agent(_)
            | Self::Http(_)
            | Self::Container(_)
            | Self::Slurm(_)
            | Self::Program(_) => None,
        }
    }

    /// The time limit of an attempt, if the configuration sets one.
    pub fn timeout_seconds(&self) -> Option<u32> {
        match self {
            Self::Process(process) => process.timeout_seconds,
            Self::Agent(agent) => agent.process.timeout_seconds,
            Self::Http(http) => http.timeout_seconds,
            Self::Container(container) => container.timeout_seconds,
            Self::Kubernetes(kubernetes) => kubernetes.timeout_seconds,
            Self::Slurm(slurm) => slurm.process.timeout_seconds,
            Self::Program(program) => program.process.timeout_seconds,
        }
    }
}

/// A command line agent that is given a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Agent {
    /// The program, with all flags from the configuration.
    pub process: Process,
    pub prompt_to: PromptTo,
    pub prompt: Prompt,
    /// The format of its final output.
    pub answer: Answer,
    /// Whether each attempt gets a git worktree of its own.
    pub worktree: bool,
    /// The author of the commits in the worktree, as `Name <mail>`; otherwise git's own configuration decides.
    pub author: Option<String>,
}

/// How an agent receives its prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptTo {
    /// On standard input.
    Stdin,
    /// In the one argument that contains `{prompt}`.
    Argument,
}

/// Where an agent's prompt comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Prompt {
    /// Already parsed.
    Known(Template),
    /// In this file of the workspace, which has not been read yet.
    File {
        /// The file, relative to the workspace.
        file: String,
        /// The configuration file that names it.
        place: String,
        line: usize,
    },
}

/// The format of an agent's standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Plain,
    /// Claude Code's object; `result` is the answer.
    Claude,
    /// Gemini's object; `response` is the answer.
    Gemini,
}

/// A worker that is called over HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Http {
    /// The URL that the job is sent to.
    #[serde(serialize_with = "url_without_credentials")]
    pub url: String,
    pub method: Method,
    #[serde(serialize_with = "without_credentials")]
    pub headers: Vec<(String, Header)>,
    /// The key that requests are signed with.
    pub hmac: Option<Secret>,
    /// How often a request is sent before the attempt fails.
    pub tries: u32,
    /// Seconds between two polls, if the service does not specify an interval.
    pub poll_seconds: u32,
    /// Whether the service answers a repeated request with the job that the first one began, so that a job whose answer was
    /// lost can be cancelled.
    #[serde(skip_serializing_if = "is_false")]
    pub idempotent: bool,
    /// The time limit of an attempt.
    pub timeout_seconds: Option<u32>,
}

/// What the names of URL parameters and variables contain whose values are credentials. Others say what a program does.
const CREDENTIALS: [&str; 11] =
    ["auth", "cookie", "credential", "jwt", "key", "pass", "secret", "session", "sig", "token", "pwd"];

fn is_credential(name: &str) -> bool {
    CREDENTIALS.iter().any(|word| name.to_ascii_lowercase().contains(word))
}

fn hashed(value: &str) -> String {
    format!("sha256:{}", hex(&sha256(value.as_bytes())))
}

/// Shows variables that are credentials by their hash, as headers are.
fn variables_without_credentials<S: Serializer>(
    variables: &BTreeMap<String, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(variables.iter().map(|(name, value)| match is_credential(name) {
        true => (name, hashed(value)),
        false => (name, value.clone()),
    }))
}

/// Shows the credentials among the parameters of a URL by their hash, as those in headers are.
fn url_without_credentials<S: Serializer>(url: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let Some((address, query)) = url.split_once('?') else { return serializer.serialize_str(url) };
    let shown = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, value)) if is_credential(name) => format!("{name}={}", hashed(value)),
        Some(_) | None => pair.to_owned(),
    });
    serializer.serialize_str(&format!("{address}?{}", shown.collect::<Vec<_>>().join("&")))
}

/// Shows the literal value of a header, which may be a credential, by its hash: the definition binds it, and approvers, agents and
/// other workers do not read it.
fn without_credentials<S: Serializer>(
    headers: &[(String, Header)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Shown<'a> {
        Hidden { sha256: String },
        Header(&'a Header),
    }
    let shown = headers.iter().map(|(name, header)| {
        let value = match header {
            Header::Text(text) => Shown::Hidden { sha256: hex(&sha256(text.as_bytes())) },
            Header::Secret(_) => Shown::Header(header),
        };
        (name, value)
    });
    serializer.collect_seq(shown)
}

/// A key that is not set does not change what an approval binds.
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The HTTP method that a job is sent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    Post,
    Put,
}

impl Method {
    /// The method's name in a request.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }
}

/// The value of a header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Header {
    /// A literal value.
    Text(String),
    Secret(Secret),
}

/// A container that is started for each attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Container {
    /// The program that starts containers; `None` for the first one found.
    pub engine: Option<String>,
    pub image: String,
    /// The program in the container and its arguments; empty for the image's own.
    pub command: Vec<String>,
    /// Folders and files of the workspace that are mounted.
    pub mounts: Vec<Mount>,
    /// The working directory in the container.
    pub workdir: Option<String>,
    /// The memory limit, in the engine's syntax.
    pub memory: Option<String>,
    /// The CPU limit, in the engine's syntax.
    pub cpus: Option<String>,
    /// The maximum number of processes.
    pub pids: Option<u32>,
    /// The network that the container is attached to.
    pub network: String,
    pub user: Option<String>,
    /// Whether the engine adds an init process that reaps the others.
    pub init: bool,
    /// Variables of our environment that are passed on.
    pub environment: Vec<String>,
    /// Variables that are set to secrets, with the source of each value.
    pub secrets: BTreeMap<String, Secret>,
    /// The time limit of an attempt.
    pub timeout_seconds: Option<u32>,
}

/// A file or folder of the workspace that is mounted into a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// Relative to the workspace; empty for the workspace itself.
    pub source: String,
    pub target: String,
    /// Whether the container may write to it.
    pub write: bool,
}

/// A Kubernetes Job that is created for each attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kubernetes {
    /// The kubeconfig file; otherwise it is found as `kubectl` finds it.
    pub kubeconfig: Option<String>,
    /// The context in the kubeconfig; otherwise the current one.
    pub context: Option<String>,
    /// The namespace; otherwise that of the context.
    pub namespace: Option<String>,
    pub image: String,
    /// The program in the container and its arguments; empty for the image's own.
    pub command: Vec<String>,
    /// The service account of the pod.
    pub service_account: Option<String>,
    /// The secrets that images are pulled with.
    pub pull_secrets: Vec<String>,
    /// The resources that a node must have available.
    pub requests: BTreeMap<String, String>,
    pub limits: BTreeMap<String, String>,
    /// Variables that are set to literal values.
    #[serde(serialize_with = "variables_without_credentials")]
    pub variables: BTreeMap<String, String>,
    /// Variables that are set from a Secret of the cluster: its name and a key in it.
    pub secrets: BTreeMap<String, (String, String)>,
    /// Seconds after which the cluster deletes a finished Job that no run has cleaned up.
    pub ttl_seconds: u32,
    /// The time limit of an attempt.
    pub timeout_seconds: Option<u32>,
}

/// A program that submits, finds, polls and cancels the jobs of a remote service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RemoteProgram {
    /// The program; its time limit is that of an attempt.
    pub process: Process,
    /// What the program is told with each call.
    pub settings: BTreeMap<String, String>,
    /// Seconds between two polls, if the program does not specify an interval.
    pub poll_seconds: u32,
}

/// A Slurm job that is submitted for each attempt, in one array with others that start at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Slurm {
    /// The program that runs on a node.
    pub process: Process,
    /// The folder shared with the nodes: relative to the workspace, or an absolute path.
    pub folder: String,
    /// The partition; otherwise the cluster's default.
    pub partition: Option<String>,
    pub account: Option<String>,
    /// The quality of service.
    pub qos: Option<String>,
    /// CPUs of a job.
    pub cpus: Option<u32>,
    /// Memory of a job, in Slurm's syntax.
    pub memory: Option<String>,
    /// GPUs of a job, in Slurm's syntax.
    pub gpus: Option<String>,
    /// Other generic resources of a job, in Slurm's syntax.
    pub gres: Option<String>,
    /// Minutes after which Slurm ends a job.
    pub time_minutes: Option<u32>,
    /// The nice value of a task with priority 0.
    pub nice: u32,
    /// The maximum number of jobs submitted at once.
    pub array_max: u32,
    /// Further options of `sbatch`.
    pub options: Vec<String>,
}
