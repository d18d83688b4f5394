//! Decides how a merged plan becomes the plan of this clone: as one version, which starts nothing.
//!
//! Nothing here makes a plan active, creates an attempt or lifts a stop or a hold. What somebody ended elsewhere ends here,
//! and a stop holds here, too.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::super::Plan;
use super::Decision;
use crate::merge_request::{ARCHIVED_ELSEWHERE, ENDED_ELSEWHERE, MergeRequest, StopKind};
use crate::{
    Actor, Answer, Comment, Draft, Event, Hold, PLAN_ENDED, Phase, PlannerNotes, Question, Refusal, Status,
    Task, TaskId, TaskSpec, TaskState, Timestamp, validate,
};

/// The name of the system actor that holds machine work which was opened again elsewhere.
const IMPORT_ACTOR: &str = "import";

/// How often the statuses of tasks are compared in one import. What is left after that follows with the next one.
const STATE_ROUNDS_MAX: usize = 8;

impl Plan {
    pub(super) fn decide_merge(&self, by: &Actor, at: Timestamp, request: &MergeRequest) -> Decision {
        let problems = validate(&request.draft);
        if !problems.is_empty() {
            return Err(Refusal::Invalid { problems });
        }
        let request = self.with_claims_marked(request);
        if self.version == 0 {
            let mut draft = request.draft.clone();
            draft.state.archived = false;
            for task in draft.tasks.iter_mut().filter(|task| was_open_at_end(&task.state)) {
                let created_at = task.state.created_at;
                task.state.forget_aside();
                let aside = task.state.aside.take();
                task.state = TaskState { created_at, aside, ..TaskState::default() };
                draft.state.phase = Phase::Draft;
            }
            let mut events = self.decide_create(by, at, &draft, None)?;
            let mut created = Self::blank(self.id.clone());
            created.advance(&events, at);
            events.extend(created.merging(by, at, &request, false));
            if events.len() == 1 {
                events.push(self.merged(&request, false));
            }
            return Ok(events);
        }
        let events = self.merging(by, at, &request, false);
        let mut after = self.clone();
        after.advance(&events, at);
        let is_opened = self.state.phase.is_finished() && !after.state.phase.is_finished();
        if !is_opened {
            return Ok(events);
        }
        let mut events = self.merging(by, at, &request, true);
        let phase = request.draft.state.phase;
        if phase.is_finished() && !events.iter().any(|event| matches!(event, Event::PlanFinished { .. })) {
            events.push(Event::PlanFinished { phase, summary: self.state.summary.clone(), by: None });
        }
        Ok(events)
    }

