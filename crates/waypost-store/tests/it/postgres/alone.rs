//! What one process of all has, when processes die or are stopped for too long.

use std::time::Instant;

use super::PATIENCE;
use crate::place::Place;

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what} does not come about");
        std::thread::yield_now();
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn whoever_was_not_heard_of_for_too_long_loses_what_another_takes_and_learns_of_it() {
    let place = Place::postgres();
    let (one, other) = (place.store(), place.store());
    let held = one.try_lock("relay").unwrap().unwrap();
    assert!(other.try_lock("relay").unwrap().is_none());
    place.database().sql("UPDATE waypost_held SET until = 1");
    let theirs = other.try_lock("relay").unwrap().unwrap();
    until("that the first learns of it", || !held.holds());
    assert!(theirs.holds());
    drop(theirs);
    let rows = "SELECT count(*) FROM waypost_held";
    assert_eq!(place.database().sql(rows), ["0"]);
    assert!(!held.holds(), "what another has had is not taken back without asking");
    let again = other.try_lock("relay").unwrap().unwrap();
    drop(held);
    assert_eq!(place.database().sql(rows), ["1"], "whoever lost it gives nothing back");
    assert!(again.holds());
}

#[test]
#[ignore = "needs PostgreSQL"]
fn whoever_lives_says_so_before_its_time_is_over_and_the_dead_are_replaced() {
    let place = Place::postgres();
    let (one, other) = (place.store(), place.store());
    let held = one.try_lock("relay").unwrap().unwrap();
    let end = || place.database().sql("SELECT until FROM waypost_held")[0].parse::<i64>().unwrap();
    let first = end();
    until("that it is told again", || end() > first);
    assert!(held.holds() && other.try_lock("relay").unwrap().is_none());
    drop(held);
    place.database().sql("INSERT INTO waypost_held VALUES ('relay', 'somebody dead', 1)");
    assert!(other.try_lock("relay").unwrap().unwrap().holds());
}
