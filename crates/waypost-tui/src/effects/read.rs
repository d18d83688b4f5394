//! Reads for the screens, limited to what they can show.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use waypost_core::{Draft, Plan, Status, TaskId, Timestamp, differences_in_full};
use waypost_service::{Texts, difference_lines, is_for_people, summary, why};
use waypost_store::{FoundLog, NoLog, find_log};
use waypost_store::{PlanStore, ProgressFeed, Query, StoreError, VersionRecord};

use super::context::EffectContext;
use super::workspace::Workspace;
use crate::history::{Compared, DIFF_LINES_MAX, HistoryReply, VERSIONS_PAGE, Version, Versions};
use crate::messages::{Message, Reply};
use crate::note::ErrorMessage;
use crate::plan::{LoadedPlan, PlanKey};
use crate::run_view::{LOG_BYTES_MAX, PlanSnapshot, Preview, RunReply, TaskDetail};
use crate::text;

/// Maximum number of changes read at a time.
const NEWS_MAX: usize = 1_000;
/// How long to wait for a change before reading the store's clock again.
const QUIET_MAX: Duration = Duration::from_secs(10);
/// How long to wait after a failed read.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// Columns of a value in a comparison.
const VALUE_COLUMNS: usize = 60;

/// The store's time.
pub(crate) fn now(plans: &PlanStore) -> Result<Timestamp, StoreError> {
    let mut now = Timestamp::from_micros(0);
    plans.store().read(&mut |read| {
        now = read.now();
        Ok(())
    })?;
    Ok(now)
}

impl EffectContext {
    /// Watches a store on a thread, and reports all changes to the event loop, including those by other processes.
    pub(super) fn watch(&self, store: usize) -> io::Result<()> {
        let Ok(workspace) = self.workspace(store) else { return Ok(()) };
        let (plans, context) = (workspace.plans(), self.clone());
        std::thread::Builder::new().name("news".to_owned()).spawn(move || {
            let mut seen = None;
            while let Err(error) = context.follow(store, &plans, &mut seen) {
                let hint = "changes by others are not shown until the store can be read again".to_owned();
                context.notify_error(&ErrorMessage { hint, ..error.into() });
                std::thread::park_timeout(RETRY_INTERVAL);
            }
        })?;
        Ok(())
    }

    /// Reports changes after `seen`. Returns when the workspace has another store.
    fn follow(&self, store: usize, plans: &Arc<PlanStore>, seen: &mut Option<u64>) -> Result<(), StoreError> {
        let mut watch = plans.watch()?;
        let mut up_to = match *seen {
            Some(seen) => seen,
            None => plans.latest()?,
        };
        let mut progress = ProgressFeed::default();
        // The watch does not report changes made while the store could not be read.
        let (mut has_news, mut is_quiet) = (true, true);
        while self.workspace(store).is_ok_and(|workspace| Arc::ptr_eq(&workspace.plans(), plans)) {
            // The screens read progress at a tick.
            if !progress.poll(plans, Instant::now())?.is_empty() || is_quiet {
                self.send(Message::Tick(now(plans)?));
            }
            while has_news {
                let written = plans.written_since(up_to, NEWS_MAX)?;
                up_to = written.up_to;
                *seen = Some(up_to);
                has_news = written.more;
                if !written.plans.is_empty() {
                    self.send(Message::Written { store, plans: written.plans });
                }
            }
            let held_back = progress.wait(Instant::now());
            has_news = watch.wait(held_back.map_or(QUIET_MAX, |due| due.min(QUIET_MAX)))?;
            is_quiet = !has_news && held_back.is_none();
        }
        Ok(())
    }

    pub(super) fn plan_page(&self, store: usize, ticket: u64, query: &Query) {
        let heads = self.workspace(store).and_then(|workspace| Ok(Box::new(workspace.plans().heads(query)?)));
        self.reply(Reply::PlanPage { store, ticket, heads });
    }

    pub(super) fn plan(&self, plan: PlanKey) {
        let loaded = self.with_plan(&plan, |_, known| Box::new(LoadedPlan::of(known)));
        self.reply(Reply::Plan { plan, loaded });
    }

    fn with_plan<R>(
        &self,
        plan: &PlanKey,
        read: impl FnOnce(&Workspace, &Plan) -> R,
    ) -> Result<R, ErrorMessage> {
        let workspace = self.workspace(plan.store)?;
        Ok(workspace.plans().view(&plan.id, |known, warnings| {
            for warning in warnings {
                self.notify_error(&ErrorMessage { what: warning.clone(), hint: String::new() });
            }
            read(workspace, known)
        })?)
    }

    pub(super) fn snapshot(&self, plan: PlanKey) {
        let snapshot = self.workspace(plan.store).and_then(|workspace| {
            let now = now(&workspace.plans())?;
            self.with_plan(&plan, |workspace, known| {
                Box::new(PlanSnapshot::of(known, now, &|task| is_for_people(&workspace.config, task)))
            })
        });
        self.reply(Reply::Run(RunReply::Snapshot(plan, snapshot)));
    }

