//! What only a PostgreSQL database can go through: servers that restart, connections that break, writers that are stopped,
//! certificates, schemas, rows that are damaged. All of it on a real server.

mod alone;
mod judge;
mod parallel;
mod pooled;
mod proxy;
mod steps;

use std::sync::mpsc;
use std::time::{Duration, Instant};

use waypost_core::{Command, Plan};
use waypost_store::{
    Durability, LogFilter, NewPlan, PlanStore, PostgresStore, Record, Store, StoreError, Worker,
    WorkerFilter, WorkerKind, WriteError, WriteRequest, open,
};
use waypost_testkit::plan_of;
use waypost_testkit::postgres::{PostgresDatabase, PostgresServer, Tls};
use waypost_testkit::task;

use self::proxy::{Cut, Proxy};
use crate::kit::*;
use crate::place::Place;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

fn plans_at(url: &str) -> PlanStore {
    PlanStore::new(open(url, Durability::Full).unwrap())
}

fn refused(url: &str) -> String {
    open(url, Durability::Full).err().unwrap_or_else(|| panic!("{url} was opened")).to_string()
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_writer_that_is_not_done_holds_up_neither_writers_of_other_plans_nor_the_numbers() {
    let place = Place::postgres();
    let (slow, fast, reader) = (place.plans(), place.plans(), place.plans());
    create_small(&slow, "slow");
    create_small(&fast, "fast");
    let (written, wrote) = mpsc::channel();
    let (go_on, told) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let numbers = || log(&reader).iter().map(|entry| entry.sequence).collect::<Vec<_>>();
        let slow = scope.spawn(move || {
            let head = head(slow.store(), "slow").unwrap();
            let plan = now(&slow, "slow");
            slow.store()
                .write(&mut |transaction| {
                    let head = waypost_store::PlanSummary { version: 2, ..head.clone() };
                    let index = waypost_store::IndexChanges::default();
                    let (at, actor) = (transaction.now(), ada());
                    let append = waypost_store::Append {
                        head: &head,
                        at,
                        actor: &actor,
                        command: "slow",
                        events: &[],
                        index: &index,
                        plan: &plan,
                    };
                    transaction.append(&append)?;
                    // It stands in the database, and the commit takes its time.
                    transaction.versions(&head.id, 1, 10)?;
                    written.send(()).unwrap();
                    told.recv_timeout(PATIENCE).unwrap();
                    Ok(())
                })
                .unwrap();
        });
        wrote.recv_timeout(PATIENCE).unwrap();
        for number in 0..20 {
            let version = write(&fast, "fast", add(&format!("t{number}"))).unwrap().version;
            assert!(
                numbers().into_iter().eq(1..=version + 1),
                "a reader sees all that was committed, without gaps"
            );
        }
        go_on.send(()).unwrap();
        slow.join().unwrap();
        assert!(numbers().into_iter().eq(1..=23));
    });
    let last = log(&reader).pop().unwrap();
    assert_eq!(
        (last.plan, last.version),
        (plan("slow"), 2),
        "it comes where it was committed, not where it began"
    );
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_commit_whose_answer_is_lost_is_answered_truthfully_and_done_once() {
    let server = PostgresServer::start().unwrap();
    let database = server.database();
    let proxy = Proxy::before(server.port());
    let through = database.url().replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port));
    create_small(&plans_at(database.url()), "p");
    for (round, when) in [Cut::AfterCommit, Cut::BeforeCommit, Cut::AfterCommit].into_iter().enumerate() {
        let version = 2 + round as u64;
        let plans = plans_at(&through);
        proxy.cut(when);
        let written = write(&plans, "p", add(&format!("t{round}"))).unwrap();
        assert!(proxy.has_cut(), "{when:?}");
        assert_eq!((written.version, number(&plans, &written)), (version, version), "{when:?}");
        let subscribing = plans_at(&through);
        proxy.cut(when);
        subscribing.subscribe("agent:a", Default::default(), waypost_store::Since::Beginning).unwrap();
        assert!(proxy.has_cut(), "{when:?}, without a version");
        let all = plans_at(database.url());
        assert_eq!(all.history(&plan("p"), 0, 100).unwrap().len() as u64, version, "{when:?}");
        assert_eq!(all.subscriptions("agent:a").unwrap().len(), 1 + round, "{when:?}");
        assert_eq!(all.doctor(false).unwrap(), []);
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_writer_that_stands_still_is_thrown_out_and_begins_anew_when_it_wakes() {
    let place = Place::postgres();
    let (stopped, other) = (place.plans(), place.plans());
    create_small(&stopped, "p");
    let (holding, held) = mpsc::channel();
    let (wake, woken) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(move || {
            let mut runs = 0;
            let outcome = stopped.store().write(&mut |transaction| {
                runs += 1;
                // From here on, nobody else writes this plan.
                let version = transaction.plan_state(&plan("p"))?.version();
                let until = transaction.now().plus_seconds(60);
                transaction.renew_lease(&plan("p"), "first", 1, until)?;
                assert_eq!(version, Some(runs));
                if runs == 1 {
                    holding.send(()).unwrap();
                    woken.recv_timeout(PATIENCE).unwrap();
                }
                Ok(())
            });
            (outcome.is_ok(), runs)
        });
        held.recv_timeout(PATIENCE).unwrap();
        assert_eq!(write(&other, "p", add("while-it-slept")).unwrap().version, 2);
        wake.send(()).unwrap();
        assert_eq!(sleeper.join().unwrap(), (true, 2), "what it did before it slept never happened");
    });
    assert_eq!(place.plans().doctor(false).unwrap(), []);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_server_that_crashes_and_comes_back_loses_nothing_and_nobody_notices() {
    let server = PostgresServer::start().unwrap();
    let database = server.database();
    let (plans, other) = (plans_at(database.url()), plans_at(database.url()));
    create_small(&plans, "p");
    let mut watch = other.watch().unwrap();
    let mut version = 1;
    for round in 0..2 {
        for number in 0..5 {
            version = write(&plans, "p", add(&format!("r{round}-{number}"))).unwrap().version;
        }
        while now(&other, "p").version() < version {
            assert!(watch.wait(PATIENCE).unwrap());
        }
        while watch.wait(Duration::from_millis(100)).unwrap() {}
        server.control(&["-m", "immediate", "restart"]).unwrap();
        assert!(watch.wait(PATIENCE).unwrap(), "something may have been missed");
        assert_eq!(now(&other, "p").version(), version);
    }
    assert_eq!(write(&plans, "p", add("last")).unwrap().version, version + 1);
    assert!(watch.wait(PATIENCE).unwrap());
    assert_eq!(other.doctor(false).unwrap(), []);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_write_takes_two_round_trips_however_many_commands_it_has_and_a_look_takes_one() {
    let place = Place::postgres();
    let store = std::sync::Arc::new(PostgresStore::open(&place.location, Durability::Relaxed).unwrap());
    let plans = PlanStore::new(store.clone());
    let tasks = (0..600).map(|number| task(&format!("t{number}"), &[]));
    create(&plans, "p", plan_of(tasks));
    let starting = |from: usize| -> Vec<_> {
        let starts = (from..from + 50).map(|number| request("p", vec![start(&format!("t{number}"))]));
        starts.collect()
    };
    // Twice, so that all statements are known to the connection.
    for from in [0, 50] {
        assert!(plans.write_each(starting(from)).iter().all(Result::is_ok));
        now(&plans, "p");
    }
    // The fewest of several: the numbers of earlier writes are given in the background meanwhile.
    let mut fewest = (u64::MAX, u64::MAX, u64::MAX);
    for from in (100..350).step_by(50) {
        let before = store.traffic();
        assert!(plans.write_each(starting(from)).iter().all(Result::is_ok));
        let written = store.traffic();
        assert_eq!(now(&plans, "p").version(), from as u64 + 51);
        let read = store.traffic().round_trips - written.round_trips;
        let (trips, statements) =
            (written.round_trips - before.round_trips, written.statements - before.statements);
        fewest = (fewest.0.min(trips), fewest.1.min(statements), fewest.2.min(read));
    }
    assert_eq!((fewest.0, fewest.2), (2, 1));
    assert!(fewest.1 <= 12, "{}", fewest.1);
    // What another process wrote is read along.
    let other = place.plans();
    let trips = (0..5).map(|number| {
        let new = format!("new{number}");
        write(&other, "p", add(&new)).unwrap();
        let before = store.traffic();
        write(&plans, "p", start(&new)).unwrap();
        store.traffic().round_trips - before.round_trips
    });
    assert_eq!(trips.min(), Some(2));
    // The fewest of several stores: a slow numbering in the background makes the next write open another one.
    let connections = (0..5).map(|number| {
        let store = std::sync::Arc::new(PostgresStore::open(&place.location, Durability::Relaxed).unwrap());
        let plans = PlanStore::new(store.clone());
        let name = format!("q{number}");
        create(&plans, &name, plan_of([task("a", &[]), task("b", &[])]));
        for task in ["a", "b"] {
            write(&plans, &name, start(task)).unwrap();
        }
        store.traffic().connections
    });
    assert_eq!(connections.min(), Some(1), "who does one thing at a time needs one connection");
    assert!(store.traffic().connections <= 2, "one for the writer, one for the numbers");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_most_urgent_tasks_take_as_many_round_trips_however_many_plans_there_are() {
    let place = Place::postgres();
    let plans = place.plans();
    let mut count = 0;
    let mut trips = |plans_total: usize, limit: usize| {
        for number in count..plans_total {
            create_small(&plans, &format!("p{number}"));
        }
        count = plans_total;
        // Numbers all versions, so that no reader has to.
        plans.latest().unwrap();
        // Another process, which has read none of them.
        let store = std::sync::Arc::new(PostgresStore::open(&place.location, Durability::Relaxed).unwrap());
        let before = store.traffic().round_trips;
        let found = PlanStore::new(store.clone()).claimable(None, limit).unwrap().items;
        assert_eq!(found.len(), limit);
        store.traffic().round_trips - before
    };
    let few = trips(6, 5);
    assert!(few <= 1 + 4 * 5, "one for the list, and at most four for each plan that is read: {few}");
    assert_eq!(trips(200, 5), few);
    let many = trips(200, 100);
    assert!(many <= 2 + 4 * 100, "two pages of the list: {many}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_worker_that_is_asked_to_drain_is_woken_and_its_heartbeats_wake_nobody() {
    let place = Place::postgres();
    let (plans, other) = (place.plans(), place.plans());
    let worker = Worker::new("w", "mill", WorkerKind::Worker, vec!["default".to_owned()]);
    let beat = |worker: &Worker| {
        let heartbeat = &mut |transaction: &mut dyn waypost_store::Transaction| {
            transaction.workers(WorkerFilter::Name("w"), 1)?;
            transaction.put(Record::Worker("w", Some(worker)))
        };
        other.store().write(heartbeat).unwrap();
    };
    beat(&worker);
    let mut watch = plans.watch().unwrap();
    beat(&worker);
    assert!(!watch.wait(Duration::from_millis(100)).unwrap());
    assert!(other.drain("w").unwrap());
    assert!(watch.wait(PATIENCE).unwrap());
    beat(&Worker { draining: true, ..worker });
    assert!(!watch.wait(Duration::from_millis(100)).unwrap(), "it is known already");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn certificates_are_checked_as_carefully_as_asked() {
    let server = PostgresServer::start_with("", Tls::Offered).unwrap();
    let database = server.database();
    let ca = server.folder().join("ca.pem");
    let readable = std::env::temp_dir().join(format!("waypost-ca-{}.pem", std::process::id()));
    let url = |host: &str, rest: &str| {
        let (_, name) = database.url().split_once(&format!("{}/", server.port())).unwrap();
        let name = name.split('?').next().unwrap();
        format!("postgres://postgres@{host}:{}/{name}?{rest}", server.port())
    };
    // The folder belongs to the server's user alone.
    let copied = std::fs::copy(&ca, &readable);
    assert!(copied.is_ok(), "{}: {copied:?}", ca.display());
    let believed = format!("sslrootcert={}", readable.display());
    create_small(&plans_at(&url("localhost", &format!("sslmode=verify-full&{believed}"))), "p");
    let encrypted = "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
         WHERE s.ssl AND a.datname = current_database() AND a.pid <> pg_backend_pid()";
    // The server ends a session a moment after its client.
    let until_none = || {
        let gone = Instant::now() + PATIENCE;
        while database.sql(encrypted) != ["0"] {
            assert!(Instant::now() < gone);
        }
    };
    for (host, rest) in [
        ("127.0.0.1", format!("sslmode=verify-ca&{believed}")),
        ("127.0.0.1", "sslmode=require".to_owned()),
        ("localhost", "sslmode=prefer".to_owned()),
    ] {
        until_none();
        let store = open(&url(host, &rest), Durability::Full).unwrap();
        assert_eq!(head(&store, "p").unwrap().version, 1, "{rest}");
        assert_eq!(database.sql(encrypted), ["1"], "{rest}");
    }
    let wrong_host = refused(&url("127.0.0.1", &format!("sslmode=verify-full&{believed}")));
    assert!(wrong_host.contains("certificate") && wrong_host.contains("127.0.0.1"), "{wrong_host}");
    let unknown = refused(&url("localhost", "sslmode=verify-full"));
    assert!(unknown.contains("certificate"), "{unknown}");
    let missing = refused(&url("localhost", "sslmode=verify-full&sslrootcert=/nowhere/ca.pem"));
    assert!(missing.contains("/nowhere/ca.pem"), "{missing}");
    std::fs::remove_file(readable).unwrap();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn whoever_cannot_be_reached_is_named_without_the_password() {
    let database = PostgresDatabase::new();
    let with = |change: &str| database.url().replace("postgres@", change);
    let nobody = refused(&with("nobody:s3cret@"));
    assert!(nobody.contains("user nobody") && nobody.contains("does not exist"), "{nobody}");
    let plain = refused(&with("postgres:s3cret@").replace("sslmode=disable", "sslmode=require"));
    assert!(plain.contains("does not support TLS"), "{plain}");
    let (start, _) = database.url().split_once("/t").unwrap();
    let none = refused(&format!("{}/none?sslmode=disable", start.replace("postgres@", "postgres:s3cret@")));
    assert!(none.contains("database \"none\" does not exist"), "{none}");
    let silent = refused("postgres://ada:s3cret@127.0.0.1:1/plans");
    assert!(
        silent.contains("PostgreSQL at 127.0.0.1:1 (database plans, user ada) does not answer"),
        "{silent}"
    );
    let typo = refused("postgress://ada:s3cret@127.0.0.1/plans");
    assert!(typo.contains("names no store"), "{typo}");
    for error in [nobody, plain, none, silent, typo] {
        assert!(!error.contains("s3cret"), "{error}");
    }
    let store = PostgresStore::open(&with("postgres:s3cret@"), Durability::Full).unwrap();
    assert_eq!(store.place().location, database.url());
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_role_that_may_not_change_tables_does_all_work_and_the_owner_migrates() {
    let database = PostgresDatabase::new();
    let role = format!("data_{}", std::process::id());
    let url = database.url().replace("postgres@", &format!("{role}@"));
    database.sql(&format!("CREATE ROLE {role} LOGIN"));
    database.sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    let empty = refused(&url);
    assert!(
        empty.contains("permission denied") && empty.contains("only the owner of the tables can create"),
        "{empty}"
    );
    drop(plans_at(database.url()));
    database.sql(&format!(
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role};
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}"
    ));
    let plans = plans_at(&url);
    create_small(&plans, "p");
    write(&plans, "p", add("second")).unwrap();
    let mut watch = plans.watch().unwrap();
    write(&plans, "p", Command::Activate).unwrap();
    assert!(watch.wait(PATIENCE).unwrap());
    let leased = WriteRequest { lease_seconds: Some(60), ..request("p", vec![start("first")]) };
    plans.write(leased).unwrap();
    create_small(&plans, "q");
    plans.purge(&plan("q"), &ada()).unwrap();
    assert_eq!(now(&plans_at(&url), "p").version(), 4);
    drop((plans, watch));
    database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn schemas_of_one_database_are_stores_of_their_own() {
    let place = Place::postgres();
    let at = |schema: &str| format!("{}&options=-csearch_path%3D{schema}", place.location);
    let (team, other) = (plans_at(&at("team")), plans_at(&at("other")));
    create_small(&team, "p");
    create_small(&other, "p");
    write(&team, "p", add("second")).unwrap();
    assert_eq!((now(&team, "p").version(), now(&other, "p").version()), (2, 1));
    assert_eq!(now(&plans_at(&at("team")), "p").version(), 2);
    let tables =
        "SELECT count(*) FROM pg_tables WHERE tablename = 'waypost_log' AND schemaname IN ('team', 'other')";
    assert_eq!(place.database().sql(tables), ["2"]);
    let mut watch = other.watch().unwrap();
    write(&other, "p", add("second")).unwrap();
    assert!(watch.wait(PATIENCE).unwrap());
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_clock_of_the_database_decides() {
    let place = Place::postgres();
    place.database().sql(
        "CREATE SCHEMA clocks; CREATE FUNCTION clocks.clock_timestamp() RETURNS timestamptz LANGUAGE sql
         AS $$ SELECT '2001-02-03 04:05:06Z'::timestamptz $$",
    );
    let url = format!("{}&options=-csearch_path%3Dpublic,clocks,pg_catalog", place.location);
    let plans = plans_at(&url);
    create_small(&plans, "p");
    let at = plans.history(&plan("p"), 0, 1).unwrap()[0].at;
    assert!(at.to_string().starts_with("2001-02-03T04:05:06"), "{at}");
    let seen = look(plans.store(), |read| Ok(read.now()));
    assert!(seen.to_string().starts_with("2001-02-03T04:05:06"), "{seen}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_database_that_a_newer_waypost_wrote_is_left_alone() {
    let place = Place::postgres();
    let plans = place.plans();
    create_small(&plans, "p");
    place.database().sql("UPDATE waypost_control SET schema = 99; UPDATE waypost_store SET readable_by = 99");
    let known = PostgresStore::schema_of(&place.location).unwrap();
    assert_eq!(known, Some(99));
    let error = open(&place.location, Durability::Full).err().unwrap();
    assert!(matches!(error, StoreError::TooNew { found: 99, .. }), "{error}");
    // Who had it open before does not write into it either.
    let error = write(&plans, "p", add("a")).unwrap_err();
    assert!(matches!(error, WriteError::Store(StoreError::TooNew { found: 99, .. })), "{error}");
    assert_eq!(place.database().sql("SELECT count(*) FROM waypost_log"), ["1"]);
    assert_eq!(PostgresStore::schema_of(PostgresDatabase::new().url()).unwrap(), None);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_database_of_a_newer_waypost_that_allows_it_is_read_and_running_processes_finish() {
    let place = Place::postgres();
    let running = place.plans();
    create_small(&running, "p");
    place.database().sql("UPDATE waypost_control SET schema = 99");
    let plans = place.plans();
    assert_eq!(now(&plans, "p").version(), 1);
    let refused = write(&plans, "p", add("a")).unwrap_err();
    assert!(matches!(refused, WriteError::Store(StoreError::TooNew { found: 99, .. })), "{refused}");
    assert_eq!(look(running.store(), |read| Ok(read.store_state()?.newer_schema)), Some(99));
    assert_eq!(write(&running, "p", add("a")).unwrap().version, 2);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn damaged_rows_are_named_and_left_alone() {
    let place = Place::postgres();
    let plans = place.plans();
    create_small(&plans, "p");
    create_small(&plans, "q");
    write(&plans, "p", add("a")).unwrap();
    place.database().sql("UPDATE waypost_log SET events = '[{' WHERE (plan, version) = (1, 2)");
    let fresh = place.plans();
    let error = fresh.with_plan(&plan("p"), Plan::version).unwrap_err().to_string();
    assert!(error.starts_with("version 2 of plan p is damaged"), "{error}");
    assert!(matches!(write(&fresh, "p", add("b")), Err(WriteError::Store(StoreError::Corrupt { .. }))));
    assert_eq!(write(&fresh, "q", add("b")).unwrap().version, 2, "other plans go on");
    assert_eq!(list(&fresh, &everything()), ["q", "p"], "and all are listed");
    place.database().sql("UPDATE waypost_plans SET phase = 'odd' WHERE id = 'q'");
    let error = place.plans().heads(&everything()).unwrap_err().to_string();
    assert!(error.starts_with("the row of plan q is damaged"), "{error}");
    assert_eq!(look(plans.store(), |read| Ok(read.store_state()?.latest)), 4);
    place.database().sql("DELETE FROM waypost_log WHERE (plan, version) = (2, 1)");
    let wrong = plans.store().check().unwrap();
    assert!(
        wrong.len() == 1 && wrong[0].contains("1 of the latest numbers of the log are missing"),
        "{wrong:?}"
    );
    place.database().sql("DELETE FROM waypost_order WHERE sequence = 4");
    let wrong = plans.store().check().unwrap();
    assert!(wrong[0].contains("the log ends at number 3, and waypost_control says 4"), "{wrong:?}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn signs_that_the_database_cannot_hold_come_back() {
    let place = Place::postgres();
    let plans = place.plans();
    let mut draft = plan_of([task("first", &[])]);
    draft.spec.title = "a\0b".to_owned();
    let new = NewPlan { id: Some(plan("p")), by: ada(), draft, approval_required: None };
    match plans.create(new) {
        Ok(_) => {
            let fresh = place.plans();
            assert_eq!(now(&fresh, "p").spec().title, "a\0b");
            assert_eq!(head(fresh.store(), "p").unwrap().title, "a\0b");
            assert_eq!(fresh.doctor(false).unwrap(), []);
            let query = waypost_store::Query { text: Some("A\0".to_owned()), ..everything() };
            assert_eq!(list(&fresh, &query), ["p"]);
        }
        Err(error) => panic!("{error}"),
    }
    let by_plan = LogFilter { plan: Some(plan("p")), ..LogFilter::default() };
    assert_eq!(plans.log(0, &by_plan, 10).unwrap().versions.len(), 1);
}
