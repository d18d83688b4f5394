//! Everything that machines would do for a plan, resolved, and the digest to which an approval is bound. Runs nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use waypost_config::{Definition, DefinitionRole, Definitions};
use waypost_core::canonical::CanonicalHasher;
use waypost_core::{
    ApprovedWork, Dependency, Json, Plan, PlanId, ProblemKind, Retry, Task, TaskId, TaskSpec, Work,
};
use waypost_text::{has_hidden, hex};

use crate::approval_preview::{ApprovalPreview, INPUTS, approval_preview, settings};
use crate::risk::{Risk, risks};

/// Bytes of definitions that an approval keeps for the difference to a later state.
const KEPT_DEFINITIONS_BYTES_MAX: usize = 256 * 1024;
/// Tasks of a group that a person reads at a glance.
const SMALL_GROUP_TASKS_MAX: usize = 10;
/// The keys under which an approval keeps what else its digest covers.
const DEFAULTS: &str = "defaults";
const THE_PLAN: &str = "plan";
const REVISIONS: &str = "revisions";
/// Hex digits of a digest with which a person names it: with fewer, an agent could make two plans that both have them.
const SEEN_DIGEST_DIGITS_MIN: usize = 32;
/// Maximum number of previews whose definitions are remembered.
const SHOWN_PREVIEWS_MAX: usize = 16;
/// How the names of what stands in other plans before the work begin.
pub(crate) const WAITS: &str = "waits for ";
/// Values of a part of the tasks of a group that are named.
const PATTERN_VALUES_MAX: usize = 5;
/// Columns of each.
const PATTERN_WIDTH_MAX: usize = 80;
/// Hex digits of a digest in its short form, which is only shown.
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
    /// The words of the plan itself, and its queue, by name.
    pub about: Vec<(&'static str, String)>,
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
    /// The version that was approved last, if something else would run now, and what authors changed since, a line each.
    #[serde(skip)]
    pub changes: Option<(u64, Vec<String>)>,
    /// The tasks, grouped by what they run: rare and risky groups first, then small ones.
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

/// Whether a person who names `seen` means this digest: all of it, or so much of it that nobody can make another plan with the
/// same beginning.
pub fn names_digest(seen: &str, digest: &str) -> bool {
    let hex = |text: &'_ str| text.strip_prefix("sha256:").unwrap_or(text).to_owned();
    let (seen, digest) = (hex(seen), hex(digest));
    seen.len() >= SEEN_DIGEST_DIGITS_MIN && digest.starts_with(&seen)
}

/// What a preview said besides the tasks.
#[derive(Clone, Debug)]
pub(crate) struct ShownPreview {
    digest: String,
    definitions: BTreeMap<String, Value>,
    about: Vec<(&'static str, String)>,
}

impl ShownPreview {
    /// Returns what another preview says instead, a line each.
    pub(crate) fn changes(&self, now: &Preview) -> Vec<String> {
        let mut lines = changed_definitions(&self.definitions, &now.definitions);
        // Changed words of the plan itself are among the definitions.
        for (name, before) in self.about.iter().filter(|(name, _)| name.starts_with(WAITS)) {
            let is_same = |(other, text): &&(&str, String)| other == name && text == before;
            if !now.about.iter().any(|other| is_same(&other)) {
                lines.push(format!("{name}: was {before}"));
            }
        }
        lines
    }
}

/// The previews that were shown last, so that a difference to them can be named.
#[derive(Debug, Default)]
pub(crate) struct ShownPreviews(Mutex<VecDeque<ShownPreview>>);

impl ShownPreviews {
    pub(crate) fn add(&self, preview: &Preview) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shown.retain(|shown| shown.digest != preview.digest);
        let Preview { digest, definitions, about, .. } = preview.clone();
        shown.push_back(ShownPreview { digest, definitions, about });
        if shown.len() > SHOWN_PREVIEWS_MAX {
            shown.pop_front();
        }
    }

    pub(crate) fn with_digest(&self, digest: &str) -> Option<ShownPreview> {
        let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shown.iter().find(|shown| names_digest(digest, &shown.digest)).cloned()
    }
}

/// Tasks that differ only in their ids, texts, inputs and dependencies.
#[derive(Clone, Debug, Serialize)]
pub struct PreviewGroup {
    /// The program, as a person would type it.
    pub program: String,
    /// What the tasks are to those who approve.
    pub role: GroupRole,
    /// What the approver should look at. Risks sort and warn; they forbid nothing.
    pub risks: Vec<Risk>,
    /// How the program runs: what its executor and its check stand for, attempts, time limit.
    pub settings: Vec<(&'static str, String)>,
    /// What the tasks have in each part of what their author says, by its name: values and how often they occur.
    pub pattern: Vec<(String, String)>,
    /// The tasks, those that differ from most first, otherwise in the plan's order.
    pub tasks: Vec<PreviewTask>,
}

/// What the tasks of a group are to those who approve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupRole {
    /// A machine runs something for them.
    Machine,
    /// A person does the work, and no machine checks it.
    Person,
    /// Nothing runs: they are done at once.
    Nothing,
    /// They have parts for machines; agents that do those read their words.
    Parent,
}

/// One task of a preview.
#[derive(Clone, Debug, Serialize)]
pub struct PreviewTask {
    /// The id of the task.
    pub id: String,
    /// Everything that its author says about it, by name.
    pub particulars: Vec<(&'static str, String)>,
}

/// Returns what tasks with these definitions are to those who approve.
fn role_of(values: &[&Value]) -> GroupRole {
    let all = |kinds: &[&str]| {
        !values.is_empty() && values.iter().all(|value| kinds.iter().any(|kind| *value == kind))
    };
    match (all(&["noop"]), all(&["human", "noop"])) {
        (true, _) => GroupRole::Nothing,
        (false, true) => GroupRole::Person,
        (false, false) => GroupRole::Machine,
    }
}

/// Decides which tasks form a group.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    risks: Vec<Risk>,
    program: String,
    definitions: Vec<(DefinitionRole, String)>,
    shapes: [Option<String>; 2],
    retry: Option<[u32; 3]>,
    timeout: Option<u32>,
}

/// Resolves everything that machines would do for a plan with these definitions.
pub fn plan_preview(definitions: &Definitions, plan: &Plan) -> Preview {
    let mut used = UsedDefinitions::default();
    let mut groups: BTreeMap<GroupKey, PreviewGroup> = BTreeMap::new();
    let mut parents: HashSet<TaskId> = HashSet::new();
    let mut through = OrderThrough::default();
    let mut total = 0;
    for (task, _) in plan.tasks() {
        let spec = &task.spec;
        if spec.work.is_none() && spec.check.is_none() {
            continue;
        }
        total += 1;
        let mut above = spec.parent.clone();
        while let Some(parent) = above.take_if(|parent| parents.insert(parent.clone())) {
            above = plan.task(parent.as_str()).and_then(|parent| parent.spec.parent.clone());
        }
        let found = used.add(definitions, spec);
        let values: Vec<&Value> = found.iter().map(|definition| definition.value).collect();
        let ApprovalPreview { program, particulars } = approval_preview(definitions, spec);
        let risks = risks(definitions, spec, &program, &particulars, &values);
        let particulars = with_state(task, through.add(plan, spec, particulars));
        let key = group_key(spec, program, &found, risks);
        let group = groups.entry(key).or_insert_with_key(|key| PreviewGroup {
            program: key.program.clone(),
            risks: key.risks.clone(),
            role: role_of(&values),
            settings: settings(definitions, spec, &found),
            pattern: Vec::new(),
            tasks: Vec::new(),
        });
        group.tasks.push(PreviewTask { id: spec.id.to_string(), particulars });
    }
    let mut groups: Vec<PreviewGroup> = groups.into_values().collect();
    for group in &mut groups {
        if group.tasks.len() == 1 && total > 1 && group.role == GroupRole::Machine {
            group.risks.push(Risk::UsedOnce);
            group.risks.sort_unstable();
        }
        group.pattern = rare_first(&mut group.tasks);
    }
    groups.extend(group_of_parents(definitions, plan, &parents));
    // What is rare or risky is read first, and in it what is short.
    groups.sort_by_key(|group| {
        let first = group.risks.first().copied();
        let stands_out = first.is_some_and(|risk| risk <= Risk::UsedOnce);
        (!stands_out, group.tasks.len() > SMALL_GROUP_TASKS_MAX, first, group.tasks.len())
    });
    let now = used.values(definitions, plan);
    Preview {
        plan: plan.id().clone(),
        version: plan.version(),
        digest: used.digest(definitions, plan),
        about: about(plan),
        resolved_by: None,
        disagreeing: Vec::new(),
        total,
        since_approval: since_approval(approved_work(plan), &now),
        changes: None,
        unresolved: used.unresolved,
        definitions: now,
        groups,
    }
}

/// Returns the words of the plan itself, which agents are told, and where it runs.
fn about(plan: &Plan) -> Vec<(&'static str, String)> {
    let spec = plan.spec();
    let texts = [("title", &spec.title), ("goal", &spec.goal), ("queue", &spec.queue)];
    let said = texts.into_iter().filter(|(_, text)| !text.is_empty());
    said.map(|(name, text)| (name, text.clone())).collect()
}

/// Returns the tasks that run nothing themselves, but whose words are told to agents that do their parts.
fn group_of_parents(
    definitions: &Definitions,
    plan: &Plan,
    parents: &HashSet<TaskId>,
) -> Option<PreviewGroup> {
    let mut group = PreviewGroup {
        program: "(no program: agents that do the parts of these tasks read their words)".to_owned(),
        role: GroupRole::Parent,
        risks: Vec::new(),
        settings: Vec::new(),
        pattern: Vec::new(),
        tasks: Vec::new(),
    };
    for (task @ Task { spec, .. }, _) in plan.tasks() {
        if parents.contains(&spec.id) && spec.work.is_none() && spec.check.is_none() {
            let ApprovalPreview { particulars, .. } = approval_preview(definitions, spec);
            if particulars.iter().any(|(_, text)| has_hidden(text)) {
                group.risks = vec![Risk::InvisibleCharacters];
            }
            let particulars = with_state(task, particulars);
            group.tasks.push(PreviewTask { id: spec.id.to_string(), particulars });
        }
    }
    (!group.tasks.is_empty()).then_some(group)
}

/// The work that tasks wait for through tasks without work, which are not shown.
#[derive(Default)]
struct OrderThrough(HashMap<TaskId, Vec<TaskId>>);

impl OrderThrough {
    fn add(
        &mut self,
        plan: &Plan,
        spec: &TaskSpec,
        mut particulars: Vec<(&'static str, String)>,
    ) -> Vec<(&'static str, String)> {
        let direct: BTreeSet<&TaskId> = spec.depends_on.iter().filter_map(Dependency::here).collect();
        let mut through: BTreeSet<&TaskId> = BTreeSet::new();
        for on in &direct {
            self.0.entry((*on).clone()).or_insert_with_key(|on| plan.work_through(on.as_str()));
        }
        for on in &direct {
            through.extend(self.0.get(*on).into_iter().flatten().filter(|work| !direct.contains(work)));
        }
        if !through.is_empty() {
            let names: Vec<&str> = through.into_iter().map(TaskId::as_str).collect();
            particulars.push(("and through those", names.join(", ")));
        }
        particulars
    }
}

/// Adds that a task is held or has ended. No part of the digest: it changes nothing that runs.
fn with_state(task: &Task, mut particulars: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
    particulars.extend(task.state.held().map(|hold| ("held", format!("by {}", hold.by))));
    if task.state.status.is_finished() {
        let by = task.state.gate().map(|gate| format!(" by {}", gate.by)).unwrap_or_default();
        particulars
            .push(("status", format!("{}{by}, and not asked or run again", task.state.status.as_str())));
    }
    particulars
}

/// How often one part of the tasks occurs, an author's text or one key of the inputs, and each of its values.
#[derive(Default)]
struct PartUses {
    holders: usize,
    values: HashMap<String, usize>,
}

/// Puts the tasks first that differ in a part in which most others agree, and returns what the parts have, a line each.
fn rare_first(tasks: &mut [PreviewTask]) -> Vec<(String, String)> {
    let total = tasks.len();
    if total < 2 {
        return Vec::new();
    }
    let mut uses: BTreeMap<String, PartUses> = BTreeMap::new();
    for (name, value) in tasks.iter().flat_map(parts) {
        let part = uses.entry(name).or_default();
        part.holders += 1;
        *part.values.entry(value).or_default() += 1;
    }
    tasks.sort_by_cached_key(|task| {
        let parts: HashMap<String, String> = parts(task).collect();
        let rarity = |(name, PartUses { holders, values }): (&String, &PartUses)| match parts.get(name) {
            None => total - holders,
            // Where every task has a value of its own, none stands out by it.
            Some(_) if values.len() * 2 > *holders => *holders,
            Some(value) => values.get(value).copied().unwrap_or_default(),
        };
        uses.iter().map(rarity).filter(|uses| *uses > 0).min()
    });
    uses.iter().map(|(name, uses)| (name.clone(), pattern(uses, total))).collect()
}

/// Returns everything that an author says about a task, each value of the inputs by its place.
fn parts(task: &PreviewTask) -> impl Iterator<Item = (String, String)> {
    fn add(place: String, value: &Value, found: &mut Vec<(String, String)>) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                map.iter().for_each(|(key, value)| add(format!("{place}.{key}"), value, found));
            }
            Value::String(text) => found.push((place, text.clone())),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                found.push((place, value.to_string()));
            }
        }
    }
    let mut found = Vec::new();
    for (name, text) in &task.particulars {
        match serde_json::from_str(text) {
            Ok(value) if name.ends_with(INPUTS) => add((*name).to_owned(), &value, &mut found),
            Ok(_) | Err(_) => found.push(((*name).to_owned(), text.clone())),
        }
    }
    found.into_iter()
}

