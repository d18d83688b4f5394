//! The differences between two states of a plan, in a form that people and agents can act on.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::line_diff::{Change, line_changes};
use crate::{Draft, Task, TaskId, TaskSpec};

/// One difference between two drafts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Difference {
    /// A field of the plan itself differs.
    Plan {
        /// The name of the field.
        field: &'static str,
        /// The old value, as text.
        before: String,
        /// The new value, as text.
        after: String,
    },
    /// A task was added.
    Added {
        /// The id of the task.
        task: TaskId,
        /// The description of the task.
        description: String,
    },
    /// A task was removed.
    Removed {
        /// The id of the task.
        task: TaskId,
        /// The description of the task.
        description: String,
    },
    /// A field of a task differs.
    Task {
        /// The id of the task.
        task: TaskId,
        /// The name of the field.
        field: &'static str,
        /// The old value, as text.
        before: String,
        /// The new value, as text.
        after: String,
    },
    /// Siblings are in another order.
    Reordered {},
}

/// Returns every difference from `old` to `new`, with an added task as one. Times and attempt counters are left out: they
/// follow from the rest.
pub fn differences(old: &Draft, new: &Draft) -> Vec<Difference> {
    differences_with(old, new, |_, _| {})
}

/// Returns every difference from `old` to `new` for people who judge them: after an added task come its fields, so that what
/// it would run is seen.
pub fn differences_in_full(old: &Draft, new: &Draft) -> Vec<Difference> {
    differences_with(old, new, |task, found| {
        let bare = Task::new(TaskSpec::new(task.spec.id.clone(), task.spec.description.clone()));
        task_differences(&bare, task, found);
    })
}

fn differences_with(
    old: &Draft,
    new: &Draft,
    added: impl Fn(&Task, &mut Vec<Difference>),
) -> Vec<Difference> {
    let mut found = Vec::new();
    let (a, b) = (&old.spec, &new.spec);
    let budget = |budget: Option<u64>| budget.map(|tokens| tokens.to_string()).unwrap_or_default();
    let fields = [
        ("title", a.title.clone(), b.title.clone()),
        ("goal", a.goal.clone(), b.goal.clone()),
        ("status", a.status.clone(), b.status.clone()),
        ("owner", a.owner.clone(), b.owner.clone()),
        ("queue", a.queue.clone(), b.queue.clone()),
        ("token_budget", budget(a.token_budget), budget(b.token_budget)),
        ("body", a.body.clone(), b.body.clone()),
        ("phase", old.state.phase.as_str().to_owned(), new.state.phase.as_str().to_owned()),
        ("approval", json(&old.state.approval), json(&new.state.approval)),
        ("summary", old.state.summary.clone(), new.state.summary.clone()),
        ("archived", old.state.archived.to_string(), new.state.archived.to_string()),
        ("foreign", json(&a.foreign), json(&b.foreign)),
    ];
    for (field, before, after) in fields {
        if before != after {
            found.push(Difference::Plan { field, before, after });
        }
    }
    let before: HashMap<&TaskId, &Task> = old.tasks.iter().map(|task| (&task.spec.id, task)).collect();
    let after: HashMap<&TaskId, &Task> = new.tasks.iter().map(|task| (&task.spec.id, task)).collect();
    for task in old.tasks.iter().filter(|task| !after.contains_key(&task.spec.id)) {
        let (task, description) = (task.spec.id.clone(), task.spec.description.clone());
        found.push(Difference::Removed { task, description });
    }
    for task in &new.tasks {
        match before.get(&task.spec.id) {
            None => {
                let (id, description) = (task.spec.id.clone(), task.spec.description.clone());
                found.push(Difference::Added { task: id, description });
                added(task, &mut found);
            }
            Some(old) if *old == task => {}
            Some(old) => task_differences(old, task, &mut found),
        }
    }
    let stays = |tasks: &'_ [Task], other: &HashMap<&TaskId, &Task>| -> Vec<TaskId> {
        tasks.iter().map(|task| &task.spec.id).filter(|id| other.contains_key(*id)).cloned().collect()
    };
    if stays(&old.tasks, &after) != stays(&new.tasks, &before) {
        found.push(Difference::Reordered {});
    }
    found
}

