//! The settings and their defaults: queues, executors, retries, leases, limits, the approval policy.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use waypost_core::{DEFAULT_QUEUE, Proof, Retry};

use crate::executor::{Header, Secret, Worker};
use crate::input_schema::Shape;
use crate::models::{ModelServer, Planner};
use crate::pinned_files::PinnedFiles;

/// Tasks that a queue runs concurrently, unless the configuration sets the number.
pub const CONCURRENCY_DEFAULT: u32 = 4;
/// The highest concurrency of a queue.
pub const CONCURRENCY_MAX: u32 = 1_000;
/// The longest duration in the configuration: a hundred days.
pub const SECONDS_MAX: u32 = 100 * 24 * 60 * 60;
/// Maximum bytes of a schema file.
pub const SCHEMA_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of changed settings that a message names.
const CHANGES_NAMED_MAX: usize = 3;
/// The highest log limit of one attempt.
pub const LOG_BYTES_LIMIT: u64 = 1024 * 1024 * 1024;

/// Which plans need a person's approval before machines run them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApprovalPolicy {
    /// No plan.
    Never,
    /// Plans in which an agent assigns work to machines.
    #[default]
    Work,
    /// Every plan.
    All,
}

impl ApprovalPolicy {
    /// The setting for a new plan: required, not required, or `None` to decide by its work.
    pub fn required(self) -> Option<bool> {
        match self {
            Self::Never => Some(false),
            Self::Work => None,
            Self::All => Some(true),
        }
    }
}

/// Whether an approval needs the seal of the account that gave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SealRule {
    Off,
    /// In stores on this machine.
    #[default]
    Auto,
    Required,
}

/// What counts as an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalSettings {
    /// Which plans need a person's approval.
    pub policy: ApprovalPolicy,
    /// The least proof that a person acted.
    pub proof: Proof,
    pub seal: SealRule,
    /// The key that the workers of several machines share; without one that of the account.
    pub seal_key: Option<PathBuf>,
    /// Whether a person's own plans run without anyone at a terminal, from cron or CI.
    pub unattended: bool,
    /// The hosts whose users may approve there, by the name that the host gives itself.
    pub elicitation: Vec<String>,
    /// The file of the keys that may sign; without one that of the operator, otherwise that of the account.
    pub allowed_signers: Option<PathBuf>,
    /// The key that `approve --sign` uses.
    pub signing_key: Option<PathBuf>,
    /// How long a signed approval counts.
    pub valid_seconds: u64,
    /// Whether container images need a digest.
    pub pinned_images: bool,
}

/// What the operator's file says about approval. Later files can only be stricter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalFloor {
    pub(crate) settings: ApprovalSettings,
    /// The keys that the file has.
    pub(crate) keys: Vec<&'static str>,
}

impl ApprovalFloor {
    /// Whether settings are looser in one key than the operator's file.
    pub(crate) fn is_undercut(&self, key: &str, found: &ApprovalSettings) -> bool {
        let floor = &self.settings;
        self.keys.contains(&key)
            && match key {
                "policy" => found.policy < floor.policy,
                "proof" => found.proof < floor.proof,
                "pinned_images" => floor.pinned_images && !found.pinned_images,
                "seal" => found.seal < floor.seal,
                "unattended" => found.unattended && !floor.unattended,
                "elicitation" => !found.elicitation.iter().all(|host| floor.elicitation.contains(host)),
                "valid" => found.valid_seconds > floor.valid_seconds,
                // None is stricter than another: the operator's counts.
                "seal_key" => found.seal_key != floor.seal_key,
                "allowed_signers" => found.allowed_signers != floor.allowed_signers,
                _ => false,
            }
    }
}

/// How long a signed approval counts, unless the configuration sets it: 30 days.
pub const APPROVAL_VALID_SECONDS: u64 = 30 * 24 * 60 * 60;

impl Default for ApprovalSettings {
    fn default() -> Self {
        Self {
            policy: ApprovalPolicy::default(),
            proof: Proof::Presence,
            seal: SealRule::default(),
            seal_key: None,
            unattended: true,
            elicitation: Vec::new(),
            allowed_signers: None,
            signing_key: None,
            valid_seconds: APPROVAL_VALID_SECONDS,
            pinned_images: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Maximum number of tasks that run concurrently.
    pub concurrency: u32,
}

/// What an executor's name refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Executor {
    /// Completes at once without doing anything.
    Noop,
    /// A person does the work and reports it.
    Human,
    /// This worker does the work.
    Worker(Worker),
    /// The worker that `inputs.subagent` names does the work.
    Dispatch(BTreeMap<String, Worker>),
}

/// Settings of the terminal interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tui {
    /// Whether it reacts to the mouse.
    pub mouse: bool,
    /// Key bindings that replace the built-in ones.
    pub keys: Vec<Binding>,
}

