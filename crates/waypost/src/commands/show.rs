//! `waypost show`: shows a plan, a page of its tasks, or one task in full.

use std::sync::Arc;

use clap::Args;
use serde_json::json;
use waypost_config::Config;
use waypost_core::{Plan, Task};
use waypost_formats::render_plan_command;
use waypost_git::TASK_TRAILER;
use waypost_service::{CommitsOfTask, task_commits};

use waypost_cli::context::{Context, task_of, whole_task_of};
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::repository;
use waypost_cli::runner::command;
use waypost_cli::view::tree::Page;
use waypost_cli::view::{self, Shown, levels, text};

/// Tasks on a page by default.
const TASKS_DEFAULT: usize = 50;
/// Maximum number of tasks on a page; --full shows all.
const TASKS_MAX: usize = 10_000;

const EXAMPLES: &str = "\
Examples:
  waypost show
  waypost show kq3
  waypost show kq3 t4
  waypost show kq3 --dag
  waypost show kq3 --cursor t50
  waypost show kq3 --version 7
  waypost show kq3 --full --json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Show {
    /// Plan id, or an unambiguous prefix [default: the latest active plan, or else the latest plan]
    plan: Option<String>,
    /// Show only this task, in full (also PLAN/TASK, as `next` prints it)
    task: Option<String>,
    /// The same as TASK
    #[arg(long = "task", value_name = "TASK", conflicts_with = "task", hide = true)]
    task_option: Option<String>,
    /// Show the tasks as a tree (default)
    #[arg(long, conflicts_with_all = ["dag", "plan_command"])]
    tree: bool,
    /// Show the tasks in dependency levels
    #[arg(long)]
    dag: bool,
    /// Show the plan as jaato's `plan` command does
    #[arg(long, conflicts_with = "dag")]
    plan_command: bool,
    /// Maximum number of tasks
    #[arg(long, value_name = "N", default_value_t = TASKS_DEFAULT)]
    limit: usize,
    /// Continue after this task
    #[arg(long, alias = "after", value_name = "TASK")]
    cursor: Option<String>,
    /// Show all tasks with full texts
    #[arg(long)]
    full: bool,
    /// Show the plan as of this version
    #[arg(long, value_name = "N")]
    version: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowTask {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Task id, or an unambiguous prefix
    task: String,
}

impl ShowTask {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        found.view(context, |plan, context| print_task(plan, &self.task, context))?
    }
}

