//! `plan_edit`: small operations on a plan, applied in one version, all or none.

use serde_json::{Map, Value, json};
use strum::{EnumIter, IntoEnumIterator, IntoStaticStr};
use waypost_core::{Dependency, Json, Phase, Plan, PlanChanges, Position, Status, TaskChanges, TaskId};
use waypost_service::{EditOp, Guard, ServiceError, StatusChange, WriteReply};

use super::arguments::{Arguments, Problems, kind};
use super::{plan_facts, plan_ref, task_args};
use crate::reply_text;
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Maximum number of operations in a call.
pub(super) const OPS_MAX: usize = 1_000;
/// Maximum bytes of a list of ids in the reply.
const IDS_BYTES: usize = 120;

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
enum Op {
    Add,
    Revise,
    Remove,
    Move,
    Status,
    Hold,
    Unhold,
    Comment,
    Label,
    Assign,
    Plan,
}

const PLACE: [&str; 4] = ["before", "after", "first", "last"];
/// Fields of a task that `revise` does not accept: its id and position, and fields that others write.
const NOT_REVISED: [&str; 5] = ["id", "parent", "thinking", "foreign", "status"];
/// Fields that add or remove single dependencies, besides `depends_on`, which replaces all of them.
const DEPENDENCIES: [&str; 2] = ["depends_also_on", "depends_no_more_on"];
const STATUS: [&str; 6] = ["status", "result", "output", "error", "reason", "sure"];
const PLAN: [&str; 10] =
    ["title", "goal", "status", "owner", "queue", "token_budget", "body", "phase", "summary", "archived"];
/// The phases that an edit can set.
const PHASES: [Phase; 5] = [Phase::Active, Phase::Paused, Phase::Completed, Phase::Failed, Phase::Cancelled];

impl Op {
    /// The fields that the operation takes besides `op`.
    fn fields(self) -> Vec<&'static str> {
        match self {
            Self::Add => task_args::task_fields().chain(PLACE).collect(),
            Self::Revise => {
                let revised = task_args::task_fields().filter(|field| !NOT_REVISED.contains(field));
                revised.chain(DEPENDENCIES).chain(["task"]).collect()
            }
            Self::Remove => vec!["task", "detach"],
            Self::Move => [&["task", "parent"][..], &PLACE].concat(),
            Self::Status => [&["task"][..], &STATUS].concat(),
            Self::Hold => vec!["task", "reason"],
            Self::Unhold => vec!["task"],
            Self::Comment => vec!["task", "text"],
            Self::Label => vec!["task", "labels"],
            Self::Assign => vec!["task", "assignee"],
            Self::Plan => PLAN.to_vec(),
        }
    }
}

pub(super) fn run(call: &Call) -> Result<Answer, ToolError> {
    let mut wrong = Problems::default();
    let arguments =
        Arguments::noting_unknown(&call.arguments, &["plan", "ops", "known_version"], "", &mut wrong);
    let plan = wrong.take(plan_ref::plan(call, &arguments));
    let guard = Guard::from(wrong.take_or_default(arguments.number("known_version")));
    let edit = wrong.take(operations(&arguments).and_then(Edit::of));
    let (plan, edit) = match wrong.or((plan, edit))? {
        (Some(plan), Some(edit)) => (plan, edit),
        (None, _) | (_, None) => return Err(arguments.missing("ops")),
    };
    let ends = edit.ops.iter().any(|op| matches!(op, EditOp::SetPhase { phase, .. } if phase.is_finished()));
    let open = if ends { call.read(&plan, open_tasks)? } else { Vec::new() };
    let Edit { ops, places, .. } = edit;
    let place = |index: usize| places.get(index).cloned().unwrap_or_default();
    let edited = call.service().edit(&call.caller, &plan, ops, guard);
    let reply = edited.map_err(|error| match matches!(error, ServiceError::WrongOperations(_)) {
        true => ToolError::of_operations(error, place),
        false => call.refused(&plan, error),
    })?;
    call.remember(&plan)?;
    let resolved = plan_facts::resolved_waits(call, &plan)?;
    Ok(call.read(&plan, |plan| {
        let mut answer = answer(call, plan, &reply);
        say_cancelled(plan, &open, &mut answer);
        plan_facts::add_resolved(&resolved, &mut answer);
        answer
    })?)
}