fn task_differences(old: &Task, new: &Task, found: &mut Vec<Difference>) {
    let (a, b) = (&old.spec, &new.spec);
    let names =
        |task: &Task| task.spec.depends_on.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let fields = [
        ("description", a.description.clone(), b.description.clone()),
        ("parent", json(&a.parent), json(&b.parent)),
        ("depends_on", names(old), names(new)),
        ("when", json(&a.when), json(&b.when)),
        ("complexity", json(&a.complexity), json(&b.complexity)),
        ("notes", a.notes.clone(), b.notes.clone()),
        ("tools", json(&a.tools), json(&b.tools)),
        ("skip", a.skip.to_string(), b.skip.to_string()),
        ("locks", json(&a.locks), json(&b.locks)),
        ("work", json(&a.work), json(&b.work)),
        ("check", json(&a.check), json(&b.check)),
        ("retry", json(&a.retry), json(&b.retry)),
        ("timeout_seconds", json(&a.timeout_seconds), json(&b.timeout_seconds)),
        ("priority", a.priority.to_string(), b.priority.to_string()),
        ("provides", text(&a.provides), text(&b.provides)),
        ("thinking", json(&a.thinking), json(&b.thinking)),
        ("foreign", json(&a.foreign), json(&b.foreign)),
        ("status", old.state.status.as_str().to_owned(), new.state.status.as_str().to_owned()),
        ("result", text(&old.state.result), text(&new.state.result)),
        ("output", json(&old.state.output), json(&new.state.output)),
        ("error", text(&old.state.error), text(&new.state.error)),
        ("reason", text(&old.state.reason), text(&new.state.reason)),
        ("received", json(&old.state.received), json(&new.state.received)),
        ("reported", json(&old.state.reported()), json(&new.state.reported())),
        ("evidence", json(&old.state.evidence()), json(&new.state.evidence())),
        ("question", json(&old.state.question()), json(&new.state.question())),
        ("answers", json(&old.state.answers()), json(&new.state.answers())),
    ];
    for (field, before, after) in fields {
        if before != after {
            found.push(Difference::Task { task: new.spec.id.clone(), field, before, after });
        }
    }
}

fn json(value: &impl Serialize) -> String {
    match serde_json::to_string(value) {
        Ok(text) if text != "null" && text != "{}" && text != "[]" => text.trim_matches('"').to_owned(),
        Ok(_) | Err(_) => String::new(),
    }
}

/// A summary of differences, for replies that must not repeat what was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DiffStat {
    /// Fields of the plan that differ; includes `order` if siblings are in another order.
    pub fields: Vec<&'static str>,
    /// The number of added tasks.
    pub tasks_added: usize,
    /// The number of removed tasks.
    pub tasks_removed: usize,
    /// The number of tasks with a changed field.
    pub tasks_changed: usize,
    /// The number of lines added to the body.
    pub body_lines_added: usize,
    /// The number of lines removed from the body.
    pub body_lines_removed: usize,
}

impl DiffStat {
    /// Summarizes `differences`. The differences of one task must be adjacent.
    pub fn of(differences: &[Difference]) -> Self {
        let mut stat = Self::default();
        let mut latest: Option<&TaskId> = None;
        for difference in differences {
            match difference {
                Difference::Plan { field, before, after } => {
                    stat.fields.push(field);
                    if *field == "body" {
                        stat.count_lines(before, after);
                    }
                }
                Difference::Added { task, .. } => {
                    stat.tasks_added += 1;
                    latest = Some(task);
                }
                Difference::Removed { .. } => stat.tasks_removed += 1,
                Difference::Task { task, .. } => {
                    stat.tasks_changed += usize::from(latest != Some(task));
                    latest = Some(task);
                }
                Difference::Reordered {} => stat.fields.push("order"),
            }
        }
        stat
    }

    fn count_lines(&mut self, before: &str, after: &str) {
        for change in line_changes(before, after) {
            match change {
                Change::New(_) => self.body_lines_added += 1,
                Change::Old(_) => self.body_lines_removed += 1,
                Change::Same(_) | Change::Gap(_) => {}
            }
        }
    }

    /// Formats the summary: `2 tasks added, body +3 -1 lines, status`.
    pub fn describe(&self) -> String {
        let tasks =
            [(self.tasks_added, "added"), (self.tasks_removed, "removed"), (self.tasks_changed, "changed")];
        let mut parts: Vec<String> = tasks
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{} {word}", waypost_text::count(count, "task")))
            .collect();
        parts.extend(self.fields.iter().map(|field| match *field {
            "body" => format!("body +{} -{} lines", self.body_lines_added, self.body_lines_removed),
            field => field.to_owned(),
        }));
        if parts.is_empty() { "nothing differs".to_owned() } else { parts.join(", ") }
    }
}

/// Returns the tasks that had finished in `before` and are open in `after`, because their work changed.
pub fn reopened_tasks(before: &Draft, after: &Draft) -> Vec<TaskId> {
    let is_open = |task: &&Task| !task.state.status.is_finished();
    let open: HashSet<&TaskId> = after.tasks.iter().filter(is_open).map(|task| &task.spec.id).collect();
    let ended = before.tasks.iter().filter(|task| task.state.status.is_finished());
    ended.map(|task| &task.spec.id).filter(|id| open.contains(id)).cloned().collect()
}
