//! Many processes on one store, and processes that are killed in the middle of a write.
//!
//! A test becomes many processes by running its own binary again: [`a_process_of_its_own`] is what they do.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use waypost_store::{Durability, PlanStore, StoreError, WriteError, open};
use waypost_testkit::SeededRng;

use crate::kit::*;
use crate::place::Place;

/// What a child process is to do: where, in whose name, and how often.
const JOB: &str = "WAYPOST_STORE_TEST_JOB";
/// How long a test waits for its processes before it gives up.
const PATIENCE: Duration = Duration::from_secs(120);

/// No test of its own: the others run it in processes of theirs, with a job.
#[test]
fn a_process_of_its_own() {
    let Ok(job) = std::env::var(JOB) else { return };
    let (count, rest) = job.split_once(' ').unwrap();
    let (name, location) = rest.split_once(' ').unwrap();
    let plans = PlanStore::new(open(location, Durability::Full).unwrap());
    let mut stdout = std::io::stdout();
    for number in 0..count.parse::<usize>().unwrap() {
        let task = format!("{name}-{number}");
        let mut written = write(&plans, "p", add(&task));
        // A machine that is busy enough lets one of many wait for longer than anybody waits.
        while let Err(WriteError::Store(StoreError::Busy)) = written {
            written = write(&plans, "p", add(&task));
        }
        let version = written.unwrap().version;
        writeln!(stdout, "\nwritten {version} {task}").unwrap();
        stdout.flush().unwrap();
    }
}

fn spawn(place: &Place, name: &str, count: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::a_process_of_its_own", "--nocapture", "--test-threads=1"])
        .env(JOB, format!("{count} {name} {}", place.location))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The version and the task of a line that acknowledges a write.
fn acknowledged(line: &str) -> Option<(u64, String)> {
    let (version, task) = line.strip_prefix("written ")?.split_once(' ')?;
    Some((version.parse().ok()?, task.to_owned()))
}

/// Exactly these versions were acknowledged by somebody; each must be there, and hold that task.
fn check_acknowledged(place: &Place, written: &BTreeMap<u64, String>) {
    let plans = place.plans();
    assert_eq!(plans.store().check().unwrap(), Vec::<String>::new(), "{}", place.location);
    assert_eq!(plans.doctor(false).unwrap(), [], "{}", place.location);
    let current = now(&plans, "p");
    let history = plans.history(&plan("p"), 0, usize::MAX >> 1).unwrap();
    assert!(history.iter().map(|entry| entry.version).eq(1..=current.version()), "versions have no gaps");
    assert!(log(&plans).iter().map(|entry| entry.sequence).eq(1..=current.version()), "nor has the log");
    for (version, task) in written {
        assert!(*version <= current.version(), "version {version} was acknowledged and is lost");
        let events = serde_json::to_string(&history[*version as usize - 1].events).unwrap();
        assert!(
            events.contains(&format!("{task:?}")),
            "version {version} was acknowledged with {task}: {events}"
        );
        assert!(current.task(task).is_some());
    }
}

fn sixty_four_processes_lose_nothing(place: &Place) {
    const EACH: usize = 4;
    create_small(&place.plans(), "p");
    let children: Vec<Child> = (0..64).map(|number| spawn(place, &format!("c{number}"), EACH)).collect();
    let mut written = BTreeMap::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        for (version, task) in text.lines().filter_map(acknowledged) {
            assert_eq!(written.insert(version, task), None, "version {version} was given twice");
        }
    }
    assert_eq!(written.len(), 64 * EACH);
    check_acknowledged(place, &written);
    assert_eq!(now(&place.plans(), "p").version() as usize, 1 + 64 * EACH);
}

#[test]
fn sixty_four_processes_on_one_sqlite_file_lose_nothing() {
    sixty_four_processes_lose_nothing(&Place::sqlite());
}

#[test]
fn sixty_four_processes_on_one_folder_lose_nothing() {
    sixty_four_processes_lose_nothing(&Place::file());
}

#[test]
#[ignore = "needs PostgreSQL"]
fn sixty_four_processes_on_one_postgres_database_lose_nothing() {
    sixty_four_processes_lose_nothing(&Place::postgres());
}

/// Whoever watches hears of everything that another process writes, also of what it wrote last before it was killed.
fn the_writes_of_another_process_wake(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    let mut watch = plans.watch().unwrap();
    let mut child = spawn(place, "c", 20);
    while now(&plans, "p").version() < 21 {
        assert!(watch.wait(PATIENCE).unwrap(), "a write was missed");
    }
    assert!(child.wait().unwrap().success());
    let mut child = spawn(place, "d", 100_000);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let last = lines.by_ref().filter_map(|line| acknowledged(&line)).nth(20).unwrap().0;
    child.kill().unwrap();
    child.wait().unwrap();
    let latest = lines.filter_map(|line| acknowledged(&line)).last().map_or(last, |(version, _)| version);
    while now(&plans, "p").version() < latest {
        assert!(watch.wait(PATIENCE).unwrap(), "the last write was missed");
    }
}

#[test]
fn the_writes_of_another_process_to_a_sqlite_file_wake() {
    the_writes_of_another_process_wake(&Place::sqlite());
}

