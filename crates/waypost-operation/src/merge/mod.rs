//! Merges a set of records by meaning: the plan is a function of the set alone.
//!
//! Facts are the writes that no other write names. They are collected first; then the structural ones are added, oldest
//! first, and what would break the plan is set aside. It is not a replay: states between do not matter. Nothing here may
//! depend on trust, configuration or time, or clones would come to different plans.

mod assemble;
mod fields;
mod hierarchy;
mod outcomes;
mod pending;
mod reading;
mod register;
mod replacement;
mod result;
mod structure;

pub(crate) use self::fields::hold_of;
pub(crate) use self::result::VersionValue;
pub use self::result::{
    ActionDisposition, AnswerKind, Claim, Conflict, ConflictKind, ConflictVersion, Disposition, Merged,
    OpenQuestion, ProposedAnswer, Renamed, SharedApproval,
};

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use waypost_core::{Digest, Hold, PlannerNotes, TaskExtras, TaskSpec, TaskState, Work};

use self::pending::{Pending, Side, SideAct};
use self::reading::Reading;
use self::register::At;
use crate::action::{ListField, TaskStart};
use crate::causality::Causality;
use crate::field::Field;
use crate::ids::{RecordId, TaskRef};
use crate::record::Record;
use crate::set::{OperationSet, TaskKey};

/// Merges the records of a plan.
pub fn merge(set: &OperationSet) -> Merged {
    let reading = Reading::of(set);
    let count = reading.tasks.len();
    let keys =
        reading.tasks.iter().map(|task| TaskKey { record: task.record, name: task.start.task.clone() });
    let keys = keys.collect();
    let specs = reading.tasks.iter().map(|task| spec_of(task.start)).collect();
    let merge = Merge {
        set,
        reading,
        keys,
        specs,
        states: vec![TaskState::default(); count],
        held: vec![None; count],
        annotations: HashMap::new(),
        moved: HashMap::new(),
        places: vec![Vec::new(); count],
        gone: vec![None; count],
        disputed: HashSet::new(),
        last_outcome: HashMap::new(),
        pending: Vec::new(),
        causality: None,
    };
    merge.run()
}

/// Maximum number of acts that a question about a removal describes.
const UNSEEN_SHOWN_MAX: usize = 20;

/// The dependencies of each task, with the place of each in the total order.
type Dependencies = HashMap<u32, Vec<((u32, u32, u32), u32)>>;

/// One value that a task's place can have, and where it comes from: `None` is the place with which the task was added.
#[derive(Clone)]
struct PlaceOfTask {
    at: At,
    parent: Option<u32>,
    is_fact: bool,
    is_set: bool,
}

struct Merge<'a> {
    set: &'a OperationSet,
    reading: Reading<'a>,
    keys: Vec<TaskKey>,
    specs: Vec<TaskSpec>,
    states: Vec<TaskState>,
    held: Vec<Option<Hold>>,
    /// The keys of the places of tasks that were moved among their siblings.
    moved: HashMap<u32, (&'a str, At)>,
    /// The labels, assignees and comments of the tasks that have any.
    annotations: HashMap<u32, TaskExtras>,
    /// The possible parents of each task, best first.
    places: Vec<Vec<PlaceOfTask>>,
    /// The removal by which each task is gone.
    gone: Vec<Option<RecordId>>,
    /// Tasks that must not start before a question is answered.
    disputed: HashSet<u32>,
    /// The last outcome or retry of each task.
    last_outcome: HashMap<u32, At>,
    pending: Vec<Pending<'a>>,
    causality: Option<Causality>,
}

