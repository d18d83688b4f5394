//! Puts the merged plan together, with its open questions and what became of each action.

use std::collections::{BTreeMap, HashMap};

use waypost_core::{
    ActorKind, Answer, Dependency, Draft, Hold, PLAN_ENDED, Question, Status, Task, TaskExtras, TaskId,
    TaskSpec, TaskState, limits,
};

use super::register::At;
use super::result::{
    ActionDisposition, Claim, Conflict, ConflictKind, Disposition, Merged, OpenQuestion, ProposedAnswer,
    Renamed, SharedApproval,
};
use super::{Dependencies, Merge};

impl<'a> Merge<'a> {
    pub(super) fn finish(
        mut self,
        plan: &mut Draft,
        parents: &[Option<u32>],
        dependencies: &Dependencies,
        children: &[Vec<u32>],
        order: &[u32],
        names: &[Option<TaskId>],
    ) -> Merged {
        let mut draft = std::mem::take(plan);
        self.charge(&mut draft);
        let stop = self.stop();
        let deleted = self.delete();
        if deleted && !draft.state.archived {
            let by = self.reading.deletes.iter().map(|at| self.reading.record(*at).by()).next_back();
            draft.state.archived = true;
            draft.state.archived_by = by.filter(|by| by.kind == ActorKind::Person).cloned();
        }
        let end = stop.as_ref().filter(|stop| stop.kind.is_end()).map(|stop| (stop.kind, stop.at));
        let is_group = |task: u32| !children[task as usize].is_empty();
        for &task in order {
            if is_group(task) {
                self.states[task as usize] = TaskState::default();
                continue;
            }
            if let Some((_, at)) = end.filter(|_| !self.states[task as usize].status.is_finished()) {
                let state = &mut self.states[task as usize];
                *state = TaskState::default();
                (state.status, state.finished_at) = (Status::Cancelled, Some(at));
                state.reason = Some(PLAN_ENDED.to_owned());
            }
        }
        self.ask_and_answer(&is_group);
        let begun = !self.reading.claims.is_empty()
            || self.states.iter().any(|state| state.status.is_finished() || state.reported().is_some());
        draft.state.phase = self.phase(end.map(|(kind, _)| kind), order, &is_group);
        let conflicts = self.conflicts(order, names, &is_group);
        let mut tasks = Vec::with_capacity(order.len());
        for &task in order {
            tasks.push(self.task(task, parents, dependencies, names, is_group(task)));
        }
        draft.tasks = tasks;
        let renamed = order.iter().filter_map(|&task| {
            let (name, shown) = (&self.keys[task as usize].name, names[task as usize].clone()?);
            (shown != *name).then(|| Renamed { task: shown, name: name.clone() })
        });
        let renamed = renamed.collect();
        let claims = self.claims(names);
        let questions = self.questions(names);
        let approvals = self.reading.approvals.iter().map(|(at, approval)| SharedApproval {
            record: self.reading.record(*at).id(),
            approval: (*approval).clone(),
        });
        Merged {
            archived: draft.state.archived,
            begun,
            conflicts,
            claims,
            questions,
            approvals: approvals.collect(),
            renamed,
            stop,
            deleted,
            newer: self.set.newer(),
            keys: order.iter().map(|&task| self.keys[task as usize].clone()).collect(),
            dispositions: self.dispositions(),
            draft,
        }
    }

    pub(super) fn conflicts(
        &mut self,
        order: &[u32],
        names: &[Option<TaskId>],
        is_group: &dyn Fn(u32) -> bool,
    ) -> Vec<Conflict> {
        let places: HashMap<u32, usize> =
            order.iter().enumerate().map(|(place, &task)| (task, place)).collect();
        let pending = std::mem::take(&mut self.pending);
        let mut conflicts: Vec<(Option<usize>, Conflict)> = Vec::with_capacity(pending.len());
        for question in pending {
            // Its end follows from its children: nothing is open about it.
            let group =
                question.task.filter(|&task| question.kind == ConflictKind::Outcome && is_group(task));
            if let Some(group) = group {
                self.disputed.remove(&group);
                for action in &question.actions {
                    let number = self.reading.records.iter().position(|record| record.id() == action.record);
                    if let Some(number) = number {
                        self.reading.disposition((number as u32, action.index), Disposition::Applied);
                    }
                }
                continue;
            }
            let place = question.task.and_then(|task| places.get(&task).copied());
            conflicts.push((place, question.named(names, &self.keys)));
        }
        conflicts.sort_by(|(a, one), (b, other)| {
            let rest = |conflict: &Conflict| (conflict.subject.clone(), conflict.actions.clone());
            a.cmp(b).then_with(|| rest(one).cmp(&rest(other)))
        });
        conflicts.into_iter().map(|(_, conflict)| conflict).collect()
    }

    pub(super) fn task(
        &mut self,
        task: u32,
        parents: &[Option<u32>],
        dependencies: &Dependencies,
        names: &[Option<TaskId>],
        is_group: bool,
    ) -> Task {
        let number = task as usize;
        let mut spec = std::mem::replace(&mut self.specs[number], TaskSpec::new(TaskId::trusted("-"), ""));
        let mut state = std::mem::take(&mut self.states[number]);
        let name =
            |task: u32| names[task as usize].clone().unwrap_or_else(|| self.keys[task as usize].name.clone());
        spec.id = name(task);
        spec.parent = parents[number].map(name);
        let elsewhere = std::mem::take(&mut spec.depends_on);
        let mut here = dependencies.get(&task).cloned().unwrap_or_default();
        here.sort_unstable();
        spec.depends_on = here.into_iter().map(|(_, on)| Dependency::Task(name(on))).collect();
        spec.depends_on.truncate(limits::DEPENDENCIES_MAX);
        spec.depends_on.extend(elsewhere);
        state.created_at = Some(self.reading.record(self.reading.tasks[number].at).at());
        let question = self.disputed.contains(&task) && !is_group && !state.status.is_finished();
        let hold = self.held[number].take().or_else(|| {
            let reason = "clones did what does not go together; a question about it is open".to_owned();
            question.then(|| Hold::of_dispute(reason))
        });
        if let Some(hold) = hold {
            state.change_aside(|aside| aside.held = Some(hold));
        }
        if let Some(TaskExtras { labels, assignee, comments, .. }) = self.annotations.remove(&task) {
            state.change_aside(|aside| {
                (aside.labels, aside.assignee, aside.comments) = (labels, assignee, comments);
            });
        }
        Task { spec, state }
    }

