//! Writes results back into the file that a plan came from, in the file's own format. Never overwrites another change, and never
//! writes words: the next run of the file runs them as its owner's, and agents can edit the plan.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use waypost_core::{Draft, Plan, Task, TaskId, TaskSpec};
use waypost_formats::{Dialect, Unreadable, write_back};

use crate::commands::export::loss_lines;
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::files;
use waypost_cli::foreign_folders::keep_index;
use waypost_cli::plan_input::FilePlan;
use waypost_cli::view::text;

/// The minimum interval between two writes while the plan runs.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// The suffix of the file that is written instead if the source was edited meanwhile.
const ASIDE: &str = ".waypost-new";

/// Maximum number of tasks that are named because they were left out.
const NAMED_MAX: usize = 10;

/// A file that is kept up to date.
pub(super) struct WriteBack {
    path: PathBuf,
    dialect: Dialect,
    /// The text of the file when it was last read or written here.
    known: String,
    /// The plan as the file last said it.
    said: Draft,
    /// The tasks of which the plan says something else than the file.
    left_out: Vec<TaskId>,
    /// The plan version that the file contains.
    version: u64,
    written: Option<Instant>,
    /// The file that is written instead, once the source was edited.
    aside: Option<PathBuf>,
    /// A problem that has not been reported yet.
    trouble: Option<String>,
    losses_said: bool,
}

impl WriteBack {
    /// Checks that the format can be written, before anything runs.
    pub(super) fn new(path: &str, source: &FilePlan) -> Outcome<Self> {
        if path == "-" {
            return Err(Failure::usage("standard input cannot be written back", "name a file"));
        }
        match write_back(&source.draft, source.dialect) {
            Ok(_) => {}
            Err(error @ Unreadable::ReadOnly(_)) => {
                let hint = "leave out --write-back, or convert the file first: `waypost import`, then `waypost export`";
                return Err(Failure::usage(format!("{path} cannot be written back: {error}"), hint));
            }
            Err(error) => return Err(Failure::unreadable(path, error)),
        }
        // A link stays; the file that it points to is replaced.
        let path = std::fs::canonicalize(path).map_err(|error| Failure::file(Path::new(path), &error))?;
        Ok(Self {
            path,
            dialect: source.dialect,
            known: source.text.clone(),
            said: source.draft.clone(),
            left_out: Vec::new(),
            version: 0,
            written: None,
            aside: None,
            trouble: None,
            losses_said: false,
        })
    }

    /// The text that the file has unless it was edited.
    pub(super) fn known(&self) -> &str {
        &self.known
    }

    /// Records that the file was reloaded, which made the plan what it says.
    pub(super) fn was_read(&mut self, text: &str, plan: &Plan) {
        self.known = text.to_owned();
        self.said = plan.to_draft();
        self.aside = None;
    }

    /// Writes the final state and reports what could not be written.
    pub(super) fn finish(&mut self, context: &mut Context, plan: &Plan) {
        self.version = 0;
        self.put(plan);
        if let Some(trouble) = self.trouble.take() {
            context.out.note(trouble);
        }
        if !self.left_out.is_empty() {
            let names = text::names(self.left_out.iter(), NAMED_MAX);
            let (file, id) = (self.path.display(), plan.id());
            context.out.note(format!(
                "{file} keeps its own words; the plan has other tasks or words now, which were not written: {names} (`waypost export {id}` writes the whole plan)"
            ));
        }
    }

    /// Writes while the plan runs, if the last write is long enough ago.
    pub(super) fn put_again(&mut self, plan: &Plan) {
        if self.written.is_none_or(|at| at.elapsed() >= WRITE_INTERVAL) {
            self.put(plan);
        }
    }

    fn put(&mut self, plan: &Plan) {
        if plan.version() == self.version {
            return;
        }
        self.written = Some(Instant::now());
        let draft = self.results(plan.to_draft());
        let writing = match write_back(&draft, self.dialect) {
            Ok(writing) => writing,
            Err(error) => {
                self.trouble = Some(format!("{} was not written back: {error}", self.path.display()));
                return;
            }
        };
        if !self.losses_said && !writing.losses.is_empty() {
            self.losses_said = true;
            let lines = loss_lines(&writing.losses).join("; ");
            self.trouble.get_or_insert(format!("{} cannot hold all of the plan: {lines}", self.dialect));
        }
        if let Err(failure) = self.write(&writing.text) {
            self.trouble = Some(failure.message);
            return;
        }
        if self.aside.is_none()
            && let Err(failure) = keep_index(&self.path, self.dialect, &draft)
        {
            self.trouble = Some(failure.message);
        }
        self.version = plan.version();
    }

    /// Returns the plan as the file says it, with the results of those tasks that are still what the file says.
    fn results(&mut self, mut plan: Draft) -> Draft {
        let mut now: HashMap<TaskId, Task> =
            plan.tasks.drain(..).map(|task| (task.spec.id.clone(), task)).collect();
        self.left_out.clear();
        let mut draft = Draft { id: plan.id, version: plan.version, state: plan.state, ..self.said.clone() };
        for task in &mut draft.tasks {
            match now.remove(&task.spec.id) {
                Some(found) if is_unchanged(&task.spec, &found.spec) => task.state = found.state,
                Some(_) | None => self.left_out.push(task.spec.id.clone()),
            }
        }
        let mut added: Vec<TaskId> = now.into_keys().collect();
        added.sort();
        self.left_out.extend(added);
        draft
    }

    fn write(&mut self, text: &str) -> Outcome {
        if self.aside.is_none() {
            if files::replace(&self.path, &self.known, text)? {
                self.known = text.to_owned();
                return Ok(());
            }
            let mut name = self.path.clone().into_os_string();
            name.push(ASIDE);
            let aside = PathBuf::from(name);
            self.trouble = Some(format!(
                "{} was edited while the plan ran and was left alone; the results are in {}",
                self.path.display(),
                aside.display()
            ));
            self.aside = Some(aside);
        }
        match &self.aside {
            Some(aside) => files::write(aside, text, true),
            None => Ok(()),
        }
    }
}

/// Whether a task is what the file says. Tasks without work are given the run's executor.
fn is_unchanged(said: &TaskSpec, now: &TaskSpec) -> bool {
    let work = said.work.clone().or_else(|| now.work.clone());
    TaskSpec { work, ..said.clone() } == *now
}
