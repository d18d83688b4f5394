//! `waypost find`: searches the tasks of all plans.

use clap::Args;
use serde_json::json;
use waypost_core::EffectiveStatus;
use waypost_service::TaskSearch;

use waypost_cli::context::Context;
use waypost_cli::error::Outcome;
use waypost_cli::options::within;
use waypost_cli::view::table::{self, Cell};

/// Tasks listed by default.
const TASKS_DEFAULT: usize = 20;
/// Maximum number of listed tasks.
const TASKS_MAX: usize = 200;

const EXAMPLES: &str = "\
Every word must be in the id, the description, the notes, a label or the assignee of a task; some of \
them may be in the title of its plan instead. Plans that changed last are read first: at most 1,000 \
plans and 200,000 tasks.

Examples:
  waypost find deploy
  waypost find release notes --status failed,ready
  waypost find --label risky --assignee person:ada";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Find {
    /// Words to look for [default: every task]
    words: Vec<String>,
    /// Only tasks with one of these statuses
    #[arg(long, value_delimiter = ',', value_name = "STATUS", value_parser = status)]
    status: Vec<EffectiveStatus>,
    /// Only tasks with this label
    #[arg(long)]
    label: Option<String>,
    /// Only tasks of this assignee, as in person:ada
    #[arg(long, value_name = "WHO")]
    assignee: Option<String>,
    /// Only tasks of this plan: its id or prefix
    #[arg(long)]
    plan: Option<String>,
    /// Include archived plans
    #[arg(long)]
    all: bool,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value_t = TASKS_DEFAULT)]
    limit: usize,
}

fn status(text: &str) -> Result<EffectiveStatus, String> {
    let unknown =
        |_| format!("write one of {}", EffectiveStatus::ALL.map(EffectiveStatus::as_str).join(", "));
    text.parse().map_err(unknown)
}

impl Find {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        within("--limit", self.limit, 1..=TASKS_MAX)?;
        let plans = context.plans()?;
        let service = context.service(&plans);
        let wanted = TaskSearch {
            text: self.words.join(" "),
            statuses: self.status,
            label: self.label,
            assignee: self.assignee,
            plan: self.plan.map(|plan| service.resolve_plan(&plan)).transpose()?,
            archived: self.all,
        };
        let found = service.search_tasks(&wanted, self.limit)?;
        if context.out.json {
            return context.out.value(&json!(found));
        }
        if found.tasks.is_empty() {
            context.out.say("no tasks match");
        } else {
            let rows: Vec<Vec<Cell>> = found
                .tasks
                .iter()
                .map(|task| {
                    vec![
                        Cell::plain(format!("{}/{}", task.plan, task.task)),
                        Cell::plain(task.sign().label()),
                        Cell::plain(task.plan_title.clone()),
                        Cell::with_behind(&task.text, task.labels.join(" ")),
                    ]
                })
                .collect();
            table::print(&mut context.out, &["TASK", "STATUS", "PLAN", "DESCRIPTION"], &rows);
            if found.total > found.tasks.len() {
                context.out.say(format!(
                    "{} of {} tasks; --limit N shows more",
                    found.tasks.len(),
                    found.total
                ));
            }
        }
        if found.more {
            context.out.say(format!("searched the {} plans that changed last", found.plans_read));
        }
        Ok(())
    }
}
