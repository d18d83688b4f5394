//! Keeps the files of a linked folder and their plans together. What only one side has changed, the other takes over. What both have
//! changed counts as the file says, and is named; the plan keeps all its versions.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use waypost_core::{Actor, Draft, PlanId, reopened_tasks};
use waypost_formats::frctl::is_index_line;
use waypost_formats::{Dialect, sniff, written_and_read};
use waypost_service::{
    Caller, CreateOptions, FileDraft, Guard, OwnerRule, Service, ServiceError, edit_conflicts,
};
use waypost_store::PlanStore;

use super::record::{Link, LinkedFile};
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::files;
use crate::foreign_folders::keep_index;
use crate::plan_folder::plan_files;
use crate::plan_input::Source;
use crate::view::text;

/// How long another process may keep the files of a folder together.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// The pause between two tries.
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// Maximum number of conflicts that are named.
const NAMED_MAX: usize = 10;

/// What happened to one file.
#[derive(Debug)]
pub(crate) struct FileChange {
    /// The name of the file.
    pub(crate) file: String,
    pub(crate) plan: Option<PlanId>,
    pub(crate) what: What,
    /// What somebody should know.
    pub(crate) note: Option<String>,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// Both agree.
    Nothing,
    /// The file became a plan.
    Imported,
    /// The plan was changed.
    Updated,
    /// The file was changed.
    Written,
    /// Both were changed.
    Merged,
    /// The file cannot be taken in, or the plan is gone.
    LeftAlone,
}

impl FileChange {
    /// Returns what would be lost if nobody said it now.
    pub(super) fn conflict(self) -> Option<String> {
        self.note.filter(|_| self.what != What::LeftAlone)
    }
}

/// A file of the folder as it is now.
struct Found {
    draft: Draft,
    dialect: Dialect,
    assigned_ids: std::collections::HashSet<waypost_core::TaskId>,
}

/// Keeps the files of a link and their plans together, once.
pub(crate) fn sync(context: &Context, plans: &Arc<PlanStore>, link: &mut Link) -> Outcome<Vec<FileChange>> {
    if !link.folder().is_dir() {
        return Ok(Vec::new());
    }
    let (name, until) = (format!("link:{}", link.folder().display()), Instant::now() + LOCK_WAIT);
    let _lock = loop {
        match plans.store().try_lock(&name)? {
            Some(lock) => break lock,
            // Whoever has it does the same.
            None if Instant::now() > until => return Ok(Vec::new()),
            None => std::thread::sleep(LOCK_PAUSE),
        }
    };
    let service = context.service(plans);
    let mut changes = Vec::new();
    for path in plan_files(link.folder())? {
        let Some(name) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else { continue };
        // A symbolic link may lead anywhere, and a text in Markdown may be anything.
        let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
        if !is_file || path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let mut one = One { plans, service: &service, link, path: &path, name: &name };
        match one.sync() {
            Ok(change) => changes.extend(change),
            Err(failure) => changes.push(FileChange {
                plan: one.link.files().get(&name).map(|known| known.plan.clone()),
                note: Some(format!("{} was left alone: {}", one.shown(), failure.one_line())),
                what: What::LeftAlone,
                file: name,
            }),
        }
    }
    Ok(changes)
}

/// One file, and where it belongs.
struct One<'a> {
    plans: &'a Arc<PlanStore>,
    service: &'a Service,
    link: &'a mut Link,
    path: &'a Path,
    name: &'a str,
}

