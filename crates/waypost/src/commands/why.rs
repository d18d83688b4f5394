//! `waypost why`: explains what a task waits for, and who holds it.

use clap::Args;
use serde_json::{Value, json};
use waypost_core::{EffectiveStatus, PlanId, StartRefusal, TaskId};
use waypost_service::{Reason, start_refusal_hint, why};

use waypost_cli::context::Context;
use waypost_cli::error::{Outcome, hint_text};
use waypost_cli::view::text;

#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Task id, or an unambiguous prefix
    task: String,
}

impl Why {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let task = found.task(&self.task)?;
        let why = why(&found.plans, &found.id, &task)?;
        why.warnings.iter().for_each(|warning| context.out.note(warning));
        let word = why.standing.map_or("gone", EffectiveStatus::as_str);
        if context.out.json {
            let waits: Vec<Value> = why
                .reasons
                .iter()
                .map(|reason| json!({ "kind": reason.kind, "message": message(reason, &found.id, &task), "fact": reason.fact }))
                .collect();
            return context
                .out
                .value(&json!({ "id": found.id, "task": task, "standing": word, "waits_for": waits }));
        }
        match (why.standing, why.reasons.as_slice()) {
            (Some(EffectiveStatus::Ready), []) => {
                context.out.line(format!("{task} is ready: it waits only to be started"));
            }
            (_, []) => context.out.line(format!("{task} is {word}")),
            (_, reasons) => {
                let is_skipped = reasons.iter().any(|reason| reason.kind == "skip");
                let word = if is_skipped { "to be skipped" } else { word };
                context.out.line(format!("{task} is {word}, and waits for:"));
                for reason in reasons {
                    context.out.line(format!("  {}", message(reason, &found.id, &task)));
                }
            }
        }
        Ok(())
    }
}

/// The reason, and the command that resolves it. One sanitized line: a plan's text cannot control the terminal or
/// imitate another line.
fn message(reason: &Reason, plan: &PlanId, task: &TaskId) -> String {
    let command = match reason.kind {
        "approval" => format!(" (`waypost approve {plan}`)"),
        "answer" => format!(" (`waypost answer {plan} {task} ANSWER`)"),
        "check" => format!(" (`waypost run {plan}` checks it)"),
        "no_worker" => {
            let queue = reason.fact["queue"].as_str().unwrap_or_default();
            format!(" (`waypost worker --queue {queue}` starts one)")
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
            format!(" (`waypost unhold {plan} {held}`)")
        }
        _ => String::new(),
    };
    text::one_line(&format!("{}{command}", reason.words)).into_owned()
}