    /// Gives open tasks the last question of their workers that nobody answered, with the answers to other ones in the
    /// order in which they were given.
    fn ask_and_answer(&mut self, is_group: &dyn Fn(u32) -> bool) {
        let mut answered: Vec<(At, u32, Answer)> = Vec::new();
        for (at, task, text, choices) in std::mem::take(&mut self.reading.asks) {
            self.reading.asks.push((at, task, text, choices));
            let is_open = !self.states[task as usize].status.is_finished() && !is_group(task);
            let is_over = self.last_outcome.get(&task).is_some_and(|last| *last > at);
            if !is_open || is_over || !self.is_here(task) {
                continue;
            }
            let record = self.reading.record(at);
            let given = self.reading.answers.iter().rfind(|(by, other, _, over)| {
                let is_person = self.reading.record(*by).by().kind == ActorKind::Person;
                *other == task && is_person && over.contains(&record.id())
            });
            let given = given.map(|(at, _, answer, _)| {
                let by = self.reading.record(*at);
                let (question, answer) = (text.to_owned(), (*answer).to_owned());
                (*at, task, Answer { question, answer, by: by.by().clone(), at: by.at(), state: None })
            });
            if given.is_some() {
                answered.extend(given);
                continue;
            }
            let question = Question {
                text: text.to_owned(),
                choices: choices.to_vec(),
                state: None,
                by: record.by().to_string(),
                attempt: 0,
                asked_at: record.at(),
            };
            self.states[task as usize].change_aside(|aside| aside.question = Some(question));
        }
        answered.sort_by_key(|(at, ..)| *at);
        for (_, task, answer) in answered {
            self.states[task as usize].change_aside(|aside| aside.add_answer(answer));
        }
    }

    pub(super) fn claims(&self, names: &[Option<TaskId>]) -> Vec<Claim> {
        let mut last: BTreeMap<u32, Claim> = BTreeMap::new();
        for &(at, task, worker) in &self.reading.claims {
            let is_over = self.last_outcome.get(&task).is_some_and(|last| *last > at)
                || self.reading.asks.iter().any(|(asked, other, _, _)| *other == task && *asked > at);
            let is_open = !self.states[task as usize].status.is_finished() && !is_over;
            if let Some(name) = names[task as usize].clone().filter(|_| is_open) {
                let record = self.reading.record(at);
                let (by, from, at) = (record.by().clone(), record.from().clone(), record.at());
                last.insert(task, Claim { task: name, worker: worker.to_owned(), by, from, at });
            }
        }
        last.into_values().collect()
    }

    pub(super) fn questions(&self, names: &[Option<TaskId>]) -> Vec<OpenQuestion> {
        let mut questions = Vec::new();
        for &(at, task, question, choices) in &self.reading.asks {
            let Some(name) = names[task as usize].clone() else { continue };
            let record = self.reading.record(at);
            let answers = self
                .reading
                .answers
                .iter()
                .filter(|(_, other, _, over)| *other == task && over.contains(&record.id()));
            let answers = answers.map(|(at, _, answer, _)| {
                let record = self.reading.record(*at);
                let (by, at) = (record.by().clone(), record.at());
                ProposedAnswer { answer: (*answer).to_owned(), by, at, record: record.id() }
            });
            questions.push(OpenQuestion {
                task: name,
                question: question.to_owned(),
                choices: choices.to_vec(),
                by: record.by().clone(),
                at: record.at(),
                record: record.id(),
                answers: answers.collect(),
            });
        }
        questions
    }

    pub(super) fn dispositions(&mut self) -> Vec<ActionDisposition> {
        let gone = std::mem::take(&mut self.gone);
        for (task, by) in gone.iter().enumerate() {
            if let Some(by) = by {
                let at = self.reading.tasks[task].at;
                self.reading.disposition(at, Disposition::Gone { by: *by });
            }
        }
        let about = self.reading.claims.iter().map(|(at, task, _)| (*at, *task));
        let about = about.chain(self.reading.asks.iter().map(|(at, task, _, _)| (*at, *task)));
        let about = about.chain(self.reading.answers.iter().map(|(at, task, _, _)| (*at, *task)));
        let about = about.chain(self.reading.comments.iter().map(|(at, task, _)| (*at, *task)));
        for (at, task) in about.collect::<Vec<(At, u32)>>() {
            if let Some(by) = gone[task as usize] {
                self.reading.disposition(at, Disposition::Gone { by });
            }
        }
        let dispositions = std::mem::take(&mut self.reading.dispositions);
        let records = self.reading.records.iter().zip(dispositions);
        let dispositions = records.flat_map(|(record, dispositions)| {
            dispositions.into_iter().enumerate().map(|(index, disposition)| ActionDisposition {
                record: record.id(),
                index: index as u32,
                disposition,
            })
        });
        dispositions.collect()
    }
}
