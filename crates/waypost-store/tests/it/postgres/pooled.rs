//! Behind a pooler that gives each transaction any of a few sessions, and on a server that has few connections to give.

use waypost_store::{Durability, PlanStore, PostgresStore, Since};
use waypost_testkit::pgbouncer::{PgBouncer, SESSIONS};
use waypost_testkit::postgres::PostgresServer;
use waypost_testkit::{plan_of, task};

use super::{PATIENCE, plans_at, refused};
use crate::kit::*;

/// The connections to the database besides the one that asks.
const CONNECTIONS: &str = "SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()";

#[test]
#[ignore = "needs PostgreSQL"]
fn many_processes_share_a_few_sessions_of_a_pooler() {
    let server = PostgresServer::start().unwrap();
    let database = server.database();
    let pooler = PgBouncer::before(server.port()).unwrap();
    let url = pooler.url(database.url());
    let plans = plans_at(&url);
    create_small(&plans, "shared");
    let mut watch = plans.watch().unwrap();
    std::thread::scope(|scope| {
        for number in 0..12 {
            let url = &url;
            scope.spawn(move || {
                let plans = plans_at(url);
                let own = format!("p{number}");
                create_small(&plans, &own);
                for round in 0..10 {
                    // Often enough that a statement with a name would have been prepared.
                    write(&plans, &own, add(&format!("t{round}"))).unwrap();
                    write(&plans, "shared", add(&format!("t{number}-{round}"))).unwrap();
                    assert_eq!(now(&plans, &own).version(), 2 + round);
                }
                let made = plans.subscribe(&own, Default::default(), Since::Beginning).unwrap();
                assert!(!plans.unread(&own, &made.id, 10).unwrap().events.is_empty());
            });
        }
        // No notification can arrive, so the watch polls.
        while now(&plans, "shared").version() < 121 {
            assert!(watch.wait(PATIENCE).unwrap());
        }
    });
    let numbers: Vec<u64> = log(&plans).iter().map(|entry| entry.sequence).collect();
    assert!(numbers.into_iter().eq(1..=1 + 12 + 12 * 20));
    assert_eq!(plans.doctor(false).unwrap(), []);
    assert!(database.sql(CONNECTIONS)[0].parse::<usize>().unwrap() <= SESSIONS);
    // The settings of a transaction are gone with it, and no session is left with anything of ours.
    let about = plans.store().about().unwrap();
    assert!(about.iter().any(|(name, value)| *name == "notify" && value.contains("polling")), "{about:?}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn options_that_a_pooler_refuses_are_not_dropped_in_silence() {
    let server = PostgresServer::start().unwrap();
    let database = server.database();
    let pooler = PgBouncer::before(server.port()).unwrap();
    let url = format!("{}&options=-csearch_path%3Dteam", pooler.url(database.url()));
    let error = refused(&url);
    assert!(error.contains("options") && error.contains("on the role"), "{error}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_process_that_works_and_watches_has_one_connection_and_ends_it() {
    let server =
        PostgresServer::start_with("log_disconnections = on", waypost_testkit::postgres::Tls::Absent);
    let server = server.unwrap();
    let database = server.database();
    let work = |name: &str| {
        let store = std::sync::Arc::new(PostgresStore::open(database.url(), Durability::Full).unwrap());
        let plans = PlanStore::new(store.clone());
        create_small(&plans, name);
        let mut watch = plans.watch().unwrap();
        let other = plans_at(database.url());
        for round in 0..5 {
            write(&plans, name, add(&format!("t{round}"))).unwrap();
            now(&plans, name);
            write(&other, name, add(&format!("o{round}"))).unwrap();
            while now(&plans, name).version() < 3 + 2 * round {
                assert!(watch.wait(PATIENCE).unwrap(), "a notification arrives");
            }
        }
        (store.traffic().connections, database.sql(CONNECTIONS))
    };
    // On a busy machine a slow numbering in the background makes the next write open another connection.
    let found = (0..5).map(|round| work(&format!("p{round}"))).find(|(connections, _)| *connections == 1);
    let (_, of_both) = found.expect("it works and listens on the same connection");
    assert_eq!(of_both, ["2"], "and the other process has one too");
    assert_eq!(database.sql(CONNECTIONS), ["0"]);
    let log = std::fs::read_to_string(server.folder().join("server.log")).unwrap();
    assert!(!log.contains("unexpected EOF") && !log.contains("could not receive data"), "{log}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_connection_that_has_read_a_large_plan_is_replaced_and_its_buffer_freed() {
    const BODY_BYTES: usize = 5 << 20;
    let began = std::time::Instant::now();
    let server = PostgresServer::start().unwrap();
    let database = server.database();
    let store = std::sync::Arc::new(PostgresStore::open(database.url(), Durability::Full).unwrap());
    let plans = PlanStore::new(store.clone());
    create_small(&plans, "small");
    let mut watch = plans.watch().unwrap();
    let other = plans_at(database.url());
    let mut large = plan_of([task("first", &[])]);
    large.spec.body = "x".repeat(BODY_BYTES);
    create(&other, "large", large);
    drop(other);
    // What was written may be read in the background, on a second connection.
    while database.sql(CONNECTIONS) != ["1"] {
        assert!(began.elapsed() < PATIENCE, "more than one connection stays open");
    }
    let before = store.traffic().connections;
    assert_eq!(now(&plans, "large").spec().body.len(), BODY_BYTES);
    now(&plans, "small");
    assert!(store.traffic().connections > before, "another connection is used");
    while database.sql(CONNECTIONS) != ["1"] {
        assert!(began.elapsed() < PATIENCE, "the connection with the large buffer stays open");
    }
    write(&plans_at(database.url()), "small", add("second")).unwrap();
    while now(&plans, "small").version() < 2 {
        assert!(watch.wait(PATIENCE).unwrap(), "a notification arrives on the new connection");
    }
}
