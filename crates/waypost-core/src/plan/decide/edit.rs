//! Decisions about the author's part: create, add, revise, remove, move, replace, decompose, roll back.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::super::Plan;
use super::super::propagate::ParentEnd;
use super::super::slot::NONE;
use super::super::work_digest::hash_of_task;
use super::{Decision, NAMES_MAX, within};
use crate::validate::{Report, check_task};
use crate::{
    Actor, ActorKind, Dependency, Draft, Event, FORMAT, Phase, PlanChanges, Position, Problem, ProblemKind,
    Refinement, Refusal, Status, Task, TaskChanges, TaskId, TaskSpec, TaskState, Timestamp, limits, validate,
};

impl Plan {
    pub(super) fn decide_create(
        &self,
        by: &Actor,
        at: Timestamp,
        draft: &Draft,
        approval_required: Option<bool>,
    ) -> Decision {
        let problems = validate(draft);
        if !problems.is_empty() {
            return Err(Refusal::Invalid { problems });
        }
        let has_work = draft.tasks.iter().any(|task| has_work(&task.spec));
        let waived = approval_required == Some(false);
        let approval_required = approval_required.unwrap_or(by.kind != ActorKind::Person && has_work);
        let mut draft = draft.clone();
        draft.format = FORMAT.to_owned();
        draft.id = None;
        draft.version = 0;
        draft.state.approval_required = approval_required;
        draft.state.approval_waived = waived;
        // A draft is untrusted text: it cannot carry its own approval.
        draft.state.approval = None;
        draft.state.start_refusals.clear();
        draft.state.archived = false;
        // The model calls of another plan are not its own.
        draft.state.calls = 0;
        draft.state.phase = match draft.state.phase {
            phase @ (Phase::Active | Phase::Paused) if !approval_required => phase,
            Phase::Draft | Phase::AwaitingApproval | Phase::Active | Phase::Paused => Phase::Draft,
            phase @ (Phase::Completed | Phase::Failed | Phase::Cancelled) => phase,
        };
        if draft.state.phase == Phase::Draft {
            draft.state.started_at = None;
        }
        // The statuses of a plan that has ended are history: nothing starts because of them.
        let ended = draft.has_ended();
        for task in &mut draft.tasks {
            // A worker that held the task elsewhere does not hold it here.
            if task.state.status == Status::Running {
                task.state.status = Status::Pending;
                task.state.worker = None;
                task.state.started_at = None;
            }
            if !task.state.status.is_finished() {
                task.state.finished_at = None;
            }
            // The store delivers what tasks of other plans have come to. Done work of a plan that has ended keeps what it
            // received: only a person has it done again.
            if !(ended && task.state.status == Status::Done) {
                task.state.received.clear();
            }
            // Nor can it carry evidence, reports or people's answers: only what happens here counts. The service has
            // replaced the records of people that the draft brought by those of its caller.
            let gate = task.state.aside.take().and_then(|aside| aside.gate);
            let gate = gate.filter(|_| by.kind == ActorKind::Person);
            task.state.change_aside(|aside| aside.gate = gate);
            if task.state.status == Status::Done && task.spec.check.is_some() && !ended {
                only_report(&mut task.state, by, at);
            }
        }
        settle_parents(&mut draft.tasks);
        Ok(vec![Event::PlanCreated { draft: Box::new(draft), by: by.clone() }])
    }

    pub(super) fn revised(&self, changes: &PlanChanges) -> Decision {
        let PlanChanges { title, goal, status, owner, queue, token_budget, body, foreign } = changes.clone();
        let spec = &self.spec;
        let changed = |new: Option<String>, old: &String| new.filter(|new| new != old);
        let event = Event::PlanRevised {
            title: changed(title, &spec.title),
            goal: changed(goal, &spec.goal),
            status: changed(status, &spec.status),
            owner: changed(owner, &spec.owner),
            queue: changed(queue, &spec.queue),
            token_budget: token_budget.filter(|new| *new != spec.token_budget).map(Option::unwrap_or_default),
            body: changed(body, &spec.body),
            foreign: foreign.filter(|new| *new != spec.foreign),
        };
        let Event::PlanRevised { title, goal, status, owner, queue, token_budget, body, foreign } = &event
        else {
            return Ok(Vec::new());
        };
        let texts = [
            ("the title", title, limits::LINE_BYTES_MAX),
            ("the goal", goal, limits::TEXT_BYTES_MAX),
            ("the status", status, limits::LINE_BYTES_MAX),
            ("the owner", owner, limits::LINE_BYTES_MAX),
            ("the queue", queue, limits::LINE_BYTES_MAX),
            ("the body", body, limits::BODY_BYTES_MAX),
        ];
        let over = texts.iter().filter_map(|(what, text, max)| {
            let found = text.as_ref().map_or(0, String::len);
            let wrong = ProblemKind::OverLimit { what: format!("bytes of {what}"), found, max: *max };
            (found > *max).then(|| Problem::plan(wrong))
        });
        let problems: Vec<Problem> = over.collect();
        if !problems.is_empty() {
            return Err(Refusal::Invalid { problems });
        }
        let nothing =
            texts.iter().all(|(_, text, _)| text.is_none()) && token_budget.is_none() && foreign.is_none();
        Ok(if nothing { Vec::new() } else { vec![event] })
    }

