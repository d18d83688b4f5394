//! The caller of an operation: the actor whose rights count, and the name under which it holds tasks.

use waypost_core::Actor;

/// The caller of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The person, agent or worker whose rights count.
    pub actor: Actor,
    /// The name under which the caller holds tasks: its own, or that of one session of an agent (`agent:robin#4f`).
    pub worker: String,
}

impl Caller {
    /// A caller that holds tasks under its own name.
    pub fn new(actor: Actor) -> Self {
        Self { worker: actor.to_string(), actor }
    }

    /// One session of an agent. It does not hold the tasks of the agent's other sessions.
    pub fn session(actor: Actor, worker: String) -> Self {
        Self { actor, worker }
    }

    /// Returns how the caller relates to the holder of a task.
    pub fn relation_to(&self, worker: &str) -> Holder {
        // A holder with the agent's bare name does not use sessions, so every session of the agent counts as the
        // holder.
        if worker == self.worker || worker == self.actor.to_string() {
            Holder::Caller
        } else if self.actor.is_worker(worker) {
            Holder::OtherSession
        } else {
            Holder::Other
        }
    }
}

/// The holder of a task, relative to a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The caller itself.
    Caller,
    /// The same agent in another session.
    OtherSession,
    /// Another person, agent or worker.
    Other,
}
