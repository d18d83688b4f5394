//! Generates random commands.

use super::*;

impl World {
    pub(super) fn fresh_id(&mut self) -> TaskId {
        self.names += 1;
        id(&format!("x{}", self.names))
    }

    pub(super) fn ids(&self) -> Vec<TaskId> {
        self.plan.tasks().map(|(task, _)| task.spec.id.clone()).collect()
    }

    /// Usually a task of the plan, sometimes an unknown id.
    pub(super) fn some_task(&mut self) -> TaskId {
        let ids = self.ids();
        if ids.is_empty() || self.dice.chance(1) { id("nobody") } else { self.dice.pick(&ids).clone() }
    }

    pub(super) fn some_task_that(&mut self, wanted: impl Fn(&Task) -> bool) -> TaskId {
        let found: Vec<TaskId> = self
            .plan
            .tasks()
            .map(|(task, _)| task)
            .filter(|task| wanted(task))
            .map(|t| t.spec.id.clone())
            .collect();
        if found.is_empty() || self.dice.chance(10) {
            self.some_task()
        } else {
            self.dice.pick(&found).clone()
        }
    }

    pub(super) fn random_elsewhere(&mut self) -> ExternalTaskRef {
        let agent = self.dice.chance(50).then(|| "builder".to_owned());
        let plan = if agent.is_none() || self.dice.chance(30) {
            Some(waypost_core::PlanId::new("other").unwrap())
        } else {
            None
        };
        ExternalTaskRef { agent, plan, task: id(["far", "farther"][self.dice.below(2)]) }
    }

    pub(super) fn random_received(&mut self) -> UpstreamResult {
        let status =
            *self.dice.pick(&[Status::Done, Status::Done, Status::Done, Status::Failed, Status::Cancelled]);
        let output = self.dice.chance(50).then(|| Json::of(&self.seconds));
        UpstreamResult {
            status,
            output,
            provides: self.dice.chance(30).then(|| "far_output".to_owned()),
            ..UpstreamResult::default()
        }
    }

    pub(super) fn random_outcome(&mut self, proved_percent: u64) -> Outcome {
        let proved = self.dice.chance(proved_percent);
        let evidence = |passed| proved.then(|| Box::new(evidence(passed)));
        match self.dice.below(10) {
            0..6 => Outcome::Done {
                result: self.dice.chance(30).then(|| "well".to_owned()),
                output: self.dice.chance(30).then(|| Json::of(&self.seconds)),
                evidence: evidence(true),
            },
            6..9 => Outcome::Failed { error: "it broke".to_owned(), evidence: evidence(false) },
            _ => Outcome::Skipped { reason: self.dice.chance(50).then(|| "not needed".to_owned()) },
        }
    }

    pub(super) fn random_when(&mut self) -> DependencyRule {
        *self.dice.pick(&[
            DependencyRule::AllDone,
            DependencyRule::AllDone,
            DependencyRule::AllDone,
            DependencyRule::AllFinished,
            DependencyRule::AnyDone,
        ])
    }

    pub(super) fn random_locks(&mut self) -> Vec<Lock> {
        let mut locks = Vec::new();
        for key in ["db", "disk", "net"] {
            if self.dice.chance(15) {
                let mode = if self.dice.chance(30) { LockMode::Shared } else { LockMode::Exclusive };
                locks.push(Lock { key: key.to_owned(), mode });
            }
        }
        locks
    }

    pub(super) fn random_retry(&mut self) -> Option<Box<Retry>> {
        let attempts = self.dice.below(4) as u32;
        (attempts > 0).then(|| Box::new(Retry { attempts, backoff_seconds: 5, backoff_seconds_max: 60 }))
    }

