//! The status of a plan for people: one sign and a few words for what needs somebody most, decided here for every front
//! end. Knows no colours and no pages; what waits for a person, item by item, is in `inbox`.

use std::collections::HashMap;

use serde::Serialize;
use serde::ser::SerializeStruct;
use waypost_config::Config;
use waypost_core::{BlockReason, Phase, Plan, PlanId, Status, Task, Timestamp};
use waypost_store::{PlanSummary, Query, StoreError, Worker};
use waypost_text::{StatusSign, count, excerpt};

use crate::active_workers::{all_workers, no_worker, takes_tasks_of};
use crate::approval::start_refusal_text;
use crate::error::ServiceError;
use crate::human_answer::HumanExecutors;
use crate::service::Service;
use crate::wait_reasons::waiting_text;

/// Plans with more tasks are described by their summary alone.
const TASKS_READ_MAX: u32 = 10_000;
/// Plans that are looked at in a search by status; those after them are only said to exist.
const PLANS_SEARCHED_MAX: usize = 2_000;
/// How many of them are read at once.
const PAGE_SEARCHED: usize = 500;
/// Maximum number of tasks of a blocked plan that are asked what they wait for.
const TASKS_EXPLAINED_MAX: usize = 200;
/// Maximum width of the details of a status, in columns.
const DETAIL_COLUMNS_MAX: usize = 160;
/// Maximum number of running tasks that the details name.
const NAMES_MAX: usize = 3;

/// The status of a plan for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStatus {
    /// The sign of what needs somebody most.
    pub sign: StatusSign,
    /// The same in words: `2 questions`, `idle: no worker`.
    pub label: String,
    /// What it is about, on one line: the question, the error, what runs. Empty if there is nothing to say.
    pub detail: String,
    /// Whether a person has to act before the plan continues as its author meant it.
    pub needs_you: bool,
}

impl PlanStatus {
    /// The signs that a plan can have, in the order of a list.
    pub const SIGNS: [StatusSign; 14] = [
        StatusSign::Refused,
        StatusSign::Approval,
        StatusSign::Asking,
        StatusSign::Person,
        StatusSign::Failed,
        StatusSign::Running,
        StatusSign::Reported,
        StatusSign::Paused,
        StatusSign::Idle,
        StatusSign::Blocked,
        StatusSign::Rejected,
        StatusSign::Draft,
        StatusSign::Done,
        StatusSign::Cancelled,
    ];
}

impl Serialize for PlanStatus {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { sign, label, detail, needs_you } = self;
        let mut fields = serializer.serialize_struct("PlanStatus", 4)?;
        fields.serialize_field("name", sign.name())?;
        fields.serialize_field("label", label)?;
        fields.serialize_field("detail", detail)?;
        fields.serialize_field("needs_you", needs_you)?;
        fields.end()
    }
}

/// The summary of a plan as front ends list it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListedPlan {
    /// Its summary, among the fields of the listed plan.
    #[serde(flatten)]
    pub summary: PlanSummary,
    /// Whether the plan has no tasks.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub document: bool,
    /// Its status for people.
    pub state: PlanStatus,
}

/// What a status is decided from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Facts {
    phase: Phase,
    /// A worker refused to start its tasks.
    is_refused: bool,
    awaits_approval: bool,
    asking: u32,
    /// What clones disagree about.
    disputed: u32,
    /// Tasks that a person has to do now.
    for_people: u32,
    failed: u32,
    in_progress: u32,
    /// Tasks that are reported as done and wait for their check.
    reported: u32,
    /// Ready tasks that agents, machines or checks have to do.
    ready: u32,
    /// Whether machines do some of what is ready.
    has_machine_work: bool,
    has_worker: bool,
    held: u32,
    /// The person who paused or rejected it.
    stopped_by: Option<String>,
    is_rejected: bool,
    /// Whether that person cancelled a draft, and another clone opened it again.
    is_reopened: bool,
}

