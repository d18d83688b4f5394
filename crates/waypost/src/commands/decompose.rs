//! `waypost plan decompose`: breaks goals down until every leaf is small enough or a limit is reached, and reports what is left.

use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value, json};
use waypost_core::{Draft, Plan, PlanId, Task, TaskId, TaskSpec};
use waypost_llm::Journal;
use waypost_planner::planning::{PlanningGoal, PlanningRequest, PlanningResult, Steps};
use waypost_planner::{Decompose as Session, Progress, Stopped};
use waypost_service::{Caller, CreateOptions};
use waypost_store::WriteError;

use crate::planning::{
    Chosen, ModelOptions, PlanningLimits, PlanningSession, Within, author, budget, read_goal, record, report,
};
use waypost_cli::context::{Context, task_of};
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::view::text;

/// The id of a new plan's root task.
const ROOT: &str = "goal";
/// Maximum columns of a new plan's title.
const TITLE_COLUMNS_MAX: usize = 100;

const EXAMPLES: &str = "\
A goal creates a new plan with the goal as its root; an existing plan is broken down in place, as a \
whole or below one task. The model judges whether each goal is small enough, breaks it down into 2 to \
7 parts and orders them; goals that depend on others are refined once those have been planned. \
Every reply is saved at once: after Ctrl-C, `waypost pause`, a limit or a crash, `waypost plan continue` \
resumes from there.

Examples:
  waypost plan decompose 'Write a search engine for our wiki' --max-depth 3
  waypost plan decompose kq3
  waypost plan decompose kq3 t4 --budget 50000 --time 10m
  waypost plan decompose kq3 --step";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Decompose {
    /// Goal (- reads it from standard input), or a plan and optionally one of its tasks
    #[arg(value_name = "GOAL|PLAN [TASK]", num_args = 1..=2, required = true)]
    what: Vec<String>,
    /// Treat the argument as a goal even if a plan has that id
    #[arg(long)]
    goal: bool,
    /// Stop after the first usable model reply
    #[arg(long)]
    step: bool,
    #[command(flatten)]
    asked: ModelOptions,
    #[command(flatten)]
    bounds: PlanningLimits,
}

/// The result of a decomposition.
pub(crate) struct Decomposition {
    /// The JSON fields of the report.
    pub(crate) fields: Map<String, Value>,
    /// An error if planning stopped before its end.
    pub(crate) outcome: Outcome,
}

enum Target {
    /// An existing plan, or one of its tasks.
    Known(PlanId, Option<TaskId>),
    /// A goal for a new plan.
    Goal(String),
}

impl Decompose {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (planning, target) = self.find(context)?;
        let extent = self.bounds.over(planning.extent())?;
        // Choose the model first: if that fails, no empty plan is left behind.
        let chosen = planning.choose(&self.asked)?;
        let (plan, task, is_new) = match target {
            Target::Known(plan, task) => (plan, task, false),
            Target::Goal(goal) => {
                let plan = make(context, &planning, &chosen, goal, extent.limits.tokens_max)?;
                context.out.say(format!("created plan {plan}"));
                (plan, None, true)
            }
        };
        let journal = planning.journal(&plan)?;
        let mut commands = planning.waking(&plan)?;
        // A new plan already has its budget.
        commands.extend(budget(self.bounds.budget.filter(|_| !is_new)));
        let order = PlanningRequest::new(plan, PlanningGoal::Decompose { task }, extent, self.asked.model());
        planning.listen(context)?;
        let order = planning.begin(context, order, &journal, commands)?;
        let steps = if self.step { Steps::One } else { Steps::All };
        run_and_tell(context, planning, (order, journal), (&chosen, &self.asked), steps)
    }

    /// Finds the plan that is named, or reads the goal of a new one.
    fn find(&self, context: &mut Context) -> Outcome<(PlanningSession, Target)> {
        let word = &self.what[0];
        if let Some(task) = self.what.get(1) {
            if self.goal {
                return Err(Failure::usage("--goal is for one text", "put the goal in quotes"));
            }
            let found = context.find(word)?;
            let task = found.read(|plan| task_of(plan, task))??;
            return Ok((PlanningSession::enter(context)?, Target::Known(found.id, Some(task))));
        }
        if !self.goal && word != "-" {
            match context.find(word) {
                Ok(found) => return Ok((PlanningSession::enter(context)?, Target::Known(found.id, None))),
                // A single word is more likely the id of a missing plan than a goal.
                Err(failure) if !word.trim().contains(char::is_whitespace) => {
                    let hint = "`waypost list` shows the plans; for a goal of one word, use --goal";
                    return Err(Failure { hint: hint.to_owned(), ..failure });
                }
                Err(_) => {}
            }
        }
        let goal = read_goal(word)?;
        Ok((PlanningSession::enter_to_add(context)?, Target::Goal(goal)))
    }
}