    /// Returns the events of the import; none if it changes nothing.
    fn merging(&self, by: &Actor, at: Timestamp, request: &MergeRequest, to_draft: bool) -> Vec<Event> {
        let mut draft = self.as_written_here(&request.draft);
        for (id, hold) in &request.lifted_holds {
            let task = draft.tasks.iter_mut().find(|task| task.spec.id == *id);
            if let Some(task) = task {
                task.state.change_aside(|aside| aside.held = Some(hold.clone()));
            }
        }
        let mut after = self.clone();
        let begins = request.begun && self.state.started_at.is_none();
        let mut events = vec![self.merged(request, to_draft)];
        events.extend(self.released(&draft, &request.renamed));
        events.extend(self.renewed(&draft, &request.renamed));
        for event in &events {
            after.evolve(event, at);
        }
        let replacement = after.replacement(&draft);
        for event in &replacement {
            after.evolve(event, at);
        }
        events.extend(replacement);
        let annotations = after.annotation_events(&draft);
        for event in &annotations {
            after.evolve(event, at);
        }
        events.extend(annotations);
        // What is opened again may open others, and what a failure skips was not open when the plan was ended.
        for last in [false, true] {
            for _ in 0..STATE_ROUNDS_MAX {
                let states = after.state_events(by, &draft, last);
                for event in &states {
                    after.evolve(event, at);
                }
                if states.is_empty() {
                    break;
                }
                events.extend(states);
            }
        }
        if request.untrusted {
            let holds = after.holds_behind(self);
            for event in &holds {
                after.evolve(event, at);
            }
            events.extend(holds);
        }
        let voided = self.voided_by_import(&events, at, request);
        if let Some(event) = &voided {
            after.evolve(event, at);
        }
        events.extend(voided);
        let stops = after.stop_events(request);
        for event in &stops {
            after.evolve(event, at);
        }
        events.extend(stops);
        // Its last task ended elsewhere. A plan that was never started here does not end by itself.
        let (here, wanted) = (after.state.phase, after.end_of_tasks().unwrap_or(draft.state.phase));
        if wanted.is_finished() && matches!(here, Phase::Draft | Phase::AwaitingApproval) {
            let end = Event::PlanFinished { phase: wanted, summary: after.state.summary.clone(), by: None };
            after.evolve(&end, at);
            events.push(end);
        }
        if draft.state.archived && !self.state.archived {
            events.extend(after.running.iter().map(|&number| Event::TaskReleased {
                task: after.spec_of(number).id.clone(),
                reason: ARCHIVED_ELSEWHERE.to_owned(),
            }));
            events.push(Event::PlanArchived { by: request.archived_by.clone() });
        }
        if !draft.state.archived && self.state.archived {
            events.push(Event::PlanUnarchived {});
            // What a person stopped here is visible again, and does not go on because a record says so.
            if self.state.archived_by.is_some() && after.state.phase == Phase::Active {
                let reason = "it was archived here, and taken back in another clone".to_owned();
                events.push(Event::PlanPaused { reason, by: self.state.archived_by.clone() });
            }
        }
        let tokens = draft.state.tokens_used.saturating_sub(self.state.tokens_used);
        if tokens > 0 {
            events.push(Event::TokensCharged { task: None, tokens, call: self.state.calls });
        }
        let asks_the_same = request.removals == self.removals_asked;
        if events.len() == 1 && !begins && asks_the_same { Vec::new() } else { events }
    }

    /// Returns how a plan has ended in which somebody began to work and nothing is left to do, what a failure skipped
    /// included.
    fn end_of_tasks(&self) -> Option<Phase> {
        self.state.started_at?;
        let count = |status: Status| self.counts[status as usize];
        let left = count(Status::Pending) + count(Status::Running);
        let ended = count(Status::Done) + count(Status::Skipped);
        match (left, count(Status::Failed), count(Status::Cancelled)) {
            (1.., _, _) => None,
            (0, 1.., _) => Some(Phase::Failed),
            (0, 0, 1..) => Some(Phase::Cancelled),
            (0, 0, 0) => (ended > 0).then_some(Phase::Completed),
        }
    }

    fn merged(&self, request: &MergeRequest, to_draft: bool) -> Event {
        Event::PlanMerged {
            operations: request.operations,
            from: request.from.clone(),
            state: request.state.clone(),
            questions: request.questions,
            removals: request.removals.clone(),
            to_draft,
            begun: request.begun && self.state.started_at.is_none(),
        }
    }

    /// Returns the merged plan, with lists in the order that they have here: their order means nothing.
    fn as_written_here(&self, merged: &Draft) -> Draft {
        let mut draft = merged.clone();
        for task in &mut draft.tasks {
            let Some(old) = self.find(task.spec.id.as_str()).map(|number| self.spec_of(number)) else {
                continue;
            };
            keep_order(&mut task.spec.depends_on, &old.depends_on);
            keep_order(&mut task.spec.locks, &old.locks);
            let tools = old.tools.clone().unwrap_or_default();
            let mut new = task.spec.tools.clone().unwrap_or_default();
            keep_order(&mut new, &tools);
            if new == tools {
                task.spec.tools.clone_from(&old.tools);
            }
            let notes = |spec: &TaskSpec| spec.thinking.as_deref().cloned().unwrap_or_default();
            let is_same: bool = notes(&task.spec) == notes(old);
            if is_same
                || notes(&task.spec) == PlannerNotes::default() && notes(old) == PlannerNotes::default()
            {
                task.spec.thinking.clone_from(&old.thinking);
            }
        }
        draft
    }

