//! `waypost why`: everything that a task waits for, with who holds it.

use clap::Args;
use serde_json::{Value, json};
use waypost_core::{LockMode, Plan, Standing, TaskId, Waiting};
use waypost_store::HeldLock;

use crate::context::{Context, Found};
use crate::error::Outcome;
use crate::view::text;

// Which task.
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// The plan
    plan: String,
    /// The task
    task: String,
}

impl Why {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let task = found.task(&self.task)?;
        let mut reasons = found.look(|plan| reasons(plan, &task))?;
        reasons.extend(held(&found, &task)?.into_iter().map(|(key, holder)| Reason {
            kind: "lock",
            words: format!("lock {key}, which {holder} holds"),
            fact: json!({ "key": key, "holder": holder }),
        }));
        let standing = found.look(|plan| plan.standing(task.as_str()))?;
        let word = standing.map_or("gone", Standing::word);
        if context.out.json {
            let waits: Vec<Value> = reasons
                .iter()
                .map(|reason| json!({ "kind": reason.kind, "message": reason.words, "fact": reason.fact }))
                .collect();
            return context
                .out
                .value(&json!({ "id": found.id, "task": task, "standing": word, "waits_for": waits }));
        }
        match (standing, reasons.as_slice()) {
            (Some(Standing::Ready), []) => {
                context.out.line(format!("{task} is ready: it waits for nothing but somebody to start it"));
            }
            (_, []) => context.out.line(format!("{task} is {word}")),
            (_, reasons) => {
                context.out.line(format!("{task} is {word}, and waits for:"));
                for reason in reasons {
                    context.out.line(format!("  {}", reason.words));
                }
            }
        }
        Ok(())
    }
}

struct Reason {
    kind: &'static str,
    words: String,
    fact: Value,
}

fn reasons(plan: &Plan, task: &TaskId) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for waiting in plan.waiting(task.as_str(), text::now()) {
        let fact = json!(waiting);
        reasons.push(match waiting {
            Waiting::Approval => {
                let words = format!("a person's approval (`waypost approve {}`)", plan.id());
                Reason { kind: "approval", words, fact }
            }
            Waiting::Phase(phase) => {
                Reason { kind: "phase", words: format!("the plan, which is {}", phase.word()), fact }
            }
            Waiting::Dependencies(names) => {
                let named: Vec<String> = names
                    .iter()
                    .map(|name| match plan.standing(name) {
                        Some(standing) => format!("{name} ({})", standing.word()),
                        None => name.clone(),
                    })
                    .collect();
                Reason { kind: "dependencies", words: named.join(", "), fact }
            }
            Waiting::Answer(question) => {
                let words = format!(
                    "a person's answer to: {} (`waypost answer {} {task} ANSWER`)",
                    text::one_line(&question),
                    plan.id()
                );
                Reason { kind: "answer", words, fact }
            }
            Waiting::Check => {
                let by = plan.task(task.as_str()).and_then(|task| task.state.reported());
                let by = by.map(|report| report.by.to_string()).unwrap_or_default();
                let words =
                    format!("its check: {by} reported it as done (`waypost run {}` checks it)", plan.id());
                Reason { kind: "check", words, fact }
            }
            Waiting::Until(at) => {
                Reason { kind: "retry", words: format!("its next attempt at {}", text::moment(at)), fact }
            }
        });
    }
    let Some(found) = plan.task(task.as_str()) else { return reasons };
    if plan.standing(task.as_str()) == Some(Standing::Running) && found.state.worker.is_some() {
        let worker = found.state.worker.clone().unwrap_or_default();
        let words = format!("{worker}, who works on it (attempt {})", found.state.attempt);
        reasons.push(Reason {
            kind: "worker",
            words,
            fact: json!({ "worker": worker, "attempt": found.state.attempt }),
        });
    }
    if let Some(why) = found.state.why().filter(|_| found.state.status.is_finished()) {
        reasons.push(Reason {
            kind: "ended",
            words: format!("nothing any more: {}", text::one_line(&why)),
            fact: json!(why),
        });
    }
    reasons
}

/// Locks of a pending task that others hold.
fn held(found: &Found, task: &TaskId) -> Outcome<Vec<(String, String)>> {
    let wanted = found.look(|plan| {
        let found =
            plan.task(task.as_str()).filter(|task| task.state.status == waypost_core::Status::Pending);
        found.map(|task| task.spec.locks.clone()).unwrap_or_default()
    })?;
    let keys: Vec<&str> = wanted.iter().map(|lock| lock.key.as_str()).collect();
    let mut rows: Vec<HeldLock> = Vec::new();
    if !keys.is_empty() {
        found.plans.store().read(&mut |read| {
            rows = read.locks(&keys)?;
            Ok(())
        })?;
    }
    let clashes = rows.into_iter().filter(|row| {
        let mode = wanted.iter().find(|lock| lock.key == row.lock.key).map(|lock| lock.mode);
        (mode, row.lock.mode) != (Some(LockMode::Shared), LockMode::Shared)
    });
    Ok(clashes.map(|row| (row.lock.key, format!("{}/{}", row.plan, row.task))).collect())
}