/// The keys of one action. The terminal interface validates the names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    pub action: String,
    /// Empty: the action has no key.
    pub keys: Vec<String>,
    /// The file that defines it.
    pub place: String,
    /// The line in that file.
    pub line: usize,
}

/// The files that agents' tools may use besides those that are open to all (`docs/mcp.md`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Files that tools may write, relative to the workspace or absolute.
    pub write: Vec<String>,
    /// Whether agents over HTTP may use the scratch folder.
    pub http: bool,
}

/// A destination for the events of runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reporter {
    pub report: Report,
    /// The events to send; empty for all.
    pub events: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// Shown to people in the output of a run.
    Console,
    /// Appends each event as a line of JSON to a file of the workspace.
    File {
        /// Relative to the workspace.
        path: String,
    },
    /// Runs a program that receives each event as JSON on standard input.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// Variables of our environment that are passed on.
        environment: Vec<String>,
        /// The time limit for one event.
        timeout_seconds: u32,
    },
    /// Posts each event of the log to a URL, and retries until it is accepted or the attempts are used up.
    Webhook(Webhook),
}

/// A URL that events are posted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// May be secret as a whole.
    pub url: Header,
    pub headers: Vec<(String, Header)>,
    /// The key that requests are signed with.
    pub hmac: Option<Secret>,
    /// The time limit of one request.
    pub timeout_seconds: u32,
    /// How often an event is sent before it is given up.
    pub attempts: u32,
    /// Seconds before the first retry; doubled for each further one.
    pub backoff_seconds: u32,
    /// The longest delay between two attempts.
    pub backoff_seconds_max: u32,
}

impl Webhook {
    pub fn to(url: Header) -> Self {
        Self {
            url,
            headers: Vec::new(),
            hmac: None,
            timeout_seconds: REPORT_SECONDS_DEFAULT,
            attempts: WEBHOOK_ATTEMPTS_DEFAULT,
            backoff_seconds: 1,
            backoff_seconds_max: WEBHOOK_BACKOFF_DEFAULT,
        }
    }
}

/// How often an event is sent, unless the configuration sets it.
pub const WEBHOOK_ATTEMPTS_DEFAULT: u32 = 10;
/// The highest number of attempts for an event.
pub const WEBHOOK_ATTEMPTS_MAX: u32 = 1_000;
/// The longest delay in seconds between two attempts, unless the configuration sets it.
pub const WEBHOOK_BACKOFF_DEFAULT: u32 = 300;

/// The time limit in seconds for one event, unless the configuration sets it.
pub const REPORT_SECONDS_DEFAULT: u32 = 10;
/// The events of a run that a console, file or command reporter can subscribe to.
pub const REPORT_EVENTS: [&str; 19] = [
    "task_started",
    "task_will_retry",
    "task_progressed",
    "task_reported",
    "task_released",
    "question_asked",
    "question_answered",
    "task_ended",
    "task_done",
    "task_failed",
    "task_skipped",
    "task_cancelled",
    "plan_is",
    "plan_active",
    "plan_paused",
    "plan_awaiting_approval",
    "plan_completed",
    "plan_failed",
    "plan_cancelled",
];

/// The workspace has a configuration that nobody has trusted on this account, so that nothing in it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotTrusted {
    /// The file, as shown to people.
    pub file: String,
    /// The settings and files that differ from what was trusted before; empty if nothing was.
    pub changed: Vec<String>,
}

impl NotTrusted {
    /// Returns the error code for programs.
    pub fn code(&self) -> &'static str {
        if self.changed.is_empty() { "not_trusted" } else { "trust_changed" }
    }

    /// Returns what to do next.
    pub fn hint(&self) -> &'static str {
        match self.changed.is_empty() {
            true => "read it, then run `waypost trust`",
            false => "`waypost trust` shows the difference",
        }
    }
}