impl Facts {
    /// Returns what the summary of a plan tells.
    fn of_summary(head: &PlanSummary) -> Self {
        Self {
            phase: head.phase,
            is_refused: head.is_refused(),
            awaits_approval: head.awaits_approval,
            asking: head.asking,
            failed: head.counts.failed,
            in_progress: head.counts.in_progress(),
            ready: head.counts.ready,
            ..Self::default()
        }
    }

    /// Returns what the plan itself tells.
    fn of_plan(plan: &Plan, config: &Config, has_worker: bool) -> Self {
        let (state, counts) = (plan.state(), plan.effective_counts());
        let people = HumanExecutors::of(config, plan);
        let for_people = people.awaited().count() as u32;
        let has_work = |task: &Task| task.spec.work.is_some();
        Self {
            phase: state.phase,
            is_refused: !state.start_refusals.is_empty(),
            awaits_approval: state.approval_required && state.approval.is_none(),
            asking: counts.asking,
            disputed: 0,
            for_people,
            failed: counts.failed,
            in_progress: counts.in_progress(),
            reported: counts.reported,
            ready: counts.ready.saturating_sub(for_people),
            has_machine_work: plan.claimable().any(|task| has_work(task) && !people.has(task)),
            has_worker,
            held: counts.held,
            stopped_by: state.stopped_by.as_ref().or_else(|| plan.rejected_by()).map(|by| by.name.clone()),
            is_rejected: !plan.rejection().is_empty(),
            is_reopened: plan.is_reopened_draft(),
        }
    }

    /// Decides the status: the first that applies.
    fn status(&self) -> (StatusSign, String) {
        let of = |number: u32, one: &str| count(number as usize, one);
        let disputed = || (StatusSign::Asking, of(self.asking + self.disputed, "question"));
        match self.phase {
            Phase::Completed | Phase::Cancelled | Phase::Failed if self.disputed > 0 => disputed(),
            Phase::Completed => (StatusSign::Done, "completed".to_owned()),
            Phase::Cancelled => (StatusSign::Cancelled, "cancelled".to_owned()),
            Phase::Failed if self.failed > 1 => {
                (StatusSign::Failed, format!("{} failed", of(self.failed, "task")))
            }
            Phase::Failed => (StatusSign::Failed, "failed".to_owned()),
            Phase::Active if self.is_refused => (StatusSign::Refused, "start refused".to_owned()),
            Phase::AwaitingApproval => (StatusSign::Approval, "needs approval".to_owned()),
            Phase::Active if self.awaits_approval => (StatusSign::Approval, "needs approval".to_owned()),
            // In a draft, a worker of another clone asks.
            Phase::Active | Phase::Paused | Phase::Draft if self.asking + self.disputed > 0 => disputed(),
            Phase::Active if self.for_people == 1 => (StatusSign::Person, "your task".to_owned()),
            Phase::Active if self.for_people > 1 => {
                (StatusSign::Person, format!("{} for you", of(self.for_people, "task")))
            }
            Phase::Active | Phase::Paused if self.failed > 0 => {
                (StatusSign::Failed, format!("{} failed", of(self.failed, "task")))
            }
            Phase::Active if self.in_progress > 0 => (StatusSign::Running, "running".to_owned()),
            Phase::Active if self.reported > 0 && self.has_worker => {
                (StatusSign::Reported, "waits for its check".to_owned())
            }
            Phase::Paused => {
                let by = self.stopped_by.as_deref().map(|by| format!(" by {by}"));
                (StatusSign::Paused, format!("paused{}", by.unwrap_or_default()))
            }
            Phase::Active if self.ready + self.reported > 0 => {
                let is_for_machines = self.has_machine_work || self.reported > 0;
                let label = match (is_for_machines, self.has_worker) {
                    (true, true) => "idle: waits for a worker",
                    (true, false) => "idle: no worker",
                    (false, _) => "idle: waits for an agent",
                };
                (StatusSign::Idle, label.to_owned())
            }
            Phase::Active if self.held > 0 => {
                (StatusSign::Blocked, format!("blocked: {} held", of(self.held, "task")))
            }
            Phase::Active => (StatusSign::Blocked, "blocked".to_owned()),
            Phase::Draft if self.is_rejected => {
                let by = self.stopped_by.as_deref().map(|by| format!(" by {by}"));
                let what = if self.is_reopened { "cancelled" } else { "rejected" };
                (StatusSign::Rejected, format!("{what}{}", by.unwrap_or_default()))
            }
            Phase::Draft => (StatusSign::Draft, "draft".to_owned()),
        }
    }
}

