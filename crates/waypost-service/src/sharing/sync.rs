//! Publishes, fetches, joins, imports and pushes. Every step can be killed and done again: what a record is, its id says,
//! and what the branch holds, the branch says.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::mpsc;
use std::time::Duration;

use waypost_core::PlanId;
use waypost_git::{
    Author, Damage, Fetched, GitError, Oid, Publication, Pushed, SEGMENT_BYTES_MAX, Segment, TreeFile,
};
use waypost_operation::{CloneTag, ParsedRecord, Record};
use waypost_store::NamedLock;

use super::branch::SharedBranch;
use super::error::SharingError;
use super::import::Arrived;
use super::reply::{KeptAside, SyncReport};
use super::rows::{self, SeenBranch, SeenRemote};
use crate::service::Service;

/// The lock of whoever publishes or imports.
pub(super) const LOCK: &str = "sharing";
/// Number of times that the lock is tried, and how long each time waits.
const LOCK_TRIES_MAX: u32 = 400;
const LOCK_WAIT: Duration = Duration::from_millis(50);
/// Number of times that a branch is read again because somebody moved it.
const MOVES_MAX: usize = 20;
/// Number of pushes that others may be faster than.
const PUSHES_MAX: u64 = 8;
/// Maximum number of findings that a report lists.
const FINDINGS_MAX: usize = 100;

/// What a sync does besides merging.
#[derive(Clone, Debug, Default)]
pub struct SyncOptions {
    /// Read the remote.
    pub fetch: bool,
    /// Write to the remote.
    pub push: bool,
    /// Import this commit, too.
    pub from: Option<String>,
}

/// Waits without burning a processor: nobody sends.
fn wait(pause: Duration) {
    let (_sender, receiver) = mpsc::channel::<()>();
    let _ = receiver.recv_timeout(pause);
}

/// The ids of records that a commit holds, by plan.
type Published = Vec<(PlanId, Vec<String>)>;

/// One run of a sync.
struct Run<'a> {
    service: &'a Service,
    shared: &'a SharedBranch,
    tag: CloneTag,
    report: SyncReport,
    aside: BTreeSet<KeptAside>,
    from: BTreeSet<String>,
    changed: BTreeSet<PlanId>,
    /// What cannot be read or is not believed, by file, or by plan for what follows from its records.
    standing: BTreeMap<String, Vec<String>>,
}

/// The name of what stands about the records of a plan. No file of the branch is called like that.
fn records_of(plan: &PlanId) -> String {
    format!("plan {plan}")
}

impl Service {
    /// Takes the lock of whoever publishes or imports.
    pub(super) fn sharing_lock(&self) -> Result<Box<dyn NamedLock>, SharingError> {
        for _ in 0..LOCK_TRIES_MAX {
            if let Some(lock) = self.plans().store().try_lock(LOCK)? {
                return Ok(lock);
            }
            wait(LOCK_WAIT);
        }
        Err(SharingError::Busy)
    }

    /// Brings this clone and the remote together.
    pub fn sync(&self, shared: &SharedBranch, options: &SyncOptions) -> Result<SyncReport, SharingError> {
        if let Err(error) = self.refuse_tracked(shared) {
            self.note_remote_problem(&error.to_string())?;
            return Err(error);
        }
        let lock = self.sharing_lock()?;
        let mut run = Run::new(self, shared)?;
        shared.branch().clean()?;
        drop(lock);
        if let Err(error) = run.sync(options) {
            if let SharingError::Git(GitError::CheckedOut { .. }) = &error {
                self.note_remote_problem(&error.to_string())?;
            }
            return Err(error);
        }
        run.finish(options)
    }

    /// Remembers why shared plans do not leave, so that it can be shown until they do.
    fn note_remote_problem(&self, problem: &str) -> Result<(), SharingError> {
        let (store, now) = (self.plans().store(), self.now()?);
        let before = store.query(rows::seen_remote)?;
        let since = before.since.or(Some(now));
        let remote = SeenRemote { problem: Some(problem.to_owned()), since, ..before };
        Ok(store.write(&mut |write| rows::put_seen_remote(write, &remote))?)
    }

