//! The program that a task's work resolves to with some definitions, as a person would type it. Runs nothing.

use serde_json::Value;
use waypost_config::Definitions;
use waypost_core::{ProblemKind, Task, TaskSpec, Work};

/// Shown for a task without work.
const FOR_NO_MACHINE: &str = "(for an agent or a person)";

/// Returns the program of a task and that of its check, as a person would type them.
pub fn preview(definitions: &Definitions, spec: &TaskSpec) -> String {
    let program = program(definitions, spec);
    let Some(check) = &spec.check else { return program };
    format!("{program}, then check: {}", preview_of_check(definitions, check))
}

fn program(definitions: &Definitions, spec: &TaskSpec) -> String {
    spec.work.as_deref().map_or_else(|| FOR_NO_MACHINE.to_owned(), |work| preview_of_work(definitions, work))
}

/// Whether a machine would still run something for a task, so that the approver has to see it.
pub fn is_to_be_run(task: &Task) -> bool {
    let spec = &task.spec;
    !spec.skip && (spec.work.is_some() || spec.check.is_some()) && !task.state.status.is_finished()
}

/// What an approver has to see of a task: the program, and every text that the plan's author passes to it. The operator
/// defines the program, which looks harmless; the author's texts may not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalPreview {
    /// The program of the task, as a person would type it.
    pub program: String,
    /// The author's texts by name: `description`, `notes`, `tools`, `inputs`, `check`, `check's inputs`. Empty ones are
    /// left out.
    pub particulars: Vec<(&'static str, String)>,
}

/// Returns what an approver has to see of a task.
pub fn approval_preview(definitions: &Definitions, spec: &TaskSpec) -> ApprovalPreview {
    let inputs = |work: &Work| match work.inputs.as_str() {
        "{}" | "null" => String::new(),
        inputs => inputs.to_owned(),
    };
    let check = spec.check.as_deref();
    let particulars = [
        ("description", spec.description.clone()),
        ("notes", spec.notes.clone()),
        ("tools", spec.tools.as_ref().map(|tools| tools.join(", ")).unwrap_or_default()),
        ("inputs", spec.work.as_deref().map(inputs).unwrap_or_default()),
        ("check", check.map(|check| preview_of_check(definitions, check)).unwrap_or_default()),
        ("check's inputs", check.map(inputs).unwrap_or_default()),
    ];
    let particulars = particulars.into_iter().filter(|(_, text)| !text.trim().is_empty()).collect();
    ApprovalPreview { program: program(definitions, spec), particulars }
}

/// Returns the program of a check.
pub fn preview_of_check(definitions: &Definitions, check: &Work) -> String {
    match definitions.of_check(check) {
        Ok(found) if found.value == "human" => "(a person is asked)".to_owned(),
        found => describe(found.map(|found| found.value), check),
    }
}

/// Returns the program of some work.
pub fn preview_of_work(definitions: &Definitions, work: &Work) -> String {
    describe(definitions.of_work(work).map(|found| found.value), work)
}

fn describe(found: Result<&Value, ProblemKind>, work: &Work) -> String {
    let value = match found {
        Ok(value) => value,
        Err(ProblemKind::UnknownExecutor { executor }) => {
            return format!("(no executor is called {executor})");
        }
        Err(_) => return format!("(the inputs name no worker of {})", work.executor),
    };
    let Some((kind, value)) = value.as_object().and_then(|kinds| kinds.iter().next()) else {
        return match value.as_str() {
            Some("human") => "(a person does it and reports the result)".to_owned(),
            _ => "(nothing)".to_owned(),
        };
    };
    let text = |key: &str| value[key].as_str().unwrap_or_default();
    let pinned = value["pin"].as_object().map(|files| {
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        format!(" (pinned: {})", names.join(", "))
    });
    let program = match kind.as_str() {
        "container" => {
            let engine = value["engine"].as_str().unwrap_or("docker or podman");
            format!("{} (in a container of {}, by {engine})", quoted(&value["command"]), text("image"))
        }
        "kubernetes" => format!("{} (in a Kubernetes Job of {})", quoted(&value["command"]), text("image")),
        "slurm" => {
            let partition = value["partition"].as_str().map(|name| format!(", partition {name}"));
            format!(
                "{} (in a Slurm job{})",
                describe_process(&value["process"]),
                partition.unwrap_or_default()
            )
        }
        "http" => format!("{} {}", text("method"), text("url")),
        "agent" => {
            let worktree = if value["worktree"] == true { " (in a git worktree of its own)" } else { "" };
            let prompt = if value["prompt_to"] == "stdin" { " < PROMPT" } else { "" };
            format!("{}{prompt}{worktree}", describe_process(&value["process"]))
        }
        _ => describe_process(value),
    };
    program + &pinned.unwrap_or_default()
}

fn describe_process(process: &Value) -> String {
    let shell = if process["shell"] == true { "sh -c " } else { "" };
    let place = match process["directory"].as_str() {
        None | Some("") => String::new(),
        Some(directory) => format!(" (in {directory})"),
    };
    format!("{shell}{}{place}", quoted(&process["command"]))
}

fn quoted(command: &Value) -> String {
    let plain = |word: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.to_owned()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    let words: Vec<String> =
        command.as_array().into_iter().flatten().filter_map(Value::as_str).map(plain).collect();
    if words.is_empty() { "(what the image says)".to_owned() } else { words.join(" ") }
}