    /// Random dependencies: on existing tasks, on later ones, occasionally ones that close a cycle.
    pub(super) fn random_dependencies(&mut self, among: &[TaskId]) -> Vec<Dependency> {
        let mut dependencies = Vec::new();
        for _ in 0..self.dice.below(3) {
            if !among.is_empty() {
                dependencies.push(Dependency::Task(self.dice.pick(among).clone()));
            }
        }
        if self.dice.chance(6) {
            dependencies.push(Dependency::External(Box::new(self.random_elsewhere())));
        }
        dependencies
    }

    pub(super) fn random_spec(
        &mut self,
        name: TaskId,
        dependencies_among: &[TaskId],
        parents_among: &[TaskId],
    ) -> TaskSpec {
        let mut spec = TaskSpec::new(name, "do it");
        spec.depends_on = self.random_dependencies(dependencies_among);
        if !parents_among.is_empty() && self.dice.chance(35) {
            spec.parent = Some(self.dice.pick(parents_among).clone());
        }
        spec.when = self.random_when();
        spec.skip = self.dice.chance(8);
        spec.locks = self.random_locks();
        spec.retry = self.random_retry();
        spec.priority = self.dice.below(3) as i32;
        spec.work = self.dice.chance(25).then(work);
        spec.check = self.dice.chance(25).then(work);
        spec.provides = self.dice.chance(20).then(|| "it".to_owned());
        spec
    }

