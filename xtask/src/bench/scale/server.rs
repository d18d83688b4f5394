//! The modelled database server: processors, connections, row locks of plans and the flush of the log. Knows only how long
//! calls take and which wait for each other, not what they read or write.
//!
//! What is not modelled: memory, checkpoints, vacuum, the growth of tables, lock keys of tasks.

use std::collections::{HashMap, VecDeque};

use super::agenda::Agenda;
use super::event::{CallId, Event, ServerEvent};

/// What calls cost, in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Costs {
    /// Processor time of the server for one version of one plan.
    pub(super) write: f64,
    /// Processor time of a read of some rows by their keys.
    pub(super) read: f64,
    /// Processor time of a page of a hundred plan summaries.
    pub(super) page: f64,
    /// Processor time for loading a plan of [`super::plans::PLAN_TASKS`] tasks.
    pub(super) load: f64,
    /// Processor time of a heartbeat.
    pub(super) heartbeat: f64,
    /// Processor time for waking one listening connection.
    pub(super) wake: f64,
    /// From the end of a commit's work until it is on disk; commits that arrive meanwhile share the next flush.
    pub(super) flush: f64,
}

/// The machine of the server, and the way to it.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) cores: usize,
    /// Connections that work at the same time.
    pub(super) connections: usize,
    /// Microseconds from a client to the server and back.
    pub(super) round_trip: i64,
}

/// What a call does, as far as others have to wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Reads, or writes what may be lost.
    Free,
    /// Writes a version of this plan, and is on disk when it returns.
    Plan(usize),
    /// Is on disk when it returns.
    Durable,
}

#[derive(Debug)]
struct Call {
    access: Access,
    micros: f64,
    /// Whether the first of the two round trips of a write is over.
    resumed: bool,
}

pub(super) struct Server {
    machine: Machine,
    flush_micros: f64,
    calls: Vec<Option<Call>>,
    free: Vec<CallId>,
    connected: usize,
    for_connection: VecDeque<CallId>,
    computing: usize,
    for_core: VecDeque<(Option<CallId>, f64)>,
    /// Plans that are being written, with the calls that wait for them.
    locked: HashMap<usize, VecDeque<CallId>>,
    flushing: bool,
    for_flush: Vec<CallId>,
    /// Calls that have just got the lock of their plan.
    pub(super) granted: Vec<CallId>,
    /// Calls that have just ended.
    pub(super) ended: Vec<CallId>,
    /// Microseconds that processors were busy.
    pub(super) busy_micros: f64,
    /// The most calls that waited for a processor.
    pub(super) queued_max: usize,
    pub(super) flushes: u64,
}

impl Server {
    pub(super) fn new(machine: Machine, costs: &Costs) -> Self {
        Self {
            machine,
            flush_micros: costs.flush,
            calls: Vec::new(),
            free: Vec::new(),
            connected: 0,
            for_connection: VecDeque::new(),
            computing: 0,
            for_core: VecDeque::new(),
            locked: HashMap::new(),
            flushing: false,
            for_flush: Vec::new(),
            granted: Vec::new(),
            ended: Vec::new(),
            busy_micros: 0.0,
            queued_max: 0,
            flushes: 0,
        }
    }

    /// Sends a call, which arrives after half a round trip.
    pub(super) fn send(&mut self, agenda: &mut Agenda<Event>, access: Access, micros: f64) -> CallId {
        let call = Call { access, micros, resumed: false };
        let id = match self.free.pop() {
            Some(id) => {
                self.calls[id] = Some(call);
                id
            }
            None => {
                self.calls.push(Some(call));
                self.calls.len() - 1
            }
        };
        agenda.add(self.machine.round_trip / 2, Event::Server(ServerEvent::Arrived(id)));
        id
    }

    /// Work of the server that nobody waits for.
    pub(super) fn burden(&mut self, agenda: &mut Agenda<Event>, micros: f64) {
        let share = micros / self.machine.cores as f64;
        for _ in 0..self.machine.cores {
            self.compute(agenda, None, share);
        }
    }

