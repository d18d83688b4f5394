//! Plan documents: a text, a version and a free-text status. A document is a plan without tasks; of a plan with tasks these tools
//! read and change the text alone.
//!
//! The names and most of the words are those of docker-agent's plan tools; `docs/plan-documents.md` lists what differs.

mod conflict;
mod name;
mod read;
mod status;
mod write;

use crate::hints::HintPhrases;
use crate::tool::{Effect, Tool};

/// Every answer about one document.
const ABOUT: &str = r#"{"type":"object","required":["name","version"],"properties":{"name":{"type":"string"},"title":{"type":"string"},"author":{"type":"string"},"status":{"type":"string"},"version":{"type":"integer"},"revision":{"type":"integer"},"updatedAt":{"type":"string"},"content":{"type":"string"},"bytes":{"type":"integer"},"changed":{"type":"string"},"created":{"type":"boolean"},"path":{"type":"string"},"bytesWritten":{"type":"integer"}}}"#;
const STATUS: &str = r#"{"type":"object","required":["name","status","version"],"properties":{"name":{"type":"string"},"status":{"type":"string"},"version":{"type":"integer"},"revision":{"type":"integer"}}}"#;
const LIST: &str = r#"{"type":"object","required":["plans"],"properties":{"plans":{"type":"array","items":{"type":"object"}},"next":{"type":"string"}}}"#;
const DELETED: &str = r#"{"type":"object","required":["deleted"],"properties":{"deleted":{"type":"string"},"version":{"type":"integer"}}}"#;

const WRITE: &str = r#"{"type":"object","properties":{"name":{"type":"string"},"content":{"type":"string"},"title":{"type":"string"},"author":{"type":"string"},"status":{"type":"string"},"last_known_version":{"type":["integer","null"]}},"required":["name","content"]}"#;
const FROM_FILE: &str = r#"{"type":"object","properties":{"name":{"type":"string"},"path":{"type":"string"},"title":{"type":"string"},"author":{"type":"string"},"status":{"type":"string"},"last_known_version":{"type":["integer","null"]}},"required":["name","path"]}"#;
const TO_FILE: &str = r#"{"type":"object","properties":{"name":{"type":"string"},"path":{"type":"string"},"overwrite":{"type":"boolean"}},"required":["name","path"]}"#;
const NAME: &str = r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;
const NAME_GUARDED: &str = r#"{"type":"object","properties":{"name":{"type":"string"},"last_known_version":{"type":["integer","null"]}},"required":["name"]}"#;
const SET_STATUS: &str = r#"{"type":"object","properties":{"name":{"type":"string"},"status":{"type":"string"},"last_known_version":{"type":["integer","null"]}},"required":["name","status"]}"#;
const AFTER: &str = r#"{"type":"object","properties":{"after":{"type":"string"}}}"#;

/// How these tools do what a hint speaks of.
pub(crate) const HINTS: HintPhrases = HintPhrases {
    look: "read_plan shows the plan",
    list: "list_plans shows the plans",
    retry: "a person runs `waypost retry`",
    stop: "wait until it ends",
    begin: "a person, or an agent with other tools, starts it",
    another: "read_plan shows the other tasks",
    start: "a person runs `waypost approve`",
    take_over: "wait until that session reports it",
    wait: "check again with read_plan",
    resume: "a person runs `waypost resume`",
    reopen: "write_plan under another name creates a new one",
    unarchive: "a person runs `waypost unarchive`",
    detach: "remove what depends on it first",
};

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool {
            name: "write_plan",
            description: "Create a plan document, or replace its whole text. Pass last_known_version, the version you last read (0: it must be new): if it changed since, nothing is written and the reply says what changed. Names: lowercase letters, digits, - and _. Omitted title, author and status stay.",
            arguments: WRITE,
            answer: ABOUT,
            effect: Effect::Changes,
            run: write::write,
        },
        Tool {
            name: "read_plan",
            description: "Read a plan document with its version. To edit a long one, export_plan_to_file is cheaper.",
            arguments: NAME,
            answer: ABOUT,
            effect: Effect::Reads,
            run: read::read,
        },
        Tool {
            name: "update_plan_from_file",
            description: "Like write_plan with the text of a workspace file. Cheap edits: export_plan_to_file, edit the file, then call this with the version that export returned.",
            arguments: FROM_FILE,
            answer: ABOUT,
            effect: Effect::Changes,
            run: write::from_file,
        },
        Tool {
            name: "export_plan_to_file",
            description: "Write a plan document's text to a workspace file; returns the version, not the text. A file with other content is replaced only with overwrite.",
            arguments: TO_FILE,
            answer: ABOUT,
            effect: Effect::Idempotent,
            run: read::to_file,
        },
        Tool {
            name: "set_plan_status",
            description: "Set a plan's free-text status (draft, blocked, done, …). Needs no version and never conflicts with edits of the text.",
            arguments: SET_STATUS,
            answer: STATUS,
            effect: Effect::Idempotent,
            run: status::set,
        },
        Tool {
            name: "get_plan_status",
            description: "Read a plan's status and version only.",
            arguments: NAME,
            answer: STATUS,
            effect: Effect::Reads,
            run: status::get,
        },
        Tool {
            name: "list_plans",
            description: "List plans by name, without their texts; pass `next` as `after` to continue.",
            arguments: AFTER,
            answer: LIST,
            effect: Effect::Reads,
            run: read::list,
        },
        Tool {
            name: "delete_plan",
            description: "Archive a plan that is no longer needed. A person can restore it.",
            arguments: NAME_GUARDED,
            answer: DELETED,
            effect: Effect::Destroys,
            run: status::delete,
        },
    ]
}

/// The names of the request that these tools come from, where docker-agent's are others.
pub(crate) fn synonyms() -> Vec<Tool> {
    vec![
        Tool {
            name: "create_plan",
            description: "write_plan for a plan that must not exist yet.",
            arguments: WRITE,
            answer: ABOUT,
            effect: Effect::Adds,
            run: write::create,
        },
        Tool {
            name: "update_plan",
            description: "write_plan for a plan that must exist.",
            arguments: WRITE,
            answer: ABOUT,
            effect: Effect::Changes,
            run: write::update,
        },
        Tool {
            name: "get_plan",
            description: "The same as read_plan.",
            arguments: NAME,
            answer: ABOUT,
            effect: Effect::Reads,
            run: read::read,
        },
    ]
}
