//! Random plans, random endings, random faults: whatever happens, every task ends, nothing that was done is done again,
//! no lock is held by two, and a seed repeats its failure.

use waypost_core::{Command, Draft, Phase, Retry, Status, Timestamp};
use waypost_engine::{Ending, Loss, Rest};
use waypost_testkit::{Dice, id, plan_of};

use crate::world::{Fate, World, config, job};

/// Seeds that one test tries. `WAYPOST_SEEDS` makes it more, `WAYPOST_SEED` repeats one.
pub(crate) fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("WAYPOST_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("WAYPOST_SEEDS").unwrap_or(1_500)).collect(),
    }
}

fn random_plan(dice: &mut Dice, short: bool) -> Draft {
    let count = 1 + dice.below(if short { 80 } else { 14 });
    plan_of((0..count).map(|number| {
        let mut before: Vec<String> = Vec::new();
        for _ in 0..dice.below(3).min(number) {
            let name = format!("t{}", dice.below(number));
            if !before.contains(&name) {
                before.push(name);
            }
        }
        let mut keys: Vec<String> = Vec::new();
        for key in ["x", "y", "z"] {
            match dice.below(6) {
                0 => keys.push(key.to_owned()),
                1 => keys.push(format!("~{key}")),
                _ => {}
            }
        }
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut spec = job(&format!("t{number}"), &before, &keys);
        if dice.chance(30) {
            let attempts = 2 + dice.below(3) as u32;
            spec.retry = Some(Box::new(Retry { attempts, backoff_seconds: 1, backoff_seconds_max: 4 }));
        }
        if dice.chance(20) {
            spec.timeout_seconds = Some(5);
        }
        if dice.chance(15) {
            spec.work.as_mut().unwrap().executor = "noop".to_owned();
        }
        spec.priority = dice.below(3) as i32;
        spec
    }))
}

/// How much goes wrong, in percent of the steps.
#[derive(Clone, Copy)]
struct Faults {
    store: u64,
    crash: u64,
    people: u64,
    failure: u64,
    /// Whether tasks take next to no time, so that they are started ahead.
    short: bool,
}

fn run(seed: u64, faults: Faults) {
    let mut dice = Dice::new(seed);
    let mut bounds = config(1 + dice.below(4) as u32);
    bounds.lock_wait_seconds = dice.below(3) as u32;
    let draft = random_plan(&mut dice, faults.short);
    let mut world = World::new(bounds, draft);
    world.settle();
    for step in 0..2_000 {
        if world.truth.state().phase.is_finished() && world.programs.is_empty() {
            break;
        }
        // After a while nothing goes wrong any more, so that everything must come to its end.
        let calm = step > 400;
        if !calm && dice.chance(faults.store) {
            world.fate = *dice.pick(&[Fate::FailsBefore, Fate::FailsAfter]);
        }
        if !calm && dice.chance(faults.crash) {
            world.crash();
            world.settle();
        }
        if !calm && dice.chance(faults.people) {
            people(&mut world, &mut dice);
        }
        if calm && world.truth.state().phase == Phase::Paused {
            world.person(Command::Resume).unwrap();
        }
        if dice.chance(50) {
            world.look();
        }
        let running: Vec<String> = world.running().into_iter().map(str::to_owned).collect();
        if !running.is_empty() && dice.chance(70) {
            let task = dice.pick(&running).clone();
            let ending = match dice.below(100) as u64 {
                _ if calm => Ending::Done { result: None, output: None },
                chance if chance < faults.failure => Ending::Failed { error: "dice".to_owned() },
                chance if chance < faults.failure * 3 / 2 => Ending::TryAgain { error: "dice".to_owned() },
                _ => Ending::Done { result: None, output: None },
            };
            world.ends(&task, ending);
        }
        // A clock may jump, too.
        let seconds =
            if dice.chance(if faults.short { 1 } else { 2 }) { 3_600 } else { dice.below(3) as u64 };
        if faults.short && seconds < 3_600 && !calm {
            world.now = Timestamp::from_micros(world.now.as_micros() + 1_000 * seconds as i64);
            world.settle();
        } else {
            world.pass(seconds);
        }
    }
    world.look();
    world.settle();
    assert!(world.truth.state().phase.is_finished(), "seed {seed}: {:?}", world.truth.counts());
    assert!(world.programs.is_empty(), "seed {seed}: programs are left");
    assert_eq!(world.rest(), Rest::Over, "seed {seed}");
    assert_eq!(world.truth.counts().running, 0, "seed {seed}");
}

fn people(world: &mut World, dice: &mut Dice) {
    let tasks: Vec<String> = world.truth.tasks().map(|(task, _)| task.spec.id.to_string()).collect();
    let task = id(dice.pick(&tasks).as_str());
    let command = match dice.below(6) {
        0 => Command::Pause { reason: String::new() },
        1 | 2 => Command::Resume,
        3 => Command::CancelTask { task, reason: "dice".to_owned() },
        4 if world.truth.task(task.as_str()).unwrap().state.status == Status::Failed => {
            Command::RetryTask { task }
        }
        _ => {
            let name = format!("new{}", world.truth.len());
            let tasks = vec![job(&name, &[], &["x"])];
            Command::AddTasks { tasks, place: waypost_core::Where::Last }
        }
    };
    // Not everything can be asked at every moment.
    let _refused = world.person(command);
}

#[test]
fn every_plan_ends_without_faults() {
    for seed in seeds() {
        run(seed, Faults { store: 0, crash: 0, people: 0, failure: 0, short: false });
    }
}

#[test]
fn every_plan_ends_whatever_workers_and_people_do() {
    for seed in seeds() {
        run(seed, Faults { store: 0, crash: 0, people: 10, failure: 30, short: false });
    }
}

#[test]
fn every_plan_ends_whatever_the_store_does() {
    for seed in seeds() {
        run(seed, Faults { store: 30, crash: 0, people: 5, failure: 20, short: false });
    }
}

#[test]
fn every_plan_ends_however_often_the_run_is_killed() {
    for seed in seeds() {
        run(seed, Faults { store: 15, crash: 15, people: 5, failure: 15, short: false });
    }
}

#[test]
fn every_plan_of_short_tasks_ends_whatever_happens() {
    // These plans are larger, so fewer of them take as long.
    for seed in seeds().into_iter().step_by(8) {
        run(seed, Faults { store: 0, crash: 0, people: 0, failure: 0, short: true });
        run(seed, Faults { store: 10, crash: 3, people: 5, failure: 10, short: true });
    }
}

#[test]
fn expired_leases_return_and_fence_off_the_late() {
    for seed in seeds() {
        let mut dice = Dice::new(seed);
        let mut world = World::new(config(2), random_plan(&mut dice, false));
        world.settle();
        let late: Vec<_> = world.programs.keys().cloned().collect();
        world.crash();
        world.lose_all_others(Loss::Expired);
        world.settle();
        for key in late {
            // Whoever comes back late with an old number changes nothing.
            let outcome = waypost_core::Outcome::Done { result: None, output: None };
            let (task, attempt) = (key.task.clone(), Some(key.attempt));
            assert!(
                world.person(Command::FinishTask { task, attempt, outcome, retry: None }).is_err(),
                "seed {seed}"
            );
        }
    }
}
