//! Edits of a plan: small operations in one version, the whole content, or an earlier version.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use waypost_core::{
    Complexity, Dependency, DependencyRule, FORMAT, Lock, Position, Problem as PlanProblem, ProblemKind,
    Retry, TaskChanges, TaskId, TaskSpec, Work,
};
use waypost_formats::{WrongValue, read_part, wrong_values};
use waypost_service::{EditOp, NewTask, ServiceError, SourceText, awaits_approval};
use waypost_text::plain_parse_error;

use super::extract::{Write, null_clears, nullable};
use super::plans::{TEXT_NAME, parse_format};
use super::response::{Problem, Reply, Versioned, written};
use super::state::Api;

/// Maximum number of operations in one request.
const OPERATIONS_MAX: usize = 1_000;

/// The hint for a value that does not fit its field.
const WRONG_VALUE: &str = "write a value of the expected type";

/// The fields of a task that is added.
const NEW_TASK_FIELDS: [&str; 17] = [
    "id",
    "description",
    "parent",
    "depends_on",
    "when",
    "complexity",
    "notes",
    "tools",
    "skip",
    "locks",
    "work",
    "check",
    "retry",
    "timeout_seconds",
    "priority",
    "provides",
    "foreign",
];

/// Operations that become one version, all or none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edits {
    #[schemars(with = "Vec<Operation>")]
    operations: Vec<Value>,
}

/// The names of the operations.
const OPERATIONS: [&str; 9] =
    ["add", "revise", "remove", "move", "connect", "disconnect", "comment", "label", "assign"];

// Callers name it in `op`; see `read_operation`.
/// One small change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
#[schemars(tag = "op")]
pub(crate) enum Operation {
    /// Adds a task in the native format; without an id it gets the next free one. Goes last unless a place is named.
    #[schemars(title = "AddTask")]
    Add {
        task: Value,
        #[schemars(with = "Option<String>")]
        before: Option<TaskId>,
        #[schemars(with = "Option<String>")]
        after: Option<TaskId>,
        #[serde(default)]
        first: bool,
        #[serde(default)]
        last: bool,
    },
    /// Changes what is named.
    #[schemars(title = "ReviseTask")]
    Revise {
        #[schemars(with = "String")]
        task: TaskId,
        set: Box<Set>,
    },
    /// Removes a task; `detach` also removes dependencies on it.
    #[schemars(title = "RemoveTask")]
    Remove {
        #[schemars(with = "String")]
        task: TaskId,
        #[serde(default)]
        detach: bool,
    },
    /// Moves a task to another place or another parent, where it goes last unless a place is named; a parent of null makes
    /// it a root.
    #[schemars(title = "MoveTask")]
    Move {
        #[schemars(with = "String")]
        task: TaskId,
        #[schemars(with = "Option<String>")]
        before: Option<TaskId>,
        #[schemars(with = "Option<String>")]
        after: Option<TaskId>,
        #[serde(default)]
        first: bool,
        #[serde(default)]
        last: bool,
        #[schemars(with = "Option<String>")]
        #[serde(default, deserialize_with = "nullable")]
        parent: Option<Option<TaskId>>,
    },
    /// Makes `to` depend on `from`.
    #[schemars(title = "ConnectTasks")]
    Connect {
        #[schemars(with = "String")]
        from: TaskId,
        #[schemars(with = "String")]
        to: TaskId,
    },
    /// Removes the dependency of `to` on `from`.
    #[schemars(title = "DisconnectTasks")]
    Disconnect {
        #[schemars(with = "String")]
        from: TaskId,
        #[schemars(with = "String")]
        to: TaskId,
    },
    /// Comments on a task, for those who work on it.
    Comment {
        #[schemars(with = "String")]
        task: TaskId,
        text: String,
    },
    /// Changes the labels of a task: `labels` sets all of them, `add` and `remove` leave the others.
    Label {
        #[schemars(with = "String")]
        task: TaskId,
        #[serde(default)]
        labels: Option<Vec<String>>,
        #[serde(default)]
        add: Vec<String>,
        #[serde(default)]
        remove: Vec<String>,
    },
    /// Sets who is to take care of a task; an empty text for nobody.
    Assign {
        #[schemars(with = "String")]
        task: TaskId,
        assignee: String,
    },
}

