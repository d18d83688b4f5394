//! SQLite files that are damaged, old or too new.

use std::path::PathBuf;

use rusqlite::Connection;
use waypost_core::{Command, Plan};
use waypost_store::{CopyError, Durability, PruneMode, Running, SqliteStore, StoreError, WriteError, copy};

use crate::kit::*;
use crate::place::{Folder, Place};

fn database(place: &Place) -> PathBuf {
    place.folder().join("waypost.db")
}

/// Does something to the file behind Waypost's back.
fn tamper(place: &Place, sql: &str) -> usize {
    Connection::open(database(place)).unwrap().execute(sql, []).unwrap()
}

fn corrupt(error: WriteError) -> String {
    match error {
        WriteError::Store(error @ StoreError::Corrupt { .. }) => error.to_string(),
        other => panic!("expected damage to be named, got {other:?}"),
    }
}

#[test]
fn snapshots_that_are_garbled_or_gone_lose_nothing() {
    let place = Place::sqlite();
    let plans = place.plans();
    create_small(&plans, "p");
    for round in 0..12 {
        let body = format!("{round} ").repeat(6_000);
        write(&plans, "p", revise(waypost_core::PlanChanges { body: Some(body), ..Default::default() }))
            .unwrap();
    }
    let before = now(&plans, "p").to_draft();
    assert!(tamper(&place, "UPDATE snapshots SET bytes = x'00'") > 0, "there were snapshots");
    assert_eq!(now(&place.plans(), "p").to_draft(), before);
    assert_eq!(place.plans().doctor(false).unwrap().len(), 1, "the doctor says so");
    tamper(&place, "DELETE FROM snapshots");
    assert_eq!(now(&place.plans(), "p").to_draft(), before);
    assert_eq!(place.plans().doctor(false).unwrap(), []);
}

/// Flips one bit of a value, at the start, in the middle or at the end of it.
fn flip(bytes: &mut [u8], place: usize) {
    let at = (bytes.len() - 1) * place / 2;
    bytes[at] ^= 1;
}

#[test]
fn a_flipped_bit_is_found_in_events_hashes_snapshots_and_what_is_kept_of_pruned_plans() {
    let place = Place::sqlite();
    let plans = place.plans();
    for id in ["p", "q"] {
        create_small(&plans, id);
        for round in 0..12 {
            let body = format!("{round} ").repeat(6_000);
            write(&plans, id, revise(waypost_core::PlanChanges { body: Some(body), ..Default::default() }))
                .unwrap();
        }
    }
    for command in [Command::Activate, start("first"), finish("first")] {
        write(&plans, "q", command).unwrap();
    }
    plans.prune(0, &ada(), PruneMode::Act, &mut |_| {}).unwrap();
    write(&plans, "p", add("late")).unwrap();
    assert_eq!(plans.doctor(false).unwrap(), []);
    let database = Connection::open(database(&place)).unwrap();
    // A version before the snapshot, and one after it.
    for (table, column, row) in [
        ("log", "events", "plan = 1 AND version = 2"),
        ("log", "events", "plan = 1 AND version = 14"),
        ("log", "hash", "plan = 1 AND version = 5"),
        ("plans", "hash", "key = 1"),
        ("snapshots", "bytes", "plan = 1"),
        ("pruned", "bytes", "plan = 2"),
    ] {
        for at in 0..3 {
            let select =
                format!("SELECT rowid, CAST({column} AS BLOB), typeof({column}) FROM {table} WHERE {row}");
            let (id, before, kind): (i64, Vec<u8>, String) = database
                .query_row(&select, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .unwrap_or_else(|error| panic!("{select}: {error}"));
            let put = |bytes: &[u8]| {
                let update = format!("UPDATE {table} SET {column} = CAST(?1 AS {kind}) WHERE rowid = ?2");
                database.execute(&update, rusqlite::params![bytes, id]).unwrap();
            };
            let mut after = before.clone();
            flip(&mut after, at);
            put(&after);
            assert!(!place.plans().doctor(false).unwrap().is_empty(), "{table}.{column}, {row}, place {at}");
            put(&before);
        }
    }
    assert_eq!(place.plans().doctor(false).unwrap(), []);
}

#[test]
fn a_damaged_version_is_named_and_left_alone() {
    let place = Place::sqlite();
    let plans = place.plans();
    create_small(&plans, "p");
    create_small(&plans, "q");
    write(&plans, "p", add("a")).unwrap();
    tamper(&place, "UPDATE log SET events = '[{' WHERE sequence = 3");
    let fresh = place.plans();
    let error = corrupt(fresh.with_plan(&plan("p"), Plan::version).unwrap_err());
    assert!(error.starts_with("version 2 of plan p is damaged"), "{error}");
    corrupt(write(&fresh, "p", add("b")).unwrap_err());
    assert_eq!(write(&fresh, "q", add("b")).unwrap().version, 2, "other plans go on");
    assert_eq!(list(&fresh, &everything()), ["q", "p"], "and all are listed");
    let findings = fresh.doctor(true).unwrap();
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].plan.clone(), findings[0].repaired), (Some(plan("p")), false));
    let left: String = Connection::open(database(&place))
        .unwrap()
        .query_row("SELECT events FROM log WHERE sequence = 3", [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, "[{");
}

