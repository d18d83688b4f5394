//! Everything that machines would do for a plan, resolved, and the digest to which an approval is bound. Runs nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use waypost_config::{Definition, DefinitionRole, Definitions};
use waypost_core::canonical::CanonicalHasher;
use waypost_core::{Json, Plan, PlanId, ProblemKind, Task, TaskSpec, Work};
use waypost_text::is_unsafe_char;

use crate::approval_preview::{ApprovalPreview, approval_preview};

/// Attempts of one task above which the approver is warned.
const ATTEMPTS_USUAL_MAX: u32 = 10;
/// Words that hint at deletion.
const DELETION_WORDS: [&str; 9] =
    ["rm", "rmdir", "del", "delete", "drop", "destroy", "prune", "purge", "truncate"];
/// Words that hint at production systems.
const PRODUCTION_WORDS: [&str; 4] = ["prod", "production", "live", "release"];
/// Bytes of definitions that an approval keeps for the difference to a later state.
const KEPT_DEFINITIONS_BYTES_MAX: usize = 256 * 1024;
/// Hex digits of a digest in its short form.
const SHORT_DIGEST_DIGITS: usize = 12;

/// The state of a plan that a person has seen and decides about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The version of the plan.
    pub version: u64,
    /// The digest of its preview.
    pub digest: String,
}

/// Everything that machines would do for a plan.
#[derive(Clone, Debug, Serialize)]
pub struct Preview {
    /// The id of the plan.
    pub plan: PlanId,
    /// The version of the plan.
    pub version: u64,
    /// The digest of all that would run: `sha256:` and 64 hex digits. An approval names it, and workers compare it.
    pub digest: String,
    /// The worker whose definitions these are; absent if they are those of the local configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_by: Option<String>,
    /// Workers of the plan's queue with other definitions: they would refuse to start what is approved here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disagreeing: Vec<String>,
    /// The number of tasks with work or a check.
    pub total: usize,
    /// Names that nobody defines. A plan with any cannot be approved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unresolved: Vec<String>,
    /// What each used name stands for.
    pub definitions: BTreeMap<String, Value>,
    /// What differs from the latest approval, a line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub since_approval: Vec<String>,
    /// The tasks, grouped by what they run: risky groups first, then small ones.
    pub groups: Vec<PreviewGroup>,
}

impl Preview {
    /// Returns what a person decides about who has seen this preview.
    pub fn seen(&self) -> Seen {
        Seen { version: self.version, digest: self.digest.clone() }
    }
}

/// Returns the short form of a digest.
pub fn short_digest(digest: &str) -> &str {
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    hex.get(..SHORT_DIGEST_DIGITS).unwrap_or(hex)
}

/// Tasks that differ only in their ids, texts, inputs and dependencies.
#[derive(Clone, Debug, Serialize)]
pub struct PreviewGroup {
    /// The program, as a person would type it.
    pub program: String,
    /// What the approver should look at. Risks sort and warn; they forbid nothing.
    pub risks: Vec<Risk>,
    /// Whether a person does the work, and no machine checks it.
    pub for_person: bool,
    /// The tasks, in the plan's order.
    pub tasks: Vec<PreviewTask>,
}

/// One task of a preview.
#[derive(Clone, Debug, Serialize)]
pub struct PreviewTask {
    /// The id of the task.
    pub id: String,
    /// The texts that its author passes to the program, by name.
    pub particulars: Vec<(&'static str, String)>,
}

/// What a person should look at before approving, the gravest first.
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
    /// The command runs through a shell.
    Shell,
    /// It reaches the network.
    Network,
    /// The image's tag can be moved to another image.
    MovableImage,
    /// An agent changes the workspace itself.
    AgentWithoutWorktree,
    /// It may be tried many times.
    ManyAttempts,
    /// Nothing limits how long it takes.
    NoTimeout,
    /// No other task of this plan runs this program in this way.
    UsedOnce,
}

impl Risk {
    /// Returns the risk as a clause for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::InvisibleCharacters => "invisible characters",
            Self::Deletion => "deletes",
            Self::Production => "names production",
            Self::Secrets => "gets secrets",
            Self::SshAgent => "can use SSH keys",
            Self::Shell => "runs in a shell",
            Self::Network => "uses the network",
            Self::MovableImage => "image can change",
            Self::AgentWithoutWorktree => "agent works in the workspace itself",
            Self::ManyAttempts => "many attempts",
            Self::NoTimeout => "no time limit",
            Self::UsedOnce => "used once",
        }
    }
}

/// Decides which tasks form a group.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    program: String,
    executor: Option<String>,
    shape: Option<String>,
    check: Option<String>,
    attempts: u32,
    timeout: Option<u32>,
}

