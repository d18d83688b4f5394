//! `waypost events`: what happened in all plans, in the order in which it was written; with --follow, as it happens.

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use waypost_core::PlanId;
use waypost_store::{Entry, LogFilter, Plans};

use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::view::{events, text};

/// Versions that are read at a time, and shown where nobody says how many.
const VERSIONS_PAGE: usize = 100;
/// Versions that one answer holds at the most.
const VERSIONS_MAX: usize = 10_000;
/// How long one wait for the next version lasts at the most.
const FOLLOW_WAIT: Duration = Duration::from_secs(60);

const EXAMPLES: &str = "\
Each line has the number of a version in the log of the whole store; numbers have no gaps.

Examples:
  waypost events --after 120
  waypost events --plan kq3 --follow
  waypost events --follow --json";

// Which.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Events {
    /// Go on as it happens, until interrupted
    #[arg(short, long)]
    follow: bool,
    /// Only after this number (with --follow: otherwise only what is new)
    #[arg(long, value_name = "N")]
    after: Option<u64>,
    /// Only of this plan
    #[arg(long)]
    plan: Option<String>,
    /// At most so many, without --follow
    #[arg(long, value_name = "N", default_value_t = VERSIONS_PAGE)]
    limit: usize,
}

impl Events {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        if self.limit == 0 || self.limit > VERSIONS_MAX {
            let hint = format!("write a number from 1 to {VERSIONS_MAX}");
            return Err(Failure::usage(format!("--limit {} is out of bounds", self.limit), hint));
        }
        let plans = context.plans()?;
        let plan: Option<PlanId> = self.plan.as_deref().map(|plan| plans.resolve(plan)).transpose()?;
        let filter = LogFilter { plan, actor: None };
        if self.follow {
            let after = match self.after {
                Some(after) => after,
                None => plans.latest()?,
            };
            return follow(context, &plans, &filter, after);
        }
        let after = self.after.unwrap_or(0);
        let entries = plans.log(after, &filter, self.limit)?;
        for entry in &entries {
            let line = line(context.out.json, entry);
            context.out.line(line);
        }
        if entries.len() == self.limit
            && let Some(last) = entries.last()
        {
            context.out.say(format!("more: waypost events --after {}", last.sequence));
        }
        Ok(())
    }
}

fn follow(context: &Context, plans: &Plans, filter: &LogFilter, mut after: u64) -> Outcome {
    // Begun before the first look, so that nothing falls between the two.
    let mut watch = plans.watch()?;
    loop {
        let latest = plans.latest()?;
        let entries = plans.log(after, filter, VERSIONS_PAGE)?;
        let mut stdout = io::stdout().lock();
        for entry in &entries {
            after = entry.sequence;
            if writeln!(stdout, "{}", line(context.out.json, entry)).is_err() {
                // Whoever read has gone away.
                return Ok(());
            }
        }
        if stdout.flush().is_err() {
            return Ok(());
        }
        drop(stdout);
        if entries.len() < VERSIONS_PAGE {
            // What was left out is not looked at again.
            after = after.max(latest);
            watch.wait(FOLLOW_WAIT)?;
        }
    }
}

fn line(for_programs: bool, entry: &Entry) -> String {
    if for_programs {
        return json!(entry).to_string();
    }
    let what = text::one_line(&events::words(&entry.events));
    format!(
        "{} {} {} v{} {}: {what}",
        entry.sequence,
        text::moment(entry.at),
        entry.plan,
        entry.version,
        entry.actor
    )
}