#[test]
fn a_missing_version_is_named() {
    let place = Place::sqlite();
    let plans = place.plans();
    create_small(&plans, "p");
    write(&plans, "p", add("a")).unwrap();
    write(&plans, "p", add("b")).unwrap();
    tamper(&place, "DELETE FROM log WHERE version = 2");
    let error = corrupt(place.plans().with_plan(&plan("p"), Plan::version).unwrap_err());
    assert_eq!(error, "the history of plan p is damaged: version 2 is missing");
    let findings = place.plans().doctor(false).unwrap();
    let what = &findings[0].what;
    assert!(what.starts_with("version 2 is missing from the history; last good: 2"), "{what}");
}

#[test]
fn rows_beside_a_plan_that_are_wrong_are_found_and_put_right() {
    let place = Place::sqlite();
    let plans = place.plans();
    create_small(&plans, "p");
    plans.write(request("p", vec![add("a"), start("first")])).unwrap();
    for sql in [
        "UPDATE plans SET urgency = 9",
        "DELETE FROM leases",
        "UPDATE plans SET done = 7",
        "INSERT INTO locks VALUES ('key', 1, 'first', 0)",
        "INSERT INTO waits VALUES (1, 'a', NULL, 'x', 'y')",
    ] {
        assert_eq!(tamper(&place, sql), 1, "{sql}");
        assert_eq!(place.plans().doctor(true).unwrap().len(), 1, "{sql}");
        assert_eq!(place.plans().doctor(false).unwrap(), [], "{sql}");
    }
}

