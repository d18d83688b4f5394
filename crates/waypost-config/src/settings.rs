//! The settings themselves: queues, executors, retries, leases, limits, the approval policy, and their defaults.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use waypost_core::{DEFAULT_QUEUE, Retry};

use crate::executor::{Header, Secret, Worker};
use crate::input_schema::Shape;
use crate::models::{ModelServer, Planner};

/// Tasks that a queue runs at the same time, unless the configuration says otherwise.
pub const CONCURRENCY_DEFAULT: u32 = 4;
/// Tasks that a queue may run at the same time.
pub const CONCURRENCY_MAX: u32 = 1_000;
/// Seconds that anything in the configuration may take: a hundred days.
pub const SECONDS_MAX: u32 = 100 * 24 * 60 * 60;
/// Bytes of a file with a schema.
pub const SCHEMA_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a log that may be kept of one attempt.
pub const LOG_BYTES_LIMIT: u64 = 1024 * 1024 * 1024;

/// When a plan needs a person's approval before machines run it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApprovalPolicy {
    /// No plan does.
    Never,
    /// A plan with which an agent gives work to machines.
    #[default]
    Work,
    /// Every plan.
    All,
}

impl ApprovalPolicy {
    /// What a new plan is told about it.
    pub fn required(self) -> Option<bool> {
        match self {
            Self::Never => Some(false),
            Self::Work => None,
            Self::All => Some(true),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Tasks that run at the same time.
    pub concurrency: u32,
}

/// What an executor's name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Executor {
    /// Nothing is done, and that is done at once.
    Noop,
    /// A person does it and says so.
    Human,
    /// This worker does it.
    Worker(Worker),
    /// One of several workers does it: the one that `inputs.subagent` names.
    Dispatch(BTreeMap<String, Worker>),
}

/// What a person wishes of the program in a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tui {
    /// Whether it hears the mouse.
    pub mouse: bool,
    /// Which keys do what, where that is not as it is built in.
    pub keys: Vec<Binding>,
}

/// The keys of one action, by names that the program in the terminal knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    pub action: String,
    /// By which keys; none: by no key.
    pub keys: Vec<String>,
    /// The file that says so.
    pub place: String,
    /// The line in it.
    pub line: usize,
}

/// Who else is told how runs go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reporter {
    pub report: Report,
    /// Of what; empty: of everything.
    pub events: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// By what a run shows of itself to people.
    Console,
    /// A line of JSON for each event, appended to a file of the workspace.
    File {
        /// Relative to the workspace.
        path: String,
    },
    /// A program gets each event as JSON on its standard input.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// Variables of our environment that it sees.
        environment: Vec<String>,
        /// Seconds that it may take for one event.
        timeout_seconds: u32,
    },
    /// Each event of the log is posted to an address, until that takes it.
    Webhook(Webhook),
}

/// An address that events are posted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Where to; it may be a secret as a whole.
    pub url: Header,
    /// Headers to send along.
    pub headers: Vec<(String, Header)>,
    /// What requests are signed with.
    pub hmac: Option<Secret>,
    /// Seconds that one request may take.
    pub timeout_seconds: u32,
    /// How often one event is tried before it is given up.
    pub attempts: u32,
    /// Seconds before the second try; doubled for each further one.
    pub backoff_seconds: u32,
    /// The longest wait between two tries.
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

/// How often an event is tried unless the configuration says otherwise.
pub const WEBHOOK_ATTEMPTS_DEFAULT: u32 = 10;
/// How often an event may be tried.
pub const WEBHOOK_ATTEMPTS_MAX: u32 = 1_000;
/// Seconds between two tries at the most, unless the configuration says otherwise.
pub const WEBHOOK_BACKOFF_DEFAULT: u32 = 300;

/// Seconds that a program may take for one event unless the configuration says otherwise.
pub const REPORT_SECONDS_DEFAULT: u32 = 10;
/// The events that a reporter can be told of.
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// When a person must approve.
    pub approval: ApprovalPolicy,
    /// Whether the person at an agent's client may approve there, when the client asks them.
    pub elicitation: bool,
    /// Queues by name.
    pub queues: BTreeMap<String, Queue>,
    /// Executors by name.
    pub executors: BTreeMap<String, Executor>,
    /// The executor that `run` gives tasks without work to; without one they are left to agents and people.
    pub default_executor: Option<String>,
    /// Programs that only look whether something is done, by name: a task's `check` may name them, its `work` may not.
    pub checks: BTreeMap<String, Worker>,
    /// Shapes by name.
    pub shapes: BTreeMap<String, Shape>,
    /// Reporters by name.
    pub reporters: BTreeMap<String, Reporter>,
    /// Models by name: those that may be asked.
    pub models: BTreeMap<String, ModelServer>,
    /// Names of models that the user's files, a named file or the environment bring: all that the workspace's file does not.
    pub user_models: BTreeSet<String>,
    /// Whom the planner asks, and its bounds.
    pub planner: Planner,
    /// The files that it was read from, those included that it names.
    pub read_from: Vec<PathBuf>,
    /// What of a `todo.json` has no meaning here, a clause each.
    pub ignored: Vec<String>,
    /// How often to try where the task does not say.
    pub retry: Retry,
    /// Seconds that a worker is believed to live without a sign of life.
    pub lease_seconds: u32,
    /// Seconds between two signs of life.
    pub heartbeat_seconds: u32,
    /// Seconds that an attempt may take where neither task nor executor says.
    pub timeout_seconds: Option<u32>,
    /// Seconds between the request to end and the end by force.
    pub stop_seconds: u32,
    /// Seconds that a task waits for locks before newcomers may no longer take them.
    pub lock_wait_seconds: u32,
    /// Bytes of a worker's output.
    pub output_bytes_max: u64,
    /// Bytes of a worker's log that are kept.
    pub log_bytes_max: u64,
    /// Seconds after a plan's end at which `waypost prune` forgets its events. Nothing is pruned unless somebody asks.
    pub retention_seconds: Option<u64>,
    /// Of the program in a terminal.
    pub tui: Tui,
}

impl Default for Config {
    fn default() -> Self {
        let executors = [("noop", Executor::Noop), ("human", Executor::Human)];
        Self {
            approval: ApprovalPolicy::default(),
            elicitation: true,
            queues: BTreeMap::from([(DEFAULT_QUEUE.to_owned(), Queue { concurrency: CONCURRENCY_DEFAULT })]),
            executors: executors.map(|(name, executor)| (name.to_owned(), executor)).into(),
            default_executor: None,
            checks: BTreeMap::new(),
            shapes: BTreeMap::new(),
            reporters: BTreeMap::new(),
            models: BTreeMap::new(),
            user_models: BTreeSet::new(),
            planner: Planner::default(),
            read_from: Vec::new(),
            ignored: Vec::new(),
            retry: Retry { attempts: 1, backoff_seconds: 2, backoff_seconds_max: 300 },
            lease_seconds: 60,
            heartbeat_seconds: 15,
            timeout_seconds: None,
            stop_seconds: 5,
            lock_wait_seconds: 10,
            output_bytes_max: 1024 * 1024,
            log_bytes_max: 10 * 1024 * 1024,
            retention_seconds: None,
            tui: Tui { mouse: true, keys: Vec::new() },
        }
    }
}

impl Config {
    /// The name of the queue that a plan's word for it means.
    pub fn queue_name(word: &str) -> &str {
        if word.is_empty() { DEFAULT_QUEUE } else { word }
    }
}
