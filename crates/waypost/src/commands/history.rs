//! `waypost history`: lists a plan's versions, newest first, with author, time and changes.

use clap::Args;
use serde_json::{Value, json};
use waypost_service::summary;
use waypost_store::{HISTORY_PAGE, VersionRecord};

use waypost_cli::context::Context;
use waypost_cli::error::Outcome;
use waypost_cli::options::within;
use waypost_cli::runner::command;
use waypost_cli::style::Look;
use waypost_cli::view::table::{self, Cell};
use waypost_cli::view::text;

/// Versions on a page by default.
const VERSIONS_DEFAULT: usize = 20;
/// Maximum number of versions on a page.
const VERSIONS_MAX: usize = 20 * HISTORY_PAGE;

#[derive(Debug, Args)]
pub(crate) struct History {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Maximum number of versions
    #[arg(long, value_name = "N", default_value_t = VERSIONS_DEFAULT)]
    limit: usize,
    /// Only versions before this one
    #[arg(long, value_name = "VERSION")]
    before: Option<u64>,
    /// Include every event (with --json)
    #[arg(long)]
    events: bool,
}

impl History {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        within("--limit", self.limit, 1..=VERSIONS_MAX)?;
        let found = context.find(&self.plan)?;
        let (current, damage) = found.plans.readable_versions(&found.id)?;
        if let Some(damage) = damage {
            context.out.note(damage);
        }
        let last = self.before.map_or(current, |before| before.saturating_sub(1).min(current));
        let after = last.saturating_sub(self.limit as u64);
        let pruned = found.plans.pruned(&found.id)?;
        let mut entries = found.plans.history(&found.id, after, (last - after) as usize)?;
        entries.reverse();
        if context.out.json {
            let versions: Vec<Value> = entries.iter().map(|entry| entry_json(entry, self.events)).collect();
            let more = (after > 0).then_some(after + 1);
            let mut answer =
                json!({ "id": found.id, "version": current, "versions": versions, "before": more });
            if let Some(pruned) = &pruned {
                answer["pruned"] = json!(pruned);
            }
            return context.out.value(&answer);
        }
        let now = text::now();
        let rows: Vec<Vec<Cell>> = entries
            .iter()
            .map(|entry| {
                vec![
                    Cell::plain(format!("v{}", entry.version)),
                    Cell::looking(text::age(Some(entry.at), now), Look::Dim),
                    Cell::plain(text::excerpt(&entry.actor.to_string(), 24)),
                    Cell::plain(describe(entry)),
                ]
            })
            .collect();
        table::print(&mut context.out, &["VER", "AGE", "WHO", "WHAT"], &rows);
        if let Some(pruned) = pruned.filter(|pruned| after < pruned.up_to) {
            context.out.say(pruned.describe());
        }
        if after > 0 {
            let earlier = format!("waypost history {} --before {}", found.id, after + 1);
            context.out.say(format!("earlier: {}", command(&earlier)));
        }
        Ok(())
    }
}

/// Summarizes a version, or notes that its events were pruned or purged.
fn describe(entry: &VersionRecord) -> String {
    entry.forgotten().unwrap_or_else(|| summary(&entry.events))
}

fn entry_json(entry: &VersionRecord, with_events: bool) -> Value {
    let mut value = json!({
        "version": entry.version,
        "at": entry.at,
        "actor": entry.actor,
        "command": entry.command,
        "summary": describe(entry),
    });
    if with_events {
        value["events"] = json!(entry.events);
    }
    value
}
