//! Outcomes of tasks, stops of the plan, and tokens.

use waypost_core::{
    Actor, ActorKind, Draft, PLAN_ENDED, Phase, SharedStop, Status, StopKind, TaskState, Timestamp, limits,
};

use super::pending::{Pending, Side, SideAct};
use super::reading::OutcomeWrite;
use super::register::{At, Write};
use super::result::{AnswerKind, ConflictKind, Disposition, VersionValue};
use super::{Added, Merge, add_tokens};
use crate::action::{Action, ActionRef, OutcomeKind};
use crate::field::Field;
use crate::ids::RecordId;
use crate::record::ParsedRecord;

impl<'a> Merge<'a> {
    /// Decides how tasks ended.
    pub(super) fn end_tasks(&mut self) {
        for task in 0..self.specs.len() as u32 {
            let Added { at, start } = Added::of(&self.reading, task);
            // What a person stopped before the plan was shared, only a person opens again.
            let is_retry = |write: &Write<'a, OutcomeWrite<'a>>| {
                matches!(write.value, OutcomeWrite::Retry) && !self.is_by_person(write.at)
            };
            let is_persons = start.state.as_ref().is_some_and(|state| state.by.is_some());
            let holds = match self.reading.outcomes.get(&task) {
                None => true,
                Some(writes) => is_persons && writes.iter().all(is_retry),
            };
            if let Some(state) = start.state.as_ref().filter(|_| holds) {
                let record = self.reading.record(at);
                let (outcome, text, output) = (state.outcome, state.text.as_ref(), state.output.as_ref());
                let mut ended = state_of(outcome, text, output, record.at(), record.by());
                if state.by.is_some() {
                    ended.change_aside(|aside| aside.stopped_by.clone_from(&state.by));
                }
                self.states[task as usize] = ended;
            }
        }
        let mut outcomes: Vec<(u32, Vec<Write<'a, OutcomeWrite<'a>>>)> =
            std::mem::take(&mut self.reading.outcomes).into_iter().collect();
        outcomes.sort_unstable_by_key(|(task, _)| *task);
        for (task, writes) in outcomes {
            self.last_outcome.extend(writes.iter().map(|write| (task, write.at)));
            if let Some(by) = self.gone[task as usize] {
                writes.iter().for_each(|write| self.reading.disposition(write.at, Disposition::Gone { by }));
                continue;
            }
            self.end_task(task, &writes);
        }
    }

    pub(super) fn end_task(&mut self, task: u32, writes: &[Write<'a, OutcomeWrite<'a>>]) {
        let kind = |fact: usize| match &writes[fact].value {
            OutcomeWrite::Report { outcome, .. } => Some(*outcome),
            OutcomeWrite::Retry => None,
        };
        let replaced = self.replaced(
            writes,
            |merge, end, newer| {
                !(merge.is_by_person(end.at) && is_stop(&end.value)) || merge.is_by_person(newer.at)
            },
            |_, facts| {
                let mut kinds: Vec<OutcomeKind> = facts.iter().filter_map(|&fact| kind(fact)).collect();
                if kinds.contains(&OutcomeKind::Done) {
                    kinds.retain(|kind| *kind != OutcomeKind::Reported);
                }
                kinds.iter().any(|other| *other != kinds[0])
            },
        );
        let facts = self.facts(writes, &replaced);
        let mut ends: Vec<usize> = facts.iter().copied().filter(|&fact| kind(fact).is_some()).collect();
        let Some(&last) = ends.last() else { return };
        // An outcome beats a retry that did not see it.
        for &retry in facts.iter().filter(|&&fact| kind(fact).is_none()) {
            self.reading.disposition(writes[retry].at, Disposition::Superseded { by: writes[last].id });
        }
        // Where the check has passed somewhere, the report is done.
        if let Some(&done) = ends.iter().rfind(|&&end| kind(end) == Some(OutcomeKind::Done)) {
            for &end in ends.iter().filter(|&&end| kind(end) == Some(OutcomeKind::Reported)) {
                self.reading.disposition(writes[end].at, Disposition::Superseded { by: writes[done].id });
            }
            ends.retain(|&end| kind(end) != Some(OutcomeKind::Reported));
        }
        let Some(&last) = ends.last() else { return };
        if ends.iter().any(|&end| kind(end) != kind(last)) {
            let mut sides = Vec::new();
            for &end in &ends {
                self.reading.disposition(writes[end].at, Disposition::Disputed);
                let OutcomeWrite::Report { outcome, text, output } = writes[end].value.clone() else {
                    continue;
                };
                let to = VersionValue::Outcome { outcome, text: text.cloned(), output: output.cloned() };
                sides.push(Side { record: self.reading.record(writes[end].at), to, act: None });
            }
            self.disputed.insert(task);
            self.pending.push(Pending {
                task: Some(task),
                kind: ConflictKind::Outcome,
                sides,
                shown: None,
                answers: &[AnswerKind::Take, AnswerKind::Dismiss],
                tasks: Vec::new(),
                item: None,
                actions: ends.iter().map(|&end| self.reading.action_ref(writes[end].at)).collect(),
                by: None,
                unseen: 0,
            });
            return;
        }
        let OutcomeWrite::Report { outcome, text, output } = &writes[last].value else { return };
        let record = self.reading.record(writes[last].at);
        // All results are kept, as far as there is room.
        let mut texts: Vec<&String> = Vec::new();
        for &end in &ends {
            if let OutcomeWrite::Report { text: Some(text), .. } = &writes[end].value
                && !texts.contains(text)
            {
                texts.push(text);
            }
        }
        let all = texts.iter().map(|text| text.as_str()).collect::<Vec<&str>>().join("\n\n");
        let all = (!texts.is_empty() && all.len() <= limits::TEXT_BYTES_MAX).then_some(all);
        let text = all.as_ref().or(*text);
        let mut state = state_of(*outcome, text, *output, record.at(), record.by());
        // What a person stopped, no agent opens again in any clone.
        let is_stop = is_stop(&writes[last].value);
        if is_stop && record.by().kind == ActorKind::Person {
            state.change_aside(|aside| aside.stopped_by = Some(record.by().clone()));
        }
        self.states[task as usize] = state;
    }

