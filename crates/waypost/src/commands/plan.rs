//! `waypost plan`: asks a model for a plan, validates it, shows it, and saves it as a draft. Never saves an invalid
//! plan, and never overwrites another plan.

pub(crate) mod generate;
mod repo_map;

use clap::{Args, Subcommand};
use waypost_core::nearest;
use waypost_planner::generate::TASKS_ASKED_MAX;
use waypost_planner::planning::{PlanningGoal, PlanningRequest, RequestProgress, Text};
use waypost_text::shell_word;

use crate::commands::continue_planning::Continue;
use crate::commands::cost::Cost;
use crate::commands::decompose::Decompose;
use crate::commands::digest::Digest;
use crate::commands::plan::generate::{Generation, Saving};
use crate::commands::review::Review;
use crate::commands::rollback::Rollback;
use crate::planning::{ModelOptions, PlanningLimits, PlanningSession, note_bad, of_order, read_goal};
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::files;
use waypost_cli::options::within;

/// Maximum bytes of all files given to a model.
const CONTEXT_BYTES_MAX: usize = 1024 * 1024;

const EXAMPLES: &str = "\
Uses the model configured for the role `planner` (see docs/planner.md; `waypost model test` checks it). \
The reply is validated, and problems are returned to the model a few times; if no valid plan results, \
all problems are reported and the replies are kept. The plan is saved as a draft: nothing runs by \
itself. After an interruption the same command (or `waypost plan continue`) resumes and reuses the replies.

Examples:
  waypost plan 'Refactor auth to JWT'
  waypost plan 'Refactor auth to JWT' --file src/auth.rs --map --constraint 'no new crates'
  waypost plan - --max-tasks 8 --no-edit < goal.txt
  waypost plan 'Refactor auth to JWT' --dry-run
  waypost plan 'Write a search engine' --decompose --budget 100000";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Plan {
    #[command(subcommand)]
    act: Option<Planning>,
    #[command(flatten)]
    generate: Generate,
}

// What else a model does with plans. No help text: it would replace that of the command.
#[derive(Debug, Subcommand)]
pub(crate) enum Planning {
    /// Break a goal, plan or task down into small enough tasks with a model
    Decompose(Box<Decompose>),
    /// Resume unfinished planning
    Continue(Box<Continue>),
    /// Discard a goal's decomposition and all its subtasks
    Rollback(Box<Rollback>),
    /// Show a goal's decomposition, its reasoning and the model calls behind it
    Review(Box<Review>),
    /// Summarize finished work with a model
    Digest(Box<Digest>),
    /// Show model calls, tokens and cost
    Cost(Box<Cost>),
}

#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// Goal of the plan; - reads it from standard input
    #[arg(value_name = "GOAL|-", required = true)]
    goal: Vec<String>,
    /// File for the model to read; repeatable
    #[arg(long = "file", value_name = "FILE", visible_alias = "context")]
    files: Vec<String>,
    /// Give the model the paths of the repository
    #[arg(long)]
    map: bool,
    /// Constraint on the plan; repeatable
    #[arg(long = "constraint", value_name = "TEXT")]
    constraints: Vec<String>,
    /// Maximum number of tasks [default: 50, or as configured]
    #[arg(long, value_name = "N")]
    max_tasks: Option<usize>,
    /// Show the plan without saving it; the same command without this option saves the shown plan
    #[arg(long, alias = "plan-dry-run")]
    dry_run: bool,
    /// Do not open the editor
    #[arg(long, alias = "plan-no-edit")]
    no_edit: bool,
    /// Then break the tasks down until each is small enough
    #[arg(long)]
    decompose: bool,
    /// Also accept plans in prose: numbered lines and bullets become tasks
    #[arg(long)]
    prose: bool,
    /// Ignore the replies of earlier interrupted or dry runs
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    asked: ModelOptions,
    #[command(flatten)]
    bounds: PlanningLimits,
}

impl Plan {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        match self.act {
            Some(act) => act.run(context),
            None => self.generate.run(context),
        }
    }
}

impl Planning {
    fn run(self, context: &mut Context) -> Outcome {
        match self {
            Self::Decompose(act) => act.run(context),
            Self::Continue(act) => act.run(context),
            Self::Rollback(act) => act.run(context),
            Self::Review(act) => act.run(context),
            Self::Digest(act) => act.run(context),
            Self::Cost(act) => act.run(context),
        }
    }
}

impl Generate {
    fn run(self, context: &mut Context) -> Outcome {
        let goal = read_goal(self.goal_word(context)?)?;
        let planning = if self.dry_run {
            PlanningSession::enter(context)?
        } else {
            PlanningSession::enter_to_add(context)?
        };
        // Choose the model first: if that fails, no request is left behind.
        let chosen = planning.choose(&self.asked)?;
        let tasks_max = self.max_tasks.unwrap_or(planning.config.planner.tasks_max as usize);
        within("--max-tasks", tasks_max, 2..=TASKS_ASKED_MAX)?;
        let want = PlanningGoal::Plan {
            goal,
            context: texts(&self.files, &planning, context)?,
            map: if self.map { repo_map::of(&planning.folders.workspace)? } else { String::new() },
            constraints: self.constraints.clone(),
            tasks_max,
            decompose: self.decompose,
            prose: self.prose,
        };
        let extent = self.bounds.over(planning.extent())?;
        let order = PlanningRequest::new(planning.service.reserve_id()?, want, extent, self.asked.model());
        let saving = if self.dry_run { Saving::Nothing } else { Saving::Plan { edit: !self.no_edit } };
        planning.listen(context)?;
        let (order, journal) = self.adopt(context, &planning, order)?;
        Generation { planning, order, journal, chosen, asked: self.asked, saving }.run(context)
    }

