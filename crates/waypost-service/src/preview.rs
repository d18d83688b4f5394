//! Everything that machines would do for a plan by this configuration, and the digest that an approval binds. Runs nothing.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use waypost_config::{Config, Definition};
use waypost_core::canonical::CanonicalHasher;
use waypost_core::{Plan, PlanId, ProblemKind, Task, TaskSpec, Work};
use waypost_text::is_unsafe_char;

use crate::approval_preview::{ApprovalPreview, approval_preview};

/// Attempts of one task above which a person is warned.
const ATTEMPTS_USUAL_MAX: u32 = 10;
/// Words that hint at deletion, and at production systems.
const DELETION_WORDS: [&str; 9] =
    ["rm", "rmdir", "del", "delete", "drop", "destroy", "prune", "purge", "truncate"];
const PRODUCTION_WORDS: [&str; 4] = ["prod", "production", "live", "release"];

/// Everything that machines would do for a plan.
#[derive(Clone, Debug, Serialize)]
pub struct Preview {
    /// The plan.
    pub plan: PlanId,
    /// The version that was resolved.
    pub version: u64,
    /// The digest of all that would run, as `sha256:` and 64 hex digits. An approval names it, and workers compare it.
    pub digest: String,
    /// Tasks with work or a check.
    pub total: usize,
    /// Names that this configuration does not resolve: a plan with any cannot be approved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unresolved: Vec<String>,
    /// What each used name stands for.
    pub definitions: BTreeMap<String, Value>,
    /// The tasks, those together that run the same program in the same way; risky groups first, then small ones.
    pub groups: Vec<PreviewGroup>,
}

/// Tasks that differ only in id, words, inputs and dependencies.
#[derive(Clone, Debug, Serialize)]
pub struct PreviewGroup {
    /// The program, as a person would type it.
    pub program: String,
    /// What a person should look at. Risks sort and warn; they forbid nothing.
    pub risks: Vec<Risk>,
    /// The tasks, in the plan's order.
    pub tasks: Vec<PreviewTask>,
}

/// One task of a preview, whole.
#[derive(Clone, Debug, Serialize)]
pub struct PreviewTask {
    /// Its id.
    pub id: String,
    /// What its author says to the program, each with its name.
    pub particulars: Vec<(&'static str, String)>,
}

/// What a person should look at before approving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// A text has characters that are not visible, or that change the direction of text.
    InvisibleCharacters,
    /// A command or an input has a word such as `rm` or `delete`.
    Deletion,
    /// A command or an input has a word such as `prod`.
    Production,
    /// It gets a secret.
    Secrets,
    /// It can use the keys of the SSH agent.
    SshAgent,
    /// A shell reads the command.
    Shell,
    /// It reaches the network.
    Network,
    /// The image's tag can be moved to another image.
    MovableImage,
    /// An agent changes the workspace itself.
    AgentWithoutWorktree,
    /// It may be tried very often.
    ManyAttempts,
    /// Nothing limits how long it takes.
    NoTimeout,
    /// No other task of this plan runs this program in this way.
    UsedOnce,
}

/// What decides whether two tasks are in one group.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    program: String,
    executor: Option<String>,
    shape: Option<String>,
    check: Option<String>,
    attempts: u32,
    timeout: Option<u32>,
    locks: Vec<waypost_core::Lock>,
}

/// Resolves everything that machines would do for a plan.
pub fn plan_preview(config: &Config, plan: &Plan) -> Preview {
    let mut used = UsedDefinitions::default();
    let mut groups: BTreeMap<GroupKey, PreviewGroup> = BTreeMap::new();
    let mut total = 0;
    for (task, _) in plan.tasks() {
        if task.spec.work.is_none() && task.spec.check.is_none() {
            continue;
        }
        total += 1;
        let found = used.add(config, &task.spec);
        let ApprovalPreview { program, particulars } = approval_preview(config, &task.spec);
        let key = group_key(config, task, &program);
        let group = groups.entry(key).or_insert_with(|| PreviewGroup {
            program,
            risks: Vec::new(),
            tasks: Vec::new(),
        });
        group.risks.extend(risks(config, &task.spec, &group.program, &found));
        group.tasks.push(PreviewTask { id: task.spec.id.to_string(), particulars });
    }
    let mut groups: Vec<PreviewGroup> = groups.into_values().collect();
    for group in &mut groups {
        if group.tasks.len() == 1 && total > 1 {
            group.risks.push(Risk::UsedOnce);
        }
        group.risks.sort_unstable();
        group.risks.dedup();
    }
    // The gravest risk of each decides.
    groups.sort_by_key(|group| {
        (group.risks.first().is_none(), group.risks.first().copied(), group.tasks.len())
    });
    Preview {
        plan: plan.id().clone(),
        version: plan.version(),
        digest: used.digest(config, plan),
        total,
        unresolved: used.unresolved,
        definitions: used.definitions.into_values().map(|found| (found.name, found.value)).collect(),
        groups,
    }
}

/// The digest of all that machines would do for a plan by this configuration.
pub fn preview_digest(config: &Config, plan: &Plan) -> String {
    let mut used = UsedDefinitions::default();
    for (task, _) in plan.tasks() {
        used.add(config, &task.spec);
    }
    used.digest(config, plan)
}