/// Changes of a task; `null` clears a field.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "TaskChanges")]
#[serde(deny_unknown_fields)]
pub(crate) struct Set {
    #[serde(default, deserialize_with = "null_clears")]
    description: Option<String>,
    #[serde(default, deserialize_with = "null_clears")]
    notes: Option<String>,
    #[schemars(with = "Option<Vec<Value>>")]
    #[serde(default, deserialize_with = "null_clears")]
    depends_on: Option<Vec<Dependency>>,
    #[schemars(with = "Option<Value>")]
    #[serde(default, deserialize_with = "null_clears")]
    when: Option<DependencyRule>,
    #[schemars(with = "Option<String>")]
    #[serde(default, deserialize_with = "nullable")]
    complexity: Option<Option<Complexity>>,
    #[schemars(with = "Option<Vec<String>>")]
    #[serde(default, deserialize_with = "nullable")]
    tools: Option<Option<Vec<String>>>,
    #[serde(default, deserialize_with = "null_clears")]
    skip: Option<bool>,
    #[schemars(with = "Option<Vec<Value>>")]
    #[serde(default, deserialize_with = "null_clears")]
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
    #[serde(default, deserialize_with = "null_clears")]
    priority: Option<i32>,
    #[schemars(with = "Option<String>")]
    #[serde(default, deserialize_with = "nullable")]
    provides: Option<Option<String>>,
}

impl From<Set> for TaskChanges {
    fn from(set: Set) -> Self {
        Self {
            description: set.description,
            notes: set.notes,
            depends_on: set.depends_on,
            when: set.when,
            complexity: set.complexity,
            tools: set.tools,
            skip: set.skip,
            locks: set.locks,
            work: set.work,
            check: set.check,
            retry: set.retry,
            timeout_seconds: set.timeout_seconds,
            priority: set.priority,
            provides: set.provides,
            ..Self::default()
        }
    }
}

/// `POST /plans/{plan}/edits`
pub(crate) fn edit(api: &Api, Write { plan: id, guard, by, body: edits }: Write<Edits>) -> Reply {
    let count = edits.operations.len();
    if !(1..=OPERATIONS_MAX).contains(&count) {
        let hint = format!("send 1 to {OPERATIONS_MAX} operations");
        return Err(Problem::bad(format!("operations: {count} of them"), hint));
    }
    let ops = edits.operations.into_iter().enumerate();
    let ops = ops.map(|(number, operation)| {
        let at = format!("operations[{number}]");
        edit_op(read_operation(operation, &at)?, &at)
    });
    let (ops, wrong): (Vec<_>, Vec<_>) = ops.partition(Result::is_ok);
    if !wrong.is_empty() {
        return Err(Problem::of_operations(wrong.into_iter().filter_map(Result::err).collect()));
    }
    let ops = ops.into_iter().filter_map(Result::ok).collect();
    let reply = api.service.edit(&by, &id, ops, guard)?;
    let mut value = written(&reply);
    value["added"] = json!(reply.added);
    if api.service.read(&id, awaits_approval)? {
        value["awaits_approval"] = json!(true);
    }
    Ok(Versioned::at(value, reply.version))
}