/// Describes the values of a part, the rarest first.
fn pattern(PartUses { holders, values }: &PartUses, total: usize) -> String {
    let mut values: Vec<(&usize, &str)> = values.iter().map(|(value, uses)| (uses, value.as_str())).collect();
    values.sort_unstable();
    let shown = |(uses, value): &(&usize, &str)| {
        let value = waypost_text::truncate(&waypost_text::one_line(value), PATTERN_WIDTH_MAX).into_owned();
        if **uses == total { format!("{value} (all)") } else { format!("{value} ({uses})") }
    };
    let text = match values.len() {
        many if many > 1 && many * 2 > *holders => format!("{many} different values"),
        many if many > PATTERN_VALUES_MAX => {
            let first: Vec<String> = values.iter().take(PATTERN_VALUES_MAX).map(shown).collect();
            format!("{}, and {} other values", first.join(", "), many - PATTERN_VALUES_MAX)
        }
        _ => values.iter().map(shown).collect::<Vec<_>>().join(", "),
    };
    if *holders < total { format!("{text}; {} without", total - holders) } else { text }
}

fn group_key(spec: &TaskSpec, program: String, found: &[Definition<'_>], risks: Vec<Risk>) -> GroupKey {
    let shape = |work: &Option<Box<Work>>| work.as_ref().and_then(|work| work.shape.clone());
    let retry = spec.retry.as_deref();
    GroupKey {
        risks,
        program,
        definitions: found.iter().map(|found| (found.role, found.name.clone())).collect(),
        shapes: [shape(&spec.work), shape(&spec.check)],
        retry: retry.map(|retry| [retry.attempts, retry.backoff_seconds, retry.backoff_seconds_max]),
        timeout: spec.timeout_seconds,
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
    plan.for_each_spec(|spec| drop(used.add(definitions, spec)));
    Resolved {
        digest: used.digest(definitions, plan),
        definitions: used.values(definitions, plan),
        unresolved: used.unresolved,
    }
}

/// Returns definitions as an approval keeps them: none if they are too large.
pub(crate) fn kept_definitions(definitions: &BTreeMap<String, Value>) -> Json {
    let kept = Json::of(definitions);
    if kept.as_str().len() > KEPT_DEFINITIONS_BYTES_MAX { Json::empty_object() } else { kept }
}

/// Reads definitions as an approval keeps them; `None` if they are not all there. With the plan, they give the digest.
pub(crate) fn definitions_kept(kept: &Json) -> Option<Definitions> {
    let Value::Object(kept) = kept.value() else { return None };
    let limits = kept.get(DEFAULTS)?.get("limits")?;
    let limit = |name: &str| u32::try_from(limits.get(name)?.as_u64()?).ok();
    let mut found = Definitions {
        executors: BTreeMap::new(),
        checks: BTreeMap::new(),
        revisions: BTreeMap::new(),
        retry: Retry {
            attempts: limit("retry.attempts")?,
            backoff_seconds: limit("retry.backoff_seconds")?,
            backoff_seconds_max: limit("retry.backoff_seconds_max")?,
        },
        timeout_seconds: limit("limits.timeout_seconds"),
        folder: String::new(),
    };
    for (name, value) in &kept {
        if let Some(name) = name.strip_prefix("executor ") {
            found.add_executor(name, value.clone());
        } else if let Some(name) = name.strip_prefix("check ") {
            found.checks.insert(name.to_owned(), value.clone());
        }
    }
    let revisions = kept.get(REVISIONS).and_then(|revisions| revisions.get(REVISIONS)?.as_object());
    for (name, revision) in revisions.into_iter().flatten() {
        found.add_revision(name, revision.as_str()?);
    }
    Some(found)
}

/// Returns what the approval of a plan covers.
pub(crate) fn approved_work(plan: &Plan) -> Option<&ApprovedWork> {
    plan.state().approval.as_ref()?.work.as_deref()
}

/// Returns how the definitions differ from those of an approval, a line each.
pub(crate) fn since_approval(approved: Option<&ApprovedWork>, now: &BTreeMap<String, Value>) -> Vec<String> {
    let Some(Value::Object(before)) = approved.map(|work| work.definitions.value()) else {
        return Vec::new();
    };
    changed_definitions(&before.into_iter().collect(), now)
}

/// Returns how definitions differ, a line each.
pub(crate) fn changed_definitions(
    before: &BTreeMap<String, Value>,
    now: &BTreeMap<String, Value>,
) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, value) in now {
        match before.get(name) {
            Some(old) if old == value => {}
            // Earlier versions did not keep these.
            None if name == DEFAULTS || name == THE_PLAN => {}
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
    // The digest in `tasks` covers the words of the plan too.
    if new_kind == THE_PLAN && changed.len() > 1 {
        changed.retain(|key| key != "tasks");
    }
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
    /// Resolves the names that a task uses, and returns what they stand for: of its work, then of its check.
    fn add(&mut self, definitions: &'a Definitions, spec: &TaskSpec) -> Vec<Definition<'a>> {
        let work = spec.work.as_deref().map(|work| (work, definitions.of_work(work)));
        let check = spec.check.as_deref().map(|check| (check, definitions.of_check(check)));
        let mut found = Vec::new();
        for (work, definition) in work.into_iter().chain(check) {
            match definition {
                Ok(definition) => {
                    let key = (definition.role, definition.name.clone());
                    self.definitions.entry(key).or_insert_with(|| definition.clone());
                    found.push(definition);
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

    /// Returns the definitions by role and name, with the defaults of the configuration and the words of the plan:
    /// everything that a digest covers, so that a difference can be named.
    fn values(&self, definitions: &Definitions, plan: &Plan) -> BTreeMap<String, Value> {
        let named = self.definitions.iter().map(|((role, name), definition)| {
            (format!("{} {name}", role.as_str()), definition.value.clone())
        });
        let (retry, spec) = (&definitions.retry, plan.spec());
        let defaults = json!({ "limits": {
            "retry.attempts": retry.attempts,
            "retry.backoff_seconds": retry.backoff_seconds,
            "retry.backoff_seconds_max": retry.backoff_seconds_max,
            "limits.timeout_seconds": definitions.timeout_seconds,
        }});
        let work = hex(&plan.work_digest());
        let words =
            json!({ "plan": { "title": spec.title, "goal": spec.goal, "queue": spec.queue, "tasks": work }});
        let mut values: BTreeMap<String, Value> =
            named.chain([(DEFAULTS.to_owned(), defaults), (THE_PLAN.to_owned(), words)]).collect();
        let revision = |((_, name), found): (&(DefinitionRole, String), &Definition<'_>)| {
            Some((name.clone(), json!(found.revision?)))
        };
        let revisions: Map<String, Value> = self.definitions.iter().filter_map(revision).collect();
        if !revisions.is_empty() {
            values.insert(REVISIONS.to_owned(), json!({ REVISIONS: revisions }));
        }
        values
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
        format!("sha256:{}", hex(&digest.finish()))
    }
}
