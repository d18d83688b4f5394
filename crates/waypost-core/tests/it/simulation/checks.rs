//! Invariants that must hold after every step.

use waypost_core::EffectiveStatus;

use super::*;

impl World {
    pub(super) fn check_touched(
        &self,
        before: &Draft,
        after: &Draft,
        touched: &IndexDelta,
        what: &dyn Fn() -> String,
    ) {
        let old: BTreeMap<&TaskId, &Task> = before.tasks.iter().map(|task| (&task.spec.id, task)).collect();
        for task in &after.tasks {
            let id = &task.spec.id;
            let was = old.get(id);
            let was_status = was.map_or(Status::Pending, |was| was.state.status);
            let status = task.state.status;
            if status.is_finished() && !was_status.is_finished() && before.version > 0 {
                assert!(touched.finished.contains(id), "{id} finished, {touched:?} {}", what());
            }
            let end = |task: &Task| (task.state.status.is_finished(), task.state.output.clone());
            if before.version > 0 && was.is_some_and(|was| end(was) != end(task)) {
                assert!(touched.outcomes.contains(id), "{id} ended otherwise, {touched:?} {}", what());
            }
            let runs_anew = status == Status::Running
                && was.is_none_or(|was| {
                    was_status != Status::Running || was.state.attempt != task.state.attempt
                });
            let started = touched.started.contains(&(id.clone(), task.state.attempt));
            assert_eq!(started, runs_anew, "{id} started, {touched:?} {}", what());
            let stopped = was_status == Status::Running && status != Status::Running;
            assert_eq!(touched.stopped.contains(id), stopped, "{id} stopped, {touched:?} {}", what());
            let awaits = |task: &Task| -> Vec<ExternalTaskRef> {
                task.spec.depends_on.iter().filter_map(Dependency::external).cloned().collect()
            };
            let waits_changed = was.map_or(!awaits(task).is_empty(), |was| {
                awaits(was) != awaits(task) || was.state.received != task.state.received
            });
            assert!(
                !waits_changed || touched.waits_changed.contains(id),
                "{id} waits, {touched:?} {}",
                what()
            );
        }
        let to_others =
            |draft: &Draft| (draft.state.phase.is_finished(), draft.state.archived, draft.spec.owner.clone());
        assert!(to_others(before) == to_others(after) || touched.whole, "{touched:?} {}", what());
        for id in &touched.finished {
            let finished =
                after.tasks.iter().find(|task| task.spec.id == *id).unwrap().state.status.is_finished();
            assert!(finished, "{id} has not finished {}", what());
        }
    }

    pub(super) fn check_locks(&mut self, after: &Draft, touched: &IndexDelta, what: &dyn Fn() -> String) {
        for task in &touched.stopped {
            let locks = self.held.remove(task).unwrap_or_default();
            self.locks.release(task.as_str(), &locks);
        }
        let running: Vec<&Task> =
            after.tasks.iter().filter(|task| task.state.status == Status::Running).collect();
        let names: BTreeSet<&TaskId> = running.iter().map(|task| &task.spec.id).collect();
        assert_eq!(names, self.held.keys().collect(), "those who run hold their locks {}", what());
        for task in &running {
            assert_eq!(
                self.held[&task.spec.id],
                task.spec.locks,
                "locks changed under a running task {}",
                what()
            );
            for lock in &task.spec.locks {
                let holders =
                    running.iter().flat_map(|other| &other.spec.locks).filter(|other| other.key == lock.key);
                let count = holders.count();
                assert!(
                    lock.mode == LockMode::Shared || count == 1,
                    "{} is held {count} times {}",
                    lock.key,
                    what()
                );
            }
        }
        if running.is_empty() {
            assert!(self.locks.is_empty(), "locks were left behind {}", what());
        }
    }

    /// The counts are those of the rows.
    pub(super) fn check_counts(&self, after: &Draft, what: &dyn Fn() -> String) {
        let mut counts = Counts::default();
        for id in after.tasks.iter().map(|task| task.spec.id.as_str()) {
            if !self.plan.children(id).is_empty() {
                continue;
            }
            counts.total += 1;
            *match self.plan.effective_status(id).unwrap() {
                EffectiveStatus::Blocked => &mut counts.blocked,
                EffectiveStatus::Ready => &mut counts.ready,
                EffectiveStatus::Reported => &mut counts.reported,
                EffectiveStatus::Asking => &mut counts.asking,
                EffectiveStatus::Held => &mut counts.held,
                EffectiveStatus::Disputed => &mut counts.disputed,
                EffectiveStatus::Queued => &mut counts.queued,
                EffectiveStatus::Running => &mut counts.running,
                EffectiveStatus::Done => &mut counts.done,
                EffectiveStatus::Failed => &mut counts.failed,
                EffectiveStatus::Skipped => &mut counts.skipped,
                EffectiveStatus::Cancelled => &mut counts.cancelled,
            } += 1;
        }
        assert_eq!(self.plan.effective_counts(), counts, "{}", what());
    }