    /// Returns the releases of running tasks that are removed, get children, would run something else, or are called
    /// something else: whoever works on one must not report on the task that has its name now.
    fn released(&self, draft: &Draft, renamed: &[TaskId]) -> Vec<Event> {
        if self.running.is_empty() {
            return Vec::new();
        }
        let specs: HashMap<&str, &TaskSpec> =
            draft.tasks.iter().map(|task| (task.spec.id.as_str(), &task.spec)).collect();
        let parents: HashSet<&TaskId> =
            draft.tasks.iter().filter_map(|task| task.spec.parent.as_ref()).collect();
        let goes_on = |old: &TaskSpec| {
            !renamed.contains(&old.id)
                && specs.get(old.id.as_str()).is_some_and(|new| {
                    let runs_the_same =
                        (&old.work, &old.check, &old.locks) == (&new.work, &new.check, &new.locks);
                    runs_the_same && (old.skip || !new.skip) && !parents.contains(&old.id)
                })
        };
        let stopped = self.running.iter().map(|&number| self.spec_of(number)).filter(|old| !goes_on(old));
        let reason = "its work was changed, removed or renamed by an import";
        stopped.map(|old| Event::TaskReleased { task: old.id.clone(), reason: reason.to_owned() }).collect()
    }

    /// Returns the events that remove the tasks whose ids mean other ones now, which are added afterwards. Their children
    /// stay.
    fn renewed(&self, draft: &Draft, renamed: &[TaskId]) -> Vec<Event> {
        let stays = |id: &TaskId| draft.tasks.iter().any(|task| task.spec.id == *id);
        let gone: Vec<u32> =
            renamed.iter().filter(|id| stays(id)).filter_map(|id| self.find(id.as_str())).collect();
        if gone.is_empty() {
            return Vec::new();
        }
        let children = gone.iter().flat_map(|&number| self.slot(number).children.iter());
        let last = self.roots.len();
        let mut events: Vec<Event> = children
            .enumerate()
            .map(|(place, &child)| Event::TaskMoved {
                task: self.spec_of(child).id.clone(),
                parent: None,
                index: last + place,
            })
            .collect();
        let tasks = gone.iter().map(|&number| self.spec_of(number).id.clone()).collect();
        events.push(Event::TasksRemoved { tasks });
        events
    }

    /// Returns the events that give the tasks of this plan the merged labels, assignees and comments. Comments keep the
    /// time at which they were written, and their order is the same in all clones.
    fn annotation_events(&self, draft: &Draft) -> Vec<Event> {
        let mut events = Vec::new();
        for Task { spec, state: wanted } in &draft.tasks {
            let Some(here) = self.task(spec.id.as_str()) else { continue };
            let (task, here) = (&spec.id, &here.state);
            if here.labels() != wanted.labels() {
                events.push(Event::TaskLabeled { task: task.clone(), labels: wanted.labels().to_vec() });
            }
            if here.assignee() != wanted.assignee() {
                let assignee = wanted.assignee().map(str::to_owned);
                events.push(Event::TaskAssigned { task: task.clone(), assignee });
            }
            let written = wanted.comments().iter().enumerate();
            for (place, Comment { by, at, text }) in
                written.filter(|(_, comment)| !here.comments().contains(comment))
            {
                events.push(Event::TaskCommented {
                    task: task.clone(),
                    by: by.clone(),
                    text: text.clone(),
                    at: Some(*at),
                    place: Some(place as u32),
                });
            }
        }
        events
    }

    /// Returns the events that give the tasks of this plan the merged statuses and holds.
    fn state_events(&self, by: &Actor, draft: &Draft, with_ended: bool) -> Vec<Event> {
        let (mut events, mut questions) = (Vec::new(), Vec::new());
        for task in &draft.tasks {
            let Some(number) = self.find(task.spec.id.as_str()) else { continue };
            let here = self.at(number);
            if !self.slot(number).is_parent() && (with_ended || !was_open_at_end(&task.state)) {
                self.outcome_events(by, number, here, &task.state, draft, &mut events);
                questions.extend(question_events(&task.spec.id, &here.state, &task.state));
            }
            match (task.state.held(), here.state.held()) {
                (Some(Hold { by, reason }), None) => {
                    let (task, by, reason) = (task.spec.id.clone(), by.clone(), reason.clone());
                    events.push(Event::TaskHeld { task, by, reason });
                }
                (Some(Hold { by, reason }), Some(old)) if (&old.by, &old.reason) != (by, reason) => {
                    let (task, by, reason) = (task.spec.id.clone(), by.clone(), reason.clone());
                    events.push(Event::TaskHeld { task, by, reason });
                }
                // The question is answered. What somebody holds here stays held.
                (None, Some(old)) if old.is_dispute() => {
                    events.push(Event::TaskUnheld { task: task.spec.id.clone() });
                }
                (Some(_), Some(_)) | (None, Some(_)) | (None, None) => {}
            }
        }
        // Where a task ends, it asks nothing.
        if events.is_empty() { questions } else { events }
    }