    pub(super) fn charge(&mut self, draft: &mut Draft) {
        for (task, start) in self.reading.tasks.iter().enumerate() {
            add_tokens(&mut self.specs[task], start.start.tokens);
        }
        for (task, tokens, moved) in &self.reading.charges {
            if !moved {
                draft.state.tokens_used = draft.state.tokens_used.saturating_add(*tokens);
            }
            if let Some(task) = task {
                add_tokens(&mut self.specs[*task as usize], *tokens);
            }
        }
    }

    /// Returns the stop that holds: an end before a pause, a pause before a rejection, and of equal ones the last.
    pub(super) fn stop(&mut self) -> Option<SharedStop> {
        let mut holding: Option<usize> = None;
        for place in 0..self.reading.stops.len() {
            let at = self.reading.stops[place].at;
            // What a person stopped, only a person resumes.
            let is_persons = self.is_by_person(at);
            let mut lifts = self.reading.resumed.get(&self.reading.record(at).id()).into_iter().flatten();
            let by_whom = |id: &&RecordId| {
                let record = self.set.get(**id).and_then(ParsedRecord::known);
                !is_persons || record.is_some_and(|record| record.by().kind == ActorKind::Person)
            };
            if let Some(by) = lifts.find(by_whom).copied() {
                self.reading.disposition(at, Disposition::Superseded { by });
                continue;
            }
            let rank = |place: usize| match self.reading.stops[place].kind {
                StopKind::Completed | StopKind::Failed | StopKind::Cancelled => 2,
                StopKind::Paused => 1,
                StopKind::Rejected => 0,
            };
            if holding.is_none_or(|known| rank(place) >= rank(known)) {
                holding = Some(place);
            }
        }
        let stop = &self.reading.stops[holding?];
        let record = self.reading.record(stop.at);
        Some(SharedStop {
            kind: stop.kind,
            reason: stop.reason.to_owned(),
            by: stop.by.cloned(),
            actor: record.by().clone(),
            at: record.at(),
        })
    }

    /// Whether somebody deleted the plan who had seen everything else.
    pub(super) fn delete(&mut self) -> bool {
        let deletes = self.reading.deletes.clone();
        let mut unseen: Vec<(At, u32)> = Vec::new();
        let mut by = None;
        for at in deletes {
            if let Some(by) = self.reading.dismissed.get(&self.reading.action_ref(at)).copied() {
                self.reading.disposition(at, Disposition::Dismissed { by });
                continue;
            }
            match self.unseen_by(at) {
                Some(other) => unseen.push((at, other)),
                None => by = Some(self.reading.record(at).id()),
            }
        }
        for (at, other) in unseen {
            if let Some(by) = by {
                self.reading.disposition(at, Disposition::Superseded { by });
                continue;
            }
            let actions = vec![self.reading.action_ref(at)];
            self.ask_to_delete(at, other, ConflictKind::Delete, actions);
        }
        by.is_some()
    }

