//! The definitions of the tools. Every conversation pays for each word of them; a test counts them.

use super::{create, draft, edit, events, get, import_export, list, start, task_tools};
use crate::hints::HintPhrases;
use crate::tool::{Handler, Tool};

/// This toolset's phrases for hints.
pub(crate) const HINTS: HintPhrases = HintPhrases {
    look: "plan_get with full: true lists the tasks",
    list: "plan_list with all: true lists the plans",
    retry: "plan_edit with op status, status pending reopens it",
    stop: "wait until it ends (events with wait), or cancel it (plan_edit with op status, status cancelled)",
    begin: "claim it first: task_next with task",
    another: "task_next claims another",
    start: "plan_start starts it or requests approval",
    take_over: "if that session is gone, send the same with take_over: true; otherwise task_next claims another",
    wait: "events with wait waits for it",
    resume: "plan_edit with op plan, phase active resumes it",
    reopen: "plan_edit reopens it: op status, status pending for failed tasks, or op add",
    unarchive: "plan_edit with op plan, archived false restores it",
    detach: "plan_edit with op revise changes what they depend on; op remove with detach: true drops these dependencies",
};

pub(crate) fn tools() -> Vec<Tool> {
    let handlers: [(&str, Handler); 11] = [
        ("plan_create", create::run),
        ("plan_get", get::run),
        ("plan_list", list::run),
        ("plan_edit", edit::run),
        ("plan_export", import_export::export),
        ("plan_update", import_export::update),
        ("plan_start", start::run),
        ("task_next", task_tools::next),
        ("task_report", task_tools::report),
        ("events", events::run),
        (draft::NAME, draft::run),
    ];
    Tool::all(include_str!("tools.json"), &handlers)
}