fn operations<'a>(arguments: &Arguments<'a>) -> Result<&'a [Value], ToolError> {
    let ops = arguments.list("ops")?.ok_or_else(|| arguments.missing("ops"))?;
    if ops.is_empty() {
        return Err(ToolError::new("ops is an empty list", "give at least one operation"));
    }
    if ops.len() > OPS_MAX {
        let message = format!("{} operations exceed the limit of {OPS_MAX}", ops.len());
        return Err(ToolError::new(
            message,
            "send them in several calls, or use plan_export and plan_update",
        ));
    }
    Ok(ops)
}

fn open_tasks(plan: &Plan) -> Vec<TaskId> {
    let open = plan.tasks().map(|(task, _)| task).filter(|task| !task.state.status.is_finished());
    open.map(|task| task.spec.id.clone()).collect()
}

/// Adds the unfinished tasks that were cancelled with the plan.
fn say_cancelled(plan: &Plan, open: &[TaskId], answer: &mut Answer) {
    let is_cancelled =
        |task: &&TaskId| plan.task(task.as_str()).is_some_and(|task| task.state.status == Status::Cancelled);
    let names: Vec<String> = open.iter().filter(is_cancelled).map(ToString::to_string).collect();
    if names.is_empty() {
        return;
    }
    let ids = reply_text::ranges(&names, IDS_BYTES);
    let text = format!("; cancelled {} with it: {ids}", names.len());
    answer.add("cancelled", json!({ "count": names.len(), "tasks": ids }), &text);
}

fn answer(call: &Call, plan: &Plan, reply: &WriteReply) -> Answer {
    let version = reply.version;
    let mut answer =
        Answer { value: json!({ "plan": plan.id(), "version": version }), text: format!("v{version}") };
    if !reply.changed {
        answer.add("changed", false, ", unchanged");
    }
    let added: Vec<String> = reply.added.iter().map(ToString::to_string).collect();
    if !added.is_empty() {
        let ids = reply_text::ranges(&added, IDS_BYTES);
        answer.add("added", &ids, &format!("; added {ids}"));
    }
    answer.add_names("next", "; next ", &plan_facts::next_ids(plan));
    plan_facts::add_approval(plan, &mut answer);
    answer.add_notes(&plan_facts::notes(call, reply));
    answer
}

/// The operations of a call, as far as they are parsed.
#[derive(Default)]
struct Edit {
    ops: Vec<EditOp>,
    /// Where each of them is in the call; of tasks that are added together, the first.
    places: Vec<String>,
    /// Tasks added without a position, collected until another operation follows.
    adding: Vec<(String, Value)>,
}

impl Edit {
    fn of(ops: &[Value]) -> Result<Self, ToolError> {
        let (mut edit, mut wrong) = (Self::default(), Problems::default());
        for (at, op) in ops.iter().enumerate() {
            let taken = edit.take(at, op, &mut wrong);
            wrong.take(taken);
            edit.places.resize(edit.ops.len(), format!("ops[{at}]"));
        }
        let settled = edit.settle();
        wrong.take(settled);
        wrong.or(edit)
    }

    fn take(&mut self, at: usize, op: &Value, wrong: &mut Problems) -> Result<(), ToolError> {
        let within = format!("ops[{at}].");
        let Value::Object(fields) = op else {
            let message = format!("ops[{at}]: must be an object, not {}", kind(op));
            return Err(ToolError::new(message, "write {\"op\": \"revise\", \"task\": \"t1\", …}"));
        };
        let said = Map::from_iter(fields.get("op").map(|op| ("op".to_owned(), op.clone())));
        let said = Arguments::noting_unknown(&said, &["op"], within.as_str(), wrong);
        let op = said.one_of("op", Op::iter())?.ok_or_else(|| said.missing("op"))?;
        let mut fields = fields.clone();
        fields.shift_remove("op");
        let arguments = Arguments::noting_unknown(&fields, &op.fields(), within.as_str(), wrong);
        if op != Op::Add {
            self.settle()?;
        }
        match op {
            Op::Add => self.add(&fields, &arguments, at)?,
            Op::Revise => self.ops.push(revise(&arguments)?),
            Op::Remove => {
                let (task, drop_dependencies) = (task(&arguments, "task")?, arguments.flag("detach")?);
                self.ops.push(EditOp::RemoveTask { task, drop_dependencies });
            }
            Op::Move => self.ops.push(relocate(&arguments)?),
            Op::Status => self.ops.push(status(&arguments)?),
            Op::Hold => {
                let reason = arguments.text("reason")?.unwrap_or_default().to_owned();
                self.ops.push(EditOp::HoldTask { task: task(&arguments, "task")?, reason });
            }
            Op::Unhold => self.ops.push(EditOp::UnholdTask { task: task(&arguments, "task")? }),
            Op::Comment => {
                let text = arguments.needed("text")?.to_owned();
                self.ops.push(EditOp::CommentTask { task: task(&arguments, "task")?, text });
            }
            Op::Label => {
                let (task, labels) = (task(&arguments, "task")?, Some(arguments.texts("labels")?));
                self.ops.push(EditOp::LabelTask { task, labels, add: Vec::new(), remove: Vec::new() });
            }
            Op::Assign => {
                let assignee = arguments.text("assignee")?.unwrap_or_default().to_owned();
                self.ops.push(EditOp::AssignTask { task: task(&arguments, "task")?, assignee });
            }
            Op::Plan => self.ops.extend(of_plan(&arguments)?),
        }
        Ok(())
    }