    pub(super) fn preview(&self, plan: PlanKey) {
        let preview = self
            .workspace(plan.store)
            .and_then(|workspace| Ok(Box::new(Preview::of(&workspace.service().preview(&plan.id)?))));
        self.reply(Reply::Run(RunReply::Preview(plan, preview)));
    }

    pub(super) fn load_task_detail(&self, plan: PlanKey, task: TaskId) {
        let detail = self
            .task_detail(&plan, &task)
            .unwrap_or_else(|error| TaskDetail { log_note: error.line(), ..TaskDetail::default() });
        self.reply(Reply::Run(RunReply::TaskDetail(plan, task, Box::new(detail))));
    }

    fn task_detail(&self, plan: &PlanKey, task: &TaskId) -> Result<TaskDetail, ErrorMessage> {
        let workspace = self.workspace(plan.store)?;
        let plans = workspace.plans();
        let state =
            plans.view(&plan.id, |known, _| known.task(task.as_str()).map(|task| task.state.clone()))?;
        let state = state.unwrap_or_default();
        let mut detail = TaskDetail::default();
        if state.status == Status::Pending {
            let why = why(&plans, &plan.id, task)?;
            detail.why = why.reasons.into_iter().map(|reason| reason.words).collect();
        }
        if state.attempt == 0 {
            return Ok(detail);
        }
        let key = (&plan.id, task, state.attempt);
        let worker = state.worker.as_deref();
        match find_log(&plans, &workspace.around.logs, key, worker, LOG_BYTES_MAX) {
            Ok(FoundLog::File { text, bytes }) => (detail.log, detail.log_bytes) = (text, bytes),
            Ok(FoundLog::Copy(copy)) => {
                detail.log_note = format!("a copy; the file is on worker {}", copy.worker);
                (detail.log, detail.log_bytes) = (copy.text, copy.bytes);
            }
            Ok(FoundLog::Nothing { elsewhere: Some(worker) }) => {
                detail.log_note = format!("no log here yet: it is on worker {worker}");
            }
            Ok(FoundLog::Nothing { elsewhere: None }) => {}
            Err(NoLog::File(error)) => detail.log_note = format!("the log cannot be read: {error}"),
            Err(NoLog::Store(error)) => detail.log_note = format!("the log cannot be read: {error}"),
        }
        if detail.log_bytes > detail.log.len() as u64 {
            let part = format!("the last {} of {} bytes", detail.log.len(), detail.log_bytes);
            detail.log_note = match detail.log_note.as_str() {
                "" => part,
                note => format!("{part}, {note}"),
            };
        }
        Ok(detail)
    }

    pub(super) fn versions(&self, plan: PlanKey, before: Option<u64>) {
        let versions = self.versions_of(&plan, before).map(Box::new);
        self.reply(Reply::History(HistoryReply::Versions(plan, before, versions)));
    }

    fn versions_of(&self, plan: &PlanKey, before: Option<u64>) -> Result<Versions, ErrorMessage> {
        let workspace = self.workspace(plan.store)?;
        let plans = workspace.plans();
        let (current, title) =
            plans.view(&plan.id, |known, _| (known.version(), known.spec().title.clone()))?;
        let last = before.map_or(current, |before| before.saturating_sub(1).min(current));
        let after = last.saturating_sub(VERSIONS_PAGE as u64);
        let entries = plans.history(&plan.id, after, (last - after) as usize)?;
        let rows = entries.into_iter().rev().map(version).collect();
        Ok(Versions { title, current, rows, more: after > 0 })
    }

    pub(super) fn compare(&self, plan: PlanKey, old: u64, new: u64) {
        let compared = self.compared(&plan, old, new).map(Box::new);
        self.reply(Reply::History(HistoryReply::Compared(plan, (old, new), compared)));
    }

    fn compared(&self, plan: &PlanKey, old: u64, new: u64) -> Result<Compared, ErrorMessage> {
        let workspace = self.workspace(plan.store)?;
        let plans = workspace.plans();
        let at = |version: u64| match version {
            0 => Ok(Draft::default()),
            version => plans.at_version(&plan.id, version).map(|known| known.to_draft()),
        };
        let different = differences_in_full(&at(old)?, &at(new)?);
        let mut lines = difference_lines(&different, Texts::ByLine, &|value| {
            text::truncate(value, VALUE_COLUMNS).into_owned()
        });
        let total = lines.len();
        lines.truncate(DIFF_LINES_MAX);
        Ok(Compared { lines, total })
    }
}

fn version(entry: VersionRecord) -> Version {
    let forgotten = entry.is_forgotten();
    let what = entry.forgotten().unwrap_or_else(|| summary(&entry.events));
    Version { number: entry.version, at: entry.at, who: entry.actor.to_string(), what, forgotten }
}