    pub(super) fn decide_add(&self, tasks: &[TaskSpec], place: &Position) -> Decision {
        let Some(first) = tasks.first() else { return Ok(Vec::new()) };
        self.check_new(tasks)?;
        let siblings: &[u32] = match &first.parent {
            None => &self.roots,
            // A parent that is added in the same command has no children yet.
            Some(parent) => self.find(parent.as_str()).map_or(&[], |parent| &self.slot(parent).children),
        };
        let index = match place {
            Position::Last => None,
            place @ (Position::First | Position::Before(_) | Position::After(_)) => {
                Some(self.index_of(place, siblings)?)
            }
        };
        Ok(vec![Event::TasksAdded { tasks: tasks.to_vec(), index }])
    }

    /// Checks tasks to be added and reports every problem.
    fn check_new(&self, tasks: &[TaskSpec]) -> Result<(), Refusal> {
        let mut report = Report::default();
        report.over("tasks in a plan", self.len() + tasks.len(), limits::TASKS_MAX, None);
        let mut new: HashSet<&str> = HashSet::with_capacity(tasks.len());
        for spec in tasks {
            if !new.insert(spec.id.as_str()) || self.find(spec.id.as_str()).is_some() {
                report.add(Problem::task(&spec.id, ProblemKind::DuplicateId));
            }
        }
        let parents: HashSet<&str> =
            tasks.iter().filter_map(|spec| spec.parent.as_ref()).map(TaskId::as_str).collect();
        for spec in tasks {
            check_task(spec, parents.contains(spec.id.as_str()), &mut report);
            self.check_dependencies(spec, &new, &mut report);
            let Some(parent) = &spec.parent else { continue };
            match self.find(parent.as_str()) {
                None if new.contains(parent.as_str()) => {}
                None => {
                    let wrong = ProblemKind::OrphanParent { parent: parent.to_string() };
                    report.add(Problem::task(&spec.id, wrong));
                }
                Some(above) => self.can_have_children(above)?,
            }
        }
        if report.list.is_empty()
            && let Some(wrong) = self.cycle_with(tasks)
        {
            report.add(cycle_problem(wrong));
        }
        if report.list.is_empty() {
            self.check_depths(tasks, &mut report);
        }
        report.into_result()
    }

    /// Reports new tasks that are nested too deep. Their parents must not form a cycle.
    fn check_depths(&self, tasks: &[TaskSpec], report: &mut Report) {
        let new: HashMap<&str, &TaskSpec> = tasks.iter().map(|spec| (spec.id.as_str(), spec)).collect();
        let mut depths: HashMap<&str, usize> = HashMap::with_capacity(tasks.len());
        for spec in tasks {
            let (mut line, mut at) = (Vec::new(), spec);
            let mut depth = loop {
                if let Some(&depth) = depths.get(at.id.as_str()) {
                    break depth;
                }
                line.push(at);
                match at.parent.as_ref().map(TaskId::as_str) {
                    None => break 0,
                    Some(parent) => match new.get(parent) {
                        Some(above) => at = above,
                        None => break self.find(parent).map_or(0, |above| self.depth(above) + 1),
                    },
                }
            };
            if depths.contains_key(at.id.as_str()) {
                depth += 1;
            }
            for member in line.into_iter().rev() {
                if depth == limits::DEPTH_MAX + 1 {
                    report.over("levels of parents", depth, limits::DEPTH_MAX, Some(member));
                }
                depths.insert(member.id.as_str(), depth);
                depth += 1;
            }
        }
    }

