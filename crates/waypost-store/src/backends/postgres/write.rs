//! The writes of a transaction. Almost nothing is sent before the commit.

use waypost_core::{Plan, PlanId};

use super::connection::Call;
use super::footprint::Mutex;
use super::sequencer::News;
use super::transaction::{PlanRow, Session};
use super::write_state::{Weight, Writing};
use super::{maintenance, rows, workers, write_buffer};
use crate::backends::hash_chain;
use crate::error::{Result, StoreError};
use crate::rows::{IndexRows, LeaseUpdate, PlanSummary, SharedScope, UNNUMBERED};
use crate::store::{Append, Appended, Pruning, Record, Rewrite, SNAPSHOT_MILESTONE, Transaction};
use crate::stored_version::StoredVersion;

impl<'a> Session<'a> {
    fn writer(&mut self, weight: Weight) -> Result<&mut Writing<'a>> {
        let writing = self.writing.as_mut();
        let writing = writing.ok_or_else(|| StoreError::Database("a reader does not write".to_owned()))?;
        writing.weight = writing.weight.max(weight);
        Ok(writing)
    }

    /// Returns the key of a plan's row.
    fn key(&mut self, plan: &PlanId) -> Result<i64> {
        if let Some(pending) = self.writing.as_ref().and_then(|writing| writing.pending.plans.get(plan)) {
            return Ok(pending.key);
        }
        let missing = || StoreError::Database(format!("plan {plan} has no row"));
        self.known(plan)?.filter(|known| !known.purged).map(|known| known.key).ok_or_else(missing)
    }

    /// Sends the pending writes, and drops the prefetched row of a plan.
    fn send_pending(&mut self, plan: &PlanId) -> Result<()> {
        self.query_all(Vec::new())?;
        self.plans.remove(plan);
        self.has_waits = None;
        Ok(())
    }

    fn put_snapshot(&mut self, plan: &PlanId, version: u64, bytes: &[u8]) -> Result<()> {
        let key = self.key(plan)?;
        let writing = self.writer(Weight::Once)?;
        let version = version as i64;
        writing.queued.push(
            Call::new(
                "INSERT INTO waypost_snapshots (plan, version, bytes) VALUES ($1, $2, $3)
                 ON CONFLICT (plan, version) DO UPDATE SET bytes = excluded.bytes",
            )
            .with(key)
            .with(version)
            .with(bytes.to_vec()),
        );
        let milestone = SNAPSHOT_MILESTONE as i64;
        writing.queued.push(
            Call::new("DELETE FROM waypost_snapshots WHERE plan = $1 AND version >= $2 AND version < $3")
                .with(key)
                .with(version / milestone * milestone)
                .with(version),
        );
        match writing.pending.plans.get_mut(plan) {
            Some(pending) => pending.replay_bytes = 0,
            None => {
                let call = Call::new("UPDATE waypost_plans SET replay_bytes = 0 WHERE key = $1");
                writing.queued.push(call.with(key));
                if let Some(Some(known)) = self.plans.get_mut(plan) {
                    known.replay_bytes = 0;
                }
            }
        }
        Ok(())
    }
}

