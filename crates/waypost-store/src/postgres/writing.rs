//! What a writer does. Almost nothing is sent before the commit.

use waypost_core::{PlanId, Timestamp};

use super::link::Call;
use super::pending;
use super::rows;
use super::session::{Known, Session, Writing};
use crate::record::{Head, IndexRows};
use crate::store::{Append, SNAPSHOT_MILESTONE, StoreError, Transaction};
use crate::subscriptions::Subscription;

impl Session<'_> {
    fn writer(&mut self) -> Result<&mut Writing, StoreError> {
        let writing = self.writing.as_mut();
        let writing = writing.ok_or_else(|| StoreError::Database("a reader does not write".to_owned()))?;
        writing.wrote = true;
        Ok(writing)
    }

    /// The number under which a plan's rows stand.
    fn key(&mut self, plan: &PlanId) -> Result<i64, StoreError> {
        if let Some(pending) = self.writing.as_ref().and_then(|writing| writing.pending.get(plan)) {
            return Ok(pending.key);
        }
        let missing = || StoreError::Database(format!("plan {plan} has no row"));
        self.known(plan)?.filter(|known| !known.purged).map(|known| known.key).ok_or_else(missing)
    }

    /// Sends what is pending, and forgets what is known of a plan.
    fn settle(&mut self, plan: &PlanId) -> Result<(), StoreError> {
        self.query_all(Vec::new())?;
        self.plans.remove(plan);
        self.has_waits = None;
        Ok(())
    }
}

impl Transaction for Session<'_> {
    fn append(&mut self, append: &Append<'_>) -> Result<u64, StoreError> {
        let head = append.head;
        let events =
            serde_json::to_string(append.events).map_err(|error| StoreError::Database(error.to_string()))?;
        self.begin()?;
        if self.writer()?.pending.get(&head.id).is_none() {
            let known = self.known(&head.id)?.map(|known| (known.key, known.replay_bytes));
            let writing = self.writer()?;
            let (key, replay_bytes) = known.unwrap_or_else(|| {
                writing.control.plans += 1;
                (writing.control.plans, 0)
            });
            writing.pending.begin(key, head, replay_bytes);
        }
        let key = self.key(&head.id)?;
        let writing = self.writer()?;
        (writing.is_news, writing.has_versions) = (true, true);
        writing.control.sequence += 1;
        let (sequence, nonce) = (writing.control.sequence, writing.nonce);
        writing.pending.add(key, sequence, nonce, append, events);
        Ok(sequence)
    }

    fn bytes_since_snapshot(&mut self, plan: &PlanId) -> Result<u64, StoreError> {
        if let Some(pending) = self.writing.as_ref().and_then(|writing| writing.pending.get(plan)) {
            return Ok(pending.replay_bytes);
        }
        Ok(self.known(plan)?.map_or(0, |known| known.replay_bytes))
    }

    fn put_snapshot(&mut self, plan: &PlanId, version: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let key = self.key(plan)?;
        let writing = self.writer()?;
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
        match writing.pending.get_mut(plan) {
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

    fn renew_lease(
        &mut self,
        plan: &PlanId,
        task: &str,
        attempt: u32,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let call = Call::new(
            "UPDATE waypost_leases SET until = $4
             WHERE plan = (SELECT key FROM waypost_plans WHERE id = $1 AND purged_at IS NULL)
                 AND task = $2 AND attempt = $3 RETURNING 1",
        );
        let call = call
            .with(plan.to_string())
            .with(rows::text(task))
            .with(i64::from(attempt))
            .with(until.as_micros());
        self.writer()?;
        Ok(self.query(call)?.len() == 1)
    }

    fn replace_index(&mut self, plan: &PlanId, head: &Head, index: &IndexRows) -> Result<(), StoreError> {
        let (key, replay_bytes) = (self.key(plan)?, self.bytes_since_snapshot(plan)?);
        self.settle(plan)?;
        let writing = self.writer()?;
        writing.queued.push(pending::put_heads([(key, head, replay_bytes)].into_iter()));
        writing.queued.extend(pending::replace_index(key, index));
        self.query_all(Vec::new()).map(drop)
    }

    fn put_subscription(&mut self, subscription: &Subscription) -> Result<(), StoreError> {
        let call = rows::put_subscription(subscription)?;
        self.begin()?;
        self.writer()?.queued.push(call);
        Ok(())
    }

    fn drop_subscription(&mut self, id: &str) -> Result<(), StoreError> {
        self.begin()?;
        let call = Call::new("DELETE FROM waypost_subscriptions WHERE id = $1").with(rows::text(id));
        self.writer()?.queued.push(call);
        Ok(())
    }

    fn purge(&mut self, plan: &PlanId) -> Result<(), StoreError> {
        let (key, now) = (self.key(plan)?, self.clock()?.as_micros());
        self.settle(plan)?;
        let writing = self.writer()?;
        writing.is_news = true;
        writing.control.purges += 1;
        writing.queued.extend(pending::replace_index(key, &IndexRows::default()));
        writing.queued.push(Call::new("DELETE FROM waypost_snapshots WHERE plan = $1").with(key));
        // The rows of the log stay, empty: their numbers are never used again, and readers of the log miss nothing.
        let empty = "UPDATE waypost_log SET events = '[]', command = 'purged' WHERE plan = $1";
        writing.queued.push(Call::new(empty).with(key));
        let gone = "UPDATE waypost_plans SET purged_at = $2, title = '', status = '', owner = '', queue = ''
             WHERE key = $1";
        writing.queued.push(Call::new(gone).with(key).with(now));
        let known = Known { key, version: 0, replay_bytes: 0, purged: true, after: None, ahead: Vec::new() };
        self.query_all(Vec::new())?;
        self.plans.insert(plan.clone(), Some(known));
        Ok(())
    }
}