    /// Returns a record that changed the plan beside an act, neither having seen the other.
    pub(super) fn unseen_by(&mut self, at: At) -> Option<u32> {
        let says_nothing = |action: &Action| match action {
            Action::Set { field, .. } => *field == Field::Archived,
            Action::Delete {}
            | Action::Dismiss { .. }
            | Action::Stop { .. }
            | Action::Resume { .. }
            | Action::Approve { .. }
            | Action::Charge { .. } => true,
            Action::Create(_)
            | Action::Add(_)
            | Action::Include { .. }
            | Action::Exclude { .. }
            | Action::Remove { .. }
            | Action::Report { .. }
            | Action::Retry { .. }
            | Action::Claim { .. }
            | Action::Ask { .. }
            | Action::Answer { .. }
            | Action::Comment { .. } => false,
        };
        let changes = |number: &u32| {
            let actions = self.reading.records[*number as usize].actions();
            !actions.iter().all(says_nothing)
        };
        let others: Vec<u32> = (0..self.reading.records.len() as u32).filter(changes).collect();
        let saw = self.saw_each(at.0, &others);
        let unseen: Vec<u32> =
            others.into_iter().zip(saw).filter(|(_, saw)| !saw).map(|(one, _)| one).collect();
        unseen.into_iter().find(|&other| !self.saw_each(other, &[at.0])[0])
    }

    /// Asks whether a plan is to be gone that somebody else changed meanwhile.
    pub(super) fn ask_to_delete(&mut self, at: At, other: u32, kind: ConflictKind, actions: Vec<ActionRef>) {
        let act = if kind == ConflictKind::Archive { "archived the plan" } else { "deleted the plan" };
        let (record, by) = (self.reading.record(at), self.reading.records[other as usize]);
        let why = "its author had not seen everything".to_owned();
        self.reading.disposition(at, Disposition::SetAside { why, by: Some(by.id()) });
        let added = self.reading.tasks.iter().position(|task| task.at.0 == other);
        let unseen = match added {
            Some(task) => SideAct::new("added {}", [task as u32]),
            None => {
                let named = by.actions().iter().flat_map(crate::set::tasks_of);
                let tasks = named.filter_map(|task| self.reading.resolve(self.set, task, by));
                let tasks: Vec<u32> = tasks.collect();
                match tasks.is_empty() {
                    true => SideAct::new("changed the plan", []),
                    false => self.act_on(other, &tasks),
                }
            }
        };
        self.pending.push(Pending {
            task: None,
            kind,
            sides: vec![
                Side { record, to: VersionValue::Shown, act: Some(SideAct::new(act, [])) },
                Side { record: by, to: VersionValue::Shown, act: Some(unseen) },
            ],
            shown: None,
            answers: &[AnswerKind::Keep, AnswerKind::Remove],
            tasks: Vec::new(),
            item: None,
            actions,
            by: Some(by),
            unseen: 0,
        });
    }

    /// A plan arrives as a draft, or as ended if its author ended it or all its tasks have.
    pub(super) fn phase(
        &self,
        end: Option<StopKind>,
        order: &[u32],
        is_group: &dyn Fn(u32) -> bool,
    ) -> Phase {
        match end {
            Some(StopKind::Completed) => return Phase::Completed,
            Some(StopKind::Failed) => return Phase::Failed,
            Some(StopKind::Cancelled) => return Phase::Cancelled,
            Some(StopKind::Paused | StopKind::Rejected) | None => {}
        }
        let mut leaves =
            order.iter().filter(|&&task| !is_group(task)).map(|&task| &self.states[task as usize]).peekable();
        if leaves.peek().is_none() {
            return Phase::Draft;
        }
        let mut phase = Phase::Completed;
        for state in leaves {
            phase = match (state.status, phase) {
                (Status::Pending | Status::Running, _) => return Phase::Draft,
                (Status::Failed, _) => Phase::Failed,
                (Status::Cancelled, Phase::Completed) => Phase::Cancelled,
                (Status::Cancelled | Status::Done | Status::Skipped, phase) => phase,
            };
        }
        phase
    }
}

/// Whether somebody decided that a task is not done. What only the end of the plan cancelled is no decision.
fn is_stop(write: &OutcomeWrite<'_>) -> bool {
    let OutcomeWrite::Report { outcome, text, .. } = write else { return false };
    matches!(outcome, OutcomeKind::Cancelled | OutcomeKind::Skipped)
        && text.is_none_or(|text| text != PLAN_ENDED)
}

/// Returns the state of a task that ended, or that is reported as done.
fn state_of(
    outcome: OutcomeKind,
    text: Option<&String>,
    output: Option<&waypost_core::Json>,
    at: Timestamp,
    by: &Actor,
) -> TaskState {
    let mut state = TaskState::default();
    let (text, output) = (text.cloned(), output.cloned());
    match outcome {
        OutcomeKind::Reported => {
            let report = waypost_core::Report { result: text, output, at, by: by.clone() };
            state.change_aside(|aside| aside.reported = Some(report));
            return state;
        }
        OutcomeKind::Done => (state.status, state.result, state.output) = (Status::Done, text, output),
        OutcomeKind::Failed => (state.status, state.error) = (Status::Failed, text),
        OutcomeKind::Skipped => (state.status, state.reason) = (Status::Skipped, text),
        OutcomeKind::Cancelled => (state.status, state.reason) = (Status::Cancelled, text),
    }
    state.finished_at = Some(at);
    state
}
