//! `waypost plan review`: shows a goal with its ancestors, its planning state and the model calls about it.

use clap::Args;
use serde_json::{Value, json};
use waypost_core::{Digest, Plan, Task};
use waypost_llm::{JournalLine, read_journal};

use crate::planning;
use waypost_cli::context::{Context, whole_task_of};
use waypost_cli::error::Outcome;
use waypost_cli::output::Output;
use waypost_cli::style::Look;
use waypost_cli::view::task::field;
use waypost_cli::view::{self, Shown, text};

const EXAMPLES: &str = "\
Examples:
  waypost plan review kq3 goal.2
  waypost plan review kq3 goal.2 --calls
  waypost plan review kq3 --calls --json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Review {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Goal [default: the whole plan]
    task: Option<String>,
    /// Show the full prompts and replies
    #[arg(long)]
    calls: bool,
}

impl Review {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let path = planning::orders(&context.folders()?).journal(&found.id);
        let lines = if path.is_file() {
            read_journal(&path).map_err(|error| planning::of_journal(&error, Some(&found.id)))?
        } else {
            Vec::new()
        };
        found.read(|plan| self.tell(plan, &lines, context))?
    }

    fn tell(&self, plan: &Plan, lines: &[JournalLine], context: &mut Context) -> Outcome {
        let task = self.task.as_ref().map(|task| whole_task_of(plan, task)).transpose()?;
        let id = task.map(|task| &task.spec.id);
        let lines: Vec<&JournalLine> = lines.iter().filter(|line| is_about(line, id)).collect();
        if context.out.json {
            let calls: Vec<Value> = lines.iter().map(|line| call_json(line, self.calls)).collect();
            let mut value = match task {
                Some(task) => view::json::task(plan, task, text::now()),
                None => json!(view::json::head(plan)),
            };
            value["ancestors"] = task.map(|task| ancestors(plan, task)).unwrap_or_default().into();
            value["tokens_used"] = plan.state().tokens_used.into();
            value["calls"] = calls.into();
            return context.out.value(&value);
        }
        let config = view::config_for(plan, &context.service(&context.plans()?));
        let (shown, out) = (Shown::of(plan, &config), &mut context.out);
        match task {
            Some(task) => {
                view::task::print(&shown, task, text::now(), out);
                print_thinking(plan, task, out);
            }
            None => view::plan::print_head(&shown, true, out),
        }
        print_calls(&lines, self.calls, out);
        Ok(())
    }
}

/// The ancestors of a goal, the nearest last.
fn ancestors(plan: &Plan, task: &Task) -> Vec<String> {
    let above = |task: &Task| task.spec.parent.as_ref().and_then(|parent| plan.task(parent.as_str()));
    let mut names: Vec<String> =
        std::iter::successors(above(task), |task| above(task)).map(|task| task.spec.id.to_string()).collect();
    names.reverse();
    names
}

fn print_thinking(plan: &Plan, task: &Task, out: &mut Output) {
    let above = ancestors(plan, task);
    field(out, "above", &above.join(" → "));
    let Some(thinking) = &task.spec.thinking else {
        return field(out, "thinking", "no planning was recorded");
    };
    let refinement = thinking.refinement.map(|refinement| match refinement {
        waypost_core::Refinement::Decomposing => "being broken down",
        waypost_core::Refinement::Decomposed => "broken down",
        waypost_core::Refinement::Atomic => "small enough",
    });
    field(out, "thinking", refinement.unwrap_or("undecided"));
    field(out, "tokens", &thinking.tokens.to_string());
    if let Some(digest) = &thinking.digest {
        print_digest(digest, out);
    }
}

fn print_digest(digest: &Digest, out: &mut Output) {
    field(out, "decisions", &digest.key_decisions.join("\n"));
    field(out, "artifacts", &digest.artifacts.join("\n"));
    let share = |share: Option<f64>| share.map(|share| format!("{:.0} %", share * 100.0)).unwrap_or_default();
    field(out, "compressed to", &share(digest.compression_ratio));
    field(out, "fidelity", &share(digest.fidelity_score));
}

fn is_about(line: &JournalLine, task: Option<&waypost_core::TaskId>) -> bool {
    let Some(task) = task else { return !matches!(line, JournalLine::Begun { .. }) };
    match line {
        JournalLine::Begun { .. } => false,
        JournalLine::Answered { entry, .. } => entry.task.as_ref() == Some(task),
        JournalLine::Failed { task: of, .. } => of.as_ref() == Some(task),
        // A slot is PURPOSE/GOAL. A digest adds `:` and a fingerprint, a repeated try `/` and its number.
        JournalLine::Forgotten { slots, .. } => {
            slots.iter().any(|slot| slot.split(['/', ':']).nth(1) == Some(task.as_str()))
        }
    }
}

fn call_json(line: &JournalLine, whole: bool) -> Value {
    match line {
        JournalLine::Answered { entry, .. } if !whole => json!({
            "at": entry.at,
            "slot": entry.slot,
            "purpose": entry.purpose,
            "task": entry.task,
            "prompt": entry.prompt,
            "model": entry.from,
            "tokens_in": entry.answer.tokens_in,
            "tokens_out": entry.answer.tokens_out,
            "cost": entry.cost.map(|cost| cost.to_string()),
        }),
        line @ (JournalLine::Begun { .. }
        | JournalLine::Answered { .. }
        | JournalLine::Failed { .. }
        | JournalLine::Forgotten { .. }) => json!(line),
    }
}

fn print_calls(lines: &[&JournalLine], whole: bool, out: &mut Output) {
    if lines.is_empty() {
        return field(out, "calls", "no model calls");
    }
    out.line("");
    for line in lines {
        match line {
            JournalLine::Begun { .. } => {}
            JournalLine::Answered { entry, system, turns } => {
                let cost = entry.cost.map(|cost| format!(", cost {cost}")).unwrap_or_default();
                let head = format!(
                    "{} UTC  {}  {} ({})  {} + {} tokens{cost}",
                    entry.at.to_the_second(),
                    entry.slot,
                    entry.from,
                    entry.answer.model,
                    entry.answer.tokens_in,
                    entry.answer.tokens_out
                );
                let head = out.paint(&head, Look::Bold);
                out.line(head);
                if whole {
                    print_text("told", system, out);
                    for turn in turns {
                        let who = match turn.by {
                            waypost_planner::Speaker::User => "asked",
                            waypost_planner::Speaker::Assistant => "it had said",
                        };
                        print_text(who, &turn.text, out);
                    }
                    print_text("answered", &entry.answer.text, out);
                }
            }
            JournalLine::Failed { at, slot, error, lost, .. } => {
                let lost = lost.as_ref().map(|lost| {
                    let cost = lost.cost.map(|cost| format!(", cost {cost}")).unwrap_or_default();
                    format!("  about {} + {} tokens{cost}", lost.tokens_in, lost.tokens_out)
                });
                let lost = lost.unwrap_or_default();
                let words = format!("{} UTC  {slot}  no answer: {error}{lost}", at.to_the_second());
                let words = out.paint(&words, Look::Red);
                out.line(words);
            }
            JournalLine::Forgotten { at, slots, why } => {
                let words = format!("{} UTC  forgotten: {} ({why})", at.to_the_second(), slots.join(", "));
                let words = out.paint(&words, Look::Dim);
                out.line(words);
            }
        }
    }
}

fn print_text(name: &str, said: &str, out: &mut Output) {
    let name = out.paint(&format!("  {name}:"), Look::Dim);
    out.line(name);
    for line in text::sanitize(said).lines() {
        out.line(format!("    {line}"));
    }
}
