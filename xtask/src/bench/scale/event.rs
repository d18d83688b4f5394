//! What happens in a simulation, on its agenda.

use waypost_core::{PlanId, Refusal};
use waypost_run::AttemptKey;
use waypost_store::VersionRecord;

use super::plans::Requirement;

pub(super) type CallId = usize;

/// Something that happens in the server.
#[derive(Debug)]
pub(super) enum ServerEvent {
    Arrived(CallId),
    Computed(Option<CallId>),
    Resumed(CallId),
    Flushed(Vec<CallId>),
}

#[derive(Debug)]
pub(super) enum Event {
    Server(ServerEvent),
    Answered(usize, Box<Answer>),
    Wakes(usize, i64),
    ProgramEnded(usize, AttemptKey),
    PlanArrives,
    Number,
    Notified,
}

/// What the store answers to a worker.
#[derive(Debug)]
pub(super) enum Answer {
    Written(PlanId, Requirement, Box<WrittenAnswer>),
    Versions(PlanId, Vec<VersionRecord>),
    Plan(usize, bool),
    WrittenSince,
    Searched(Option<usize>),
    Nothing,
}

/// The result of a write, and the versions since the one that the worker knew.
pub(super) type WrittenAnswer = (Result<(u64, Vec<Refusal>), Refusal>, Vec<VersionRecord>);
