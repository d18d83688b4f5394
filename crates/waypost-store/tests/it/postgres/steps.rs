//! Databases of older schemas, and what the latest one is for.

use waypost_store::{Durability, PostgresStore, Store};

use crate::kit::*;
use crate::place::Place;

/// Who waits for a task of this plan, or of this agent's.
const QUESTION: &str = "SELECT w.id FROM waypost_waits w JOIN waypost_plans p ON p.key = w.plan
     WHERE w.on_plan = 'lib' OR w.on_plan IS NULL AND w.on_agent = 'builder'";

#[test]
fn a_database_of_the_first_schema_is_brought_up_to_date() {
    let place = Place::postgres();
    create_small(&place.plans(), "p");
    let known = PostgresStore::schema_of(&place.location).unwrap();
    // All that later steps have added.
    place.database().sql(
        "DROP INDEX waypost_waits_by_plan; DROP INDEX waypost_waits_by_agent; DROP TABLE waypost_held;
         ALTER TABLE waypost_plans DROP COLUMN asking, DROP COLUMN goals, DROP COLUMN atomic, DROP COLUMN hash;
         ALTER TABLE waypost_log DROP COLUMN hash, DROP COLUMN chained_from;
         DROP TABLE waypost_store;
         ALTER TABLE waypost_leases DROP COLUMN seconds, DROP COLUMN progress, DROP COLUMN progressed_at;
         UPDATE waypost_control SET schema = 1",
    );
    assert_eq!(PostgresStore::schema_of(&place.location).unwrap(), Some(1));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| place.plans());
        }
    });
    assert_eq!(PostgresStore::schema_of(&place.location).unwrap(), known);
    let added = "SELECT count(*) FROM pg_class WHERE relname IN
         ('waypost_waits_by_plan', 'waypost_waits_by_agent', 'waypost_held')";
    assert_eq!(place.database().sql(added), ["3"]);
    assert_eq!(write(&place.plans(), "p", add("more")).unwrap().version, 2);
    let versions = look(&place.store(), |read| read.stored_versions(&plan("p"), 0, 9));
    assert_eq!((versions[0].hash, versions[1].chained_from), (None, Some(2)));
    assert_eq!(place.plans().doctor(false).unwrap(), []);
}

#[test]
fn who_waits_is_asked_for_in_a_few_round_trips_however_many_wait_for_others() {
    let place = Place::postgres();
    let store = PostgresStore::open(&place.location, Durability::Full).unwrap();
    for name in ["a", "b", "c"] {
        create_small(&place.plans(), name);
    }
    place.database().sql(
        "INSERT INTO waypost_waits (plan, task, on_agent, on_plan, on_task)
             SELECT 1, 'w' || n, NULL, 'other', 't' FROM generate_series(1, 5000) n;
         INSERT INTO waypost_waits (plan, task, on_agent, on_plan, on_task)
             VALUES (2, 'by-plan', NULL, 'lib', 'x'), (2, 'by-agent', 'builder', NULL, 'y'),
                 (3, 'by-both', 'tester', 'lib', 'z'), (3, 'other-agent', 'tester', NULL, 'z')",
    );
    let mut found = Vec::new();
    let before = store.traffic();
    store
        .read(&mut |read| {
            found = read.waits(&plan("lib"), "builder", None)?;
            Ok(())
        })
        .unwrap();
    let after = store.traffic();
    let tasks: Vec<_> = found.iter().map(|wait| wait.task.to_string()).collect();
    assert_eq!(tasks, ["by-agent", "by-plan", "by-both"], "plan by plan");
    assert!(after.round_trips - before.round_trips <= 4, "{before:?} {after:?}");
    let explained = place.database().sql(&format!("SET enable_seqscan = off; EXPLAIN {QUESTION}")).join("; ");
    assert!(explained.contains("waypost_waits_by_plan"), "{explained}");
    assert!(explained.contains("waypost_waits_by_agent"), "{explained}");
}
