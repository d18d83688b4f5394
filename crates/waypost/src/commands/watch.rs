//! `waypost watch`: follows the progress of running plans. Runs nothing and writes nothing.

use std::sync::Arc;

use clap::Args;
use waypost_core::Plan;
use waypost_run::{Observer, Summary};

use super::run::progress::{self, Scope};
use super::run::{Signals, failed_run, listen, summary};
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::view::text;

const EXAMPLES: &str = "\
For one plan, exits when the plan ends: code 0 if it completed, 1 otherwise. \
Without a plan, follows all active plans until Ctrl-C.

Examples:
  waypost watch kq3
  waypost watch
  waypost watch kq3 --json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Watch {
    /// Plan id or prefix [default: all active plans]
    plan: Option<String>,
    /// Keep following after the plan has ended
    #[arg(long, requires = "plan")]
    forever: bool,
}

impl Watch {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        if context.store_location()?.is_absent() {
            return Err(Failure::not_found(
                "there is no store here yet",
                "create one with `waypost submit FILE`, or use `waypost -C DIR watch`",
            ));
        }
        let config = context.load_config(&context.folders()?, None)?;
        let plans = context.plans()?;
        let only = self.plan.as_deref().map(|plan| context.service(&plans).resolve_plan(plan)).transpose()?;
        let mut observer = Observer::new(Arc::clone(&plans), only.clone()).map_err(failed_run)?;
        let heard = listen(observer.controller(), Signals::CountAll)?;
        let scope = match &only {
            None => {
                context.out.say("watching all active plans; Ctrl-C stops it");
                Scope::Many
            }
            Some(id) => {
                let found = context.found(Arc::clone(&plans), id.clone());
                let total = found.view(context, |plan, _| plan.counts().total as usize)?;
                context
                    .out
                    .say(format!("watching plan {id} ({}); Ctrl-C stops it", text::count(total, "task")));
                if self.forever { Scope::Staying(id.clone()) } else { Scope::One(id.clone()) }
            }
        };
        let mut watcher = progress::watcher(context, scope, &config);
        let forever = self.forever;
        let over = move |plan: &Plan| !forever && plan.state().phase.is_finished();
        observer.observe(watcher.as_mut(), over).map_err(failed_run)?;
        drop(watcher);
        let Some(id) = only.filter(|_| !heard.anything()) else { return Ok(()) };
        plans.view(&id, |plan, _| summary::print(context, plan, &Summary::of_others()))?
    }
}