/// Whether a person has to act.
fn needs_you(sign: StatusSign) -> bool {
    match sign {
        StatusSign::Refused
        | StatusSign::Approval
        | StatusSign::Asking
        | StatusSign::Disputed
        | StatusSign::Person
        | StatusSign::Failed => true,
        StatusSign::Running
        | StatusSign::Ready
        | StatusSign::Queued
        | StatusSign::Reported
        | StatusSign::Held
        | StatusSign::Blocked
        | StatusSign::Idle
        | StatusSign::Paused
        | StatusSign::Rejected
        | StatusSign::Draft
        | StatusSign::Done
        | StatusSign::Skipped
        | StatusSign::Cancelled => false,
    }
}

/// A search for plans by their status.
#[derive(Debug)]
pub struct FoundPlans {
    /// The plans, at most as many as were asked for.
    pub plans: Vec<ListedPlan>,
    /// How many were found.
    pub total: usize,
    /// Whether there are plans that were not searched.
    pub more: bool,
    /// Damage to files of the store.
    pub warnings: Vec<String>,
}

/// Decides the statuses of plans: reads the configuration and the workers once.
#[derive(Debug)]
pub struct PlanStatuses {
    config: std::sync::Arc<Config>,
    workers: Vec<Worker>,
    /// The number of open questions of merges.
    questions: HashMap<PlanId, usize>,
    now: Timestamp,
}

impl Service {
    /// Returns what decides the statuses of plans as of now.
    pub fn plan_statuses(&self) -> Result<PlanStatuses, StoreError> {
        let (workers, now) = all_workers(self.plans())?;
        // Without a readable configuration, what every configuration has is still true.
        Ok(PlanStatuses {
            config: self.config().unwrap_or_default(),
            workers,
            questions: self.known_questions()?,
            now,
        })
    }

    /// Returns the status of the plan with this summary. Reads the plan, unless it is too large or has ended.
    pub fn plan_status(
        &self,
        statuses: &PlanStatuses,
        head: &PlanSummary,
    ) -> Result<PlanStatus, ServiceError> {
        let is_over = matches!(head.phase, Phase::Completed | Phase::Cancelled);
        if is_over || head.goals > TASKS_READ_MAX {
            return Ok(statuses.of_summary(head));
        }
        // Progress, which is kept beside the plan, is only of tasks that run.
        let is_idle = head.counts.in_progress() == 0;
        let cached = self.plans().with_cached(&head.id, head.version, |plan| statuses.of_plan(plan));
        let status = match cached.filter(|_| is_idle) {
            Some(status) => Ok(status),
            None => self.view(&head.id, |plan, _| statuses.of_plan(plan)),
        };
        match status.and_then(|status| self.with_external_wait(&head.id, status)) {
            // It was purged since its summary was read.
            Err(ServiceError::NoSuchPlan(_)) => Ok(statuses.of_summary(head)),
            found => found,
        }
    }

    /// Adds to the status of a blocked plan which other plan it waits for, unless something in it says why it is blocked.
    pub fn with_external_wait(&self, plan: &PlanId, status: PlanStatus) -> Result<PlanStatus, ServiceError> {
        if status.sign != StatusSign::Blocked || !status.detail.is_empty() {
            return Ok(status);
        }
        let Some((wait, target)) = self.plans().external_waits(plan, 1)?.pop() else { return Ok(status) };
        let detail = format!("{} waits for {}", wait.task, target.named(&wait.on));
        Ok(PlanStatus { detail: excerpt(&detail, DETAIL_COLUMNS_MAX).into_owned(), ..status })
    }

