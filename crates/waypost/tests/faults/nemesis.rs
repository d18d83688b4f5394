//! What is done to workers, their server and the way between them, in an order that a seed repeats.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal as Sign, kill_process};
use serde_json::json;
use waypost_testkit::SeededRng;

use crate::bystanders::lines_of;
use crate::ground::{Ground, Record, Store, ends, now, pass, patience};
use crate::workload::LEASE_SECONDS;

/// How long a worker is stopped, or cut off: past its lease.
pub(crate) const PAST_LEASE: Duration = Duration::from_millis(LEASE_SECONDS * 1_000 + 1_300);
/// Between two looks at what is to end.
const BREATH: Duration = Duration::from_millis(50);
/// How long pieces are delayed.
const SLOW_FOR: Duration = Duration::from_millis(1_500);

/// One kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// A worker is killed, and another takes its place.
    Kill,
    /// A worker is stopped past its lease while its programs go on, and woken.
    Stop,
    /// A worker and its programs are stopped past their lease, and woken.
    Freeze,
    /// A worker is asked to end, and another takes its place.
    Terminate,
    /// The server is restarted without being asked to finish anything.
    Restart,
    /// Connections are cut.
    Drop,
    /// Every piece takes its time.
    Slow,
    /// One direction of each connection is closed.
    HalfClose,
    /// The answer to what was asked is lost, with its connection.
    Swallow,
    /// Nothing passes past the lease, and then the connections are cut.
    Hole,
}

impl Fault {
    /// What can be done to this store and its workers.
    fn of(store: &Store) -> Vec<Self> {
        let mut all = vec![Self::Kill, Self::Stop, Self::Freeze, Self::Terminate];
        if matches!(store, Store::Postgres { .. }) {
            all.extend([Self::Restart, Self::Drop, Self::Slow, Self::HalfClose, Self::Swallow, Self::Hole]);
        }
        all
    }
}

/// What ends a fault that lasts.
#[derive(Debug)]
enum Relief {
    Wake(usize, Vec<Pid>),
    /// Opens the way of this proxy; cuts what was in it.
    Open(usize, bool),
}

/// A worker, and whoever takes its place.
struct Worker {
    proxy: usize,
    folder: std::path::PathBuf,
    child: Child,
    stopped: bool,
}

/// Does it all.
pub(crate) struct Nemesis<'a> {
    ground: &'a Ground,
    dice: SeededRng,
    told: Arc<Record>,
    workers: Vec<Worker>,
    reliefs: Vec<(Instant, Relief)>,
    /// How often each fault has happened to somebody.
    pub(crate) happened: BTreeMap<Fault, usize>,
    /// Workers that ended by themselves, because the store failed them for too long.
    pub(crate) gave_up: usize,
}

impl<'a> Nemesis<'a> {
    pub(crate) fn new(ground: &'a Ground, workers: usize, dice: SeededRng) -> Self {
        let told = Arc::new(Record::new(&ground.record("told.jsonl")));
        let mut nemesis = Self {
            ground,
            dice,
            told,
            workers: Vec::new(),
            reliefs: Vec::new(),
            happened: BTreeMap::new(),
            gave_up: 0,
        };
        for proxy in 0..workers {
            let folder = ground.workspace(proxy);
            let child = nemesis.start(proxy, &folder);
            nemesis.workers.push(Worker { proxy, folder, child, stopped: false });
        }
        nemesis
    }

    fn start(&self, proxy: usize, folder: &std::path::Path) -> Child {
        let log = self.ground.root.join(format!("worker-{proxy}.log"));
        let log = fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let mut command = self.ground.command(Some(proxy), &["worker", "-j", "3"]);
        let mut child = command.current_dir(folder).stderr(Stdio::from(log)).spawn().unwrap();
        let lines = lines_of(&mut child);
        let told = Arc::clone(&self.told);
        std::thread::spawn(move || lines.into_iter().for_each(|line| told.line(&line)));
        child
    }

    /// How many faults a round has.
    pub(crate) fn faults(&self) -> usize {
        Fault::of(&self.ground.store).len()
    }

