//! The lifecycle of a plan: create, approve, pause, resume, cancel, retry, archive, restore, purge.

use std::collections::HashSet;

use serde::Serialize;
use waypost_config::Config;
use waypost_core::{
    Actor, ActorKind, Command, Draft, Event, Phase, PlanId, Problem, ProblemKind, ProblemLocation, Refusal,
    TaskChanges, TaskId, Timestamp, validate,
};
use waypost_store::{NewPlan, WriteError};

use crate::admission;
use crate::caller::{Caller, ProvedAct};
use crate::error::{ServiceError, Subject};
use crate::gate::{brings_peoples_acts, without_peoples_acts};
use crate::hint::{PersonAct, PersonVerb};
use crate::service::{Guard, RecordRule, Service, Terms, WriteReply, WriteResult};
use crate::sharing::SharingError;

/// How many of the latest versions of an archived plan are searched for the one that archived it: nothing but results of other
/// plans and a second archiving can follow.
const ARCHIVING_VERSIONS_MAX: usize = 20;

/// Options for creating a plan.
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// The id of the new plan; without one it gets a new id.
    pub id: Option<PlanId>,
    /// When the plan needs approval.
    pub approval: ApprovalRule,
    /// Who owns the plan.
    pub owner: OwnerRule,
}

/// What a restore of an earlier version would do to tasks. Tasks that it does not name keep what they have produced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RestorePreview {
    /// Ended tasks whose work differs: they become pending again.
    pub reset: Vec<TaskId>,
    /// Tasks that come back, without what they had produced.
    pub added: Vec<TaskId>,
    /// Tasks that are removed.
    pub removed: Vec<TaskId>,
    /// The reset and removed tasks whose result or output goes.
    pub outputs_lost: Vec<TaskId>,
    /// Why the version cannot be restored now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Who owns a new plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnerRule {
    /// The owner named in the draft; otherwise the agent that creates the plan.
    #[default]
    CreatorIfUnnamed,
    /// The owner named in the draft, or none: a document says itself who its author is.
    AsWritten,
}

/// When a new plan needs a person's approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApprovalRule {
    /// As configured.
    #[default]
    Configured,
    /// Always, unless the configuration never requires approval.
    Always,
    /// If the creator is not a person and the plan has machine work or a check, regardless of the configuration. For
    /// plans whose planning is unfinished.
    ByWork,
}

impl ApprovalRule {
    fn required(self, config: &Config) -> Option<bool> {
        match self {
            Self::Configured => config.approval.policy.required(),
            Self::Always => Some(config.approval.policy.required().unwrap_or(true)),
            Self::ByWork => None,
        }
    }
}

impl Service {
    /// Reserves an id for a plan to be created later. Writes nothing.
    pub fn reserve_id(&self) -> Result<PlanId, ServiceError> {
        Ok(self.plans().reserve_id()?)
    }

    /// Creates a plan. Names that the configuration does not know are reported but do not prevent the write.
    pub fn create(&self, by: &Caller, mut draft: Draft, options: CreateOptions) -> WriteResult {
        by.may_edit()?;
        let config = self.config()?;
        let not_runnable = admitted(&config, &draft)?;
        match options.owner {
            OwnerRule::CreatorIfUnnamed => owned_by_creator(by, &mut draft),
            OwnerRule::AsWritten => {}
        }
        let approval_required = options.approval.required(&config);
        let id = self.id_for(&config, &draft, options.id)?;
        self.take_peoples_acts(&config, by, &mut draft, id.as_ref())?;
        let actor = by.actor.clone();
        let new = NewPlan { id: id.clone(), by: actor, draft, approval_required };
        let committed = match (self.plans().create(new), id) {
            (Err(WriteError::Refused(Refusal::AlreadyExists {})), Some(id)) => {
                // The id of a plan that a person stopped says so.
                let undoing = [Event::PlanUnarchived {}, Event::PlanResumed { to_draft: true }];
                self.read(&id, |plan| plan.undoes_no_stop(&undoing))??;
                return Err(Refusal::AlreadyExists {}.into());
            }
            (created, _) => created?,
        };
        Ok(WriteReply { not_runnable, ..WriteReply::from(&committed) })
    }

