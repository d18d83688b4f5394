//! Keeps the files of a linked folder and their plans together. What only one side has changed, the other takes over. What both have
//! changed counts as the file says, and is named; the plan keeps all its versions.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;
use waypost_core::{Actor, Draft, PlanId, Task, TaskId, reopened_tasks};
use waypost_formats::frctl::is_index_line;
use waypost_formats::{Dialect, sniff, written_and_read};
use waypost_service::{
    Caller, CreateOptions, FileDraft, Guard, OwnerRule, Service, ServiceError, edit_conflicts, removed_task,
};
use waypost_store::{NamedLock, PlanStore};

use super::record::{Link, LinkedFile};
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::files;
use crate::foreign_folders::{drop_from_index, keep_index};
use crate::plan_folder::plan_files;
use crate::plan_input::{FilePlan, Source};
use crate::view::text;

/// How long another process may keep the files of a folder together.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// The pause between two tries.
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// Maximum number of conflicts that are named.
const NAMED_MAX: usize = 10;

/// What happened to one file.
#[derive(Debug)]
pub struct FileChange {
    /// The name of the file.
    pub file: String,
    pub plan: Option<PlanId>,
    pub what: What,
    /// What somebody should know.
    pub note: Option<String>,
}

impl FileChange {
    /// Whether nothing was done with the file because nothing could be.
    pub fn is_left_alone(&self) -> bool {
        self.what == What::LeftAlone
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
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

/// Who reads what there is to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reporting {
    /// Whoever runs the command.
    Now,
    /// Whoever runs the next command.
    Later,
}

/// The result for a whole folder.
#[derive(Debug, Default)]
pub struct Synced {
    pub changes: Vec<FileChange>,
    /// What somebody should know, also from earlier.
    pub notes: Vec<String>,
}

/// Keeps the files of a link and their plans together, once.
pub fn sync(
    context: &Context,
    plans: &Arc<PlanStore>,
    link: &mut Link,
    reporting: Reporting,
) -> Outcome<Synced> {
    if !link.folder().is_dir() {
        return Ok(Synced::default());
    }
    // Whoever has it does the same.
    let Some(_lock) = lock(plans, link)? else { return Ok(Synced::default()) };
    if !link.refresh()? {
        return Ok(Synced::default());
    }
    let service = context.service(plans);
    let mut changes = Vec::new();
    let mut known = PlanFiles::of(link);
    let mut paths: Vec<_> = plan_files(link.folder())?.into_iter().filter(|path| is_linked(path)).collect();
    // Of several files with one id, the copies usually have the longer names.
    paths.sort_by_key(|path| path.as_os_str().len());
    let found: Vec<FoundFile> = paths.iter().filter_map(|path| FoundFile::read(path, &known)).collect();
    for file in &found {
        known.claim_unedited(link, file);
    }
    for FoundFile { path, name, text, is_edited } in found {
        let mut one = One { plans, service: &service, link, path, name };
        match text.and_then(|text| one.sync(text, is_edited, &mut known)) {
            Ok(change) => changes.extend(change),
            Err(failure) => changes.push(FileChange {
                plan: one.link.files().get(name).map(|known| known.plan.clone()),
                note: Some(format!("{} was left alone: {}", one.shown(), failure.one_line())),
                what: What::LeftAlone,
                file: name.to_owned(),
            }),
        }
    }
    let mut notes = note_gone_files(plans, link, &known)?;
    match reporting {
        Reporting::Now => {
            notes.extend(link.take_unreported()?);
            notes.extend(changes.iter().filter_map(|change| change.note.clone()));
        }
        Reporting::Later => {
            // A file that was left alone is found again.
            let said = changes.iter().filter(|change| !change.is_left_alone());
            link.leave_unreported(said.filter_map(|change| change.note.clone()).collect())?;
        }
    }
    Ok(Synced { changes, notes })
}

/// Notes which files are gone, and removes their plans from the index, unless they have another file now.
fn note_gone_files(plans: &PlanStore, link: &mut Link, known: &PlanFiles) -> Outcome<Vec<String>> {
    let mut notes = Vec::new();
    let is_gone = |(name, file): &(&String, &LinkedFile)| !file.gone && !link.folder().join(name).exists();
    let gone = link.files().iter().filter(is_gone).map(|(name, file)| (name.clone(), file.plan.clone()));
    for (name, plan) in gone.collect::<Vec<_>>() {
        let draft = plans.with_plan(&plan, |plan| plan.to_draft()).ok();
        let draft = draft.filter(|_| !known.claimed.contains_key(&plan));
        match draft.map_or(Ok(()), |draft| drop_from_index(link.folder(), &draft)) {
            Ok(()) => link.note_gone(&name)?,
            // An index that cannot be read is left alone; the next time decides.
            Err(failure) => notes.push(failure.one_line()),
        }
    }
    Ok(notes)
}

/// Whether a file may be one of a linked folder. A symbolic link may lead anywhere, and a text in Markdown may be anything.
fn is_linked(path: &Path) -> bool {
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    is_file && path.extension().is_some_and(|ending| ending == "json")
}

/// A file of the folder as it is now. It is read once; whoever writes it compares it with this text.
struct FoundFile<'a> {
    path: &'a Path,
    name: &'a str,
    text: Outcome<String>,
    /// Whether it says something else than when it was last read or written.
    is_edited: bool,
}