    /// Returns the goal as it was given. Refuses words that are rather a command: a model would be paid for a plan called "list".
    fn goal_word(&self, context: &Context) -> Outcome<&str> {
        let is_word = |text: &str| {
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
            !text.is_empty() && text != "-" && text.chars().all(is_plain)
        };
        let message = match self.goal.as_slice() {
            [goal] if !is_word(goal) => return Ok(goal),
            [goal] => format!("{goal:?} is one word, and not the goal of a plan"),
            goal => format!("a goal is one argument, and these are {}", goal.len()),
        };
        let quoted =
            "put the goal in quotes, in several words; `waypost plan -` reads any goal from standard input";
        let mut program = (context.program.definition)();
        program.build();
        let hint = meant(&program, &self.goal)
            .map_or_else(|| quoted.to_owned(), |line| format!("did you mean `{line}`? Otherwise {quoted}"));
        Err(Failure::usage(message, hint))
    }

    /// Adopts the request that an earlier run of the same command left behind, or starts the new one.
    fn adopt(
        &self,
        context: &mut Context,
        planning: &PlanningSession,
        order: PlanningRequest,
    ) -> Outcome<generate::Begun> {
        // A dry run is expected to show a new plan, not the previous one.
        let known = if self.fresh || self.dry_run || self.asked.replay.is_some() {
            Vec::new()
        } else {
            let (known, bad) = planning.orders.all().map_err(|error| of_order(&error))?;
            note_bad(context, &bad);
            known
        };
        let same = |known: &PlanningRequest| {
            let open = match known.stand {
                RequestProgress::Open | RequestProgress::Shown => true,
                RequestProgress::Bounded | RequestProgress::Closed => false,
            };
            open && known.fingerprint() == order.fingerprint()
        };
        for known in known.into_iter().filter(same) {
            let journal = match planning.journal(&known.plan) {
                Ok(journal) => journal,
                // Another process holds the journal, or it cannot be opened. Neither prevents a new plan.
                Err(failure) if failure.code == "held" => continue,
                Err(failure) => {
                    context.out.note(format!("skipped: {} ({})", failure.message, failure.hint));
                    continue;
                }
            };
            let what = match known.stand {
                RequestProgress::Shown => "the plan that was shown",
                RequestProgress::Open | RequestProgress::Bounded | RequestProgress::Closed => {
                    "an earlier run that was interrupted"
                }
            };
            context.out.say(format!("continuing {what}; --fresh starts over"));
            let order = PlanningRequest { plan: known.plan.clone(), extent: order.extent, ..order };
            return Ok((planning.begin(context, order, &journal, Vec::new())?, journal));
        }
        let journal = planning.journal(&order.plan)?;
        Ok((planning.begin(context, order, &journal, Vec::new())?, journal))
    }
}

/// Returns the command that is spelled like the first of these words, with the others.
fn meant(program: &clap::Command, words: &[String]) -> Option<String> {
    let (first, rest) = words.split_first()?;
    let names = |command: &clap::Command| -> Vec<String> {
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        shown.flat_map(|command| command.get_name_and_visible_aliases()).map(str::to_owned).collect()
    };
    let near = |names: Vec<String>| nearest(first, names.iter().map(String::as_str));
    let own = program.get_subcommands().find(|command| command.get_name() == "plan");
    let own = own.and_then(|plan| near(names(plan))).map(|name| format!("plan {name}"));
    let command = own.or_else(|| near(names(program)))?;
    let rest = rest.iter().map(|word| format!(" {}", shell_word(word))).collect::<String>();
    Some(format!("waypost {command}{rest}"))
}

/// Reads the files for the model. Secrets are redacted, both for the model and in the stored request.
fn texts(paths: &[String], planning: &PlanningSession, context: &mut Context) -> Outcome<Vec<Text>> {
    let redactor = planning.redactor();
    let mut texts = Vec::new();
    let mut bytes = 0;
    for path in paths {
        let whole = files::read(path)?;
        let text = redactor.clean(&whole);
        if text != whole {
            context.out.note(format!("{path} holds secrets: they are redacted for the model"));
        }
        bytes += text.len();
        if bytes > CONTEXT_BYTES_MAX {
            let message = format!("the files have more than {CONTEXT_BYTES_MAX} bytes together");
            return Err(Failure::usage(message, "give the model less to read"));
        }
        texts.push(Text { name: path.clone(), text });
    }
    Ok(texts)
}