    fn outcome_events(
        &self,
        by: &Actor,
        number: u32,
        here: &Task,
        wanted: &TaskState,
        draft: &Draft,
        events: &mut Vec<Event>,
    ) {
        let (task, state) = (here.spec.id.clone(), &here.state);
        let (result, output) = (wanted.result.clone(), wanted.output.clone());
        let reset = |events: &mut Vec<Event>| {
            if state.status.is_finished() {
                events.push(Event::TasksReset { tasks: vec![task.clone()] });
            }
        };
        let has_reported = |result: &Option<String>, output: &Option<crate::Json>| {
            state.reported().is_some_and(|known| (&known.result, &known.output) == (result, output))
        };
        let is_same_status = state.status == wanted.status;
        let is_history = draft.state.phase.is_finished();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let is_stop_known = wanted.stopped_by().is_none() || state.stopped_by().is_some();
        // Whoever worked on it here is not the one who ended it.
        if state.status == Status::Running && wanted.status.is_finished() {
            let reason = ENDED_ELSEWHERE.to_owned();
            events.push(Event::TaskReleased { task: task.clone(), reason });
        }
        match wanted.status {
            Status::Done if is_same_status && (&state.result, &state.output) == (&result, &output) => {}
            // What a plan that has ended came to is history: nothing starts because of it.
            Status::Done if here.spec.check.is_none() || is_same_status || is_history => {
                events.push(Event::TaskDone { task, result, output, evidence: None });
            }
            // Only a check that ran here makes it done here.
            Status::Done if has_reported(&result, &output) && state.status == Status::Pending => {}
            // It would be skipped again at once.
            Status::Done if self.is_skipped_along(number) => {}
            Status::Done => {
                reset(events);
                events.push(Event::TaskReported { task, result, output, by: by.clone() });
            }
            Status::Failed if is_same_status && text(&state.error) == text(&wanted.error) => {}
            Status::Failed => {
                let error = wanted.error.clone().unwrap_or_default();
                events.push(Event::TaskFailed { task, error, again_at: None, evidence: None });
            }
            Status::Skipped
                if is_same_status
                    && is_stop_known
                    && state.because_of.is_none()
                    && state.reason == wanted.reason => {}
            Status::Skipped => {
                let by = wanted.stopped_by().cloned();
                events.push(Event::TaskSkipped { task, reason: wanted.reason.clone(), by });
            }
            Status::Cancelled
                if is_same_status && is_stop_known && text(&state.reason) == text(&wanted.reason) => {}
            Status::Cancelled => {
                // What is only skipped because of others, or by its author, is cancelled as it is.
                if !self.is_skipped_along(number) {
                    reset(events);
                }
                let reason = wanted.reason.clone().unwrap_or_default();
                let by = wanted.stopped_by().cloned();
                events.push(Event::TasksCancelled { tasks: vec![task], reason, by });
            }
            Status::Pending | Status::Running => match wanted.reported() {
                Some(report) => {
                    let is_known = state.reported().is_some()
                        || state.status == Status::Done
                        || self.is_skipped_along(number);
                    if !is_known && state.status != Status::Running {
                        reset(events);
                        let (result, output) = (report.result.clone(), report.output.clone());
                        events.push(Event::TaskReported { task, result, output, by: report.by.clone() });
                    }
                }
                None => self.open_again_events(number, here, events),
            },
        }
    }

    /// Opens a task that somebody elsewhere wants done again. Machine work waits until somebody lets it run here.
    fn open_again_events(&self, number: u32, here: &Task, events: &mut Vec<Event>) {
        let state = &here.state;
        let has_outcome = state.status.is_finished() && !self.is_skipped_along(number);
        let has_report = state.reported().is_some() && state.status == Status::Pending;
        if !has_outcome && !has_report {
            return;
        }
        let task = here.spec.id.clone();
        events.push(Event::TasksReset { tasks: vec![task.clone()] });
        // It ran here, or somebody decided that it does not run.
        let is_decided = state.attempt > 0 || matches!(state.status, Status::Skipped | Status::Cancelled);
        if here.spec.work.is_some() && is_decided && state.held().is_none() {
            let reason = "it was to be done again elsewhere; lift the hold to run it here again".to_owned();
            events.push(Event::TaskHeld { task, by: Actor::system(IMPORT_ACTOR), reason });
        }
    }