    pub(super) fn handle(&mut self, agenda: &mut Agenda<Event>, event: ServerEvent) {
        match event {
            ServerEvent::Arrived(id) if self.connected < self.machine.connections => {
                self.connected += 1;
                self.begin(agenda, id);
            }
            ServerEvent::Arrived(id) => self.for_connection.push_back(id),
            ServerEvent::Computed(id) => {
                self.computing -= 1;
                if let Some((next, micros)) = self.for_core.pop_front() {
                    self.occupy(agenda, next, micros);
                }
                if let Some(id) = id {
                    self.computed(agenda, id);
                }
            }
            ServerEvent::Resumed(id) => {
                let micros = self.calls[id].as_ref().map_or(0.0, |call| call.micros / 2.0);
                self.compute(agenda, Some(id), micros);
            }
            ServerEvent::Flushed(ids) => {
                self.flushing = false;
                self.flush(agenda);
                for id in ids {
                    self.end(agenda, id);
                }
            }
        }
    }

    fn begin(&mut self, agenda: &mut Agenda<Event>, id: CallId) {
        let Some(call) = &self.calls[id] else { return };
        match call.access {
            Access::Plan(plan) => match self.locked.get_mut(&plan) {
                Some(waiting) => waiting.push_back(id),
                None => {
                    self.locked.insert(plan, VecDeque::new());
                    self.grant(agenda, id);
                }
            },
            Access::Free | Access::Durable => {
                let micros = call.micros;
                self.compute(agenda, Some(id), micros);
            }
        }
    }

    /// Gives a call the lock of its plan. Its first half reads the plan.
    fn grant(&mut self, agenda: &mut Agenda<Event>, id: CallId) {
        self.granted.push(id);
        let micros = self.calls[id].as_ref().map_or(0.0, |call| call.micros / 2.0);
        self.compute(agenda, Some(id), micros);
    }

    fn compute(&mut self, agenda: &mut Agenda<Event>, id: Option<CallId>, micros: f64) {
        if self.computing < self.machine.cores {
            self.occupy(agenda, id, micros);
        } else {
            self.for_core.push_back((id, micros));
            self.queued_max = self.queued_max.max(self.for_core.len());
        }
    }

    fn occupy(&mut self, agenda: &mut Agenda<Event>, id: Option<CallId>, micros: f64) {
        self.computing += 1;
        self.busy_micros += micros;
        agenda.add(micros.ceil() as i64, Event::Server(ServerEvent::Computed(id)));
    }

    fn computed(&mut self, agenda: &mut Agenda<Event>, id: CallId) {
        let Some(call) = &mut self.calls[id] else { return };
        match call.access {
            Access::Free => self.end(agenda, id),
            // The client decides what to write while it holds the lock.
            Access::Plan(_) if !call.resumed => {
                call.resumed = true;
                agenda.add(self.machine.round_trip, Event::Server(ServerEvent::Resumed(id)));
            }
            Access::Plan(_) | Access::Durable => {
                self.for_flush.push(id);
                if !self.flushing {
                    self.flush(agenda);
                }
            }
        }
    }

    fn flush(&mut self, agenda: &mut Agenda<Event>) {
        let calls = std::mem::take(&mut self.for_flush);
        if !calls.is_empty() {
            (self.flushing, self.flushes) = (true, self.flushes + 1);
            agenda.add(self.flush_micros as i64, Event::Server(ServerEvent::Flushed(calls)));
        }
    }

    fn end(&mut self, agenda: &mut Agenda<Event>, id: CallId) {
        let Some(call) = self.calls[id].take() else { return };
        self.ended.push(id);
        self.connected -= 1;
        if let Access::Plan(plan) = call.access {
            match self.locked.get_mut(&plan).and_then(VecDeque::pop_front) {
                Some(next) => self.grant(agenda, next),
                None => {
                    self.locked.remove(&plan);
                }
            }
        }
        if let Some(next) = self.for_connection.pop_front() {
            self.connected += 1;
            self.begin(agenda, next);
        }
    }

    /// Makes the id of a call that has ended available to others.
    pub(super) fn release(&mut self, id: CallId) {
        self.free.push(id);
    }
}
