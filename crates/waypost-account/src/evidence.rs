//! Determines the caller: the least privileged actor that any evidence implies. Evidence is what agent hosts and workers
//! leave in the environment of this process and of its ancestors. Flags and variables can lower the caller's privileges
//! but never raise them. The absence of evidence does not prove that the caller is a person.

use std::collections::BTreeMap;
use std::fs;
use std::sync::OnceLock;

use waypost_core::{Actor, ActorKind};

/// Maximum number of ancestors that are examined.
pub const ANCESTORS_MAX: usize = 64;

/// Variables that agent hosts set for the commands they run, and the host's name. They count even if they are empty.
/// Sources: each host's documentation or source, and the list of `@vercel/detect-agent`.
const HOST_VARIABLES: &[(&str, &str)] = &[
    ("CLAUDECODE", "claude-code"),
    ("CLAUDE_CODE", "claude-code"),
    ("CODEX_SANDBOX", "codex"),
    ("CODEX_SANDBOX_NETWORK_DISABLED", "codex"),
    ("CODEX_CI", "codex"),
    ("CODEX_SESSION_ID", "codex"),
    ("CODEX_THREAD_ID", "codex"),
    ("CODEX_TOOL_CALL_ID", "codex"),
    ("CURSOR_AGENT", "cursor"),
    ("GEMINI_CLI", "gemini"),
    ("QWEN_CODE", "qwen-code"),
    ("OPENCODE", "opencode"),
    ("COPILOT_CLI", "copilot"),
    ("COPILOT_AGENT_SESSION_ID", "copilot"),
    ("CLINE_ACTIVE", "cline"),
    ("GOOSE_TERMINAL", "goose"),
    ("AUGMENT_AGENT", "augment"),
];
/// Variables that count only with this value.
const HOST_VALUES: &[(&str, &str, &str)] = &[("CURSOR_EXTENSION_HOST_ROLE", "agent-exec", "cursor")];
/// Variables whose value is the agent's name.
const AGENT_NAME_VARIABLES: &[&str] = &["AI_AGENT", "AGENT"];
/// Cursor sets the first variable in a person's terminal as well; only its agent sets this pager.
const CURSOR_TRACE: (&str, &str, &str) = ("CURSOR_TRACE_ID", "PAGER", "head -n 10000 | cat");
/// Variables that a worker sets for the programs of its tasks.
const WORKER_VARIABLES: &[&str] = &["WAYPOST_ATTEMPT", "WAYPOST_WORKER"];
/// The variable that names the caller.
const ACTOR_VARIABLE: &str = "WAYPOST_ACTOR";
/// The variable that names the plan of a task's program.
const PLAN_VARIABLE: &str = "WAYPOST_PLAN";
/// The task and the attempt that a process runs for.
const ATTEMPT_VARIABLES: [&str; 2] = ["WAYPOST_TASK", "WAYPOST_ATTEMPT"];
/// The name of a worker when nothing names it.
const NOBODY: &str = "someone";

/// The variables of one process that may be evidence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The id of an ancestor; `None` for this process.
    id: Option<u32>,
    variables: BTreeMap<String, String>,
}

/// The evidence about a caller: this process, then its ancestors, nearest first.
#[derive(Clone, Debug)]
pub struct Evidence {
    processes: Vec<Process>,
}

/// Why someone cannot be the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallerError {
    /// The evidence implies fewer privileges than the actor has.
    #[error("{by}: this runs inside {inside} ({evidence}), so it cannot act as {actor}")]
    NotThatActor { by: &'static str, inside: String, evidence: String, actor: Actor },
    /// The text does not name an actor that can be a caller.
    #[error("{by}: {what}")]
    BadActor { by: &'static str, what: String },
}

impl CallerError {
    /// Returns what to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotThatActor { .. } => "a person does this in a terminal of their own",
            Self::BadActor { .. } => "for example --as person:ada or --as agent:planner",
        }
    }
}

/// Marks a process as started by an agent or a worker.
struct Mark<'a> {
    /// The most privileged actor that the caller can be.
    actor: Actor,
    /// The variable that sets the limit.
    variable: &'static str,
    process: &'a Process,
}

