//! `waypost next`: lists the ready tasks of one plan or of all, or claims the first.

use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use waypost_core::{PlanId, TaskId, Timestamp};
use waypost_service::{ClaimFilter, Claimable, Claimed, WriteReply, waiting_text};
use waypost_store::PlanStore;

use waypost_cli::context::Context;
use waypost_cli::error::Outcome;
use waypost_cli::options::{seconds, within};
use waypost_cli::runner::{command, on_task};
use waypost_cli::view::{self, Shown, text};

/// Tasks listed by default.
const TASKS_DEFAULT: usize = 5;
/// Maximum number of listed tasks.
const TASKS_MAX: usize = 1_000;

const EXAMPLES: &str = "\
Examples:
  waypost next
  waypost next kq3
  waypost next kq3 --claim
  waypost next --queue nightly --claim --json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Next {
    /// Plan id or prefix [default: all active plans]
    plan: Option<String>,
    /// Claim the first one: start it under a lease
    #[arg(long)]
    claim: bool,
    /// Lease duration, e.g. 15m or 2h; 0 never expires [default: 15m]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    lease: Option<u32>,
    /// Only plans of this queue
    #[arg(long, conflicts_with = "plan")]
    queue: Option<String>,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value_t = TASKS_DEFAULT)]
    limit: usize,
}

impl Next {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        within("--limit", self.limit, 1..=TASKS_MAX)?;
        let plans = context.plans()?;
        let plan = self.plan.as_deref().map(|plan| context.service(&plans).resolve_plan(plan)).transpose()?;
        if self.claim {
            return self.take_first(context, &plans, plan.as_ref());
        }
        let filter = ClaimFilter { plan: plan.as_ref(), queue: self.queue.as_deref() };
        let Claimable { tasks, warnings } =
            context.service(&plans).claimable(&context.caller()?, filter, self.limit)?;
        context.note_damage(&warnings);
        if tasks.is_empty() && !context.out.json {
            let reasons = context.service(&plans).idle_reasons(&context.caller()?, filter)?;
            say_why_nothing(context, &reasons);
            return Ok(());
        }
        list(context, &plans, plan.as_ref(), &tasks)
    }

    fn take_first(&self, context: &mut Context, plans: &Arc<PlanStore>, plan: Option<&PlanId>) -> Outcome {
        let filter = ClaimFilter { plan, queue: self.queue.as_deref() };
        let claimed = context.service(plans).claim_next(&context.caller()?, filter, self.lease);
        let reasons = match claimed? {
            Claimed::Taken { written, task } => return taken(context, plans, &written, &task),
            Claimed::Nothing { reasons } => reasons,
        };
        if context.out.json {
            return context.out.value(&json!({ "task": Value::Null, "reasons": reasons }));
        }
        say_why_nothing(context, &reasons);
        Ok(())
    }
}

fn list(
    context: &mut Context,
    plans: &Arc<PlanStore>,
    of: Option<&PlanId>,
    found: &[(PlanId, TaskId)],
) -> Outcome {
    let now = text::now();
    let mut tasks = Vec::new();
    let service = context.service(plans);
    for (plan, task) in found {
        let elsewhere = service.claims_of_other_clones(plan)?.remove(task);
        let row = plans.view(plan, |plan, _| {
            let found = plan.task(task.as_str())?;
            let started = plan.as_started();
            let mut row = view::json::row_of(&started, found);
            row["plan"] = plan.id().as_str().into();
            let waits = started.waiting(task.as_str(), now);
            if !waits.is_empty() {
                row["waits_for"] = waits.iter().map(waiting_text).collect();
            }
            if let Some(notice) = &elsewhere {
                row["claimed_elsewhere"] = notice.to_string().into();
            }
            Some(row)
        })?;
        tasks.extend(row);
    }
    let total = of.map(|plan| plans.view(plan, |plan, _| plan.as_started().claimable_total())).transpose()?;
    if context.out.json {
        return context.out.value(&json!({ "tasks": tasks, "total": total }));
    }
    for task in &tasks {
        let word = |name: &str| task.get(name).and_then(Value::as_str).unwrap_or("");
        let name =
            if of.is_some() { word("id").to_owned() } else { format!("{}/{}", word("plan"), word("id")) };
        let mut behind = String::new();
        if task.get("executor").is_some() {
            behind.push_str(&format!("  [{}]", word("executor")));
        }
        if task.get("claimed_elsewhere").is_some() {
            behind.push_str(&format!("  ({})", word("claimed_elsewhere")));
        }
        if let Some(waits) = task.get("waits_for").and_then(Value::as_array) {
            let waits: Vec<&str> = waits.iter().filter_map(Value::as_str).collect();
            behind.push_str(&format!("  (waits for {})", waits.join("; ")));
        }
        let room = context.out.columns.saturating_sub(text::width(&name) + text::width(&behind) + 2).max(20);
        let description = text::excerpt(word("description"), room);
        let gap = if description.is_empty() { "" } else { "  " };
        context.out.line(format!("{name}{gap}{description}{behind}"));
    }
    if let Some(total) = total.filter(|&total| total > tasks.len()) {
        context.out.say(format!("{} of {total} ready tasks; --limit N shows more", tasks.len()));
    }
    Ok(())
}

/// Reports why nothing can start.
fn say_why_nothing(context: &mut Context, reasons: &[String]) {
    if let [reason] = reasons {
        context.out.say(format!("nothing can be started: {reason}"));
        return;
    }
    context.out.say("nothing can be started:");
    for reason in reasons {
        context.out.say(format!("  {reason}"));
    }
}

/// Prints a claimed task with the outputs of its dependencies.
fn taken(context: &mut Context, plans: &Arc<PlanStore>, claim: &WriteReply, task: &TaskId) -> Outcome {
    let now: Timestamp = text::now();
    let service = context.service(plans);
    let before = service.earlier_attempt(claim, task)?;
    plans.with_plan(&claim.plan, |plan| {
        let Some(found) = plan.task(task.as_str()) else { return Ok(()) };
        if context.out.json {
            let mut value = view::json::task(plan, found, now);
            value["last_error"] = json!(before.last_error);
            value["released"] = json!(before.released);
            return context.out.value(&value);
        }
        let config = view::config_for(plan, &service);
        view::task::print(&Shown::of(plan, &config), found, now, &mut context.out);
        for (word, said) in [("last error", &before.last_error), ("released before", &before.released)] {
            if let Some(said) = said {
                context.out.say(format!("{word}: {said}"));
            }
        }
        let attempt = format!(" --attempt {}", found.state.attempt);
        let done = on_task("done", plan.id(), task, "", &attempt);
        context.out.say(format!("claimed; when it is done: {}", command(&done)));
        Ok(())
    })?
}
