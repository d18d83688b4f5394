//! What can be said of a task on a command line, for `task add` and `task revise`. Asks nothing of the store.

use clap::{Args, ValueEnum};
use waypost_core::{
    BadId, Complexity, Dependency, Elsewhere, Json, Lock, LockMode, PlanId, Retry, TaskId, When, Work,
};

use crate::error::{Exit, Failure, Outcome};
use crate::files;
use crate::options::seconds;

// What can be said of a task.
#[derive(Debug, Args)]
pub(crate) struct TaskOptions {
    /// What it waits for: tasks of this plan; several with commas or by repeating
    #[arg(long, value_name = "TASK", value_delimiter = ',')]
    pub(crate) after: Vec<String>,
    /// What it waits for in another plan
    #[arg(long, value_name = "PLAN/TASK")]
    pub(crate) on: Vec<String>,
    /// What it waits for in whatever plan an agent owns
    #[arg(long, value_name = "AGENT:TASK")]
    pub(crate) on_agent: Vec<String>,
    /// How those must have ended
    #[arg(long, value_enum)]
    pub(crate) when: Option<WhenWord>,
    /// The author's estimate
    #[arg(long, value_enum)]
    pub(crate) complexity: Option<ComplexityWord>,
    /// Free text for whoever does it; @FILE reads it from a file
    #[arg(long)]
    pub(crate) notes: Option<String>,
    /// A tool that is expected to be used; may be repeated
    #[arg(long = "tool", value_name = "TOOL", value_delimiter = ',')]
    pub(crate) tools: Vec<String>,
    /// A resource that nobody else may hold while it runs; may be repeated
    #[arg(long = "lock", value_name = "KEY")]
    pub(crate) locks: Vec<String>,
    /// A resource that others may share while it runs; may be repeated
    #[arg(long = "shared-lock", value_name = "KEY")]
    pub(crate) shared_locks: Vec<String>,
    /// Higher goes first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) priority: Option<i32>,
    /// The configured executor that runs it
    #[arg(long)]
    pub(crate) executor: Option<String>,
    /// The executor's inputs, a JSON object; @FILE reads it from a file
    #[arg(long, value_name = "JSON")]
    pub(crate) inputs: Option<String>,
    /// The configured shape that the inputs must have
    #[arg(long)]
    pub(crate) shape: Option<String>,
    /// The executor that must pass before done is believed
    #[arg(long, value_name = "EXECUTOR")]
    pub(crate) check_executor: Option<String>,
    /// The check's inputs, a JSON object; @FILE reads it from a file
    #[arg(long, value_name = "JSON")]
    pub(crate) check_inputs: Option<String>,
    /// The shape that the check's inputs must have
    #[arg(long, value_name = "SHAPE")]
    pub(crate) check_shape: Option<String>,
    /// Attempts in all, and the wait before the second one, which doubles: 3 or 3:10s
    #[arg(long, value_name = "ATTEMPTS[:WAIT]", value_parser = retry)]
    pub(crate) retry: Option<Retry>,
    /// How long one attempt may take: 90s, 15m, 2h
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) timeout: Option<u32>,
    /// The name under which those who depend on it receive its output
    #[arg(long, value_name = "NAME")]
    pub(crate) provides: Option<String>,
}

/// How the tasks that one waits for must have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenWord {
    /// All are done.
    #[value(alias = "all_done")]
    AllDone,
    /// All have finished, however.
    #[value(alias = "all_finished")]
    AllFinished,
    /// At least one is done.
    #[value(alias = "any_done")]
    AnyDone,
}

/// The author's estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ComplexityWord {
    /// One step.
    Low,
    /// Several steps.
    Medium,
    /// Much reasoning.
    High,
}

impl TaskOptions {
    /// How the tasks that it waits for must have ended.
    pub(crate) fn when(&self) -> Option<When> {
        self.when.map(|word| match word {
            WhenWord::AllDone => When::AllDone,
            WhenWord::AllFinished => When::AllFinished,
            WhenWord::AnyDone => When::AnyDone,
        })
    }

    /// The author's estimate.
    pub(crate) fn complexity(&self) -> Option<Complexity> {
        self.complexity.map(|word| match word {
            ComplexityWord::Low => Complexity::Low,
            ComplexityWord::Medium => Complexity::Medium,
            ComplexityWord::High => Complexity::High,
        })
    }

