//! Waiting for writes of others: none is missed, nothing else wakes, and a busy writer does not wake too often.

use std::time::{Duration, Instant};

use waypost_store::{WATCH_PAUSE, WriteRequest};

use crate::kit::*;
use crate::place::Place;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a test waits for what must not come.
const A_MOMENT: Duration = Duration::from_millis(60);

pub(super) fn a_write_by_another_wakes(place: &Place) {
    let (plans, other) = (place.plans(), place.plans());
    let mut watch = plans.watch().unwrap();
    assert!(!watch.wait(Duration::ZERO).unwrap(), "nothing was written yet");
    create_small(&other, "p");
    assert!(watch.wait(PATIENCE).unwrap(), "what was written before the wait counts");
    std::thread::scope(|scope| {
        scope.spawn(|| write(&other, "p", add("second")).unwrap());
        while now(&plans, "p").version() < 2 {
            assert!(watch.wait(PATIENCE).unwrap(), "and what is written during it");
        }
    });
}

pub(super) fn no_write_is_missed_between_reading_and_waiting(place: &Place) {
    const WRITES: u64 = 150;
    let (plans, other) = (place.plans(), place.plans());
    create_small(&plans, "p");
    let mut watch = plans.watch().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..WRITES {
                write(&other, "p", add(&format!("t{number}"))).unwrap();
                if number % 10 == 0 {
                    // Let the reader come to its wait.
                    std::thread::yield_now();
                }
            }
        });
        let mut wakes = 0;
        while now(&plans, "p").version() < 1 + WRITES {
            assert!(watch.wait(PATIENCE).unwrap(), "a write was missed after {wakes} wakes");
            wakes += 1;
        }
    });
}

pub(super) fn an_idle_store_wakes_nobody_nor_do_readers_and_renewed_leases(place: &Place) {
    let (plans, other) = (place.plans(), place.plans());
    create_small(&plans, "p");
    let asked = WriteRequest { lease_seconds: Some(60), ..request("p", vec![start("first")]) };
    plans.write(asked).unwrap();
    let mut watch = plans.watch().unwrap();
    assert!(!watch.wait(A_MOMENT).unwrap(), "the store is idle");
    assert_eq!(now(&other, "p").version(), 2);
    let mut renewed = false;
    other
        .store()
        .write(&mut |transaction| {
            let until = transaction.now().plus_seconds(60);
            renewed = transaction.renew_lease(&plan("p"), "first", 1, until)?;
            Ok(())
        })
        .unwrap();
    refusal(write(&other, "p", start("first")));
    assert!(renewed && !watch.wait(A_MOMENT).unwrap(), "no version was written");
    write(&other, "p", add("second")).unwrap();
    assert!(watch.wait(PATIENCE).unwrap());
}

pub(super) fn a_busy_writer_does_not_wake_too_often(place: &Place) {
    let (plans, other) = (place.plans(), place.plans());
    create_small(&plans, "p");
    let mut watch = plans.watch().unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 0..200 {
                write(&other, "p", add(&format!("t{number}"))).unwrap();
            }
        });
        let (began, mut wakes) = (Instant::now(), 0u32);
        while !writer.is_finished() {
            wakes += u32::from(watch.wait(WATCH_PAUSE).unwrap());
        }
        let most = began.elapsed().as_millis() / WATCH_PAUSE.as_millis() + 2;
        assert!(wakes >= 1 && u128::from(wakes) <= most, "{wakes} wakes, at most {most}");
    });
}
