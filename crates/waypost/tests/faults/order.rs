//! Slow writers among fast ones, and readers with cursors who are to miss none of them.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use waypost_testkit::SeededRng;

use crate::bystanders::{Goal, Reader, Writer};
use crate::ground::{Ground, Record, Signal, pass, patience, until};

/// How long they write.
const WRITING: Duration = Duration::from_secs(6);
/// By how much each piece of a slow writer's way is delayed, in both directions.
const SLOWNESS: Duration = Duration::from_millis(25);
/// Of the writers, those with these names are slow.
const SLOW: [&str; 2] = ["slow1", "slow2"];
const FAST: [&str; 2] = ["fast1", "fast2"];

/// Returns how many writes of slow writers were overtaken by a write of a fast one.
pub(crate) fn slow_among_fast(ground: &Ground) -> usize {
    for plan in ["notes", "others"] {
        ground.must(&["new", plan, "--id", plan]);
    }
    ground.proxies()[0].slow(SLOWNESS);
    let record = Record::new(&ground.record("writes.jsonl"));
    let goal: Goal = Arc::new(Mutex::new(None));
    let (calm, over) = (Signal::default(), Signal::default());
    std::thread::scope(|scope| {
        let writers = SLOW.into_iter().chain(FAST).enumerate().map(|(number, name)| {
            let plans = vec!["notes".to_owned(), "others".to_owned()];
            let proxy = name.starts_with("slow").then_some(0);
            let (name, dice) = (name.to_owned(), SeededRng::new(number as u64));
            let mut writer = Writer { ground, name, proxy, plans, record: &record, dice, killed: 0 };
            let calm = &calm;
            scope.spawn(move || writer.run(calm, usize::MAX))
        });
        let writers: Vec<_> = writers.collect();
        let readers = [
            ("whole", Vec::new(), None),
            ("kinds", vec!["tasks_added"], None),
            ("slow", Vec::new(), Some(0)),
        ];
        let readers = readers.map(|(name, kinds, proxy)| {
            let mut reader = Reader { ground, name: name.to_owned(), proxy, kinds, dice: SeededRng::new(9) };
            let (goal, over) = (Arc::clone(&goal), &over);
            scope.spawn(move || reader.run(&goal, over))
        });
        pass(WRITING);
        calm.give();
        for writer in writers {
            writer.join().unwrap();
        }
        *goal.lock().unwrap() = Some(ground.dump());
        let there = || readers.iter().all(|reader| reader.is_finished());
        let began = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until(patience(), "the end of all readers", there)
        }));
        over.give();
        began.unwrap();
    });
    ground.judge();
    overtaken(&fs::read_to_string(ground.record("writes.jsonl")).unwrap())
}

/// Slow writes that were asked for before, and acknowledged after, a fast one.
fn overtaken(writes: &str) -> usize {
    let lines: Vec<Value> = writes.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut asked: HashMap<&str, usize> = HashMap::new();
    let mut fast: Vec<(usize, usize)> = Vec::new();
    let mut count = 0;
    for (place, line) in lines.iter().enumerate() {
        let token = line["token"].as_str().unwrap();
        if line["what"] == "asked" {
            asked.insert(token, place);
        } else if token.starts_with("token-fast") {
            fast.push((asked[token], place));
        } else {
            count += usize::from(fast.iter().any(|(from, _)| *from > asked[token]));
        }
    }
    count
}