impl Transaction for Session<'_> {
    fn append(&mut self, append: &Append<'_>) -> Result<Appended> {
        let head = append.head;
        self.begin()?;
        let pending = self.writer(Weight::Once)?.pending.plans.get(&head.id);
        let pending = pending.map(|plan| (plan.head.version, plan.hash));
        let (version, hash) = match pending {
            Some(pending) => pending,
            None => self.known(&head.id)?.map_or((0, None), |known| (known.version, known.hash)),
        };
        let predecessor = hash_chain::predecessor(self, &head.id, version, hash)?;
        if pending.is_none() {
            let known = self.known(&head.id)?.map(|known| (known.key, known.replay_bytes));
            let (key, replay_bytes) = match known {
                Some(known) => known,
                None => (self.new_key()?, 0),
            };
            self.writer(Weight::Once)?.pending.plans.begin(key, head, replay_bytes);
        }
        let writing = self.writer(Weight::Once)?;
        let sequence = UNNUMBERED;
        writing.pending.add(append, append.stored(sequence, predecessor)?);
        writing.news = Some(News::Versions);
        let (key, replay_bytes) =
            writing.pending.plans.get(&head.id).map_or((0, 0), |plan| (plan.key, plan.replay_bytes));
        writing.appended.push((key, head.version));
        writing.last = Some((head.id.clone(), head.version));
        Ok(Appended { sequence, replay_bytes })
    }

    fn update_leases(&mut self, updates: &[LeaseUpdate]) -> Result<Vec<bool>> {
        let progressed = updates.iter().any(|update| update.progress.is_some());
        // A renewal by a heartbeat is made up for by the next one; what somebody has asked for is not.
        let is_heartbeat = !progressed && updates.iter().all(|update| update.seconds.is_none());
        if updates.is_empty() {
            return Ok(Vec::new());
        }
        let writing = self.writer(if is_heartbeat { Weight::Heartbeat } else { Weight::Idempotent })?;
        if progressed && writing.news.is_none() {
            writing.news = Some(News::Other);
        }
        let found = self.query(workers::update(updates))?;
        workers::updated(&found, updates.len())
    }

    fn put(&mut self, record: Record<'_>) -> Result<()> {
        let (weight, calls) = match record {
            Record::Subscription(id, subscription) => {
                self.lock(Mutex::Subscription(id));
                let call = match subscription {
                    Some(subscription) => rows::put_subscription(subscription)?,
                    None => Call::new("DELETE FROM waypost_subscriptions WHERE id = $1").with(rows::text(id)),
                };
                (Weight::Once, vec![call])
            }
            Record::Worker(name, Some(worker)) => {
                self.lock(Mutex::Worker(name));
                let record = workers::record(worker)?;
                let known = self.writing.as_ref().and_then(|writing| writing.workers.get(name));
                let is_same = known.is_some_and(|known| *known == record);
                // An idle worker reads its row only when it is notified.
                if let Some(writing) = self.writing.as_mut().filter(|_| worker.draining && !is_same) {
                    writing.news.get_or_insert(News::Other);
                }
                match is_same {
                    true => (Weight::Heartbeat, vec![workers::renew(worker)]),
                    false => (Weight::Idempotent, workers::put(worker, record)),
                }
            }
            Record::Worker(name, None) => {
                self.lock(Mutex::Worker(name));
                let listed = self.writing.as_ref().and_then(|writing| writing.listed.get(name)).copied();
                (Weight::Idempotent, workers::remove(name, listed))
            }
            Record::Shared(scope, key, value) => {
                let (name, key) = (scope.name(), rows::text(key));
                self.lock(Mutex::Shared(&name));
                let call = match value {
                    Some(value) => Call::new(
                        "INSERT INTO waypost_shared (scope, key, value) VALUES ($1, $2, $3)
                         ON CONFLICT (scope, key) DO UPDATE SET value = excluded.value",
                    )
                    .with(name)
                    .with(key)
                    .with(rows::text(value)),
                    None => Call::new("DELETE FROM waypost_shared WHERE scope = $1 AND key = $2")
                        .with(name)
                        .with(key),
                };
                (Weight::Idempotent, vec![call])
            }
            Record::AttemptLog(log) => (Weight::Idempotent, vec![workers::put_log(log)]),
            Record::Snapshot(plan, version, bytes) => return self.put_snapshot(plan, version, bytes),
        };
        self.begin()?;
        self.writer(weight)?.queued.extend(calls);
        Ok(())
    }
}

