//! Rebases edits on a newer version: a three-way merge by field. Where both sides changed the same field, mine wins and
//! theirs is reported, so that no change is dropped silently.

use std::collections::{HashMap, HashSet};

use waypost_core::{Dependency, Draft, PlanSpec, Task, TaskId, TaskSpec};

use super::EditBuffer;
use crate::plan::{LoadedPlan, task_number};
use crate::text;

/// Columns of a quoted text that both sides changed.
const QUOTED_MAX: usize = 120;

/// Edits rebased on another version of the plan.
#[derive(Debug)]
pub struct Rebased {
    /// The newer version with the edits applied.
    pub buffer: EditBuffer,
    /// Where the edits of both sides overlap and how that was resolved, one sentence each.
    pub overlaps: Vec<String>,
}

impl EditBuffer {
    /// Applies the edits of this buffer to a newer version. Undo removes them in one step.
    pub fn rebased(&self, loaded: LoadedPlan) -> Rebased {
        let mut buffer = Self::new(loaded);
        let mut overlaps = Vec::new();
        let merged = self.merged(&buffer, &mut overlaps);
        let label = format!("your edits, on version {}", buffer.base.version);
        buffer.replace(&merged, &label);
        Rebased { buffer, overlaps }
    }

    fn merged(&self, current: &Self, overlaps: &mut Vec<String>) -> Draft {
        let theirs = &current.base;
        let base = by_id(&self.base.tasks);
        let names = self.other_names(&base, current, overlaps);
        let mine: Vec<TaskSpec> = self.rows.iter().map(|row| renamed(row.spec(), &names)).collect();
        let places: HashMap<&TaskId, usize> =
            mine.iter().enumerate().map(|(at, spec)| (&spec.id, at)).collect();
        let sides = Sides { base, mine: &mine, places };
        let spec = merged_plan(&self.base.spec, &self.spec, &theirs.spec, overlaps);
        let mut tasks = Vec::with_capacity(theirs.tasks.len());
        for task in &theirs.tasks {
            tasks.extend(sides.merged(task, overlaps));
        }
        sides.put_mine(&mut tasks, overlaps);
        sides.reorder(&self.base.tasks, &theirs.tasks, &mut tasks, overlaps);
        sides.tie_up(&by_id(&theirs.tasks), &mut tasks, overlaps);
        Draft { spec, tasks, ..theirs.clone() }
    }

    /// New ids for my new tasks whose ids others have used meanwhile, including for tasks that were removed again.
    fn other_names(
        &self,
        base: &HashMap<&TaskId, &TaskSpec>,
        current: &Self,
        overlaps: &mut Vec<String>,
    ) -> HashMap<TaskId, TaskId> {
        let others = by_id(&current.base.tasks);
        let mut names: HashMap<TaskId, TaskId> = HashMap::new();
        let mut free = (current.next_number..).map_while(|number| TaskId::new(format!("t{number}")).ok());
        for row in self.rows.iter().filter(|row| !base.contains_key(row.id())) {
            let is_used = match others.get(row.id()) {
                Some(other) => *other != row.spec(),
                None => task_number(row.id()).is_some_and(|number| number < current.next_number),
            };
            if !is_used {
                continue;
            }
            let taken = |id: &TaskId| others.contains_key(id) || self.places.contains_key(id);
            let Some(name) = free.find(|id| !taken(id)) else { continue };
            overlaps.push(format!("your new task {} is {name} now: they added a {} too", row.id(), row.id()));
            names.insert(row.id().clone(), name);
        }
        names
    }
}

fn by_id(tasks: &[Task]) -> HashMap<&TaskId, &TaskSpec> {
    tasks.iter().map(|task| (&task.spec.id, &task.spec)).collect()
}

/// A task of mine with the new ids.
fn renamed(spec: &TaskSpec, names: &HashMap<TaskId, TaskId>) -> TaskSpec {
    let mut spec = spec.clone();
    if names.is_empty() {
        return spec;
    }
    for id in std::iter::once(&mut spec.id).chain(&mut spec.parent) {
        if let Some(name) = names.get(id) {
            id.clone_from(name);
        }
    }
    for on in &mut spec.depends_on {
        if let Some(name) = on.here().and_then(|id| names.get(id)) {
            *on = Dependency::Task(name.clone());
        }
    }
    spec
}

/// The common base, and my version.
struct Sides<'a> {
    base: HashMap<&'a TaskId, &'a TaskSpec>,
    mine: &'a [TaskSpec],
    /// The index of each task in `mine`.
    places: HashMap<&'a TaskId, usize>,
}

