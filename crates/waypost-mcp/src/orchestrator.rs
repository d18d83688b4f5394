//! For agents that hand work to machines: submit a run, look how it stands, wait for it, stop it, ask why it waits.
//! Machines run what was submitted elsewhere (`waypost worker`, `waypost run`); nothing is run here.

mod control;
mod lookup;
mod status;
mod submit;
mod watch;

use crate::hints::HintPhrases;
use crate::tool::{Effect, Tool};

const SUBMIT: &str = r#"{"type":"object","properties":{"text":{"type":"string","description":"the plan, in any format"},"file":{"type":"string","description":"or a file of the workspace"},"plan":{"type":"string","description":"or a plan of the store"},"format":{"type":"string"},"id":{"type":"string"},"queue":{"type":"string"}}}"#;
const PLAN: &str = r#"{"type":"object","properties":{"plan":{"type":"string"}},"required":["plan"]}"#;
const WATCH: &str = r#"{"type":"object","properties":{"plan":{"type":"string"},"since":{"type":"integer","description":"version; what came after it is told at once"},"seconds":{"type":"integer","maximum":600},"until":{"enum":["change","end"]}},"required":["plan"]}"#;
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
    look: "run_status shows how the run stands",
    list: "run_submit tells the id of what it submits",
    retry: "a person runs `waypost retry`",
    stop: "run_watch waits for its end, run_cancel stops it",
    begin: "run_submit with plan starts the run",
    another: "run_status shows what else there is",
    start: "run_submit with plan asks for the start",
    wait: "run_watch waits for it",
    resume: "a person runs `waypost resume`",
    reopen: "a person runs `waypost retry`, or submit it anew under another id",
    unarchive: "a person runs `waypost unarchive`",
    detach: "submit a plan without them",
};

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool {
            name: "run_submit",
            description: "Hand a plan to machines: give text, file or plan. The same id again is the same run. It may wait for a person's approval; the answer says so.",
            arguments: SUBMIT,
            answer: SUBMITTED,
            effect: Effect::Adds,
            run: submit::submit,
        },
        Tool {
            name: "run_status",
            description: "How a run stands: phase, counts, what runs, the latest failures, questions to people.",
            arguments: PLAN,
            answer: STATUS,
            effect: Effect::Reads,
            run: status::status,
        },
        Tool {
            name: "run_watch",
            description: "Wait for the next change of a run, or for its end, at most so many seconds (default 30). Go on with the answered version as since.",
            arguments: WATCH,
            answer: WATCHED,
            effect: Effect::Reads,
            run: watch::watch,
        },
        Tool {
            name: "run_cancel",
            description: "Stop a run, or one task of it, and what is being worked on.",
            arguments: CANCEL,
            answer: CANCELLED,
            effect: Effect::Destroys,
            run: control::cancel,
        },
        Tool {
            name: "run_why",
            description: "What a task waits for, and who holds it.",
            arguments: WHY,
            answer: REASONS,
            effect: Effect::Reads,
            run: control::why,
        },
        Tool {
            name: "run_log",
            description: "The end of what an attempt wrote (default: the latest attempt, 4096 bytes).",
            arguments: LOG,
            answer: LOGGED,
            effect: Effect::Reads,
            run: control::log,
        },
    ]
}
