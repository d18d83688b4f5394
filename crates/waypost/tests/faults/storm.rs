//! A storm: plans are submitted, workers work, others write and read, all of them suffer, and at the end the judge looks.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use waypost_testkit::SeededRng;

use crate::bystanders::{Goal, Reader, Writer};
use crate::ground::{Ground, Record, Signal, Store, patience, until};
use crate::nemesis::Nemesis;
use crate::workload;

/// How long it may take until the next task ends once the faults are over.
const STANDSTILL: Duration = Duration::from_secs(180);
/// A plan that only bystanders write to.
const NOTES: &str = "notes";
/// What the reader of single events wants.
const KINDS: [&str; 4] = ["task_started", "task_done", "task_failed", "plan_revised"];

/// How much of everything.
pub(crate) struct Storm {
    pub(crate) workers: usize,
    pub(crate) plans: usize,
    /// Of each plan.
    pub(crate) tasks: usize,
    /// Each has one fault of every kind.
    pub(crate) rounds: usize,
}

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// What the plans and the order of the faults follow from.
pub(crate) fn seed() -> u64 {
    number("WAYPOST_SEED").unwrap_or(7)
}

/// The rounds that a long storm has.
pub(crate) fn rounds() -> Option<usize> {
    number("WAYPOST_STORM_ROUNDS").map(|rounds| rounds as usize)
}

impl Storm {
    /// Returns what happened, in words and figures.
    pub(crate) fn rage(mut self, ground: &Ground, seed: u64) -> String {
        self.rounds = rounds().unwrap_or(self.rounds);
        self.tasks = number("WAYPOST_STORM_TASKS").map_or(self.tasks, |tasks| tasks as usize);
        let mut dice = SeededRng::new(seed);
        let ids = self.write_plans(ground, &mut dice);
        ground.must(&["new", "Notes", "--id", NOTES]);

        let writes = Record::new(&ground.record("writes.jsonl"));
        let goal: Goal = Arc::new(Mutex::new(None));
        let (calm, over) = (Signal::default(), Signal::default());
        let began = Instant::now();
        let mut said = String::new();
        std::thread::scope(|scope| {
            // Whatever fails here, the bystanders have to end.
            let _end = OnDrop(|| {
                calm.give();
                over.give();
            });
            let mut nemesis = Nemesis::new(ground, self.workers, SeededRng::new(dice.bits()));
            submit(ground, &ids[..1]);
            let (behind, writers) = (self.workers, ["ada", "bea"]);
            let writers = writers.map(|name| {
                let plans = vec![NOTES.to_owned(), ids[0].clone(), ids[ids.len() - 1].clone()];
                let dice = SeededRng::new(dice.bits());
                let proxy = Some(behind);
                let name = name.to_owned();
                let mut writer = Writer { ground, name, proxy, plans, record: &writes, dice, killed: 20 };
                let calm = &calm;
                scope.spawn(move || writer.run(calm, usize::MAX))
            });
            let readers = [("first", Vec::new()), ("second", Vec::new()), ("third", KINDS.to_vec())];
            let readers = readers.map(|(name, kinds)| {
                let dice = SeededRng::new(dice.bits());
                let (name, proxy) = (name.to_owned(), Some(behind + 1));
                let mut reader = Reader { ground, name, proxy, kinds, dice };
                let (goal, over) = (Arc::clone(&goal), &over);
                scope.spawn(move || reader.run(&goal, over))
            });

            self.strike(ground, &mut nemesis, &ids);
            let struck = began.elapsed();
            settle(ground, &mut nemesis, &ids);
            calm.give();
            let killed: usize = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
            nemesis.finish();

            *goal.lock().unwrap() = Some(ground.dump());
            until(patience(), "the end of all readers", || readers.iter().all(|reader| reader.is_finished()));
            let deaths: usize = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
            assert!(deaths > 0 && killed > 0, "{deaths} readers and {killed} writers were killed");
            for (fault, times) in &nemesis.happened {
                assert!(*times > 0, "{fault:?} never happened to anybody");
            }
            said = format!(
                "faults: {:?}, readers killed {deaths}, writers killed {killed}, workers that gave up {}; {struck:.1?} of faults",
                nemesis.happened, nemesis.gave_up
            );
        });
        let figures = self.judge(ground, &ids);
        format!("{said}, {:.1?} in all\n{figures}", began.elapsed())
    }