    /// Returns the number of ancestors of a task.
    fn depth(&self, number: u32) -> usize {
        let (mut depth, mut parent) = (0, self.slot(number).parent);
        while parent != NONE {
            depth += 1;
            parent = self.slot(parent).parent;
        }
        depth
    }

    /// Returns the number of levels below a task.
    fn height(&self, number: u32) -> usize {
        let mut height = 0;
        let mut level = self.slot(number).children.clone();
        while !level.is_empty() {
            height += 1;
            level = level.iter().flat_map(|&child| &self.slot(child).children).copied().collect();
        }
        height
    }

    fn check_dependencies(&self, spec: &TaskSpec, new: &HashSet<&str>, report: &mut Report) {
        for on in spec.depends_on.iter().filter_map(Dependency::here) {
            if on == &spec.id {
                report.add(Problem::task(&spec.id, ProblemKind::SelfDependency));
            } else if self.find(on.as_str()).is_none() && !new.contains(on.as_str()) {
                let others = |name: &&str| *name != spec.id.as_str();
                let names = || self.live_ids().chain(new.iter().copied()).filter(others);
                let near = report.suggests().then(|| crate::nearest(on.as_str(), names())).flatten();
                let wrong = ProblemKind::UnknownDependency { dependency: on.to_string(), nearest: near };
                report.add(Problem::task(&spec.id, wrong));
            }
        }
    }

    fn can_have_children(&self, number: u32) -> Result<(), Refusal> {
        if self.spec_of(number).work.is_some() {
            let problems = vec![Problem::task(self.id_of(number), ProblemKind::WorkOnParent)];
            return Err(Refusal::Invalid { problems });
        }
        match self.slot(number).status {
            status @ Status::Running => Err(self.wrong_status(number, status, "given children")),
            Status::Pending | Status::Done | Status::Failed | Status::Skipped | Status::Cancelled => Ok(()),
        }
    }

    /// Resolves `place` to an index in a list of siblings.
    fn index_of(&self, place: &Position, siblings: &[u32]) -> Result<usize, Refusal> {
        let at = |sibling: &TaskId| -> Result<usize, Refusal> {
            let number = self.number(sibling)?;
            siblings.iter().position(|&other| other == number).ok_or_else(|| Refusal::NoSuchTask {
                task: format!("{sibling} (among these siblings)"),
                nearest: None,
            })
        };
        Ok(match place {
            Position::First => 0,
            Position::Last => siblings.len(),
            Position::Before(sibling) => at(sibling)?,
            Position::After(sibling) => at(sibling)? + 1,
        })
    }

    /// Returns the event that voids the approval, if these events change what machines would do or read.
    pub(super) fn voided(&self, by: &Actor, events: &[Event]) -> Option<Event> {
        let state = &self.state;
        let unasked = !state.approval_required && !state.approval_waived && by.kind != ActorKind::Person;
        // A rejected plan may be submitted for approval again once it has changed.
        let rejected = state.phase == Phase::Draft && state.stopped_by.is_some();
        let changed = |event| {
            self.changes_work(event)
                || self.renames_output(event)
                || rejected && self.changes_plain_tasks(event)
        };
        // A person's own plan needs no approval, so a person's edit voids none; workers compare the digest all the same.
        let approved = state.approval.as_ref().is_some_and(|approval| !approval.is_own());
        let matters = approved || unasked || rejected;
        (matters && events.iter().any(changed)).then_some(Event::ApprovalVoided {})
    }

    /// Whether an event changes the name under which work receives the output of a task without work. Other names are in the
    /// digest.
    pub(super) fn renames_output(&self, event: &Event) -> bool {
        let Event::TaskRevised { task } = event else { return false };
        self.find(task.id.as_str()).is_some_and(|number| {
            self.spec_of(number).provides != task.provides
                && self.slot(number).after.iter().any(|&after| has_work(self.spec_of(after)))
        })
    }

    /// Whether an event edits a plan that has no machine work.
    fn changes_plain_tasks(&self, event: &Event) -> bool {
        let is_edit = matches!(
            event,
            Event::PlanRevised { title: Some(_), .. }
                | Event::PlanRevised { goal: Some(_), .. }
                | Event::PlanRevised { body: Some(_), .. }
                | Event::TasksAdded { .. }
                | Event::TaskRevised { .. }
                | Event::TasksRemoved { .. }
                | Event::TaskMoved { .. }
        );
        is_edit && !self.has_machine_work()
    }