    /// Creates the branch with nothing but its format, if it is not there.
    pub fn create_shared_branch(&self, shared: &SharedBranch) -> Result<(), SharingError> {
        let _lock = self.sharing_lock()?;
        let run = Run::new(self, shared)?;
        if run.tip()?.is_some() {
            return Ok(());
        }
        let publication =
            Publication { message: "waypost: shared plans\n".to_owned(), ..Publication::default() };
        match shared.branch().publish(None, &publication, run.author()?) {
            // Somebody else created it.
            Ok(_) | Err(GitError::Moved(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Commits what this clone wrote to its own branch, and imports what a `git fetch` or `git pull` of the user brought.
    pub fn publish_locally(&self, shared: &SharedBranch) -> Result<SyncReport, SharingError> {
        self.sync(shared, &SyncOptions::default())
    }
}

impl<'a> Run<'a> {
    fn new(service: &'a Service, shared: &'a SharedBranch) -> Result<Self, SharingError> {
        let tag = service.ensure_tag(shared)?;
        let report = SyncReport {
            branch: shared.name.short().to_owned(),
            remote: shared.remote.as_ref().map(|remote| remote.as_str().to_owned()),
            ..SyncReport::default()
        };
        let (aside, from, changed) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let standing = service.plans().store().query(rows::findings)?;
        Ok(Self { service, shared, tag, report, aside, from, changed, standing })
    }

    fn author(&self) -> Result<Author, SharingError> {
        Ok(Author { seconds: self.service.now()?.as_micros().div_euclid(1_000_000) })
    }

    /// Keeps what is wrong with files, until they change.
    fn note_damage(&mut self, damage: Vec<Damage>) {
        let mut known: usize = self.standing.values().map(Vec::len).sum();
        for damage in damage {
            let finding = damage.to_string();
            let of_file = self.standing.entry(damage.path).or_default();
            if known < FINDINGS_MAX && !of_file.contains(&finding) {
                of_file.push(finding);
                known += 1;
            }
        }
    }

    /// The commit of the branch, and the one that the store last saw.
    fn tip(&self) -> Result<Option<Oid>, SharingError> {
        Ok(self.shared.branch().tip()?.map(|tip| tip.commit))
    }

    fn sync(&mut self, options: &SyncOptions) -> Result<(), SharingError> {
        // Nobody waits for this clone while it waits for the remote.
        let mut theirs = self.theirs(options.fetch)?;
        let mut lock = Some(self.service.sharing_lock()?);
        if let Some(name) = &options.from {
            let commit = self.shared.repository.commit_of(name)?;
            self.shared.branch().check_format(&commit).map_err(|mut error| {
                if let GitError::NotOurs { name: found, .. } = &mut error {
                    found.clone_from(name);
                }
                error
            })?;
            self.join(&commit)?;
        }
        if self.shared.trusted {
            self.service.release_trusted(self.shared)?;
        }
        let mut pushes = 0;
        loop {
            if let Some(theirs) = &theirs {
                self.note_joined(theirs)?;
                self.join(theirs)?;
            }
            self.import()?;
            self.service.derive_all(&self.tag)?;
            self.publish()?;
            let Some((remote, tip)) = self.shared.remote.as_ref().zip(self.tip()?) else { return Ok(()) };
            let has_everything = theirs.as_ref() == Some(&tip) && self.report.remote_problem.is_none();
            self.report.pushed = options.fetch && has_everything;
            if has_everything || !options.push || self.report.remote_problem.is_some() {
                return Ok(());
            }
            // What somebody slipped into the local branch must not look to others as if it came from here.
            let withheld = self.service.withheld_here(self.shared)?.into_iter();
            self.report.strange =
                withheld.filter(|withheld| withheld.is_strange).map(|withheld| withheld.plan).collect();
            if !self.report.strange.is_empty() {
                return Ok(());
            }
            drop(lock.take());
            match self.shared.branch().push(remote, &tip)? {
                Pushed::Done => {
                    (self.report.pushed, self.report.sent) = (true, true);
                    return Ok(());
                }
                Pushed::Refused(why) => {
                    self.report.remote_problem = Some(why);
                    return Ok(());
                }
                Pushed::Behind if pushes == PUSHES_MAX => {
                    let problem =
                        "it took none of several pushes: other clones are faster, or its branch is locked";
                    self.report.remote_problem = Some(problem.to_owned());
                    return Ok(());
                }
                Pushed::Behind => {
                    pushes += 1;
                    // Clones that collided once would collide again if all waited equally long.
                    wait(Duration::from_millis(jitter(pushes)));
                    theirs = self.theirs(options.fetch)?;
                    lock = Some(self.service.sharing_lock()?);
                }
            }
        }
    }

    /// The commit that the remote has, fetched or as the user's last fetch left it.
    fn theirs(&mut self, fetch: bool) -> Result<Option<Oid>, SharingError> {
        let Some(remote) = &self.shared.remote else { return Ok(None) };
        let tracking = self.shared.name.tracking(remote);
        if fetch {
            match self.shared.branch().fetch(remote)? {
                Fetched::Tip(theirs) => return self.ours_only(theirs, &tracking),
                Fetched::NoBranch => return Ok(None),
                Fetched::Unreachable(why) => self.report.remote_problem = Some(why),
            }
        }
        match self.shared.repository.tip(&tracking)? {
            Some(tip) => self.ours_only(tip.commit, &tracking),
            None => Ok(None),
        }
    }

    /// Leaves a remote's branch alone that holds something else than plans.
    fn ours_only(&mut self, theirs: Oid, tracking: &str) -> Result<Option<Oid>, SharingError> {
        match self.shared.branch().check_format(&theirs) {
            Ok(()) => Ok(Some(theirs)),
            Err(GitError::NotOurs { problem, .. }) => {
                self.report.remote_problem = Some(format!("{tracking} {problem}"));
                self.report.remote_overwritten = true;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Remembers what the trusted remote had, so that it is known where its records came from, whatever happens until they
    /// are imported.
    fn note_joined(&self, theirs: &Oid) -> Result<(), SharingError> {
        let name = theirs.to_string();
        if !self.shared.trusted || self.tip()?.as_ref() == Some(theirs) {
            return Ok(());
        }
        let store = self.service.plans().store();
        let mut seen = store.query(rows::seen_remote)?;
        if !seen.joined.contains(&name) && seen.commit.as_ref() != Some(&name) {
            seen.joined.push(name);
            store.write(&mut |write| rows::put_seen_remote(write, &seen))?;
        }
        Ok(())
    }

    fn join(&mut self, theirs: &Oid) -> Result<(), SharingError> {
        let author = self.author()?;
        for _ in 0..MOVES_MAX {
            let ours = self.tip()?;
            match self.shared.branch().join(ours.as_ref(), theirs, author) {
                Err(GitError::Moved(_)) => {}
                joined => return Ok(joined.map(drop)?),
            }
        }
        Err(SharingError::Busy)
    }

    /// Imports what came to the branch since it was last seen.
    fn import(&mut self) -> Result<(), SharingError> {
        let seen = self.service.plans().store().query(rows::seen_branch)?;
        let name = self.shared.name.as_str().to_owned();
        let is_other_branch = seen.as_ref().is_some_and(|seen| seen.name != name);
        let seen = seen.filter(|seen| seen.name == name);
        let tip = self.tip()?;
        let known = seen.as_ref().map(|seen| Oid::new(&seen.commit)).transpose()?;
        if tip == known && !is_other_branch {
            return Ok(());
        }
        let Some(tip) = tip else {
            // Somebody deleted the branch, or the configuration names another one: all of it is to be written again.
            let plans: Vec<PlanId> = self.shared_plans()?;
            for plan in plans {
                self.import_plan(&Arrived::nothing(plan))?;
            }
            return self.put_seen(None);
        };
        self.shared.branch().check_format(&tip)?;
        let known = match known {
            Some(known) if self.shared.repository.has(&known)? => Some(known),
            Some(_) | None => None,
        };
        let (files, whole) = self.files_to_read(known.as_ref(), &tip)?;
        self.import_files(&tip, &files, &whole)?;
        self.put_seen(Some(&tip))
    }

    fn shared_plans(&self) -> Result<Vec<PlanId>, SharingError> {
        let shares = self.service.plans().store().query(rows::shares)?.into_iter();
        let is_here = |share: &rows::PlanShare| share.shared && share.home == self.shared.home;
        Ok(shares.filter(|(_, share)| is_here(share)).map(|(plan, _)| plan).collect())
    }

    fn put_seen(&self, tip: Option<&Oid>) -> Result<(), SharingError> {
        let name = self.shared.name.as_str().to_owned();
        let seen = tip.map(|tip| SeenBranch { name, commit: tip.to_string() });
        Ok(self.service.plans().store().write(&mut |write| {
            rows::put_findings(write, &self.standing)?;
            rows::put_seen_branch(write, seen.as_ref())
        })?)
    }

    /// Returns the files with records to read, sorted, and the plans of which these are all.
    fn files_to_read(
        &mut self,
        known: Option<&Oid>,
        tip: &Oid,
    ) -> Result<(Vec<TreeFile>, BTreeSet<PlanId>), SharingError> {
        let repository = &self.shared.repository;
        let mut whole = BTreeSet::new();
        let (mut files, damage) = match known {
            None => {
                self.standing.clear();
                let (files, damage) = repository.files(tip, "plans/")?;
                whole.extend(self.shared_plans()?);
                whole.extend(files.iter().filter_map(TreeFile::plan));
                (files, damage)
            }
            Some(known) => {
                let changes = repository.changes(known, tip)?;
                for file in changes.removed.iter().chain(&changes.added) {
                    self.standing.remove(&file.path);
                }
                let shrunk: BTreeSet<PlanId> = changes.removed.iter().filter_map(TreeFile::plan).collect();
                let mut files = changes.added;
                files.retain(|file| file.plan().is_none_or(|plan| !shrunk.contains(&plan)));
                for plan in shrunk {
                    files.extend(repository.files(tip, &format!("plans/{plan}/"))?.0);
                    whole.insert(plan);
                }
                (files, changes.damage)
            }
        };
        self.note_damage(damage);
        files.retain(|file| file.plan().is_some());
        files.sort();
        Ok((files, whole))
    }

    fn import_files(
        &mut self,
        tip: &Oid,
        files: &[TreeFile],
        whole: &BTreeSet<PlanId>,
    ) -> Result<(), SharingError> {
        // What is read again is found again.
        for file in files {
            self.standing.remove(&file.path);
        }
        let (mut current, mut failed): (Option<Arrived>, Option<SharingError>) = (None, None);
        let (mut read, mut findings) = (BTreeSet::new(), Vec::new());
        let (shared, vouched) = (self.shared, self.vouched(files)?);
        let damage = shared.repository.read_lines(tip, files, |line| {
            let Some(plan) = line.file.plan().filter(|_| failed.is_none()) else { return };
            if current.as_ref().is_none_or(|current| current.plan != plan) {
                let next = Arrived { whole: whole.contains(&plan), ..Arrived::nothing(plan.clone()) };
                if let Some(complete) = current.replace(next) {
                    failed = self.import_plan(&complete).err();
                }
                read.insert(plan.clone());
            }
            match Record::parse(line.text.as_bytes()) {
                Ok(record) if *record.plan() == plan => {
                    if let Some(current) = &mut current {
                        let is_strange =
                            vouched.as_ref().is_some_and(|known| !known.contains(&line.file.oid));
                        current.strange.extend(is_strange.then(|| record.id()));
                        current.records.push(record);
                    }
                }
                Ok(record) => {
                    let problem = format!("this is a record of plan {}", record.plan());
                    findings.push(line.damage(tip, problem));
                }
                Err(error) => findings.push(line.damage(tip, error.to_string())),
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if let Some(complete) = current {
            self.import_plan(&complete)?;
        }
        // Plans of which the branch holds nothing any more.
        for plan in whole.difference(&read) {
            self.import_plan(&Arrived::nothing(plan.clone()))?;
        }
        self.note_damage(damage.into_iter().chain(findings).collect());
        Ok(())
    }

    /// The contents that the trusted remote has; `None` if nothing comes from anywhere else.
    fn vouched(&self, files: &[TreeFile]) -> Result<Option<HashSet<Oid>>, SharingError> {
        let Some(remote) = self.shared.remote.as_ref().filter(|_| self.shared.trusted && !files.is_empty())
        else {
            return Ok(None);
        };
        let tracking = self.shared.name.tracking(remote);
        let joined = self.service.plans().store().query(rows::seen_remote)?.joined;
        let joined = joined.iter().filter_map(|commit| Oid::new(commit).ok());
        let tip = self.shared.repository.tip(&tracking)?.map(|tip| tip.commit);
        let mut vouched = HashSet::new();
        for commit in joined.chain(tip) {
            if self.shared.repository.has(&commit)? {
                let (files, _) = self.shared.repository.files(&commit, "plans/")?;
                vouched.extend(files.into_iter().map(|file| file.oid));
            }
        }
        Ok(Some(vouched))
    }

    fn import_plan(&mut self, arrived: &Arrived) -> Result<(), SharingError> {
        let imported = match self.service.import_records(arrived, &self.tag, self.shared) {
            // What is wrong with one plan does not stop the others.
            Err(SharingError::Records { plan, problem }) => {
                self.aside.insert(KeptAside { plan, reason: problem });
                return Ok(());
            }
            imported => imported?,
        };
        if let Some(mut refused) = imported.refused {
            refused.truncate(FINDINGS_MAX);
            self.standing.insert(records_of(&arrived.plan), refused);
        }
        self.report.imported += imported.new;
        self.from.extend(imported.from);
        if imported.is_twin {
            self.tag = self.service.draw_another_tag(&self.tag, &self.shared.place)?;
        }
        if imported.changed {
            self.changed.insert(arrived.plan.clone());
        }
        if let Some(reason) = imported.aside {
            self.aside.insert(KeptAside { plan: arrived.plan.clone(), reason });
        }
        Ok(())
    }

    /// Commits the records that the branch does not hold yet.
    fn publish(&mut self) -> Result<(), SharingError> {
        for _ in 0..MOVES_MAX {
            // Somebody may have moved the branch since the import: what it holds must be known first.
            self.import()?;
            let tip = self.tip()?;
            let (publication, published) = self.publication()?;
            if publication.is_empty() {
                return self.pack(tip);
            }
            let count = published.iter().map(|(_, ids)| ids.len()).sum::<usize>();
            match self.shared.branch().publish(tip.as_ref(), &publication, self.author()?) {
                Err(GitError::Moved(_)) => continue,
                made => self.note_published(&made?, &published)?,
            }
            self.report.published += count;
            let touched = published.into_iter().map(|(plan, _)| plan).collect();
            return self.pack_plans(touched);
        }
        Err(SharingError::Busy)
    }

    fn publication(&self) -> Result<(Publication, Published), SharingError> {
        let mut publication = Publication::default();
        let (mut published, mut count) = (Vec::new(), 0);
        for plan in self.shared_plans()? {
            let waiting = self.service.plans().store().query(|read| rows::unpublished(read, &plan))?;
            if waiting.is_empty() {
                continue;
            }
            let mut records: Vec<(ParsedRecord, String)> = Vec::new();
            let mut ids = Vec::new();
            for (id, line) in waiting {
                let problem = |error: waypost_operation::RecordError| SharingError::Records {
                    plan: plan.clone(),
                    problem: format!("record {id}: {error}"),
                };
                records.push((Record::parse(line.as_bytes()).map_err(problem)?, line));
                ids.push(id);
            }
            records.sort_by_key(|(record, _)| (record.clock(), record.id()));
            count += records.len();
            publication.files.extend(segments(&plan, &self.tag, &records));
            published.push((plan, ids));
        }
        let (records, plans) = (plural(count, "record"), plural(published.len(), "plan"));
        publication.message = format!("waypost: {records} in {plans}\n");
        Ok((publication, published))
    }

    fn note_published(&self, tip: &Oid, published: &Published) -> Result<(), SharingError> {
        let name = self.shared.name.as_str().to_owned();
        let seen = SeenBranch { name, commit: tip.to_string() };
        self.service.plans().store().write(&mut |write| {
            for (plan, ids) in published {
                ids.iter().try_for_each(|id| rows::put_published(write, plan, id))?;
            }
            rows::put_seen_branch(write, Some(&seen))
        })?;
        Ok(())
    }

    /// Packs the plans that the imported records changed.
    fn pack(&mut self, tip: Option<Oid>) -> Result<(), SharingError> {
        let changed: Vec<PlanId> = self.changed.iter().cloned().collect();
        match tip {
            Some(_) => self.pack_plans(changed),
            None => Ok(()),
        }
    }

    /// Joins the files of plans that have become many.
    fn pack_plans(&mut self, plans: Vec<PlanId>) -> Result<(), SharingError> {
        let Some(tip) = self.tip()? else { return Ok(()) };
        let mut all = Publication { message: "waypost: pack\n".to_owned(), ..Publication::default() };
        for plan in plans {
            if let Some(packing) = self.shared.branch().packing(&tip, &plan)? {
                all.files.extend(packing.files);
                all.removed.extend(packing.removed);
            }
        }
        if all.is_empty() {
            return Ok(());
        }
        match self.shared.branch().publish(Some(&tip), &all, self.author()?) {
            // Somebody else publishes: the next sync packs.
            Err(GitError::Moved(_)) => Ok(()),
            made => self.note_published(&made?, &Published::new()),
        }
    }

    /// Returns the number of records on the branch that the remote does not have, as far as is known here.
    fn waiting(&self) -> Result<usize, SharingError> {
        let (Some(remote), Some(tip)) = (&self.shared.remote, self.tip()?) else { return Ok(0) };
        let repository = &self.shared.repository;
        let tracking = repository.tip(&self.shared.name.tracking(remote))?.map(|tip| tip.commit);
        let is_ours = |commit: &Oid| self.shared.branch().check_format(commit).is_ok();
        let theirs = tracking.filter(is_ours);
        let mut lines: HashSet<String> = HashSet::new();
        let (mut added, mut removed) = match &theirs {
            Some(theirs) => {
                let changes = repository.changes(theirs, &tip)?;
                (changes.added, changes.removed)
            }
            None => (repository.files(&tip, "plans/")?.0, Vec::new()),
        };
        added.retain(|file| file.plan().is_some());
        removed.retain(|file| file.plan().is_some());
        let _unread = repository.read_lines(&tip, &added, |line| {
            lines.insert(line.text.to_owned());
        })?;
        if let Some(theirs) = theirs {
            // Files that were packed hold the same records.
            let _unread = repository.read_lines(&theirs, &removed, |line| {
                lines.remove(line.text);
            })?;
        }
        Ok(lines.len())
    }

    fn finish(mut self, options: &SyncOptions) -> Result<SyncReport, SharingError> {
        let remote = SeenRemote {
            commit: self.tip()?.filter(|_| self.report.pushed).map(|tip| tip.to_string()),
            problem: self.report.remote_problem.clone(),
            joined: Vec::new(),
            ..SeenRemote::default()
        };
        let store = self.service.plans().store();
        let before = store.query(rows::seen_remote)?;
        if options.fetch && !self.report.pushed {
            self.report.waiting = self.waiting()?;
        }
        let remote = match &remote.problem {
            Some(_) => {
                let since = before.since.or(Some(self.service.now()?));
                SeenRemote { since, waiting: self.report.waiting, ..remote }
            }
            None => remote,
        };
        // Who did not ask the remote knows nothing new of it.
        if options.fetch && before != remote {
            store.write(&mut |write| rows::put_seen_remote(write, &remote))?;
        }
        self.report.commit = self.tip()?.map(|tip| tip.to_string());
        self.report.from = self.from.into_iter().filter(|tag| tag != self.tag.as_str()).collect();
        self.report.plans = self.changed.into_iter().collect();
        self.aside.extend(self.service.left_out(self.shared)?);
        self.report.kept_aside = self.aside.into_iter().collect();
        self.report.withheld = store.query(rows::withheld)?.into_iter().map(|(plan, _)| plan).collect();
        let shares = store.query(rows::shares)?;
        let findings = std::mem::take(&mut self.standing).into_values().flatten();
        self.report.findings.extend(findings.take(FINDINGS_MAX));
        let newer = shares.iter().filter(|(_, share)| share.shared && share.newer > 0);
        let newer = newer.map(|(plan, share)| {
            let records = plural(share.newer, "record");
            format!("plan {plan}: {records} of a newer Waypost: passed on, and merged after an update")
        });
        self.report.findings.extend(newer);
        self.report.questions =
            shares.iter().filter(|(_, share)| share.shared).map(|(_, share)| share.questions).sum();
        Ok(self.report)
    }
}

fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Milliseconds to wait before another push.
fn jitter(pushes: u64) -> u64 {
    let mut byte = [0u8; 1];
    // Without randomness the process number has to do.
    if getrandom::fill(&mut byte).is_err() {
        byte[0] = (std::process::id() % 256) as u8;
    }
    u64::from(byte[0]) * pushes
}

/// Cuts the records of a plan into files.
fn segments(plan: &PlanId, tag: &CloneTag, records: &[(ParsedRecord, String)]) -> Vec<Segment> {
    let (mut made, mut lines, mut bytes, mut clock): (Vec<Segment>, Vec<&str>, usize, u64) =
        (Vec::new(), Vec::new(), 0, 0);
    for (record, line) in records {
        if bytes + line.len() > SEGMENT_BYTES_MAX && !lines.is_empty() {
            made.push(Segment::new(plan, clock, tag.as_str(), &lines));
            lines.clear();
            bytes = 0;
        }
        if lines.is_empty() {
            clock = record.clock();
        }
        bytes += line.len() + 1;
        lines.push(line);
    }
    if !lines.is_empty() {
        made.push(Segment::new(plan, clock, tag.as_str(), &lines));
    }
    made
}
