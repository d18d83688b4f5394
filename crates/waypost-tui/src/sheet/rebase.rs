//! The same edits on another state of the plan: what one changed stays changed, what others changed is taken over.

use std::collections::HashMap;

use waypost_core::{Dependency, Draft, PlanSpec, Task, TaskId, TaskSpec};

use super::Sheet;
use crate::app::Loaded;

impl Sheet {
    /// The plan as others have left it, with the edits of this sheet made on it. They can be taken back as one.
    pub fn rebased(&self, loaded: Loaded) -> Self {
        let mut sheet = Self::new(loaded);
        let merged = self.merged(&sheet.base);
        let words = format!("your edits, on version {}", sheet.base.version);
        sheet.replace(&merged, &words);
        sheet
    }

    fn merged(&self, theirs: &Draft) -> Draft {
        let base: HashMap<&TaskId, &TaskSpec> =
            self.base.tasks.iter().map(|task| (&task.spec.id, &task.spec)).collect();
        let mut merged =
            Draft { spec: merged_plan(&self.base.spec, &self.spec, &theirs.spec), ..theirs.clone() };
        // What I took out is out, with what others may have put under it.
        let removed = |id: &TaskId| base.contains_key(id) && !self.places.contains_key(id);
        let mut gone: Vec<TaskId> = Vec::new();
        merged.tasks.retain(|task| {
            let out = removed(&task.spec.id)
                || task.spec.parent.as_ref().is_some_and(|parent| gone.contains(parent));
            if out {
                gone.push(task.spec.id.clone());
            }
            !out
        });
        for task in &mut merged.tasks {
            if let (Some(&base), Some(at)) = (base.get(&task.spec.id), self.place(&task.spec.id)) {
                task.spec = merged_task(base, self.rows[at].spec(), &task.spec);
            }
            task.spec.depends_on.retain(|on| on.here().is_none_or(|on| !gone.contains(on)));
        }
        self.put_new(&base, &mut merged.tasks);
        self.reorder(&mut merged.tasks);
        merged
    }

    /// My new tasks, each behind the row that it stands behind on my sheet, as far as that is still there.
    fn put_new(&self, base: &HashMap<&TaskId, &TaskSpec>, tasks: &mut Vec<Task>) {
        for (at, row) in self.rows.iter().enumerate().filter(|(_, row)| !base.contains_key(row.id())) {
            if tasks.iter().any(|task| task.spec.id == *row.id()) {
                continue;
            }
            let before = self.rows[..at].iter().rev();
            let found =
                before.filter_map(|row| tasks.iter().position(|task| task.spec.id == *row.id())).next();
            let mut spec = row.spec().clone();
            if spec.parent.as_ref().is_some_and(|parent| !tasks.iter().any(|task| task.spec.id == *parent)) {
                spec.parent = None;
            }
            tasks.insert(found.map_or(0, |at| at + 1), Task::new(spec));
        }
    }

    /// My order, if I moved anything: tasks that others added stay behind those that they stood behind.
    fn reorder(&self, tasks: &mut Vec<Task>) {
        let mine: Vec<&TaskId> =
            self.rows.iter().map(super::Row::id).filter(|id| self.was_in_base(id)).collect();
        let was: Vec<&TaskId> = self
            .base
            .tasks
            .iter()
            .map(|task| &task.spec.id)
            .filter(|id| self.places.contains_key(*id))
            .collect();
        if mine == was {
            return;
        }
        let mut keys: Vec<(usize, usize)> = Vec::with_capacity(tasks.len());
        let mut last = 0;
        for (at, task) in tasks.iter().enumerate() {
            last = self.place(&task.spec.id).unwrap_or(last);
            keys.push((last, at));
        }
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by_key(|&at| keys[at]);
        *tasks = order.into_iter().map(|at| tasks[at].clone()).collect();
    }
}

/// `mine` where I changed it, `theirs` where I did not.
fn pick<T: PartialEq + Clone>(base: &T, mine: &T, theirs: &T) -> T {
    if base == mine { theirs.clone() } else { mine.clone() }
}

fn merged_task(base: &TaskSpec, mine: &TaskSpec, theirs: &TaskSpec) -> TaskSpec {
    let mut depends_on: Vec<Dependency> = theirs.depends_on.clone();
    depends_on.retain(|on| mine.depends_on.contains(on) || !base.depends_on.contains(on));
    for on in mine.depends_on.iter().filter(|on| !base.depends_on.contains(on)) {
        if !depends_on.contains(on) {
            depends_on.push(on.clone());
        }
    }
    TaskSpec {
        id: theirs.id.clone(),
        description: pick(&base.description, &mine.description, &theirs.description),
        parent: pick(&base.parent, &mine.parent, &theirs.parent),
        depends_on,
        when: pick(&base.when, &mine.when, &theirs.when),
        complexity: pick(&base.complexity, &mine.complexity, &theirs.complexity),
        notes: pick(&base.notes, &mine.notes, &theirs.notes),
        tools: pick(&base.tools, &mine.tools, &theirs.tools),
        skip: pick(&base.skip, &mine.skip, &theirs.skip),
        locks: pick(&base.locks, &mine.locks, &theirs.locks),
        work: pick(&base.work, &mine.work, &theirs.work),
        check: pick(&base.check, &mine.check, &theirs.check),
        retry: pick(&base.retry, &mine.retry, &theirs.retry),
        timeout_seconds: pick(&base.timeout_seconds, &mine.timeout_seconds, &theirs.timeout_seconds),
        priority: pick(&base.priority, &mine.priority, &theirs.priority),
        provides: pick(&base.provides, &mine.provides, &theirs.provides),
        thinking: pick(&base.thinking, &mine.thinking, &theirs.thinking),
        foreign: pick(&base.foreign, &mine.foreign, &theirs.foreign),
    }
}

fn merged_plan(base: &PlanSpec, mine: &PlanSpec, theirs: &PlanSpec) -> PlanSpec {
    PlanSpec {
        title: pick(&base.title, &mine.title, &theirs.title),
        goal: pick(&base.goal, &mine.goal, &theirs.goal),
        status: pick(&base.status, &mine.status, &theirs.status),
        owner: pick(&base.owner, &mine.owner, &theirs.owner),
        queue: pick(&base.queue, &mine.queue, &theirs.queue),
        token_budget: pick(&base.token_budget, &mine.token_budget, &theirs.token_budget),
        body: pick(&base.body, &mine.body, &theirs.body),
        foreign: pick(&base.foreign, &mine.foreign, &theirs.foreign),
    }
}