impl Sides<'_> {
    fn mine(&self, id: &TaskId) -> Option<&TaskSpec> {
        self.places.get(id).map(|&at| &self.mine[at])
    }

    /// A task of theirs with my edits; `None` if I removed it.
    fn merged(&self, theirs: &Task, overlaps: &mut Vec<String>) -> Option<Task> {
        let id = &theirs.spec.id;
        let spec = match (self.base.get(id), self.mine(id)) {
            (Some(base), Some(mine)) => merged_task(base, mine, &theirs.spec, overlaps),
            (Some(base), None) => {
                if **base != theirs.spec {
                    overlaps
                        .push(format!("{id} stays deleted although they changed it; it is in the history"));
                }
                return None;
            }
            (None, _) => theirs.spec.clone(),
        };
        Some(Task { spec, state: theirs.state.clone() })
    }

    /// Whether I changed a task, apart from losing dependencies on tasks that I removed.
    fn is_edited(&self, base: &TaskSpec, mine: &TaskSpec) -> bool {
        let mut base = base.clone();
        let stands = |on: &Dependency| on.here().is_none_or(|on| self.places.contains_key(on));
        base.depends_on.retain(|on| stands(on) || mine.depends_on.contains(on));
        base != *mine
    }

    /// Inserts my new tasks, and tasks that I edited and others removed: each after the task that precedes it in my buffer
    /// and is still present.
    fn put_mine(&self, tasks: &mut Vec<Task>, overlaps: &mut Vec<String>) {
        let mut here: HashSet<TaskId> = tasks.iter().map(|task| task.spec.id.clone()).collect();
        for (at, mine) in self.mine.iter().enumerate() {
            if here.contains(&mine.id) {
                continue;
            }
            if let Some(base) = self.base.get(&mine.id) {
                if !self.is_edited(base, mine) {
                    continue;
                }
                overlaps.push(format!("{} is restored with your edits: they deleted it", mine.id));
            }
            let before = self.mine[..at].iter().rev().find(|before| here.contains(&before.id));
            let behind = before.and_then(|before| tasks.iter().position(|task| task.spec.id == before.id));
            tasks.insert(behind.map_or(0, |behind| behind + 1), Task::new(mine.clone()));
            here.insert(mine.id.clone());
        }
    }

    /// Restores my order if I moved anything. Tasks that others added stay behind the same task as in theirs.
    fn reorder(&self, base: &[Task], theirs: &[Task], tasks: &mut Vec<Task>, overlaps: &mut Vec<String>) {
        let others = by_id(theirs);
        let stayed = |id: &&TaskId| {
            self.base.contains_key(*id) && self.places.contains_key(*id) && others.contains_key(*id)
        };
        let ids = |tasks: &[Task]| -> Vec<TaskId> {
            tasks.iter().map(|task| &task.spec.id).filter(stayed).cloned().collect()
        };
        let was = ids(base);
        let mine: Vec<TaskId> = self.mine.iter().map(|mine| &mine.id).filter(stayed).cloned().collect();
        if mine == was {
            return;
        }
        let moved = ids(theirs);
        if moved != was && moved != mine {
            overlaps.push("both moved tasks; your order wins".to_owned());
        }
        let mut keys: Vec<(usize, usize)> = Vec::with_capacity(tasks.len());
        let mut last = 0;
        for (at, task) in tasks.iter().enumerate() {
            last = self.places.get(&task.spec.id).copied().unwrap_or(last);
            keys.push((last, at));
        }
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by_key(|&at| keys[at]);
        *tasks = order.into_iter().map(|at| tasks[at].clone()).collect();
    }

    /// Removes references to parents and dependencies that no longer exist. A dependency that I added stays, and is shown
    /// as a problem.
    fn tie_up(&self, theirs: &HashMap<&TaskId, &TaskSpec>, tasks: &mut [Task], overlaps: &mut Vec<String>) {
        let here: HashSet<TaskId> = tasks.iter().map(|task| task.spec.id.clone()).collect();
        let known = |id: &TaskId| self.mine(id).or_else(|| theirs.get(id).or(self.base.get(id)).copied());
        for Task { spec, .. } in tasks {
            let (id, base) = (spec.id.clone(), self.base.get(&spec.id));
            if let Some(parent) = spec.parent.clone().filter(|parent| !here.contains(parent)) {
                let mut above = known(&parent).and_then(|parent| parent.parent.clone());
                // Limited to the number of tasks, in case the parents form a cycle.
                for _ in 0..here.len() {
                    let Some(gone) = above.as_ref().filter(|above| !here.contains(*above)) else { break };
                    above = known(gone).and_then(|gone| gone.parent.clone());
                }
                spec.parent = above.filter(|above| here.contains(above));
                overlaps.push(format!("{id} is no longer a subtask of {parent}, which is deleted"));
            }
            let mine = self.mine(&id);
            spec.depends_on.retain(|on| {
                let Some(gone) = on.here().filter(|on| !here.contains(*on)) else { return true };
                let was_asked = base.is_some_and(|base| base.depends_on.contains(on));
                let i_ask = !was_asked && mine.is_some_and(|mine| mine.depends_on.contains(on));
                if i_ask {
                    overlaps.push(format!("your {id} depends on {gone}, which they deleted"));
                } else if !was_asked {
                    overlaps.push(format!("{id} no longer depends on {gone}, which you deleted"));
                }
                i_ask
            });
        }
    }
}

