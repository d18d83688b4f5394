//! The definitions of the tools. Every word of them is paid for in every conversation; a test counts them.

use super::{create, draft, edit, events, get, import_export, list, start, task_tools};
use crate::hints::HintPhrases;
use crate::tool::{Effect, Tool};

/// How these tools do what a hint speaks of.
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
    vec![
        Tool {
            name: "plan_create",
            description: "Create a plan from tasks, a workspace file, or text in any plan format. Tasks without id get t1, t2… by position.",
            arguments: r#"{"type":"object","properties":{"title":{"type":"string"},"goal":{"type":"string"},"body":{"type":"string","description":"Markdown"},"tasks":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"description":{"type":"string"},"depends_on":{"type":"array","items":{"type":"string"},"description":"ids; in other plans: plan/task or agent:task"}},"description":"also parent, notes, priority, provides, check, work, locks, retry… as in the native format"}},"file":{"type":"string"},"text":{"type":"string"},"format":{"type":"string"}}}"#,
            answer: r#"{"type":"object","properties":{"plan":{"type":"string"},"version":{"type":"integer"},"tasks":{"type":"integer"},"ids":{"type":"string"},"ready":{"type":"array","items":{"type":"string"}},"approval":{"type":"string"},"notes":{"type":"array","items":{"type":"string"}}},"required":["plan","version","tasks"]}"#,
            effect: Effect::Adds,
            run: create::run,
        },
        Tool {
            name: "plan_get",
            description: "Show a plan's overview (default: your open plan), one task in full, all tasks by page, or changes since a version.",
            arguments: r#"{"type":"object","properties":{"plan":{"type":"string"},"task":{"type":"string"},"full":{"type":"boolean"},"cursor":{"type":"string"},"since":{"type":"integer"}}}"#,
            answer: r#"{"type":"object"}"#,
            effect: Effect::Reads,
            run: get::run,
        },
        Tool {
            name: "plan_list",
            description: "List your plans, latest first.",
            arguments: r#"{"type":"object","properties":{"all":{"type":"boolean","description":"others' plans too"},"phase":{"type":"string"},"text":{"type":"string"},"cursor":{"type":"string"}}}"#,
            answer: r#"{"type":"object","properties":{"plans":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"title":{"type":"string"},"phase":{"type":"string"},"done":{"type":"integer"},"total":{"type":"integer"},"owner":{"type":"string"}}}},"total":{"type":"integer"},"cursor":{"type":"string"}},"required":["plans","total"]}"#,
            effect: Effect::Reads,
            run: list::run,
        },
        Tool {
            name: "plan_edit",
            description: "Edit a plan: all ops apply as one version, or none.",
            arguments: r#"{"type":"object","properties":{"plan":{"type":"string"},"known_version":{"type":"integer","description":"fail if the plan changed since"},"ops":{"type":"array","items":{"type":"object","properties":{"op":{"enum":["add","revise","remove","move","status","plan"]},"task":{"type":"string"},"status":{"type":"string"}},"required":["op"],"description":"add: task fields. revise: task fields to change, null clears. remove. move: parent, before, after. status: pending, done, failed, skipped, cancelled. plan: title, goal, body, status, phase, archived"}}},"required":["ops"]}"#,
            answer: r#"{"type":"object","properties":{"version":{"type":"integer"},"changed":{"type":"boolean"},"added":{"type":"string"},"next":{"type":"array","items":{"type":"string"}},"approval":{"type":"string"},"notes":{"type":"array","items":{"type":"string"}}},"required":["version"]}"#,
            effect: Effect::Changes,
            run: edit::run,
        },
        Tool {
            name: "plan_export",
            description: "Write a plan to a workspace file, to read or edit it there.",
            arguments: r#"{"type":"object","properties":{"plan":{"type":"string"},"file":{"type":"string"},"format":{"type":"string","description":"native, markdown, checklist, mermaid…"},"overwrite":{"type":"boolean","description":"replace an existing file"}},"required":["file"]}"#,
            answer: r#"{"type":"object","properties":{"plan":{"type":"string"},"version":{"type":"integer"},"file":{"type":"string"},"format":{"type":"string"},"bytes":{"type":"integer"},"lost":{"type":"array","items":{"type":"string"}}},"required":["plan","version","file","format","bytes"]}"#,
            effect: Effect::Destroys,
            run: import_export::export,
        },
        Tool {
            name: "plan_update",
            description: "Update a plan from an edited file. Done tasks stay done unless their text or work changed.",
            arguments: r#"{"type":"object","properties":{"plan":{"type":"string"},"file":{"type":"string"},"format":{"type":"string"},"known_version":{"type":"integer"}},"required":["file"]}"#,
            answer: r#"{"type":"object","properties":{"version":{"type":"integer"},"bytes":{"type":"integer"},"changes":{"type":"string"},"again":{"type":"string"},"approval":{"type":"string"},"notes":{"type":"array","items":{"type":"string"}}},"required":["version","bytes","changes"]}"#,
            effect: Effect::Idempotent,
            run: import_export::update,
        },
        Tool {
            name: "plan_start",
            description: "Start a plan. If it needs approval, asks a person and waits; awaiting_approval on timeout.",
            arguments: r#"{"type":"object","properties":{"plan":{"type":"string"},"message":{"type":"string","description":"for the person"},"wait":{"type":"integer","description":"seconds"}}}"#,
            answer: r#"{"type":"object","properties":{"phase":{"type":"string"},"next":{"type":"array","items":{"type":"string"}},"reason":{"type":"string"},"then":{"type":"string"}},"required":["phase"]}"#,
            effect: Effect::Idempotent,
            run: start::run,
        },
        Tool {
            name: "task_next",
            description: "Claim the next ready task, with the outputs it depends on. It is yours until you report it.",
            arguments: r#"{"type":"object","properties":{"plan":{"type":"string"},"any":{"type":"boolean","description":"from any plan"},"queue":{"type":"string"},"task":{"type":"string","description":"this task only"},"take_over":{"type":"boolean","description":"from your own dead session"}}}"#,
            answer: r#"{"type":"object","properties":{"plan":{"type":"string"},"task":{"type":["string","null"]},"attempt":{"type":"integer"},"description":{"type":"string"},"notes":{"type":"string"},"tools":{"type":"string"},"check":{"type":"boolean"},"inputs":{"type":"object"},"more_inputs":{"type":"string"},"answers":{"type":"array"},"why":{"type":"string"}},"required":["task"]}"#,
            effect: Effect::Changes,
            run: task_tools::next,
        },
        Tool {
            name: "task_report",
            description: "Report on a task: done only if fully done, else failed with error. progress renews the lease (15 min).",
            arguments: r#"{"type":"object","properties":{"task":{"type":"string"},"status":{"enum":["progress","done","failed","skipped","release","question"]},"text":{"type":"string","description":"result, error, reason, progress or question"},"output":{"description":"JSON for dependants"},"choices":{"type":"array","items":{"type":"string"}},"plan":{"type":"string"}},"required":["task","status"]}"#,
            answer: r#"{"type":"object","properties":{"next":{"type":"array","items":{"type":"string"}},"plan":{"type":"string"},"status":{"type":"string"},"skipped":{"type":"integer"},"again_at":{"type":"string"}}}"#,
            effect: Effect::Changes,
            run: task_tools::report,
        },
        Tool {
            name: "events",
            description: "Read events. subscribe stores a filter and a cursor; read returns new events, or those after cursor.",
            arguments: r#"{"type":"object","properties":{"action":{"enum":["read","subscribe","unsubscribe","list"]},"subscription":{"type":"string"},"plans":{"type":"array","items":{"type":"string"}},"tasks":{"type":"array","items":{"type":"string"}},"agents":{"type":"array","items":{"type":"string"}},"kinds":{"type":"array","items":{"type":"string"},"description":"task_done, task_failed, task_unblocked…"},"cursor":{"type":"string"},"wait":{"type":"integer","description":"seconds"},"limit":{"type":"integer"}}}"#,
            answer: r#"{"type":"object","properties":{"subscription":{"type":"string"},"ended":{"type":"integer"},"subscriptions":{"type":"array"},"events":{"type":"array"},"cursor":{"type":"string"},"more":{"type":"boolean"}}}"#,
            effect: Effect::Changes,
            run: events::run,
        },
        Tool {
            name: draft::NAME,
            description: "Ask your host's model to write a plan for a goal; it is validated and saved as your draft.",
            arguments: r#"{"type":"object","properties":{"goal":{"type":"string"},"constraints":{"type":"array","items":{"type":"string"}},"max_tasks":{"type":"integer"}},"required":["goal"]}"#,
            answer: r#"{"type":"object","properties":{"plan":{"type":"string"},"version":{"type":"integer"},"tasks":{"type":"integer"},"ready":{"type":"array","items":{"type":"string"}}},"required":["plan","version","tasks"]}"#,
            effect: Effect::Adds,
            run: draft::run,
        },
    ]
}
