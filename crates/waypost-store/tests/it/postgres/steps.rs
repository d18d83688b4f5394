//! Databases of older schemas, and what the latest one is for.

use waypost_store::{Durability, PostgresStore, Store, WaitFilter};

use crate::kit::*;
use crate::place::Place;

/// Who waits for a task of this plan, or of this agent's.
const QUESTION: &str = "SELECT w.id FROM waypost_waits w JOIN waypost_plans p ON p.key = w.plan
     WHERE w.on_plan = 'lib' OR w.on_plan IS NULL AND w.on_agent = 'builder'";

/// A database that a build of schema 6 has written, in which the control row numbered all versions.
const SCHEMA_6: &str = include_str!("../../fixtures/postgres-6.sql");

/// Opens a database several times at once.
fn opened_by_many(place: &Place) {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| place.plans());
        }
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_database_of_the_first_schema_is_brought_up_to_date() {
    let place = Place::postgres();
    place.database().sql(SCHEMA_6);
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
    opened_by_many(&place);
    let fresh = Place::postgres();
    fresh.plans();
    let known = PostgresStore::schema_of(&fresh.location).unwrap();
    assert_eq!(PostgresStore::schema_of(&place.location).unwrap(), known);
    let shape = "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns
         WHERE table_schema = 'public' ORDER BY 1, 2";
    assert_eq!(place.database().sql(shape), fresh.database().sql(shape));
    let indexes = "SELECT indexname FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1";
    assert_eq!(place.database().sql(indexes), fresh.database().sql(indexes));
    assert_eq!(write(&place.plans(), "lib", add("more")).unwrap().version, 3);
    let versions = look(&place.store(), |read| read.stored_versions(&plan("lib"), 0, 9));
    assert_eq!((versions[1].hash, versions[2].chained_from), (None, Some(3)));
    // What the first schema did not know of a plan is known from its next write on.
    let unknown = |finding: &waypost_store::Finding| finding.plan.as_ref() == Some(&plan("lib"));
    assert!(!place.plans().doctor(false).unwrap().iter().any(unknown));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_database_whose_versions_were_numbered_by_the_control_row_is_brought_up_to_date() {
    let place = Place::postgres();
    place.database().sql(SCHEMA_6);
    let before = place.database().sql("SELECT sequence, plan, version FROM waypost_log ORDER BY sequence");
    opened_by_many(&place);
    let plans = place.plans();
    let numbers = "SELECT sequence, plan, version FROM waypost_order ORDER BY sequence";
    assert_eq!(place.database().sql(numbers), before, "every version keeps its number");
    assert_eq!(plans.doctor(false).unwrap(), []);
    let ended = before.len() as u64;
    assert!(log(&plans).iter().map(|entry| entry.sequence).eq(1..=ended));
    // What was there is there: a lease, its lock, a wait, a subscription, a worker, a log, a purged id.
    let rows = index(plans.store(), "moon");
    assert_eq!((rows.leases.len(), rows.locks.len(), rows.waits.len()), (1, 1, 1));
    let subscriptions = plans.subscriptions("agent:a").unwrap();
    assert_eq!(subscriptions[0].cursor, waypost_store::Cursor::after(3));
    let workers = plans.workers(None, 10).unwrap().0.items;
    assert!(workers.len() == 1 && workers[0].draining && workers[0].seen <= workers[0].until, "{workers:?}");
    let text = plans.attempt_log(&plan("moon"), &task_id("launch"), 1).unwrap().map(|log| log.text);
    assert_eq!(text.as_deref(), Some("hola"));
    assert!(matches!(write(&plans, "mars", add("x")), Err(waypost_store::WriteError::NotFound(_))));
    // And it goes on: new plans get new keys, numbers follow, the wait is answered.
    assert_eq!(number(&plans, &create_small(&plans, "new")), ended + 1);
    write(&plans, "lib", start("build")).unwrap();
    write(&plans, "lib", finish("build")).unwrap();
    let received = now(&place.plans(), "moon").task("use").unwrap().state.received.len();
    assert_eq!(received, 1);
    assert!(log(&plans).iter().map(|entry| entry.sequence).eq(1..=ended + 4));
    assert_eq!(place.plans().doctor(false).unwrap(), []);
}

#[test]
#[ignore = "needs PostgreSQL"]
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
            found = read.waits(WaitFilter::On { plan: &plan("lib"), owner: "builder", task: None })?;
            Ok(())
        })
        .unwrap();
    let after = store.traffic();
    let tasks: Vec<_> = found.iter().map(|wait| wait.task.to_string()).collect();
    assert_eq!(tasks, ["by-agent", "by-plan", "by-both"], "plan by plan");
    assert!(after.round_trips - before.round_trips <= 4, "{before:?} {after:?}");
    // By default, without any switch of the planner.
    let explained = place.database().sql(&format!("EXPLAIN {QUESTION}")).join("; ");
    assert!(explained.contains("waypost_waits_by_plan"), "{explained}");
    assert!(explained.contains("waypost_waits_by_agent"), "{explained}");
}
