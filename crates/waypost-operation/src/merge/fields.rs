//! Fields: which value of each holds, and what is asked where several do.

use serde_json::Value;
use waypost_core::{Actor, ActorKind, Draft, FORMAT, Hold};

use super::pending::{Pending, Side};
use super::register::{At, Write, merged};
use super::result::{AnswerKind, ConflictKind, Disposition, VersionValue};
use super::{Merge, PlaceOfTask};
use crate::field::{Contest, Field};
use crate::ids::{RecordId, TaskRef};

impl<'a> Merge<'a> {
    /// Sets the fields of tasks.
    pub(super) fn set_fields(&mut self) {
        let mut sets: Vec<(u32, _)> = std::mem::take(&mut self.reading.sets).into_iter().collect();
        sets.sort_unstable_by_key(|(task, _)| *task);
        for task in 0..self.specs.len() {
            let start = &self.reading.tasks[task];
            let record = self.reading.record(start.at);
            let parent =
                start.start.parent.as_ref().and_then(|parent| self.reading.resolve(self.set, parent, record));
            self.places[task].push(PlaceOfTask { at: start.at, parent, is_fact: true, is_set: false });
            self.held[task].clone_from(&start.start.held);
            if let Some(assignee) = &start.start.assignee {
                self.annotations.entry(task as u32).or_default().assignee = Some(assignee.clone());
            }
        }
        for (task, fields) in sets {
            if let Some(by) = self.gone[task as usize] {
                for write in fields.values().flatten() {
                    self.reading.disposition(write.at, Disposition::Gone { by });
                }
                continue;
            }
            for (field, writes) in fields {
                self.set_field(task, &field, &writes);
            }
        }
    }

    pub(super) fn set_field(&mut self, task: u32, field: &Field, writes: &[Write<'a, &'a Value>]) {
        let initial = field.of_task(&self.specs[task as usize]);
        let replaced = match *field == Field::Held {
            // What a person holds, only a person lifts.
            true => self.replaced(
                writes,
                |merge, hold, lift| {
                    hold.value.is_null() || !merge.is_by_person(hold.at) || merge.is_by_person(lift.at)
                },
                |_, _| false,
            ),
            false => self.replaced(
                writes,
                |_, _, _| true,
                |merge, facts| merge.is_contested(field, Some(&initial), writes, facts),
            ),
        };
        let facts = self.facts(writes, &replaced);
        if *field == Field::Parent {
            return self.set_parent(task, writes, &facts);
        }
        if *field == Field::Held {
            return self.set_hold(task, writes, &facts);
        }
        if *field == Field::Place {
            return self.set_place(task, writes, &facts);
        }
        if *field == Field::Assignee {
            let start = self.reading.tasks[task as usize].start.assignee.as_deref();
            let initial = start.map_or(Value::Null, Value::from);
            if let Some((to, _)) = self.chosen(Some(task), field, Some(&initial), writes, &facts) {
                self.annotations.entry(task).or_default().assignee = to.as_str().map(str::to_owned);
            }
            return;
        }
        let shown = self.chosen(Some(task), field, Some(&initial), writes, &facts);
        let disputed = shown.as_ref().is_none_or(|(_, is_disputed)| *is_disputed);
        if let Some((to, _)) = shown {
            // The value was checked when the record was read.
            let _checked = field.set_on_task(&mut self.specs[task as usize], &to);
        }
        if disputed && matches!(field, Field::Work | Field::Check) {
            self.specs[task as usize].work = None;
            self.disputed.insert(task);
        }
    }