    /// Returns the holds of the machine work that an import would let start: a dependency of it, or of a parent, is met
    /// since then.
    fn holds_behind(&self, before: &Self) -> Vec<Event> {
        let is_freed = |number: &u32| {
            let Some(old) = before.find(self.id_of(*number)) else { return false };
            let known = before.unmet_names(old, usize::MAX);
            let now = if known.is_empty() { Vec::new() } else { self.unmet_names(*number, usize::MAX) };
            known.iter().any(|name| !now.contains(name))
        };
        let numbers = self.tasks().filter_map(|(task, _)| self.find(task.spec.id.as_str()));
        self.holds_of(numbers.filter(is_freed))
    }

    /// Returns the holds of the machine work in these tasks: what they waited for was ended by records that nobody trusts
    /// here.
    pub(super) fn holds_of(&self, freed: impl Iterator<Item = u32>) -> Vec<Event> {
        if !matches!(self.state.phase, Phase::Active | Phase::Paused) {
            return Vec::new();
        }
        let behind: BTreeSet<u32> = freed.flat_map(|number| self.family(number)).collect();
        let tasks = behind.into_iter().map(|number| self.at(number));
        let starts = tasks.filter(|task| {
            let state = &task.state;
            task.spec.work.is_some() && state.status == Status::Pending && state.held().is_none()
        });
        let reason =
            "what it depends on was ended by records that nobody trusts here; lift the hold to run it";
        let (by, reason) = (Actor::system(IMPORT_ACTOR), reason.to_owned());
        let hold = |task: &Task| Event::TaskHeld {
            task: task.spec.id.clone(),
            by: by.clone(),
            reason: reason.clone(),
        };
        starts.map(hold).collect()
    }

    /// Returns the events that stop the plan here as well.
    fn stop_events(&self, request: &MergeRequest) -> Vec<Event> {
        let Some(stop) = request.stop.as_ref().or(request.lifted_stop.as_ref()) else { return Vec::new() };
        let (reason, by) = (stop.reason.clone(), stop.by.clone());
        let is_unstopped = self.state.stopped_by.is_none();
        let pause = Event::PlanPaused { reason: reason.clone(), by: by.clone() };
        let finish = |phase| Event::PlanFinished { phase, summary: reason.clone(), by: by.clone() };
        let is_other_end = |here: Phase, wanted: Phase| {
            let is_same = here == wanted && self.state.closed;
            (!is_same).then(|| finish(wanted))
        };
        let event = match (stop.kind, self.state.phase) {
            // If it ended by itself here, no result of another plan opens it again now. If it was ended in several ways, one
            // of them holds in all clones.
            (StopKind::Completed, here) => is_other_end(here, Phase::Completed),
            (StopKind::Failed, here) => is_other_end(here, Phase::Failed),
            (StopKind::Cancelled, here) => is_other_end(here, Phase::Cancelled),
            (StopKind::Paused | StopKind::Rejected, Phase::Completed | Phase::Failed | Phase::Cancelled) => {
                None
            }
            (StopKind::Rejected, Phase::Draft | Phase::AwaitingApproval) if is_unstopped => {
                let by = by.unwrap_or_else(|| stop.actor.clone());
                Some(Event::PlanRejected { by, reason })
            }
            // It is paused here even if it was rejected, or waits for its approval.
            (StopKind::Paused, Phase::Draft | Phase::AwaitingApproval) => Some(pause),
            (StopKind::Paused | StopKind::Rejected, Phase::Active) => Some(pause),
            // A person makes an agent's stop their own.
            (StopKind::Paused, Phase::Paused) if is_unstopped && by.is_some() => Some(pause),
            (
                StopKind::Paused | StopKind::Rejected,
                Phase::Draft | Phase::AwaitingApproval | Phase::Paused,
            ) => None,
        };
        event.into_iter().collect()
    }

