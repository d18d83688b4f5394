//! Presents plans to people and programs. Writes to `Output` only, and never changes a plan.

pub mod ascii;
pub mod differences;
pub mod json;
pub mod levels;
pub mod plan;
pub mod table;
pub mod task;
pub mod text;
pub mod tree;
pub mod unified_diff;

use std::borrow::Cow;
use std::sync::Arc;

use waypost_config::Config;
use waypost_core::{Counts, EffectiveStatus, Phase, Plan, Task};
use waypost_service::{HumanExecutors, Service, is_to_be_skipped};
use waypost_store::PlanSummary;
use waypost_text::{Role, StatusSign};

use crate::style::Look;

/// Said of a task about which a merge left a question.
const CLONES_DISAGREE: &str = "clones disagree; `waypost conflicts` lists the questions";
/// Width of a progress bar.
const BAR_CELLS: usize = 20;

/// A plan, and how its tasks are shown.
pub struct Shown<'a> {
    pub plan: &'a Plan,
    /// The plan as it will be once it has started.
    pub started: Cow<'a, Plan>,
    people: HumanExecutors<'a>,
}

impl<'a> Shown<'a> {
    pub fn of(plan: &'a Plan, config: &'a Config) -> Self {
        Self { plan, started: plan.as_started(), people: HumanExecutors::of(config, plan) }
    }

    fn status(&self, task: &Task) -> EffectiveStatus {
        self.started.effective_status(task.spec.id.as_str()).unwrap_or(EffectiveStatus::Blocked)
    }

    /// The sign of a task and the word next to it.
    fn sign(&self, task: &Task) -> (StatusSign, &'static str) {
        // What its author skips is no longer waited for, although it is skipped only when the plan starts.
        if is_to_be_skipped(self.plan, task.spec.id.as_str()) {
            return (StatusSign::Skipped, "skip");
        }
        let sign = self.people.sign(task, self.status(task));
        (sign, sign.label())
    }

    /// The number of tasks that wait for a person to do them.
    fn for_people(&self) -> u32 {
        self.people.awaited().count() as u32
    }
}

/// Returns the configuration if it tells how tasks of a plan are shown; otherwise one without anything. One that cannot be read
/// tells nothing.
pub fn config_for(plan: &Plan, service: &Service) -> Arc<Config> {
    let is_asked =
        plan.state().phase == Phase::Active && plan.claimable().any(|task| task.spec.work.is_some());
    is_asked.then(|| service.config().ok()).flatten().unwrap_or_default()
}

/// The look of a status sign and the word next to it.
pub fn sign_look(sign: StatusSign) -> Look {
    match sign.role() {
        Role::You => Look::Magenta,
        Role::Failed => Look::Red,
        Role::Running | Role::Checking => Look::Cyan,
        Role::Ready => Look::Plain,
        Role::Blocked | Role::Stopped | Role::Skipped => Look::Dim,
        Role::Done => Look::Green,
        Role::Risk => Look::Yellow,
    }
}

/// A plan's phase in words. An active plan that machines may not run is shown as refused by a worker.
pub fn phase_words(phase: Phase, awaits_approval: bool) -> &'static str {
    match (phase, awaits_approval) {
        (Phase::Active, true) => "start refused",
        (Phase::AwaitingApproval, _) => "needs approval",
        (
            Phase::Draft
            | Phase::Active
            | Phase::Paused
            | Phase::Completed
            | Phase::Failed
            | Phase::Cancelled,
            _,
        ) => phase.as_str(),
    }
}

/// The sign of a plan's phase.
pub fn phase_sign(head: &PlanSummary) -> StatusSign {
    match head.phase {
        Phase::Active if head.awaits_approval => StatusSign::Approval,
        phase @ (Phase::Draft
        | Phase::AwaitingApproval
        | Phase::Active
        | Phase::Paused
        | Phase::Completed
        | Phase::Failed
        | Phase::Cancelled) => head.counts.sign(phase),
    }
}

/// `████████░░░░░░░░░░░░ 2/5 done (40%), 1 running, 1 ready`.
pub fn progress(counts: &Counts) -> String {
    progress_of(counts, 0)
}

/// The same, with as many of the ready tasks as wait for a person apart.
fn progress_of(counts: &Counts, for_people: u32) -> String {
    let Counts { total, done, ready, .. } = *counts;
    if total == 0 {
        return "no tasks".to_owned();
    }
    let cells = (u64::from(done) * BAR_CELLS as u64 / u64::from(total)) as usize;
    let percent = u64::from(done) * 100 / u64::from(total);
    let mut text = format!("{}{} ", "█".repeat(cells), "░".repeat(BAR_CELLS - cells));
    text.push_str(&format!("{done}/{total} done ({percent}%)"));
    if for_people > 0 {
        text.push_str(&format!(", {for_people} for you"));
    }
    for words in counts_beside_done(&Counts { ready: ready.saturating_sub(for_people), ..*counts }) {
        text.push_str(&format!(", {words}"));
    }
    text
}

/// The counts of all statuses except done.
pub fn counts_beside_done(counts: &Counts) -> impl Iterator<Item = String> {
    let Counts {
        ready,
        blocked,
        reported,
        asking,
        held,
        disputed,
        queued,
        running,
        failed,
        skipped,
        cancelled,
        ..
    } = *counts;
    let others = [
        (failed, "failed"),
        (skipped, "skipped"),
        (cancelled, "cancelled"),
        (running, "running"),
        (queued, "queued"),
        (ready, "ready"),
        (reported, "reported"),
        (asking, "asking"),
        (held, "held"),
        (disputed, "disputed"),
        (blocked, "blocked"),
    ];
    others.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"))
}