/// Reads an operation. The parser knows the place of a wrong value only if the name of the operation encloses the other
/// fields, so they are put below it.
fn read_operation(operation: Value, at: &str) -> Result<Operation, Problem> {
    let see = "see /api/v1/openapi.json";
    let Value::Object(mut fields) = operation else {
        return Err(Problem::bad(format!("{at} must be an object"), see));
    };
    let names = OPERATIONS.join(", ");
    let op = match fields.shift_remove("op") {
        Some(Value::String(op)) if OPERATIONS.contains(&op.as_str()) => op,
        Some(Value::String(op)) => {
            return Err(Problem::bad(format!("{at}.op cannot be {op:?}"), format!("use one of {names}")));
        }
        Some(_) => return Err(Problem::bad(format!("{at}.op must be text"), format!("use one of {names}"))),
        None => return Err(Problem::bad(format!("{at}.op is missing"), format!("use one of {names}"))),
    };
    let set = fields.get("set").cloned();
    serde_path_to_error::deserialize(json!({ op.as_str(): fields })).map_err(|error| {
        let (path, message) = (error.path().to_string(), error.inner().to_string());
        let below = path.strip_prefix(op.as_str()).unwrap_or_default();
        let words = plain_parse_error(&format!("{at}{below}"), &message);
        match below.starts_with(".set.") && !message.starts_with("unknown field") {
            // Wrong values of a task, all of them, as in a new one.
            true => {
                let found = wrong_values::<Set>(set.unwrap_or_default()).into_iter();
                let named = found.map(|WrongValue { path, words }| match words {
                    Some(words) => (format!("{at}.set.{path}: {words}"), WRONG_VALUE.to_owned()),
                    None => (format!("{at}.set.{path} is missing"), format!("give {path}")),
                });
                let named: Vec<_> = named.collect();
                Problem::invalid(if named.is_empty() { vec![(words, WRONG_VALUE.to_owned())] } else { named })
            }
            false => Problem::bad(words, see),
        }
    })
}

fn edit_op(operation: Operation, at: &str) -> Result<EditOp, Problem> {
    let revise = |task, changes| EditOp::ReviseTask { task, changes: Box::new(changes) };
    Ok(match operation {
        Operation::Add { task, before, after, first, last } => {
            let position = position(before, after, (first, last), at)?;
            EditOp::AddTasks { tasks: vec![new_task(task, at)?], position: position.unwrap_or_default() }
        }
        Operation::Revise { task, set } => match TaskChanges::from(*set) {
            nothing if nothing == TaskChanges::default() => {
                let detail = format!("{at}.set: no changes to {task} are given");
                return Err(Problem::bad(detail, "name the fields to change"));
            }
            changes => revise(task, changes),
        },
        Operation::Remove { task, detach } => EditOp::RemoveTask { task, drop_dependencies: detach },
        Operation::Move { task, before, after, first, last, parent } => {
            let position = position(before, after, (first, last), at)?;
            if position.is_none() && parent.is_none() {
                let hint = "send one of `before`, `after`, `first`, `last` and `parent`";
                return Err(Problem::bad(format!("{at}: no target position is given"), hint));
            }
            EditOp::MoveTask { task, parent, position: position.unwrap_or_default() }
        }
        Operation::Connect { from, to } => {
            let add_dependencies = vec![Dependency::Task(from)];
            revise(to, TaskChanges { add_dependencies, ..TaskChanges::default() })
        }
        Operation::Disconnect { from, to } => {
            let remove_dependencies = vec![Dependency::Task(from)];
            revise(to, TaskChanges { remove_dependencies, ..TaskChanges::default() })
        }
        Operation::Comment { task, text } => EditOp::CommentTask { task, text },
        Operation::Label { task, labels, add, remove } => EditOp::LabelTask { task, labels, add, remove },
        Operation::Assign { task, assignee } => EditOp::AssignTask { task, assignee },
    })
}

fn position(
    before: Option<TaskId>,
    after: Option<TaskId>,
    (first, last): (bool, bool),
    at: &str,
) -> Result<Option<Position>, Problem> {
    match (before, after, first, last) {
        (None, None, false, false) => Ok(None),
        (None, None, false, true) => Ok(Some(Position::Last)),
        (None, None, true, false) => Ok(Some(Position::First)),
        (Some(before), None, false, false) => Ok(Some(Position::Before(before))),
        (None, Some(after), false, false) => Ok(Some(Position::After(after))),
        (_, _, _, _) => Err(Problem::bad(
            format!("{at} names several places"),
            "send one of `before`, `after`, `first` and `last`",
        )),
    }
}

