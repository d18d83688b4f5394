//! The program that a task's work resolves to with this configuration, as a person would type it. Runs nothing.

use waypost_core::{Task, TaskSpec, Work};

use waypost_config::{Config, Executor, Process, PromptTo, Worker};

/// Shown for a task without work.
const FOR_NO_MACHINE: &str = "(for an agent or a person)";

/// Returns the program of a task and that of its check, as a person would type them.
pub fn preview(config: &Config, spec: &TaskSpec) -> String {
    let program = program(config, spec);
    let Some(check) = &spec.check else { return program };
    format!("{program}, then check: {}", preview_of_check(config, check))
}

fn program(config: &Config, spec: &TaskSpec) -> String {
    spec.work.as_deref().map_or_else(|| FOR_NO_MACHINE.to_owned(), |work| preview_of_work(config, work))
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
pub fn approval_preview(config: &Config, spec: &TaskSpec) -> ApprovalPreview {
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
        ("check", check.map(|check| preview_of_check(config, check)).unwrap_or_default()),
        ("check's inputs", check.map(inputs).unwrap_or_default()),
    ];
    let particulars = particulars.into_iter().filter(|(_, text)| !text.trim().is_empty()).collect();
    ApprovalPreview { program: program(config, spec), particulars }
}

/// Returns the program of a check.
pub fn preview_of_check(config: &Config, check: &Work) -> String {
    match (config.executors.get(&check.executor), config.checks.get(&check.executor)) {
        (None, Some(worker)) => done_by(worker),
        (Some(Executor::Human), _) => "(a person is asked)".to_owned(),
        (Some(_), _) | (None, None) => preview_of_work(config, check),
    }
}

/// Returns the program of some work.
pub fn preview_of_work(config: &Config, work: &Work) -> String {
    match config.executors.get(&work.executor) {
        None => format!("(no executor is called {})", work.executor),
        Some(Executor::Noop) => "(nothing)".to_owned(),
        Some(Executor::Human) => "(a person does it and reports with `waypost answer`)".to_owned(),
        Some(Executor::Worker(worker)) => done_by(worker),
        Some(Executor::Dispatch(workers)) => {
            let inputs = work.inputs.value();
            let name = inputs.get("subagent").and_then(|name| name.as_str()).unwrap_or_default().to_owned();
            workers.get(&name).map_or_else(|| format!("(no worker is called {name})"), done_by)
        }
    }
}

fn done_by(worker: &Worker) -> String {
    match worker {
        Worker::Process(process) => describe_process(process),
        Worker::Container(container) => {
            let engine = container.engine.as_deref().unwrap_or("docker or podman");
            format!("{} (in a container of {}, by {engine})", quoted(&container.command), container.image)
        }
        Worker::Kubernetes(kubernetes) => {
            format!("{} (in a Kubernetes Job of {})", quoted(&kubernetes.command), kubernetes.image)
        }
        Worker::Slurm(slurm) => {
            let partition = slurm.partition.as_ref().map(|name| format!(", partition {name}"));
            format!("{} (in a Slurm job{})", describe_process(&slurm.process), partition.unwrap_or_default())
        }
        Worker::Http(http) => format!("{} {}", http.method.as_str(), http.url),
        Worker::Agent(agent) => {
            let worktree = if agent.worktree { " (in a git worktree of its own)" } else { "" };
            let prompt = match agent.prompt_to {
                PromptTo::Stdin => " < PROMPT",
                PromptTo::Argument => "",
            };
            format!("{}{prompt}{worktree}", describe_process(&agent.process))
        }
    }
}

fn describe_process(process: &Process) -> String {
    let shell = if process.shell { "sh -c " } else { "" };
    let place =
        if process.directory.is_empty() { String::new() } else { format!(" (in {})", process.directory) };
    format!("{shell}{}{place}", quoted(&process.command))
}

fn quoted(command: &[String]) -> String {
    let plain = |word: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    if command.is_empty() {
        return "(what the image says)".to_owned();
    }
    let words: Vec<String> = command.iter().map(plain).collect();
    words.join(" ")
}