    fn add(
        &mut self,
        fields: &Map<String, Value>,
        arguments: &Arguments<'_>,
        at: usize,
    ) -> Result<(), ToolError> {
        let mut task = fields.clone();
        task.retain(|name, _| task_args::task_fields().any(|known| known == name));
        let entry = (format!("ops[{at}]"), Value::Object(task));
        let place = place(arguments)?;
        if place == Position::Last {
            self.adding.push(entry);
            return Ok(());
        }
        self.settle()?;
        self.put(&[entry], place)
    }

    /// Adds the collected tasks together, so that they may depend on each other in any order.
    fn settle(&mut self) -> Result<(), ToolError> {
        let adding = std::mem::take(&mut self.adding);
        if adding.is_empty() { Ok(()) } else { self.put(&adding, Position::Last) }
    }

    fn put(&mut self, entries: &[(String, Value)], position: Position) -> Result<(), ToolError> {
        let tasks = task_args::read_added(entries)?;
        self.ops.push(EditOp::AddTasks { tasks, position });
        self.places.extend(entries.first().map(|(place, _)| place.clone()));
        Ok(())
    }
}

fn task(arguments: &Arguments<'_>, name: &str) -> Result<TaskId, ToolError> {
    TaskId::new(arguments.needed(name)?).map_err(|bad| arguments.bad(name, bad))
}

fn place(arguments: &Arguments<'_>) -> Result<Position, ToolError> {
    let (before, after) = (arguments.value("before").is_some(), arguments.value("after").is_some());
    match (before, after, arguments.flag("first")?, arguments.flag("last")?) {
        (false, false, false, _) => Ok(Position::Last),
        (true, false, false, false) => Ok(Position::Before(task(arguments, "before")?)),
        (false, true, false, false) => Ok(Position::After(task(arguments, "after")?)),
        (false, false, true, false) => Ok(Position::First),
        _ => Err(arguments.bad("before", "before, after, first and last exclude each other")),
    }
}

fn relocate(arguments: &Arguments<'_>) -> Result<EditOp, ToolError> {
    let parent = match (arguments.names("parent"), arguments.value("parent")) {
        (false, _) => None,
        (true, None) => Some(None),
        (true, Some(_)) => Some(Some(task(arguments, "parent")?)),
    };
    if parent.is_none() && PLACE.iter().all(|name| arguments.value(name).is_none()) {
        return Err(arguments.bad("task", "no target position is given"));
    }
    Ok(EditOp::MoveTask { task: task(arguments, "task")?, parent, position: place(arguments)? })
}

fn revise(arguments: &Arguments<'_>) -> Result<EditOp, ToolError> {
    // The code of a wrong value in a new task.
    let changes = changes(arguments).map_err(|error| error.with_fact("code", "invalid"))?;
    let task = task(arguments, "task")?;
    if changes == TaskChanges::default() && !arguments.has_unknown() {
        return Err(arguments.bad("task", format!("no changes to {task} are given")));
    }
    Ok(EditOp::ReviseTask { task, changes: Box::new(changes) })
}

