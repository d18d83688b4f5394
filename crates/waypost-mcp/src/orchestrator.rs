//! The orchestrator tools, for agents that submit work to machines: submit a run, show it, wait for it, cancel it, explain why
//! it waits. Workers run it (`waypost worker`, `waypost run`); this server runs nothing.

mod control;
mod lookup;
mod status;
mod submit;
mod watch;

use crate::hints::HintPhrases;
use crate::tool::{Handler, Tool};

/// This toolset's phrases for hints.
pub(crate) const HINTS: HintPhrases = HintPhrases {
    look: "run_status shows the run",
    list: "run_submit returns the id of the run",
    retry: "a person runs `waypost retry`",
    stop: "run_watch waits until it ends, run_cancel cancels it",
    begin: "run_submit with plan starts the run",
    another: "run_status shows the other tasks",
    start: "run_submit with plan starts it or requests approval",
    take_over: "wait until that session reports it",
    wait: "run_watch waits for it",
    resume: "a person runs `waypost resume`",
    reopen: "a person runs `waypost retry`, or submit it under another id",
    unarchive: "a person runs `waypost unarchive`",
    detach: "submit a plan without them",
};

pub(crate) fn tools() -> Vec<Tool> {
    let handlers: [(&str, Handler); 6] = [
        ("run_submit", submit::submit),
        ("run_status", status::status),
        ("run_watch", watch::watch),
        ("run_cancel", control::cancel),
        ("run_why", control::why),
        ("run_log", control::log),
    ];
    Tool::all(include_str!("orchestrator/tools.json"), &handlers)
}
