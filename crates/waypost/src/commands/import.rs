//! `waypost import`: imports plans from files and folders of any format. All input is read and checked before the first
//! write. A file with a problem is left out as a whole and reported.

mod folder;
mod repair;

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use waypost_core::{PlanId, Problem, Status, Task, TaskId, validate};
use waypost_formats::Dialect;
use waypost_formats::frctl::is_index_line;
use waypost_service::admission::forbids_writing;
use waypost_service::{Caller, CreateOptions, ImportDraft, Imported, approval_note};
use waypost_store::PlanStore;

use self::folder::Sources;
use super::new::plan_id;
use waypost_cli::context::Context;
use waypost_cli::error::{Exit, Failure, Outcome};
use waypost_cli::options::input_format;
use waypost_cli::plan_input::Source;
use waypost_cli::runner::typeable;
use waypost_cli::view::text;

/// Maximum number of names in a note.
const NAMES_MAX: usize = 10;

const EXAMPLES: &str = "\
The format is detected. Known folders: .clido, .frctl, .jaato, a docker-agent store of plans, Backlog.md's \
backlog/tasks. A plan keeps its id unless that id is taken; plans that were imported before and have not \
changed since are skipped.

Examples:
  waypost import plan.json
  waypost import .clido/plans
  waypost import backlog
  generate | waypost import - --id nightly
  waypost import old.json --repair";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Import {
    /// Files or folders; - is standard input
    #[arg(required = true, value_name = "FILE|DIR|-")]
    paths: Vec<String>,
    /// Input format [default: detect]
    #[arg(long, value_name = "FORMAT", value_parser = input_format())]
    format: Option<Dialect>,
    /// Id for a single plan [default: its own id, or a new one]
    #[arg(long)]
    id: Option<String>,
    /// Agent that owns the imported plans [default: the owner that the file names]
    #[arg(long, value_name = "NAME", value_parser = super::mcp::agent)]
    owner: Option<String>,
    /// Import nothing unless everything can be imported exactly
    #[arg(long)]
    strict: bool,
    /// Drop dangling references (unknown dependencies, missing parents) and list them
    #[arg(long)]
    repair: bool,
}

/// A plan that was read, and its source.
struct Read {
    from: String,
    text: ImportDraft,
}

impl Import {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let mut found = Sources::default();
        for path in &self.paths {
            if path != "-" && Path::new(path).is_dir() {
                folder::read(context, Path::new(path), self.format, &mut found)?;
                continue;
            }
            match Source::file(path, self.format) {
                Ok(source) => found.sources.push(source),
                Err(failure) if failure.exit == Exit::Invalid => found.left.push(failure),
                Err(failure) => return Err(failure),
            }
        }
        let id = self.id.as_deref().map(plan_id).transpose()?;
        let (reads, left) = self.check(context, found)?;
        // With --strict or --id, a partial import is never wanted.
        if !left.is_empty() && (reads.is_empty() || self.strict || id.is_some()) {
            return left_out(left, OtherFiles::Untouched);
        }
        if reads.is_empty() {
            let hint = "check the path; for an index file, import its folder";
            return Err(Failure::not_found("no plan found in the input", hint));
        }
        if id.is_some() && reads.len() > 1 {
            let message = format!("--id is for one plan, and there are {}", reads.len());
            return Err(Failure::usage(
                message,
                "leave it out: each plan keeps its own id or gets a new one",
            ));
        }
        let by = context.caller()?;
        by.may_edit()?;
        let plans = context.plans_to_add_to()?;
        let mut written = Vec::new();
        for mut read in reads {
            if let Some(owner) = &self.owner {
                read.text.draft.spec.owner.clone_from(owner);
            }
            written.push(put(context, &plans, &by, read, id.clone())?);
        }
        if context.out.json {
            context.out.value(&json!({ "plans": written }))?;
        } else {
            for plan in &written {
                context.out.line(plan.get("id").and_then(Value::as_str).unwrap_or_default());
            }
        }
        left_out(left, OtherFiles::Imported)
    }

    /// Returns the plans of all valid files, and the problems of the others.
    fn check(&self, context: &mut Context, found: Sources) -> Outcome<(Vec<Read>, Vec<Failure>)> {
        let mut problems: Vec<(Option<String>, Problem)> = Vec::new();
        let mut reads = Vec::new();
        let (mut inexact, mut coerced) = (Vec::new(), Vec::new());
        let Sources { sources, mut left } = found;
        for mut source in sources {
            if self.repair {
                for done in repair::repair(&mut source.reading) {
                    context.out.note_fact(format!("{}: {done}", source.name));
                }
            }
            let mut wrong = source.problems();
            for draft in &source.reading.drafts {
                // Plans that merely cannot run here are noted when they are written.
                let forbidden = context.configuration_problems(draft)?.into_iter().filter(forbids_writing);
                let found = forbidden.chain(repair::nowhere(draft));
                wrong.extend(found.map(|problem| (Some(source.name.clone()), problem)));
            }
            if !wrong.is_empty() {
                problems.extend(wrong);
                continue;
            }
            inexact.extend(source.reading.notes.iter().map(|note| format!("{}: {note}", source.name)));
            let running = source.reading.drafts.iter().flat_map(|draft| &draft.tasks).filter(is_running);
            let reset = running.map(|task| {
                format!("{}: task {} is running, and is read as pending", source.name, task.spec.id)
            });
            coerced.extend(reset);
            let open = source.reading.drafts.iter().filter(|draft| !draft.state.phase.is_finished());
            let received = open.flat_map(|draft| &draft.tasks).filter(|task| !task.state.received.is_empty());
            coerced.extend(received.map(|task| {
                let words = "what it received is not taken over: the store delivers it";
                format!("{}: task {}: {words}", source.name, task.spec.id)
            }));
            let values = source.reading.inexact.iter();
            coerced.extend(values.map(|problem| format!("{}: {problem}", source.name)));
            let (from, dialect) = (source.name, source.reading.dialect);
            let assigned_ids = source.reading.assigned_ids;
            // The lines of an index are not plans; importing them would also take the ids of the real ones.
            let drafts = source.reading.drafts.into_iter().filter(|draft| !is_index_line(draft));
            reads.extend(drafts.map(|draft| {
                let (assigned_ids, file_name) = (assigned_ids.clone(), Some(from.clone()));
                Read { from: from.clone(), text: ImportDraft { draft, assigned_ids, dialect, file_name } }
            }));
        }
        if !problems.is_empty() {
            let mut failure = Failure::invalid("what was read", &problems);
            if !self.repair && problems.iter().any(|(_, problem)| repair::can_repair(problem)) {
                failure.hint = "correct all of them, or use --repair to drop dangling references".to_owned();
            }
            left.push(failure);
        }
        if self.strict {
            inexact.append(&mut coerced);
        }
        if self.strict && left.is_empty() && !inexact.is_empty() {
            let message = "not everything can be imported exactly; nothing was imported";
            let mut failure = Failure::failed(message, "leave out --strict to import it as far as possible");
            failure.details = inexact.iter().map(|note| format!("  {note}")).collect();
            failure.code = "inexact".to_owned();
            return Err(failure.with_fact("inexact", inexact));
        }
        for note in inexact {
            context.out.note_fact(note);
        }
        debug_assert!(reads.iter().all(|read| validate(&read.text.draft).is_empty()));
        Ok((reads, left))
    }
}

