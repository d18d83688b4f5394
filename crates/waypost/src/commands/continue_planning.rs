//! `waypost plan continue`: resumes unfinished planning in a new process, from the same point.

use clap::Args;
use waypost_planner::planning::{
    PlanningGoal, PlanningRequest, RequestError, RequestProgress, Steps, StopReason,
};

use super::plan::generate::{Generation, Saving};
use super::{decompose, digest};
use crate::planning::{ModelOptions, PlanningLimits, PlanningSession, budget, note_bad, of_order, report};
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};

const EXAMPLES: &str = "\
Continues where the last process stopped; recorded model replies are reused, not paid for again. \
Limits given now replace earlier ones.

Examples:
  waypost plan continue
  waypost plan continue kq3
  waypost plan continue kq3 --budget 200000 --max-depth 6";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Continue {
    /// Plan id or prefix [default: the latest with unfinished planning]
    plan: Option<String>,
    /// Do not open the editor
    #[arg(long)]
    no_edit: bool,
    /// Stop after the first usable model reply
    #[arg(long)]
    step: bool,
    #[command(flatten)]
    asked: ModelOptions,
    #[command(flatten)]
    bounds: PlanningLimits,
}

impl Continue {
    pub(crate) fn run(mut self, context: &mut Context) -> Outcome {
        let planning = PlanningSession::enter(context)?;
        let mut order = self.find(context, &planning)?;
        if order.stand == RequestProgress::Closed
            && matches!(order.want, PlanningGoal::Plan { .. })
            && self.is_made(&planning, &order)?
        {
            return written_before(context, planning, order);
        }
        order.extent = self.bounds.over(planning.held_to(order.extent))?;
        order.stand = RequestProgress::Open;
        order.model = self.asked.model().or(order.model);
        self.asked.model.clone_from(&order.model);
        let steps = if self.step { Steps::One } else { Steps::All };
        let chosen = planning.choose(&self.asked)?;
        let journal = planning.journal(&order.plan)?;
        let mut commands = Vec::new();
        if self.is_made(&planning, &order)? {
            commands = planning.waking(&order.plan)?;
            commands.extend(budget(self.bounds.budget));
        }
        planning.listen(context)?;
        let order = planning.begin(context, order, &journal, commands)?;
        context.out.say(format!("continuing plan {}", order.plan));
        match &order.want {
            PlanningGoal::Plan { .. } => {
                let saving = Saving::Plan { edit: !self.no_edit };
                Generation { planning, order, journal, chosen, asked: self.asked, saving }.run(context)
            }
            PlanningGoal::Decompose { .. } => {
                decompose::run_and_tell(context, planning, (order, journal), (&chosen, &self.asked), steps)
            }
            PlanningGoal::Digest { .. } => {
                digest::run_and_tell(context, planning, (order, journal), (&chosen, &self.asked))
            }
        }
    }

    /// Finds the request to resume.
    fn find(&self, context: &mut Context, planning: &PlanningSession) -> Outcome<PlanningRequest> {
        let (orders, bad) = planning.orders.all().map_err(|error| of_order(&error))?;
        let Some(word) = &self.plan else {
            let latest = |stand: RequestProgress| {
                orders.iter().find(|order| order.stand == stand && is_current(planning, order)).cloned()
            };
            // A request that reached a limit waits until someone raises it, so open requests come first.
            let found = latest(RequestProgress::Open).or_else(|| latest(RequestProgress::Bounded));
            return match (found, bad.first()) {
                (Some(order), _) => {
                    note_bad(context, &bad);
                    Ok(order)
                }
                // The unreadable request may be the one that was meant.
                (None, Some(error)) => Err(of_order(error)),
                (None, None) => Err(Failure::not_found(
                    "no planning is unfinished",
                    "name the plan; `waypost list` shows the plans",
                )),
            };
        };
        // A plan that a model has not written yet is not in the store.
        let unmade = orders.iter().find(|order| order.plan.as_str().starts_with(word.as_str()));
        let id = match (context.find(word), unmade) {
            (Ok(found), _) => found.id,
            (Err(_), Some(order)) => order.plan.clone(),
            (Err(failure), None) => {
                let is_meant = |error: &&RequestError| {
                    error.path().file_name().is_some_and(|name| name.to_string_lossy().starts_with(word))
                };
                return Err(bad.iter().find(is_meant).map_or(failure, of_order));
            }
        };
        let known = planning.orders.find(&id).map_err(|error| of_order(&error))?;
        // Naming a plan without any planning starts its decomposition.
        Ok(known.unwrap_or_else(|| {
            PlanningRequest::new(id, PlanningGoal::Decompose { task: None }, planning.extent(), None)
        }))
    }

    fn is_made(&self, planning: &PlanningSession, order: &PlanningRequest) -> Outcome<bool> {
        match planning.plans.with_plan(&order.plan, |_| ()) {
            Ok(()) => Ok(true),
            Err(waypost_store::WriteError::NotFound(_))
                if matches!(order.want, PlanningGoal::Plan { .. }) =>
            {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Reports that a model wrote the plan earlier and that nothing was done now.
fn written_before(context: &mut Context, planning: PlanningSession, order: PlanningRequest) -> Outcome {
    let found = planning.found(order.plan);
    if found.read(|plan| plan.state().archived)? {
        return report::outcome(&found.id, &StopReason::Gone).map_or(Ok(()), Err);
    }
    if context.out.json {
        let mut fields = serde_json::Map::new();
        found.read(|plan| report::plan_fields(plan, &mut fields))?;
        fields.insert("ending".to_owned(), "over".into());
        fields.insert("asked".to_owned(), 0.into());
        return context.out.value(&fields);
    }
    let id = &found.id;
    context.out.say(format!(
        "planning of {id} was written before and is finished; `waypost plan decompose {id}` breaks its tasks down"
    ));
    Ok(())
}

/// Whether a request belongs to a plan that is not archived, or to one that does not exist yet.
fn is_current(planning: &PlanningSession, order: &PlanningRequest) -> bool {
    match planning.plans.with_plan(&order.plan, |plan| !plan.state().archived) {
        Ok(current) => current,
        Err(_) => matches!(order.want, PlanningGoal::Plan { .. }),
    }
}