/// Creates a plan with the goal as its only task.
fn make(
    context: &Context,
    planning: &PlanningSession,
    chosen: &Chosen,
    goal: String,
    token_budget: Option<u64>,
) -> Outcome<PlanId> {
    let by = author(context, chosen.name())?;
    let title = text::excerpt(&goal, TITLE_COLUMNS_MAX).into_owned();
    let mut draft = Draft::new(title);
    draft.spec.goal.clone_from(&goal);
    draft.spec.token_budget = token_budget;
    let root = TaskId::new(ROOT).map_err(|error| Failure::failed(error.to_string(), ""))?;
    draft.tasks.push(Task::new(TaskSpec::new(root, goal)));
    Ok(planning.service.create(&Caller::new(by), draft, CreateOptions::default())?.plan)
}

/// Decomposes what a request names, and reports the result.
pub(crate) fn run_and_tell(
    context: &mut Context,
    planning: PlanningSession,
    begun: (PlanningRequest, Arc<Journal>),
    (chosen, asked): (&Chosen, &ModelOptions),
    steps: Steps,
) -> Outcome {
    let (id, journal) = (begun.0.plan.clone(), Arc::clone(&begun.1));
    let told = think(context, &planning, begun, chosen, steps);
    let recorded = record(journal.path(), asked.record.as_ref());
    let told = told?;
    let found = planning.found(id);
    if context.out.json {
        let mut fields = told.fields;
        found.read(|plan| report::plan_fields(plan, &mut fields))?;
        context.out.value(&fields)?;
        return told.outcome.and(recorded);
    }
    found.read(|plan| report::print_tree(plan, &mut context.out))?;
    for line in report::lines(&told.fields) {
        context.out.say(line);
    }
    told.outcome.and(recorded)
}

/// Decomposes what a request names.
pub(crate) fn think(
    context: &mut Context,
    planning: &PlanningSession,
    (mut order, journal): (PlanningRequest, Arc<Journal>),
    chosen: &Chosen,
    steps: Steps,
) -> Outcome<Decomposition> {
    let scope = match &order.want {
        PlanningGoal::Decompose { task } => task.clone(),
        PlanningGoal::Plan { .. } | PlanningGoal::Digest { .. } => None,
    };
    let extent = &order.extent;
    let mut session = Session::new(chosen.prompt_policy(), extent.bounds(), extent.refining(), scope.clone());
    let thought = planning.think(context, &order, (chosen, &journal), steps, &mut session)?;
    let read = |plan: &Plan| (session.progress(plan), scope.or_else(|| only_root(plan)));
    let (progress, root) = match planning.plans.with_plan(&order.plan, read) {
        Ok(read) => read,
        Err(WriteError::NotFound(_)) => (Progress::default(), None),
        Err(error) => return Err(error.into()),
    };
    planning.ended(context, &mut order, &thought.ending, within(&progress))?;
    let mut fields = report::thought_json(&thought, &journal);
    fields.insert("goals".to_owned(), goals_json(&order.plan, &progress));
    let outcome = outcome(&order.plan, &thought).and_then(|()| not_given_up(root.as_ref(), &progress));
    Ok(Decomposition { outcome, fields })
}

/// Returns the goal that everything else in the plan is a part of, if there is one.
fn only_root(plan: &Plan) -> Option<TaskId> {
    let mut roots = plan.tasks().filter(|(_, depth)| *depth == 0);
    match (roots.next(), roots.next()) {
        (Some((root, _)), None) => Some(root.spec.id.clone()),
        (_, _) => None,
    }
}

/// Fails if the goal itself was given up, so that nothing was broken down.
fn not_given_up(root: Option<&TaskId>, progress: &Progress) -> Outcome {
    for (task, why) in progress.stopped.iter().filter(|(task, _)| Some(task) == root) {
        match why {
            Stopped::Bound { .. } => {}
            Stopped::GivenUp { .. } => {
                let failure = Failure::failed(format!("goal {task} was {why}"), why.hint());
                return Err(Failure { code: "given_up".to_owned(), ..failure });
            }
        }
    }
    Ok(())
}

/// Whether a limit keeps any goal from being broken down.
fn within(progress: &Progress) -> Within {
    let is_bounded = |(_, why): &(TaskId, Stopped)| match why {
        Stopped::Bound { .. } => true,
        Stopped::GivenUp { .. } => false,
    };
    if progress.stopped.iter().any(is_bounded) { Within::Bounds } else { Within::Everything }
}

fn goals_json(plan: &PlanId, progress: &Progress) -> Value {
    let hint = |why: &Stopped| match why {
        Stopped::Bound { bound, .. } => report::more(plan, *bound),
        Stopped::GivenUp { .. } => why.hint(),
    };
    let stopped: Vec<Value> = progress
        .stopped
        .iter()
        .map(|(task, why)| json!({ "task": task, "why": why.to_string(), "hint": hint(why) }))
        .collect();
    json!({
        "total": progress.goals,
        "decomposed": progress.decomposed,
        "atomic": progress.atomic,
        "open": progress.open,
        "stopped": stopped,
    })
}

/// Returns an error if planning stopped before its end, with the reason and how to resume.
pub(crate) fn outcome(plan: &PlanId, thought: &PlanningResult) -> Outcome {
    report::outcome(plan, &thought.ending).map_or(Ok(()), Err)
}