    /// Whether an event changes [`Plan::work_digest`]. The random test compares both after every command.
    pub(super) fn changes_work(&self, event: &Event) -> bool {
        if let Event::PlanRevised { title, goal, queue, .. } = event {
            // Checked last: it costs a pass over all tasks.
            return (title.is_some() || goal.is_some() || queue.is_some()) && self.has_machine_work();
        }
        if let Event::TasksAdded { tasks, .. } = event {
            return tasks.iter().any(has_work) || self.adds_order(tasks);
        }
        if let Event::TaskRevised { task } = event {
            return self.find(task.id.as_str()).is_some_and(|number| {
                let old = self.spec_of(number);
                match has_work(task) || self.is_for_machines(number) {
                    true => hash_of_task(old) != hash_of_task(task),
                    false => {
                        (&old.depends_on, old.when) != (&task.depends_on, task.when)
                            && self.is_waited_for_by_work(number)
                            && (self.waits_for_work([number]) || self.depends_on_work(task))
                    }
                }
            });
        }
        if let Event::TasksRemoved { tasks } = event {
            return self
                .families(tasks)
                .any(|number| has_work(self.spec_of(number)) || self.is_waited_for_by_work(number));
        }
        if let Event::TaskMoved { task, parent, .. } = event {
            let moved = self.find(task.as_str()).filter(|&number| self.spec_of(number).parent != *parent);
            return moved.is_some_and(|number| {
                let there = parent.as_ref().and_then(|parent| self.find(parent.as_str()));
                let places = || there.into_iter().chain([number]);
                self.is_for_machines(number)
                    || places().any(|place| self.is_waited_for_by_work(place))
                        && self.waits_for_work(places())
            });
        }
        false
    }

    /// Whether new tasks without work come between tasks with work.
    fn adds_order(&self, tasks: &[TaskSpec]) -> bool {
        let parents = || {
            let parents = tasks.iter().filter_map(|task| task.parent.as_ref());
            parents.filter_map(|parent| self.find(parent.as_str()))
        };
        parents().any(|parent| self.is_waited_for_by_work(parent))
            && (self.waits_for_work(parents()) || tasks.iter().any(|task| self.depends_on_work(task)))
    }

    /// Whether a task may depend on work or on another plan, directly or through tasks without work. What the same write
    /// adds may be anything.
    fn depends_on_work(&self, task: &TaskSpec) -> bool {
        let mut known = Vec::new();
        for on in &task.depends_on {
            match on.here().and_then(|on| self.find(on.as_str())) {
                Some(number) => known.push(number),
                None => return true,
            }
        }
        self.waits_for_work(known)
    }

    /// Iterates over tasks with all their descendants.
    pub(in super::super) fn families(&self, tasks: &[TaskId]) -> impl Iterator<Item = u32> {
        let numbers = tasks.iter().filter_map(|task| self.find(task.as_str()));
        numbers.flat_map(|number| self.family(number))
    }

    /// Whether machines would do anything for the plan.
    pub fn has_machine_work(&self) -> bool {
        self.roots.iter().any(|&number| self.is_for_machines(number))
    }

    /// Whether machines work on a task or one of its descendants: agents also read the texts of parents.
    pub(in super::super) fn is_for_machines(&self, number: u32) -> bool {
        self.family(number).iter().any(|&member| has_work(self.spec_of(member)))
    }

    pub(super) fn decide_revise(&self, task: &TaskId, changes: &TaskChanges) -> Decision {
        let number = self.number(task)?;
        let old = self.spec_of(number);
        let new = changed(old, changes);
        if *old == new {
            return Ok(Vec::new());
        }
        self.check_revised(number, &new)?;
        Ok(vec![Event::TaskRevised { task: Box::new(new) }])
    }

    fn check_revised(&self, number: u32, new: &TaskSpec) -> Result<(), Refusal> {
        let slot = self.slot(number);
        let (old, status) = (self.spec_of(number), slot.status);
        let mut same_but_skip = new.clone();
        same_but_skip.skip = old.skip;
        let only_unskipped = status == Status::Skipped && old.runs_the_same_as(&same_but_skip);
        if status != Status::Pending && !old.runs_the_same_as(new) && !only_unskipped {
            return Err(self.wrong_status(number, status, "given other work or dependencies"));
        }
        let mut report = Report::default();
        // Imported tasks may have none, but an edit takes none away.
        if new.description.trim().is_empty() && !old.description.trim().is_empty() {
            let wrong = ProblemKind::Missing { field: "description".to_owned() };
            report.add(Problem::task(&new.id, wrong));
        }
        check_task(new, slot.is_parent(), &mut report);
        self.check_dependencies(new, &HashSet::new(), &mut report);
        if report.list.is_empty()
            && let Some(wrong) = self.cycle_through(number, &new.depends_on)
        {
            report.add(cycle_problem(wrong));
        }
        report.into_result()
    }

