//! Changes of a plan's tasks: small operations in one version, the whole content, an earlier version.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use waypost_core::{
    Command, Complexity, Dependency, Lock, Plan, Retry, TaskChanges, TaskId, TaskSpec, When, Where, Work,
};
use waypost_formats::{Dialect, NoUpdate, Written, update};

use super::response::{Problem, Versioned};
use super::extract::{Body, IfMatch, PlanPath, Writer, nullable};
use super::{Api, run_blocking};

/// Operations in one request.
const OPERATIONS_MAX: usize = 1_000;

/// Operations that become one version, all or none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edits {
    operations: Vec<Operation>,
}

/// One small change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Operation {
    /// Adds a task, as the native format has it; without an id it gets one.
    Add {
        task: Value,
        #[schemars(with = "Option<String>")]
        before: Option<TaskId>,
        #[schemars(with = "Option<String>")]
        after: Option<TaskId>,
    },
    /// Changes what is named.
    Revise {
        #[schemars(with = "String")]
        task: TaskId,
        set: Box<Set>,
    },
    /// Takes a task out; `detach` lets those who depend on it forget it.
    Remove {
        #[schemars(with = "String")]
        task: TaskId,
        #[serde(default)]
        detach: bool,
    },
    /// Gives a task another place, or another parent; a parent of nothing makes it a root.
    Move {
        #[schemars(with = "String")]
        task: TaskId,
        #[schemars(with = "Option<String>")]
        before: Option<TaskId>,
        #[schemars(with = "Option<String>")]
        after: Option<TaskId>,
        #[schemars(with = "Option<String>")]
        #[serde(default, deserialize_with = "nullable")]
        parent: Option<Option<TaskId>>,
    },
    /// Lets `to` depend on `from`.
    Connect {
        #[schemars(with = "String")]
        from: TaskId,
        #[schemars(with = "String")]
        to: TaskId,
    },
    /// Lets `to` depend on `from` no more.
    Disconnect {
        #[schemars(with = "String")]
        from: TaskId,
        #[schemars(with = "String")]
        to: TaskId,
    },
}

/// What is changed of a task. What is `null` is taken away.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Set {
    description: Option<String>,
    notes: Option<String>,
    #[schemars(with = "Option<Vec<Value>>")]
    depends_on: Option<Vec<Dependency>>,
    #[schemars(with = "Option<Value>")]
    when: Option<When>,
    #[schemars(with = "Option<String>")]
    #[serde(default, deserialize_with = "nullable")]
    complexity: Option<Option<Complexity>>,
    #[schemars(with = "Option<Vec<String>>")]
    #[serde(default, deserialize_with = "nullable")]
    tools: Option<Option<Vec<String>>>,
    skip: Option<bool>,
    #[schemars(with = "Option<Vec<Value>>")]
    locks: Option<Vec<Lock>>,
    #[schemars(with = "Option<Value>")]
    #[serde(default, deserialize_with = "nullable")]
    work: Option<Option<Work>>,
    #[schemars(with = "Option<Value>")]
    #[serde(default, deserialize_with = "nullable")]
    check: Option<Option<Work>>,
    #[schemars(with = "Option<Value>")]
    #[serde(default, deserialize_with = "nullable")]
    retry: Option<Option<Retry>>,
    #[schemars(with = "Option<u32>")]
    #[serde(default, deserialize_with = "nullable")]
    timeout_seconds: Option<Option<u32>>,
    priority: Option<i32>,
    #[schemars(with = "Option<String>")]
    #[serde(default, deserialize_with = "nullable")]
    provides: Option<Option<String>>,
}

impl From<Set> for TaskChanges {
    fn from(set: Set) -> Self {
        let Set {
            description,
            notes,
            depends_on,
            when,
            complexity,
            tools,
            skip,
            locks,
            work,
            check,
            retry,
            ..
        } = set;
        let (timeout_seconds, priority, provides) = (set.timeout_seconds, set.priority, set.provides);
        Self {
            description,
            notes,
            depends_on,
            when,
            complexity,
            tools,
            skip,
            locks,
            work,
            check,
            retry,
            timeout_seconds,
            priority,
            provides,
            ..Self::default()
        }
    }
}

/// `POST /plans/{plan}/edits`
pub(crate) async fn edit(
    State(api): State<Arc<Api>>,
    PlanPath(id): PlanPath,
    IfMatch(known): IfMatch,
    writer: Writer,
    Body(edits): Body<Edits>,
) -> Result<Versioned<Value>, Problem> {
    let count = edits.operations.len();
    if !(1..=OPERATIONS_MAX).contains(&count) {
        return Err(Problem::bad(format!("{count} operations: send 1 to {OPERATIONS_MAX}"), ""));
    }
    run_blocking(api, move |api| {
        let (commands, added) = api.plans.look(&id, |plan| commands(plan, edits.operations))??;
        let committed = api.write(&writer.0, &id, commands, known)?;
        Ok(Versioned::at(json!({ "id": id, "version": committed.version, "added": added }), committed.version))
    })
    .await
}

