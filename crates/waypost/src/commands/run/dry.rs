//! What a run would do: the order, what can run together, and the programs. Runs nothing and writes nothing.

use serde_json::json;
use waypost_core::{Draft, Status, TaskSpec, Work, levels};
use waypost_engine::Config;
use waypost_engine::config::{Executor, Process, PromptTo, Worker};

use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::output::Look;
use crate::view::text;

/// What would be run for each task with work, one line each.
pub(super) fn commands(config: &Config, draft: &Draft) -> Vec<String> {
    let is_run = |spec: &TaskSpec| spec.work.is_some() || spec.check.is_some();
    let tasks = draft.tasks.iter().filter(|task| is_run(&task.spec) && !task.state.status.is_finished());
    tasks.map(|task| format!("{}: {}", task.spec.id, command(config, &task.spec))).collect()
}

/// The program of a task, as a person would type it.
fn command(config: &Config, spec: &TaskSpec) -> String {
    let work = spec.work.as_deref();
    let work = work.map_or_else(|| "(for an agent or a person)".to_owned(), |work| program(config, work));
    let Some(check) = &spec.check else { return work };
    let check = match (config.executors.get(&check.executor), config.checks.get(&check.executor)) {
        (None, Some(worker)) => done_by(worker),
        (Some(Executor::Human), _) => "(a person is asked)".to_owned(),
        (Some(_), _) | (None, None) => program(config, check),
    };
    format!("{work}, then check: {check}")
}

fn program(config: &Config, work: &Work) -> String {
    match config.executors.get(&work.executor) {
        None => format!("(no executor is called {})", work.executor),
        Some(Executor::Noop) => "(nothing)".to_owned(),
        Some(Executor::Human) => "(a person does it, and says so with `waypost answer`)".to_owned(),
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
        Worker::Process(process) => words(process),
        Worker::Container(container) => {
            let engine = container.engine.as_deref().unwrap_or("docker or podman");
            format!("{} (in a container of {}, by {engine})", quoted(&container.command), container.image)
        }
        Worker::Kubernetes(kubernetes) => {
            format!("{} (in a Kubernetes Job of {})", quoted(&kubernetes.command), kubernetes.image)
        }
        Worker::Slurm(slurm) => {
            let partition = slurm.partition.as_ref().map(|name| format!(", partition {name}"));
            format!("{} (in a Slurm job{})", words(&slurm.process), partition.unwrap_or_default())
        }
        Worker::Http(http) => format!("{} {}", http.method.word(), http.url),
        Worker::Agent(agent) => {
            let worktree = if agent.worktree { " (in a git worktree of its own)" } else { "" };
            let prompt = match agent.prompt_to {
                PromptTo::Stdin => " < PROMPT",
                PromptTo::Argument => "",
            };
            format!("{}{prompt}{worktree}", words(&agent.process))
        }
    }
}

fn words(process: &Process) -> String {
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

/// Prints the whole of it.
pub(super) fn print(context: &mut Context, config: &Config, draft: &Draft, jobs: Option<u32>) -> Outcome {
    let batches = levels(draft).map_err(|problem| Failure::invalid("the plan", &[(None, problem)]))?;
    let find = |id: &waypost_core::TaskId| draft.tasks.iter().find(|task| task.spec.id == *id);
    let is_parent =
        |id: &waypost_core::TaskId| draft.tasks.iter().any(|task| task.spec.parent.as_ref() == Some(id));
    let queue = Config::queue_name(&draft.spec.queue);
    let concurrency = config.queues.get(queue).map_or(0, |queue| queue.concurrency);
    let concurrency = jobs.map_or(concurrency, |jobs| jobs.min(concurrency));
    let mut shown = Vec::new();
    for batch in &batches {
        let tasks = batch.iter().filter(|id| !is_parent(id)).filter_map(find);
        let tasks: Vec<_> =
            tasks.filter(|task| !matches!(task.state.status, Status::Done | Status::Skipped)).collect();
        if !tasks.is_empty() {
            shown.push(tasks);
        }
    }
    if context.out.json {
        let batches: Vec<_> = shown
            .iter()
            .map(|tasks| {
                let one = |task: &&waypost_core::Task| {
                    json!({ "task": task.spec.id, "command": command(config, &task.spec), "locks": task.spec.locks })
                };
                tasks.iter().map(one).collect::<Vec<_>>()
            })
            .collect();
        return context.out.value(&json!({ "queue": queue, "concurrency": concurrency, "batches": batches }));
    }
    let total: usize = shown.iter().map(Vec::len).sum();
    context.out.line(format!(
        "{} in {}, at most {concurrency} at the same time (queue {queue})",
        text::count(total, "task"),
        text::count(shown.len(), "batch").replace("batchs", "batches")
    ));
    let columns = context.out.columns;
    for (number, tasks) in shown.iter().enumerate() {
        let heading = context.out.paint(&format!("batch {}", number + 1), Look::Bold);
        context.out.line(heading);
        for task in tasks {
            let locks: Vec<&str> = task.spec.locks.iter().map(|lock| lock.key.as_str()).collect();
            let locks =
                if locks.is_empty() { String::new() } else { format!("  [locks {}]", locks.join(", ")) };
            let line = format!("  {}  {}{locks}", task.spec.id, command(config, &task.spec));
            context.out.line(text::short_line(&line, columns));
        }
    }
    context.out.say("nothing was run and nothing was written");
    Ok(())
}