impl One<'_> {
    /// Returns what happened; nothing for a file that is not a plan.
    fn sync(&mut self) -> Outcome<Option<FileChange>> {
        let text = files::read(&self.path.display().to_string())?;
        let (known, before) = (self.link.files().get(self.name).cloned(), self.link.text(self.name));
        let is_edited = before.as_ref() != Some(&text);
        let version = match &known {
            Some(known) => self.version(&known.plan)?,
            None => None,
        };
        let change = |plan: &PlanId, what: What, note: Option<String>| {
            Ok(Some(FileChange { file: self.name.to_owned(), plan: Some(plan.clone()), what, note }))
        };
        match (known, version) {
            (Some(known), None) => {
                let note = format!("{} is of plan {}, which is gone", self.shown(), known.plan);
                change(&known.plan, What::LeftAlone, Some(note).filter(|_| is_edited))
            }
            (Some(known), Some(version)) if !is_edited && version == known.version => {
                change(&known.plan, What::Nothing, None)
            }
            (Some(known), Some(version)) => {
                let found = self.read(&text)?;
                let Some(found) = found else { return Ok(None) };
                let said = before.and_then(|before| self.read(&before).ok().flatten()).map(|said| said.draft);
                let (what, note) = self.bring_together(
                    &known.plan,
                    found,
                    said,
                    &text,
                    (known.version, version),
                    is_edited,
                )?;
                change(&known.plan, what, note)
            }
            (None, _) => {
                let Some(found) = self.read(&text)? else { return Ok(None) };
                let own = found.draft.id.clone();
                let Some((plan, version)) =
                    own.map(|id| Ok::<_, Failure>((id.clone(), self.version(&id)?))).transpose()?
                else {
                    let plan = self.import(found, None, &text)?;
                    return change(&plan, What::Imported, None);
                };
                let Some(version) = version else {
                    let plan = self.import(found, Some(plan), &text)?;
                    return change(&plan, What::Imported, None);
                };
                // It was imported before, so that the plan began as what the file said then.
                let first = self.plans.at_version(&plan, 1)?.to_draft();
                let said = written_and_read(&first, &found.draft, found.dialect, None);
                let (what, note) = self.bring_together(&plan, found, said, &text, (1, version), true)?;
                change(&plan, what, note)
            }
        }
    }

    /// Returns the file as it is shown.
    fn shown(&self) -> String {
        Path::new(&self.link.shown()).join(self.name).display().to_string()
    }

    /// Returns the current version of a plan, if it is there.
    fn version(&self, plan: &PlanId) -> Outcome<Option<u64>> {
        Ok(self.plans.store().query(|read| read.head(plan))?.map(|head| head.version))
    }

    /// Reads the only plan of a text. An index is none.
    fn read(&self, text: &str) -> Outcome<Option<Found>> {
        let shown = self.path.display().to_string();
        let Some(dialect) = sniff(text, Some(&shown)) else {
            return match self.link.files().contains_key(self.name) {
                true => Err(Failure::failed("it is not a plan any more", "restore it, or remove it")),
                false => Ok(None),
            };
        };
        let source = Source::text(&shown, text, Some(dialect))?;
        let problems = source.reading.all_problems().into_iter();
        let problems: Vec<_> = problems.map(|problem| (None, problem)).collect();
        if !problems.is_empty() {
            return Err(Failure::invalid("the plan", &problems));
        }
        let reading = source.reading;
        if reading.drafts.iter().all(is_index_line) {
            return Ok(None);
        }
        let (dialect, assigned_ids, count) = (reading.dialect, reading.assigned_ids, reading.drafts.len());
        let mut drafts = reading.drafts.into_iter();
        match (drafts.next(), drafts.next()) {
            (Some(draft), None) if dialect.can_write() => Ok(Some(Found { draft, dialect, assigned_ids })),
            (Some(_), None) => {
                let message = format!("{dialect} can be read but not written");
                Err(Failure::failed(message, "import it instead"))
            }
            (_, _) => {
                Err(Failure::failed(format!("it holds {}", text::count(count, "plan")), "import it instead"))
            }
        }
    }

    /// Stores a new plan, as an agent would.
    fn import(&mut self, found: Found, id: Option<PlanId>, text: &str) -> Outcome<PlanId> {
        let options = CreateOptions { id, owner: OwnerRule::AsWritten, ..CreateOptions::default() };
        let reply = self.service.create(&by(found.dialect), found.draft, options)?;
        let file = LinkedFile { plan: reply.plan.clone(), version: reply.version };
        self.link.note(self.name, text, file)?;
        Ok(reply.plan)
    }

    /// Writes the file into the plan if it was edited, and the plan into the file if that has changed since `then`.
    fn bring_together(
        &mut self,
        plan: &PlanId,
        found: Found,
        said: Option<Draft>,
        text: &str,
        (then, now): (u64, u64),
        is_edited: bool,
    ) -> Outcome<(What, Option<String>)> {
        let Found { draft, dialect, assigned_ids } = found;
        let (mut version, mut notes) = (now, Vec::new());
        if is_edited {
            let before = self.plans.with_plan(plan, |plan| plan.to_draft())?;
            let of_plan = written_and_read(&before, &draft, dialect, None);
            if let (Some(said), Some(of_plan)) = (&said, &of_plan) {
                notes.extend(conflict_note(&self.shown(), plan, now, &edit_conflicts(said, &draft, of_plan)));
            }
            // The ids of a text without ids are found by what its format says about the plan.
            let said = said.filter(|_| assigned_ids.is_empty());
            let file = FileDraft { draft: draft.clone(), assigned_ids, dialect, said };
            // If the plan has changed meanwhile, the next time decides.
            let (reply, refused) = match self.service.reload(&by(dialect), plan, file, Guard::at(now)) {
                Err(ServiceError::Conflict(_)) => return Ok((What::Nothing, None)),
                reloaded => reloaded?,
            };
            version = reply.version;
            let after = self.plans.with_plan(plan, |plan| plan.to_draft())?;
            let again = reopened_tasks(&before, &after);
            if !again.is_empty() {
                let named = text::names(again.iter(), NAMED_MAX);
                notes.push(format!("{}: to be done again: {named}", self.shown()));
            }
            notes.extend(refused.into_iter().map(|why| format!("{}: {why}", self.shown())));
        }
        let is_updated = version != now;
        let mut is_written = false;
        let mut text = text.to_owned();
        if now != then {
            let current = self.plans.with_plan(plan, |plan| plan.to_draft())?;
            version = current.version;
            let writing = waypost_formats::write_back(&current, dialect);
            let written =
                writing.map_err(|error| Failure::unreadable(&self.path.display().to_string(), error))?;
            let again = self.read(&written.text)?.map(|again| again.draft);
            // A file that says the same stays as it is, however it is laid out.
            if again.is_none_or(|again| !says_the_same(&again, &draft)) {
                if !files::replace(self.path, &text, &written.text)? {
                    // Somebody edits it at this moment; the next time decides.
                    version = now;
                } else {
                    is_written = true;
                    text = written.text;
                    keep_index(self.path, dialect, &current)?;
                }
            }
        }
        self.link.note(self.name, &text, LinkedFile { plan: plan.clone(), version })?;
        let what = match (is_updated, is_written) {
            (false, false) => What::Nothing,
            (true, false) => What::Updated,
            (false, true) => What::Written,
            (true, true) => What::Merged,
        };
        Ok((what, (!notes.is_empty()).then(|| notes.join("; "))))
    }
}

/// The caller that takes files in: an agent, so that no file does what only people may.
fn by(dialect: Dialect) -> Caller {
    Caller::new(Actor::agent(dialect.name()))
}

fn conflict_note(file: &str, plan: &PlanId, version: u64, conflicts: &[String]) -> Option<String> {
    let named = text::names(conflicts.iter(), NAMED_MAX);
    (!conflicts.is_empty()).then(|| {
        format!(
            "{file} and plan {plan} have both changed {named}: the file counts, and version {version} has the other (`waypost show {plan} --version {version}`)"
        )
    })
}

/// Whether two texts of a format say the same about a plan.
fn says_the_same(one: &Draft, other: &Draft) -> bool {
    let tasks = |draft: &Draft| -> Vec<_> {
        draft.tasks.iter().map(|task| (task.spec.clone(), task.state.status)).collect()
    };
    one.spec == other.spec && one.state.phase == other.state.phase && tasks(one) == tasks(other)
}
