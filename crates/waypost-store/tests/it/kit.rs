//! Short words for what the tests do all the time.

use std::sync::Arc;

use waypost_core::{
    Actor, Command, Draft, Json, Outcome, Plan, PlanChanges, PlanId, Position, TaskChanges, TaskId, TaskSpec,
};
use waypost_store::{
    ArchiveFilter, Committed, IndexRows, LogFilter, NewPlan, PlanStore, PlanSummary, Query, Read, Store,
    StoreError, VersionRecord, WriteError, WriteRequest,
};
use waypost_testkit::{id, plan_of, task};

pub(crate) fn ada() -> Actor {
    Actor::person("ada")
}

pub(crate) fn bot() -> Actor {
    Actor::agent("bot")
}

pub(crate) fn worker() -> Actor {
    Actor::worker("host-1")
}

pub(crate) fn plan(name: &str) -> PlanId {
    PlanId::new(name).unwrap()
}

/// Makes a plan of this name.
pub(crate) fn create(plans: &PlanStore, name: &str, draft: Draft) -> Committed {
    plans.create(NewPlan { id: Some(plan(name)), by: ada(), draft, approval_required: None }).unwrap()
}

/// Makes a plan with one task, `first`.
pub(crate) fn create_small(plans: &PlanStore, name: &str) -> Committed {
    create(plans, name, plan_of([task("first", &[])]))
}

pub(crate) fn request(name: &str, commands: Vec<Command>) -> WriteRequest {
    WriteRequest { plan: plan(name), by: ada(), commands, known_version: None, lease_seconds: None }
}

pub(crate) fn write(plans: &PlanStore, name: &str, command: Command) -> Result<Committed, WriteError> {
    plans.write(request(name, vec![command]))
}

pub(crate) fn add(name: &str) -> Command {
    add_all([task(name, &[])])
}

pub(crate) fn add_all(tasks: impl IntoIterator<Item = TaskSpec>) -> Command {
    Command::AddTasks { tasks: tasks.into_iter().collect(), place: Position::Last }
}

pub(crate) fn retitle(title: &str) -> Command {
    Command::RevisePlan(Box::new(PlanChanges { title: Some(title.to_owned()), ..PlanChanges::default() }))
}

pub(crate) fn revise(changes: PlanChanges) -> Command {
    Command::RevisePlan(Box::new(changes))
}

pub(crate) fn revise_task(name: &str, changes: TaskChanges) -> Command {
    Command::ReviseTask { task: id(name), changes: Box::new(changes) }
}

pub(crate) fn start(name: &str) -> Command {
    Command::StartTask { task: id(name), worker: "host-1".to_owned() }
}

pub(crate) fn finish(name: &str) -> Command {
    let outcome =
        Outcome::Done { result: Some("well".to_owned()), output: Some(Json::of(&name)), evidence: None };
    Command::FinishTask { task: id(name), attempt: None, outcome, retry: None }
}

/// The number of a version in the log.
pub(crate) fn number(plans: &PlanStore, written: &Committed) -> u64 {
    plans.history(&written.plan, written.version - 1, 1).unwrap()[0].sequence
}

/// The plan as it is now.
pub(crate) fn now(plans: &PlanStore, name: &str) -> Plan {
    plans.with_plan(&plan(name), Plan::clone).unwrap()
}

pub(crate) fn task_names(plan: &Plan) -> Vec<String> {
    plan.tasks().map(|(task, _)| task.spec.id.to_string()).collect()
}

/// Looks at the store itself.
pub(crate) fn look<R>(
    store: &Arc<dyn Store>,
    mut ask: impl FnMut(&mut dyn Read) -> Result<R, StoreError>,
) -> R {
    let mut answer = None;
    store
        .read(&mut |read| {
            answer = Some(ask(read)?);
            Ok(())
        })
        .unwrap();
    answer.expect("a store that reads runs the look")
}

pub(crate) fn index(store: &Arc<dyn Store>, name: &str) -> IndexRows {
    look(store, |read| read.index(&plan(name)))
}

pub(crate) fn head(store: &Arc<dyn Store>, name: &str) -> Option<PlanSummary> {
    look(store, |read| read.head(&plan(name)))
}

/// The whole log.
pub(crate) fn log(plans: &PlanStore) -> Vec<VersionRecord> {
    plans.log(0, &LogFilter::default(), usize::MAX >> 1).unwrap().versions
}

/// The names of the plans that a query finds, page by page.
pub(crate) fn list(plans: &PlanStore, query: &Query) -> Vec<String> {
    let mut query = query.clone();
    let mut names = Vec::new();
    loop {
        let page = plans.heads(&query).unwrap();
        assert!(page.items.len() <= query.limit, "a page holds no more than was asked for");
        names.extend(page.items.iter().map(|head| head.id.to_string()));
        match page.next {
            Some(next) => query.after = Some(next),
            None => return names,
        }
    }
}

/// Everything, ten a page.
pub(crate) fn everything() -> Query {
    Query { shelf: ArchiveFilter::All, limit: 10, ..Query::default() }
}

/// The events alone must tell the same plan as whatever shortcuts were taken.
pub(crate) fn replayed(plans: &PlanStore, name: &str) -> Plan {
    let mut replayed = Plan::blank(plan(name));
    for entry in plans.history(&plan(name), 0, usize::MAX >> 1).unwrap() {
        replayed.advance(&entry.events, entry.at);
    }
    replayed
}

pub(crate) fn refusal(answer: Result<Committed, WriteError>) -> waypost_core::Refusal {
    match answer {
        Err(WriteError::Refused(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

pub(crate) fn task_id(name: &str) -> TaskId {
    id(name)
}
