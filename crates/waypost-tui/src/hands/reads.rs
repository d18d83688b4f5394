//! What is read for the screens, bounded to what they can show.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use waypost_core::{Draft, Plan, Status, TaskId, Timestamp, differences};
use waypost_service::{Texts, difference_lines, is_for_people, summary, why};
use waypost_store::{Entry, Plans, Query, StoreError};
use waypost_store::{FoundLog, NoLog, find_log};

use super::writes::no_store;
use super::{Ground, Shared};
use crate::app::{Answer, Heads, Loaded, Message, PlanKey, Trouble};
use crate::history::{Compared, DIFF_LINES_MAX, HistoryAnswer, VERSIONS_PAGE, Version, Versions};
use crate::run::{Closer, LOG_BYTES_MAX, Preview, RunAnswer, Standings};
use crate::text;

/// Versions of all plans that are looked at for one piece of news.
const NEWS_MAX: usize = 1_000;
/// Between two looks at a store that tells nothing.
const QUIET_MAX: Duration = Duration::from_secs(10);
/// Between two tries to hear of a store that could not be read.
const AFTER_TROUBLE: Duration = Duration::from_secs(2);
/// Columns of a value in a comparison.
const VALUE_COLUMNS: usize = 60;

/// What time the store says it is.
pub(crate) fn now(plans: &Plans) -> Result<Timestamp, StoreError> {
    let mut now = Timestamp::from_micros(0);
    plans.store().read(&mut |read| {
        now = read.now();
        Ok(())
    })?;
    Ok(now)
}

impl Shared {
    /// Begins to tell the loop of what anybody writes into a store.
    pub(super) fn watch(&self, store: usize) -> io::Result<()> {
        let Some(ground) = self.ground(store) else { return Ok(()) };
        let (plans, shared) = (ground.plans(), self.clone());
        std::thread::Builder::new().name("news".to_owned()).spawn(move || {
            let mut seen = None;
            while let Err(error) = shared.follow(store, &plans, &mut seen) {
                let hint = "what others write is not shown until the store can be read again".to_owned();
                shared.trouble(&Trouble { hint, ..error.into() });
                std::thread::park_timeout(AFTER_TROUBLE);
            }
        })?;
        Ok(())
    }

    /// Tells of what is written after `seen` until the store is another one.
    fn follow(&self, store: usize, plans: &Arc<Plans>, seen: &mut Option<u64>) -> Result<(), StoreError> {
        let mut watch = plans.watch()?;
        let mut up_to = match *seen {
            Some(seen) => seen,
            None => plans.latest()?,
        };
        // What was written while the store could not be read is told of by no watch.
        let mut told = true;
        while self.ground(store).is_some_and(|ground| Arc::ptr_eq(&ground.plans(), plans)) {
            (self.tell)(Message::Tick(now(plans)?));
            while told {
                let written = plans.written_since(up_to, NEWS_MAX)?;
                up_to = written.up_to;
                *seen = Some(up_to);
                told = written.more;
                if !written.plans.is_empty() {
                    (self.tell)(Message::Written { store, plans: written.plans });
                }
            }
            told = watch.wait(QUIET_MAX)?;
        }
        Ok(())
    }

    pub(super) fn heads(&self, store: usize, ticket: u64, query: &Query) {
        let heads = self.ground(store).ok_or_else(no_store).and_then(|ground| {
            let page = ground.plans().heads(query)?;
            Ok(Box::new(Heads { page, warnings: ground.damage()? }))
        });
        self.answer(Answer::Heads { store, ticket, heads });
    }

    pub(super) fn plan(&self, plan: PlanKey) {
        let loaded = self.look(&plan, |_, known| Box::new(Loaded::of(known)));
        self.answer(Answer::Plan { plan, loaded });
    }

    fn look<R>(&self, plan: &PlanKey, look: impl FnOnce(&Ground, &Plan) -> R) -> Result<R, Trouble> {
        let ground = self.ground(plan.store).ok_or_else(no_store)?;
        Ok(ground.plans().look(&plan.id, |known| look(ground, known))?)
    }

    pub(super) fn standings(&self, plan: PlanKey) {
        let stands = self.ground(plan.store).ok_or_else(no_store).and_then(|ground| {
            let now = now(&ground.plans())?;
            self.look(&plan, |ground, known| {
                Box::new(Standings::of(known, now, &|task| is_for_people(&ground.config, task)))
            })
        });
        self.answer(Answer::Run(RunAnswer::Stands(plan, stands)));
    }

