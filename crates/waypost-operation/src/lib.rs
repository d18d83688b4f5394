//! Operations: the serialised vocabulary in which a plan travels between clones, and the merge of operations by meaning.
//!
//! The truth of a shared plan is a set of operations. A [`Record`] is immutable and named by its hash; the plan is a
//! function of the set of records alone, so that the order of their arrival cannot matter. Events are the truth of one
//! clone; [`derive`] turns its versions into records, and [`waypost_core::Command::Merge`] turns a merged plan into a version.
//! Does not know how records are stored or sent.

#![warn(missing_docs, clippy::wildcard_enum_match_arm)]

mod action;
mod answer;
mod causality;
mod derive;
mod field;
mod ids;
mod json_text;
mod merge;
mod place;
mod record;
mod request;
mod set;
mod travelling_work;

pub use action::{Action, ActionRef, ListField, OutcomeKind, PlanStart, StartState, TaskStart};
pub use answer::{Answer, AnswerError, answer};
pub use derive::{DeriveError, Stamp, derive, late_report, share};
pub use field::{BadField, BadValue, Contest, Field};
pub use ids::{BadOperationId, CloneTag, RecordId, TaskRef};
pub use merge::{
    ActionDisposition, AnswerKind, Claim, Conflict, ConflictKind, ConflictVersion, Disposition, Merged,
    OpenQuestion, ProposedAnswer, Renamed, SharedApproval, merge,
};
pub use record::{NewerRecord, ParsedRecord, RECORD_FORMAT, Record, RecordError, RecordHeader, Signature};
pub use request::{merge_request, settle_request};
pub use set::{Inserted, OperationSet, RefusedRecord, TaskKey};
pub use travelling_work::TravellingWork;
