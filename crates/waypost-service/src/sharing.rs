//! Plans that travel with a repository: each version of a shared plan becomes records, records travel on a branch that is
//! never checked out, and what other clones wrote is merged by meaning, as one version.
//!
//! The version log stays the truth of this clone. Records are derived from it when they are needed, so that an ordinary
//! write costs nothing.

mod branch;
mod check;
mod claim_notice;
mod derive;
mod error;
mod import;
mod late_report;
mod offer;
mod questions;
mod reply;
mod rows;
mod secrets;
mod share;
mod sync;
mod take_up;

pub use branch::{FindBranch, SharedBranch};
pub use check::{SharingBacklog, SharingCheck};
pub use claim_notice::ClaimNotice;
pub use error::SharingError;
pub use questions::{
    AnswerChoice, OpenQuestions, PlanQuestion, QuestionPage, QuestionRef, ResolveReply, may_resolve,
};
pub use reply::{KeptAside, ShareReply, SharedPlan, SharingStatus, SyncReport, WithheldPlan};
pub use secrets::{FoundSecret, SecretScan};
pub use sync::SyncOptions;
