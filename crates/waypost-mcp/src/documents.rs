//! Plan documents: a text, a version and a free-text status. A document is a plan without tasks; of a plan with tasks these tools
//! read and change the text alone.
//!
//! The names and most of the wording are those of docker-agent's plan tools; `docs/plan-documents.md` lists the differences.

mod conflict;
mod name;
mod read;
mod status;
mod write;

use crate::hints::HintPhrases;
use crate::tool::{Handler, Tool};

/// This toolset's phrases for hints.
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
    let handlers: [(&str, Handler); 8] = [
        ("write_plan", write::write),
        ("read_plan", read::read),
        ("update_plan_from_file", write::from_file),
        ("export_plan_to_file", read::to_file),
        ("set_plan_status", status::set),
        ("get_plan_status", status::get),
        ("list_plans", read::list),
        ("delete_plan", status::delete),
    ];
    Tool::all(include_str!("documents/tools.json"), &handlers)
}

/// Aliases from the original request for these tools, where docker-agent uses other names.
pub(crate) fn synonyms() -> Vec<Tool> {
    let handlers: [(&str, Handler); 3] =
        [("create_plan", write::create), ("update_plan", write::update), ("get_plan", read::read)];
    Tool::all(include_str!("documents/synonyms.json"), &handlers)
}
