//! Workers of other processes in a world: they take tasks of the same plan, report or vanish, and come back too late.

use waypost_core::{Actor, Command, Outcome, Status};
use waypost_run::{AttemptKey, Input, Loss};
use waypost_testkit::SeededRng;

use crate::world::World;

/// Attempts that somebody else began, or that a dead run has left behind; any of them may be heard of again.
#[derive(Default)]
pub(crate) struct Strangers {
    begun: Vec<(AttemptKey, String)>,
    /// Reports that came when the attempt was no longer the one that runs.
    pub(crate) late: u32,
}

fn is_running(world: &World, key: &AttemptKey) -> bool {
    let task = world.truth.task(key.task.as_str());
    task.is_some_and(|task| task.state.status == Status::Running && task.state.attempt == key.attempt)
}

impl Strangers {
    /// The run dies, and its programs may go on for a while where nobody can reach them.
    pub(crate) fn crash(&mut self, world: &mut World) {
        let worker = format!("w{}", world.generation);
        self.begun.extend(world.programs.keys().map(|key| (key.clone(), worker.clone())));
        world.crash();
    }

    /// One of them does something.
    pub(crate) fn act(&mut self, world: &mut World, dice: &mut SeededRng) {
        match dice.below(4) {
            0 => self.begin(world, dice),
            1 => self.vanish(world, dice),
            _ => self.report(world, dice),
        }
    }

    /// Somebody elsewhere takes a task that is ready; the run learns of it when it looks.
    fn begin(&mut self, world: &mut World, dice: &mut SeededRng) {
        let ready: Vec<_> = world.truth.ready().map(|task| task.spec.id.clone()).collect();
        if ready.is_empty() {
            return;
        }
        let task = dice.pick(&ready).clone();
        let worker = format!("stranger{}", dice.below(3));
        let command = Command::StartTask { task: task.clone(), worker: worker.clone() };
        if world.commit(&Actor::worker(worker.clone()), &[command]).is_ok() {
            let attempt = world.truth.task(task.as_str()).unwrap().state.attempt;
            self.begun.push((AttemptKey::new(world.truth.id(), &task, attempt), worker));
        }
    }

    /// No sign of life for longer than the lease.
    fn vanish(&mut self, world: &mut World, dice: &mut SeededRng) {
        let running: Vec<_> = self.begun.iter().filter(|(key, _)| is_running(world, key)).collect();
        if !running.is_empty() {
            let (key, _) = *dice.pick(&running);
            world.scheduler.handle(world.now, Input::Gone(key.clone(), Loss::Expired));
        }
    }

    /// One of them says how it ended, in time or long after somebody else has taken over. Only the attempt that runs is
    /// believed.
    fn report(&mut self, world: &mut World, dice: &mut SeededRng) {
        if self.begun.is_empty() {
            return;
        }
        let (key, worker) = dice.pick(&self.begun).clone();
        let outcome = match dice.below(3) {
            0 => Outcome::Failed { error: "stranger".to_owned(), evidence: None },
            _ => Outcome::Done { result: None, output: None, evidence: None },
        };
        let in_time = is_running(world, &key);
        let attempt = Some(key.attempt);
        let command = Command::FinishTask { task: key.task.clone(), attempt, outcome, retry: None };
        let before = world.truth.version();
        let believed =
            world.commit(&Actor::worker(worker), &[command]).is_ok() && world.truth.version() > before;
        assert_eq!(believed, in_time, "{key:?}");
        self.late += u32::from(!in_time);
    }
}