/// What the names in a plan stand for.
#[derive(Default)]
struct UsedDefinitions {
    /// By role and name.
    definitions: BTreeMap<(&'static str, String), Definition>,
    unresolved: Vec<String>,
}

impl UsedDefinitions {
    /// Resolves the names that a task uses, and returns what they stand for.
    fn add(&mut self, config: &Config, spec: &TaskSpec) -> Vec<Value> {
        let work = spec.work.as_deref().map(|work| (work, config.executor_definition(work)));
        let check = spec.check.as_deref().map(|check| (check, config.check_definition(check)));
        let mut found = Vec::new();
        for (work, definition) in work.into_iter().chain(check) {
            match definition {
                Ok(definition) => {
                    found.push(definition.value.clone());
                    self.definitions.entry((definition.role, definition.name.clone())).or_insert(definition);
                }
                Err(problem) => self.add_unresolved(work, &problem),
            }
        }
        found
    }

    fn add_unresolved(&mut self, work: &Work, problem: &ProblemKind) {
        let name = match problem {
            ProblemKind::UnknownExecutor { executor } => executor.clone(),
            _ => work.executor.clone(),
        };
        if !self.unresolved.contains(&name) {
            self.unresolved.push(name);
        }
    }

    fn digest(&self, config: &Config, plan: &Plan) -> String {
        let mut definitions = CanonicalHasher::new("definitions", 1);
        definitions.list(self.definitions.values(), |hasher, definition| hasher.hash(&definition.hash()));
        let retry = &config.retry;
        for number in [retry.attempts, retry.backoff_seconds, retry.backoff_seconds_max] {
            definitions.number(u64::from(number));
        }
        definitions.optional(config.timeout_seconds, |hasher, seconds| hasher.number(u64::from(seconds)));
        let mut digest = CanonicalHasher::new("preview", 1);
        digest.hash(&plan.work_digest()).hash(&definitions.finish());
        let hex: String = digest.finish().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256:{hex}")
    }
}

fn group_key(config: &Config, task: &Task, program: &str) -> GroupKey {
    let TaskSpec { work, check, retry, timeout_seconds, locks, .. } = &task.spec;
    GroupKey {
        program: program.to_owned(),
        executor: work.as_ref().map(|work| work.executor.clone()),
        shape: work.as_ref().and_then(|work| work.shape.clone()),
        check: check.as_ref().map(|check| check.executor.clone()),
        attempts: retry.as_ref().map_or(config.retry.attempts, |retry| retry.attempts),
        timeout: *timeout_seconds,
        locks: locks.clone(),
    }
}

fn risks(config: &Config, spec: &TaskSpec, program: &str, definitions: &[Value]) -> Vec<Risk> {
    let inputs = spec.work.as_deref().map_or("", |work| work.inputs.as_str());
    let mut risks = Vec::new();
    let mut warn = |risk, there: bool| risks.extend(there.then_some(risk));
    let texts = [program, inputs, &spec.description, &spec.notes];
    warn(Risk::InvisibleCharacters, texts.iter().any(|text| text.chars().any(is_hidden)));
    warn(Risk::Deletion, has_word(program, &DELETION_WORDS) || has_word(inputs, &DELETION_WORDS));
    warn(Risk::Production, has_word(program, &PRODUCTION_WORDS) || has_word(inputs, &PRODUCTION_WORDS));
    let attempts = spec.retry.as_ref().map_or(config.retry.attempts, |retry| retry.attempts);
    warn(Risk::ManyAttempts, attempts > ATTEMPTS_USUAL_MAX);
    for definition in definitions {
        let Some((kind, value)) = definition.as_object().and_then(|kinds| kinds.iter().next()) else {
            continue;
        };
        let process = value.get("process").unwrap_or(value);
        let timeout = spec.timeout_seconds.or(config.timeout_seconds).is_some();
        warn(Risk::NoTimeout, !timeout && process["timeout_seconds"].is_null());
        warn(Risk::Shell, process["shell"] == true);
        let secrets = process["secrets"].as_object().is_some_and(|secrets| !secrets.is_empty());
        warn(Risk::Secrets, secrets || !value["hmac"].is_null());
        let environment = process["environment"].as_array();
        warn(
            Risk::SshAgent,
            environment.is_some_and(|names| names.iter().any(|name| name == "SSH_AUTH_SOCK")),
        );
        let is_container = kind == "container" || kind == "kubernetes";
        let open_network = kind == "container" && value["network"] != "none";
        warn(Risk::Network, kind == "http" || kind == "kubernetes" || open_network);
        let image = value["image"].as_str().unwrap_or_default();
        warn(Risk::MovableImage, is_container && !image.contains("@sha256:"));
        warn(Risk::AgentWithoutWorktree, kind == "agent" && value["worktree"] != true);
    }
    risks
}

fn is_hidden(character: char) -> bool {
    is_unsafe_char(character) && !matches!(character, '\n' | '\t')
}

/// Whether one of the words is among those of a text.
fn has_word(text: &str, words: &[&str]) -> bool {
    let mut found = text.split(|c: char| !c.is_ascii_alphanumeric());
    found.any(|word| words.iter().any(|wanted| wanted.eq_ignore_ascii_case(word)))
}
