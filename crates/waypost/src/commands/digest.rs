//! `waypost plan digest`: summarizes finished work with a model, and measures the fidelity of the summaries.

use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use waypost_core::{Digest as Kept, Plan};
use waypost_llm::Journal;
use waypost_planner::Fidelity;
use waypost_planner::planning::{Digests, PlanningGoal, PlanningRequest, Steps};

use crate::planning::{
    Chosen, ModelOptions, PlanningLimits, PlanningSession, Within, budget, record, report,
};
use waypost_cli::context::{Context, task_of};
use waypost_cli::error::Outcome;
use waypost_cli::view::text;

const EXAMPLES: &str = "\
A digest is a summary of under 100 words with decisions and artifacts; later goals see it instead of \
the work itself. Its fidelity is measured: a model answers questions about the original from the \
digest alone, and the answers are graded.

Examples:
  waypost plan digest kq3
  waypost plan digest kq3 t4 --no-exam";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Digest {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Task with its subtasks [default: all finished tasks without a digest]
    task: Option<String>,
    /// Skip the evaluation of digests
    #[arg(long)]
    no_exam: bool,
    #[command(flatten)]
    asked: ModelOptions,
    #[command(flatten)]
    bounds: PlanningLimits,
}

impl Digest {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let task = self.task.as_ref().map(|task| found.read(|plan| task_of(plan, task))?).transpose()?;
        let planning = PlanningSession::enter(context)?;
        let want = PlanningGoal::Digest { task, examined: !self.no_exam };
        let extent = self.bounds.over(planning.extent())?;
        let chosen = planning.choose(&self.asked)?;
        let journal = planning.journal(&found.id)?;
        let order = PlanningRequest::new(found.id, want, extent, self.asked.model());
        planning.listen(context)?;
        let commands = budget(self.bounds.budget).into_iter().collect();
        let order = planning.begin(context, order, &journal, commands)?;
        run_and_tell(context, planning, (order, journal), (&chosen, &self.asked))
    }
}

/// Digests what a request names, and reports the result.
pub(crate) fn run_and_tell(
    context: &mut Context,
    planning: PlanningSession,
    (mut order, journal): (PlanningRequest, Arc<Journal>),
    (chosen, asked): (&Chosen, &ModelOptions),
) -> Outcome {
    let (scope, fidelity) = match &order.want {
        PlanningGoal::Digest { task, examined: true } => (task.clone(), Fidelity::default()),
        PlanningGoal::Digest { task, examined: false } => (task.clone(), Fidelity::Unknown),
        PlanningGoal::Plan { .. } | PlanningGoal::Decompose { .. } => (None, Fidelity::default()),
    };
    let before = planning.plans.with_plan(&order.plan, digested)?;
    let mut session = Digests::new(chosen.prompt_policy(), fidelity, scope, order.extent.parallel_max);
    let thought = planning.think(context, &order, (chosen, &journal), Steps::All, &mut session);
    let recorded = record(journal.path(), asked.record.as_ref());
    let thought = thought?;
    planning.ended(context, &mut order, &thought.ending, Within::Everything)?;
    let outcome = report::outcome(&order.plan, &thought.ending).map_or(Ok(()), Err).and(recorded);
    let mut fields = report::thought_json(&thought, &journal);
    let found = planning.found(order.plan.clone());
    let mut now = found.read(digested)?;
    now.retain(|(task, _)| before.iter().all(|(known, _)| known != task));
    if context.out.json {
        found.read(|plan| report::plan_fields(plan, &mut fields))?;
        let digests: Vec<Value> =
            now.iter().map(|(task, digest)| json!({ "task": task, "digest": digest })).collect();
        fields.insert("digests".to_owned(), digests.into());
        fields.insert("given_up".to_owned(), json!(session.given_up()));
        fields.insert("unexamined".to_owned(), json!(session.unexamined()));
        context.out.value(&fields)?;
        return outcome;
    }
    for (task, digest) in &now {
        let share = |share: Option<f64>| {
            share.map_or_else(|| "?".to_owned(), |share| format!("{:.0} %", share * 100.0))
        };
        let measured =
            format!("size {}, fidelity {}", share(digest.compression_ratio), share(digest.fidelity_score));
        context.out.line(format!("{task}  ({measured})"));
        for line in text::wrap(&digest.summary, context.out.columns.saturating_sub(2), usize::MAX) {
            context.out.line(format!("  {line}"));
        }
    }
    if now.is_empty() {
        context.out.say("no finished task lacks a digest that could be made");
    }
    for (task, why) in session.given_up() {
        context.out.note(format!("{task} has no digest: {why}"));
    }
    for line in report::lines(&fields) {
        context.out.say(line);
    }
    outcome
}

fn digested(plan: &Plan) -> Vec<(String, Kept)> {
    let digest = |task: &waypost_core::Task| task.spec.thinking.as_ref()?.digest.clone();
    plan.tasks().filter_map(|(task, _)| Some((task.spec.id.to_string(), digest(task)?))).collect()
}
