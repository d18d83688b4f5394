//! Maintenance of the store as a whole: pruned versions, versions imported from another store, and totals. Knows the
//! columns, but not when to use them.

use waypost_core::PlanId;

use super::connection::{Answers, Call};
use super::rows::{add_plans, number, text};
use super::transaction::CLOCK;
use crate::error::Result;
use crate::rows::{Pruned, Totals};
use crate::store::Pruning;
use crate::stored_version::StoredVersion;

/// Reads which versions of a plan were pruned.
pub(super) fn find_pruned(plan: &PlanId) -> Call {
    Call::new(
        "SELECT k.up_to, k.at, k.by_actor FROM waypost_plans p JOIN waypost_pruned k ON k.plan = p.key
         WHERE p.id = $1 AND p.purged_at IS NULL",
    )
    .with(plan.to_string())
}

/// Reads the latest snapshot at `at_most` or before; without one, the state that is kept in place of pruned events.
pub(super) fn find_snapshot(plan: &PlanId, at_most: u64) -> Call {
    Call::new(
        "(SELECT s.version, s.bytes FROM waypost_plans p JOIN waypost_snapshots s ON s.plan = p.key
          WHERE p.id = $1 AND p.purged_at IS NULL AND s.version <= $2 ORDER BY s.version DESC LIMIT 1)
         UNION ALL
         (SELECT k.up_to, k.bytes FROM waypost_plans p JOIN waypost_pruned k ON k.plan = p.key
          WHERE p.id = $1 AND p.purged_at IS NULL AND k.up_to <= $2)
         LIMIT 1",
    )
    .with(plan.to_string())
    .with(i64::try_from(at_most).unwrap_or(i64::MAX))
}

/// Returns the statements that empty the rows of versions and keep the state that they led to.
pub(super) fn prune(key: i64, pruning: &Pruning<'_>) -> Vec<Call> {
    let Pruned { up_to, at, by, .. } = pruning.pruned;
    let up_to = *up_to as i64;
    let up_to_there = |sql: &'static str| Call::new(sql).with(key).with(up_to);
    vec![
        up_to_there("UPDATE waypost_log SET events = '[]' WHERE plan = $1 AND version <= $2 AND events <> '[]'"),
        up_to_there("DELETE FROM waypost_snapshots WHERE plan = $1 AND version <= $2"),
        Call::new("DELETE FROM waypost_attempt_logs WHERE plan = $1").with(key),
        Call::new(
            "INSERT INTO waypost_pruned (plan, up_to, at, by_actor, bytes) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (plan) DO UPDATE SET up_to = excluded.up_to, at = excluded.at, by_actor = excluded.by_actor,
                 bytes = excluded.bytes",
        )
        .with(key)
        .with(up_to)
        .with(at.as_micros())
        .with(text(&by.to_string()))
        .with(pruning.snapshot.to_vec()),
        up_to_there("UPDATE waypost_plans SET replay_bytes = 0 WHERE key = $1 AND version = $2"),
    ]
}

/// Inserts a row for a plan of which only the id is known.
pub(super) fn put_blank(key: i64, plan: &PlanId) -> Call {
    Call::new(
        "INSERT INTO waypost_plans (key, id, version, title, status, phase, owner, queue, archived, awaits_approval,
             total, ready, blocked, running, done, failed, skipped, cancelled, urgency, replay_bytes)
         VALUES ($1, $2, 0, '', '', 'draft', '', '', false, false, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)",
    )
    .with(key)
    .with(plan.to_string())
}

/// Returns the statements that give versions the numbers that they have in another store.
pub(super) fn put_numbers(key: i64, entries: &[StoredVersion]) -> Vec<Call> {
    let latest = entries.iter().map(|entry| entry.sequence as i64).max().unwrap_or_default();
    let numbers = "INSERT INTO waypost_order (sequence, plan, version)
         SELECT sequence, $1, version FROM unnest($2::bigint[], $3::bigint[]) AS v (sequence, version)";
    vec![
        Call::new(numbers)
            .with(key)
            .column(entries, |entry| entry.sequence as i64)
            .column(entries, |entry| entry.version as i64),
        Call::new("UPDATE waypost_control SET sequence = greatest(sequence, $1) WHERE id = 1").with(latest),
    ]
}

/// Returns the queries whose answers [`totals`] adds up.
pub(super) fn ask_totals() -> Vec<Call> {
    vec![
        Call::new(
            "SELECT phase, queue, count(*), sum(total)::bigint, sum(ready)::bigint, sum(blocked)::bigint,
                 sum(running)::bigint, sum(done)::bigint, sum(failed)::bigint, sum(skipped)::bigint,
                 sum(cancelled)::bigint, min(CASE WHEN ready > 0 THEN updated_at END)
             FROM waypost_plans WHERE purged_at IS NULL AND NOT archived GROUP BY phase, queue",
        ),
        Call::once(format!(
            "SELECT (SELECT count(*) FROM waypost_plans WHERE purged_at IS NULL AND archived),
                 (SELECT count(*) FROM waypost_leases), (SELECT count(*) FROM waypost_leases WHERE until < ({CLOCK}))"
        )),
    ]
}

/// Computes the totals from the columns of the plan summaries.
pub(super) fn totals(answers: &Answers) -> Result<Totals> {
    let mut totals = Totals::default();
    let [phases, rest] = answers.as_slice() else { return Ok(totals) };
    for row in phases {
        add_plans(&mut totals, row)?;
    }
    if let Some(row) = rest.first() {
        (totals.archived, totals.leases, totals.leases_overdue) =
            (number(row, 0)?, number(row, 1)?, number(row, 2)?);
    }
    Ok(totals)
}
