//! `waypost doctor`: does every plan follow from its history, and do the tables beside it agree?

use clap::Args;
use serde_json::json;

use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::view::text;

// Whether to put right what can be.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Put right what can be rebuilt from the history
    #[arg(long)]
    repair: bool,
}

impl Doctor {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let place = context.place()?;
        if place.is_absent() {
            if context.out.json {
                return context.out.value(&json!({ "store": place.shown(), "findings": [] }));
            }
            context.out.say(format!("there is no store at {} yet", place.shown()));
            return Ok(());
        }
        let plans = context.plans()?;
        let findings = plans.doctor(self.repair)?;
        let open = findings.iter().filter(|finding| !finding.repaired).count();
        if context.out.json {
            context.out.value(&json!({ "store": place.shown(), "findings": findings }))?;
        } else {
            for finding in &findings {
                let plan = finding.plan.as_ref().map(|plan| format!("plan {plan}: ")).unwrap_or_default();
                let repaired = if finding.repaired { " (put right)" } else { "" };
                context.out.line(format!("{plan}{}{repaired}", finding.what));
            }
        }
        if open > 0 {
            let hint = if self.repair {
                "keep a copy of the store as it is, and go back to a backup"
            } else {
                "`waypost doctor --repair` rebuilds what follows from the history"
            };
            return Err(Failure::failed(format!("{} not as it should be", text::count(open, "thing")), hint));
        }
        if findings.is_empty() {
            context.out.say(format!("{} is sound", place.shown()));
        }
        Ok(())
    }
}
