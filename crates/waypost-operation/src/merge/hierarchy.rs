//! Parents, dependencies and lists: what would break the plan is set aside.

use std::collections::HashSet;

use serde_json::Value;
use waypost_core::{Dependency, Lock, LockMode, TaskId, limits};

use super::pending::{Pending, Side, SideAct};
use super::reading::{Inclusion, Item};
use super::register::At;
use super::result::{AnswerKind, ConflictKind, Disposition, VersionValue};
use super::structure::{Candidate, Edge, build};
use super::{Dependencies, Merge};
use crate::action::ListField;
use crate::field::Field;
use crate::ids::RecordId;

impl<'a> Merge<'a> {
    /// Chooses parents and dependencies. The dependencies are the numbers of tasks, each with its place in the total order.
    pub(super) fn structure(&mut self) -> (Vec<Option<u32>>, Dependencies) {
        let count = self.specs.len();
        let mut candidates: Vec<Vec<Candidate>> = Vec::with_capacity(count);
        for (task, places) in self.places.iter().enumerate() {
            let here = |parent: Option<u32>| parent.filter(|&parent| self.gone[parent as usize].is_none());
            let usable = places
                .iter()
                .map(|place| Candidate { order: (place.at.0, place.at.1, 0), parent: here(place.parent) });
            candidates.push(if self.gone[task].is_some() { Vec::new() } else { usable.collect() });
        }
        let mut edges: Vec<Edge> = Vec::new();
        let mut edge_items: Vec<Item> = Vec::new();
        let mut tasks: Vec<u32> = self.reading.lists.keys().copied().collect();
        tasks.sort_unstable();
        for task in tasks {
            for ((list, item), inclusions) in &self.reading.lists[&task] {
                let (ListField::DependsOn, Item::Task(on)) = (list, item) else { continue };
                if !self.is_here(task) || !self.is_here(*on) {
                    continue;
                }
                let holds = |inclusion: &&Inclusion| inclusion.excluded_by.is_none();
                if let Some(first) = inclusions.iter().filter(holds).min_by_key(|one| (one.at, one.place)) {
                    let order = (first.at.0, first.at.1, first.place + 1);
                    edges.push(Edge { order, task, on: *on });
                    edge_items.push(item.clone());
                }
            }
        }
        let built = build(count, &candidates, &edges);
        for (task, place, rejected) in built.passed_over {
            self.pass_over(task, place, rejected.path, rejected.by);
        }
        let mut rejected_edges: HashSet<usize> = HashSet::new();
        for (edge, rejected) in built.rejected {
            rejected_edges.insert(edge);
            self.set_dependency_aside(&edges[edge], &edge_items[edge], rejected.path, rejected.by);
        }
        let mut dependencies = Dependencies::new();
        for (number, edge) in edges.iter().enumerate().filter(|(number, _)| !rejected_edges.contains(number))
        {
            let _kept = number;
            dependencies.entry(edge.task).or_default().push((edge.order, edge.on));
        }
        let mut parents = built.parent;
        for (task, parent) in parents.iter_mut().enumerate() {
            if self.gone[task].is_some() {
                *parent = None;
            }
        }
        (parents, dependencies)
    }

    pub(super) fn pass_over(&mut self, task: u32, place: usize, path: Vec<u32>, by: Option<u32>) {
        // A tree that is too deep loses whichever place was chosen.
        let places = &self.places[task as usize];
        let Some(place) = places.get(place).cloned() else { return };
        if !place.is_fact && !path.is_empty() {
            return;
        }
        let record = self.reading.record(place.at);
        let by = by.map(|by| self.reading.records[by as usize]);
        if place.is_set && place.is_fact {
            let why = "tasks would wait for each other, or lie too deep".to_owned();
            self.reading.disposition(place.at, Disposition::SetAside { why, by: by.map(|by| by.id()) });
        }
        let facts = self.places[task as usize].iter().filter(|place| place.is_fact && place.is_set);
        let actions = facts.map(|place| self.reading.action_ref(place.at)).collect();
        let act = match place.parent {
            Some(parent) => SideAct::new("moved {} below {}", [task, parent]),
            None => SideAct::new("made {} a root", [task]),
        };
        let side = Side { record, to: VersionValue::Shown, act: Some(act) };
        let is_asked =
            |pending: &&mut Pending<'_>| pending.task == Some(task) && pending.kind == ConflictKind::Parent;
        if let Some(asked) = self.pending.iter_mut().find(is_asked) {
            asked.sides.push(side);
            return;
        }
        self.pending.push(Pending {
            task: Some(task),
            kind: ConflictKind::Parent,
            sides: vec![side],
            shown: None,
            answers: &[AnswerKind::Dismiss],
            tasks: path,
            item: None,
            actions,
            by,
            unseen: 0,
        });
    }