fn changes(arguments: &Arguments<'_>) -> Result<TaskChanges, ToolError> {
    let mut wrong = Problems::default();
    let changes = TaskChanges {
        description: wrong.take_or_default(text_or_empty(arguments, "description")),
        depends_on: wrong.take_or_default(dependencies(arguments, "depends_on")),
        add_dependencies: wrong
            .take_or_default(dependencies(arguments, "depends_also_on"))
            .unwrap_or_default(),
        remove_dependencies: wrong
            .take_or_default(dependencies(arguments, "depends_no_more_on"))
            .unwrap_or_default(),
        when: wrong.take_or_default(arguments.native("when")),
        complexity: wrong.take_or_default(arguments.native_or_none("complexity")),
        notes: wrong.take_or_default(text_or_empty(arguments, "notes")),
        tools: wrong.take_or_default(arguments.native_or_none("tools")),
        skip: wrong.take_or_default(arguments.native("skip")),
        locks: wrong.take_or_default(arguments.native("locks")),
        work: wrong.take_or_default(arguments.native_or_none("work")),
        check: wrong.take_or_default(arguments.native_or_none("check")),
        retry: wrong.take_or_default(arguments.native_or_none("retry")),
        timeout_seconds: wrong.take_or_default(arguments.native_or_none("timeout_seconds")),
        priority: wrong.take_or_default(arguments.native("priority")),
        provides: wrong.take_or_default(arguments.native_or_none("provides")),
        ..TaskChanges::default()
    };
    wrong.or(changes)
}

/// A text that is given; `null` is an empty one.
fn text_or_empty(arguments: &Arguments<'_>, name: &str) -> Result<Option<String>, ToolError> {
    let given = arguments.names(name).then(|| arguments.text(name)).transpose()?;
    Ok(given.map(|text| text.unwrap_or_default().to_owned()))
}

fn dependencies(arguments: &Arguments<'_>, name: &str) -> Result<Option<Vec<Dependency>>, ToolError> {
    let Some(list) = arguments.list(name)? else { return Ok(None) };
    let read = |(at, value): (usize, &Value)| arguments.parse(&format!("{name}[{at}]"), value);
    list.iter().enumerate().map(read).collect::<Result<_, _>>().map(Some)
}

fn status(arguments: &Arguments<'_>) -> Result<EditOp, ToolError> {
    let wanted = arguments.one_of("status", Status::ALL)?.ok_or_else(|| arguments.missing("status"))?;
    let task = task(arguments, "task")?;
    let text = |name: &str| arguments.text(name).map(|text| text.map(str::to_owned));
    let (result, reason) = (text("result")?, text("reason")?);
    let status = match wanted {
        Status::Pending => StatusChange::Pending { reason: reason.unwrap_or_default() },
        Status::Running => StatusChange::Running,
        Status::Done => {
            let (output, sure) = (arguments.value("output").map(Json::of), arguments.flag("sure")?);
            StatusChange::Done { result, output, sure }
        }
        Status::Failed => StatusChange::Failed { error: arguments.needed("error")?.to_owned() },
        Status::Skipped => StatusChange::Skipped { reason },
        Status::Cancelled => StatusChange::Cancelled { reason: reason.unwrap_or_default() },
    };
    Ok(EditOp::SetStatus { task, status, take_over: false })
}

fn of_plan(arguments: &Arguments<'_>) -> Result<Vec<EditOp>, ToolError> {
    let text = |name: &str| text_or_empty(arguments, name);
    let mut wrong = Problems::default();
    let changes = PlanChanges {
        title: wrong.take_or_default(text("title")),
        goal: wrong.take_or_default(text("goal")),
        status: wrong.take_or_default(text("status")),
        owner: wrong.take_or_default(text("owner")),
        queue: wrong.take_or_default(text("queue")),
        token_budget: wrong.take_or_default(arguments.native_or_none("token_budget")),
        body: wrong.take_or_default(text("body")),
        foreign: None,
    };
    let changes = wrong.or(changes)?;
    let mut ops = Vec::new();
    if changes != PlanChanges::default() {
        ops.push(EditOp::RevisePlan(Box::new(changes)));
    }
    if let Some("draft" | "awaiting_approval") = arguments.name("phase")? {
        return Err(arguments.bad("phase", "use plan_start"));
    }
    if let Some(phase) = arguments.one_of("phase", PHASES)? {
        let summary = arguments.text("summary")?.unwrap_or_default().to_owned();
        ops.push(EditOp::SetPhase { phase, summary });
    }
    if let Some(archived) = arguments.value("archived") {
        let archived =
            archived.as_bool().ok_or_else(|| arguments.bad("archived", "must be true or false"))?;
        ops.push(EditOp::SetArchived(archived));
    }
    if ops.is_empty() {
        return Err(arguments.bad("op", "no changes to the plan are given"));
    }
    Ok(ops)
}
