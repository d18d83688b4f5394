//! Reads of the tables, inside a transaction or outside.

use std::collections::BTreeMap;

use tokio_postgres::Row;
use waypost_core::{PlanId, TaskId, Timestamp};

use super::connection::{Call, Failure};
use super::footprint::Mutex;
use super::transaction::{Session, VERSION_AHEAD};
use super::{maintenance, rows, schema, workers};
use crate::backends::columns::SUBSCRIPTION;
use crate::backends::{in_memory_query, list_query};
use crate::error::{Result, StoreError};
use crate::log::subscription::Subscription;
use crate::rows::{
    HeldLock, Lease, LeaseFilter, LockFilter, LogFilter, LogPage, Page, PlanState, PlanSummary, Pruned,
    Query, SharedKeys, SharedScope, StoreState, SubscriptionFilter, UNNUMBERED, VersionRecord, Wait,
    WaitFilter, WorkerFilter, WrittenSince,
};
use crate::store::{Inspect, Read, ReadHints};
use crate::stored_version::StoredVersion;
use crate::workers::{AttemptLog, Worker};

/// Maximum number of times that versions are numbered for one read of a plan's history. Others may go on to write it.
const NUMBERED_MAX: u32 = 3;
/// Whether versions were committed and have no number yet.
const IS_UNNUMBERED: &str = "SELECT (SELECT min(ticket) FROM waypost_inbox) IS NOT NULL";

/// The call for the leases that meet a condition, at most as many as the last parameter says.
macro_rules! find_leases {
    ($condition:literal, $limit:literal) => {
        Call::new(concat!(
            "SELECT p.id, l.task, l.attempt, l.worker, l.until, l.since, l.queue, l.seconds, l.progress, l.progressed_at
             FROM waypost_leases l JOIN waypost_plans p ON p.key = l.plan
             WHERE ",
            $condition,
            " ORDER BY l.until NULLS FIRST, p.id, l.task LIMIT ",
            $limit
        ))
    };
}

/// The call for the waits that meet a condition.
macro_rules! find_waits {
    ($condition:literal) => {
        Call::new(concat!(
            "SELECT p.id, w.task, w.on_agent, w.on_plan, w.on_task
             FROM waypost_waits w JOIN waypost_plans p ON p.key = w.plan WHERE ",
            $condition
        ))
    };
}

fn limited(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

impl Session<'_> {
    /// Returns the version of a plan that this transaction has written and not yet sent.
    fn pending_version(&self, plan: &PlanId) -> Option<u64> {
        self.writing.as_ref()?.pending.plans.get(plan).map(|pending| pending.head.version)
    }

    /// Locks the row of a plan before it is read, if this is a writer.
    fn lock_plan(&mut self, plan: &PlanId) -> Result<()> {
        if self.writing.is_some() { self.known(plan).map(drop) } else { Ok(()) }
    }

    /// Reads the log after all earlier commits have their numbers. A writer that does so must be alone.
    fn query_log(&mut self, call: Call) -> Result<Vec<Row>> {
        self.be_alone()?;
        let mut answers = self.query_all(vec![Call::new(IS_UNNUMBERED), call])?;
        let found = answers.pop().unwrap_or_default();
        let is_unnumbered = answers.first().and_then(|rows| rows.first());
        let is_unnumbered = is_unnumbered.map_or(Ok(false), |row| rows::get(row, 0))?;
        self.be_numbered(is_unnumbered)?;
        Ok(found)
    }

    /// Checks that versions have their numbers, which are in this column. Writers do not need them.
    fn check_numbers(&mut self, found: &[Row], column: usize) -> Result<()> {
        if self.writing.is_some() || self.numbered >= NUMBERED_MAX {
            return Ok(());
        }
        for row in found {
            if rows::number::<u64>(row, column)? == UNNUMBERED {
                return self.fail(Failure::Unnumbered);
            }
        }
        Ok(())
    }

    /// Returns whether the table of waits has any rows.
    fn has_waits(&mut self) -> Result<bool> {
        if self.writing.as_ref().is_some_and(|writing| writing.pending.plans.has_waits()) {
            return Ok(true);
        }
        if self.writing.is_some() {
            self.begin()?;
        }
        if let Some(known) = self.has_waits {
            return Ok(known);
        }
        let found = self.query(Call::new("SELECT EXISTS (SELECT 1 FROM waypost_waits)"))?;
        let found = found.first().map_or(Ok(true), |row| rows::get(row, 0))?;
        self.has_waits = Some(found);
        Ok(found)
    }

    /// Returns all waits, stored and pending; `None` if they are too many to keep in memory.
    fn waits_at_hand(&mut self) -> Result<Option<Vec<Wait>>> {
        let Some(stored) = self.all_waits()?.map(<[Wait]>::to_vec) else { return Ok(None) };
        Ok(Some(match &self.writing {
            Some(writing) => writing.pending.waits(&stored),
            None => stored,
        }))
    }
}