    /// Returns the id of a plan to be created. What people did in a draft is recorded for an id, which is reserved if the
    /// draft has none.
    pub(crate) fn id_for(
        &self,
        config: &Config,
        draft: &Draft,
        id: Option<PlanId>,
    ) -> Result<Option<PlanId>, ServiceError> {
        match id {
            None if brings_peoples_acts(config, draft) => Ok(Some(self.reserve_id()?)),
            id => Ok(id),
        }
    }

    /// Records what people did in a draft, or takes it out.
    pub(crate) fn take_peoples_acts(
        &self,
        config: &Config,
        by: &Caller,
        draft: &mut Draft,
        id: Option<&PlanId>,
    ) -> Result<(), ServiceError> {
        let now = self.now_for(by)?;
        Ok(without_peoples_acts(config, by, draft, now, (id, self.authenticator()?))?)
    }

    /// Returns all problems of a draft, including those with the current configuration.
    pub fn problems(&self, draft: &Draft) -> Result<Vec<Problem>, ServiceError> {
        let mut problems = validate(draft);
        problems.extend(admission::problems(&*self.config()?, draft));
        Ok(problems)
    }

    /// Asks a person for approval.
    pub fn request_approval(&self, by: &Caller, plan: &PlanId, message: &str, guard: Guard) -> WriteResult {
        self.write(by, plan, vec![Command::RequestApproval { message: message.to_owned() }], guard)
    }

    /// Withdraws the approval of a plan: nothing new starts until it is approved again.
    pub fn revoke(&self, by: &Caller, plan: &PlanId, guard: Guard) -> WriteResult {
        let act = PersonAct::on_plan(PersonVerb::Revoke, plan);
        by.proved(&ProvedAct { verb: "revoke an approval", what: "revoking an approval", act })?;
        let approval = self.read(plan, |plan| plan.state().approval.clone())?;
        let reply = self.write(by, plan, vec![Command::Revoke], guard)?;
        if let Some(approval) = approval {
            self.authenticator()?.revoke(&approval)?;
        }
        Ok(reply)
    }

    /// Rejects a plan. The author has to learn why, so a reason is needed.
    pub fn reject(&self, by: &Caller, plan: &PlanId, reason: &str, guard: Guard) -> WriteResult {
        // Others are refused because they are not people.
        if by.actor.kind == ActorKind::Person && reason.trim().is_empty() {
            let wrong = ProblemKind::Missing { field: "reason".to_owned() };
            let problems = vec![Problem { place: ProblemLocation::Plan, wrong }];
            return Err(ServiceError::Invalid { subject: Subject::Rejection, problems });
        }
        self.write(by, plan, vec![Command::Reject { reason: reason.to_owned() }], guard)
    }

    /// Activates a plan, or requests approval if a person has to approve it first.
    pub fn activate(&self, by: &Caller, plan: &PlanId, guard: Guard) -> WriteResult {
        let starts = self.start_rule(by, plan, RecordRule::Leave)?;
        let (reply, ()) = self.write_with(by, plan, Terms::starting(guard), move |plan| {
            let is_waiting = matches!(plan.state().phase, Phase::Draft | Phase::AwaitingApproval);
            let command = match is_waiting && !starts.allows(plan) {
                true => Command::RequestApproval { message: String::new() },
                false => Command::Activate,
            };
            Ok((vec![command], ()))
        })?;
        Ok(reply)
    }

    /// Pauses a plan: no new task starts until it is resumed.
    pub fn pause(&self, by: &Caller, plan: &PlanId, reason: &str, guard: Guard) -> WriteResult {
        self.write(by, plan, vec![Command::Pause { reason: reason.to_owned() }], guard)
    }

    /// Resumes a paused plan.
    pub fn resume(&self, by: &Caller, plan: &PlanId, guard: Guard) -> WriteResult {
        self.write(by, plan, vec![Command::Resume], Terms::starting(guard))
    }

