//! The application layer: every operation on plans, implemented once for all front ends and drivers.

#![warn(missing_docs, clippy::wildcard_enum_match_arm)]

pub mod admission;
pub mod submit;
mod upstream;

mod active_workers;
mod agent_references;
mod approval;
mod approval_bundle;
mod approval_preview;
mod authenticity;
mod caller;
mod claim;
mod diff_text;
mod earlier_attempt;
mod edit;
mod edit_conflicts;
mod error;
mod event_text;
mod false_done;
mod gate;
mod gate_search;
mod hint;
mod human_answer;
mod import;
mod inbox;
mod last_approval;
mod lifecycle;
mod maintenance;
mod merge_question;
mod own_record;
mod plan_status;
mod preview;
mod record;
mod report;
mod risk;
mod service;
mod sharing;
mod standstill;
mod status_changes;
mod subscriptions;
mod task_changes;
mod task_commits;
mod task_json;
mod task_search;
mod update;
mod wait_reasons;
mod worker_registry;

pub use active_workers::{all_workers, no_worker, work_of, worker_state, workers_of};
pub use approval::{
    NewApproval, StartFacts, VerifiedApproval, approval_text, may_start, needs_record, start_refusal_hint,
    start_refusal_text,
};
pub use approval_bundle::ApprovalBundle;
pub use approval_preview::{
    ApprovalPreview, approval_preview, is_to_be_run, preview, preview_of_check, preview_of_work,
};
pub use authenticity::{Approved, AttestError, Authenticator, NotAuthentic, Signing};
pub use caller::{Caller, Holder, Presence, ProgramOf, SignedGate};
pub use claim::{ClaimFilter, Claimable, Claimed};
pub use diff_text::{Sign, Texts, difference_lines};
pub use earlier_attempt::EarlierAttempt;
pub use edit::{EditOp, NewTask, StatusChange};
pub use edit_conflicts::{edit_conflicts, removed_task};
pub use error::{IdOf, ServiceError, Subject, UnknownPlan, WrongOperation};
pub use event_text::{consequence_summary, summary};
pub use false_done::find_failure_phrase;
pub use gate::{HumanTask, external_tasks, gates_of, tasks_behind_gates, unproved_gates};
pub use hint::{Hint, PersonAct, PersonVerb};
pub use human_answer::{HumanExecutors, is_for_people, question_digest};
pub use import::{ImportDraft, Imported, only_plan};
pub use inbox::{Commands, Inbox, InboxItem, InboxKind, RunningNow};
pub use lifecycle::{ApprovalRule, CreateOptions, OwnerRule, RestorePreview};
pub use maintenance::StoreHealth;
pub use merge_question::MergeQuestion;
pub use plan_status::{FoundPlans, ListedPlan, PlanStatus, PlanStatuses};
pub use preview::{
    GroupRole, Preview, PreviewGroup, PreviewTask, Seen, names_digest, plan_preview, preview_digest,
    short_digest,
};
pub use record::Record;
pub use report::{ClaimOptions, ClaimReply, TaskRef, TaskReport, new_lease_seconds};
pub use risk::Risk;
pub use service::{Guard, LoadConfig, Service, WriteReply, WriteResult, resolve_task};
pub use sharing::{
    AnswerChoice, ClaimNotice, FindBranch, FoundSecret, KeptAside, OpenQuestions, PlanQuestion, QuestionPage,
    QuestionRef, ResolveReply, SecretScan, ShareReply, SharedBranch, SharedPlan, SharingBacklog,
    SharingCheck, SharingError, SharingStatus, SyncOptions, SyncReport, WithheldPlan, may_resolve,
};
pub use standstill::{approval_note, awaits_approval, may_start_tasks, standstill};
pub use task_changes::{ChangesPlace, FileChange, TaskChanges, has_worktree, task_changes};
pub use task_commits::{CommitOfTask, CommitsOfTask, task_commits};
pub use task_json::{task_row, whole_task};
pub use task_search::{
    FoundTask, FoundTasks, SEARCH_WORDS_MAX, SEARCHED_PLANS_MAX, SEARCHED_TASKS_MAX, TaskSearch,
};
pub use update::{FileDraft, SourceText, UpdateReply};
pub use wait_reasons::{Explanation, Reason, is_to_be_skipped, waiting_text, why, why_open};
pub use waypost_git::Repository;
pub use waypost_operation::{AnswerKind, Conflict, ConflictKind, ConflictVersion};
pub use worker_registry::Heartbeat;