    /// Whether values of a field that were set without knowledge of each other are a question.
    fn is_contested(
        &self,
        field: &Field,
        initial: Option<&Value>,
        writes: &[Write<'_, &Value>],
        facts: &[usize],
    ) -> bool {
        if *field == Field::Parent {
            let parent = |fact: &usize| self.parent_of(&writes[*fact]);
            return facts.iter().any(|fact| parent(fact) != parent(&facts[0]));
        }
        let is_asked = !is_same(writes, facts) && field.contest() != Contest::LastHolds;
        is_asked && merged_text(field, initial, writes, facts).is_none()
    }

    /// Returns the task that a write gives as the parent.
    fn parent_of(&self, write: &Write<'_, &Value>) -> Option<u32> {
        let text = write.value.as_str()?;
        self.reading.resolve(self.set, &text.parse::<TaskRef>().ok()?, self.reading.record(write.at))
    }

    /// Whether a person wrote this.
    pub(super) fn is_by_person(&self, at: At) -> bool {
        self.reading.record(at).by().kind == ActorKind::Person
    }

    /// Of the places among the siblings that nothing replaced, the last one holds.
    pub(super) fn set_place(&mut self, task: u32, writes: &[Write<'a, &'a Value>], facts: &[usize]) {
        let Some((&last, others)) = facts.split_last() else { return };
        for &other in others {
            self.reading.disposition(writes[other].at, Disposition::Superseded { by: writes[last].id });
        }
        if let Some(key) = writes[last].value.as_str() {
            self.moved.insert(task, (key, writes[last].at));
        }
    }

    /// A hold beats its lifting, as any stop does.
    pub(super) fn set_hold(&mut self, task: u32, writes: &[Write<'a, &'a Value>], facts: &[usize]) {
        let is_hold = |fact: &&usize| !writes[**fact].value.is_null();
        // What a person holds, no agent's hold takes the place of.
        let is_persons = |fact: &&usize| {
            is_hold(fact) && self.reading.record(writes[**fact].at).by().kind == ActorKind::Person
        };
        let Some(&last) = facts.iter().rfind(is_persons).or_else(|| facts.iter().rfind(is_hold)) else {
            self.held[task as usize] = None;
            return;
        };
        self.held[task as usize] = hold_of(writes[last].value, self.reading.record(writes[last].at).by());
        let by = writes[last].id;
        for &fact in facts.iter().filter(|&&fact| writes[fact].value.is_null()) {
            self.reading.disposition(writes[fact].at, Disposition::Superseded { by });
        }
    }

    /// Returns the places of the writes that hold, and records what became of the others.
    pub(super) fn facts<T>(&mut self, writes: &[Write<'a, T>], replaced: &[Option<usize>]) -> Vec<usize> {
        for (write, by) in writes.iter().zip(replaced) {
            if let Some(by) = by {
                self.reading.disposition(write.at, Disposition::Superseded { by: writes[*by].id });
            }
        }
        (0..writes.len()).filter(|&place| replaced[place].is_none()).collect()
    }

    /// Returns the value to show, and whether it is disputed. Asks a question if the facts contradict each other.
    pub(super) fn chosen(
        &mut self,
        task: Option<u32>,
        field: &Field,
        initial: Option<&Value>,
        writes: &[Write<'a, &'a Value>],
        facts: &[usize],
    ) -> Option<(Value, bool)> {
        let last = *facts.last()?;
        let shown = writes[last].value.clone();
        if is_same(writes, facts) || field.contest() == Contest::LastHolds {
            return Some((shown, false));
        }
        if let Some(text) = merged_text(field, initial, writes, facts) {
            for &fact in facts {
                self.reading.disposition(writes[fact].at, Disposition::MergedText);
            }
            return Some((Value::from(text), false));
        }
        let is_text = shown.is_string()
            && !matches!(
                field,
                Field::Parent
                    | Field::Digest
                    | Field::Foreign(_)
                    | Field::When
                    | Field::Refinement
                    | Field::Complexity
            );
        self.ask_about_field(task, field, writes, facts, is_text);
        Some((shown, true))
    }

    pub(super) fn ask_about_field(
        &mut self,
        task: Option<u32>,
        field: &Field,
        writes: &[Write<'a, &'a Value>],
        facts: &[usize],
        is_text: bool,
    ) {
        let mut sides = Vec::new();
        for &fact in facts {
            self.reading.disposition(writes[fact].at, Disposition::Disputed);
            let record = self.reading.record(writes[fact].at);
            sides.push(Side { record, to: VersionValue::Field(writes[fact].value.clone()), act: None });
        }
        let actions = facts.iter().map(|&fact| self.reading.action_ref(writes[fact].at)).collect();
        self.pending.push(Pending {
            task,
            kind: ConflictKind::Field(field.clone()),
            shown: Some(sides.len() - 1),
            sides,
            answers: if is_text { &[AnswerKind::Take, AnswerKind::Text] } else { &[AnswerKind::Take] },
            tasks: Vec::new(),
            item: None,
            actions,
            by: None,
            unseen: 0,
        });
    }

    /// Collects the places that a task could have: what holds, newest first, then what held before.
    pub(super) fn set_parent(&mut self, task: u32, writes: &[Write<'a, &'a Value>], facts: &[usize]) {
        let place = |place: usize, is_fact: bool| PlaceOfTask {
            at: writes[place].at,
            parent: self.parent_of(&writes[place]),
            is_fact,
            is_set: true,
        };
        let mut places: Vec<PlaceOfTask> = facts.iter().rev().map(|&fact| place(fact, true)).collect();
        let older = (0..writes.len()).rev().filter(|place| !facts.contains(place));
        places.extend(older.map(|older| place(older, false)));
        let first = self.places[task as usize].pop();
        places.extend(first.map(|first| PlaceOfTask { is_fact: false, ..first }));
        let is_disputed = self.is_contested(&Field::Parent, None, writes, facts);
        self.places[task as usize] = places;
        if is_disputed {
            self.ask_about_field(Some(task), &Field::Parent, writes, facts, false);
        }
    }

    /// Merges the fields of the plan.
    pub(super) fn plan_fields(&mut self) -> Draft {
        let mut draft =
            Draft { format: FORMAT.to_owned(), id: Some(self.set.plan().clone()), ..Draft::default() };
        let creates = self.reading.creates.clone();
        let starts: Vec<waypost_core::PlanSpec> = creates
            .iter()
            .map(|(_, start)| waypost_core::PlanSpec {
                title: start.title.clone(),
                goal: start.goal.clone(),
                status: start.status.clone(),
                owner: start.owner.clone(),
                queue: start.queue.clone(),
                token_budget: start.token_budget,
                body: start.body.clone(),
                foreign: start.foreign.clone(),
            })
            .collect();
        if let Some((at, start)) = creates.first() {
            let record = self.reading.record(*at);
            draft.state.created_at = Some(record.at());
            draft.state.created_by = Some(start.created_by.clone().unwrap_or_else(|| record.by().clone()));
        }
        for (_, start) in &creates {
            draft.state.tokens_used = draft.state.tokens_used.saturating_add(start.tokens);
        }
        let mut sets = std::mem::take(&mut self.reading.plan_sets);
        let formats = starts
            .iter()
            .flat_map(|start| start.foreign.0.keys())
            .map(|format| Field::Foreign(format.clone()));
        for field in Field::OF_PLAN.into_iter().chain(formats) {
            sets.entry(field).or_default();
        }
        for (field, sets) in sets {
            // The records live as long as the set; the values with which plans began live here.
            let begun: Vec<(At, RecordId, Value)> = creates
                .iter()
                .zip(&starts)
                .map(|((at, start), spec)| {
                    let value = if field == Field::Archived {
                        Value::from(start.archived)
                    } else {
                        field.of_plan(spec)
                    };
                    (*at, self.reading.record(*at).id(), value)
                })
                .collect();
            if field == Field::Archived {
                let was_archived = begun.iter().any(|(_, _, value)| value.as_bool() == Some(true));
                self.archive(&mut draft, was_archived, &sets);
                continue;
            }
            let to = self.plan_field(&field, &begun, sets);
            if let Some(to) = to {
                // The value was checked when the record was read.
                let _checked = field.set_on_plan(&mut draft.spec, &to);
            }
        }
        draft
    }

    /// Archives the plan if the last one who said anything about it archived it, and had seen everything else.
    fn archive(&mut self, draft: &mut Draft, was_archived: bool, writes: &[Write<'a, &'a Value>]) {
        let replaced = self.replaced(writes, |_, _, _| true, |_, _| false);
        let mut facts = self.facts(writes, &replaced);
        facts.retain(|&fact| {
            let by = self.reading.dismissed.get(&self.reading.action_ref(writes[fact].at)).copied();
            if let Some(by) = by {
                self.reading.disposition(writes[fact].at, Disposition::Dismissed { by });
            }
            by.is_none()
        });
        let Some((&last, others)) = facts.split_last() else {
            draft.state.archived = was_archived && writes.is_empty();
            return;
        };
        for &other in others {
            self.reading.disposition(writes[other].at, Disposition::Superseded { by: writes[last].id });
        }
        if writes[last].value.as_bool() != Some(true) {
            return;
        }
        let at = writes[last].at;
        match self.unseen_by(at) {
            Some(unseen) => {
                let actions = facts.iter().map(|&fact| self.reading.action_ref(writes[fact].at)).collect();
                self.ask_to_delete(at, unseen, ConflictKind::Archive, actions);
            }
            None => {
                let by = self.reading.record(at).by();
                draft.state.archived = true;
                draft.state.archived_by = (by.kind == ActorKind::Person).then(|| by.clone());
            }
        }
    }

    /// Merges one field of the plan, whose first values are those with which it began.
    pub(super) fn plan_field(
        &mut self,
        field: &Field,
        begun: &[(At, RecordId, Value)],
        sets: Vec<Write<'a, &'a Value>>,
    ) -> Option<Value> {
        // What a set replaces, it names; so do the values with which the plan began count as writes that may be named.
        let mut writes: Vec<Write<'_, &Value>> = begun
            .iter()
            .map(|(at, id, value)| Write { at: *at, id: *id, over: &[], value })
            .chain(sets.iter().map(|write| Write {
                at: write.at,
                id: write.id,
                over: write.over,
                value: write.value,
            }))
            .collect();
        writes.sort_by_key(|write| write.at);
        let replaced = self.replaced(
            &writes,
            |_, _, _| true,
            |merge, facts| merge.is_contested(field, None, &writes, facts),
        );
        let facts: Vec<usize> = (0..writes.len()).filter(|&place| replaced[place].is_none()).collect();
        let is_begun = |at: At| begun.iter().any(|(other, _, _)| *other == at);
        for (write, by) in writes.iter().zip(&replaced) {
            if let Some(by) = by.filter(|_| !is_begun(write.at)) {
                self.reading.disposition(write.at, Disposition::Superseded { by: writes[by].id });
            }
        }
        let shown = writes[*facts.last()?].value.clone();
        if is_same(&writes, &facts) {
            return Some(shown);
        }
        if let Some(text) = merged_text(field, None, &writes, &facts) {
            for &fact in facts.iter().filter(|&&fact| !is_begun(writes[fact].at)) {
                self.reading.disposition(writes[fact].at, Disposition::MergedText);
            }
            return Some(Value::from(text));
        }
        let mut sides = Vec::new();
        for &fact in &facts {
            if !is_begun(writes[fact].at) {
                self.reading.disposition(writes[fact].at, Disposition::Disputed);
            }
            let record = self.reading.record(writes[fact].at);
            sides.push(Side { record, to: VersionValue::Field(writes[fact].value.clone()), act: None });
        }
        let actions = facts.iter().map(|&fact| self.reading.action_ref(writes[fact].at)).collect();
        let is_text = shown.is_string() && !matches!(field, Field::Foreign(_));
        self.pending.push(Pending {
            task: None,
            kind: ConflictKind::Field(field.clone()),
            shown: Some(sides.len() - 1),
            sides,
            answers: if is_text { &[AnswerKind::Take, AnswerKind::Text] } else { &[AnswerKind::Take] },
            tasks: Vec::new(),
            item: None,
            actions,
            by: None,
            unseen: 0,
        });
        Some(shown)
    }

    /// Collects the comments of all tasks, in the total order.
    pub(super) fn comment(&mut self) {
        for (task, start) in self.reading.tasks.iter().enumerate() {
            for comment in &start.start.comments {
                self.annotations.entry(task as u32).or_default().add_comment(comment.clone());
            }
        }
        for (_, task, comment) in &self.reading.comments {
            self.annotations.entry(*task).or_default().add_comment(comment.clone());
        }
    }
}

/// Returns the hold that an actor's record says. Nobody holds a task in the name of somebody else, or of an open question.
pub(crate) fn hold_of(value: &Value, author: &Actor) -> Option<Hold> {
    let mut hold: Hold = serde_json::from_value(value.clone()).ok()?;
    if author.kind != ActorKind::System {
        hold.by = author.clone();
    }
    if hold.is_dispute() {
        hold.by = hold.by.unverified();
    }
    Some(hold)
}

/// Whether these writes say the same.
fn is_same(writes: &[Write<'_, &Value>], facts: &[usize]) -> bool {
    facts.iter().all(|&fact| writes[fact].value == writes[facts[0]].value)
}

/// Returns what the texts of these writes come to together, if the field is a text and they do not overlap.
fn merged_text(
    field: &Field,
    initial: Option<&Value>,
    writes: &[Write<'_, &Value>],
    facts: &[usize],
) -> Option<String> {
    if field.contest() != Contest::Text {
        return None;
    }
    let texts = writes.iter().map(|write| Write {
        at: write.at,
        id: write.id,
        over: write.over,
        value: write.value.as_str().unwrap_or_default(),
    });
    let text = merged(initial.and_then(Value::as_str), &Vec::from_iter(texts), facts)?;
    // Two edits that each leave something must not leave a task without a description.
    let is_gone = *field == Field::Description && text.trim().is_empty();
    (!is_gone && field.check_bytes(text.len()).is_ok()).then_some(text)
}