    /// Returns a page of summaries, each with its status.
    pub fn summaries_with_status(&self, heads: Vec<PlanSummary>) -> Result<Vec<ListedPlan>, ServiceError> {
        let statuses = self.plan_statuses()?;
        let with_status = |summary: PlanSummary| {
            let state = self.plan_status(&statuses, &summary)?;
            Ok(ListedPlan { document: summary.is_document(), state, summary })
        };
        heads.into_iter().map(with_status).collect()
    }

    /// Finds plans with a status that is `wanted`, at most `query.limit`. The store knows no statuses, so each plan is looked at.
    pub fn plans_by_status(
        &self,
        query: Query,
        wanted: impl Fn(&PlanStatus) -> bool,
    ) -> Result<FoundPlans, ServiceError> {
        let limit = query.limit;
        let mut query = Query { limit: PAGE_SEARCHED, ..query };
        let (mut plans, mut searched, mut warnings) = (Vec::new(), 0, Vec::new());
        let more = loop {
            let page = self.plans().heads(&query)?;
            searched += page.items.len();
            warnings.extend(page.warnings);
            let found = self.summaries_with_status(page.items)?;
            plans.extend(found.into_iter().filter(|plan| wanted(&plan.state)));
            match page.next {
                Some(next) if plans.len() < limit && searched < PLANS_SEARCHED_MAX => {
                    query.after = Some(next)
                }
                next => break next.is_some(),
            }
        };
        let total = plans.len();
        plans.truncate(limit);
        Ok(FoundPlans { plans, total, more, warnings })
    }
}

impl PlanStatuses {
    /// Returns the status of a plan as far as its summary tells.
    pub fn of_summary(&self, head: &PlanSummary) -> PlanStatus {
        let (sign, label) = Facts { disputed: self.disputed(&head.id), ..Facts::of_summary(head) }.status();
        PlanStatus { sign, label, detail: String::new(), needs_you: needs_you(sign) && !head.archived }
    }

    /// Returns the status of a plan.
    pub fn of_plan(&self, plan: &Plan) -> PlanStatus {
        let has_worker = self.has_worker(plan);
        let (sign, label) = self.facts(plan, has_worker).status();
        let detail = excerpt(&self.detail(plan, sign, has_worker), DETAIL_COLUMNS_MAX).into_owned();
        PlanStatus { sign, label, detail, needs_you: needs_you(sign) && !plan.state().archived }
    }

    /// Whether a person has to act before the plan continues.
    pub(crate) fn needs_you(&self, plan: &Plan) -> bool {
        let (sign, _) = self.facts(plan, self.has_worker(plan)).status();
        needs_you(sign) && !plan.state().archived
    }

    fn facts(&self, plan: &Plan, has_worker: bool) -> Facts {
        let disputed = self.disputed(plan.id());
        Facts { disputed, ..Facts::of_plan(plan, &self.config, has_worker) }
    }

    /// Returns how many things of a plan clones disagree about.
    fn disputed(&self, plan: &PlanId) -> u32 {
        self.questions.get(plan).map_or(0, |&questions| u32::try_from(questions).unwrap_or(u32::MAX))
    }

    /// Returns the executors of a plan that are people.
    pub(crate) fn people<'a>(&'a self, plan: &'a Plan) -> HumanExecutors<'a> {
        HumanExecutors::of(&self.config, plan)
    }

    fn has_worker(&self, plan: &Plan) -> bool {
        let queue = Config::queue_name(&plan.spec().queue);
        self.workers.iter().any(|worker| takes_tasks_of(worker, self.now, queue, plan.id()))
    }

