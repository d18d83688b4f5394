//! Random plans, random endings, random faults: whatever happens, every task ends, nothing that was done is done again,
//! no lock is held by two, and a seed repeats its failure.

use waypost_core::{Command, Draft, Json, Phase, QuestionRequest, Retry, Status, Timestamp, Work};
use waypost_run::{AttemptOutcome, Idleness, Loss};
use waypost_testkit::{SeededRng, id, plan_of};

use crate::strangers::Strangers;
use crate::world::{Fate, World, checked, config, job};

/// Seeds that one test tries. `WAYPOST_SEEDS` makes it more, `WAYPOST_SEED` repeats one.
pub(crate) fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("WAYPOST_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("WAYPOST_SEEDS").unwrap_or(1_500)).collect(),
    }
}

fn random_plan(dice: &mut SeededRng, short: bool) -> Draft {
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
        if dice.chance(30) {
            let executor = (*dice.pick(&["look", "noop", "ask", "run"])).to_owned();
            spec.check = Some(Box::new(Work { executor, inputs: Json::empty_object(), shape: None }));
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
    /// Workers of other processes that take tasks, vanish and come back too late.
    strangers: u64,
    /// A clock that is set back by up to an hour.
    clock: u64,
    /// Whether tasks take next to no time, so that they are queued ahead.
    short: bool,
}

const NONE: Faults =
    Faults { store: 0, crash: 0, people: 0, failure: 0, strangers: 0, clock: 0, short: false };

/// Says how a failure can be repeated, wherever it was found.
struct Repeat(u64);

#[expect(clippy::print_stdout, reason = "whoever reads of the failure reads this, too")]
impl Drop for Repeat {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("WAYPOST_SEED={} repeats it", self.0);
        }
    }
}

/// Returns how many reports came too late.
fn run(seed: u64, faults: Faults) -> u32 {
    let _repeat = Repeat(seed);
    let mut strangers = Strangers::default();
    let mut dice = SeededRng::new(seed);
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
            strangers.crash(&mut world);
            world.settle();
        }
        if !calm && dice.chance(faults.strangers) {
            strangers.act(&mut world, &mut dice);
            world.settle();
        }
        if !calm && dice.chance(faults.clock) {
            let back = 1_000_000 * dice.below(3_600) as i64;
            world.now = Timestamp::from_micros(world.now.as_micros() - back);
            world.settle();
        }
        if step == 401 {
            world.look();
            world.settle();
            world.lose_all_others(Loss::Expired);
        }
        if !calm && dice.chance(faults.people) {
            people(&mut world, &mut dice);
        }
        let asking = world.truth.asking().next().map(|task| task.spec.id.clone());
        if let Some(task) = asking.filter(|_| calm || dice.chance(40)) {
            let answer = if calm || dice.chance(80) { "yes" } else { "not yet" };
            world.person(Command::AnswerQuestion { task, answer: answer.to_owned() }).unwrap();
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
            let has_check = world.truth.task(&task).is_some_and(|task| task.spec.check.is_some());
            let done = AttemptOutcome::Done { result: None, output: None };
            let ending = match dice.below(100) as u64 {
                // Work with a check ends with its evidence, or is reported first.
                _ if has_check && (calm || dice.chance(70)) => checked(calm || !dice.chance(faults.failure)),
                _ if calm => done,
                chance if chance < faults.failure => AttemptOutcome::Failed { error: "dice".to_owned() },
                chance if chance < faults.failure * 3 / 2 => {
                    AttemptOutcome::TryAgain { error: "dice".to_owned() }
                }
                chance if chance < faults.failure * 2 => AttemptOutcome::Asked(Box::new(QuestionRequest {
                    text: "dice?".to_owned(),
                    ..QuestionRequest::default()
                })),
                _ => done,
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
    assert_eq!(world.rest(), Idleness::Over, "seed {seed}");
    assert_eq!(world.truth.counts().in_progress(), 0, "seed {seed}");
    strangers.late
}

fn people(world: &mut World, dice: &mut SeededRng) {
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
            Command::AddTasks { tasks, place: waypost_core::Position::Last }
        }
    };
    // Not everything can be asked at every moment.
    let _refused = world.person(command);
}

#[test]
fn every_plan_ends_without_faults() {
    for seed in seeds() {
        run(seed, NONE);
    }
}

#[test]
fn every_plan_ends_whatever_workers_and_people_do() {
    for seed in seeds() {
        run(seed, Faults { people: 10, failure: 30, ..NONE });
    }
}

#[test]
fn every_plan_ends_whatever_the_store_does() {
    for seed in seeds() {
        run(seed, Faults { store: 30, people: 5, failure: 20, ..NONE });
    }
}

#[test]
fn every_plan_ends_however_often_the_run_is_killed() {
    for seed in seeds() {
        run(seed, Faults { store: 15, crash: 15, people: 5, failure: 15, ..NONE });
    }
}

#[test]
fn every_plan_ends_whatever_strangers_and_clocks_do() {
    let mut late = 0;
    for seed in seeds() {
        let faults = Faults { store: 10, crash: 5, people: 5, failure: 15, strangers: 25, clock: 3, ..NONE };
        late += run(seed, faults);
    }
    let seeds = seeds().len() as u32;
    assert!(seeds == 1 || late > seeds, "hardly anybody came too late: {late} in {seeds} plans");
}

#[test]
fn every_plan_of_short_tasks_ends_whatever_happens() {
    // These plans are larger, so fewer of them take as long.
    for seed in seeds().into_iter().step_by(8) {
        run(seed, Faults { short: true, ..NONE });
        run(seed, Faults { store: 10, crash: 3, people: 5, failure: 10, short: true, ..NONE });
    }
}

#[test]
fn expired_leases_return_and_fence_off_the_late() {
    for seed in seeds() {
        let mut dice = SeededRng::new(seed);
        let mut world = World::new(config(2), random_plan(&mut dice, false));
        world.settle();
        let late: Vec<_> = world.programs.keys().cloned().collect();
        world.crash();
        world.lose_all_others(Loss::Expired);
        world.settle();
        for key in late {
            // Whoever comes back late with an old number changes nothing.
            let outcome = waypost_core::Outcome::Done { result: None, output: None, evidence: None };
            let (task, attempt) = (key.task.clone(), Some(key.attempt));
            assert!(
                world.person(Command::FinishTask { task, attempt, outcome, retry: None }).is_err(),
                "seed {seed}"
            );
        }
    }
}
