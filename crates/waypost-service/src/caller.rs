//! Who asks: the actor whose rights count, and the name under which tasks are held.

use waypost_core::Actor;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The person, agent or worker.
    pub actor: Actor,
    /// The name under which the caller holds tasks: its own, or that of one of an agent's sessions (`agent:robin#4f`).
    pub worker: String,
}

impl Caller {
    /// A caller who holds tasks under its own name.
    pub fn new(actor: Actor) -> Self {
        Self { worker: actor.to_string(), actor }
    }

    /// One session of an agent: what it holds, other sessions of the same agent do not.
    pub fn session(actor: Actor, worker: String) -> Self {
        Self { actor, worker }
    }

    /// How the caller stands to whoever holds a task.
    pub fn relation_to(&self, worker: &str) -> Holder {
        // Whoever holds it under the agent's name alone has said nothing of sessions.
        if worker == self.worker || worker == self.actor.to_string() {
            Holder::Caller
        } else if self.actor.is_worker(worker) {
            Holder::OtherSession
        } else {
            Holder::Other
        }
    }
}

/// Who holds a task, as a caller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The caller itself.
    Caller,
    /// The same agent in another session.
    OtherSession,
    /// Somebody else.
    Other,
}
