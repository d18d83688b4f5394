//! Prints the head of a plan (title, status, phase, version, progress) and its body. Reads no tasks.

use waypost_core::{Plan, StartRefusal};
use waypost_store::PlanSummary;

use super::{Shown, phase_sign, phase_words, progress_of, sign_look, text};
use waypost_service::{approval_text, start_refusal_hint, start_refusal_text};

use crate::error::hint_text;
use crate::output::Output;
use crate::style::Look;

/// Maximum lines of a body without `--full`.
const BODY_LINES_MAX: usize = 12;

pub fn print_head(shown: &Shown<'_>, whole: bool, out: &mut Output) {
    let plan = shown.plan;
    let (spec, state, head) = (plan.spec(), plan.state(), PlanSummary::detailed(plan));
    let title = if head.title.is_empty() { "(untitled)" } else { &head.title };
    let status =
        if spec.status.is_empty() { String::new() } else { format!(" [{}]", text::one_line(&spec.status)) };
    let room = out.columns.saturating_sub(text::width(&status)).max(20);
    let title = out.paint(&text::excerpt(&text::reveal_lines(title), room), Look::Bold);
    let status = out.paint(&status, Look::Cyan);
    out.line(format!("{title}{status}"));

    let awaits = head.awaits_approval;
    let sign = phase_sign(&head);
    let phase = format!("{} {}", sign.glyph(), phase_words(head.phase, awaits));
    let phase = out.paint(&phase, sign_look(sign));
    let mut facts = vec![format!("plan {}", plan.id()), phase, format!("version {}", plan.version())];
    if state.archived {
        facts.push("archived".to_owned());
    }
    for (name, value) in [("owner", &spec.owner), ("queue", &spec.queue)] {
        if !value.is_empty() {
            facts.push(format!("{name} {}", text::one_line(value)));
        }
    }
    out.line(facts.join(" · "));
    let mut texts = Vec::new();
    if !spec.goal.is_empty() && spec.goal != spec.title {
        texts.push(("goal", spec.goal.clone()));
    }
    if let Some(approval) = &state.approval {
        texts.push(("approved", approval_text(approval)));
        if !approval.note.is_empty() {
            texts.push(("note", approval.note.clone()));
        }
    }
    for refusal in &state.start_refusals {
        texts.push(("refused", refusal_words(plan, refusal)));
    }
    for (name, value) in [("summary", &state.summary), ("reason", &state.reason)] {
        if !value.is_empty() {
            texts.push((name, value.clone()));
        }
    }
    for (name, value) in texts {
        // Who approved it, and what to do about a refusal, is never cut.
        let whole = whole || matches!(name, "approved" | "refused");
        let room = if whole { usize::MAX / 8 } else { out.columns.saturating_sub(name.len() + 2) };
        out.line(format!("{name}: {}", text::excerpt(&text::reveal_lines(&value), room)));
    }
    out.line(progress_of(&head.counts, shown.for_people()));
}

/// A worker's refusal, and what to do about it.
pub fn refusal_words(plan: &Plan, refusal: &StartRefusal) -> String {
    let hint = hint_text(&start_refusal_hint(plan.id(), refusal));
    format!("{} ({hint})", start_refusal_text(plan, refusal))
}

/// Prints the beginning of the body, or all of it.
pub fn print_body(plan: &Plan, whole: bool, out: &mut Output) {
    let body = text::sanitize(plan.spec().body.trim_end());
    if body.is_empty() {
        return;
    }
    out.line("");
    let lines = body.lines().count();
    let shown = if whole { lines } else { BODY_LINES_MAX };
    for line in body.lines().take(shown) {
        let line = line.replace('\t', "    ");
        let line = if whole { line.into() } else { text::truncate(&line, out.columns.saturating_sub(2)) };
        out.line(format!("  {line}"));
    }
    if lines > shown {
        let more = format!("  … {} (--full shows all)", text::count(lines - shown, "more line"));
        let more = out.paint(&more, Look::Dim);
        out.line(more);
    }
}
