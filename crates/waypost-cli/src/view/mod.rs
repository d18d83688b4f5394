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

use waypost_core::{Counts, Phase};
use waypost_store::PlanSummary;
use waypost_text::{Role, StatusSign};

use crate::style::Look;

/// Said of a task about which a merge left a question.
const CLONES_DISAGREE: &str = "clones disagree; `waypost conflicts` lists the questions";
/// Width of a progress bar.
const BAR_CELLS: usize = 20;

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
    let Counts { total, done, .. } = *counts;
    if total == 0 {
        return "no tasks".to_owned();
    }
    let cells = (u64::from(done) * BAR_CELLS as u64 / u64::from(total)) as usize;
    let percent = u64::from(done) * 100 / u64::from(total);
    let mut text = format!("{}{} ", "█".repeat(cells), "░".repeat(BAR_CELLS - cells));
    text.push_str(&format!("{done}/{total} done ({percent}%)"));
    for words in counts_beside_done(counts) {
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