impl fmt::Display for NotTrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, changed } = self;
        if changed.is_empty() {
            return write!(
                f,
                "{file} is not trusted on this machine; its executors, reporters and models are off"
            );
        }
        let named: Vec<&str> = changed.iter().take(CHANGES_NAMED_MAX).map(String::as_str).collect();
        let more = if changed.len() > CHANGES_NAMED_MAX { ", …" } else { "" };
        write!(f, "{file} changed since it was trusted ({}{more})", named.join(", "))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub approval: ApprovalSettings,
    /// What the operator asks for at least.
    pub floor: ApprovalFloor,
    /// By name.
    pub queues: BTreeMap<String, Queue>,
    /// By name.
    pub executors: BTreeMap<String, Executor>,
    /// By the executor's name: the text that an approval binds in place of its definition.
    pub revisions: BTreeMap<String, String>,
    /// The executors whose attempts end when this worker has lost its leases.
    pub end_when_lost: BTreeSet<String>,
    /// The target whose workers dispatch executors use; `None` for their own.
    pub target: Option<String>,
    /// By target: the workers of dispatch executors that are used instead when the target is chosen, by executor.
    pub targets: BTreeMap<String, BTreeMap<String, BTreeMap<String, Worker>>>,
    /// The executor that `run` assigns to tasks without work; without one those tasks are left to agents and people.
    pub default_executor: Option<String>,
    /// Programs that only check whether something is done, by name. A task's `check` may name them, its `work` may not.
    pub checks: BTreeMap<String, Worker>,
    /// By name.
    pub shapes: BTreeMap<String, Shape>,
    /// By name.
    pub reporters: BTreeMap<String, Reporter>,
    /// By name.
    pub models: BTreeMap<String, ModelServer>,
    /// Names of the models from the user's file, a named file or the environment: all except those of the workspace's file.
    pub user_models: BTreeSet<String>,
    /// The planner's models and limits.
    pub planner: Planner,
    /// The canonical paths of the folders that the operator trusts, whatever their files contain.
    pub trusted_folders: Vec<PathBuf>,
    /// Why the workspace's own files are not used, if they are not; see [`NotTrusted`].
    pub not_trusted: Option<NotTrusted>,
    /// The files with secrets that the workspace's own files name while they are not used.
    pub untrusted_secret_files: Vec<PathBuf>,
    /// The files that it was read from, including the files that those name.
    pub read_from: Vec<PathBuf>,
    /// The parts of a `todo.json` that have no meaning here, a clause each.
    pub ignored: Vec<String>,
    /// The retries of a task that does not define its own.
    pub retry: Retry,
    /// Seconds after which a lease expires unless the worker renews it.
    pub lease_seconds: u32,
    /// Seconds between two heartbeats.
    pub heartbeat_seconds: u32,
    /// The time limit of an attempt if neither task nor executor sets one.
    pub timeout_seconds: Option<u32>,
    /// Seconds between the request to stop and the kill.
    pub stop_seconds: u32,
    /// Seconds that a task waits for locks before later tasks may no longer take them.
    pub lock_wait_seconds: u32,
    /// Maximum bytes of a worker's output.
    pub output_bytes_max: u64,
    /// Maximum bytes of a worker's log that are kept.
    pub log_bytes_max: u64,
    /// Seconds after a plan's end after which `waypost prune` deletes its events. Nothing is pruned automatically.
    pub retention_seconds: Option<u64>,
    /// Settings of the terminal interface.
    pub tui: Tui,
    pub files: Files,
    /// How plans travel with the repository.
    pub git: Git,
    pub pinned_files: PinnedFiles,
}

/// How plans travel with the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Git {
    /// The reference that holds the shared plans.
    pub reference: String,
    /// The remote that they are exchanged with.
    pub remote: String,
    pub sync: GitSync,
}

/// When shared plans are synced without a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GitSync {
    /// Never.
    #[default]
    Off,
    /// By processes that stay: `mcp`, `serve`, `worker`, `run` and `tui`.
    Auto,
}

impl Default for Git {
    fn default() -> Self {
        // Not `waypost`: the branches of agents are below `waypost/`, and git has no branch beside branches below it.
        let (reference, remote) = ("refs/heads/waypost-plans".to_owned(), "origin".to_owned());
        Self { reference, remote, sync: GitSync::Off }
    }
}

impl Default for Config {
    fn default() -> Self {
        let executors = [("noop", Executor::Noop), ("human", Executor::Human)];
        Self {
            approval: ApprovalSettings::default(),
            floor: ApprovalFloor::default(),
            queues: BTreeMap::from([(DEFAULT_QUEUE.to_owned(), Queue { concurrency: CONCURRENCY_DEFAULT })]),
            executors: executors.map(|(name, executor)| (name.to_owned(), executor)).into(),
            revisions: BTreeMap::new(),
            end_when_lost: BTreeSet::new(),
            target: None,
            targets: BTreeMap::new(),
            default_executor: None,
            checks: BTreeMap::new(),
            shapes: BTreeMap::new(),
            reporters: BTreeMap::new(),
            models: BTreeMap::new(),
            user_models: BTreeSet::new(),
            planner: Planner::default(),
            trusted_folders: Vec::new(),
            not_trusted: None,
            untrusted_secret_files: Vec::new(),
            read_from: Vec::new(),
            ignored: Vec::new(),
            retry: Retry { attempts: 1, backoff_seconds: 2, backoff_seconds_max: 300 },
            lease_seconds: 15,
            heartbeat_seconds: 6,
            timeout_seconds: None,
            stop_seconds: 5,
            lock_wait_seconds: 10,
            output_bytes_max: 1024 * 1024,
            log_bytes_max: 10 * 1024 * 1024,
            retention_seconds: None,
            tui: Tui { mouse: true, keys: Vec::new() },
            files: Files::default(),
            git: Git::default(),
            pinned_files: PinnedFiles::default(),
        }
    }
}

impl Config {
    /// The queue's name; an empty one means the default queue.
    pub fn queue_name(word: &str) -> &str {
        if word.is_empty() { DEFAULT_QUEUE } else { word }
    }
}
