//! The models of the configuration for the dashboard: they write plans as `waypost plan` does, and their journals tell what they have cost.

use std::sync::Arc;

use serde_json::Value;
use waypost_core::PlanId;
use waypost_http::{ModelFailure, Models, PlanJob, PlanWish};
use waypost_llm::{CallEvent, Progress};
use waypost_planner::ModelRequest;
use waypost_planner::generate::TASKS_ASKED_MAX;
use waypost_planner::planning::{NoDraft, PlanningGoal, PlanningRequest};
use waypost_store::PlanStore;

use crate::commands::cost;
use crate::commands::plan::generate::{Generation, Saving};
use crate::planning::{ModelOptions, PlanningSession};
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::options::within;

/// The models of this server's workspace.
pub(super) struct ServerModels {
    context: Context,
    plans: Arc<PlanStore>,
}

impl ServerModels {
    pub(super) fn new(context: &Context, plans: &Arc<PlanStore>) -> Self {
        Self { context: context.for_background(), plans: Arc::clone(plans) }
    }

    fn session(&self) -> Outcome<PlanningSession> {
        PlanningSession::with(&self.context, Arc::clone(&self.plans))
    }

    /// Prepares a request. Refusals come before any call.
    fn prepared(&self, wish: &PlanWish, context: &mut Context) -> Outcome<Generation> {
        let planning = self.session()?;
        let asked = ModelOptions::default();
        let chosen = planning.choose(&asked)?;
        let tasks_max = wish.tasks_max.unwrap_or(planning.config.planner.tasks_max as usize);
        within("the maximum number of tasks", tasks_max, 2..=TASKS_ASKED_MAX)?;
        let want = PlanningGoal::Plan {
            goal: wish.goal.clone(),
            context: Vec::new(),
            map: String::new(),
            constraints: wish.constraints.clone(),
            tasks_max,
            decompose: false,
            prose: false,
        };
        let order =
            PlanningRequest::new(planning.service.reserve_id()?, want, planning.extent(), asked.model());
        let journal = planning.journal(&order.plan)?;
        let order = planning.begin(context, order, &journal, Vec::new())?;
        Ok(Generation { planning, order, journal, chosen, asked, saving: Saving::Plan { edit: false } })
    }

    fn written(&self, wish: &PlanWish, job: &PlanJob) -> Outcome<Result<PlanId, ModelFailure>> {
        let mut context = self.context.for_background();
        let mut generation = self.prepared(wish, &mut context)?;
        let (halt, stop) = (generation.planning.halt.clone(), generation.planning.stop.clone());
        job.on_stop(move || {
            halt.cancel();
            stop.now();
        });
        let drafted = generation.draft(&JobProgress(job), |words| job.say(&format!("again: {words}")))?;
        let drafted = match drafted {
            Ok(drafted) => drafted,
            Err(no) => {
                generation.order.close();
                generation.planning.keep(&generation.order)?;
                return Ok(Err(no_draft(no)));
            }
        };
        job.set_now("saving the draft");
        generation.store(&context, &drafted)?;
        generation.order.close();
        generation.planning.keep(&generation.order)?;
        Ok(Ok(generation.order.plan))
    }
}

impl Models for ServerModels {
    fn planner(&self) -> Result<String, ModelFailure> {
        let chosen = self.session().and_then(|planning| planning.choose(&ModelOptions::default()));
        chosen.map(|chosen| chosen.name().to_owned()).map_err(failed)
    }

    fn write_plan(&self, wish: &PlanWish, job: &PlanJob) -> Result<PlanId, ModelFailure> {
        self.written(wish, job).map_err(failed)?
    }

    fn spent(&self, plan: Option<&PlanId>) -> Result<Value, ModelFailure> {
        let folders = self.context.folders().map_err(failed)?;
        match plan {
            Some(plan) => cost::plan_json(&folders, plan),
            None => cost::all_json(&folders),
        }
        .map_err(failed)
    }
}

fn failed(failure: Failure) -> ModelFailure {
    ModelFailure { message: failure.message, hint: failure.hint, details: failure.details }
}

/// Says why there is no plan, to somebody who has a page and no command line.
fn no_draft(no: NoDraft) -> ModelFailure {
    let (message, hint, details) = match no {
        NoDraft::GaveUp(gave_up) => {
            let hint = match gave_up.broke_off {
                true => "ask for fewer tasks, or raise `max_tokens` of the model in the configuration",
                false => "rephrase the goal, or allow more tasks",
            };
            ("the model returned no usable plan".to_owned(), hint.to_owned(), gave_up.problems)
        }
        NoDraft::Bound(broken) => {
            (broken.to_string(), "raise the limit in the configuration".to_owned(), Vec::new())
        }
        NoDraft::Trouble(error) => (error.to_string(), error.hint(), Vec::new()),
        NoDraft::Halted => ("stopped before there was a plan".to_owned(), String::new(), Vec::new()),
    };
    ModelFailure { message, hint, details }
}

/// Tells a job what happens.
struct JobProgress<'a>(&'a PlanJob);

impl Progress for JobProgress<'_> {
    fn on_event(&self, _: &ModelRequest, moment: &CallEvent<'_>) {
        match moment {
            CallEvent::Asked { model, attempt: 1 } => self.0.set_now(&format!("asking {model}")),
            CallEvent::Asked { model, attempt } => self.0.set_now(&format!("asking {model}, try {attempt}")),
            CallEvent::Received { tokens, .. } => self.0.set_now(&format!("{tokens} tokens received")),
            CallEvent::Failed { why, .. } => self.0.say(&format!("failed: {why}")),
            CallEvent::Waits { milliseconds, why, .. } => {
                self.0.say(&format!("{why}; again in {} s", milliseconds.div_ceil(1000)));
            }
            CallEvent::TurnedDown { model, to, .. } => {
                self.0.say(&format!("{model} does not support schemas; using {to} from now on"));
            }
            CallEvent::FellBack { from, to, why } => {
                self.0.say(&format!("using {to} instead of {from}: {why}"));
            }
            CallEvent::Answered { reply } => {
                self.0.say(&format!("{} answered with {} tokens", reply.from, reply.answer.tokens()));
            }
        }
    }
}