    pub(super) fn check_against_a_fresh_plan(&self, after: &Draft, what: &dyn Fn() -> String) {
        let fresh = Plan::from_trusted_draft(plan_id(), after.clone());
        let ready =
            |plan: &Plan| -> BTreeSet<String> { plan.ready().map(|task| task.spec.id.to_string()).collect() };
        assert_eq!(ready(&self.plan), Oracle::of(after).ready(), "the ready set {}", what());
        assert_eq!(ready(&self.plan), ready(&fresh), "the ready set of a fresh plan {}", what());
        assert_eq!(self.plan.counts(), fresh.counts(), "counts {}", what());
        assert_eq!(self.plan.atomic(), fresh.atomic(), "atomic {}", what());
        assert_eq!(self.plan.len(), after.tasks.len(), "the number of tasks {}", what());
        let running =
            |plan: &Plan| -> BTreeSet<String> { plan.running().map(|t| t.spec.id.to_string()).collect() };
        assert_eq!(running(&self.plan), running(&fresh), "what runs {}", what());
        let held = |plan: &Plan| plan.in_progress().map(|t| t.spec.id.to_string()).collect::<BTreeSet<_>>();
        assert_eq!(held(&self.plan), held(&fresh), "what somebody has {}", what());
        assert_eq!(running(&self.plan).len() as u32, self.plan.counts().running, "{}", what());
        assert_eq!(held(&self.plan).len() as u32, self.plan.counts().in_progress(), "{}", what());
        for task in &after.tasks {
            let id = task.spec.id.as_str();
            assert_eq!(
                self.plan.effective_status(id),
                fresh.effective_status(id),
                "the standing of {id} {}",
                what()
            );
            assert_eq!(
                self.plan.waiting(id, self.now()),
                fresh.waiting(id, self.now()),
                "{id} waits {}",
                what()
            );
            assert_eq!(self.plan.outputs_for(id), fresh.outputs_for(id), "outputs for {id} {}", what());
        }
    }
}

/// Describes the differences of two drafts that should be equal.
pub(super) fn unlike(wanted: &Draft, found: &Draft) -> String {
    let mut unlike = Vec::new();
    if wanted.state != found.state || wanted.spec != found.spec {
        unlike.push(format!("{:?} → {:?}", wanted.state, found.state));
    }
    let tasks = wanted.tasks.iter().zip(&found.tasks).filter(|(wanted, found)| wanted != found);
    unlike.extend(tasks.map(|(wanted, found)| format!("{wanted:?} → {found:?}")));
    unlike.join("\n")
}

/// Checks the invariants of any draft of a plan.
pub(super) fn check_draft(draft: &Draft, what: &dyn Fn() -> String) {
    let problems = validate(draft);
    assert!(problems.is_empty(), "{problems:?} {}", what());
    let oracle = Oracle::of(draft);
    for task in &draft.tasks {
        let (id, status) = (&task.spec.id, task.state.status);
        assert_eq!(task.state.finished_at.is_some(), status.is_finished(), "when {id} finished {}", what());
        if status.is_finished() || oracle.is_parent(task) {
            let open = task.state.reported().is_some() || task.state.question().is_some();
            assert!(!open, "{id} has ended and waits for nobody's word {}", what());
        }
        if oracle.is_parent(task) {
            assert_ne!(status, Status::Running, "a group does not run itself: {id} {}", what());
            let end = oracle.end(task);
            if task.spec.skip && end.is_some() {
                let fate = oracle.fate(task);
                let fits = match status {
                    Status::Pending => fate == Fate::Waits,
                    Status::Skipped => true,
                    _ => Some(status) == end,
                };
                assert!(fits, "group {id} that is passed over is {status:?} at {fate:?} {}", what());
            } else {
                let wanted = end.unwrap_or(Status::Pending);
                assert_eq!(status, wanted, "group {id} ends as its children {}", what());
            }
            continue;
        }
        // A plan that has not started stays as its author wrote it; an ended plan waits until it is reopened.
        if draft.state.started_at.is_none() || draft.state.phase.is_finished() {
            continue;
        }
        let fate = oracle.fate(task);
        match (status, &task.state.because_of) {
            (Status::Pending, _) => {
                assert!(
                    matches!(fate, Fate::Free | Fate::Waits),
                    "{id} waits for nothing: {fate:?} {}",
                    what()
                );
            }
            (Status::Skipped, Some(cause)) => {
                let Fate::Doomed(causes) = fate else { panic!("{id} is skipped, but {fate:?} {}", what()) };
                assert!(causes.contains(cause.as_str()), "{id} blames {cause}, not {causes:?} {}", what());
            }
            (Status::Running | Status::Done | Status::Failed | Status::Skipped | Status::Cancelled, None) => {
            }
            (status, Some(cause)) => panic!("{id} is {status:?} and blames {cause} {}", what()),
        }
    }
    let open = draft.tasks.iter().any(|task| !task.state.status.is_finished());
    let runs = matches!(draft.state.phase, Phase::Active | Phase::Paused);
    assert!(!runs || open || draft.tasks.is_empty(), "a plan with nothing left has ended {}", what());
    assert!(!draft.state.phase.is_finished() || !open, "an ended plan has nothing left {}", what());
    assert_eq!(
        draft.state.phase.is_finished(),
        draft.state.finished_at.is_some(),
        "when it ended {}",
        what()
    );
}