    pub(super) fn set_dependency_aside(&mut self, edge: &Edge, item: &Item, path: Vec<u32>, by: Option<u32>) {
        let by = by.map(|by| self.reading.records[by as usize]);
        let by_id = by.map(|by| by.id());
        let key = (ListField::DependsOn, item.clone());
        let (mut sides, mut actions, mut ats) = (Vec::new(), Vec::new(), Vec::new());
        let inclusions = self.reading.lists.get(&edge.task).and_then(|lists| lists.get(&key));
        for inclusion in inclusions.into_iter().flatten().filter(|one| one.excluded_by.is_none()) {
            let act = Some(SideAct::new("{} depends on {}", [edge.task, edge.on]));
            sides.push(Side { record: self.reading.record(inclusion.at), to: VersionValue::Shown, act });
            actions.push(self.reading.action_ref(inclusion.at));
            if !inclusion.is_start {
                ats.push(inclusion.at);
            }
        }
        for at in ats {
            let why = "tasks would wait for each other".to_owned();
            self.reading.disposition(at, Disposition::SetAside { why, by: by_id });
        }
        let on = self.set.reference(&self.keys[edge.on as usize]);
        self.pending.push(Pending {
            task: Some(edge.task),
            kind: ConflictKind::Dependency,
            sides,
            shown: None,
            answers: &[AnswerKind::Dismiss],
            tasks: path,
            item: Some(Value::from(on.to_string())),
            actions,
            by,
            unseen: 0,
        });
    }

    /// Fills the lists of all tasks but the dependencies on tasks of the plan, which become names later.
    pub(super) fn lists(&mut self, dependencies: &Dependencies) {
        let lists = std::mem::take(&mut self.reading.lists);
        let mut tasks: Vec<(u32, _)> = lists.into_iter().collect();
        tasks.sort_unstable_by_key(|(task, _)| *task);
        for (task, elements) in tasks {
            let gone = self.gone[task as usize];
            let mut here: Vec<((u32, u32, u32), Item)> = Vec::new();
            for ((_, item), inclusions) in elements {
                let on_gone = if let Item::Task(on) = &item { self.gone[*on as usize] } else { None };
                for inclusion in inclusions.iter().filter(|inclusion| !inclusion.is_start) {
                    if let Some(by) = inclusion.excluded_by {
                        self.reading.disposition(inclusion.at, Disposition::Superseded { by });
                    } else if let Some(by) = gone.or(on_gone) {
                        self.reading.disposition(inclusion.at, Disposition::Gone { by });
                    }
                }
                let holding = inclusions.iter().filter(|inclusion| inclusion.excluded_by.is_none());
                let Some(first) = holding.map(|one| (one.at.0, one.at.1, one.place + 1)).min() else {
                    continue;
                };
                if gone.is_none() && !matches!(item, Item::Task(_)) {
                    here.push((first, item));
                }
            }
            here.sort_by_key(|(order, _)| *order);
            let here_count = dependencies.get(&task).map_or(0, Vec::len);
            let spec = &mut self.specs[task as usize];
            for (_, item) in here {
                match item {
                    Item::OtherPlan(there) => {
                        if here_count + spec.depends_on.len() < limits::DEPENDENCIES_MAX {
                            spec.depends_on.push(Dependency::External(Box::new(there)));
                        }
                    }
                    Item::Lock(key, mode) => {
                        let known = spec.locks.iter().position(|lock| lock.key == key);
                        match known {
                            // Who wants it alone gets it alone.
                            Some(known) if mode == LockMode::Exclusive => spec.locks[known].mode = mode,
                            Some(_) => {}
                            None if spec.locks.len() < limits::LOCKS_MAX => {
                                spec.locks.push(Lock { key, mode })
                            }
                            None => {}
                        }
                    }
                    Item::Tool(tool) => spec.tools.get_or_insert_default().push(tool),
                    Item::Label(label) => {
                        let labels = &mut self.annotations.entry(task).or_default().labels;
                        if labels.len() < limits::LABELS_MAX {
                            labels.push(label);
                            labels.sort();
                        }
                    }
                    Item::Task(_) => {}
                }
            }
        }
    }

