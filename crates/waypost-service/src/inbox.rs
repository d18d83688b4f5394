//! The inbox: everything that waits for a person, over all plans, and what runs now. Which plans need a person at all is
//! decided in `plan_status`; this reads them item by item.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use waypost_core::{ActorKind, Dependency, Json, Phase, Plan, PlanId, Status, Task, TaskId, Timestamp};
use waypost_store::{PlanSummary, Query, Sort, StoreError, VersionRecord};
use waypost_text::excerpt;

use crate::approval::start_refusal_text;
use crate::error::ServiceError;
use crate::human_answer::question_digest;
use crate::merge_question::MergeQuestion;
use crate::plan_status::{PlanStatuses, first_line, title_of};
use crate::preview::GroupRole;
use crate::service::Service;
use crate::sharing::SharingError;

/// Maximum number of plans that are read, those that need a person first.
const PLANS_MAX: usize = 1_000;
/// Plans fetched at a time.
const PLANS_PAGE: usize = 100;
/// Plans with more tasks are not searched for tasks for people.
const TASKS_READ_MAX: u32 = 100_000;
/// Maximum number of listed items. Those of the kinds that come first are kept.
const ITEMS_MAX: usize = 200;
/// Maximum number of listed conflicts.
const CONFLICTS_MAX: usize = 100;
/// Maximum number of approvals whose commands are counted.
const PREVIEWS_MAX: usize = 20;
/// Versions that are searched for the one who wrote or requested what is to be approved.
const AUTHORS_READ: u64 = 20;
/// Maximum number of failed tasks that an item names.
const TASKS_NAMED_MAX: usize = 20;
/// Maximum number of listed running tasks.
const RUNNING_MAX: usize = 10;
/// Maximum width of a text of an item, in columns.
const TEXT_COLUMNS_MAX: usize = 300;

/// What waits for a person, in the order in which the inbox shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InboxKind {
    /// A plan that waits for approval, or that a worker refused to start.
    Approval,
    /// A question of a task.
    Question,
    /// What clones disagree about.
    Conflict,
    /// A task that a person does.
    Task,
    /// Tasks of one plan that failed for the same reason.
    Failure,
}

/// One thing that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InboxItem {
    /// What it is.
    pub kind: InboxKind,
    /// The plan.
    pub plan: PlanId,
    /// The title of the plan.
    pub plan_title: String,
    /// The version of the plan.
    pub version: u64,
    /// The tasks; empty for an approval. Only a failure has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskId>,
    /// The number of tasks, also of those that are not named.
    pub tasks_total: usize,
    /// The question, or the title of the task or the plan.
    pub text: String,
    /// Whether a question or a task says more than this text, so that nobody should decide by the text alone.
    #[serde(skip_serializing_if = "is_false")]
    pub is_cut: bool,
    /// The possible answers; empty for any text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// Who asks, whose attempt failed, or who wrote the version that is to be approved or asked for its approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Since when it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The digest of what is asked, which an answer names; only of a question, a task or a conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The number of tasks that cannot continue before it is settled.
    pub holds_up: usize,
    /// The error, or why a worker refused to start the plan.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The number of the attempt that asks or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The number of tasks that machines would run, of groups of them, and what stands out; only of an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<Commands>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// What an approval is about, in numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Commands {
    /// The number of tasks that machines would run.
    pub total: usize,
    /// The number of tasks that people would do.
    pub people: usize,
    /// The number of groups of them.
    pub groups: usize,
    /// What the approver should look at.
    pub warnings: Vec<String>,
}

/// A task that runs now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunningNow {
    /// The plan.
    pub plan: PlanId,
    /// The title of the plan.
    pub plan_title: String,
    /// The task.
    pub task: TaskId,
    /// The title of the task.
    pub text: String,
    /// Who runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Since when it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
}

/// Everything that waits for a person, and what runs now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Inbox {
    /// What waits, by kind, and those that hold up most work first.
    pub items: Vec<InboxItem>,
    /// The number of everything that waits, also of what is not listed.
    pub total: usize,
    /// The same number by kind.
    pub totals: BTreeMap<InboxKind, usize>,
    /// The number of plans that need a person.
    pub plans_total: usize,
    /// Tasks that run now.
    pub running: Vec<RunningNow>,
    /// The number of all running tasks.
    pub running_total: usize,
    /// Whether there are more plans than were read.
    pub more: bool,
}