impl Mark<'_> {
    /// Whether a caller with this mark may act as this actor.
    fn allows(&self, actor: &Actor) -> bool {
        match self.actor.kind {
            ActorKind::Worker => *actor == self.actor,
            ActorKind::Agent | ActorKind::Person | ActorKind::System => actor.kind == ActorKind::Agent,
        }
    }

    fn refuse(&self, by: &'static str, actor: Actor) -> CallerError {
        let inside = match self.actor.kind {
            ActorKind::Worker => "a task of a plan".to_owned(),
            ActorKind::Agent | ActorKind::Person | ActorKind::System => self.actor.name.clone(),
        };
        let evidence = match self.process.id {
            None => format!("{} is set", self.variable),
            Some(id) => format!("{} is set in process {id}, which started it", self.variable),
        };
        CallerError::NotThatActor { by, inside, evidence, actor }
    }
}

impl Process {
    /// Keeps the variables that can be evidence.
    pub fn new(id: Option<u32>, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { id, variables: variables.into_iter().filter(|(name, _)| is_evidence(name)).collect() }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    fn mark(&self, variable: &'static str, actor: Actor) -> Mark<'_> {
        Mark { actor, variable, process: self }
    }

    /// The caller that the variable names. That of an ancestor may be anything, and counts by its kind.
    fn named(&self) -> Option<Actor> {
        let text = self.get(ACTOR_VARIABLE)?;
        let kind = |prefix: &str| text.starts_with(prefix).then(|| NOBODY.to_owned());
        text.parse()
            .ok()
            .or_else(|| kind("worker:").map(Actor::worker))
            .or_else(|| kind("agent:").map(Actor::agent))
    }

    fn worker(&self) -> Option<Mark<'_>> {
        if let Some(named) = self.named().filter(|named| named.kind == ActorKind::Worker) {
            return Some(self.mark(ACTOR_VARIABLE, named));
        }
        let variable = WORKER_VARIABLES.iter().find(|name| self.get(name).is_some())?;
        Some(self.mark(variable, Actor::worker(self.get(PLAN_VARIABLE).unwrap_or(NOBODY))))
    }

    /// The agent that the variables name, and otherwise the one whose host set them.
    fn agent(&self) -> Option<Mark<'_>> {
        let named = self.named().filter(|named| named.kind == ActorKind::Agent);
        match (named, self.host()) {
            (Some(actor), host) => Some(self.mark(host.map_or(ACTOR_VARIABLE, |host| host.variable), actor)),
            (None, host) => host,
        }
    }

    /// The agent whose host set these variables.
    fn host(&self) -> Option<Mark<'_>> {
        let has = |name: &str, value: &str| self.get(name) == Some(value);
        if let Some((seen, name)) = HOST_VARIABLES.iter().find(|(name, _)| self.get(name).is_some()) {
            return Some(self.mark(seen, Actor::agent(*name)));
        }
        if let Some((seen, _, name)) = HOST_VALUES.iter().find(|(name, value, _)| has(name, value)) {
            return Some(self.mark(seen, Actor::agent(*name)));
        }
        let (trace, pager, value) = CURSOR_TRACE;
        if self.get(trace).is_some() && has(pager, value) {
            return Some(self.mark(trace, Actor::agent("cursor")));
        }
        AGENT_NAME_VARIABLES.iter().find_map(|seen| {
            let name = self.get(seen).filter(|name| !name.is_empty())?;
            Some(self.mark(seen, Actor::agent(name)))
        })
    }
}

/// Whether a variable can be evidence.
fn is_evidence(name: &str) -> bool {
    let (trace, pager, _) = CURSOR_TRACE;
    HOST_VARIABLES.iter().any(|(known, _)| *known == name)
        || HOST_VALUES.iter().any(|(known, ..)| *known == name)
        || AGENT_NAME_VARIABLES.contains(&name)
        || WORKER_VARIABLES.contains(&name)
        || ATTEMPT_VARIABLES.contains(&name)
        || [trace, pager, ACTOR_VARIABLE, PLAN_VARIABLE].contains(&name)
}

impl Evidence {
    /// Collects the evidence about this process, which has these variables. Its ancestors are examined once: a parent
    /// that ends later is evidence still.
    pub fn collect(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        static ANCESTORS: OnceLock<Vec<Process>> = OnceLock::new();
        Self::of(variables, ANCESTORS.get_or_init(ancestors).iter().cloned())
    }

    /// Like [`Evidence::collect`], with these ancestors.
    pub fn of(
        variables: impl IntoIterator<Item = (String, String)>,
        ancestors: impl IntoIterator<Item = Process>,
    ) -> Self {
        let own = Process::new(None, variables);
        Self { processes: std::iter::once(own).chain(ancestors.into_iter().take(ANCESTORS_MAX)).collect() }
    }