    /// A task with children has no work of its own.
    pub(super) fn keep_groups_without_work(&mut self, children: &[Vec<u32>]) {
        for task in 0..self.specs.len() as u32 {
            if children[task as usize].is_empty() {
                continue;
            }
            let Some(work) = self.specs[task as usize].work.take() else { continue };
            let to = VersionValue::Field(serde_json::to_value(&work).unwrap_or_default());
            let about: Vec<(At, RecordId)> = self
                .set
                .about(&self.keys[task as usize])
                .into_iter()
                .filter_map(|(record, action)| {
                    let index = record.actions().iter().position(|other| std::ptr::eq(other, action))?;
                    let is_work = matches!(action, crate::action::Action::Set { field: Field::Work, .. });
                    let number = self.reading.records.iter().position(|other| other.id() == record.id())?;
                    is_work.then_some(((number as u32, index as u32), record.id()))
                })
                .collect();
            let applied: Vec<At> = about
                .iter()
                .map(|(at, _)| *at)
                .filter(|at| self.reading.dispositions[at.0 as usize][at.1 as usize] == Disposition::Applied)
                .collect();
            for at in &applied {
                let why = "the task has children".to_owned();
                self.reading.disposition(*at, Disposition::SetAside { why, by: None });
            }
            let record = applied.last().copied().unwrap_or(self.reading.tasks[task as usize].at);
            self.pending.push(Pending {
                task: Some(task),
                kind: ConflictKind::WorkOfGroup,
                sides: vec![Side { record: self.reading.record(record), to, act: None }],
                shown: None,
                answers: &[AnswerKind::Dismiss],
                tasks: Vec::new(),
                item: None,
                actions: applied.iter().map(|at| self.reading.action_ref(*at)).collect(),
                by: None,
                unseen: 0,
            });
        }
    }

    /// Gives each task its name, or the name with the beginning of its record if another task has it.
    pub(super) fn names(&self) -> Vec<Option<TaskId>> {
        let mut names: Vec<Option<TaskId>> = vec![None; self.specs.len()];
        let mut used: HashSet<TaskId> = HashSet::with_capacity(self.specs.len());
        for (task, key) in self.keys.iter().enumerate() {
            if self.gone[task].is_none() && used.insert(key.name.clone()) {
                names[task] = Some(key.name.clone());
            }
        }
        for (task, key) in self.keys.iter().enumerate() {
            if self.gone[task].is_some() || names[task].is_some() {
                continue;
            }
            let suffixed = |chars: usize| {
                let suffix = format!("~{}", key.record.prefix(chars));
                let mut stem = key.name.as_str();
                while stem.len() + suffix.len() > limits::TASK_ID_BYTES_MAX {
                    stem = &stem[..stem.char_indices().last().map_or(0, |(at, _)| at)];
                }
                TaskId::new(format!("{stem}{suffix}")).ok()
            };
            let free = (RecordId::SHORT_CHARS..=RecordId::CHARS)
                .filter_map(suffixed)
                .chain((2..).filter_map(|number| TaskId::new(format!("task~{}~{number}", key.record)).ok()));
            if let Some(name) = free.into_iter().find(|name| !used.contains(name)) {
                used.insert(name.clone());
                names[task] = Some(name);
            }
        }
        names
    }

    /// Returns the tasks in order, parents before their children.
    pub(super) fn order(&self, mut roots: Vec<u32>, children: &[Vec<u32>]) -> Vec<u32> {
        let key = |task: &u32| {
            let added = &self.reading.tasks[*task as usize];
            self.moved.get(task).copied().unwrap_or((added.start.place.as_str(), added.at))
        };
        roots.sort_by_key(key);
        let mut order = Vec::with_capacity(self.specs.len());
        let mut stack: Vec<u32> = roots.into_iter().rev().collect();
        while let Some(task) = stack.pop() {
            order.push(task);
            let mut below = children[task as usize].clone();
            below.sort_by_key(key);
            stack.extend(below.into_iter().rev());
        }
        order
    }
}
