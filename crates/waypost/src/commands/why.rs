//! `waypost why`: explains what a task, or each task that has not ended, waits for, and who holds it.

use clap::Args;
use serde_json::{Value, json};
use waypost_core::{EffectiveStatus, PlanId, StartRefusal, TaskId};
use waypost_service::{Explanation, Reason, start_refusal_hint, why, why_open};
use waypost_text::{StatusSign, count, pad, shell_word, width};

use waypost_cli::context::{Context, PlanHandle};
use waypost_cli::error::{Outcome, hint_text};
use waypost_cli::runner::{on_task, typeable};
use waypost_cli::view::text;

/// Maximum number of tasks that are explained at once.
const TASKS_MAX: usize = 100;

const EXAMPLES: &str = "\
Examples:
  waypost why kq3
  waypost why kq3 t4";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Why {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Task id, or an unambiguous prefix [default: every task that has not ended]
    task: Option<String>,
}

impl Why {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        match &self.task {
            Some(task) => one(context, &found, &found.task(task)?),
            None => all(context, &found),
        }
    }
}

fn one(context: &mut Context, found: &PlanHandle, task: &TaskId) -> Outcome {
    let config = found.service.config().ok();
    let why = why(&found.plans, config.as_deref(), &found.id, task)?;
    why.warnings.iter().for_each(|warning| context.out.note(warning));
    if context.out.json {
        let mut answer = json!({ "id": found.id });
        if let (Some(answer), Value::Object(fields)) = (answer.as_object_mut(), value(&why, &found.id, task))
        {
            answer.extend(fields);
        }
        return context.out.value(&answer);
    }
    let word = status_word(&why);
    match why.reasons.as_slice() {
        [] if why.standing == Some(EffectiveStatus::Ready) => {
            let line = format!("{task} is ready: it waits only to be started ({})", claim(&found.id));
            context.out.line(typeable(&line));
        }
        [] => context.out.line(format!("{task} is {word}")),
        reasons => {
            context.out.line(format!("{task} is {word}, and waits for:"));
            for reason in reasons {
                context.out.line(format!("  {}", message(reason, &found.id, task)));
            }
        }
    }
    Ok(())
}

fn all(context: &mut Context, found: &PlanHandle) -> Outcome {
    let config = found.service.config().ok();
    let (open, total) = why_open(&found.plans, config.as_deref(), &found.id, TASKS_MAX)?;
    found.note_damage(context)?;
    if context.out.json {
        let tasks: Vec<Value> = open.iter().map(|(task, why)| value(why, &found.id, task)).collect();
        return context.out.value(&json!({ "id": found.id, "tasks": tasks, "total": total }));
    }
    if open.is_empty() {
        context.out.line(format!("plan {} has no open tasks", found.id));
    }
    let widest = |text: &dyn Fn(&(TaskId, Explanation)) -> usize| open.iter().map(text).max().unwrap_or(0);
    let columns = (widest(&|(task, _)| width(task.as_str())), widest(&|(_, why)| width(status_word(why))));
    for (task, why) in &open {
        let reasons: Vec<String> =
            why.reasons.iter().map(|reason| message(reason, &found.id, task)).collect();
        let reasons = match reasons.as_slice() {
            [] if why.standing == Some(EffectiveStatus::Ready) => typeable(&claim(&found.id)).into_owned(),
            reasons => reasons.join("; "),
        };
        let (task, word) = (pad(task.as_str(), columns.0), pad(status_word(why), columns.1));
        context.out.line(format!("{task}  {word}  {reasons}"));
    }
    if total > open.len() {
        context.out.line(format!("and {}", count(total - open.len(), "more task")));
    }
    Ok(())
}

/// The command that takes up what waits only to be started.
fn claim(plan: &PlanId) -> String {
    format!("`waypost next {plan} --claim`")
}

fn value(why: &Explanation, plan: &PlanId, task: &TaskId) -> Value {
    let waits: Vec<Value> = why
        .reasons
        .iter()
        .map(|reason| json!({ "kind": reason.kind, "message": message(reason, plan, task), "fact": reason.fact }))
        .collect();
    let standing = why.standing.map_or("gone", EffectiveStatus::as_str);
    json!({ "task": task, "standing": standing, "waits_for": waits })
}

fn status_word(why: &Explanation) -> &'static str {
    let is_skipped = why.reasons.iter().any(|reason| reason.kind == "skip");
    if is_skipped { "to be skipped" } else { why.sign.map_or("gone", StatusSign::label) }
}

/// The reason, and the command that resolves it. One sanitized line: a plan's text cannot control the terminal or
/// imitate another line.
fn message(reason: &Reason, plan: &PlanId, task: &TaskId) -> String {
    let command = match reason.kind {
        "approval" => format!(" (`waypost approve {plan}`)"),
        "answer" => format!(" (`{}`)", on_task("answer", plan, task, " ANSWER", "")),
        "person" => format!(" (`{}`)", on_task("answer", plan, task, "", "")),
        "check" => format!(" (`waypost run {plan}` checks it)"),
        "no_worker" => {
            let queue = reason.fact["queue"].as_str().unwrap_or_default();
            format!(" (`waypost worker --queue {}` starts one)", shell_word(queue))
        }
        "queue" => " (`waypost workers` shows by whom)".to_owned(),
        "refused" => {
            let refusal = serde_json::from_value::<StartRefusal>(reason.fact.clone());
            let hint = refusal.map(|refusal| hint_text(&start_refusal_hint(plan, &refusal)));
            hint.map(|hint| format!(" ({hint})")).unwrap_or_default()
        }
        "dispute" => format!(" (`waypost conflicts {plan}` lists the questions)"),
        "hold" => {
            let held = reason.fact["held"]["task"].as_str().unwrap_or_default();
            format!(" (`{}`)", on_task("unhold", plan, held, "", ""))
        }
        _ => String::new(),
    };
    text::one_line(&format!("{}{}", reason.words, typeable(&command))).into_owned()
}