/// Whether a task is in progress somewhere else. No worker here has it.
fn is_running(task: &&Task) -> bool {
    task.state.status == Status::Running
}

/// What happened to the files that were not left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OtherFiles {
    Imported,
    Untouched,
}

/// Reports what was left out, if anything.
fn left_out(mut left: Vec<Failure>, rest: OtherFiles) -> Outcome {
    let Some(last) = left.pop() else { return Ok(()) };
    let mut failure = if left.is_empty() {
        last
    } else {
        left.push(last);
        let hint = "correct all of them, then try again";
        let mut failure = Failure::new(Exit::Invalid, "not everything could be imported", hint);
        for one in &left {
            failure.details.push(format!("  {}", one.message));
            failure.details.extend(one.details.iter().map(|line| format!("  {line}")));
            failure.details.push(format!("    hint: {}", typeable(&one.hint)));
        }
        let messages: Vec<&str> = left.iter().map(|one| one.message.as_str()).collect();
        failure.with_fact("left_out", messages)
    };
    match rest {
        OtherFiles::Imported => failure.details.push("  everything else was imported".to_owned()),
        OtherFiles::Untouched => {}
    }
    Err(failure)
}

/// Writes one plan, under its own id unless that is taken.
fn put(
    context: &mut Context,
    plans: &Arc<PlanStore>,
    by: &Caller,
    read: Read,
    id: Option<PlanId>,
) -> Outcome<Value> {
    let Read { from, text } = read;
    let (dialect, tasks) = (text.dialect, text.draft.tasks.len());
    let running: Vec<TaskId> =
        text.draft.tasks.iter().filter(is_running).map(|task| task.spec.id.clone()).collect();
    let service = context.service(plans);
    let committed = match id {
        Some(id) => {
            service.create(by, text.draft, CreateOptions { id: Some(id), ..CreateOptions::default() })?
        }
        None => match service.import(by, text)? {
            Imported::Unchanged { plan, version, archived } => {
                let archived = if archived { ", which is archived," } else { "" };
                context.out.say(format!("{from} is already plan {plan}{archived} and has not changed since"));
                return Ok(json!({
                    "id": plan, "version": version, "from": from, "format": dialect, "changed": false, "tasks": tasks
                }));
            }
            Imported::Created { reply, taken } => {
                if let Some(taken) = taken {
                    context.out.note(format!(
                        "{from}: the id {taken} is taken, so the plan got the id {} (`waypost update {taken} --from-file` would change the other)",
                        reply.plan
                    ));
                }
                reply
            }
        },
    };
    context.warn(&committed);
    if !running.is_empty() {
        context.out.note(format!(
            "{from}: {} ran elsewhere; no worker runs {} here, so reset to pending",
            text::names(running.iter(), NAMES_MAX),
            if running.len() == 1 { "it" } else { "them" }
        ));
    }
    let (head, note) = plans.with_plan(&committed.plan, |plan| {
        let head = json!({ "title": plan.spec().title, "tasks": plan.len(), "phase": plan.state().phase });
        (head, approval_note(plan))
    })?;
    let awaits = note.is_some();
    if let Some(note) = note {
        context.out.note(note);
    }
    let tasks = head.get("tasks").and_then(Value::as_u64).unwrap_or(0) as usize;
    context.out.say(format!(
        "imported {from} ({dialect}, {}) as plan {}",
        text::count(tasks, "task"),
        committed.plan
    ));
    let mut answer =
        json!({ "id": committed.plan, "version": committed.version, "from": from, "format": dialect });
    if let (Some(answer), Value::Object(head)) = (answer.as_object_mut(), head) {
        answer.extend(head);
        answer.insert("awaits_approval".to_owned(), awaits.into());
    }
    Ok(answer)
}