/// The commands of a list of operations, and the ids of the tasks that they add.
fn commands(plan: &Plan, operations: Vec<Operation>) -> Result<(Vec<Command>, Vec<TaskId>), Problem> {
    let (mut commands, mut added) = (Vec::new(), Vec::new());
    for (number, operation) in operations.into_iter().enumerate() {
        let place = format!("operations[{number}]");
        commands.push(match operation {
            Operation::Add { task, before, after } => {
                let spec = new_task(plan, task, &added, &place)?;
                added.push(spec.id.clone());
                Command::AddTasks { tasks: vec![spec], place: beside(before, after, &place)? }
            }
            Operation::Revise { task, set } => {
                Command::ReviseTask { task, changes: Box::new(TaskChanges::from(*set)) }
            }
            Operation::Remove { task, detach } => Command::RemoveTask { task, detach },
            Operation::Move { task, before, after, parent } => {
                Command::MoveTask { task, parent, place: beside(before, after, &place)? }
            }
            Operation::Connect { from, to } => {
                let changes =
                    TaskChanges { depends_also_on: vec![Dependency::Task(from)], ..TaskChanges::default() };
                Command::ReviseTask { task: to, changes: Box::new(changes) }
            }
            Operation::Disconnect { from, to } => {
                let changes = TaskChanges {
                    depends_no_more_on: vec![Dependency::Task(from)],
                    ..TaskChanges::default()
                };
                Command::ReviseTask { task: to, changes: Box::new(changes) }
            }
        });
    }
    Ok((commands, added))
}

fn beside(before: Option<TaskId>, after: Option<TaskId>, place: &str) -> Result<Where, Problem> {
    match (before, after) {
        (None, None) => Ok(Where::Last),
        (Some(before), None) => Ok(Where::Before(before)),
        (None, Some(after)) => Ok(Where::After(after)),
        (Some(_), Some(_)) => {
            Err(Problem::bad(format!("{place}: both before and after"), "name one of them"))
        }
    }
}

/// A task as the native format has it; without an id it gets the next free one.
fn new_task(plan: &Plan, mut task: Value, added: &[TaskId], place: &str) -> Result<TaskSpec, Problem> {
    let Value::Object(fields) = &mut task else {
        return Err(Problem::bad(format!("{place}.task must be an object"), "write {\"description\": …}"));
    };
    if fields.get("id").is_none_or(Value::is_null) {
        let taken: BTreeSet<&str> = added.iter().map(TaskId::as_str).collect();
        let id = plan.free_task_ids().find(|id| !taken.contains(id.as_str()));
        fields.insert("id".to_owned(), json!(id));
    }
    serde_json::from_value(task)
        .map_err(|error| Problem::bad(format!("{place}.task: {error}"), "see docs/formats/native.md"))
}

/// The whole content of a plan in any format.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Content {
    text: String,
    format: Option<String>,
}

/// `PUT /plans/{plan}/content`
pub(crate) async fn replace(
    State(api): State<Arc<Api>>,
    PlanPath(id): PlanPath,
    IfMatch(known): IfMatch,
    writer: Writer,
    Body(content): Body<Content>,
) -> Result<Versioned<Value>, Problem> {
    let dialect = content.format.as_deref().map(str::parse::<Dialect>).transpose();
    let dialect =
        dialect.map_err(|error| Problem::bad(error.to_string(), "leave it out to have it found out"))?;
    run_blocking(api, move |api| {
        let before = api.plans.look(&id, Plan::to_draft)?;
        let written = Written { text: &content.text, dialect, file_name: None, name: "the text" };
        let update = update(written, &before).map_err(|error| match error {
            NoUpdate::Invalid(problems) => Problem::invalid("the text is no sound plan", &problems),
            other => Problem::bad(other.to_string(), "mend the text, or name its format"),
        })?;
        let committed = api.write(&writer.0, &id, vec![update.command], known)?;
        Ok(Versioned::at(
            json!({ "id": id, "version": committed.version, "notes": update.notes }),
            committed.version,
        ))
    })
    .await
}

/// Which version is to be restored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestoreBody {
    version: u64,
}

/// `POST /plans/{plan}/restore`
pub(crate) async fn restore(
    State(api): State<Arc<Api>>,
    PlanPath(id): PlanPath,
    IfMatch(known): IfMatch,
    writer: Writer,
    Body(earlier): Body<RestoreBody>,
) -> Result<Versioned<Value>, Problem> {
    run_blocking(api, move |api| {
        let draft = api.plans.at_version(&id, earlier.version)?.to_draft();
        let committed = api.write(&writer.0, &id, vec![Command::Replace(Box::new(draft))], known)?;
        Ok(Versioned::at(json!({ "id": id, "version": committed.version }), committed.version))
    })
    .await
}