    pub(super) fn decide_remove(&self, task: &TaskId, detach: bool) -> Decision {
        let number = self.number(task)?;
        self.can_remove(number, &self.family(number), detach)?;
        Ok(vec![Event::TasksRemoved { tasks: vec![task.clone()] }])
    }

    /// Refuses to remove these members of a task's family while one of them runs, or while tasks outside depend on them and are not
    /// to be detached.
    fn can_remove(&self, task: u32, members: &[u32], detach: bool) -> Result<(), Refusal> {
        let running = members.iter().filter(|&&member| self.slot(member).status == Status::Running);
        let running: Vec<String> = running.map(|&member| self.name(member)).take(NAMES_MAX).collect();
        if !running.is_empty() {
            return Err(Refusal::StillRunning { running });
        }
        let among: HashSet<u32> = members.iter().copied().collect();
        let dependants = members.iter().flat_map(|&member| &self.slot(member).after);
        let dependants: Vec<u32> = dependants.filter(|after| !among.contains(after)).copied().collect();
        if !dependants.is_empty() && !detach {
            let dependants = dependants.iter().map(|&after| self.name(after)).take(NAMES_MAX).collect();
            return Err(Refusal::HasDependants { task: self.name(task), dependants });
        }
        Ok(())
    }

    pub(super) fn decide_move(
        &self,

        task: &TaskId,
        parent: Option<&Option<TaskId>>,
        place: &Position,
    ) -> Decision {
        let number = self.number(task)?;
        if matches!(place, Position::Before(beside) | Position::After(beside) if beside == task) {
            return Err(Refusal::Invalid { problems: vec![Problem::task(task, ProblemKind::BesideItself)] });
        }
        let old_parent = self.slot(number).parent;
        let new_parent = match parent {
            None => old_parent,
            Some(None) => NONE,
            Some(Some(parent)) => self.number(parent)?,
        };
        let mut siblings = self.siblings(new_parent).clone();
        let old_index = siblings.iter().position(|&other| other == number);
        siblings.retain(|other| *other != number);
        let index = self.index_of(place, &siblings)?;
        if old_index == Some(index) {
            return Ok(Vec::new());
        }
        if new_parent != old_parent && new_parent != NONE {
            self.can_have_children(new_parent)?;
            if let Some(wrong) = self.cycle_under(number, new_parent) {
                return Err(Refusal::Invalid { problems: vec![cycle_problem(wrong)] });
            }
            let mut report = Report::default();
            let depth = self.depth(new_parent) + 1 + self.height(number);
            report.over("levels of parents", depth, limits::DEPTH_MAX, Some(self.spec_of(number)));
            report.into_result()?;
        }
        let parent = (new_parent != NONE).then(|| self.spec_of(new_parent).id.clone());
        Ok(vec![Event::TaskMoved { task: task.clone(), parent, index }])
    }

    pub(super) fn decide_decompose(
        &self,

        task: &TaskId,
        children: &[TaskSpec],
        reasoning: Option<&String>,
        tokens: i64,
    ) -> Decision {
        let number = self.number(task)?;
        match self.slot(number).status {
            Status::Pending => {}
            status @ (Status::Running
            | Status::Done
            | Status::Failed
            | Status::Skipped
            | Status::Cancelled) => return Err(self.wrong_status(number, status, "broken down")),
        }
        let found = reasoning.map_or(0, String::len);
        within("bytes of the reasoning", found, limits::TEXT_BYTES_MAX, task)?;
        let children: Vec<TaskSpec> = children
            .iter()
            .map(|child| TaskSpec {
                parent: child.parent.clone().or_else(|| Some(task.clone())),
                ..child.clone()
            })
            .collect();
        let mut events = vec![Event::TaskRefined {
            task: task.clone(),
            refinement: Refinement::Decomposed,
            reasoning: reasoning.cloned(),
            tokens,
        }];
        events.extend(self.decide_add(&children, &Position::Last)?);
        Ok(events)
    }