#[test]
fn a_file_that_is_no_database_is_named_and_left_alone() {
    let folder = Folder::new();
    let path = folder.path().join("waypost.db");
    let text = "these are the words of somebody else ".repeat(200);
    std::fs::write(&path, &text).unwrap();
    match SqliteStore::open(&path, Durability::Full).map(drop) {
        Err(StoreError::NotADatabase(what)) => assert_eq!(what, format!("sqlite:{}", path.display())),
        other => panic!("expected the file to be named, got {other:?}"),
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_file_of_a_newer_waypost_is_refused() {
    let place = Place::sqlite();
    create_small(&place.plans(), "p");
    Connection::open(database(&place)).unwrap().pragma_update(None, "user_version", 99).unwrap();
    tamper(&place, "UPDATE store SET readable_by = 99");
    match SqliteStore::open(&database(&place), Durability::Full).map(drop) {
        Err(StoreError::TooNew { found: 99, known, .. }) => assert!(known < 99),
        other => panic!("expected a refusal, got {other:?}"),
    }
    let version: u32 = Connection::open(database(&place))
        .unwrap()
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(version, 99, "it was left as it is");
}

#[test]
fn a_file_of_a_newer_waypost_that_allows_it_is_read_and_running_processes_finish() {
    let place = Place::sqlite();
    let running = place.plans();
    create_small(&running, "p");
    assert_eq!(look(running.store(), |read| Ok(read.store_state()?.newer_schema)), None);
    Connection::open(database(&place)).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let plans = place.plans();
    assert_eq!(now(&plans, "p").version(), 1);
    let refused = write(&plans, "p", add("a")).unwrap_err();
    assert!(matches!(refused, WriteError::Store(StoreError::TooNew { found: 99, .. })), "{refused}");
    assert_eq!(look(running.store(), |read| Ok(read.store_state()?.newer_schema)), Some(99));
    assert_eq!(write(&running, "p", add("a")).unwrap().version, 2);
    let copied = copy(&*place.store(), &*Place::memory().store(), Running::Allow, &mut |_| {});
    assert!(matches!(copied, Err(CopyError::Newer { schema: 99, .. })), "{copied:?}");
}

/// Every schema that was ever released has a dump here, and opens.
#[test]
fn files_of_every_older_schema_open() {
    let dumps = [
        include_str!("../fixtures/schema-1.sql"),
        include_str!("../fixtures/schema-2.sql"),
        include_str!("../fixtures/schema-3.sql"),
        include_str!("../fixtures/schema-4.sql"),
        include_str!("../fixtures/schema-5.sql"),
        include_str!("../fixtures/schema-6.sql"),
        include_str!("../fixtures/schema-7.sql"),
        include_str!("../fixtures/schema-8.sql"),
        include_str!("../fixtures/schema-9.sql"),
    ];
    for (dump, schema) in dumps.iter().zip(1..) {
        let place = Place::sqlite();
        Connection::open(database(&place)).unwrap().execute_batch(dump).unwrap();
        let plans = place.plans();
        assert_eq!(list(&plans, &everything()), ["moon"], "schema {schema}");
        let moon = now(&plans, "moon");
        assert_eq!((moon.version(), moon.spec().title.as_str()), (4, "To the moon"));
        assert_eq!((moon.counts().done, moon.counts().running, moon.counts().blocked), (1, 1, 1));
        assert_eq!(index(plans.store(), "moon").locks[0].lock.key, "pad-39a");
        assert_eq!(plans.at_version(&plan("moon"), 2).unwrap().spec().title, "a plan");
        assert!(matches!(write(&plans, "mars", add("x")), Err(WriteError::NotFound(_))), "it was purged");
        assert_eq!(plans.doctor(false).unwrap(), [], "schema {schema}");
        let landed = write(&plans, "moon", add("land")).unwrap();
        assert_eq!(number(&plans, &landed), 6);
        let versions = look(plans.store(), |read| read.stored_versions(&plan("moon"), 0, 9));
        assert!(versions[..4].iter().all(|version| version.hash.is_none()), "old versions stay as they are");
        assert_eq!(versions[4].chained_from, Some(5), "schema {schema}");
        assert_eq!(look(plans.store(), |read| Ok(read.store_state()?.id)).len(), 32);
        assert_eq!(place.plans().doctor(false).unwrap(), [], "schema {schema}");
        tamper(&place, "UPDATE log SET actor = 'person:eve' WHERE version = 2");
        let found = place.plans().doctor(false).unwrap();
        assert!(found[0].what.starts_with("version 5 does not follow from version 4"), "{found:?}");
    }
}

#[test]
fn a_process_that_knows_no_hashes_cannot_append_to_a_migrated_file() {
    let place = Place::sqlite();
    create_small(&place.plans(), "p");
    let old = "INSERT INTO log (sequence, plan, version, at, actor, command, events)
         VALUES (2, 1, 2, 0, 'person:ada', 'add_tasks', '[]')";
    let error = Connection::open(database(&place)).unwrap().execute(old, []).unwrap_err().to_string();
    assert!(error.contains("a newer Waypost has migrated this store"), "{error}");
    write(&place.plans(), "p", add("a")).unwrap();
}

#[test]
fn a_history_whose_end_was_cut_differs_from_the_row_of_its_plan() {
    let place = Place::sqlite();
    let plans = place.plans();
    create_small(&plans, "p");
    write(&plans, "p", add("a")).unwrap();
    write(&plans, "p", Command::Archive).unwrap();
    // All but the hash is as version 2 left it.
    tamper(&place, "DELETE FROM log WHERE version = 3");
    tamper(&place, "UPDATE plans SET version = 2, archived = 0");
    let found = place.plans().doctor(true).unwrap();
    let named = "the row of the plan has another hash than version 2; last good: 2";
    assert!(found[0].what.starts_with(named), "{found:?}");
}

#[test]
fn a_copied_file_has_the_same_id() {
    let (place, copy) = (Place::sqlite(), Place::sqlite());
    create_small(&place.plans(), "p");
    let id = look(&place.store(), |read| Ok(read.store_state()?.id));
    tamper(&place, &format!("VACUUM INTO '{}'", database(&copy).display()));
    assert_eq!(look(&copy.store(), |read| Ok(read.store_state()?.id)), id);
}

/// How the database finds the rows that a question asks for.
fn way(connection: &Connection, question: &str) -> String {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {question}")).unwrap();
    let steps = statement.query_map([], |row| row.get::<_, String>(3)).unwrap();
    steps.map(Result::unwrap).collect::<Vec<_>>().join("; ")
}

#[test]
fn who_waits_for_a_plan_or_an_agent_is_found_without_looking_at_all_who_wait() {
    let place = Place::sqlite();
    Connection::open(database(&place))
        .unwrap()
        .execute_batch(include_str!("../fixtures/schema-6.sql"))
        .unwrap();
    let question = "SELECT p.id, w.task FROM waits w JOIN plans p ON p.key = w.plan
         WHERE w.on_plan = 'a' OR w.on_plan IS NULL AND w.on_agent = 'b'";
    let before = way(&Connection::open(database(&place)).unwrap(), question);
    assert!(before.contains("SCAN w"), "{before}");
    place.plans();
    let after = way(&Connection::open(database(&place)).unwrap(), question);
    assert!(after.contains("waits_by_plan") && after.contains("waits_by_agent"), "{after}");
    assert!(!after.contains("SCAN w"), "{after}");
}
