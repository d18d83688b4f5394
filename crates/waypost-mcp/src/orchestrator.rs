//! The orchestrator tools, for agents that submit work to machines: submit a run, show it, wait for it, cancel it, explain why
//! it waits. Workers run it (`waypost worker`, `waypost run`); nothing is run here.

mod control;
mod lookup;
mod status;
mod submit;
mod watch;

use crate::hints::HintPhrases;
use crate::tool::{Effect, Tool};

const SUBMIT: &str = r#"{"type":"object","properties":{"text":{"type":"string","description":"the plan, in any format"},"file":{"type":"string","description":"or a workspace file"},"plan":{"type":"string","description":"or a stored plan"},"format":{"type":"string"},"id":{"type":"string"},"queue":{"type":"string"}}}"#;
const PLAN: &str = r#"{"type":"object","properties":{"plan":{"type":"string"}},"required":["plan"]}"#;
const WATCH: &str = r#"{"type":"object","properties":{"plan":{"type":"string"},"since":{"type":"integer","description":"version; later changes are returned at once"},"seconds":{"type":"integer","maximum":600},"until":{"enum":["change","end"]}},"required":["plan"]}"#;
const CANCEL: &str = r#"{"type":"object","properties":{"plan":{"type":"string"},"task":{"type":"string"},"reason":{"type":"string"}},"required":["plan"]}"#;
const WHY: &str = r#"{"type":"object","properties":{"plan":{"type":"string"},"task":{"type":"string"}},"required":["plan","task"]}"#;
const LOG: &str = r#"{"type":"object","properties":{"plan":{"type":"string"},"task":{"type":"string"},"attempt":{"type":"integer"},"bytes":{"type":"integer","maximum":65536}},"required":["plan","task"]}"#;

const SUBMITTED: &str = r#"{"type":"object","required":["id","version","phase"],"properties":{"id":{"type":"string"},"version":{"type":"integer"},"phase":{"type":"string"},"created":{"type":"boolean"},"queue":{"type":"string"},"workers":{"type":"integer"},"next":{"type":"string"},"notes":{"type":"array","items":{"type":"string"}}}}"#;
const STATUS: &str = r#"{"type":"object","required":["id","version","phase","counts"],"properties":{"id":{"type":"string"},"version":{"type":"integer"},"phase":{"type":"string"},"counts":{"type":"object"},"running":{"type":"array","items":{"type":"object"}},"failed":{"type":"array","items":{"type":"object"}},"asking":{"type":"array","items":{"type":"object"}},"eta_seconds":{"type":"integer"},"workers":{"type":"integer"},"next":{"type":"string"}}}"#;
const WATCHED: &str = r#"{"type":"object","required":["id","version","phase","counts","happened"],"properties":{"id":{"type":"string"},"version":{"type":"integer"},"phase":{"type":"string"},"counts":{"type":"object"},"happened":{"type":"array","items":{"type":"string"}},"earlier":{"type":"integer"},"more":{"type":"boolean"},"next":{"type":"string"}}}"#;
const CANCELLED: &str = r#"{"type":"object","required":["id","version","phase"],"properties":{"id":{"type":"string"},"version":{"type":"integer"},"phase":{"type":"string"},"task":{"type":"string"}}}"#;
const REASONS: &str = r#"{"type":"object","required":["id","task","standing","waits_for"],"properties":{"id":{"type":"string"},"task":{"type":"string"},"standing":{"type":"string"},"waits_for":{"type":"array","items":{"type":"object"}}}}"#;
const LOGGED: &str = r#"{"type":"object","required":["id","task","attempt","log","bytes"],"properties":{"id":{"type":"string"},"task":{"type":"string"},"attempt":{"type":"integer"},"log":{"type":"string"},"bytes":{"type":"integer"}}}"#;

/// How these tools do what a hint speaks of.
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
    vec![
        Tool {
            name: "run_submit",
            description: "Submit a plan for workers to run: pass text, file or plan. The same id again is the same run. It may need a person's approval; the result says so.",
            arguments: SUBMIT,
            answer: SUBMITTED,
            effect: Effect::Adds,
            run: submit::submit,
        },
        Tool {
            name: "run_status",
            description: "Show a run: phase, counts, running tasks, latest failures, open questions.",
            arguments: PLAN,
            answer: STATUS,
            effect: Effect::Reads,
            run: status::status,
        },
        Tool {
            name: "run_watch",
            description: "Wait for the next change of a run, or its end, for at most `seconds` (default 30). Pass the returned version as since to continue.",
            arguments: WATCH,
            answer: WATCHED,
            effect: Effect::Reads,
            run: watch::watch,
        },
        Tool {
            name: "run_cancel",
            description: "Cancel a run, or one of its tasks, including running work.",
            arguments: CANCEL,
            answer: CANCELLED,
            effect: Effect::Destroys,
            run: control::cancel,
        },
        Tool {
            name: "run_why",
            description: "Explain what a task waits for and who holds it.",
            arguments: WHY,
            answer: REASONS,
            effect: Effect::Reads,
            run: control::why,
        },
        Tool {
            name: "run_log",
            description: "Show the end of an attempt's log (default: latest attempt, 4096 bytes).",
            arguments: LOG,
            answer: LOGGED,
            effect: Effect::Reads,
            run: control::log,
        },
    ]
}
