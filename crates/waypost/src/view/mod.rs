//! How plans look to people and programs. Reads plans and prints nothing itself.

pub(crate) mod ascii;
pub(crate) mod differences;
pub(crate) mod graph;
pub(crate) mod json;
pub(crate) mod plan;
pub(crate) mod table;
pub(crate) mod task;
pub(crate) mod text;
pub(crate) mod tree;
pub(crate) mod unified;

use waypost_core::{Counts, Phase, Standing};

use crate::output::Look;

/// Cells of a progress bar.
const BAR_CELLS: usize = 20;

/// The sign that stands before the word for where a task stands.
pub(crate) fn sign(standing: Standing) -> char {
    match standing {
        Standing::Blocked => '◌',
        Standing::Ready => '○',
        Standing::Reported => '◑',
        Standing::Asking => '?',
        Standing::Running => '◐',
        Standing::Done => '✓',
        Standing::Failed => '✗',
        Standing::Skipped => '⊘',
        Standing::Cancelled => '⊗',
    }
}

/// How the word for where a task stands looks.
pub(crate) fn look(standing: Standing) -> Look {
    match standing {
        Standing::Blocked => Look::Dim,
        Standing::Ready => Look::Plain,
        Standing::Reported | Standing::Asking => Look::Yellow,
        Standing::Running => Look::Cyan,
        Standing::Done => Look::Green,
        Standing::Failed => Look::Red,
        Standing::Skipped | Standing::Cancelled => Look::Yellow,
    }
}

/// The words for a plan's phase; a draft that machines may not run yet says so.
pub(crate) fn phase_words(phase: Phase, awaits_approval: bool) -> &'static str {
    match (phase, awaits_approval) {
        (Phase::Draft, true) => "needs approval",
        (Phase::AwaitingApproval, _) => "awaiting approval",
        (
            Phase::Draft
            | Phase::Active
            | Phase::Paused
            | Phase::Completed
            | Phase::Failed
            | Phase::Cancelled,
            _,
        ) => phase.word(),
    }
}

/// The sign that stands before them.
pub(crate) fn phase_sign(phase: Phase, awaits_approval: bool) -> char {
    match (phase, awaits_approval) {
        (Phase::Draft, false) => '○',
        (Phase::Draft, true) | (Phase::AwaitingApproval, _) => '?',
        (Phase::Active, _) => '◐',
        (Phase::Paused, _) => '‖',
        (Phase::Completed, _) => '✓',
        (Phase::Failed, _) => '✗',
        (Phase::Cancelled, _) => '⊗',
    }
}

/// How they look.
pub(crate) fn phase_look(phase: Phase, awaits_approval: bool) -> Look {
    match (phase, awaits_approval) {
        (Phase::Draft, false) => Look::Plain,
        (Phase::Draft, true) | (Phase::AwaitingApproval | Phase::Paused, _) => Look::Yellow,
        (Phase::Active, _) => Look::Cyan,
        (Phase::Completed, _) => Look::Green,
        (Phase::Failed | Phase::Cancelled, _) => Look::Red,
    }
}

/// `████████░░░░░░░░░░░░ 2/5 done (40%), 1 running, 1 ready`.
pub(crate) fn progress(counts: &Counts) -> String {
    let Counts { total, ready, blocked, running, done, failed, skipped, cancelled } = *counts;
    if total == 0 {
        return "no tasks".to_owned();
    }
    // What was passed over is settled, so the bar counts it; the words tell what is really done.
    let settled = u64::from(counts.finished());
    let cells = (settled * BAR_CELLS as u64 / u64::from(total)) as usize;
    let percent = u64::from(done) * 100 / u64::from(total);
    let mut text = format!("{}{} ", "█".repeat(cells), "░".repeat(BAR_CELLS - cells));
    text.push_str(&format!("{done}/{total} done ({percent}%)"));
    let others = [
        (failed, "failed"),
        (skipped, "skipped"),
        (cancelled, "cancelled"),
        (running, "running"),
        (ready, "ready"),
        (blocked, "blocked"),
    ];
    for (count, word) in others.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {count} {word}"));
    }
    text
}