/// Resolves everything that machines would do for a plan with these definitions.
pub fn plan_preview(definitions: &Definitions, plan: &Plan) -> Preview {
    let mut used = UsedDefinitions::default();
    let mut groups: BTreeMap<GroupKey, PreviewGroup> = BTreeMap::new();
    let mut total = 0;
    for (task, _) in plan.tasks() {
        if task.spec.work.is_none() && task.spec.check.is_none() {
            continue;
        }
        total += 1;
        let found = used.add(definitions, &task.spec);
        let ApprovalPreview { program, mut particulars } = approval_preview(definitions, &task.spec);
        particulars.extend(order_and_locks(&task.spec));
        let key = group_key(definitions, task, &program);
        let group = groups.entry(key).or_insert_with(|| PreviewGroup {
            program,
            risks: Vec::new(),
            for_person: found.iter().all(|value| *value == "human"),
            tasks: Vec::new(),
        });
        group.risks.extend(risks(definitions, &task.spec, &group.program, &found));
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
    groups.sort_by_key(|group| (group.risks.is_empty(), group.risks.first().copied(), group.tasks.len()));
    let now = used.values();
    Preview {
        plan: plan.id().clone(),
        version: plan.version(),
        digest: used.digest(definitions, plan),
        resolved_by: None,
        disagreeing: Vec::new(),
        total,
        since_approval: since_approval(plan, &now),
        unresolved: used.unresolved,
        definitions: now,
        groups,
    }
}

/// Returns the digest of all that machines would do for a plan, and what each used name stands for.
pub fn preview_digest(definitions: &Definitions, plan: &Plan) -> (String, BTreeMap<String, Value>) {
    let Resolved { digest, definitions, .. } = resolved(definitions, plan);
    (digest, definitions)
}

/// What the names in a plan stand for, without the tasks.
pub(crate) struct Resolved {
    pub(crate) digest: String,
    pub(crate) definitions: BTreeMap<String, Value>,
    pub(crate) unresolved: Vec<String>,
}

/// Resolves the names in a plan.
pub(crate) fn resolved(definitions: &Definitions, plan: &Plan) -> Resolved {
    let mut used = UsedDefinitions::default();
    for (task, _) in plan.tasks() {
        used.add(definitions, &task.spec);
    }
    Resolved {
        digest: used.digest(definitions, plan),
        definitions: used.values(),
        unresolved: used.unresolved,
    }
}

/// Returns definitions as an approval keeps them: none if they are too large.
pub(crate) fn kept_definitions(definitions: &BTreeMap<String, Value>) -> Json {
    let kept = Json::of(definitions);
    if kept.as_str().len() > KEPT_DEFINITIONS_BYTES_MAX { Json::empty_object() } else { kept }
}

/// Returns how the definitions differ from those of the latest approval, a line each.
pub(crate) fn since_approval(plan: &Plan, now: &BTreeMap<String, Value>) -> Vec<String> {
    let approved = plan.state().approval.as_ref().and_then(|approval| approval.work.as_ref());
    let Some(Value::Object(before)) = approved.map(|work| work.definitions.value()) else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for (name, value) in now {
        match before.get(name) {
            Some(old) if old == value => {}
            Some(old) => lines.push(format!("{name}: {}", changed_keys(old, value).join(", "))),
            None => lines.push(format!("{name} is new")),
        }
    }
    lines.extend(before.keys().filter(|name| !now.contains_key(*name)).map(|name| format!("{name} is gone")));
    lines
}

/// Returns the keys in which two definitions differ; `kind` if they are of different kinds.
fn changed_keys(old: &Value, new: &Value) -> Vec<String> {
    let kind = |value: &Value| {
        value.as_object().and_then(|kinds| kinds.iter().next().map(|(k, v)| (k.clone(), v.clone())))
    };
    let (Some((old_kind, old)), Some((new_kind, new))) = (kind(old), kind(new)) else {
        return vec!["kind".to_owned()];
    };
    if old_kind != new_kind {
        return vec!["kind".to_owned()];
    }
    let mut changed = Vec::new();
    collect_changed(&old, &new, &mut changed);
    changed
}

fn collect_changed(old: &Value, new: &Value, changed: &mut Vec<String>) {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return };
    for (key, value) in new {
        match old.get(key) {
            Some(before) if before == value => {}
            // An agent's process has the keys that the configuration has beside its own.
            Some(before) if key == "process" => collect_changed(before, value, changed),
            Some(_) | None => changed.push(key.clone()),
        }
    }
    changed.extend(old.keys().filter(|key| !new.contains_key(*key)).cloned());
}

/// What the names in a plan stand for.
#[derive(Default)]
struct UsedDefinitions<'a> {
    definitions: BTreeMap<(DefinitionRole, String), Definition<'a>>,
    unresolved: Vec<String>,
}

