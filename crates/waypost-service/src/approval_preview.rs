//! The program that a task's work resolves to with some definitions, as a person would type it. Runs nothing.

use std::borrow::Cow;

use serde_json::Value;
use waypost_config::{Definition, Definitions};
use waypost_core::{Dependency, DependencyRule, Lock, LockMode, ProblemKind, Task, TaskSpec, Work};
use waypost_text::shell_word;

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

/// What an approver has to see of a task: the program, and everything that the plan's author says about the task. The
/// operator defines the program, which looks harmless; the author's texts may not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalPreview {
    /// The program of the task, as a person would type it.
    pub program: String,
    /// What the author says, by name. Empty texts and defaults are left out.
    pub particulars: Vec<(&'static str, String)>,
}

/// The name of the inputs among the particulars.
pub(crate) const INPUTS: &str = "inputs";

/// Describes a dependency. A task of the plan itself may be called like one of another plan.
fn dependency(on: &Dependency) -> String {
    match on.here() {
        Some(task) if task.as_str().contains(['/', ':']) => format!("{task} (a task of this plan)"),
        Some(_) | None => on.to_string(),
    }
}

/// Returns what an approver has to see of a task. Attempts, time limit and shapes are in [`settings`]; each other field
/// of the task is shown, or named as left out because no machine sees it.
pub fn approval_preview(definitions: &Definitions, spec: &TaskSpec) -> ApprovalPreview {
    let TaskSpec {
        id: _,
        description,
        parent,
        depends_on,
        when,
        complexity,
        notes,
        tools,
        skip,
        locks,
        work,
        check,
        retry: _,
        timeout_seconds: _,
        priority: _,
        provides,
        thinking: _,
        foreign: _,
    } = spec;
    let inputs = |work: &Work| match work.inputs.as_str() {
        "{}" | "null" => String::new(),
        inputs => inputs.to_owned(),
    };
    let when = match when {
        DependencyRule::AllDone => "",
        DependencyRule::AllFinished => "all_finished: even if a dependency fails",
        DependencyRule::AnyDone => "any_done: as soon as one dependency is done",
    };
    let lock = |lock: &Lock| match lock.mode {
        LockMode::Exclusive => lock.key.clone(),
        LockMode::Shared => format!("{} (shared)", lock.key),
    };
    let list = |items: Vec<String>| items.join(", ");
    let check = check.as_deref();
    let particulars = [
        ("description", description.clone()),
        ("notes", notes.clone()),
        ("tools", tools.as_ref().map(|tools| list(tools.clone())).unwrap_or_default()),
        ("complexity", complexity.map(|complexity| complexity.as_str().to_owned()).unwrap_or_default()),
        (INPUTS, work.as_deref().map(inputs).unwrap_or_default()),
        ("check", check.map(|check| preview_of_check(definitions, check)).unwrap_or_default()),
        ("check's inputs", check.map(inputs).unwrap_or_default()),
        ("part of", parent.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("depends on", list(depends_on.iter().map(dependency).collect())),
        ("when", when.to_owned()),
        ("locks", list(locks.iter().map(lock).collect())),
        ("provides", provides.clone().unwrap_or_default()),
        (
            "skip",
            if *skip { "yes: it does not run, and dependants proceed".to_owned() } else { String::new() },
        ),
    ];
    let particulars = particulars.into_iter().filter(|(_, text)| !text.trim().is_empty()).collect();
    ApprovalPreview { program: program(definitions, spec), particulars }
}

/// Returns how the program of a task runs: everything that is configured for its executor and its check and is not in the
/// command line, the attempts, and the time limit.
pub(crate) fn settings(
    definitions: &Definitions,
    spec: &TaskSpec,
    found: &[Definition<'_>],
) -> Vec<(&'static str, String)> {
    let mut settings = Vec::new();
    let works = [("executor", spec.work.as_deref()), ("check", spec.check.as_deref())];
    for (name, work) in works.into_iter().filter_map(|(name, work)| Some((name, work?))) {
        let is_of = |found: &&Definition<'_>| {
            found.name == work.executor || found.name.starts_with(&format!("{}/", work.executor))
        };
        let mut text = found.iter().find(is_of).map_or_else(|| work.executor.clone(), definition_text);
        if let Some(shape) = &work.shape {
            text.push_str(&format!("\nshape: {shape}"));
        }
        settings.push((name, text));
    }
    let retry = spec.retry.as_deref().unwrap_or(&definitions.retry);
    let attempts = match retry.attempts {
        0 | 1 => "1".to_owned(),
        attempts => format!(
            "{attempts}, after pauses of {} to {} seconds",
            retry.backoff_seconds, retry.backoff_seconds_max
        ),
    };
    settings.push(("attempts", attempts));
    let of_executor = found.iter().find_map(|found| {
        let value = found.value.as_object()?.values().next()?;
        value.get("process").unwrap_or(value)["timeout_seconds"].as_u64()
    });
    let limit = spec.timeout_seconds.map(u64::from).or(of_executor);
    let limit = limit.or(definitions.timeout_seconds.map(u64::from)).filter(|seconds| *seconds > 0);
    settings.push(("time limit", limit.map_or("none".to_owned(), |seconds| format!("{seconds} seconds"))));
    settings
}

/// Returns the name of a definition and everything that is configured for it, a line each. Only empty values are left out.
fn definition_text(definition: &Definition<'_>) -> String {
    let mut text = definition.name.clone();
    let Some((_, Value::Object(keys))) = definition.value.as_object().and_then(|kinds| kinds.iter().next())
    else {
        return text;
    };
    let process = keys.get("process").and_then(Value::as_object).into_iter().flatten();
    for (key, value) in process.chain(keys.iter().filter(|(key, _)| *key != "process")) {
        let value = match (key.as_str(), value) {
            (_, Value::Null | Value::Bool(false)) => continue,
            // In the command line, or the time limit of the group.
            ("command" | "shell" | "timeout_seconds", _) => continue,
            ("prompt", prompt) => format!("\n{}", indented(&prompt_text(prompt))),
            (_, Value::String(text)) => text.clone(),
            (_, Value::Array(items)) => items.iter().map(setting_text).collect::<Vec<_>>().join(", "),
            (_, Value::Object(map)) => {
                let entries = map.iter().map(|(name, value)| format!("{name} = {}", setting_text(value)));
                entries.collect::<Vec<_>>().join(", ")
            }
            (_, Value::Bool(true) | Value::Number(_)) => value.to_string(),
        };
        if !value.is_empty() {
            text.push_str(&format!("\n{key}: {value}"));
        }
    }
    text
}

/// Deeper than the keys, so that no line of a prompt can look like one.
fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// Returns one part of a setting: a text as it is, a secret by its source, anything else as JSON.
fn setting_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(source) if source.len() == 1 => {
            let one = source.iter().next();
            one.map(|(kind, from)| format!("{kind} {}", setting_text(from))).unwrap_or_default()
        }
        Value::Array(parts) => parts.iter().map(setting_text).collect::<Vec<_>>().join(" "),
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Returns a prompt as its author wrote it.
fn prompt_text(prompt: &Value) -> String {
    fn pieces(list: &Value, text: &mut String) {
        for piece in list.as_array().into_iter().flatten() {
            if let Some(words) = piece["text"].as_str() {
                text.push_str(words);
            } else if let Some(name) = piece["value"].as_str() {
                text.push_str(&format!("{{{{{name}}}}}"));
            } else if let Some(name) = piece["part"][0].as_str() {
                text.push_str(&format!("{{{{#{name}}}}}"));
                pieces(&piece["part"][1], text);
                text.push_str(&format!("{{{{/{name}}}}}"));
            }
        }
    }
    let Some(known) = prompt.get("known") else { return setting_text(prompt) };
    let mut text = String::new();
    pieces(known, &mut text);
    text
}

/// Returns the program of a check.
pub fn preview_of_check(definitions: &Definitions, check: &Work) -> String {
    match definitions.of_check(check) {
        Ok(found) if found.value == "human" => "(a person is asked)".to_owned(),
        found => describe(found, check),
    }
}

/// Returns the program of some work.
pub fn preview_of_work(definitions: &Definitions, work: &Work) -> String {
    describe(definitions.of_work(work), work)
}

/// Describes a definition, and whether an approval binds only its revision.
fn describe(found: Result<Definition<'_>, ProblemKind>, work: &Work) -> String {
    let revision = found.as_ref().ok().and_then(|found| found.revision);
    let program = describe_value(found.map(|found| found.value), work);
    match revision {
        Some(revision) => format!("{program} (by revision {revision}: workers may define it differently)"),
        None => program,
    }
}

fn describe_value(found: Result<&Value, ProblemKind>, work: &Work) -> String {
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
        "program" => format!("{} (speaks to a remote service)", describe_process(&value["process"])),
        "http" => format!("{} {}", text("method"), text("url")),
        "agent" => {
            let worktree = if value["worktree"] == true { " (in a git worktree of its own)" } else { "" };
            let prompt = if value["prompt_to"] == "stdin" { " < PROMPT" } else { "" };
            format!("{}{prompt}{worktree}", describe_process(&value["process"]))
        }
        "process" => describe_process(value),
        other => format!("{other} {value}"),
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
    let words = command.as_array().into_iter().flatten().filter_map(Value::as_str);
    let words: Vec<Cow<'_, str>> = words.map(shell_word).collect();
    if words.is_empty() { "(what the image says)".to_owned() } else { words.join(" ") }
}