    /// Tasks with groups, usually valid; an invalid draft is generated again.
    pub(crate) fn random_draft(&mut self) -> Draft {
        let mut draft = Draft::new("simulated");
        let count = self.dice.below(10);
        let (mut known, mut groups) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let name = self.fresh_id();
            let mut spec = self.random_spec(name.clone(), &known, &groups);
            if self.dice.chance(30) {
                spec.work = None;
                groups.push(name.clone());
            }
            known.push(name);
            draft.tasks.push(Task::new(spec));
        }
        if self.dice.chance(15) {
            self.give_a_past(&mut draft);
        }
        draft
    }

    /// Gives a draft the history of a plan that ran elsewhere, as an import does.
    pub(super) fn give_a_past(&mut self, draft: &mut Draft) {
        draft.state.phase =
            *self.dice.pick(&[Phase::Draft, Phase::Active, Phase::Paused, Phase::AwaitingApproval]);
        draft.state.approval =
            Some(Approval { by: ada(), at: at(0), version: 0, note: String::new(), work: None });
        for task in &mut draft.tasks {
            if self.dice.chance(40) {
                task.state.status = *self.dice.pick(&Status::ALL);
                task.state.finished_at = task.state.status.is_finished().then(|| at(0));
            }
        }
    }

    pub(super) fn random_place(&mut self) -> Position {
        match self.dice.below(6) {
            0 => Position::First,
            1 => Position::Before(self.some_task()),
            2 => Position::After(self.some_task()),
            _ => Position::Last,
        }
    }

    pub(super) fn random_changes(&mut self) -> TaskChanges {
        let mut changes = TaskChanges::default();
        let ids = self.ids();
        match self.dice.below(10) {
            9 => changes.check = Some(self.dice.chance(50).then(|| *work())),
            0 => changes.depends_on = Some(self.random_dependencies(&ids)),
            1 | 2 => changes.add_dependencies = self.random_dependencies(&ids),
            3 => changes.remove_dependencies = ids.into_iter().take(4).map(Dependency::Task).collect(),
            4 => changes.when = Some(self.random_when()),
            5 => changes.skip = Some(self.dice.chance(60)),
            6 => {
                changes.priority = Some(self.dice.below(5) as i32);
                changes.notes = Some(format!("at {}", self.seconds));
            }
            7 => changes.locks = Some(self.random_locks()),
            _ => changes.work = Some(self.dice.chance(50).then(|| *work())),
        }
        changes
    }

    /// The current plan with a few changes, as an editor would save it.
    pub(super) fn random_replacement(&mut self) -> Draft {
        let mut draft = self.plan.to_draft();
        draft.spec.goal = format!("at {}", self.seconds);
        let ids = self.ids();
        let mut gone: BTreeSet<TaskId> = BTreeSet::new();
        for _ in 0..self.dice.below(3) {
            if !draft.tasks.is_empty() && self.dice.chance(50) {
                let place = self.dice.below(draft.tasks.len());
                gone.insert(draft.tasks.remove(place).spec.id);
            }
        }
        for _ in 0..1 + self.dice.below(3) {
            if draft.tasks.is_empty() {
                break;
            }
            let place = self.dice.below(draft.tasks.len());
            let parent = self.dice.pick(&ids).clone();
            let spec = &mut draft.tasks[place].spec;
            match self.dice.below(6) {
                0 => spec.parent = None,
                1 | 2 => spec.parent = Some(parent),
                3 => spec.description.push('!'),
                4 => spec.skip = !spec.skip,
                _ => spec.depends_on.clear(),
            }
        }
        // Swap two tasks in the tree: the child becomes the parent of its parent.
        if self.dice.chance(30)
            && let Some(place) = draft.tasks.iter().position(|task| task.spec.parent.is_some())
        {
            let (child, parent) =
                (draft.tasks[place].spec.id.clone(), draft.tasks[place].spec.parent.clone());
            let above = draft.tasks.iter().position(|task| Some(&task.spec.id) == parent.as_ref());
            if let Some(above) = above {
                draft.tasks[place].spec.parent = draft.tasks[above].spec.parent.clone();
                draft.tasks[above].spec.parent = Some(child);
                draft.tasks[place].spec.work = None;
            }
        }
        for _ in 0..self.dice.below(3) {
            let name = self.fresh_id();
            let spec = self.random_spec(name, &ids, &ids);
            let place = self.dice.below(draft.tasks.len() + 1);
            draft.tasks.insert(place, Task::new(spec));
        }
        if self.dice.chance(30) && draft.tasks.len() > 1 {
            let (a, b) = (self.dice.below(draft.tasks.len()), self.dice.below(draft.tasks.len()));
            draft.tasks.swap(a, b);
        }
        for task in &mut draft.tasks {
            task.spec.depends_on.retain(|on| on.here().is_none_or(|on| !gone.contains(on)));
            if task.spec.parent.as_ref().is_some_and(|parent| gone.contains(parent)) {
                task.spec.parent = None;
            }
        }
        draft
    }

    pub(crate) fn random_command(&mut self) -> (Actor, Command) {
        let person_or_agent = if self.dice.chance(70) { ada() } else { agent() };
        let by = person_or_agent.clone();
        let roll = self.dice.below(146);
        let edit = (by.clone(), roll);
        match edit.1 {
            0..25 => (worker(), self.random_start()),
            25..45 => (Actor::worker("w"), self.random_finish()),
            45..50 => {
                let task = self.some_task_that(|task| task.state.status == Status::Running);
                let attempt = self.attempt_of(&task);
                (system(), Command::LoseTask { task, attempt, retry: None })
            }
            50..53 => (by, Command::CancelTask { task: self.some_task(), reason: "enough".into() }),
            53..58 => {
                (by, Command::RetryTask { task: self.some_task_that(|task| task.state.status.is_finished()) })
            }
            58..60 => (by, Command::RetryPlan),
            60..67 => {
                let ids = self.ids();
                let mut all = ids.clone();
                let names: Vec<TaskId> = (0..1 + self.dice.below(3)).map(|_| self.fresh_id()).collect();
                all.extend(names.iter().cloned());
                let tasks = names.into_iter().map(|name| self.random_spec(name, &all, &all)).collect();
                (by, Command::AddTasks { tasks, place: self.random_place() })
            }
            67..77 => {
                let (task, changes) = (self.some_task(), self.random_changes());
                (by, Command::ReviseTask { task, changes: Box::new(changes) })
            }
            77..81 => (by, Command::RemoveTask { task: self.some_task(), detach: self.dice.chance(60) }),
            81..87 => {
                let task = self.some_task();
                let parent = match self.dice.below(3) {
                    0 => None,
                    1 => Some(None),
                    _ => Some(Some(self.some_task())),
                };
                (by, Command::MoveTask { task, parent, place: self.random_place() })
            }
            87..93 => (by, Command::Replace(Box::new(self.random_replacement()))),
            93..97 => {
                let task = self.some_task();
                let names: Vec<TaskId> = (0..1 + self.dice.below(3)).map(|_| self.fresh_id()).collect();
                let mut among = self.ids();
                among.extend(names.iter().cloned());
                let children = names.iter().map(|name| {
                    let mut spec = self.random_spec(name.clone(), &among, &names);
                    spec.parent = spec.parent.filter(|parent| parent != name);
                    spec
                });
                let children = children.collect();
                (by, Command::DecomposeTask { task, children, reasoning: Some("smaller".into()), tokens: 3 })
            }
            // A paused draft does little: most drafts start instead.
            97..99 if self.plan.state().phase == Phase::Draft && self.dice.chance(80) => {
                (by, Command::Activate)
            }
            97..99 => (by, Command::Pause { reason: "lunch".into() }),
            99..103 => (ada(), Command::Resume),
            103..105 => (by, Command::RequestApproval { message: "please".into() }),
            105..110 => {
                let version = self.plan.version().saturating_sub(u64::from(self.dice.chance(10)));
                (by, Command::Approve { version, note: "fine".into(), work: None })
            }
            110 => (by, Command::Reject { reason: "no".into() }),
            111..115 => (by, Command::Activate),
            115..117 => {
                let task = self.some_task_that(|task| task.state.status == Status::Running);
                let attempt = self.attempt_of(&task);
                let started_at = at(self.seconds.saturating_sub(1));
                (Actor::worker("w"), Command::RecordStart { task, attempt, started_at })
            }
            117 if self.dice.chance(30) => {
                let (task, call) =
                    (Some(self.some_task()), self.plan.state().calls + self.dice.below(3) as u64);
                (by, Command::ChargeTokens { task: task.filter(|_| self.dice.chance(80)), tokens: 5, call })
            }
            117 if self.dice.chance(30) => {
                let detach = self.dice.chance(50);
                (by, Command::RollBackTask { task: self.some_task(), detach })
            }
            117 if self.plan.tasks().any(|(task, _)| task.state.reported().is_some()) => {
                let task = self.some_task_that(|task| task.state.reported().is_some());
                (agent(), Command::StartTask { task, worker: "planner".into() })
            }
            117 => {
                let (task, reasoning) = (self.some_task(), Some("clear".into()));
                (by, Command::RefineTask { task, refinement: Refinement::Atomic, reasoning, tokens: 7 })
            }
            118 => {
                let digest = Digest {
                    summary: "done".into(),
                    key_decisions: vec!["one".into()],
                    artifacts: Vec::new(),
                    compression_ratio: Some(0.1),
                    fidelity_score: None,
                };
                (by, Command::AttachDigest { task: self.some_task(), digest, tokens: 2 })
            }
            119..123 => {
                let awaits = |task: &Task| task.spec.depends_on.iter().any(|on| on.external().is_some());
                let task = self.some_task_that(awaits);
                let awaited = self
                    .plan
                    .task(task.as_str())
                    .and_then(|task| task.spec.depends_on.iter().find_map(Dependency::external).cloned());
                let from = awaited.unwrap_or_else(|| self.random_elsewhere());
                if self.dice.chance(25) {
                    return (system(), Command::WithdrawOutput { task, from });
                }
                (system(), {
                    let untrusted = self.dice.chance(20);
                    Command::ReceiveOutput { task, from, received: self.random_received(), untrusted }
                })
            }
            130..136 => (if self.dice.chance(80) { worker() } else { by }, self.random_question()),
            136..141 => {
                let task = self.some_task_that(|task| task.state.question().is_some());
                let answer = (*self.dice.pick(&["yes", "N", "perhaps"])).to_owned();
                (by, Command::AnswerQuestion { task, answer })
            }
            141..144 => {
                let task = self.some_task_that(|task| task.state.status == Status::Running);
                let attempt = Some(self.attempt_of(&task)).filter(|_| self.dice.chance(70));
                (by, Command::ReleaseTask { task, attempt, reason: "lunch".into() })
            }
            144..146 => {
                let task = self.some_task_that(|task| task.spec.check.is_some());
                let outcome = self.random_outcome(5);
                (by, Command::FinishTask { task, attempt: None, outcome, retry: None })
            }
            126 if self.dice.chance(50) => {
                let thought_about = |task: &Task| task.spec.thinking.is_some();
                let (task, detach) = (self.some_task_that(thought_about), self.dice.chance(50));
                (by, Command::RollBackTask { task, detach })
            }
            126 if self.dice.chance(50) => {
                let (task, words) = (self.some_task(), *self.dice.pick(&["mind the gap", "", "again"]));
                let command = match *self.dice.pick(&[0, 1, 2]) {
                    0 => Command::CommentTask { task, text: words.into() },
                    1 => Command::LabelTask { task, labels: vec![words.into(), "risky".into()] },
                    _ => Command::AssignTask { task, assignee: words.into() },
                };
                (by, command)
            }
            127 => (by, Command::HoldTask { task: self.some_task(), reason: "not yet".into() }),
            128 => {
                (by, Command::UnholdTask { task: self.some_task_that(|task| task.state.held().is_some()) })
            }
            123 if self.dice.chance(40) => {
                let phase = *self.dice.pick(&[Phase::Completed, Phase::Failed, Phase::Cancelled]);
                (by, Command::FinishPlan { phase, summary: "that is all".into() })
            }
            124 if self.dice.chance(40) => (by, Command::Archive),
            123..126 => (by, Command::Unarchive),
            _ => {
                let title = Some(format!("at {}", self.seconds));
                (by, Command::RevisePlan(Box::new(PlanChanges { title, ..PlanChanges::default() })))
            }
        }
    }

    pub(super) fn attempt_of(&mut self, task: &TaskId) -> u32 {
        let attempt = self.plan.task(task.as_str()).map_or(0, |task| task.state.attempt);
        if self.dice.chance(10) { attempt.saturating_sub(1) } else { attempt }
    }

    pub(super) fn random_start(&mut self) -> Command {
        let ready: Vec<TaskId> = self.plan.ready().map(|task| task.spec.id.clone()).collect();
        let task = if ready.is_empty() || self.dice.chance(10) {
            self.some_task()
        } else {
            self.dice.pick(&ready).clone()
        };
        // By the clock, not by the random number generator: the rest of the random sequence stays the same.
        if self.seconds.is_multiple_of(2) {
            return Command::QueueTask { task, worker: "w".into() };
        }
        Command::StartTask { task, worker: "w".into() }
    }

    pub(super) fn random_finish(&mut self) -> Command {
        let task = self.some_task_that(|task| task.state.status == Status::Running);
        let attempt = if self.dice.chance(85) { Some(self.attempt_of(&task)) } else { None };
        let retry = self.random_retry().map(|retry| *retry);
        let has_check = self.plan.task(task.as_str()).is_some_and(|task| task.spec.check.is_some());
        Command::FinishTask {
            task,
            attempt,
            outcome: self.random_outcome(if has_check { 50 } else { 2 }),
            retry,
        }
    }

    pub(super) fn random_question(&mut self) -> Command {
        let task = self.some_task_that(|task| task.state.status == Status::Running);
        let attempt = Some(self.attempt_of(&task)).filter(|_| self.dice.chance(85));
        let choices = if self.dice.chance(50) { vec!["Yes".to_owned(), "No".to_owned()] } else { Vec::new() };
        let state = self.dice.chance(30).then(|| Json::of(&self.seconds));
        Command::AskQuestion {
            task,
            attempt,
            ask: Box::new(QuestionRequest { text: "go on?".into(), choices, state, check: None }),
        }
    }
}