    /// Returns the caller: the one that the flag or the variable names, if the evidence allows it. Without evidence and
    /// a name it is the person that the account is named after.
    pub fn caller(&self, flag: Option<&str>, account: &str) -> Result<Actor, CallerError> {
        let own = &self.processes[0];
        let named = own.get(ACTOR_VARIABLE).filter(|text| !text.is_empty());
        let named = named.map(|text| parse(ACTOR_VARIABLE, text)).transpose()?;
        let limit = self.limit(named.as_ref())?;
        let Some(flag) = flag else {
            let person = || named.unwrap_or_else(|| Actor::person(account));
            return Ok(limit.map_or_else(person, |limit| limit.actor));
        };
        let actor = parse("--as", flag)?;
        match limit {
            Some(limit) if !limit.allows(&actor) => Err(limit.refuse("--as", actor)),
            Some(_) | None => Ok(actor),
        }
    }

    /// Returns the task and the attempt of this plan that the process runs for. The oldest process decides: a program
    /// can give its children other variables, and not change those that it was started with.
    pub fn attempt_of(&self, plan: &str) -> Option<(String, u32)> {
        let [task, attempt] = ATTEMPT_VARIABLES;
        let is_of_plan = |process: &&Process| process.get(PLAN_VARIABLE) == Some(plan);
        let oldest = self.processes.iter().rfind(is_of_plan)?;
        Some((oldest.get(task)?.to_owned(), oldest.get(attempt)?.parse().ok()?))
    }

    /// The mark with the least privileges. A worker's mark comes first: its program may start an agent.
    fn limit(&self, named: Option<&Actor>) -> Result<Option<Mark<'_>>, CallerError> {
        let agent = self.processes.iter().find_map(Process::agent);
        let worker = self.processes.iter().find_map(Process::worker);
        match (worker, agent) {
            // An agent can set the variable that names a worker. Only a worker sets the others, or names an ancestor.
            (Some(worker), Some(agent)) if worker.process.id.is_none() && !self.is_of_worker() => {
                Err(agent.refuse(ACTOR_VARIABLE, worker.actor))
            }
            (Some(worker), _) => Ok(Some(worker)),
            (None, Some(agent)) => match named {
                Some(named) if named.kind != ActorKind::Agent => {
                    Err(agent.refuse(ACTOR_VARIABLE, named.clone()))
                }
                Some(named) => Ok(Some(Mark { actor: named.clone(), ..agent })),
                None => Ok(Some(agent)),
            },
            (None, None) => Ok(None),
        }
    }

    /// Whether a worker started this process or an ancestor, beyond what the process says of itself.
    fn is_of_worker(&self) -> bool {
        let by_variable = |process: &Process| WORKER_VARIABLES.iter().any(|name| process.get(name).is_some());
        self.processes[1..].iter().any(|process| process.worker().is_some())
            || by_variable(&self.processes[0])
    }
}

fn parse(by: &'static str, text: &str) -> Result<Actor, CallerError> {
    let bad = |what| CallerError::BadActor { by, what };
    let actor: Actor = text.parse().map_err(|error: waypost_core::BadActor| bad(error.to_string()))?;
    match actor.kind {
        ActorKind::System => Err(bad(format!("{actor} cannot be a caller"))),
        ActorKind::Person | ActorKind::Agent | ActorKind::Worker => Ok(actor),
    }
}

/// The ancestors of this process, nearest first. Those of other users do not show their variables.
fn ancestors() -> Vec<Process> {
    #[cfg(feature = "injected")]
    if let Some(ancestors) = crate::injected::ancestors() {
        return ancestors.into_iter().map(|(id, variables)| Process::new(Some(id), variables)).collect();
    }
    let parents = std::iter::successors(parent_of("self"), |id| parent_of(&id.to_string()));
    parents.take(ANCESTORS_MAX).map(|id| Process::new(Some(id), variables_of(id))).collect()
}

/// The parent of a process; `None` for the first one of the machine or of the container.
fn parent_of(process: &str) -> Option<u32> {
    let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
    // The program's name is in parentheses and may contain anything, also parentheses, spaces and bytes that are no text.
    let stat = String::from_utf8_lossy(&stat);
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(1)?.parse().ok().filter(|&id| id > 0)
}

/// The variables that a process was started with.
fn variables_of(process: u32) -> Vec<(String, String)> {
    let bytes = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pair = |entry: &[u8]| {
        let at = entry.iter().position(|&byte| byte == b'=')?;
        Some((text(&entry[..at]), text(&entry[at + 1..])))
    };
    bytes.split(|&byte| byte == 0).filter_map(pair).collect()
}