#[test]
fn the_writes_of_another_process_to_a_folder_wake() {
    the_writes_of_another_process_wake(&Place::file());
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_writes_of_another_process_to_a_postgres_database_wake() {
    the_writes_of_another_process_wake(&Place::postgres());
}

/// Processes open a store at the same moment that none of them has made.
fn a_store_can_be_made_by_many_at_once(place: &Place) {
    // Without a plan they fail, but only after all have opened, and perhaps made, the store.
    let children: Vec<Child> = (0..16).map(|number| spawn(place, &format!("c{number}"), 0)).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let plans = place.plans();
    assert_eq!(number(&plans, &create_small(&plans, "p")), 1);
    assert_eq!(plans.doctor(false).unwrap(), []);
}

#[test]
fn a_sqlite_file_can_be_made_by_many_at_once() {
    a_store_can_be_made_by_many_at_once(&Place::sqlite());
}

#[test]
fn a_folder_can_be_made_by_many_at_once() {
    a_store_can_be_made_by_many_at_once(&Place::file());
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_postgres_database_can_be_filled_by_many_at_once() {
    a_store_can_be_made_by_many_at_once(&Place::postgres());
}

/// Four writers at a time, each killed after some number of acknowledged writes: in the middle of the next one.
fn killed_writers_lose_nothing_that_they_acknowledged(place: &Place, seed: u64) {
    const WRITERS: usize = 4;
    let mut dice = SeededRng::new(seed);
    create_small(&place.plans(), "p");
    let mut written = BTreeMap::new();
    for round in 0..6 {
        let (tell, told) = mpsc::channel();
        let mut children = Vec::new();
        for writer in 0..WRITERS {
            let mut child = spawn(place, &format!("r{round}w{writer}"), 100_000);
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let tell = tell.clone();
            let reader = std::thread::spawn(move || {
                for line in lines.map_while(Result::ok) {
                    if let Some(write) = acknowledged(&line) {
                        tell.send((writer, write)).unwrap();
                    }
                }
            });
            children.push((child, reader, 1 + dice.below(25)));
        }
        drop(tell);
        let mut counts = [0; WRITERS];
        let mut alive = WRITERS;
        while alive > 0 {
            let (writer, (version, task)) = told.recv_timeout(PATIENCE).expect("the writers write");
            assert_eq!(written.insert(version, task), None, "version {version} was given twice");
            counts[writer] += 1;
            if counts[writer] == children[writer].2 {
                // On Unix this is SIGKILL: the process has no say in it.
                children[writer].0.kill().unwrap();
                alive -= 1;
            }
        }
        for (mut child, reader, _) in children {
            child.wait().unwrap();
            reader.join().unwrap();
        }
        // What they had acknowledged before the signal reached them counts as well.
        for (_, (version, task)) in told.try_iter() {
            assert_eq!(written.insert(version, task), None, "version {version} was given twice");
        }
        check_acknowledged(place, &written);
        let next = write(&place.plans(), "p", add(&format!("after-{round}"))).unwrap();
        written.insert(next.version, format!("after-{round}"));
    }
    assert!(written.len() > 6 * WRITERS);
}

#[test]
fn killed_writers_on_a_sqlite_file_lose_nothing_that_they_acknowledged() {
    killed_writers_lose_nothing_that_they_acknowledged(&Place::sqlite(), 1);
}

#[test]
fn killed_writers_on_a_folder_lose_nothing_that_they_acknowledged() {
    killed_writers_lose_nothing_that_they_acknowledged(&Place::file(), 2);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn killed_writers_on_a_postgres_database_lose_nothing_that_they_acknowledged() {
    killed_writers_lose_nothing_that_they_acknowledged(&Place::postgres(), 3);
}

/// The store in which a child process is to hold the lock for writing.
const HOLD: &str = "WAYPOST_STORE_TEST_HOLD";

/// No test of its own: a process that is in the middle of a write, for as long as it lives.
#[test]
fn a_process_in_the_middle_of_a_write() {
    let Ok(location) = std::env::var(HOLD) else { return };
    let store = open(&location, Durability::Full).unwrap();
    let _never = store.write(&mut |_| {
        let mut stdout = std::io::stdout();
        writeln!(stdout, "\nholding").unwrap();
        stdout.flush().unwrap();
        loop {
            std::thread::park();
        }
    });
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn a_writer_behind_a_stopped_process_is_told_which(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::a_process_in_the_middle_of_a_write", "--nocapture", "--test-threads=1"])
        .env(HOLD, &place.location)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let holds = lines.map_while(Result::ok).any(|line| line == "holding");
    assert!(holds, "the child never wrote");
    signal(&child, Signal::STOP);
    let refused = write(&plans, "p", add("late"));
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    match refused {
        Err(WriteError::Store(StoreError::HolderStopped { process, .. })) => assert_eq!(process, child.id()),
        other => panic!("{}: {other:?}", place.location),
    }
    // It is gone, and with it the lock.
    write(&place.plans(), "p", add("next")).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_writer_behind_a_stopped_process_is_told_which_one_it_is() {
    for place in [Place::sqlite(), Place::file()] {
        a_writer_behind_a_stopped_process_is_told_which(&place);
    }
}