    /// One fault of each kind, in some order, with `between` called after each.
    pub(crate) fn round(&mut self, mut between: impl FnMut()) {
        let mut faults = Fault::of(&self.ground.store);
        while !faults.is_empty() {
            let fault = faults.swap_remove(self.dice.below(faults.len()));
            self.strike(fault);
            let pause = Duration::from_millis(200 + self.dice.below(700) as u64);
            self.wait(pause);
            between();
        }
    }

    /// Lets time pass, ends what is to end meanwhile, and puts workers in the place of those that gave up.
    pub(crate) fn wait(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.let_pass(until.saturating_duration_since(Instant::now()).min(BREATH));
            self.replace_those_who_gave_up();
        }
    }

    fn let_pass(&mut self, time: Duration) {
        let is_due = |(at, _): &(Instant, Relief)| *at <= Instant::now();
        while let Some(place) = self.reliefs.iter().position(is_due) {
            let (_, relief) = self.reliefs.swap_remove(place);
            self.relieve(relief);
        }
        pass(time);
    }

    /// Ends every fault that lasts.
    pub(crate) fn relent(&mut self) {
        for (_, relief) in std::mem::take(&mut self.reliefs) {
            self.relieve(relief);
        }
    }

    fn relieve(&mut self, relief: Relief) {
        match relief {
            Relief::Wake(worker, programs) => {
                // Programs first: what they have to say is there when the worker wakes.
                for program in programs {
                    let _gone = kill_process(program, Sign::CONT);
                }
                self.signal(worker, Sign::CONT);
                self.workers[worker].stopped = false;
                self.note("wake", worker);
            }
            Relief::Open(proxy, cut) => {
                let proxy = &self.ground.proxies()[proxy];
                if cut {
                    proxy.drop_all();
                }
                proxy.open();
            }
        }
    }

    fn replace_those_who_gave_up(&mut self) {
        for number in 0..self.workers.len() {
            if self.workers[number].child.try_wait().unwrap().is_some() {
                self.gave_up += 1;
                self.note("gave_up", number);
                self.replace(number);
            }
        }
    }

    /// Another worker takes the place of one that is gone.
    pub(crate) fn replace(&mut self, number: usize) {
        let child = self.start(self.workers[number].proxy, &self.workers[number].folder);
        self.workers[number].child = child;
    }

    fn signal(&self, worker: usize, sign: Sign) {
        let pid = Pid::from_raw(self.workers[worker].child.id() as i32).unwrap();
        let _gone = kill_process(pid, sign);
    }

    fn note(&self, fault: &str, worker: usize) {
        let pid = self.workers[worker].child.id();
        self.ground.faults.line(&json!({ "fault": fault, "pid": pid, "at": now() }).to_string());
    }

    /// One of the workers that are not stopped.
    fn somebody(&mut self) -> usize {
        let awake: Vec<usize> = (0..self.workers.len()).filter(|&n| !self.workers[n].stopped).collect();
        if awake.is_empty() {
            self.relent();
            return 0;
        }
        *self.dice.pick(&awake)
    }

    fn strike(&mut self, fault: Fault) {
        let hit = match fault {
            Fault::Kill => self.kill(),
            Fault::Stop => self.stop(false),
            Fault::Freeze => self.stop(true),
            Fault::Terminate => self.terminate(),
            Fault::Restart => self.restart(),
            Fault::Drop => self.on_ways(|proxy, _| proxy.drop_all()),
            Fault::HalfClose => self.on_ways(|proxy, dice| proxy.half_close(dice)),
            Fault::Swallow => self.swallow(),
            Fault::Slow => {
                let pause = Duration::from_millis(10 + self.dice.below(40) as u64);
                self.on_one_way(SLOW_FOR, false, |proxy| proxy.slow(pause))
            }
            Fault::Hole => self.on_one_way(PAST_LEASE, true, |proxy| proxy.hole()),
        };
        *self.happened.entry(fault).or_default() += hit;
    }

    fn kill(&mut self) -> usize {
        let number = self.somebody();
        self.fell(number);
        self.replace(number);
        1
    }

    /// Kills a worker, and leaves its programs to themselves.
    pub(crate) fn fell(&mut self, number: usize) {
        let worker = &mut self.workers[number];
        worker.child.kill().unwrap();
        worker.child.wait().unwrap();
        self.note("kill", number);
    }

    fn stop(&mut self, programs_too: bool) -> usize {
        // One with something at work, if there is any: of another one nothing can be lost.
        let tries: Vec<usize> = (0..8).map(|_| self.somebody()).collect();
        let at_work = |number: &&usize| !programs_of(self.workers[**number].child.id()).is_empty();
        let number = tries.iter().find(at_work).copied().unwrap_or(tries[0]);
        self.signal(number, Sign::STOP);
        let mut programs = Vec::new();
        if programs_too {
            programs = programs_of(self.workers[number].child.id());
            for program in &programs {
                let _gone = kill_process(*program, Sign::STOP);
            }
        }
        self.workers[number].stopped = true;
        self.note(if programs_too { "freeze" } else { "stop" }, number);
        self.reliefs.push((Instant::now() + PAST_LEASE, Relief::Wake(number, programs)));
        1
    }

    fn terminate(&mut self) -> usize {
        let number = self.somebody();
        self.signal(number, Sign::TERM);
        // Its last words may have to wait until another one is woken.
        let began = Instant::now();
        while self.workers[number].child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < patience(), "a worker does not end although it is asked to");
            self.let_pass(BREATH);
        }
        self.note("terminate", number);
        self.replace(number);
        1
    }

    fn restart(&mut self) -> usize {
        let ground = self.ground;
        let Store::Postgres { server, .. } = &ground.store else { return 0 };
        std::thread::scope(|scope| {
            let restart = scope.spawn(|| server.control(&["-m", "immediate", "restart"]));
            while !restart.is_finished() {
                self.let_pass(BREATH);
            }
            restart.join().unwrap().unwrap();
        });
        ground.faults.line(&json!({ "fault": "restart", "at": now() }).to_string());
        1
    }

    /// Something is done to some of the ways at once.
    fn on_ways(&mut self, act: impl Fn(&waypost_testkit::Proxy, &mut SeededRng) -> usize) -> usize {
        let mut hit = 0;
        for proxy in self.ground.proxies() {
            if self.dice.chance(60) {
                hit += act(proxy, &mut self.dice);
            }
        }
        hit
    }

    /// Something lasts on one way.
    fn on_one_way(&mut self, time: Duration, cut: bool, act: impl Fn(&waypost_testkit::Proxy)) -> usize {
        let number = self.dice.below(self.ground.proxies().len());
        act(&self.ground.proxies()[number]);
        self.reliefs.push((Instant::now() + time, Relief::Open(number, cut)));
        1
    }

    fn swallow(&mut self) -> usize {
        let swallowed =
            |ground: &Ground| ground.proxies().iter().map(|proxy| proxy.swallowed()).sum::<usize>();
        let before = swallowed(self.ground);
        for _ in 0..10 {
            for proxy in self.ground.proxies() {
                proxy.swallow();
            }
            let pause = Duration::from_millis(self.dice.below(60) as u64);
            self.wait(pause);
        }
        // Those that are slow or a hole at the moment are open a little earlier than they were to be.
        for proxy in self.ground.proxies() {
            proxy.open();
        }
        swallowed(self.ground) - before
    }

    /// All workers are asked to end, and do.
    pub(crate) fn finish(&mut self) {
        self.relent();
        for number in 0..self.workers.len() {
            self.signal(number, Sign::TERM);
        }
        for worker in &mut self.workers {
            let ended = ends(&mut worker.child, patience()).expect("a worker ends when it is asked to");
            assert_eq!(ended.code(), Some(0), "worker {} ended badly", worker.proxy);
        }
    }
}

impl Drop for Nemesis<'_> {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            let programs = programs_of(worker.child.id());
            let _gone = worker.child.kill();
            let _gone = worker.child.wait();
            for program in programs {
                let _gone = kill_process(program, Sign::KILL);
            }
        }
    }
}

/// The processes that a worker has started, found by the mark that it gives them.
fn programs_of(worker: u32) -> Vec<Pid> {
    let part = format!(":{worker}:");
    let Ok(folder) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = folder.filter_map(|entry| entry.ok()?.file_name().to_string_lossy().parse::<i32>().ok());
    let is_marked = |number: &i32| {
        let environment = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        let mut lines = environment.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        lines.any(|line| line.starts_with("WAYPOST_WORKER=") && line.contains(&part))
    };
    numbers.filter(is_marked).filter_map(Pid::from_raw).collect()
}