    /// Ends a plan as completed, failed or cancelled.
    pub fn finish(
        &self,
        by: &Caller,
        plan: &PlanId,
        phase: Phase,
        summary: &str,
        guard: Guard,
    ) -> WriteResult {
        self.write(by, plan, vec![Command::FinishPlan { phase, summary: summary.to_owned() }], guard)
    }

    /// Cancels a task with all its subtasks.
    pub fn cancel_task(
        &self,
        by: &Caller,
        plan: &PlanId,
        task: &TaskId,
        reason: &str,
        guard: Guard,
    ) -> WriteResult {
        let command = Command::CancelTask { task: task.clone(), reason: reason.to_owned() };
        self.write(by, plan, vec![command], guard)
    }

    /// Holds tasks: none of them, and no task below them, starts until its hold is lifted.
    pub fn hold_tasks(
        &self,
        by: &Caller,
        plan: &PlanId,
        tasks: &[TaskId],
        reason: &str,
        guard: Guard,
    ) -> WriteResult {
        let hold = |task: &TaskId| Command::HoldTask { task: task.clone(), reason: reason.to_owned() };
        self.write(by, plan, tasks.iter().map(hold).collect(), guard)
    }

    /// Lifts the holds of tasks. Only a person who is present lifts those of people.
    pub fn unhold_tasks(&self, by: &Caller, plan: &PlanId, tasks: &[TaskId], guard: Guard) -> WriteResult {
        let unhold = |task: &TaskId| Command::UnholdTask { task: task.clone() };
        self.write(by, plan, tasks.iter().map(unhold).collect(), guard)
    }

    /// Resets a finished task, and the tasks that were skipped because of it.
    pub fn retry_task(&self, by: &Caller, plan: &PlanId, task: &TaskId, guard: Guard) -> WriteResult {
        self.write(by, plan, vec![Command::RetryTask { task: task.clone() }], Terms::starting(guard))
    }

    /// Resets all failed and cancelled tasks.
    pub fn retry_plan(&self, by: &Caller, plan: &PlanId, guard: Guard) -> WriteResult {
        self.write(by, plan, vec![Command::RetryPlan], Terms::starting(guard))
    }

    /// Reopens a skipped task, whether its author or its worker skipped it.
    pub fn unskip(&self, by: &Caller, plan: &PlanId, task: &TaskId, guard: Guard) -> WriteResult {
        let task = task.clone();
        let (reply, ()) = self.write_with(by, plan, guard, move |plan| {
            let by_author = plan.task(task.as_str()).is_some_and(|task| task.spec.skip);
            let task = task.clone();
            let command = match by_author {
                true => {
                    let changes = TaskChanges { skip: Some(false), ..TaskChanges::default() };
                    Command::ReviseTask { task, changes: Box::new(changes) }
                }
                false => Command::RetryTask { task },
            };
            Ok((vec![command], ()))
        })?;
        Ok(reply)
    }

    /// Archives a plan.
    pub fn archive(&self, by: &Caller, plan: &PlanId, guard: Guard) -> WriteResult {
        self.write(by, plan, vec![Command::Archive], guard)
    }

    /// Returns who archived a plan. `None` if it is not archived, or its latest versions do not say.
    pub fn archived_by(&self, plan: &PlanId) -> Result<Option<Actor>, ServiceError> {
        let (archived, version) = self.view(plan, |plan, _| (plan.state().archived, plan.version()))?;
        if !archived {
            return Ok(None);
        }
        let latest = self.plans().history(
            plan,
            version.saturating_sub(ARCHIVING_VERSIONS_MAX as u64),
            ARCHIVING_VERSIONS_MAX,
        )?;
        let archives = |event: &Event| matches!(event, Event::PlanArchived { .. });
        let found = latest.into_iter().rev().find(|entry| entry.events.iter().any(archives));
        Ok(found.map(|entry| entry.actor))
    }