impl<'a> FoundFile<'a> {
    fn read(path: &'a Path, known: &PlanFiles) -> Option<Self> {
        let name = path.file_name().and_then(|name| name.to_str())?;
        let text = files::read(&path.display().to_string());
        let is_edited = text.as_ref().ok() != known.texts.get(name);
        Some(Self { path, name, text, is_edited })
    }
}

/// Which plans the files of a folder are, by the ids that they have now. Files can be copied, and can change their names.
struct PlanFiles {
    /// The file of each plan when this began, and what was known about it.
    files: HashMap<PlanId, (String, LinkedFile)>,
    /// The last known text of each file.
    texts: HashMap<String, String>,
    /// The file of each plan, as far as it was looked at.
    claimed: HashMap<PlanId, String>,
}

impl PlanFiles {
    fn of(link: &Link) -> Self {
        let of_file = |(name, file): (&String, &LinkedFile)| {
            (file.plan.clone(), (name.clone(), file.clone()), link.folder().join(name).exists())
        };
        let mut all: Vec<_> = link.files().iter().map(of_file).collect();
        // Of a file that was renamed, both names are known: the one that is still there counts.
        all.sort_by_key(|(_, (_, file), exists)| (*exists, file.version));
        let files = all.into_iter().map(|(plan, file, _)| (plan, file)).collect();
        let texts = link.files().keys().filter_map(|name| Some((name.clone(), link.text(name)?)));
        Self { files, texts: texts.collect(), claimed: HashMap::new() }
    }

    /// A file that is as it was is of the same plan, whichever other file says so now.
    fn claim_unedited(&mut self, link: &Link, file: &FoundFile<'_>) {
        if let Some(known) = link.files().get(file.name).filter(|_| !file.is_edited) {
            self.claimed.entry(known.plan.clone()).or_insert_with(|| file.name.to_owned());
        }
    }

    /// Makes a file the one of its plan. Fails if another one is.
    fn claim(&mut self, plan: &PlanId, name: &str) -> Outcome {
        let file = self.claimed.entry(plan.clone()).or_insert_with(|| name.to_owned());
        if file != name {
            let message = format!("it is of plan {plan}, as {file} is");
            return Err(Failure::failed(message, "give it an id of its own, or remove it"));
        }
        Ok(())
    }
}