    /// Returns the event that voids the approval, if the import changes what machines would do. That the work needs
    /// none, because it is a person's own or by the operator's policy, was decided for other work.
    fn voided_by_import(&self, events: &[Event], at: Timestamp, request: &MergeRequest) -> Option<Event> {
        let state = &self.state;
        // Other work is not what was rejected, unless the rejection still holds elsewhere.
        let is_rejected = state.phase == Phase::Draft && state.stopped_by.is_some() && request.stop.is_none();
        let matters = state.approval.is_some() || !state.approval_required || is_rejected;
        let changes = |event: &Event| self.changes_work(event) || self.renames_output(event);
        // Several events together can change more than each of them alone: a task can move below one that is added.
        let differs = || {
            let mut after = self.clone();
            after.advance(events, at);
            let has_work = self.has_machine_work() || after.has_machine_work();
            has_work && self.work_digest() != after.work_digest()
        };
        (matters && (events.iter().any(changes) || differs())).then_some(Event::ApprovalVoided {})
    }
}

/// Whether a task is cancelled only because the plan was ended.
fn was_open_at_end(state: &TaskState) -> bool {
    state.status == Status::Cancelled && state.reason.as_deref() == Some(PLAN_ENDED)
}

/// Returns the events by which a worker's question of another clone can be answered here, or its answer arrives. Questions
/// about a report are those of a check: it ran here, and only its own answer counts.
fn question_events(task: &TaskId, here: &TaskState, wanted: &TaskState) -> Vec<Event> {
    if here.status != Status::Pending || wanted.status != Status::Pending {
        return Vec::new();
    }
    let ask = |question: &Question| Event::QuestionAsked {
        task: task.clone(),
        question: Box::new(question.clone()),
    };
    let take = |Answer { answer, by, .. }: &Answer| Event::QuestionAnswered {
        task: task.clone(),
        answer: answer.clone(),
        by: by.clone(),
    };
    let answer_to = |asked: &Question| wanted.answers().iter().rfind(|answer| answer.question == asked.text);
    // Answers to what was never asked here, or is not asked any more.
    let late = || {
        late_answers(here.answers(), wanted.answers()).iter().flat_map(|late| {
            let question = Question {
                text: late.question.clone(),
                choices: Vec::new(),
                state: None,
                by: late.by.to_string(),
                attempt: 0,
                asked_at: late.at,
            };
            [ask(&question), take(late)]
        })
    };
    match (here.question(), wanted.question()) {
        (Some(asked), _) if asked.is_about_report() => Vec::new(),
        (Some(asked), next) => match (answer_to(asked), next) {
            (Some(answer), _) => vec![take(answer)],
            // Of several open questions all clones ask the same one. What a program gets back with its answer stays here.
            (None, Some(next)) => {
                let mut events: Vec<Event> = late().collect();
                let next = if asked.text == next.text || asked.state.is_some() { asked } else { next };
                if !events.is_empty() || next.text != asked.text {
                    events.push(ask(next));
                }
                events
            }
            // It was opened again since.
            (None, None) => vec![Event::TasksReset { tasks: vec![task.clone()] }],
        },
        (None, next) => late().chain(next.map(ask)).collect(),
    }
}

/// Returns the end of the merged answers that is to follow the answers here, so that of several answers to one question
/// the last one holds in all clones, and the last answer of all is the same one.
fn late_answers<'a>(here: &[Answer], merged: &'a [Answer]) -> &'a [Answer] {
    let is_last = |(place, answer): &(usize, &Answer)| {
        merged[place + 1..].iter().all(|later| later.question != answer.question)
    };
    let mut rest = here;
    for known in merged.iter().enumerate().filter(is_last) {
        let (place, Answer { question, answer, .. }) = known;
        match rest.iter().rposition(|given| given.question == *question) {
            Some(found) if rest[found].answer == *answer => rest = &rest[found + 1..],
            Some(_) | None => return &merged[place..],
        }
    }
    &[]
}

/// Gives a list the order of another one with the same elements.
fn keep_order<T: Clone + Ord>(list: &mut Vec<T>, old: &[T]) {
    let sorted = |list: &[T]| {
        let mut list = list.to_vec();
        list.sort();
        list.dedup();
        list
    };
    if *list != old && sorted(list) == sorted(old) {
        *list = old.to_vec();
    }
}