    /// Says what a status is about.
    fn detail(&self, plan: &Plan, sign: StatusSign, has_worker: bool) -> String {
        let state = plan.state();
        match sign {
            StatusSign::Refused => state
                .start_refusals
                .first()
                .map(|refusal| start_refusal_text(plan, refusal))
                .unwrap_or_default(),
            StatusSign::Approval => {
                format!("{}, version {}", count(plan.counts().total as usize, "task"), plan.version())
            }
            StatusSign::Asking => {
                let question = plan.asking().find_map(|task| task.state.question());
                question.map_or_else(
                    || format!("clones disagree about {}", count(self.disputed(plan.id()) as usize, "thing")),
                    |question| question.text.clone(),
                )
            }
            StatusSign::Person => self.people(plan).awaited().next().map(title_of).unwrap_or_default(),
            StatusSign::Failed => {
                let failed =
                    plan.tasks().map(|(task, _)| task).find(|task| task.state.status == Status::Failed);
                failed.map_or_else(
                    || state.reason.clone(),
                    |task| match &task.state.error {
                        Some(error) => format!("{}: {}", title_of(task), first_line(error)),
                        None => title_of(task),
                    },
                )
            }
            StatusSign::Running => {
                let running = plan.counts().in_progress() as usize;
                let names: Vec<String> = plan.in_progress().take(NAMES_MAX).map(title_of).collect();
                let progress = plan
                    .running()
                    .next()
                    .filter(|_| running == 1)
                    .and_then(|task| task.state.progress.as_deref());
                let progress = progress.map(|progress| format!(", {}", first_line(progress)));
                let more = if running > names.len() { ", …" } else { "" };
                format!("{running} running: {}{more}{}", names.join(", "), progress.unwrap_or_default())
            }
            StatusSign::Idle if !has_worker && plan.claimable().any(|task| task.spec.work.is_some()) => {
                no_worker(Config::queue_name(&plan.spec().queue))
            }
            StatusSign::Idle | StatusSign::Reported => {
                let counts = plan.effective_counts();
                let parts = [(counts.ready, "ready"), (counts.reported, "reported")];
                let words = parts
                    .iter()
                    .filter(|(number, _)| *number > 0)
                    .map(|(number, word)| format!("{number} {word}"));
                words.collect::<Vec<_>>().join(", ")
            }
            StatusSign::Rejected | StatusSign::Paused | StatusSign::Cancelled => state.reason.clone(),
            StatusSign::Done => state.summary.clone(),
            StatusSign::Blocked => blocked_detail(plan, self.now),
            StatusSign::Ready
            | StatusSign::Queued
            | StatusSign::Held
            | StatusSign::Disputed
            | StatusSign::Draft
            | StatusSign::Skipped => String::new(),
        }
    }
}

/// Says what one of the first tasks waits for besides other tasks.
fn blocked_detail(plan: &Plan, now: Timestamp) -> String {
    let open = plan.tasks().map(|(task, _)| task).filter(|task| task.state.status == Status::Pending);
    let mut waits = open.take(TASKS_EXPLAINED_MAX).filter_map(|task| {
        let reasons = plan.waiting(task.spec.id.as_str(), now);
        let reason = reasons.iter().find(|reason| match reason {
            BlockReason::Held { .. }
            | BlockReason::Disputed { .. }
            | BlockReason::Until(_)
            | BlockReason::Answer(_)
            | BlockReason::Check => true,
            BlockReason::Approval
            | BlockReason::Phase(_)
            | BlockReason::Dependencies(_)
            | BlockReason::Skip { .. } => false,
        })?;
        Some(format!("{} waits for {}", task.spec.id, waiting_text(reason)))
    });
    waits.next().unwrap_or_default()
}

/// Returns the first line of a task's description; its id if it has none.
pub(crate) fn title_of(task: &Task) -> String {
    match first_line(&task.spec.description) {
        "" => task.spec.id.to_string(),
        line => line.to_owned(),
    }
}

/// Returns the first line that is not blank.
pub(crate) fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}