/// Parses a task in the native format. Only the id may be missing.
fn new_task(mut task: Value, at: &str) -> Result<NewTask, Problem> {
    let Value::Object(fields) = &mut task else {
        return Err(Problem::bad(format!("{at}.task must be an object"), "send {\"description\": …}"));
    };
    // The format keeps fields that it does not know; here they are mistakes, and a lost `depends_on` would be one.
    if let Some(unknown) = fields.keys().find(|name| !NEW_TASK_FIELDS.contains(&name.as_str())) {
        let detail = format!("{at}.task.{unknown} is not a field of a new task");
        return Err(Problem::bad(detail, format!("one of {}", NEW_TASK_FIELDS.join(", "))));
    }
    let is_unnamed = fields.get("id").is_none_or(Value::is_null);
    if is_unnamed {
        // A placeholder: the service chooses the id.
        fields.insert("id".to_owned(), json!("new"));
    }
    let is_blank = |name: &str| {
        fields.get(name).is_none_or(|value| value.as_str().is_some_and(|text| text.trim().is_empty()))
    };
    if is_unnamed && is_blank("description") {
        let words = format!("{at}.task.description is missing");
        return Err(Problem::invalid(vec![(words, "describe what is to be done".to_owned())]));
    }
    let spec = read_task(&task, at)?;
    Ok(if is_unnamed { NewTask::unnamed(spec) } else { NewTask::named(spec) })
}

fn read_task(task: &Value, at: &str) -> Result<TaskSpec, Problem> {
    let text = json!({ "format": FORMAT, "tasks": [task] }).to_string();
    let reading =
        read_part(&text).map_err(|error| ServiceError::Unreadable { name: TEXT_NAME.to_owned(), error })?;
    let problems = reading.problems;
    let mut tasks = reading.drafts.into_iter().flat_map(|draft| draft.tasks);
    match tasks.next().filter(|_| problems.is_empty()) {
        Some(task) => Ok(task.spec),
        None => {
            let placed = |problem: &PlanProblem| {
                let words = if let ProblemKind::WrongType { field, detail } = &problem.wrong {
                    format!("{at}.task.{field}: {detail}")
                } else {
                    format!("{at}.task: {}", problem.wrong)
                };
                (words, problem.hint())
            };
            Err(Problem::invalid(problems.iter().map(placed).collect()))
        }
    }
}

/// The whole content of a plan in any format.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanContent {
    text: String,
    format: Option<String>,
}

/// `PUT /plans/{plan}/content`
pub(crate) fn replace(api: &Api, Write { plan: id, guard, by, body: content }: Write<PlanContent>) -> Reply {
    let format = parse_format(content.format.as_deref())?;
    let source = SourceText { text: content.text, format, file_name: None, name: TEXT_NAME.to_owned() };
    let reply = api.service.update(&by, &id, source, guard)?;
    let mut value = written(&reply.written);
    value["changes"] = json!(reply.changes);
    value["again"] = json!(reply.again);
    value["approval_voided"] = json!(reply.approval_voided);
    let notes = reply.written.notes().into_iter().chain(reply.notes);
    value["notes"] = notes.collect();
    Ok(Versioned::at(value, reply.written.version))
}

/// Which version is to be restored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestoreBody {
    version: u64,
}

/// `POST /plans/{plan}/restore`
pub(crate) fn restore(api: &Api, Write { plan: id, guard, by, body }: Write<RestoreBody>) -> Reply {
    let reply = api.service.restore(&by, &id, body.version, guard)?;
    Ok(Versioned::written(&reply))
}