/// Waits for the right to keep the files of a link, as long as another process has it.
fn lock(plans: &PlanStore, link: &Link) -> Outcome<Option<Box<dyn NamedLock>>> {
    let (name, until) = (format!("link:{}", link.folder().display()), Instant::now() + LOCK_WAIT);
    if let Some(lock) = plans.store().try_lock(&name)? {
        return Ok(Some(lock));
    }
    let mut watch = plans.watch()?;
    while Instant::now() < until {
        watch.wait(LOCK_PAUSE)?;
        if let Some(lock) = plans.store().try_lock(&name)? {
            return Ok(Some(lock));
        }
    }
    Ok(None)
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
    fn sync(&mut self, text: String, is_edited: bool, known: &mut PlanFiles) -> Outcome<Option<FileChange>> {
        let recorded = self.link.files().get(self.name).cloned();
        let (plan, what, note) = match recorded {
            Some(file) if !is_edited => {
                known.claim(&file.plan, self.name)?;
                let (what, note) = self.follow(&file, text)?;
                (file.plan, what, note)
            }
            recorded => {
                let Some(found) = self.read(&text)? else { return Ok(None) };
                let own = found.draft.id.clone();
                let last = |name: &str| known.texts.get(name).and_then(|before| self.read(before).ok()?);
                let said = last(self.name);
                // The name of a file says less than the id in it, but more than an id that follows from what was edited.
                let is_same = found.is_id_derived || said.as_ref().is_some_and(|said| said.draft.id == own);
                let of_own = || own.as_ref().and_then(|id| known.files.get(id)).cloned();
                let (file, said) = match recorded.filter(|_| is_same) {
                    Some(file) => (Some(file), said),
                    None => of_own().map_or((None, None), |(name, file)| (Some(file), last(&name))),
                };
                let target = file.as_ref().map(|file| file.plan.clone()).or_else(|| own.clone());
                if let Some(plan) = &target {
                    known.claim(plan, self.name)?;
                }
                let now = target.as_ref().map(|plan| self.version(plan)).transpose()?.flatten();
                match (target, file, now) {
                    (Some(plan), Some(_), None) => {
                        let note = format!("{} is of plan {plan}, which is gone", self.shown());
                        (plan, What::LeftAlone, Some(note))
                    }
                    (Some(plan), Some(file), Some(now)) => {
                        let (said, version) = (said.map(|said| said.draft), file.version);
                        let since = Since { said, version, is_edited: true };
                        let (what, note) = self.bring_together(&plan, found, since, now)?;
                        (plan, what, note)
                    }
                    (Some(plan), None, Some(now)) => {
                        // It was imported before, so that the plan began as what the file said then.
                        let first = self.plans.at_version(&plan, 1)?.to_draft();
                        let said = written_and_read(&first, &found.draft, found.dialect, None);
                        let since = Since { said, version: 1, is_edited: true };
                        let (what, note) = self.bring_together(&plan, found, since, now)?;
                        (plan, what, note)
                    }
                    (_, _, _) => {
                        let notes = self.reading_notes(&found);
                        let plan = self.import(found, own)?;
                        known.claim(&plan, self.name)?;
                        (plan, What::Imported, joined(&notes))
                    }
                }
            }
        };
        Ok(Some(FileChange { file: self.name.to_owned(), plan: Some(plan), what, note }))
    }

    /// Writes a plan that has changed into its file, which is as it was.
    fn follow(&mut self, known: &LinkedFile, text: String) -> Outcome<(What, Option<String>)> {
        let Some(now) = self.version(&known.plan)? else { return Ok((What::LeftAlone, None)) };
        if now == known.version && !known.gone {
            return Ok((What::Nothing, None));
        }
        let Some(found) = self.read(&text)? else { return Ok((What::Nothing, None)) };
        let since = Since { said: None, version: known.version, is_edited: false };
        self.bring_together(&known.plan, found, since, now)
    }

    /// Returns the file as it is shown.
    fn shown(&self) -> String {
        Path::new(&self.link.shown()).join(self.name).display().to_string()
    }

    /// Returns what changes when a file is read, and so when the plan is written into it.
    fn reading_notes(&self, found: &FilePlan) -> Vec<String> {
        found.notes.iter().map(|note| format!("{}: {note}", self.shown())).collect()
    }

    /// Returns the current version of a plan, if it is there.
    fn version(&self, plan: &PlanId) -> Outcome<Option<u64>> {
        Ok(self.plans.store().query(|read| read.head(plan))?.map(|head| head.version))
    }

    /// Reads the only plan of a text. An index is none.
    fn read(&self, text: &str) -> Outcome<Option<FilePlan>> {
        let shown = self.path.display().to_string();
        let Some(dialect) = sniff(text, Some(&shown)) else {
            // A program may have been stopped while it wrote, so a file that is cut off may be a plan.
            return match serde_json::from_str::<IgnoredAny>(text) {
                Err(error) => {
                    let message = format!("it is not valid JSON: {error}");
                    Err(Failure::failed(message, "let its program write it again, or remove it"))
                }
                Ok(_) if self.link.files().contains_key(self.name) => {
                    Err(Failure::failed("it is not a plan any more", "restore it, or remove it"))
                }
                Ok(_) => Ok(None),
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
        let is_derived = |id: &PlanId| reading.derived_ids.contains(id);
        let mut drafts = reading.drafts.into_iter();
        match (drafts.next(), drafts.next()) {
            (Some(draft), None) if dialect.can_write() => {
                let is_id_derived = draft.id.as_ref().is_some_and(is_derived);
                let (text, notes) = (text.to_owned(), reading.notes);
                Ok(Some(FilePlan { draft, dialect, assigned_ids, is_id_derived, text, notes }))
            }
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
    fn import(&mut self, found: FilePlan, id: Option<PlanId>) -> Outcome<PlanId> {
        let options = CreateOptions { id, owner: OwnerRule::AsWritten, ..CreateOptions::default() };
        let reply = self.service.create(&by(found.dialect), found.draft, options)?;
        let file = LinkedFile { plan: reply.plan.clone(), version: reply.version, gone: false };
        self.link.note(self.name, &found.text, file)?;
        let stored = self.plans.with_plan(&reply.plan, |plan| plan.to_draft())?;
        keep_index(self.path, found.dialect, &stored)?;
        Ok(reply.plan)
    }

    /// Writes the file into the plan if it was edited, and the plan into the file if that has changed. `now` is the version of the
    /// plan.
    fn bring_together(
        &mut self,
        plan: &PlanId,
        found: FilePlan,
        since: Since,
        now: u64,
    ) -> Outcome<(What, Option<String>)> {
        let (mut version, mut notes) = (now, Vec::new());
        if since.is_edited {
            // If the plan has changed meanwhile, the next time decides.
            let Some(updated) = self.update(plan, &found, since.said, now, &mut notes)? else {
                return Ok((What::Nothing, None));
            };
            version = updated;
            notes.extend(self.reading_notes(&found));
        }
        let is_updated = version != now;
        let written = if now == since.version { Written::Same } else { self.write(plan, &found)? };
        let (text, is_written) = match written {
            Written::Text(text) => (text, true),
            Written::Same => (found.text, false),
            // Somebody edits the file at this moment; the next time decides.
            Written::NotYet => {
                version = now;
                (found.text, false)
            }
        };
        self.link.note(self.name, &text, LinkedFile { plan: plan.clone(), version, gone: false })?;
        let current = self.plans.with_plan(plan, |plan| plan.to_draft())?;
        // The file and its plan are together all the same.
        if let Err(failure) = keep_index(self.path, found.dialect, &current) {
            notes.push(failure.one_line());
        }
        let what = match (is_updated, is_written) {
            (false, false) => What::Nothing,
            (true, false) => What::Updated,
            (false, true) => What::Written,
            (true, true) => What::Merged,
        };
        Ok((what, joined(&notes)))
    }

    /// Writes an edited file into its plan, as an agent would. Returns the new version, or nothing if the plan is no longer `now`.
    fn update(
        &self,
        plan: &PlanId,
        found: &FilePlan,
        said: Option<Draft>,
        now: u64,
        notes: &mut Vec<String>,
    ) -> Outcome<Option<u64>> {
        let FilePlan { draft, dialect, assigned_ids, .. } = found;
        let before = self.plans.with_plan(plan, |plan| plan.to_draft())?;
        let of_plan = written_and_read(&before, draft, *dialect, None);
        if let (Some(said), Some(of_plan)) = (&said, &of_plan) {
            let is_known = |task: &Task| of_plan.tasks.iter().any(|known| known.spec.id == task.spec.id);
            let gone =
                draft.tasks.iter().filter(|task| !is_known(task)).map(|task| removed_task(&task.spec.id));
            let gone: HashSet<String> = gone.collect();
            let conflicts = edit_conflicts(said, draft, of_plan).into_iter();
            let (gone, conflicts): (Vec<String>, Vec<String>) =
                conflicts.partition(|place| gone.contains(place));
            notes.extend(conflict_note(&self.shown(), plan, now, &conflicts));
            // A task that is no longer in the plan does not come back, so that the file loses what it says about it.
            if !gone.is_empty() {
                let kept = self.link.keep_copy(self.name, now, &found.text)?;
                let (file, named) = (self.shown(), text::names(gone.iter(), NAMED_MAX));
                notes.push(format!(
                    "{file} has changed tasks that are no longer in plan {plan}: {named}; a copy of the file is {}",
                    kept.display()
                ));
            }
        }
        // The ids of a text without ids are found by what its format says about the plan.
        let mut said = said.filter(|_| assigned_ids.is_empty());
        if let (Some(said), Some(of_plan)) = (&mut said, of_plan) {
            add_missing(said, draft, of_plan);
        }
        let (draft, assigned_ids) = (draft.clone(), assigned_ids.clone());
        let file = FileDraft { draft, assigned_ids, dialect: *dialect, said };
        let (reply, refused) = match self.service.reload(&by(*dialect), plan, file, Guard::at(now)) {
            Err(ServiceError::Conflict(_)) => return Ok(None),
            reloaded => reloaded?,
        };
        let after = self.plans.with_plan(plan, |plan| plan.to_draft())?;
        let again = reopened_tasks(&before, &after);
        if !again.is_empty() {
            let named = text::names(again.iter(), NAMED_MAX);
            notes.push(format!("{}: to be done again: {named}", self.shown()));
        }
        notes.extend(refused.into_iter().map(|why| format!("{}: {why}", self.shown())));
        Ok(Some(reply.version))
    }

    /// Writes a plan into its file, which still says what was read.
    fn write(&self, plan: &PlanId, found: &FilePlan) -> Outcome<Written> {
        let current = self.plans.with_plan(plan, |plan| plan.to_draft())?;
        let text = waypost_formats::write_back(&current, found.dialect);
        let text = text.map_err(|error| Failure::unreadable(&self.shown(), error))?.text;
        // A file that says the same stays as it is, however it is laid out.
        let says_so_already =
            self.read(&text)?.is_some_and(|again| says_the_same(&again.draft, &found.draft));
        if says_so_already {
            return Ok(Written::Same);
        }
        if !files::replace(self.path, &found.text, &text)? {
            return Ok(Written::NotYet);
        }
        Ok(Written::Text(text))
    }
}

fn joined(notes: &[String]) -> Option<String> {
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// What was known about a file before.
struct Since {
    /// What it said.
    said: Option<Draft>,
    /// The version of the plan that it had.
    version: u64,
    /// Whether it says something else now.
    is_edited: bool,
}

/// The result of writing a plan into its file.
enum Written {
    Text(String),
    /// The file says so already.
    Same,
    /// The file has changed since it was read.
    NotYet,
}

/// Adds the tasks that a file did not have yet and that the plan has, too: what its format says about them is nobody's edit.
fn add_missing(said: &mut Draft, file: &Draft, of_plan: Draft) {
    let ids =
        |draft: &Draft| -> HashSet<TaskId> { draft.tasks.iter().map(|task| task.spec.id.clone()).collect() };
    let (known, now) = (ids(said), ids(file));
    let is_new = |task: &Task| now.contains(&task.spec.id) && !known.contains(&task.spec.id);
    said.tasks.extend(of_plan.tasks.into_iter().filter(is_new));
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