    fn write_plans(&self, ground: &Ground, dice: &mut SeededRng) -> Vec<String> {
        let write = |number: usize| {
            let id = format!("p{number}");
            let plan = workload::plan(&id, self.tasks, dice);
            fs::write(ground.record(&format!("plans/{id}.json")), plan.to_string()).unwrap();
            id
        };
        (0..self.plans).map(write).collect()
    }

    /// All rounds of faults; the other plans come in between, so that there is work for as long as there are faults.
    fn strike(&self, ground: &Ground, nemesis: &mut Nemesis<'_>, ids: &[String]) {
        std::thread::scope(|scope| {
            let (mut left, faults) = (ids[1..].iter(), nemesis.faults() * self.rounds);
            let mut struck = 0;
            for _ in 0..self.rounds {
                nemesis.round(|| {
                    struck += 1;
                    let due = (ids.len() - 1) * (struck + 2) / faults;
                    while left.len() > 0 && ids.len() - 1 - left.len() < due {
                        let id = left.next().unwrap().clone();
                        // Beside the faults: it may have to wait until one of them is over.
                        scope.spawn(move || submit(ground, &[id]));
                    }
                });
            }
            nemesis.relent();
            submit(ground, left.as_slice());
        });
    }

    fn judge(&self, ground: &Ground, ids: &[String]) -> Value {
        let figures = judged(ground, ids);
        let figure = |name: &str| figures[name].as_u64().unwrap_or(0);
        assert!(figure("lost") > 0, "no worker lost anything: {figures}");
        assert!(figure("acknowledged writes") > 0, "nothing was acknowledged: {figures}");
        assert!(figure("done") as usize > self.plans * self.tasks * 6 / 10, "too little was done: {figures}");
        if matches!(ground.store, Store::Postgres { .. }) {
            assert!(figure("unanswered writes") > 0, "every write was answered: {figures}");
        }
        figures
    }
}

pub(crate) fn submit(ground: &Ground, ids: &[String]) {
    for id in ids {
        let file = ground.record(&format!("plans/{id}.json"));
        let folder = ground.workspace(0);
        let words = ["-C", folder.to_str().unwrap(), "submit", file.to_str().unwrap()];
        // The same file again is the same plan, so it may be tried again while the server is away.
        until(patience(), "the submission of a plan", || ground.ask(&words).status.success());
    }
}

/// Waits until every plan has ended. A slow machine may take long, but something has to end all the time.
pub(crate) fn settle(ground: &Ground, nemesis: &mut Nemesis<'_>, ids: &[String]) {
    nemesis.relent();
    let (mut known, mut since) = (Vec::new(), Instant::now());
    loop {
        let now: Vec<Value> = ids.iter().map(|id| shown(ground, id)).collect();
        if now.iter().all(|plan| matches!(plan["phase"].as_str(), Some("completed" | "failed"))) {
            return;
        }
        let ended: Vec<Value> = now.iter().map(|plan| ended_tasks(&plan["counts"])).collect();
        if ended != known {
            (known, since) = (ended, Instant::now());
        }
        if since.elapsed() > STANDSTILL {
            panic!("no task ended within {STANDSTILL:?} after the faults: {now:#?}");
        }
        nemesis.wait(Duration::from_millis(500));
    }
}

fn shown(ground: &Ground, id: &str) -> Value {
    serde_json::from_str(&ground.must(&["show", id, "--limit", "1"])).unwrap()
}

fn ended_tasks(counts: &Value) -> Value {
    ["done", "failed", "skipped", "cancelled"].map(|name| counts[name].clone()).to_vec().into()
}

/// How the plans ended is recorded, and all of the record is judged.
pub(crate) fn judged(ground: &Ground, ids: &[String]) -> Value {
    for id in ids {
        let file = ground.record(&format!("final/{id}.json"));
        ground.must(&["export", id, "--format", "native", "--output", file.to_str().unwrap()]);
    }
    ground.must(&["doctor"]);
    ground.judge()
}

/// Runs something at the end of a scope, also when it panics.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