    pub(super) fn preview(&self, plan: PlanKey) {
        let preview = self.look(&plan, |ground, known| Box::new(Preview::of(&ground.config, known)));
        self.answer(Answer::Run(RunAnswer::Preview(plan, preview)));
    }

    pub(super) fn closer(&self, plan: PlanKey, task: TaskId) {
        let closer = self.closer_of(&plan, &task).unwrap_or_else(|trouble| Closer {
            log_note: format!("{} ({})", trouble.what, trouble.hint),
            ..Closer::default()
        });
        self.answer(Answer::Run(RunAnswer::Closer(plan, task, Box::new(closer))));
    }

    fn closer_of(&self, plan: &PlanKey, task: &TaskId) -> Result<Closer, Trouble> {
        let ground = self.ground(plan.store).ok_or_else(no_store)?;
        let plans = ground.plans();
        let state = plans.look(&plan.id, |known| known.task(task.as_str()).map(|task| task.state.clone()))?;
        let state = state.unwrap_or_default();
        let mut closer = Closer::default();
        if state.status == Status::Pending {
            let why = why(&plans, &plan.id, task)?;
            closer.why = why.reasons.into_iter().map(|reason| reason.words).collect();
        }
        if state.attempt == 0 {
            return Ok(closer);
        }
        let key = (&plan.id, task, state.attempt);
        let worker = state.worker.as_deref();
        match find_log(&plans, &ground.around.logs, key, worker, LOG_BYTES_MAX) {
            Ok(FoundLog::File { text, bytes }) => (closer.log, closer.log_bytes) = (text, bytes),
            Ok(FoundLog::Copy(copy)) => {
                closer.log_note = format!("a copy; the file is with worker {}", copy.worker);
                (closer.log, closer.log_bytes) = (copy.text, copy.bytes);
            }
            Ok(FoundLog::Nothing { elsewhere: Some(worker) }) => {
                closer.log_note = format!("no log here yet: it is with worker {worker}");
            }
            Ok(FoundLog::Nothing { elsewhere: None }) => {}
            Err(NoLog::File(error)) => closer.log_note = format!("its log cannot be read: {error}"),
            Err(NoLog::Store(error)) => closer.log_note = format!("its log cannot be read: {error}"),
        }
        if closer.log_bytes > closer.log.len() as u64 {
            let part = format!("the last {} of {} bytes", closer.log.len(), closer.log_bytes);
            closer.log_note = match closer.log_note.as_str() {
                "" => part,
                note => format!("{part}, {note}"),
            };
        }
        Ok(closer)
    }

    pub(super) fn versions(&self, plan: PlanKey, before: Option<u64>) {
        let versions = self.versions_of(&plan, before).map(Box::new);
        self.answer(Answer::History(HistoryAnswer::Versions(plan, before, versions)));
    }

    fn versions_of(&self, plan: &PlanKey, before: Option<u64>) -> Result<Versions, Trouble> {
        let ground = self.ground(plan.store).ok_or_else(no_store)?;
        let plans = ground.plans();
        let (current, title) = plans.look(&plan.id, |known| (known.version(), known.spec().title.clone()))?;
        let last = before.map_or(current, |before| before.saturating_sub(1).min(current));
        let after = last.saturating_sub(VERSIONS_PAGE as u64);
        let entries = plans.history(&plan.id, after, (last - after) as usize)?;
        let rows = entries.into_iter().rev().map(version).collect();
        Ok(Versions { title, current, rows, more: after > 0 })
    }

    pub(super) fn compare(&self, plan: PlanKey, old: u64, new: u64) {
        let compared = self.compared(&plan, old, new).map(Box::new);
        self.answer(Answer::History(HistoryAnswer::Compared(plan, (old, new), compared)));
    }

    fn compared(&self, plan: &PlanKey, old: u64, new: u64) -> Result<Compared, Trouble> {
        let ground = self.ground(plan.store).ok_or_else(no_store)?;
        let plans = ground.plans();
        let at = |version: u64| match version {
            0 => Ok(Draft::default()),
            version => plans.at_version(&plan.id, version).map(|known| known.to_draft()),
        };
        let different = differences(&at(old)?, &at(new)?);
        let mut lines = difference_lines(&different, Texts::ByLine, &|value| {
            text::truncate(value, VALUE_COLUMNS).into_owned()
        });
        let total = lines.len();
        lines.truncate(DIFF_LINES_MAX);
        Ok(Compared { lines, total })
    }
}

fn version(entry: Entry) -> Version {
    let forgotten = entry.is_forgotten();
    let what = if forgotten { format!("{} (pruned)", entry.command) } else { summary(&entry.events) };
    Version { number: entry.version, at: entry.at, who: entry.actor.to_string(), what, forgotten }
}