/// A task or the plan, merged field by field.
struct Fields<'a, T> {
    base: &'a T,
    mine: &'a T,
    theirs: &'a T,
    /// The prefix of its messages: `t3: `.
    whose: String,
    overlaps: &'a mut Vec<String>,
}

impl<T> Fields<'_, T> {
    /// My value if I changed the field, theirs otherwise.
    fn pick<F: PartialEq + Clone>(&mut self, name: &str, field: impl Fn(&T) -> &F) -> F {
        self.merge(name, field, |_| String::new())
    }

    /// Like `pick`, for a text: the losing text of theirs is quoted.
    fn pick_text(&mut self, name: &str, field: impl Fn(&T) -> &String) -> String {
        self.merge(name, field, |theirs| format!(", theirs was: {}", text::truncate(theirs, QUOTED_MAX)))
    }

    fn merge<F: PartialEq + Clone>(
        &mut self,
        name: &str,
        field: impl Fn(&T) -> &F,
        quoted: impl Fn(&F) -> String,
    ) -> F {
        let (base, mine, theirs) = (field(self.base), field(self.mine), field(self.theirs));
        if base != mine && base != theirs && mine != theirs {
            let quoted = quoted(theirs);
            self.overlaps.push(format!("{}both changed {name}; yours wins{quoted}", self.whose));
        }
        if base == mine { theirs.clone() } else { mine.clone() }
    }
}

fn merged_task(base: &TaskSpec, mine: &TaskSpec, theirs: &TaskSpec, overlaps: &mut Vec<String>) -> TaskSpec {
    let mut depends_on: Vec<Dependency> = theirs.depends_on.clone();
    depends_on.retain(|on| mine.depends_on.contains(on) || !base.depends_on.contains(on));
    for on in mine.depends_on.iter().filter(|on| !base.depends_on.contains(on)) {
        if !depends_on.contains(on) {
            depends_on.push(on.clone());
        }
    }
    let mut fields = Fields { base, mine, theirs, whose: format!("{}: ", theirs.id), overlaps };
    TaskSpec {
        id: theirs.id.clone(),
        description: fields.pick_text("description", |task| &task.description),
        parent: fields.pick("parent", |task| &task.parent),
        depends_on,
        when: fields.pick("trigger rule", |task| &task.when),
        complexity: fields.pick("complexity", |task| &task.complexity),
        notes: fields.pick_text("notes", |task| &task.notes),
        tools: fields.pick("tools", |task| &task.tools),
        skip: fields.pick("skip", |task| &task.skip),
        locks: fields.pick("locks", |task| &task.locks),
        work: fields.pick("work", |task| &task.work),
        check: fields.pick("check", |task| &task.check),
        retry: fields.pick("retries", |task| &task.retry),
        timeout_seconds: fields.pick("timeout", |task| &task.timeout_seconds),
        priority: fields.pick("priority", |task| &task.priority),
        provides: fields.pick("provides", |task| &task.provides),
        thinking: fields.pick("thinking", |task| &task.thinking),
        foreign: fields.pick("foreign fields", |task| &task.foreign),
    }
}

fn merged_plan(base: &PlanSpec, mine: &PlanSpec, theirs: &PlanSpec, overlaps: &mut Vec<String>) -> PlanSpec {
    let mut fields = Fields { base, mine, theirs, whose: "the plan: ".to_owned(), overlaps };
    PlanSpec {
        title: fields.pick_text("title", |plan| &plan.title),
        goal: fields.pick_text("goal", |plan| &plan.goal),
        status: fields.pick_text("status", |plan| &plan.status),
        owner: fields.pick_text("owner", |plan| &plan.owner),
        queue: fields.pick_text("queue", |plan| &plan.queue),
        token_budget: fields.pick("token budget", |plan| &plan.token_budget),
        body: fields.pick_text("body", |plan| &plan.body),
        foreign: fields.pick("foreign fields", |plan| &plan.foreign),
    }
}
