//! Reads for the screens, limited to what they can show.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use waypost_core::{
    Draft, Phase, Plan, PlanId, Status, Task, TaskId, TaskState, Timestamp, differences_in_full,
};
use waypost_service::{
    CommitOfTask, CommitsOfTask, HumanExecutors, QuestionPage, Service, TaskSearch, Texts, difference_lines,
    summary, task_commits, why,
};
use waypost_store::{FoundLog, LogTimes, NoLog, find_log, log_path, worker_place};
use waypost_store::{Page, PlanStore, ProgressFeed, Query, Sort, StoreError, VersionRecord};

use super::context::EffectContext;
use super::workspace::Workspace;
use crate::history::{Compared, DIFF_LINES_MAX, HistoryReply, VERSIONS_PAGE, Version, Versions};
use crate::messages::{Message, Reply};
use crate::note::ErrorMessage;
use crate::palette::{PLANS_FOUND_MAX, SearchHit, SearchRequest, TASKS_FOUND_MAX};
use crate::plan::{ListedPlan, LoadedPlan, PlanKey};
use crate::plan_text::PlanText;
use crate::run_view::{CONFLICTS_MAX, LOG_BYTES_MAX, PlanSnapshot, Preview, RunReply, TaskDetail};
use crate::text;

/// Maximum number of changes read at a time.
const NEWS_MAX: usize = 1_000;
/// Maximum number of plans of a page that are read for their status.
const STATUSES_READ_MAX: usize = 500;
/// Maximum number of workers named with a plan.
const WORKERS_NAMED_MAX: usize = 3;
/// With fewer characters, only the tasks of one plan are searched.
const SEARCHED_CHARACTERS_MIN: usize = 2;
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
        let heads = self.listed(store, query).map(Box::new);
        self.reply(Reply::PlanPage { store, ticket, heads });
    }

    /// A page of plans, each with its status and who works on it. What needs somebody stands first in most orders, so only the
    /// first plans are read; of the others the summary tells.
    fn listed(&self, store: usize, query: &Query) -> Result<Page<ListedPlan>, ErrorMessage> {
        let service = self.workspace(store)?.service();
        let Page { items, total, next, warnings } = service.plans().heads(query)?;
        let statuses = service.plan_statuses()?;
        let mut listed = Vec::with_capacity(items.len());
        for (at, summary) in items.into_iter().enumerate() {
            let mut status = match at < STATUSES_READ_MAX {
                true => service.plan_status(&statuses, &summary)?,
                false => statuses.of_summary(&summary),
            };
            // It may quote what a program printed.
            status.detail = waypost_text::terminal_text(&status.detail, false);
            let is_running = summary.counts.in_progress() > 0 && at < STATUSES_READ_MAX;
            let workers = if is_running { workers(&service, &summary.id) } else { Vec::new() };
            let has_text = summary.is_document() && {
                let has_body = |plan: &Plan| !plan.spec().body.trim().is_empty();
                service.read(&summary.id, has_body).unwrap_or_default()
            };
            listed.push(ListedPlan { summary, status, workers, has_text });
        }
        Ok(Page { items: listed, total, next, warnings })
    }

    /// Finds plans by their id or title, and tasks: those of one plan first, and those of all plans once enough is typed.
    pub(super) fn search(&self, request: &SearchRequest) {
        let mut hits = Vec::new();
        if let Some(PlanKey { store, id }) = &request.plan {
            let wanted =
                TaskSearch { text: request.text.clone(), plan: Some(id.clone()), ..TaskSearch::default() };
            self.find_tasks(*store, &wanted, &mut hits);
        }
        for store in 0..self.stores() {
            let text = Some(request.text.clone()).filter(|text| !text.is_empty());
            let query = Query { text, sort: Sort::Attention, limit: PLANS_FOUND_MAX, ..Query::default() };
            let Ok(found) = self.listed(store, &query) else { continue };
            hits.extend(found.items.into_iter().map(|ListedPlan { summary, status, .. }| SearchHit {
                is_draft: summary.phase == Phase::Draft,
                title: if summary.title.is_empty() { summary.id.to_string() } else { summary.title },
                plan: PlanKey { store, id: summary.id },
                task: None,
                sign: status.sign,
            }));
        }
        if request.text.chars().count() >= SEARCHED_CHARACTERS_MIN {
            for store in 0..self.stores() {
                let wanted = TaskSearch { text: request.text.clone(), ..TaskSearch::default() };
                self.find_tasks(store, &wanted, &mut hits);
            }
        }
        self.reply(Reply::Found(request.ticket, hits));
    }

    fn find_tasks(&self, store: usize, wanted: &TaskSearch, hits: &mut Vec<SearchHit>) {
        let Ok(workspace) = self.workspace(store) else { return };
        // A plan that cannot be read has its own message on its own screen.
        let found = workspace.service().search_tasks(wanted, TASKS_FOUND_MAX).unwrap_or_default();
        for task in found.tasks {
            let hit = SearchHit {
                sign: task.sign(),
                plan: PlanKey { store, id: task.plan },
                task: Some(task.task),
                title: task.text,
                is_draft: false,
            };
            if !hits.iter().any(|known| known.plan == hit.plan && known.task == hit.task) {
                hits.push(hit);
            }
        }
    }

    pub(super) fn plan(&self, plan: PlanKey) {
        let loaded = self.with_plan(&plan, |workspace, known| {
            let config = &workspace.config;
            let mut loaded = LoadedPlan::of(known);
            let people = HumanExecutors::of(config, known);
            loaded.for_people = people.awaited().map(|task| task.spec.id.clone()).collect();
            loaded.executors = config.executors.keys().cloned().collect();
            loaded.queues = config.queues.keys().cloned().collect();
            Box::new(loaded)
        });
        let loaded = loaded.map(|mut loaded| {
            let service = self.workspace(plan.store).map(Workspace::service);
            // The run view reports what is wrong with its records.
            loaded.questions =
                service.map_or(0, |service| service.question_count(&plan.id).unwrap_or_default());
            loaded
        });
        self.reply(Reply::Plan { plan, loaded });
    }

    pub(super) fn text(&self, plan: PlanKey) {
        let text = self.with_plan(&plan, |_, known| Box::new(PlanText::of(known)));
        self.reply(Reply::Text(plan, text));
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
            let snapshot = self.with_plan(&plan, |workspace, known| {
                let people = HumanExecutors::of(&workspace.config, known);
                PlanSnapshot::of(known, now, &|task, status| people.sign(task, status))
            })?;
            let open = workspace.service().question_page(Some(&plan.id), None, CONFLICTS_MAX);
            let open = open.unwrap_or_else(|error| {
                self.notify_error(&error.into());
                QuestionPage::default()
            });
            let questions = open.questions.into_iter().map(|one| one.question).collect();
            Ok(Box::new(snapshot.with_conflicts(questions, open.total)))
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

    /// Finds the commits that name a task.
    pub(super) fn load_commits(&self, plan: PlanKey, task: TaskId) {
        let Some(found) = self.commits(&plan, &task) else { return };
        let line = |commit: &CommitOfTask| {
            format!("{}  {}  {}  {}", commit.short(), commit.at.to_the_second(), commit.author, commit.title)
        };
        let mut lines: Vec<String> = found.commits.iter().map(line).collect();
        lines.extend(found.more.then(|| "… and earlier ones".to_owned()));
        lines.extend(found.note);
        self.reply(Reply::Run(RunReply::Commits(plan, task, lines.join("\n"))));
    }

    fn commits(&self, plan: &PlanKey, task: &TaskId) -> Option<CommitsOfTask> {
        let workspace = self.workspace(plan.store).ok()?;
        let repository = workspace.repository.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        let created = workspace.plans().view(&plan.id, |known, _| known.state().created_at).ok()?;
        Some(task_commits(&repository, &plan.id, task, created))
    }

    fn task_detail(&self, plan: &PlanKey, task: &TaskId) -> Result<TaskDetail, ErrorMessage> {
        let workspace = self.workspace(plan.store)?;
        let plans = workspace.plans();
        let known = plans.view(&plan.id, |known, _| {
            known.task(task.as_str()).map(|task| (task.state.clone(), about(task), remarks(&task.state)))
        })?;
        let (state, about, remarks) = known.unwrap_or_default();
        let mut detail = TaskDetail { about, remarks, ..TaskDetail::default() };
        if state.status == Status::Pending {
            let why = why(&plans, Some(&workspace.config), &plan.id, task)?;
            detail.why = why.reasons.into_iter().map(|reason| reason.words).collect();
        }
        if state.attempt == 0 {
            return Ok(detail);
        }
        let key = (&plan.id, task, state.attempt);
        let worker = state.worker.as_deref();
        match find_log(&plans, &workspace.around.logs, key, worker, LOG_BYTES_MAX) {
            Ok(FoundLog::File { text, bytes }) => {
                let path = log_path(&workspace.around.logs, &plan.id, task, state.attempt);
                detail.log_times = line_times(&text, bytes, &LogTimes::of(&path));
                (detail.log, detail.log_bytes) = (text, bytes);
            }
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

    pub(super) fn preview_restore(&self, plan: PlanKey, version: u64, known: u64) {
        let preview = self
            .workspace(plan.store)
            .and_then(|workspace| Ok(Box::new(workspace.service().restore_preview(&plan.id, version)?)));
        self.reply(Reply::History(HistoryReply::Preview(plan, (version, known), preview)));
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

/// When each line of the end of a log was written.
fn line_times(text: &str, bytes: u64, times: &LogTimes) -> Vec<Timestamp> {
    let mut place = bytes.saturating_sub(text.len() as u64);
    let mut found = Vec::new();
    for line in text.split_inclusive('\n') {
        let Some(at) = times.at(place) else { return Vec::new() };
        found.push(at);
        place += line.len() as u64;
    }
    found
}

/// Who runs tasks of a plan now.
fn workers(service: &Service, plan: &PlanId) -> Vec<String> {
    const SHOWN: usize = 100;
    let running = |plan: &Plan| {
        let mut names: Vec<String> = plan
            .in_progress()
            .filter_map(|task| task.state.worker.as_deref())
            .map(|worker| worker_place(worker).to_owned())
            .take(SHOWN)
            .collect();
        names.sort();
        names.dedup();
        names.truncate(WORKERS_NAMED_MAX);
        names
    };
    // A plan that is gone by now has nobody.
    service.read(plan, running).unwrap_or_default()
}

/// Who a task is for, its labels, and the last comment: what there is of them, a line each.
fn remarks(state: &TaskState) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(state.assignee().map(|assignee| format!("assigned to {assignee}")));
    if !state.labels().is_empty() {
        lines.push(format!("labels: {}", state.labels().join(", ")));
    }
    if let Some(last) = state.comments().last() {
        let more = match state.comments().len() {
            1 => String::new(),
            all => format!(" (and {} before)", text::count(all - 1, "comment")),
        };
        lines.push(format!("{}: {}{more}", last.by, waypost_text::one_line(&last.text)));
    }
    lines
}

/// Everything said about a task, by name.
fn about(task: &Task) -> Vec<(&'static str, String)> {
    let (spec, state) = (&task.spec, &task.state);
    let of = |text: &Option<String>| text.clone().unwrap_or_default();
    let question = state.question().map(|question| question.text.clone()).unwrap_or_default();
    let output = state.output.as_ref().map(|output| output.as_str().to_owned()).unwrap_or_default();
    let comments: Vec<String> =
        state.comments().iter().map(|comment| format!("{}: {}", comment.by, comment.text)).collect();
    // What a program printed comes without its colours.
    let printed = |text: &Option<String>| waypost_text::terminal_text(&of(text), false);
    let all = [
        ("error", printed(&state.error)),
        ("question", question),
        ("description", spec.description.clone()),
        ("notes", spec.notes.clone()),
        ("reason", of(&state.reason)),
        ("progress", printed(&state.progress)),
        ("result", printed(&state.result)),
        ("output", output),
        ("assignee", state.assignee().unwrap_or_default().to_owned()),
        ("labels", state.labels().join(", ")),
        ("comments", comments.join("\n")),
    ];
    all.into_iter().filter(|(_, text)| !text.trim().is_empty()).collect()
}

fn version(entry: VersionRecord) -> Version {
    let forgotten = entry.is_forgotten();
    let what = entry.forgotten().unwrap_or_else(|| summary(&entry.events));
    Version { number: entry.version, at: entry.at, who: entry.actor.to_string(), what, forgotten }
}
