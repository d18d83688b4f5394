//! `waypost events`: lists the events of all plans in the order of the log; with `--follow`, as they happen.

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use waypost_core::{PlanId, TaskId};
use waypost_service::{consequence_summary, summary};
use waypost_store::{
    Cursor, EventFilter, EventSource, LogEvent, LogFilter, LogPage, PlanStore, VersionRecord,
};

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::options::within;
use waypost_cli::output::json_line;
use waypost_cli::runner::command;
use waypost_cli::view::text;

/// Versions read at a time, and the default limit.
const VERSIONS_PAGE: usize = 100;
/// Maximum number of results.
const VERSIONS_MAX: usize = 10_000;
/// Maximum duration of one wait for the next version.
const FOLLOW_WAIT: Duration = Duration::from_secs(60);

const EXAMPLES: &str = "\
Each line has the number of a version in the log of the whole store; numbers have no gaps. \
With --kind, --task or --agent each line is one event, including derived events (a task that became \
unblocked or was skipped because of another, a plan that ended); docs/events.md lists them all.

Examples:
  waypost events --cursor 120
  waypost events --plan kq3 --follow
  waypost events --follow --json
  waypost events --follow --kind task_unblocked --agent planner";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Events {
    /// Follow new events until interrupted
    #[arg(short, long)]
    follow: bool,
    /// Continue after this event number (with --follow, default: only new events)
    #[arg(long, alias = "after", value_name = "N")]
    cursor: Option<Cursor>,
    /// Only events of this plan
    #[arg(long)]
    plan: Option<String>,
    /// Only events of this kind, e.g. task_done; repeatable
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Only events of this task; repeatable
    #[arg(long, value_name = "TASK")]
    task: Vec<TaskId>,
    /// Only events of this agent's plans or by this actor (NAME, person:NAME, worker:NAME); repeatable
    #[arg(long, value_name = "AGENT")]
    agent: Vec<String>,
    /// Maximum number of results, without --follow
    #[arg(long, value_name = "N", default_value_t = VERSIONS_PAGE)]
    limit: usize,
}

impl Events {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        within("--limit", self.limit, 1..=VERSIONS_MAX)?;
        let plans = context.plans()?;
        let plan: Option<PlanId> =
            self.plan.as_deref().map(|plan| context.service(&plans).resolve_plan(plan)).transpose()?;
        let chosen = !(self.kind.is_empty() && self.task.is_empty() && self.agent.is_empty());
        if chosen {
            let plans_wanted = plan.into_iter().collect();
            let filter =
                EventFilter { agents: self.agent, kinds: self.kind, plans: plans_wanted, tasks: self.task };
            filter.check().map_err(|error| Failure::usage(error.to_string(), error.hint()))?;
            let limit = (!self.follow).then_some(self.limit);
            return single(context, &plans, &filter, self.cursor, limit);
        }
        let filter = LogFilter { plan, actor: None };
        if self.follow {
            let after = match self.cursor {
                Some(after) => after.sequence,
                None => plans.latest()?,
            };
            return follow(context, &plans, &filter, after);
        }
        let after = self.cursor.unwrap_or_default().sequence;
        let LogPage { versions: entries, unreadable } = plans.log(after, &filter, self.limit)?;
        note(context, unreadable.from, &unreadable.warnings, "left out");
        for entry in &entries {
            let line = line(context.out.json, entry);
            context.out.line(line);
        }
        if entries.len() == self.limit
            && let Some(last) = entries.last()
        {
            let more = format!("waypost events --cursor {}", last.sequence);
            context.out.say(format!("more: {}", command(&more)));
        }
        Ok(())
    }
}

/// Notes the damage to files of the log, and what becomes of the versions that it hides.
fn note(context: &Context, from: Option<u64>, warnings: &[String], become_of: &str) {
    warnings.iter().for_each(|warning| context.out.note_now(warning));
    if let Some(from) = from {
        context.out.note_now(format!(
            "number {from} of the log cannot be read, and perhaps later ones: {become_of}"
        ));
    }
}

/// What `--follow` does about versions that a damaged file hides.
const AFTER_REPAIR: &str =
    "it and all later ones follow when `waypost doctor --repair` has repaired the file";