    /// Charges a model call, unless it was charged before.
    pub(super) fn charge(&self, task: Option<&TaskId>, tokens: i64, call: u64) -> Vec<Event> {
        if call <= self.state.calls {
            return Vec::new();
        }
        let task = task.filter(|task| self.find(task.as_str()).is_some()).cloned();
        vec![Event::TokensCharged { task, tokens, call }]
    }

    pub(super) fn decide_roll_back(&self, task: &TaskId, detach: bool) -> Decision {
        let number = self.number(task)?;
        let (slot, spec) = (self.slot(number), self.spec_of(number));
        let undecided = spec.thinking.as_ref().is_none_or(|thinking| {
            thinking.refinement.is_none() && thinking.reasoning.is_none() && thinking.digest.is_none()
        });
        let children: Vec<TaskId> = slot.children.iter().map(|&child| self.task_id(child)).collect();
        if undecided && children.is_empty() {
            return Ok(Vec::new());
        }
        if slot.status == Status::Running {
            return Err(Refusal::StillRunning { running: vec![self.name(number)] });
        }
        let below: Vec<u32> = self.family(number).into_iter().filter(|&member| member != number).collect();
        self.can_remove(number, &below, detach)?;
        let tokens = |member: &u32| self.spec_of(*member).thinking.as_ref().map_or(0, |one| one.tokens);
        let spent = below.iter().map(tokens).fold(0, i64::saturating_add);
        let mut events = Vec::new();
        if !children.is_empty() {
            events.push(Event::TasksRemoved { tasks: children });
        }
        // The outcome that its children gave it is gone with them.
        if slot.is_parent() && slot.status.is_finished() {
            events.push(Event::TasksReset { tasks: vec![task.clone()] });
        }
        events.push(Event::TaskRolledBack { task: task.clone(), tokens: spent });
        Ok(events)
    }

    pub(super) fn decide_replace(&self, draft: &Draft) -> Decision {
        let problems = validate(draft);
        if !problems.is_empty() {
            return Err(Refusal::Invalid { problems });
        }
        let wanted: HashMap<&str, &TaskSpec> =
            draft.tasks.iter().map(|task| (task.spec.id.as_str(), &task.spec)).collect();
        let order = self.order();
        self.keeps_what_runs(&wanted)?;
        let mut reset = Vec::new();
        for &number in &order {
            let (slot, old) = (self.slot(number), self.spec_of(number));
            let new = wanted.get(old.id.as_str());
            let other = new.is_some_and(|new| !old.same_work_as(new));
            if slot.status.is_finished() && !slot.is_parent() && other {
                reset.push(old.id.clone());
            }
        }
        let mut events = self.revision(draft)?;
        // Resets and additions come first, so that the plan does not end in between.
        if !reset.is_empty() {
            events.push(Event::TasksReset { tasks: reset });
        }
        events.extend(self.reshaped(draft, &wanted, &order));
        Ok(events)
    }

    /// Returns the events that give this plan the author's part of a valid draft. The results of tasks stay.
    pub(super) fn replacement(&self, draft: &Draft) -> Vec<Event> {
        let wanted: HashMap<&str, &TaskSpec> =
            draft.tasks.iter().map(|task| (task.spec.id.as_str(), &task.spec)).collect();
        // A valid draft has no text that is too long.
        let mut events = self.revision(draft).unwrap_or_default();
        events.extend(self.reshaped(draft, &wanted, &self.order()));
        events
    }

    /// Returns the event that gives the plan itself the author's part of a draft.
    fn revision(&self, draft: &Draft) -> Decision {
        let spec = &draft.spec;
        self.revised(&PlanChanges {
            title: Some(spec.title.clone()),
            goal: Some(spec.goal.clone()),
            status: Some(spec.status.clone()),
            owner: Some(spec.owner.clone()),
            queue: Some(spec.queue.clone()),
            token_budget: Some(spec.token_budget),
            body: Some(spec.body.clone()),
            foreign: Some(spec.foreign.clone()),
        })
    }