impl<'a> UsedDefinitions<'a> {
    /// Resolves the names that a task uses, and returns what they stand for.
    fn add(&mut self, definitions: &'a Definitions, spec: &TaskSpec) -> Vec<&'a Value> {
        let work = spec.work.as_deref().map(|work| (work, definitions.of_work(work)));
        let check = spec.check.as_deref().map(|check| (check, definitions.of_check(check)));
        let mut found = Vec::new();
        for (work, definition) in work.into_iter().chain(check) {
            match definition {
                Ok(definition) => {
                    found.push(definition.value);
                    self.definitions.entry((definition.role, definition.name.clone())).or_insert(definition);
                }
                Err(problem) => self.add_unresolved(work, problem),
            }
        }
        found
    }

    fn add_unresolved(&mut self, work: &Work, problem: ProblemKind) {
        let name = if let ProblemKind::UnknownExecutor { executor } = problem {
            executor
        } else {
            work.executor.clone()
        };
        if !self.unresolved.contains(&name) {
            self.unresolved.push(name);
        }
    }

    /// Returns the definitions by role and name.
    fn values(&self) -> BTreeMap<String, Value> {
        let named = self.definitions.iter().map(|((role, name), definition)| {
            (format!("{} {name}", role.as_str()), definition.value.clone())
        });
        named.collect()
    }

    fn digest(&self, definitions: &Definitions, plan: &Plan) -> String {
        let mut used = CanonicalHasher::new("definitions", 1);
        used.list(self.definitions.values(), |hasher, definition| hasher.hash(&definition.hash()));
        let retry = &definitions.retry;
        for number in [retry.attempts, retry.backoff_seconds, retry.backoff_seconds_max] {
            used.number(u64::from(number));
        }
        used.optional(definitions.timeout_seconds, |hasher, seconds| hasher.number(u64::from(seconds)));
        let mut digest = CanonicalHasher::new("preview", 1);
        digest.hash(&plan.work_digest()).hash(&used.finish());
        let hex: String = digest.finish().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256:{hex}")
    }
}

/// Returns what a task waits for and which locks it takes, by name.
fn order_and_locks(spec: &TaskSpec) -> Vec<(&'static str, String)> {
    let after: Vec<String> = spec.depends_on.iter().map(ToString::to_string).collect();
    let locks: Vec<&str> = spec.locks.iter().map(|lock| lock.key.as_str()).collect();
    let texts = [("depends on", after.join(", ")), ("locks", locks.join(", "))];
    texts.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

fn group_key(definitions: &Definitions, task: &Task, program: &str) -> GroupKey {
    let TaskSpec { work, check, timeout_seconds, .. } = &task.spec;
    GroupKey {
        program: program.to_owned(),
        executor: work.as_ref().map(|work| work.executor.clone()),
        shape: work.as_ref().and_then(|work| work.shape.clone()),
        check: check.as_ref().map(|check| check.executor.clone()),
        attempts: attempts(definitions, &task.spec),
        timeout: *timeout_seconds,
    }
}

fn attempts(definitions: &Definitions, spec: &TaskSpec) -> u32 {
    spec.retry.as_ref().map_or(definitions.retry.attempts, |retry| retry.attempts)
}

fn risks(definitions: &Definitions, spec: &TaskSpec, program: &str, used: &[&Value]) -> Vec<Risk> {
    let inputs = spec.work.as_deref().map_or("", |work| work.inputs.as_str());
    let mut risks = Vec::new();
    let mut warn = |risk, applies: bool| risks.extend(applies.then_some(risk));
    let texts = [program, inputs, &spec.description, &spec.notes];
    warn(Risk::InvisibleCharacters, texts.iter().any(|text| text.chars().any(is_hidden)));
    warn(Risk::Deletion, has_word(program, &DELETION_WORDS) || has_word(inputs, &DELETION_WORDS));
    warn(Risk::Production, has_word(program, &PRODUCTION_WORDS) || has_word(inputs, &PRODUCTION_WORDS));
    warn(Risk::ManyAttempts, attempts(definitions, spec) > ATTEMPTS_USUAL_MAX);
    for definition in used {
        let Some((kind, value)) = definition.as_object().and_then(|kinds| kinds.iter().next()) else {
            continue;
        };
        let process = value.get("process").unwrap_or(value);
        let limited = spec.timeout_seconds.or(definitions.timeout_seconds).is_some();
        warn(Risk::NoTimeout, !limited && process["timeout_seconds"].is_null());
        warn(Risk::Shell, process["shell"] == true);
        let secrets = process["secrets"].as_object().is_some_and(|secrets| !secrets.is_empty());
        warn(Risk::Secrets, secrets || !value["hmac"].is_null());
        let environment = process["environment"].as_array();
        let ssh = |names: &Vec<Value>| names.iter().any(|name| name == "SSH_AUTH_SOCK");
        warn(Risk::SshAgent, environment.is_some_and(ssh));
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

/// Whether one of the words occurs in a text as a whole word.
fn has_word(text: &str, words: &[&str]) -> bool {
    let mut found = text.split(|c: char| !c.is_ascii_alphanumeric());
    found.any(|word| words.iter().any(|wanted| wanted.eq_ignore_ascii_case(word)))
}
