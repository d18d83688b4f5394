//! The behaviour of a plan, by example: the name of each test is a true sentence.

mod annotations;
mod approval;
mod attempts;
mod edits;
mod elsewhere;
mod ending;
mod failure;
mod groups;
mod holds;
mod order;
mod questions;
mod readiness;

use waypost_core::{
    Actor, Approval, BlockReason, Command, Dependency, DependencyRule, Digest, Draft, EffectiveStatus, Event,
    ExternalTaskRef, Json, Outcome, Phase, Plan, PlanChanges, PlanId, Position, Refinement, Refusal, Retry,
    Status, Task, TaskChanges, TaskSpec, UpstreamResult, differences,
};
use waypost_testkit::{chain, fan_out, id, plan_of, task};

use crate::kit::{Desk, ada, agent, ask, at, done, failed, plan_id, skipped, system, work, worker};

pub(super) fn child(name: &str, parent: &str, depends_on: &[&str]) -> TaskSpec {
    TaskSpec { parent: Some(id(parent)), ..task(name, depends_on) }
}

pub(super) fn when(when: DependencyRule, name: &str, depends_on: &[&str]) -> TaskSpec {
    TaskSpec { when, ..task(name, depends_on) }
}

pub(super) fn passed_over(name: &str, depends_on: &[&str]) -> TaskSpec {
    TaskSpec { skip: true, ..task(name, depends_on) }
}

pub(super) fn by_machine(name: &str, depends_on: &[&str]) -> TaskSpec {
    TaskSpec { work: Some(work()), ..task(name, depends_on) }
}

pub(super) fn trying(attempts: u32, name: &str) -> TaskSpec {
    let retry = Retry { attempts, backoff_seconds: 10, backoff_seconds_max: 30 };
    TaskSpec { retry: Some(Box::new(retry)), ..by_machine(name, &[]) }
}

pub(super) fn there(agent: Option<&str>, plan: Option<&str>, task: &str) -> ExternalTaskRef {
    ExternalTaskRef {
        agent: agent.map(str::to_owned),
        plan: plan.map(|plan| PlanId::new(plan).unwrap()),
        task: id(task),
    }
}

pub(super) fn after(name: &str, from: ExternalTaskRef) -> TaskSpec {
    TaskSpec { depends_on: vec![Dependency::External(Box::new(from))], ..task(name, &[]) }
}

pub(super) fn withdraw(task: &str, from: &ExternalTaskRef) -> Command {
    Command::WithdrawOutput { task: id(task), from: from.clone() }
}

pub(super) fn hear(task: &str, from: ExternalTaskRef, status: Status, output: Option<Json>) -> Command {
    Command::ReceiveOutput {
        task: id(task),
        from,
        received: UpstreamResult { status, output, ..UpstreamResult::default() },
        untrusted: false,
    }
}

pub(super) fn add(tasks: Vec<TaskSpec>) -> Command {
    Command::AddTasks { tasks, place: Position::Last }
}

pub(super) fn order(desk: &Desk) -> String {
    desk.plan
        .tasks()
        .map(|(task, depth)| format!("{}{}", "-".repeat(depth), task.spec.id))
        .collect::<Vec<_>>()
        .join(" ")
}

pub(super) fn approve(desk: &Desk) -> Command {
    Command::Approve { version: desk.plan.version(), note: "fine".into(), work: None }
}