    /// Returns the events that add, move, revise, remove and reorder tasks, `order` of which the plan has.
    fn reshaped(&self, draft: &Draft, wanted: &HashMap<&str, &TaskSpec>, order: &[u32]) -> Vec<Event> {
        let mut events = Vec::new();
        let parents_first: Vec<&TaskSpec> = parents_first(&draft.tasks).collect();
        let added = parents_first.iter().filter(|spec| self.find(spec.id.as_str()).is_none());
        let added: Vec<TaskSpec> = added.map(|spec| (*spec).clone()).collect();
        if !added.is_empty() {
            events.push(Event::TasksAdded { tasks: added, index: None });
        }
        // Parents before children: a task that gets another parent finds it at its final place, and no intermediate
        // state has a cycle of parents.
        let mut places: HashMap<Option<&TaskId>, usize> = HashMap::new();
        for new in parents_first {
            let place = places.entry(new.parent.as_ref()).or_default();
            let index = *place;
            *place += 1;
            let Some(number) = self.find(new.id.as_str()) else { continue };
            if self.spec_of(number).parent != new.parent {
                events.push(Event::TaskMoved { task: new.id.clone(), parent: new.parent.clone(), index });
            }
        }
        let mut removed = Vec::new();
        for &number in order {
            let (slot, old) = (self.slot(number), self.spec_of(number));
            let Some(new) = wanted.get(old.id.as_str()) else {
                let parent_goes = slot.parent != NONE && !wanted.contains_key(self.id_of(slot.parent));
                if !parent_goes {
                    removed.push(old.id.clone());
                }
                continue;
            };
            if !same_but_parent(old, new) {
                let task = TaskSpec { parent: new.parent.clone(), ..(*new).clone() };
                events.push(Event::TaskRevised { task: Box::new(task) });
            }
        }
        if !removed.is_empty() {
            events.push(Event::TasksRemoved { tasks: removed });
        }
        events.extend(self.reorderings(draft));
        events
    }

    fn keeps_what_runs(&self, wanted: &HashMap<&str, &TaskSpec>) -> Result<(), Refusal> {
        let parents: HashSet<&str> =
            wanted.values().filter_map(|spec| spec.parent.as_ref()).map(TaskId::as_str).collect();
        let lost = self.running.iter().filter(|&&number| {
            let spec = self.spec_of(number);
            // It holds its locks.
            let is_same = |new: &&TaskSpec| spec.same_work_as(new) && spec.locks == new.locks;
            let same = wanted.get(spec.id.as_str()).is_some_and(is_same);
            !same || parents.contains(spec.id.as_str())
        });
        let running: Vec<String> = lost.map(|&number| self.name(number)).take(NAMES_MAX).collect();
        if running.is_empty() { Ok(()) } else { Err(Refusal::StillRunning { running }) }
    }

    /// Returns the reorderings needed where siblings are not in the draft's order after all other events.
    fn reorderings(&self, draft: &Draft) -> Vec<Event> {
        let mut wanted: BTreeMap<Option<&TaskId>, Vec<&TaskId>> = BTreeMap::new();
        for task in &draft.tasks {
            wanted.entry(task.spec.parent.as_ref()).or_default().push(&task.spec.id);
        }
        let differs = |parent: &Option<&TaskId>, order: &[&TaskId]| {
            let above = parent.map_or(Some(NONE), |parent| self.find(parent.as_str()));
            let Some(above) = above else { return false };
            // Tasks added or moved here land after those that stay, in the draft's order.
            let stays =
                |id: &&TaskId| self.find(id.as_str()).is_some_and(|number| self.slot(number).parent == above);
            let staying: HashSet<&TaskId> = order.iter().copied().filter(|id| stays(id)).collect();
            let now = self.siblings(above).iter().map(|&number| &self.spec_of(number).id);
            let mut lands: Vec<&TaskId> = now.filter(|id| staying.contains(id)).collect();
            let count = lands.len();
            lands.extend(order.iter().copied().filter(|id| !staying.contains(id)));
            let moved_in = order.iter().skip(count).any(|id| self.find(id.as_str()).is_some());
            lands != order || moved_in && order.len() > count
        };
        let changed = wanted.iter().filter(|(parent, order)| differs(parent, order));
        changed
            .map(|(parent, order)| Event::TasksReordered {
                parent: parent.cloned(),
                order: order.iter().copied().cloned().collect(),
            })
            .collect()
    }
}

/// Turns done into a report: the check has not passed here.
fn only_report(state: &mut TaskState, by: &Actor, at: Timestamp) {
    let (result, output) = (state.result.take(), state.output.take());
    (state.status, state.finished_at) = (Status::Pending, None);
    let report = crate::Report { result, output, at, by: by.clone() };
    state.change_aside(|aside| aside.reported = Some(report));
}