impl<'a> Merge<'a> {
    fn run(mut self) -> Merged {
        let removals_set_aside = self.remove();
        self.set_fields();
        let mut plan = self.plan_fields();
        self.end_tasks();
        let (parents, dependencies) = self.structure();
        self.lists(&dependencies);
        self.comment();
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.specs.len()];
        let mut roots = Vec::new();
        for task in (0..self.specs.len() as u32).filter(|&task| self.is_here(task)) {
            match parents[task as usize] {
                Some(parent) => children[parent as usize].push(task),
                None => roots.push(task),
            }
        }
        self.keep_groups_without_work(&children);
        let removed = |merge: &Self, tasks: &[u32]| {
            let (mut family, mut at) = (tasks.to_vec(), 0);
            let mut seen: HashSet<u32> = family.iter().copied().collect();
            while at < family.len() {
                family.extend(children[family[at] as usize].iter().filter(|&&child| seen.insert(child)));
                at += 1;
            }
            family.retain(|&task| merge.is_here(task));
            family
        };
        for RemovalSetAside { at, tasks: named, unseen, answers } in removals_set_aside {
            let tasks = removed(&self, &named);
            let mut actions = vec![self.reading.action_ref(at)];
            actions.extend(answers.iter().map(|(at, _)| self.reading.action_ref(*at)));
            let record = self.reading.record(at);
            let acts = unseen.iter().take(UNSEEN_SHOWN_MAX).map(|&unseen| Side {
                record: self.reading.records[unseen as usize],
                to: VersionValue::Shown,
                act: Some(self.act_on(unseen, &named)),
            });
            let acts: Vec<Side<'_>> = acts.collect();
            let removal = |merge: &Self, record: &'a Record, tasks: Vec<u32>| {
                let named: Vec<u32> = tasks.into_iter().filter(|&task| merge.is_here(task)).collect();
                let words = format!("removed {}", vec!["{}"; named.len()].join(", "));
                Side { record, to: VersionValue::Shown, act: Some(SideAct::new(words, named)) }
            };
            let answers =
                answers.into_iter().map(|(at, tasks)| removal(&self, self.reading.record(at), tasks));
            let answers: Vec<Side<'_>> = answers.collect();
            let removal = removal(&self, record, named);
            self.pending.push(Pending {
                task: tasks.first().copied(),
                kind: ConflictKind::Removal,
                sides: std::iter::once(removal).chain(acts).chain(answers).collect(),
                shown: None,
                answers: &[AnswerKind::Keep, AnswerKind::Remove],
                tasks,
                item: None,
                actions,
                by: Some(self.reading.records[unseen[0] as usize]),
                unseen: unseen.len(),
            });
        }
        let names = self.names();
        let order = self.order(roots, &children);
        self.finish(&mut plan, &parents, &dependencies, &children, &order, &names)
    }

    fn is_here(&self, task: u32) -> bool {
        self.gone[task as usize].is_none()
    }

    fn saw_each(&mut self, record: u32, others: &[u32]) -> Vec<bool> {
        let reading = &self.reading;
        let causality = self.causality.get_or_insert_with(|| {
            let numbers: HashMap<RecordId, u32> = reading
                .records
                .iter()
                .enumerate()
                .map(|(number, record)| (record.id(), number as u32))
                .collect();
            let parents = reading.records.iter().map(|record| {
                record.parents().iter().filter_map(|parent| numbers.get(parent)).copied().collect()
            });
            Causality::of(parents.collect())
        });
        causality.saw_each(record, others)
    }

    /// Decides which removals hold: those whose authors had seen everything that touches their tasks. Returns the others. A
    /// person is asked about them, so an agent that had seen such a question does not answer it with another removal.
    fn remove(&mut self) -> Vec<RemovalSetAside> {
        let mut set_aside: Vec<RemovalSetAside> = Vec::new();
        let mut informed = Vec::new();
        for (at, tasks, over) in std::mem::take(&mut self.reading.removals) {
            if let Some(by) = self.reading.dismissed.get(&self.reading.action_ref(at)) {
                let by = *by;
                self.reading.disposition(at, Disposition::Dismissed { by });
                continue;
            }
            let mut touches: Vec<u32> =
                tasks.iter().filter_map(|task| self.reading.touches.get(task)).flatten().copied().collect();
            touches.sort_unstable();
            touches.dedup();
            touches.retain(|&touch| !over.contains(&self.reading.records[touch as usize].id()));
            let saw = self.saw_each(at.0, &touches);
            let unseen = touches.into_iter().zip(saw).filter(|(_, saw)| !saw).map(|(touch, _)| touch);
            let unseen: Vec<u32> = unseen.collect();
            match unseen.is_empty() {
                true => informed.push((at, tasks)),
                false => set_aside.push(RemovalSetAside { at, tasks, unseen, answers: Vec::new() }),
            }
        }
        let mut waiting = Vec::new();
        for (at, tasks) in informed {
            let mut asked = Vec::new();
            if !self.is_by_person(at) {
                let about =
                    set_aside.iter().filter(|other| other.tasks.iter().any(|one| tasks.contains(one)));
                asked.extend(about.map(|other| other.at));
                let records: Vec<u32> = asked.iter().map(|other| other.0).collect();
                let mut saw = self.saw_each(at.0, &records).into_iter();
                asked.retain(|_| saw.next() == Some(true));
            }
            waiting.push((at, tasks, asked));
        }
        loop {
            let is_open = |asked: &At| set_aside.iter().any(|other| other.at == *asked);
            let (held, free): (Vec<_>, Vec<_>) =
                waiting.into_iter().partition(|(_, _, asked)| asked.iter().any(is_open));
            waiting = held;
            if free.is_empty() {
                break;
            }
            for (at, tasks, _) in free {
                let by = self.reading.record(at).id();
                tasks.iter().for_each(|&task| self.gone[task as usize] = Some(by));
            }
            set_aside.retain(|removal| !self.is_removed_anyway(removal));
        }
        for removal in &set_aside {
            let why = "it would remove what its author had not seen".to_owned();
            let by = Some(self.reading.records[removal.unseen[0] as usize].id());
            self.reading.disposition(removal.at, Disposition::SetAside { why, by });
        }
        for (at, tasks, asked) in waiting {
            for removal in set_aside.iter_mut().filter(|removal| asked.contains(&removal.at)) {
                removal.answers.push((at, tasks.clone()));
                let why = "a person is asked whether to remove it".to_owned();
                let by = Some(self.reading.record(removal.at).id());
                self.reading.disposition(at, Disposition::SetAside { why, by });
            }
        }
        set_aside
    }

    /// Whether others removed all of it, having seen everything.
    fn is_removed_anyway(&mut self, removal: &RemovalSetAside) -> bool {
        let gone: Option<Vec<RecordId>> =
            removal.tasks.iter().map(|&task| self.gone[task as usize]).collect();
        let Some(by) = gone.and_then(|gone| gone.last().copied()) else { return false };
        self.reading.disposition(removal.at, Disposition::Superseded { by });
        true
    }

    /// Says what a record did to one of these tasks.
    pub(super) fn act_on(&self, number: u32, tasks: &[u32]) -> SideAct {
        use crate::action::Action;
        let record = self.reading.records[number as usize];
        let resolve = |task: &TaskRef| self.reading.resolve(self.set, task, record);
        let meant =
            |value: &Value| resolve(&value.as_str()?.parse().ok()?).filter(|task| tasks.contains(task));
        for (index, action) in record.actions().iter().enumerate() {
            if let Action::Add(start) = action {
                let at = (number, index as u32);
                let Some(added) = self.reading.tasks.iter().position(|task| task.at == at) else { continue };
                let parent = start.parent.as_ref().and_then(resolve).filter(|task| tasks.contains(task));
                let act = match (parent, start.depends_on.iter().find_map(meant)) {
                    (Some(parent), _) => ("added {} below {}", parent),
                    (None, Some(on)) => ("added {}, which depends on {}", on),
                    (None, None) => continue,
                };
                return SideAct::new(act.0, [added as u32, act.1]);
            }
            if let Action::Dismiss { .. } = action {
                return SideAct::new("wanted to keep {}", tasks.first().copied());
            }
            let Some(task) = crate::set::tasks_of(action).next().and_then(resolve) else { continue };
            let pointed = if let Action::Set { field: Field::Parent, to, .. } = action {
                meant(to).map(|to| ("moved {} below {}", to))
            } else if let Action::Include { list: ListField::DependsOn, item, .. } = action {
                meant(item).map(|on| ("made {} depend on {}", on))
            } else {
                None
            };
            if let Some((words, other)) = pointed {
                return SideAct::new(words, [task, other]);
            }
            if !tasks.contains(&task) {
                continue;
            }
            let words = match action {
                Action::Set { field: Field::Parent | Field::Place, .. } => "moved {}".to_owned(),
                Action::Set { field, .. } => format!("set {field} of {{}}"),
                Action::Include { list, .. } | Action::Exclude { list, .. } => {
                    format!("changed {} of {{}}", list.as_str())
                }
                Action::Report { outcome, .. } => format!("reported {{}} as {}", outcome.as_str()),
                Action::Retry { .. } => "wanted {} done again".to_owned(),
                Action::Claim { .. } => "began {}".to_owned(),
                Action::Ask { .. } => "asked a question about {}".to_owned(),
                Action::Answer { .. } => "answered a question about {}".to_owned(),
                Action::Comment { .. } => "commented on {}".to_owned(),
                Action::Create(_)
                | Action::Add(_)
                | Action::Remove { .. }
                | Action::Charge { .. }
                | Action::Stop { .. }
                | Action::Resume { .. }
                | Action::Approve { .. }
                | Action::Delete {}
                | Action::Dismiss { .. } => continue,
            };
            return SideAct::new(words, [task]);
        }
        SideAct::new("changed {}", tasks.first().copied())
    }
}

