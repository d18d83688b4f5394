//! The tables, and the migrations of older files. A step that has shipped never changes; new ones are added.

use rusqlite::{Connection, TransactionBehavior};

use crate::error::{Result, StoreError};

/// Each step migrates a file from one schema to the next.
const STEPS: &[&str] = &["
    CREATE TABLE plans (
        key INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        version INTEGER NOT NULL,
        title TEXT NOT NULL,
        status TEXT NOT NULL,
        phase TEXT NOT NULL,
        owner TEXT NOT NULL,
        queue TEXT NOT NULL,
        created_by TEXT,
        created_at INTEGER,
        updated_at INTEGER,
        archived INTEGER NOT NULL,
        awaits_approval INTEGER NOT NULL,
        total INTEGER NOT NULL,
        ready INTEGER NOT NULL,
        blocked INTEGER NOT NULL,
        running INTEGER NOT NULL,
        done INTEGER NOT NULL,
        failed INTEGER NOT NULL,
        skipped INTEGER NOT NULL,
        cancelled INTEGER NOT NULL,
        replay_bytes INTEGER NOT NULL DEFAULT 0,
        purged_at INTEGER
    );
    CREATE TABLE log (
        sequence INTEGER PRIMARY KEY,
        plan INTEGER NOT NULL REFERENCES plans (key),
        version INTEGER NOT NULL,
        at INTEGER NOT NULL,
        actor TEXT NOT NULL,
        command TEXT NOT NULL,
        events TEXT NOT NULL
    );
    CREATE UNIQUE INDEX log_by_plan ON log (plan, version);
    CREATE TABLE snapshots (
        plan INTEGER NOT NULL REFERENCES plans (key),
        version INTEGER NOT NULL,
        bytes BLOB NOT NULL,
        PRIMARY KEY (plan, version)
    );
    CREATE TABLE ready (
        plan INTEGER NOT NULL REFERENCES plans (key),
        task TEXT NOT NULL,
        priority INTEGER NOT NULL,
        PRIMARY KEY (plan, task)
    ) WITHOUT ROWID;
    CREATE TABLE leases (
        plan INTEGER NOT NULL REFERENCES plans (key),
        task TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        worker TEXT NOT NULL,
        until INTEGER,
        PRIMARY KEY (plan, task)
    ) WITHOUT ROWID;
    CREATE INDEX leases_by_end ON leases (until);
    CREATE TABLE locks (
        key TEXT NOT NULL,
        plan INTEGER NOT NULL REFERENCES plans (key),
        task TEXT NOT NULL,
        shared INTEGER NOT NULL,
        PRIMARY KEY (key, plan, task)
    ) WITHOUT ROWID;
    CREATE INDEX locks_by_task ON locks (plan, task);
    CREATE TABLE waits (
        plan INTEGER NOT NULL REFERENCES plans (key),
        task TEXT NOT NULL,
        on_agent TEXT,
        on_plan TEXT,
        on_task TEXT NOT NULL
    );
    CREATE INDEX waits_by_task ON waits (plan, task);
    CREATE INDEX waits_by_what ON waits (on_task);
",
"
    -- Which tasks are ready is known to each plan; beside it stands only how urgent the most urgent of them is.
    DROP TABLE ready;
    ALTER TABLE plans ADD COLUMN urgency INTEGER NOT NULL DEFAULT 0;
",
"
    -- There are as many leases as tasks that run: to look through them costs less than to keep them in order.
    DROP INDEX leases_by_end;
",
"
    CREATE TABLE subscriptions (
        id TEXT PRIMARY KEY,
        owner TEXT NOT NULL,
        filter TEXT NOT NULL,
        cursor TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        trouble TEXT
    ) WITHOUT ROWID;
    CREATE INDEX subscriptions_by_owner ON subscriptions (owner);
",
"
    -- Since when, and of which queue a lease takes a slot; who works on the store, as JSON; the ends of attempts' logs.
    ALTER TABLE leases ADD COLUMN since INTEGER;
    ALTER TABLE leases ADD COLUMN queue TEXT;
    CREATE TABLE workers (
        name TEXT PRIMARY KEY,
        until INTEGER NOT NULL,
        record TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE attempt_logs (
        plan INTEGER NOT NULL REFERENCES plans (key),
        task TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        worker TEXT NOT NULL,
        at INTEGER NOT NULL,
        ended INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (plan, task, attempt)
    );
",
"
    -- What is kept in the place of events that were forgotten.
    CREATE TABLE pruned (
        plan INTEGER PRIMARY KEY REFERENCES plans (key),
        up_to INTEGER NOT NULL,
        at INTEGER NOT NULL,
        by TEXT NOT NULL,
        bytes BLOB NOT NULL
    );
",
"
    -- Who waits for any task of a plan, or of whatever plan an agent owns.
    CREATE INDEX waits_by_plan ON waits (on_plan);
    CREATE INDEX waits_by_agent ON waits (on_agent, on_plan);
",
"
    -- How many tasks of a plan wait for a person's answer, how many there are with those that have parts, and how many were
    -- judged small enough; known from its next write on, or after a repair.
    ALTER TABLE plans ADD COLUMN asking INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE plans ADD COLUMN goals INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE plans ADD COLUMN atomic INTEGER NOT NULL DEFAULT 0;
    UPDATE plans SET goals = total;
",
"
    -- For how long a lease was taken: a report of progress renews it for as long again.
    ALTER TABLE leases ADD COLUMN seconds INTEGER;
    -- The latest progress, which is no version.
    ALTER TABLE leases ADD COLUMN progress TEXT;
    ALTER TABLE leases ADD COLUMN progressed_at INTEGER;
",
"
    -- The hash of each version, and of the latest version in the row of its plan. Versions of earlier schemas have none:
    -- the first version after them covers all of them, and has its own number in `chained_from`.
    ALTER TABLE log ADD COLUMN hash BLOB;
    ALTER TABLE log ADD COLUMN chained_from INTEGER;
    ALTER TABLE plans ADD COLUMN hash BLOB;
    -- A process of an older build that already has the file open would append versions without hashes.
    CREATE TRIGGER log_has_hashes BEFORE INSERT ON log WHEN new.hash IS NULL BEGIN
        SELECT raise(ABORT, 'a newer Waypost has migrated this store; restart this process with that version');
    END;
    -- Builds that know the schema `readable_by` can still read the file.
    CREATE TABLE store (id TEXT NOT NULL, readable_by INTEGER NOT NULL);
    INSERT INTO store (id, readable_by) VALUES (lower(hex(randomblob(16))), 10);
",
"
    -- What is known of plans that are shared with other clones, by group and key.
    CREATE TABLE shared (
        scope TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (scope, key)
    ) WITHOUT ROWID;
"];

/// The schema that this build writes.
pub(super) const KNOWN: u32 = STEPS.len() as u32;
/// The oldest schema whose builds can use a file of the schema [`KNOWN`]: processes that have it open may finish what
/// they have begun, and others may read it. A step that removes or redefines something raises it.
const READABLE_BY: u32 = 10;

/// Migrates a file to the schema of this build. Several processes may do so at once. Returns the schema of a file that
/// a newer build has migrated and that this build can only read.
pub(super) fn bring_up_to_date(connection: &mut Connection, location: &str) -> Result<Option<u32>> {
    if version(connection)? == KNOWN {
        return Ok(None);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster, so read again under the lock.
    must_be_usable(&transaction, location)?;
    let found = version(&transaction)?;
    if found > KNOWN {
        return Ok(Some(found));
    }
    for step in &STEPS[found as usize..] {
        transaction.execute_batch(step)?;
    }
    transaction.execute("UPDATE store SET readable_by = ?1", [READABLE_BY])?;
    transaction.pragma_update(None, "user_version", KNOWN)?;
    transaction.commit()?;
    Ok(None)
}

/// Refuses a file that a newer build has migrated to a schema that this build cannot use. A process that has the file
/// open must look before each write.
pub(super) fn must_be_usable(connection: &Connection, location: &str) -> Result<()> {
    let found = version(connection)?;
    if found <= KNOWN {
        return Ok(());
    }
    // A file without that table is of a build that is not compatible with this one either.
    let readable_by = connection.query_row("SELECT readable_by FROM store", [], |row| row.get::<_, u32>(0));
    match readable_by.is_ok_and(|readable_by| readable_by <= KNOWN) {
        true => Ok(()),
        false => Err(StoreError::TooNew { what: location.to_owned(), found, known: KNOWN }),
    }
}

/// Returns the current schema of a file.
pub(super) fn version(connection: &Connection) -> Result<u32> {
    Ok(connection.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::expand_only::contraction;

    #[test]
    fn the_steps_that_older_builds_survive_only_add_something() {
        let later = STEPS.iter().skip(READABLE_BY as usize);
        assert_eq!(later.filter_map(|step| contraction(step)).next(), None, "raise READABLE_BY");
    }
}