impl Service {
    /// Returns everything that waits for a person, over all plans that are not archived.
    pub fn inbox(&self) -> Result<Inbox, ServiceError> {
        let statuses = self.plan_statuses()?;
        let mut query =
            Query { phases: PHASES.to_vec(), sort: Sort::Attention, limit: PLANS_PAGE, ..Query::default() };
        let (mut inbox, mut read) = (Inbox::default(), 0);
        loop {
            let page = self.plans().heads(&query)?;
            read += page.items.len();
            for head in page.items.iter().filter(|head| may_wait(head)) {
                match self.view(&head.id, |plan, _| inbox.read(&statuses, plan)) {
                    // It was purged since its summary was read.
                    Ok(()) | Err(ServiceError::NoSuchPlan(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            match page.next {
                Some(next) if read < PLANS_MAX => query.after = Some(next),
                next => {
                    inbox.more = next.is_some();
                    break;
                }
            }
        }
        let asked = self.add_conflicts(&mut inbox, &statuses)?;
        inbox.items.sort_by(|a, b| {
            (a.kind, std::cmp::Reverse(a.holds_up), a.since).cmp(&(
                b.kind,
                std::cmp::Reverse(b.holds_up),
                b.since,
            ))
        });
        inbox.total = inbox.items.len();
        for item in &inbox.items {
            *inbox.totals.entry(item.kind).or_default() += 1;
        }
        // Only the first of them were read.
        if let Some(listed) = inbox.totals.get_mut(&InboxKind::Conflict) {
            inbox.total += asked.saturating_sub(*listed);
            *listed = (*listed).max(asked);
        }
        inbox.items.truncate(ITEMS_MAX);
        let approvals = inbox.items.iter_mut().filter(|item| item.kind == InboxKind::Approval);
        for item in approvals.take(PREVIEWS_MAX) {
            item.commands = self.commands(&item.plan)?;
            item.by = self.author(&item.plan, item.version)?;
        }
        Ok(inbox)
    }

    /// Adds what clones disagree about in plans that are not archived. Returns the number of all these questions.
    fn add_conflicts(&self, inbox: &mut Inbox, statuses: &PlanStatuses) -> Result<usize, ServiceError> {
        let open = match self.plans_with_questions(None) {
            Ok(open) => open,
            Err(SharingError::Service(error)) => return Err(error),
            // `waypost sync` reports what is wrong with the records of a plan.
            Err(_) => return Ok(0),
        };
        let (mut total, mut listed) = (0, 0);
        for (id, count) in open {
            let found = self.view(&id, |plan, _| {
                let is_read = is_listed(plan);
                (plan.state().archived, is_read, plan.version(), plan_title(plan), statuses.needs_you(plan))
            });
            let (is_archived, is_read, version, title, needs_you) = match found {
                // It was purged meanwhile.
                Err(ServiceError::NoSuchPlan(_)) => continue,
                found => found?,
            };
            if is_archived {
                continue;
            }
            total += count;
            inbox.plans_total += usize::from(needs_you && !is_read);
            if listed >= CONFLICTS_MAX {
                continue;
            }
            let Ok(questions) = self.questions_of_plan(&id) else { continue };
            for question in questions.iter().take(CONFLICTS_MAX - listed) {
                listed += 1;
                inbox.items.push(conflict_item(&id, &title, version, question));
            }
        }
        Ok(total)
    }

    /// Returns who last changed a plan, or asked for its approval, up to a version. Workers only report what they did.
    fn author(&self, plan: &PlanId, version: u64) -> Result<Option<String>, ServiceError> {
        let records =
            match self.plans().history(plan, version.saturating_sub(AUTHORS_READ), AUTHORS_READ as usize) {
                // Of a damaged plan it is not known.
                Err(StoreError::Corrupt { .. }) => return Ok(None),
                records => records?,
            };
        let is_author = |record: &&VersionRecord| {
            record.version <= version && matches!(record.actor.kind, ActorKind::Person | ActorKind::Agent)
        };
        Ok(records.iter().rev().find(is_author).map(|record| record.actor.to_string()))
    }

    fn commands(&self, plan: &PlanId) -> Result<Option<Commands>, ServiceError> {
        let preview = match self.preview(plan) {
            Err(ServiceError::NoSuchPlan(_)) => return Ok(None),
            found => found?,
        };
        let mut warnings: Vec<String> = Vec::new();
        for risk in preview.groups.iter().flat_map(|group| &group.risks) {
            let words = risk.describe().to_string();
            if !warnings.contains(&words) {
                warnings.push(words);
            }
        }
        let of = |role| preview.groups.iter().filter(move |group| group.role == role);
        let tasks = |role| of(role).map(|group| group.tasks.len()).sum();
        let (total, people) = (tasks(GroupRole::Machine), tasks(GroupRole::Person));
        Ok(Some(Commands { total, people, groups: of(GroupRole::Machine).count(), warnings }))
    }
}

/// Phases of plans that are read item by item. Of drafts, those in which a worker of another clone asks.
const PHASES: [Phase; 5] =
    [Phase::AwaitingApproval, Phase::Draft, Phase::Active, Phase::Paused, Phase::Failed];

fn is_listed(plan: &Plan) -> bool {
    let phase = plan.state().phase;
    PHASES.contains(&phase) && (phase != Phase::Draft || plan.asking().next().is_some())
}

/// Returns the title of a plan; what it is for, or its id, if it has none.
fn plan_title(plan: &Plan) -> String {
    let spec = plan.spec();
    let title = if spec.title.is_empty() { &spec.goal } else { &spec.title };
    let title = if title.is_empty() { plan.id().as_str() } else { title };
    excerpt(title, TEXT_COLUMNS_MAX).into_owned()
}

fn item_of(plan: &PlanId, plan_title: &str, version: u64, kind: InboxKind, text: &str) -> InboxItem {
    InboxItem {
        kind,
        plan: plan.clone(),
        plan_title: plan_title.to_owned(),
        version,
        tasks: Vec::new(),
        tasks_total: 0,
        text: excerpt(text, TEXT_COLUMNS_MAX).into_owned(),
        is_cut: false,
        choices: Vec::new(),
        by: None,
        since: None,
        digest: None,
        holds_up: 0,
        error: String::new(),
        attempt: None,
        commands: None,
    }
}

/// What clones disagree about. The versions are read and answered one question at a time.
fn conflict_item(plan: &PlanId, plan_title: &str, version: u64, question: &MergeQuestion) -> InboxItem {
    let MergeQuestion { digest, conflict } = question;
    InboxItem {
        tasks: conflict.task.iter().cloned().collect(),
        tasks_total: usize::from(conflict.task.is_some()),
        is_cut: true,
        since: conflict.versions.iter().map(|version| version.at).max(),
        digest: Some(digest.clone()),
        ..item_of(plan, plan_title, version, InboxKind::Conflict, &conflict.text)
    }
}

/// Whether the summary of a plan leaves open that something of it waits or runs.
fn may_wait(head: &PlanSummary) -> bool {
    let counts = &head.counts;
    if head.phase == Phase::Draft {
        return head.asking > 0;
    }
    let waits = matches!(head.phase, Phase::AwaitingApproval | Phase::Failed)
        || head.is_refused()
        || head.asking > 0
        || counts.failed > 0;
    waits || head.goals <= TASKS_READ_MAX && counts.ready + counts.in_progress() > 0
}

impl Inbox {
    /// Adds what waits and runs in a plan.
    fn read(&mut self, statuses: &PlanStatuses, plan: &Plan) {
        let state = plan.state();
        self.plans_total += usize::from(statuses.needs_you(plan));
        let plan_title = plan_title(plan);
        let item = |kind, text: &str| item_of(plan.id(), &plan_title, plan.version(), kind, text);
        let is_under_way = matches!(state.phase, Phase::Active | Phase::Paused);
        let refusal = state.start_refusals.first().filter(|_| state.phase == Phase::Active);
        let is_unapproved = state.approval_required && state.approval.is_none();
        if state.phase == Phase::AwaitingApproval
            || state.phase == Phase::Active && (refusal.is_some() || is_unapproved)
        {
            self.items.push(InboxItem {
                since: state.updated_at,
                holds_up: plan.counts().total.saturating_sub(plan.counts().finished()) as usize,
                error: refusal.map(|refusal| start_refusal_text(plan, refusal)).unwrap_or_default(),
                ..item(InboxKind::Approval, &plan_title)
            });
        }
        // In a draft, a worker of another clone asks.
        for task in plan.asking().filter(|_| is_under_way || state.phase == Phase::Draft) {
            let Some(question) = task.state.question() else { continue };
            let asked = item(InboxKind::Question, &question.text);
            self.items.push(InboxItem {
                tasks: vec![task.spec.id.clone()],
                tasks_total: 1,
                is_cut: asked.text != question.text.trim(),
                choices: question.choices.clone(),
                by: Some(question.by.clone()),
                since: Some(question.asked_at),
                digest: Some(question_digest(plan.id(), task)),
                holds_up: behind(plan, &[task]).len(),
                attempt: Some(question.attempt),
                ..asked
            });
        }
        for task in statuses.people(plan).awaited() {
            let spec = &task.spec;
            let asked = item(InboxKind::Task, &title_of(task));
            let inputs = spec.work.as_deref().is_some_and(|work| work.inputs != Json::empty_object());
            self.items.push(InboxItem {
                tasks: vec![spec.id.clone()],
                tasks_total: 1,
                is_cut: asked.text != spec.description.trim() || !spec.notes.is_empty() || inputs,
                since: ready_since(plan, task).or(state.updated_at),
                digest: Some(question_digest(plan.id(), task)),
                holds_up: behind(plan, &[task]).len(),
                ..asked
            });
        }
        if is_under_way || state.phase == Phase::Failed {
            for (error, tasks) in failures(plan) {
                let Some(first) = tasks.first() else { continue };
                self.items.push(InboxItem {
                    tasks: tasks.iter().take(TASKS_NAMED_MAX).map(|task| task.spec.id.clone()).collect(),
                    tasks_total: tasks.len(),
                    by: first.state.worker.clone(),
                    since: tasks.iter().filter_map(|task| task.state.finished_at).max(),
                    holds_up: behind(plan, &tasks).len(),
                    error: excerpt(error, TEXT_COLUMNS_MAX).into_owned(),
                    attempt: Some(first.state.attempt).filter(|attempt| *attempt > 0),
                    ..item(InboxKind::Failure, &title_of(first))
                });
            }
        }
        for task in plan.running() {
            self.running_total += 1;
            if self.running.len() < RUNNING_MAX {
                self.running.push(RunningNow {
                    plan: plan.id().clone(),
                    plan_title: plan_title.clone(),
                    task: task.spec.id.clone(),
                    text: excerpt(&title_of(task), TEXT_COLUMNS_MAX).into_owned(),
                    worker: task.state.worker.clone(),
                    since: task.state.started_at,
                    progress: task.state.progress.clone(),
                });
            }
        }
    }
}

/// Returns since when a task can be done: since what it waited for has ended. What is said about it later does not count.
fn ready_since(plan: &Plan, task: &Task) -> Option<Timestamp> {
    let ended = task.spec.depends_on.iter().map(|dependency| match dependency {
        Dependency::Task(id) => plan.task(id.as_str())?.state.finished_at,
        // What other plans deliver changes the task.
        Dependency::External(_) => task.state.updated_at,
    });
    ended.chain([task.state.created_at, plan.state().started_at]).flatten().max()
}

/// Returns the failed tasks of a plan by their error, those that are the same together.
fn failures(plan: &Plan) -> BTreeMap<&str, Vec<&Task>> {
    let mut found: BTreeMap<&str, Vec<&Task>> = BTreeMap::new();
    if plan.counts().failed > 0 {
        let failed = plan.tasks().map(|(task, _)| task).filter(|task| task.state.status == Status::Failed);
        for task in failed {
            found.entry(first_line(task.state.error.as_deref().unwrap_or_default())).or_default().push(task);
        }
    }
    found
}

/// Returns the tasks that depend on these, directly or not, without those that are done.
fn behind<'a>(plan: &'a Plan, tasks: &[&Task]) -> HashSet<&'a str> {
    let mut found: HashSet<&str> = HashSet::new();
    let mut open: Vec<&str> = tasks.iter().map(|task| task.spec.id.as_str()).collect();
    while let Some(next) = open.pop() {
        for task in plan.dependants(next) {
            let id = task.spec.id.as_str();
            if task.state.status != Status::Done && found.insert(id) {
                open.push(id);
            }
        }
    }
    found
}
