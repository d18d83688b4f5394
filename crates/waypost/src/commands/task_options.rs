//! Options that describe a task, for `task add` and `task revise`. Does not access the store.

use clap::Args;
use clap::builder::PossibleValue;
use waypost_core::{
    BadId, Complexity, Dependency, DependencyRule, ExternalTaskRef, Json, Lock, LockMode, PlanId, Retry,
    TaskId, Work,
};

use waypost_cli::error::{Exit, Failure, Outcome};
use waypost_cli::files;
use waypost_cli::options::{enum_parser, seconds};

#[derive(Debug, Args)]
pub(crate) struct TaskOptions {
    /// Dependencies: tasks of this plan, of another plan, or of an agent's plan; comma-separated or repeated
    #[arg(long, alias = "after", value_name = "TASK|PLAN/TASK|AGENT:TASK", value_delimiter = ',')]
    depends_on: Vec<String>,
    // Earlier spellings of --depends-on.
    #[arg(long, value_name = "PLAN/TASK", hide = true)]
    on: Vec<String>,
    #[arg(long, value_name = "AGENT:TASK", hide = true)]
    on_agent: Vec<String>,
    /// Required outcome of the dependencies
    #[arg(long, value_parser = enum_parser::<DependencyRule>(rules()))]
    pub(crate) when: Option<DependencyRule>,
    /// Estimated complexity
    #[arg(long, value_parser = enum_parser::<Complexity>(["low", "medium", "high"].map(PossibleValue::new)))]
    pub(crate) complexity: Option<Complexity>,
    /// Notes for the worker; @FILE reads them from a file
    #[arg(long)]
    pub(crate) notes: Option<String>,
    /// Tool that the task is expected to use; repeatable
    #[arg(long = "tool", value_name = "TOOL", value_delimiter = ',')]
    pub(crate) tools: Vec<String>,
    /// Exclusive lock held while the task runs; repeatable
    #[arg(long = "lock", value_name = "KEY")]
    pub(crate) locks: Vec<String>,
    /// Shared lock held while the task runs; repeatable
    #[arg(long = "shared-lock", value_name = "KEY")]
    pub(crate) shared_locks: Vec<String>,
    /// Priority; higher runs first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) priority: Option<i32>,
    /// Executor that runs the task
    #[arg(long)]
    pub(crate) executor: Option<String>,
    /// Inputs for the executor: a JSON object; @FILE reads it from a file
    #[arg(long, value_name = "JSON")]
    pub(crate) inputs: Option<String>,
    /// Shape that the inputs must match
    #[arg(long)]
    pub(crate) shape: Option<String>,
    /// Executor of the check that must pass before the task is done
    #[arg(long, value_name = "EXECUTOR")]
    pub(crate) check_executor: Option<String>,
    /// Inputs for the check: a JSON object; @FILE reads it from a file
    #[arg(long, value_name = "JSON")]
    pub(crate) check_inputs: Option<String>,
    /// Shape that the check's inputs must match
    #[arg(long, value_name = "SHAPE")]
    pub(crate) check_shape: Option<String>,
    /// Total attempts and initial backoff, which doubles: 3 or 3:10s
    #[arg(long, value_name = "ATTEMPTS[:WAIT]", value_parser = retry)]
    pub(crate) retry: Option<Retry>,
    /// Time limit for one attempt, e.g. 90s, 15m, 2h
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) timeout: Option<u32>,
    /// Name under which dependent tasks receive the output
    #[arg(long, value_name = "NAME")]
    pub(crate) provides: Option<String>,
}

fn rules() -> [PossibleValue; 3] {
    [
        PossibleValue::new("all-done").alias("all_done").help("All are done"),
        PossibleValue::new("all-finished").alias("all_finished").help("All have finished, with any outcome"),
        PossibleValue::new("any-done").alias("any_done").help("At least one is done"),
    ]
}

impl TaskOptions {
    pub(crate) fn notes(&self) -> Outcome<Option<String>> {
        self.notes.as_deref().map(files::text_argument).transpose()
    }

    pub(crate) fn locks(&self) -> Vec<Lock> {
        let lock = |mode: LockMode| move |key: &String| Lock { key: key.clone(), mode };
        let exclusive = self.locks.iter().map(lock(LockMode::Exclusive));
        exclusive.chain(self.shared_locks.iter().map(lock(LockMode::Shared))).collect()
    }

    /// All dependencies. A task of this plan is found when the plan is written.
    pub(crate) fn dependencies(&self) -> Outcome<Vec<Dependency>> {
        let named = self.depends_on.iter().map(|text| {
            let task = TaskId::new(text.as_str());
            task.map(Dependency::Task).map_err(|error| malformed("--depends-on", text, &error.to_string()))
        });
        let in_plans = self.on.iter().map(|text| {
            in_plan(text)
                .unwrap_or_else(|| Err(malformed("--on", text, "there is no slash between plan and task")))
        });
        let of_agents = self.on_agent.iter().map(|text| {
            of_agent(text).unwrap_or_else(|| {
                Err(malformed("--on-agent", text, "there is no colon between agent and task"))
            })
        });
        named.chain(in_plans).chain(of_agents).collect()
    }

    /// The work. Omitted options keep the values of `before`.
    pub(crate) fn work(&self, before: Option<&Work>) -> Outcome<Option<Work>> {
        work("--executor", "--inputs", &self.executor, &self.inputs, &self.shape, before)
    }

    /// The check. Omitted options keep the values of `before`.
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

/// Parses PLAN/TASK, if there is a slash.
fn in_plan(text: &str) -> Option<Outcome<Dependency>> {
    let (plan, task) = text.split_once('/')?;
    Some(plan_task(text, plan, task))
}

fn plan_task(text: &str, plan: &str, task: &str) -> Outcome<Dependency> {
    let bad = |error: BadId| malformed("--on", text, &error.to_string());
    let (plan, task) = (PlanId::new(plan).map_err(bad)?, TaskId::new(task).map_err(bad)?);
    Ok(Dependency::External(Box::new(ExternalTaskRef { agent: None, plan: Some(plan), task })))
}

/// Parses AGENT:TASK, if there is a colon after a name.
fn of_agent(text: &str) -> Option<Outcome<Dependency>> {
    let (agent, task) = text.split_once(':').filter(|(agent, _)| !agent.is_empty())?;
    let task = TaskId::new(task).map_err(|error| malformed("--on-agent", text, &error.to_string()));
    let there = |task| ExternalTaskRef { agent: Some(agent.to_owned()), plan: None, task };
    Some(task.map(|task| Dependency::External(Box::new(there(task)))))
}

fn malformed(option: &str, text: &str, why: &str) -> Failure {
    let hint = "for example --depends-on kq3v9x0a2m/t4 or --depends-on implementer:t4";
    Failure::usage(format!("{option} {text:?}: {why}"), hint)
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
        let message = format!("inputs and shapes need an executor; {option} is missing");
        return Err(Failure::usage(message, format!("add {option} NAME")));
    };
    let inputs = match inputs {
        Some(inputs) => json(inputs_option, inputs)?,
        None => before.map_or_else(Json::empty_object, |work| work.inputs.clone()),
    };
    let shape = shape.clone().or_else(|| before.and_then(|work| work.shape.clone()));
    Ok(Some(Work { executor, inputs, shape }))
}

/// Parses a JSON value of the command line, or of a file given as `@FILE`.
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
