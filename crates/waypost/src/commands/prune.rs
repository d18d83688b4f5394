//! `waypost prune`: deletes the events of plans that ended long ago; their final state stays.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use clap::Args;
use serde_json::json;
use waypost_core::PlanId;
use waypost_service::Service;
use waypost_store::{HeldBack, Looked, PruneMode, PrunedPlan};

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::options;
use waypost_cli::view::text;

const EXAMPLES: &str = "\
Of plans that ended that long ago, the events of all versions are forgotten, and the logs of their attempts on this \
machine are removed. The plan as it ended stays, as do its place in lists and who wrote which version when. \
What another plan waits for is left alone, and so is what a subscription has not read, for 90 days. \
Only a person can prune. Without --older-than, `retention.older_than` of the configuration counts.

Examples:
  waypost prune --older-than 30d --dry-run
  waypost prune --older-than 30d
  waypost prune --older-than 30d --vacuum";

/// Maximum number of plans named in a report.
const PLANS_NAMED_MAX: usize = 1_000;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Prune {
    /// Minimum age of ended plans, e.g. 90s, 15m, 2h, 30d
    #[arg(long, value_name = "TIME", value_parser = options::seconds)]
    older_than: Option<u32>,
    /// Report what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Also return free space to the file system (SQLite); blocks writers and needs disk space for a copy
    #[arg(long)]
    vacuum: bool,
}

#[derive(Default)]
struct PruneReport {
    pruned: Vec<PrunedPlan>,
    kept: Vec<(PlanId, HeldBack)>,
    plans: usize,
    kept_total: usize,
    versions: u64,
    bytes: u64,
    /// All plans that are pruned, or would be: their logs are removed as well.
    would_go: BTreeSet<PlanId>,
    logs: usize,
    log_bytes: u64,
    won: Option<u64>,
}

impl PruneReport {
    fn note(&mut self, looked: Looked) {
        match looked {
            Looked::Pruned(found) => {
                self.plans += 1;
                self.versions += found.versions;
                self.bytes += found.bytes;
                self.would_go.insert(found.plan.clone());
                if self.pruned.len() < PLANS_NAMED_MAX {
                    self.pruned.push(found);
                }
            }
            Looked::Kept(plan, why) => {
                self.kept_total += 1;
                if self.kept.len() < PLANS_NAMED_MAX {
                    self.kept.push((plan, why));
                }
            }
        }
    }
}

impl Prune {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let by = context.actor()?;
        let folders = context.folders()?;
        let configured = context.load_config(&folders, None)?.retention_seconds;
        let Some(seconds) = self.older_than.map(u64::from).or(configured) else {
            let message = "no minimum age is given";
            return Err(Failure::usage(
                message,
                "use --older-than 30d, or set retention.older_than in the configuration",
            ));
        };
        let plans = context.plans()?;
        let mode = if self.dry_run { PruneMode::DryRun } else { PruneMode::Act };
        let mut found = PruneReport::default();
        let service = context.service(&plans);
        service.prune(&by, seconds, mode, &mut |looked| found.note(looked))?;
        sweep_logs(&service, &folders.logs(), mode, &mut found)?;
        if self.vacuum && mode == PruneMode::Act {
            found.won = Some(service.compact()?);
        }
        if context.out.json {
            return context.out.value(&json!({
                "dry_run": self.dry_run,
                "plans": found.pruned,
                "plans_total": found.plans,
                "versions": found.versions,
                "bytes": found.bytes,
                "held_back": found.kept.iter().map(held_back_json).collect::<Vec<_>>(),
                "held_back_total": found.kept_total,
                "logs": found.logs,
                "log_bytes": found.log_bytes,
                "given_back_bytes": found.won,
            }));
        }
        say(context, &found, self.dry_run);
        Ok(())
    }
}

fn held_back_json((plan, why): &(PlanId, HeldBack)) -> serde_json::Value {
    let mut value = json!(why);
    value["plan"] = plan.as_str().into();
    value
}

fn say(context: &mut Context, found: &PruneReport, dry_run: bool) {
    for plan in &found.pruned {
        let (id, title) = (&plan.plan, text::excerpt(&plan.title, 40));
        let (versions, bytes) = (text::count(plan.versions as usize, "version"), text::byte_size(plan.bytes));
        context
            .out
            .line(format!("{id}  ended {}  {versions}, {bytes}  {title}", plan.ended_at.to_the_second()));
    }
    for (plan, why) in &found.kept {
        context.out.line(match why {
            HeldBack::Awaited { by } => format!("{plan}  kept: plan {by} waits for it"),
            HeldBack::Unread { owner, subscription } => {
                format!("{plan}  kept: {owner} has not read it (subscription {subscription})")
            }
        });
    }
    let (would, were) = if dry_run { ("would be ", "would go") } else { ("", "went") };
    context.out.line(format!(
        "{would}pruned: {}, {} ({}); {} of attempts ({}) {were}",
        text::count(found.plans, "plan"),
        text::count(found.versions as usize, "version"),
        text::byte_size(found.bytes),
        text::count(found.logs, "log"),
        text::byte_size(found.log_bytes),
    ));
    if let Some(won) = found.won {
        context.out.line(format!("{} returned to the file system", text::byte_size(won)));
    }
}

/// Removes the logs of purged plans and of pruned ones, including those pruned from another machine.
fn sweep_logs(service: &Service, logs: &Path, mode: PruneMode, found: &mut PruneReport) -> Outcome {
    let folders = match fs::read_dir(logs) {
        Ok(folders) => folders,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Failure::file(logs, &error)),
    };
    for folder in folders {
        let folder = folder.map_err(|error| Failure::file(logs, &error))?;
        let Some(id) = folder.file_name().to_str().and_then(|name| PlanId::new(name).ok()) else { continue };
        let is_folder = folder.file_type().is_ok_and(|kind| kind.is_dir());
        let goes = found.would_go.contains(&id) || service.is_forgotten(&id)?;
        if !is_folder || !goes {
            continue;
        }
        let path = folder.path();
        let (count, bytes) = size(&path).map_err(|error| Failure::file(&path, &error))?;
        found.logs += count;
        found.log_bytes += bytes;
        if mode == PruneMode::Act {
            fs::remove_dir_all(&path).map_err(|error| Failure::file(&path, &error))?;
        }
    }
    Ok(())
}

/// The number of logs in a folder, and the total bytes of its files.
fn size(folder: &Path) -> io::Result<(usize, u64)> {
    let (mut count, mut bytes) = (0, 0);
    for file in fs::read_dir(folder)? {
        let file = file?;
        let data = file.metadata()?;
        if data.is_file() {
            // The times of a log stand in a file of their own.
            count += usize::from(file.path().extension().is_some_and(|end| end == "log"));
            bytes += data.len();
        }
    }
    Ok((count, bytes))
}