/// Wraps a cycle as a problem of the first task of its path.
fn cycle_problem(wrong: ProblemKind) -> Problem {
    let mut first = None;
    if let ProblemKind::Cycle { path } | ProblemKind::ParentCycle { path } = &wrong {
        first = path.first().cloned();
    }
    Problem::task(first.unwrap_or_default(), wrong)
}

fn has_work(spec: &TaskSpec) -> bool {
    spec.work.is_some() || spec.check.is_some()
}

fn same_but_parent(old: &TaskSpec, new: &TaskSpec) -> bool {
    if old.parent == new.parent {
        return old == new;
    }
    *old == TaskSpec { parent: old.parent.clone(), ..new.clone() }
}

/// Iterates over the tasks, every parent before its children.
fn parents_first(tasks: &[Task]) -> impl Iterator<Item = &TaskSpec> {
    let mut children: HashMap<Option<&TaskId>, Vec<&TaskSpec>> = HashMap::new();
    for task in tasks {
        children.entry(task.spec.parent.as_ref()).or_default().push(&task.spec);
    }
    let mut order = Vec::with_capacity(tasks.len());
    let mut stack: Vec<&TaskSpec> = children.remove(&None).unwrap_or_default().into_iter().rev().collect();
    while let Some(spec) = stack.pop() {
        order.push(spec);
        stack.extend(children.remove(&Some(&spec.id)).unwrap_or_default().into_iter().rev());
    }
    order.into_iter()
}

/// Derives the status of every parent from its children, regardless of what the text says.
fn settle_parents(tasks: &mut [Task]) {
    let order: Vec<TaskId> = parents_first(tasks).map(|spec| spec.id.clone()).collect();
    let number: HashMap<TaskId, usize> =
        tasks.iter().enumerate().map(|(number, task)| (task.spec.id.clone(), number)).collect();
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    for (child, task) in tasks.iter().enumerate() {
        if let Some(parent) = task.spec.parent.as_ref().and_then(|parent| number.get(parent)) {
            children.entry(*parent).or_default().push(child);
        }
    }
    for id in order.iter().rev() {
        let Some(below) = number.get(id).and_then(|parent| children.get(parent)) else { continue };
        let all_finished = below.iter().all(|&child| tasks[child].state.status.is_finished());
        let end = all_finished.then(|| ParentEnd::of(below.iter().map(|&child| &tasks[child])));
        let state = &mut tasks[number[id]].state;
        state.status = end.as_ref().map_or(Status::Pending, |end| end.status);
        if !all_finished {
            state.finished_at = None;
        }
        state.because_of = end.and_then(|end| end.because_of);
    }
}

/// Returns the spec with the changes applied.
fn changed(old: &TaskSpec, changes: &TaskChanges) -> TaskSpec {
    let TaskChanges {
        description,
        depends_on,
        add_dependencies,
        remove_dependencies,
        when,
        complexity,
        notes,
        tools,
        skip,
        locks,
        work,
        check,
        retry,
        timeout_seconds,
        priority,
        provides,
        graph_node_id,
        foreign,
    } = changes.clone();
    let mut new = old.clone();
    new.description = description.unwrap_or(new.description);
    new.depends_on = depends_on.unwrap_or(new.depends_on);
    new.depends_on.retain(|dependency| !remove_dependencies.contains(dependency));
    for dependency in add_dependencies {
        if !new.depends_on.contains(&dependency) {
            new.depends_on.push(dependency);
        }
    }
    new.when = when.unwrap_or(new.when);
    new.complexity = complexity.unwrap_or(new.complexity);
    new.notes = notes.unwrap_or(new.notes);
    new.tools = tools.unwrap_or(new.tools);
    new.skip = skip.unwrap_or(new.skip);
    new.locks = locks.unwrap_or(new.locks);
    new.work = work.map_or(new.work, |work| work.map(Box::new));
    new.check = check.map_or(new.check, |check| check.map(Box::new));
    new.retry = retry.map_or(new.retry, |retry| retry.map(Box::new));
    new.timeout_seconds = timeout_seconds.unwrap_or(new.timeout_seconds);
    new.priority = priority.unwrap_or(new.priority);
    new.provides = provides.unwrap_or(new.provides);
    if let Some(node) = graph_node_id {
        new.thinking.get_or_insert_default().graph_node_id = node;
    }
    new.foreign = foreign.unwrap_or(new.foreign);
    new
}