impl Show {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        if self.limit == 0 || self.limit > TASKS_MAX {
            let hint = format!("write a number from 1 to {TASKS_MAX}, or --full for all");
            return Err(Failure::usage(format!("--limit {} is out of bounds", self.limit), hint));
        }
        let mut named = self.task.as_deref().or(self.task_option.as_deref());
        let plan = self.plan.as_deref().map(|plan| match plan.split_once('/') {
            // No plan has such an id.
            Some((plan, task)) if named.is_none() => {
                named = Some(task);
                plan
            }
            Some(_) | None => plan,
        });
        let found = match plan {
            Some(plan) => context.find(plan)?,
            None => context.find_latest()?,
        };
        match self.version {
            Some(version) => {
                found.note_damage(context)?;
                self.print(&found.plans.at_version(&found.id, version)?, named, context)
            }
            None => found.view(context, |plan, context| self.print(plan, named, context))?,
        }
    }

    fn print(&self, plan: &Plan, task: Option<&str>, context: &mut Context) -> Outcome {
        if let Some(task) = task {
            return print_task(plan, task, context);
        }
        if self.plan_command {
            return self.print_plan_command(plan, context);
        }
        if self.dag {
            return self.print_levels(plan, context);
        }
        if self.full && context.out.json {
            return context.out.value(&view::json::whole(plan));
        }
        let after = self.cursor.as_ref().map(|task| task_of(plan, task)).transpose()?;
        let limit = if self.full { usize::MAX } else { self.limit };
        let page = Page::of(plan, after.as_ref().map(waypost_core::TaskId::as_str), limit);
        if context.out.json {
            return context.out.value(&view::json::page(plan, &page));
        }
        let config = config_for(plan, context)?;
        let shown = Shown::of(plan, &config);
        if after.is_none() {
            view::plan::print_head(&shown, self.full, &mut context.out);
            view::plan::print_body(plan, self.full, &mut context.out);
            if page.total > 0 {
                context.out.line("");
            }
        }
        page.print(&shown, &mut context.out);
        if let Some(next) = page.next() {
            let seen =
                format!("{} to {} of {} tasks", page.before + 1, page.before + page.rows.len(), page.total);
            let more = format!("waypost show {} --cursor {next}", plan.id());
            context.out.say(format!("{seen}; more: {}", command(&more)));
        }
        Ok(())
    }

    fn print_levels(&self, plan: &Plan, context: &mut Context) -> Outcome {
        let levels = levels::levels_of(plan)?;
        let limit = if self.full { usize::MAX } else { self.limit };
        if context.out.json {
            let total: usize = levels.levels.iter().map(Vec::len).sum();
            let mut left = limit;
            let mut shown = Vec::new();
            for level in &levels.levels {
                shown.push(&level[..level.len().min(left)]);
                left -= level.len().min(left);
                if left == 0 {
                    break;
                }
            }
            return context.out.value(&json!({
                "id": plan.id(),
                "version": plan.version(),
                "levels": shown,
                "levels_total": levels.levels.len(),
                "tasks_total": total,
                "longest_chain": &levels.chain[..levels.chain.len().min(limit)],
                "longest_chain_length": levels.chain.len(),
            }));
        }
        let config = config_for(plan, context)?;
        let shown = Shown::of(plan, &config);
        view::plan::print_head(&shown, self.full, &mut context.out);
        context.out.line("");
        let unseen = levels::print(&shown, &levels, limit, &mut context.out);
        if unseen > 0 {
            context
                .out
                .say(format!("{} not shown; --limit N or --full shows more", text::count(unseen, "task")));
        }
        Ok(())
    }

    fn print_plan_command(&self, plan: &Plan, context: &mut Context) -> Outcome {
        let rendered = render_plan_command(&plan.to_draft());
        if context.out.json {
            return context
                .out
                .value(&json!({ "id": plan.id(), "version": plan.version(), "text": rendered }));
        }
        let is_step = |line: &str| line.starts_with("  ");
        let steps = rendered.lines().filter(|line| is_step(line)).count();
        let limit = if self.full { usize::MAX } else { self.limit };
        let mut seen = 0;
        for line in rendered.lines() {
            if is_step(line) {
                seen += 1;
                if seen > limit {
                    continue;
                }
            }
            context.out.line(line);
        }
        if steps > limit {
            context.out.say(format!("{limit} of {steps} steps; --full shows all"));
        }
        Ok(())
    }
}

/// The configuration, as far as it tells how the tasks of a plan are shown.
fn config_for(plan: &Plan, context: &Context) -> Outcome<Arc<Config>> {
    Ok(view::config_for(plan, &context.service(&context.plans()?)))
}

fn print_task(plan: &Plan, task: &str, context: &mut Context) -> Outcome {
    let task = whole_task_of(plan, task)?;
    let commits = commits_of(plan, task, context)?;
    let plans = context.plans()?;
    let service = context.service(&plans);
    let elsewhere = service.claims_of_other_clones(plan.id())?.remove(&task.spec.id);
    if context.out.json {
        let mut value = view::json::task(plan, task, text::now());
        if !commits.commits.is_empty() {
            value["commits"] = json!(commits.commits);
        }
        if let Some(notice) = elsewhere {
            value["claimed_elsewhere"] = json!(notice.to_string());
        }
        return context.out.value(&value);
    }
    let config = view::config_for(plan, &service);
    view::task::print(&Shown::of(plan, &config), task, text::now(), &mut context.out);
    if let Some(notice) = elsewhere {
        view::task::field(&mut context.out, "elsewhere", &notice.to_string());
    }
    for (number, commit) in commits.commits.iter().enumerate() {
        let name = if number == 0 { "commits" } else { "" };
        let words =
            format!("{} {} ({}, {})", commit.short(), commit.title, commit.author, commit.at.to_the_second());
        view::task::field(&mut context.out, name, &words);
    }
    if commits.more {
        context.out.say(format!(
            "more: git log --all --grep '{TASK_TRAILER}: {}/{}'",
            plan.id(),
            task.spec.id
        ));
    }
    if let Some(note) = commits.note {
        context.out.note(note);
    }
    Ok(())
}

/// The commits of the repository around the workspace that name the task.
fn commits_of(plan: &Plan, task: &Task, context: &Context) -> Outcome<CommitsOfTask> {
    let repository = repository::around(&context.folders()?.workspace);
    let find = |repository| task_commits(&repository, plan.id(), &task.spec.id, plan.state().created_at);
    Ok(repository.map(find).unwrap_or_default())
}