/// A removal whose author had not seen everything.
struct RemovalSetAside {
    at: At,
    tasks: Vec<u32>,
    /// The records that its author had not seen, at least one.
    unseen: Vec<u32>,
    /// Removals of agents that had seen the question, with their tasks.
    answers: Vec<(At, Vec<u32>)>,
}

/// What a task was added with.
struct Added<'a> {
    at: At,
    start: &'a TaskStart,
}

impl<'a> Added<'a> {
    fn of(reading: &Reading<'a>, task: u32) -> Self {
        let added = &reading.tasks[task as usize];
        Self { at: added.at, start: added.start }
    }
}

fn add_tokens(spec: &mut TaskSpec, tokens: i64) {
    if tokens != 0 {
        let notes = spec.thinking.get_or_insert_default();
        notes.tokens = notes.tokens.saturating_add(tokens);
    }
}

/// Returns the author's part with which a task was added, without its name, place and lists.
fn spec_of(start: &TaskStart) -> TaskSpec {
    let mut spec = TaskSpec::new(start.task.clone(), start.description.clone());
    spec.when = start.when;
    spec.complexity = start.complexity;
    spec.notes.clone_from(&start.notes);
    spec.skip = start.skip;
    let work = |work: &crate::travelling_work::TravellingWork| Box::new(Work::from(work.clone()));
    spec.work = start.work.as_ref().map(work);
    spec.check = start.check.as_ref().map(work);
    spec.retry = start.retry.map(Box::new);
    spec.timeout_seconds = start.timeout_seconds;
    spec.priority = start.priority;
    spec.provides.clone_from(&start.provides);
    spec.foreign = start.foreign.clone();
    let notes = PlannerNotes {
        refinement: start.refinement,
        reasoning: start.reasoning.clone(),
        tokens: 0,
        graph_node_id: start.graph_node_id.clone(),
        digest: start.digest.as_ref().and_then(|digest| digest.to::<Digest>().ok()),
    };
    spec.thinking = (notes != PlannerNotes::default()).then(|| Box::new(notes));
    spec
}
