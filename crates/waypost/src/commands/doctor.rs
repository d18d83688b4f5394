//! `waypost doctor`: checks that every plan follows from its history, that derived tables agree with it, and that the
//! configured Slurm cluster responds.

use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use waypost_core::Timestamp;
use waypost_exec::look_at_slurm;
use waypost_service::{SharingCheck, StoreHealth};
use waypost_store::{PlanStore, is_alive};

use waypost_cli::context::Context;
use waypost_cli::damage;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::view::text;

/// Clock difference in seconds from which it is reported.
const CLOCK_SECONDS_TOLD: i64 = 2;

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Rebuild what can be derived from the history
    #[arg(long)]
    repair: bool,
}

impl Doctor {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let folders = context.folders()?;
        // An error in the configuration is reported after the store's findings, which do not depend on it.
        let config = context.load_config(&folders, None);
        let cluster = config.as_ref().map(|config| look_at_slurm(config, &folders.execution_env()));
        let cluster = cluster.unwrap_or_default();
        let place = context.store_location()?;
        if place.is_absent() {
            if context.out.json {
                let found: Vec<Value> = cluster.iter().map(of_cluster).collect();
                context.out.value(&json!({ "store": place.shown(), "findings": found }))?;
            } else {
                context.out.say(format!("there is no store at {} yet", place.shown()));
            }
            config?;
            return tell_of_cluster(context, &cluster);
        }
        if place.is_cut_off() {
            // Opening it would turn it into a new store, in which nothing is wrong.
            let what = format!("{} has 0 bytes, so that whatever it held is lost", place.shown());
            if context.out.json {
                let finding = json!({ "what": what, "repaired": false });
                context.out.value(&json!({ "store": place.shown(), "findings": [finding] }))?;
            }
            return Err(Failure::failed(
                what,
                "restore a backup, or delete the file if it never held a plan",
            ));
        }
        let plans = context.plans()?;
        // The store's own display form: the location that opened it may contain a password.
        let location = plans.store().location();
        let health = context.service(&plans).doctor(self.repair)?;
        let StoreHealth { findings, about, expired, silent, now } = health;
        let clock = now.map_or(0, |now| (text::now().as_micros() - now.as_micros()) / 1_000_000);
        let SharingCheck { findings: shared, notes } = check_sharing(context, &plans, self.repair)?;
        let open = findings.iter().filter(|finding| !finding.repaired).count() + shared.len();
        if context.out.json {
            let found = findings.iter().map(|finding| json!(finding));
            let of_shared = |what: &String| json!({ "what": what, "repaired": false });
            let found = found.chain(shared.iter().map(of_shared));
            let found: Vec<Value> = found.chain(cluster.iter().map(of_cluster)).collect();
            let about: serde_json::Map<_, _> =
                about.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
            context.out.value(&json!({
                "store": location,
                "findings": found,
                "notes": notes,
                "about": about,
                "leases_overdue": expired,
                "workers_unheard": silent.iter().map(|(worker, state)| json!({
                    "name": worker.name, "state": state.as_str(), "seen": worker.seen,
                })).collect::<Vec<Value>>(),
                "clock_ahead_seconds": clock,
            }))?;
        } else {
            for (name, value) in about {
                context.out.say(format!("{name}: {value}"));
            }
            for lease in &expired {
                let until = lease.until.map(Timestamp::to_the_second).unwrap_or_default();
                context.out.say(format!(
                    "{} of plan {}: the lease of {} expired at {until}; a worker of its queue starts it again",
                    lease.task, lease.plan, lease.worker
                ));
            }
            for (worker, state) in &silent {
                let seen = worker.seen.to_the_second();
                let advice = match is_alive(&worker.name) {
                    true => "its process lives on this machine: it hangs, or its clock is another",
                    false => "check its machine, or start another",
                };
                let (name, state) = (&worker.name, state.as_str());
                context.out.say(format!("worker {name} is {state}: last heartbeat at {seen}; {advice}"));
            }
            if clock.abs() >= CLOCK_SECONDS_TOLD {
                context.out.say(format!(
                    "the clock of this machine is {clock} s ahead of the store's; the store's decides"
                ));
            }
            notes.iter().for_each(|note| context.out.say(note));
            for finding in &findings {
                let plan = finding.plan.as_ref().map(|plan| format!("plan {plan}: ")).unwrap_or_default();
                let repaired = if finding.repaired { " (repaired)" } else { "" };
                let mut lines = finding.what.lines();
                context.out.line(format!("{plan}{}{repaired}", lines.next().unwrap_or_default()));
                lines.for_each(|line| context.out.line(format!("  {line}")));
            }
            shared.iter().for_each(|finding| context.out.line(finding));
        }
        let was_merged = findings.iter().any(|finding| damage::is_of_version_control(&finding.what));
        if was_merged && open == 0 {
            context.out.say(damage::SHARE_INSTEAD);
        }
        if open > 0 {
            let can_help =
                !shared.is_empty() || findings.iter().any(|finding| finding.repairable && !finding.repaired);
            let hint = if can_help && !self.repair {
                "`waypost doctor --repair` repairs what it can from what is intact"
            } else {
                "no repair restores it: keep a copy of the store, and restore a backup"
            };
            let hint = match was_merged {
                true => format!("{hint}; {}", damage::SHARE_INSTEAD),
                false => hint.to_owned(),
            };
            return Err(Failure::failed(format!("{} inconsistent", text::count(open, "thing")), hint));
        }
        if findings.is_empty() {
            context.out.say(format!("{location} is sound"));
        }
        config?;
        tell_of_cluster(context, &cluster)
    }
}

/// Returns what is wrong with plans that are shared through git.
fn check_sharing(context: &Context, plans: &Arc<PlanStore>, repair: bool) -> Outcome<SharingCheck> {
    let service = context.service(plans);
    if service.sharing_status()?.tag.is_empty() {
        return Ok(SharingCheck::default());
    }
    let shared = match context.shared_branch() {
        Ok(found) => found.shared,
        Err(failure) => {
            let finding = format!("the branch of shared plans cannot be read: {}", failure.message);
            return Ok(SharingCheck { findings: vec![finding], notes: Vec::new() });
        }
    };
    if repair {
        service.repair_sharing(&shared)?;
    }
    Ok(service.check_sharing(&shared)?)
}

fn of_cluster((what, hint): &(String, String)) -> Value {
    json!({ "what": what, "hint": hint, "repaired": false })
}

/// Reports the problems of the configured cluster.
fn tell_of_cluster(context: &mut Context, cluster: &[(String, String)]) -> Outcome {
    let Some((_, hint)) = cluster.first() else { return Ok(()) };
    if !context.out.json {
        for (what, _) in cluster {
            context.out.line(what);
        }
    }
    let what = format!("{} of the cluster wrong", text::count(cluster.len(), "thing"));
    Err(Failure::failed(what, hint))
}