    /// Free text.
    pub(crate) fn notes(&self) -> Outcome<Option<String>> {
        self.notes.as_deref().map(files::text_argument).transpose()
    }

    /// All locks.
    pub(crate) fn locks(&self) -> Vec<Lock> {
        let lock = |mode: LockMode| move |key: &String| Lock { key: key.clone(), mode };
        let exclusive = self.locks.iter().map(lock(LockMode::Exclusive));
        exclusive.chain(self.shared_locks.iter().map(lock(LockMode::Shared))).collect()
    }

    /// What it waits for elsewhere.
    pub(crate) fn external_dependencies(&self) -> Outcome<Vec<Dependency>> {
        let wrong = |option: &str, text: &str, why: &str| {
            Failure::usage(
                format!("{option} {text:?}: {why}"),
                format!("for example {option} {}", example(option)),
            )
        };
        let id = |option: &'static str, text: &str, task: &str| {
            TaskId::new(task).map_err(|error: BadId| wrong(option, text, &error.to_string()))
        };
        let mut found = Vec::new();
        for text in &self.on {
            let (plan, task) = text
                .split_once('/')
                .ok_or_else(|| wrong("--on", text, "there is no slash between plan and task"))?;
            let plan = PlanId::new(plan).map_err(|error| wrong("--on", text, &error.to_string()))?;
            found.push(Elsewhere { agent: None, plan: Some(plan), task: id("--on", text, task)? });
        }
        for text in &self.on_agent {
            let (agent, task) = text
                .split_once(':')
                .filter(|(agent, _)| !agent.is_empty())
                .ok_or_else(|| wrong("--on-agent", text, "there is no colon between agent and task"))?;
            found.push(Elsewhere {
                agent: Some(agent.to_owned()),
                plan: None,
                task: id("--on-agent", text, task)?,
            });
        }
        Ok(found.into_iter().map(|there| Dependency::Elsewhere(Box::new(there))).collect())
    }

    /// The work, given what it was before.
    pub(crate) fn work(&self, before: Option<&Work>) -> Outcome<Option<Work>> {
        work("--executor", "--inputs", &self.executor, &self.inputs, &self.shape, before)
    }

    /// The check, given what it was before.
    pub(crate) fn check(&self, before: Option<&Work>) -> Outcome<Option<Work>> {
        work(
            "--check-executor",
            "--check-inputs",
            &self.check_executor,
            &self.check_inputs,
            &self.check_shape,
            before,
        )
    }
}

fn example(option: &str) -> &'static str {
    if option == "--on" { "kq3v9x0a2m/t4" } else { "implementer:t4" }
}

fn work(
    option: &str,
    inputs_option: &str,
    executor: &Option<String>,
    inputs: &Option<String>,
    shape: &Option<String>,
    before: Option<&Work>,
) -> Outcome<Option<Work>> {
    if executor.is_none() && inputs.is_none() && shape.is_none() {
        return Ok(None);
    }
    let Some(executor) = executor.clone().or_else(|| before.map(|work| work.executor.clone())) else {
        let message = format!("inputs and shapes are for an executor, and {option} names none");
        return Err(Failure::usage(message, format!("say {option} NAME")));
    };
    let inputs = match inputs {
        Some(inputs) => json(inputs_option, inputs)?,
        None => before.map_or_else(Json::empty_object, |work| work.inputs.clone()),
    };
    let shape = shape.clone().or_else(|| before.and_then(|work| work.shape.clone()));
    Ok(Some(Work { executor, inputs, shape }))
}

/// A JSON value given on the command line, or in a file as `@FILE`.
pub(crate) fn json(option: &str, text: &str) -> Outcome<Json> {
    Json::parse(&files::text_argument(text)?).map_err(|error| {
        let hint = "write one JSON value, or @FILE to read it from a file";
        Failure::new(Exit::Usage, format!("{option} is not JSON: {error}"), hint)
    })
}

fn retry(text: &str) -> Result<Retry, String> {
    const BACKOFF_SECONDS_MAX: u32 = 3_600;
    let (attempts, wait) = text.split_once(':').unwrap_or((text, "0"));
    let attempts =
        attempts.parse().map_err(|_| "write a number of attempts such as 3, or 3:10s".to_owned())?;
    if attempts == 0 {
        return Err("there is at least one attempt".to_owned());
    }
    Ok(Retry { attempts, backoff_seconds: seconds(wait)?, backoff_seconds_max: BACKOFF_SECONDS_MAX })
}