impl Inspect for Session<'_> {
    fn stored_versions(&mut self, plan: &PlanId, after: u64, limit: usize) -> Result<Vec<StoredVersion>> {
        let call = Call::new(
            "SELECT coalesce(o.sequence, 9223372036854775807), l.version, l.at, l.actor, l.command, l.events, l.hash,
                 l.chained_from
             FROM waypost_plans p JOIN waypost_log l ON l.plan = p.key
                 LEFT JOIN waypost_order o ON o.plan = l.plan AND o.version = l.version
             WHERE p.id = $1 AND l.version > $2 ORDER BY l.version LIMIT $3",
        );
        self.lock_plan(plan)?;
        let found = self.query(call.with(plan.to_string()).with(after as i64).with(limited(limit)))?;
        self.check_numbers(&found, 0)?;
        found.iter().map(|row| rows::stored_version(row, plan)).collect()
    }

    fn pruned(&mut self, plan: &PlanId) -> Result<Option<Pruned>> {
        self.lock_plan(plan)?;
        let found = self.query(maintenance::find_pruned(plan))?;
        found.first().map(rows::pruned).transpose()
    }
}

impl Read for Session<'_> {
    fn expect(&mut self, expected: &ReadHints) {
        if expected.without_numbers {
            self.numbered = NUMBERED_MAX;
        }
        Session::expect(self, expected);
    }

    fn head(&mut self, plan: &PlanId) -> Result<Option<PlanSummary>> {
        if let Some(pending) = self.writing.as_ref().and_then(|writing| writing.pending.plans.get(plan)) {
            return Ok(Some(pending.head.clone()));
        }
        // A writer that creates a plan may already know that there is none.
        if self.writing.is_some() && self.known(plan)?.is_none_or(|known| known.purged) {
            return Ok(None);
        }
        let sql =
            format!("SELECT {} FROM waypost_plans WHERE id = $1 AND purged_at IS NULL", list_query::HEAD);
        let found = self.query(Call::once(sql).with(plan.to_string()))?;
        found.first().map(rows::head).transpose()
    }

    fn plan_state(&mut self, plan: &PlanId) -> Result<PlanState> {
        if let Some(pending) = self.writing.as_ref().and_then(|writing| writing.pending.plans.get(plan)) {
            return Ok(PlanState::Stored { version: pending.head.version, hash: pending.hash });
        }
        Ok(match self.known(plan)? {
            None => PlanState::Unused,
            Some(known) if known.purged => PlanState::Purged,
            Some(known) => PlanState::Stored { version: known.version, hash: known.hash },
        })
    }

    fn heads(&mut self, query: &Query) -> Result<Page<PlanSummary>> {
        self.be_alone()?;
        let found = self.query_all(rows::heads(query).into())?;
        match found.as_slice() {
            [total, page] => rows::page(query, total, page),
            _ => Err(StoreError::Database("two questions had another number of answers".to_owned())),
        }
    }

    fn ids(&mut self, prefix: &str, limit: usize) -> Result<Vec<PlanId>> {
        self.be_alone()?;
        // All ids with this prefix are between the prefix and the prefix followed by the highest character.
        let prefix = rows::text(prefix);
        let call = Call::new(
            "SELECT id FROM waypost_plans WHERE id >= $1 AND id < $2 AND purged_at IS NULL ORDER BY id LIMIT $3",
        );
        let end = format!("{prefix}\u{10FFFF}");
        let found = self.query(call.with(prefix).with(end).with(limited(limit)))?;
        found.iter().map(|row| rows::plan_id(rows::get(row, 0)?)).collect()
    }

    fn versions(&mut self, plan: &PlanId, after: u64, limit: usize) -> Result<Vec<VersionRecord>> {
        if self.pending_version(plan).is_none()
            && let Some(known) = self.known(plan)?.filter(|known| !known.purged)
            && known.after == Some(after)
        {
            let all = known.version.saturating_sub(after) == known.ahead.len() as u64;
            if all || known.ahead.len() >= limit {
                let ahead = known.ahead.iter().take(limit);
                return ahead.map(|row| rows::entry(row, VERSION_AHEAD, plan.clone())).collect();
            }
        }
        let call = Call::new(
            "SELECT coalesce(o.sequence, 9223372036854775807), l.version, l.at, l.actor, l.command, l.events
             FROM waypost_plans p JOIN waypost_log l ON l.plan = p.key
                 LEFT JOIN waypost_order o ON o.plan = l.plan AND o.version = l.version
             WHERE p.id = $1 AND p.purged_at IS NULL AND l.version > $2 ORDER BY l.version LIMIT $3",
        );
        self.lock_plan(plan)?;
        let found = self.query(call.with(plan.to_string()).with(after as i64).with(limited(limit)))?;
        self.check_numbers(&found, 0)?;
        found.iter().map(|row| rows::entry(row, 0, plan.clone())).collect()
    }

    fn snapshot(&mut self, plan: &PlanId, at_most: u64) -> Result<Option<(u64, Vec<u8>)>> {
        self.lock_plan(plan)?;
        let found = self.query(maintenance::find_snapshot(plan, at_most))?;
        found.first().map(|row| Ok((rows::number(row, 0)?, rows::get(row, 1)?))).transpose()
    }

    fn log(&mut self, after: u64, filter: &LogFilter, limit: usize) -> Result<LogPage> {
        let actor = filter.actor.as_ref().map(|actor| rows::text(&actor.to_string()));
        // For one plan, the index of its versions is in the order of the log, so versions of other plans are not read.
        let call = match &filter.plan {
            Some(plan) => Call::new(
                "SELECT o.sequence, l.version, l.at, l.actor, l.command, l.events, p.id
                 FROM waypost_plans p JOIN waypost_order o ON o.plan = p.key
                     JOIN waypost_log l ON l.plan = o.plan AND l.version = o.version
                 WHERE o.sequence > $1 AND ($2::text IS NULL OR l.actor = $2) AND p.id = $4
                 ORDER BY o.version LIMIT $3",
            )
            .with(after as i64)
            .with(actor)
            .with(limited(limit))
            .with(plan.to_string()),
            None => Call::new(
                "SELECT o.sequence, l.version, l.at, l.actor, l.command, l.events, p.id
                 FROM waypost_order o JOIN waypost_log l ON l.plan = o.plan AND l.version = o.version
                     JOIN waypost_plans p ON p.key = o.plan
                 WHERE o.sequence > $1 AND ($2::text IS NULL OR l.actor = $2)
                 ORDER BY o.sequence LIMIT $3",
            )
            .with(after as i64)
            .with(actor)
            .with(limited(limit)),
        };
        let found = self.query_log(call)?;
        let version = |row: &Row| rows::entry(row, 0, rows::plan_id(rows::get(row, 6)?)?);
        let versions = found.iter().map(version).collect::<Result<_>>()?;
        Ok(LogPage { versions, ..LogPage::default() })
    }

    fn written_since(&mut self, after: u64, limit: usize) -> Result<WrittenSince> {
        let call = Call::new(
            "SELECT p.id, max(l.version), max(l.sequence), count(*)
             FROM (SELECT plan, version, sequence FROM waypost_order WHERE sequence > $1 ORDER BY sequence LIMIT $2) l
             JOIN waypost_plans p ON p.key = l.plan GROUP BY p.id ORDER BY 3",
        );
        let found = self.query_log(call.with(after as i64).with(limited(limit)))?;
        let mut written = WrittenSince { up_to: after, ..WrittenSince::default() };
        let mut count = 0;
        for row in &found {
            written.plans.push((rows::plan_id(rows::get(row, 0)?)?, rows::number(row, 1)?));
            written.up_to = written.up_to.max(rows::number(row, 2)?);
            count += rows::number::<u64>(row, 3)?;
        }
        written.more = count == limit as u64;
        Ok(written)
    }

    fn leases(&mut self, filter: &LeaseFilter<'_>, limit: usize) -> Result<Vec<Lease>> {
        let call = match *filter {
            LeaseFilter::Plan(plan) => {
                self.lock_plan(plan)?;
                find_leases!("p.id = $1 AND p.purged_at IS NULL", "$2").with(plan.to_string())
            }
            LeaseFilter::All => {
                self.be_alone()?;
                find_leases!("TRUE", "$1")
            }
            LeaseFilter::EndedBefore(before) => {
                self.be_alone()?;
                find_leases!("l.until < $1", "$2").with(before.as_micros())
            }
            LeaseFilter::Worker(worker) => {
                self.be_alone()?;
                find_leases!("l.worker = $1", "$2").with(rows::text(worker))
            }
        };
        self.query(call.with(limited(limit)))?.iter().map(rows::lease).collect()
    }

    fn locks(&mut self, filter: LockFilter<'_>) -> Result<Vec<HeldLock>> {
        let keys = match filter {
            LockFilter::Keys(keys) => keys,
            LockFilter::Plan(plan) => {
                self.lock_plan(plan)?;
                let call = Call::new(
                    "SELECT l.key, l.shared, p.id, l.task
                     FROM waypost_plans p JOIN waypost_locks l ON l.plan = p.key
                     WHERE p.id = $1 AND p.purged_at IS NULL",
                );
                return self.query(call.with(plan.to_string()))?.iter().map(rows::held_lock).collect();
            }
        };
        self.held(keys)?;
        let mut found = Vec::new();
        for key in keys {
            let stored = self.held(&[key])?.get(*key).cloned().unwrap_or_default();
            found.extend(match &self.writing {
                Some(writing) => writing.pending.locks(key, &stored),
                None => stored,
            });
        }
        Ok(found)
    }

    fn waits(&mut self, filter: WaitFilter<'_>) -> Result<Vec<Wait>> {
        if let WaitFilter::Of(plan) = filter {
            self.lock_plan(plan)?;
        }
        if !self.has_waits()? {
            return Ok(Vec::new());
        }
        if let WaitFilter::On { .. } = filter
            && let Some(all) = self.waits_at_hand()?
        {
            return Ok(in_memory_query::waits(all.iter(), filter));
        }
        let call = match filter {
            WaitFilter::Of(plan) => find_waits!("p.id = $1 AND p.purged_at IS NULL").with(plan.to_string()),
            WaitFilter::On { plan, owner, task: None } => {
                find_waits!("w.on_plan = $1 OR w.on_plan IS NULL AND w.on_agent = $2")
                    .with(plan.to_string())
                    .with(rows::text(owner))
            }
            WaitFilter::On { plan, owner, task: Some(task) } => find_waits!(
                "(w.on_plan = $1 OR w.on_plan IS NULL) AND (w.on_agent = $2 OR w.on_agent IS NULL) AND w.on_task = $3"
            )
            .with(plan.to_string())
            .with(rows::text(owner))
            .with(rows::text(task)),
        };
        let found = self.query(call)?;
        let mut waits = found.iter().map(rows::wait).collect::<Result<Vec<_>, _>>()?;
        waits.sort();
        Ok(waits)
    }

    fn subscriptions(&mut self, filter: SubscriptionFilter<'_>, limit: usize) -> Result<Vec<Subscription>> {
        let (which, wanted) = match filter {
            SubscriptionFilter::All => {
                self.be_alone()?;
                ("$1 = ''", "")
            }
            SubscriptionFilter::Owner(owner) => {
                self.lock(Mutex::Subscriber(owner));
                ("owner = $1", owner)
            }
            SubscriptionFilter::Id(id) => {
                self.lock(Mutex::Subscription(id));
                ("id = $1", id)
            }
        };
        let sql = format!(
            "SELECT {SUBSCRIPTION} FROM waypost_subscriptions WHERE {which} ORDER BY created_at, id LIMIT $2"
        );
        let found = self.query(Call::once(sql).with(rows::text(wanted)).with(limited(limit)))?;
        found.iter().map(rows::subscription).collect()
    }

    fn workers(&mut self, filter: WorkerFilter<'_>, limit: usize) -> Result<Page<Worker>> {
        let after = match filter {
            WorkerFilter::Name(name) => {
                self.lock(Mutex::Worker(name));
                let sql = format!("SELECT {} WHERE i.name = $1", workers::WORKER);
                let found = self.query(Call::once(sql).with(rows::text(name)))?;
                let items = found.iter().map(workers::worker).collect::<Result<Vec<_>, _>>()?;
                if let (Some(writing), Some(worker)) = (&mut self.writing, items.first()) {
                    writing.workers.insert(name.to_owned(), workers::record(worker)?);
                }
                return Ok(in_memory_query::page_of_workers(items, 1, 1));
            }
            WorkerFilter::After(after) => after.unwrap_or_default(),
        };
        let page =
            Call::once(format!("SELECT {} WHERE i.name > $1 ORDER BY i.name LIMIT $2", workers::WORKER));
        let page = page.with(rows::text(after)).with(limited(limit).saturating_add(1));
        let found = self.query_all(vec![Call::new("SELECT count(*) FROM waypost_workers"), page])?;
        let total = found.first().and_then(|rows| rows.first()).map_or(Ok(0), |row| rows::number(row, 0))?;
        let items = found.get(1).into_iter().flatten().map(workers::worker).collect::<Result<Vec<_>, _>>()?;
        if let Some(writing) = &mut self.writing {
            let expiry = |worker: &Worker| (worker.name.clone(), worker.until.as_micros());
            writing.listed.extend(items.iter().map(expiry));
        }
        Ok(in_memory_query::page_of_workers(items, total, limit))
    }

    fn slots(&mut self, queue: &str) -> Result<Vec<(String, u32)>> {
        let stored = self.slots_of(queue)?;
        let tasks = match &self.writing {
            Some(writing) => writing.pending.slots(queue, &stored),
            None => stored.into_iter().map(|slot| slot.worker).collect(),
        };
        let mut slots: BTreeMap<String, u32> = BTreeMap::new();
        for worker in tasks {
            *slots.entry(worker).or_default() += 1;
        }
        Ok(slots.into_iter().collect())
    }

    fn attempt_logs(
        &mut self,
        plan: &PlanId,
        after: Option<(&TaskId, u32)>,
        limit: usize,
    ) -> Result<Vec<AttemptLog>> {
        self.lock_plan(plan)?;
        let found = self.query(workers::find_logs(plan, after, limited(limit)))?;
        found.iter().map(|row| rows::attempt_log(row, plan)).collect()
    }

    fn shared(
        &mut self,
        scope: SharedScope<'_>,
        keys: SharedKeys<'_>,
        limit: usize,
    ) -> Result<Vec<(String, String)>> {
        let (sql, key) = match keys {
            SharedKeys::After(key) => (
                "SELECT key, value FROM waypost_shared WHERE scope = $1 AND key > $2 ORDER BY key LIMIT $3",
                key,
            ),
            SharedKeys::Only(key) => {
                ("SELECT key, value FROM waypost_shared WHERE scope = $1 AND key = $2 LIMIT $3", key)
            }
        };
        let call = Call::new(sql).with(scope.name()).with(rows::text(key)).with(limited(limit));
        let found = self.query(call)?;
        found.iter().map(|row| Ok((rows::get(row, 0)?, rows::get(row, 1)?))).collect()
    }

    fn store_state(&mut self) -> Result<StoreState> {
        let (id, latest, schema) = match self.control()? {
            Some(control) => (control.store.clone(), control.sequence, control.schema),
            None => {
                let sql = "SELECT s.id, c.sequence, c.schema FROM waypost_store s, waypost_control c WHERE c.id = 1";
                let found = self.query_log(Call::new(sql))?;
                let missing = || StoreError::Database("the store has no id".to_owned());
                let row = found.first().ok_or_else(missing)?;
                (rows::get(row, 0)?, rows::number(row, 1)?, rows::number(row, 2)?)
            }
        };
        Ok(StoreState { id, latest, newer_schema: Some(schema).filter(|&found| found > schema::KNOWN) })
    }

    fn now(&mut self) -> Timestamp {
        // If the server could not be asked, the transaction has failed, and no result of it counts.
        self.clock().unwrap_or_else(|_| crate::clock::now())
    }
}