    /// Restores a plan from the archive.
    pub fn unarchive(&self, by: &Caller, plan: &PlanId, guard: Guard) -> WriteResult {
        self.write(by, plan, vec![Command::Unarchive], guard)
    }

    /// Deletes a plan with its history permanently. Only a person can; the id is never reused.
    pub fn purge(&self, by: &Caller, plan: &PlanId) -> Result<(), SharingError> {
        let act = PersonAct::on_plan(PersonVerb::Purge, plan);
        by.proved(&ProvedAct { verb: "purge a plan", what: "purging", act })?;
        self.purge_for_all(&by.actor, plan)
    }

    /// Discards the decomposition of a task with all its subtasks. `drop_dependencies` also removes outside
    /// dependencies on them; otherwise such dependencies make the call fail.
    pub fn roll_back(
        &self,
        by: &Caller,
        plan: &PlanId,
        task: &TaskId,
        drop_dependencies: bool,
        guard: Guard,
    ) -> WriteResult {
        let command = Command::RollBackTask { task: task.clone(), detach: drop_dependencies };
        self.write(by, plan, vec![command], guard)
    }

    /// Returns what a restore of an earlier version would do now to what the tasks have produced.
    pub fn restore_preview(&self, plan: &PlanId, version: u64) -> Result<RestorePreview, ServiceError> {
        let draft = Box::new(self.plans().at_version(plan, version)?.to_draft());
        self.read(plan, |plan| {
            // Whoever asks, a person may decide to do it.
            let by = Actor::person("");
            let at = plan.state().updated_at.unwrap_or(Timestamp::from_micros(0));
            let mut preview = RestorePreview::default();
            let events = match plan.decide(&by, at, &Command::Restore { version, draft: draft.clone() }) {
                Ok(events) => events,
                Err(refusal) => return RestorePreview { refused: Some(refusal.to_string()), ..preview },
            };
            for event in events {
                if let Event::TasksReset { tasks } = event {
                    preview.reset.extend(tasks);
                } else if let Event::TasksAdded { tasks, .. } = event {
                    preview.added.extend(tasks.into_iter().map(|task| task.id));
                }
            }
            let wanted: HashSet<&TaskId> = draft.tasks.iter().map(|task| &task.spec.id).collect();
            let gone = plan.tasks().map(|(task, _)| &task.spec.id).filter(|id| !wanted.contains(id));
            preview.removed = gone.cloned().collect();
            let lost = preview.reset.iter().chain(&preview.removed).filter_map(|id| plan.task(id.as_str()));
            preview.outputs_lost = lost
                .filter(|task| task.state.output.is_some() || task.state.result.is_some())
                .map(|task| task.spec.id.clone())
                .collect();
            preview
        })
    }

    /// Restores the content of an earlier version, as a new version.
    pub fn restore(&self, by: &Caller, plan: &PlanId, version: u64, guard: Guard) -> WriteResult {
        let draft = Box::new(self.plans().at_version(plan, version)?.to_draft());
        // What was stored then, others may have written since: nobody has seen it as it is now.
        let terms = Terms { guard, record: RecordRule::Keep, ..Terms::default() };
        self.write(by, plan, vec![Command::Restore { version, draft }], terms)
    }
}

/// Makes the agent that creates a plan its owner, unless the draft names one. People own no plans: an owner is an agent.
pub(crate) fn owned_by_creator(by: &Caller, draft: &mut Draft) {
    if by.actor.kind == ActorKind::Agent && draft.spec.owner.is_empty() {
        draft.spec.owner.clone_from(&by.actor.name);
    }
}

/// Refuses a draft whose inputs do not match their shape. Returns the problems that only keep it from running here.
fn admitted(config: &Config, draft: &Draft) -> Result<Vec<Problem>, ServiceError> {
    let problems = admission::problems(config, draft).into_iter();
    let (forbidden, not_runnable): (Vec<_>, Vec<_>) = problems.partition(admission::forbids_writing);
    match forbidden.is_empty() {
        true => Ok(not_runnable),
        false => Err(ServiceError::Invalid { subject: Subject::Write, problems: forbidden }),
    }
}