impl Rewrite for Session<'_> {
    fn replace_index(&mut self, plan: &Plan, head: &PlanSummary, index: &IndexRows) -> Result<()> {
        self.be_alone()?;
        let plan = plan.id();
        let key = self.key(plan)?;
        self.query_all(Vec::new())?;
        let replay_bytes = self.known(plan)?.map_or(0, |known| known.replay_bytes);
        self.send_pending(plan)?;
        let writing = self.writer(Weight::Once)?;
        writing.queued.push(write_buffer::put_heads(&[(key, head, None, replay_bytes)]));
        writing.queued.extend(write_buffer::replace_index(key, index));
        self.query_all(Vec::new()).map(drop)
    }

    fn purge(&mut self, plan: &PlanId) -> Result<()> {
        self.be_alone()?;
        let (key, now) = (self.key(plan)?, self.clock()?.as_micros());
        self.send_pending(plan)?;
        let writing = self.writer(Weight::Once)?;
        writing.news = writing.news.or(Some(News::Other));
        writing.queued.push(Call::new("UPDATE waypost_control SET purges = purges + 1 WHERE id = 1"));
        writing.queued.extend(write_buffer::replace_index(key, &IndexRows::default()));
        for gone in [
            "DELETE FROM waypost_snapshots WHERE plan = $1",
            "DELETE FROM waypost_attempt_logs WHERE plan = $1",
            "DELETE FROM waypost_pruned WHERE plan = $1",
        ] {
            writing.queued.push(Call::new(gone).with(key));
        }
        for scope in [SharedScope::Records(plan), SharedScope::Unpublished(plan)] {
            let gone = Call::new("DELETE FROM waypost_shared WHERE scope = $1");
            writing.queued.push(gone.with(scope.name()));
        }
        // The rows of the log stay, empty: their sequence numbers are never reused, and readers of the log see no gap.
        let empty =
            "UPDATE waypost_log SET events = '[]', command = 'purged', hash = NULL, chained_from = NULL
             WHERE plan = $1";
        writing.queued.push(Call::new(empty).with(key));
        let gone = "UPDATE waypost_plans SET purged_at = $2, title = '', status = '', owner = '', queue = '',
             hash = NULL WHERE key = $1";
        writing.queued.push(Call::new(gone).with(key).with(now));
        let (version, hash, replay_bytes, after, ahead) = (0, None, 0, None, Vec::new());
        let known = PlanRow { key, version, hash, replay_bytes, purged: true, after, ahead };
        self.query_all(Vec::new())?;
        self.plans.insert(plan.clone(), Some(known));
        Ok(())
    }

    fn prune(&mut self, pruning: &Pruning<'_>) -> Result<()> {
        self.be_alone()?;
        let plan = pruning.plan.id();
        let key = self.key(plan)?;
        self.send_pending(plan)?;
        self.writer(Weight::Once)?.queued.extend(maintenance::prune(key, pruning));
        self.query_all(Vec::new()).map(drop)
    }

    fn import_versions(&mut self, entries: &[StoredVersion]) -> Result<()> {
        self.be_alone()?;
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(()) };
        let known = self.known(&first.plan)?.map(|known| (known.key, known.replay_bytes));
        let (key, replay_bytes) = match known {
            Some(known) => known,
            None => {
                let key = self.new_key()?;
                self.writer(Weight::Once)?.queued.push(maintenance::put_blank(key, &first.plan));
                (key, 0)
            }
        };
        let writing = self.writer(Weight::Once)?;
        writing.news = writing.news.or(Some(News::Other));
        writing.last = Some((last.plan.clone(), last.version));
        let bytes = entries.iter().map(|entry| entry.events.len() as u64).sum::<u64>();
        writing.queued.extend(maintenance::put_numbers(key, entries));
        let rows = entries.iter().map(|entry| (key, entry.clone())).collect();
        writing.queued.push(write_buffer::put_versions(writing.tries.nonce, rows));
        let hash = last.hash.map(|hash| hash.to_vec());
        let call = Call::new("UPDATE waypost_plans SET hash = $2 WHERE key = $1");
        writing.queued.push(call.with(key).with(hash));
        // Sent page by page, so that a long history is never in memory as a whole.
        self.query_all(Vec::new())?;
        let (version, hash, replay_bytes) = (last.version, last.hash, replay_bytes + bytes);
        let (purged, after, ahead) = (false, None, Vec::new());
        let known = PlanRow { key, version, hash, replay_bytes, purged, after, ahead };
        self.plans.insert(first.plan.clone(), Some(known));
        Ok(())
    }
}