fn follow(context: &Context, plans: &PlanStore, filter: &LogFilter, mut after: u64) -> Outcome {
    // The watch starts before the first read, so that no version is missed in between.
    let mut watch = plans.watch()?;
    let mut noted = Vec::new();
    loop {
        let mut latest = plans.latest()?;
        let LogPage { versions: mut entries, unreadable } = plans.log(after, filter, VERSIONS_PAGE)?;
        if noted != unreadable.warnings {
            note(context, unreadable.from, &unreadable.warnings, AFTER_REPAIR);
            noted = unreadable.warnings;
        }
        if let Some(hidden) = unreadable.from {
            latest = latest.min(hidden - 1);
            entries.retain(|entry| entry.sequence < hidden);
        }
        after = entries.last().map_or(after, |last| last.sequence);
        if print(entries.iter().map(|entry| line(context.out.json, entry))).is_err() {
            // The reader closed the pipe.
            return Ok(());
        }
        if entries.len() < VERSIONS_PAGE {
            // Versions that the filter excludes are not read again.
            after = after.max(latest);
            watch.wait(FOLLOW_WAIT)?;
        }
    }
}

/// Prints lines immediately, while the command runs.
fn print(lines: impl Iterator<Item = String>) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for line in lines {
        writeln!(stdout, "{line}")?;
    }
    stdout.flush()
}

fn line(for_programs: bool, entry: &VersionRecord) -> String {
    if for_programs {
        return json_line(entry);
    }
    let what = match entry.is_forgotten() {
        true if entry.command == "purged" => "(its plan was purged)".to_owned(),
        true if entry.command == "lost" => "(its events were lost)".to_owned(),
        true => format!("{} (its events were pruned)", entry.command),
        false => text::one_line(&summary(&entry.events)).into_owned(),
    };
    format!(
        "{} {} {} v{} {}: {what}",
        entry.sequence,
        entry.at.to_the_second(),
        entry.plan,
        entry.version,
        entry.actor
    )
}

/// Prints single events: up to `limit`, or without one as they happen.
fn single(
    context: &mut Context,
    plans: &PlanStore,
    filter: &EventFilter,
    after: Option<Cursor>,
    limit: Option<usize>,
) -> Outcome {
    let (mut left, mut forgotten, mut lost) = (limit, 0, 0);
    let mut noted = Vec::new();
    let mut cursor = match after {
        Some(after) => after,
        None if limit.is_some() => Cursor::default(),
        None => Cursor::after(plans.latest()?),
    };
    loop {
        let page = match left {
            Some(left) => plans.intact_events(cursor, filter, left)?,
            None => plans.wait_for_events(cursor, filter, VERSIONS_PAGE, FOLLOW_WAIT)?,
        };
        cursor = page.cursor;
        forgotten += page.forgotten;
        lost += page.lost;
        if noted != page.warnings {
            let become_of = if left.is_some() { "left out" } else { AFTER_REPAIR };
            note(context, page.unreadable_from, &page.warnings, become_of);
            noted = page.warnings;
        }
        if print(page.events.iter().map(|event| event_line(context.out.json, event))).is_err() {
            // The reader closed the pipe.
            return Ok(());
        }
        let Some(left) = &mut left else { continue };
        *left -= page.events.len();
        if *left == 0 || !page.more {
            if forgotten > 0 {
                let versions = text::count(forgotten as usize, "version");
                context.out.say(format!("{versions} without events: pruned, or of purged plans"));
            }
            if lost > 0 {
                let versions = text::count(lost as usize, "version");
                context.out.say(format!("{versions} without events: lost when a file was damaged"));
            }
            if page.more {
                let more = format!("waypost events --cursor {cursor}");
                context.out.say(format!("more: {}", command(&more)));
            }
            return Ok(());
        }
    }
}

fn event_line(for_programs: bool, event: &LogEvent) -> String {
    if for_programs {
        return json_line(event);
    }
    let what = match &event.event {
        EventSource::Decided(event) => summary(std::slice::from_ref(event)),
        EventSource::Followed(consequence) => consequence_summary(consequence),
    };
    let (sequence, at, plan, version) =
        (event.sequence, event.at.to_the_second(), &event.plan, event.version);
    let (actor, kind, what) = (&event.actor, event.kind, text::one_line(&what));
    format!("{sequence} {at} {plan} v{version} {actor} {kind}: {what}")
}
