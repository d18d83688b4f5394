//! All limits of a plan. A limit that is not listed here does not exist.

/// Maximum tasks in one plan.
pub const TASKS_MAX: usize = 1_000_000;
/// Maximum bytes of a plan id.
pub const PLAN_ID_BYTES_MAX: usize = 128;
/// Maximum bytes of a task id.
pub const TASK_ID_BYTES_MAX: usize = 256;
/// Maximum bytes of a plan's body.
pub const BODY_BYTES_MAX: usize = 10 * 1024 * 1024;
/// Maximum bytes of a single line of text: a title, a queue, a lock key, an author's status.
pub const LINE_BYTES_MAX: usize = 4 * 1024;
/// Maximum bytes of a task's description, notes, reasoning, result, error or reason.
pub const TEXT_BYTES_MAX: usize = 256 * 1024;
/// Maximum bytes of a JSON value: inputs, output, one received output.
pub const JSON_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum dependencies of one task.
pub const DEPENDENCIES_MAX: usize = 100_000;
/// Maximum locks of one task.
pub const LOCKS_MAX: usize = 256;
/// Maximum levels of parents above a task.
pub const DEPTH_MAX: usize = 1_000;
/// Maximum attempts of a task.
pub const ATTEMPTS_MAX: u32 = 1_000;
/// Maximum problems listed in one report; further ones are dropped.
pub const PROBLEMS_MAX: usize = 1_000;
/// Maximum bytes of a question to a person, and of its answer.
pub const QUESTION_BYTES_MAX: usize = 4 * 1024;
/// Maximum bytes of a progress report.
pub const PROGRESS_BYTES_MAX: usize = 16 * 1024;
/// Maximum choices of a question.
pub const CHOICES_MAX: usize = 50;
/// Maximum bytes of the state that a question returns with its answer.
pub const QUESTION_STATE_BYTES_MAX: usize = 64 * 1024;
/// Maximum answers stored per task; the oldest are dropped.
pub const ANSWERS_MAX: usize = 100;
/// Maximum bytes of a comment on a task.
pub const COMMENT_BYTES_MAX: usize = 4 * 1024;
/// Maximum comments stored per task; the oldest are dropped, those of people last. The history keeps all of them.
pub const COMMENTS_MAX: usize = 100;
/// Maximum labels of a task.
pub const LABELS_MAX: usize = 20;
/// Maximum bytes of a label.
pub const LABEL_BYTES_MAX: usize = 64;
/// Maximum bytes of a task's assignee.
pub const ASSIGNEE_BYTES_MAX: usize = 256;
/// Maximum workers whose refusal to start a plan is stored; the oldest are dropped.
pub const START_REFUSALS_MAX: usize = 20;
/// Maximum number of rejections that a plan remembers; the oldest are forgotten.
pub const REJECTIONS_MAX: usize = 50;
/// Maximum differences in such a refusal; further ones are dropped.
pub const REFUSAL_DIFFERENCES_MAX: usize = 20;
/// Maximum bytes of a check's output stored as evidence.
pub const EVIDENCE_OUTPUT_BYTES_MAX: usize = 64 * 1024;
/// Maximum bytes of the tail of a check's log stored as evidence.
pub const EVIDENCE_LOG_BYTES_MAX: usize = 8 * 1024;
/// Maximum bytes of a record of operations, as a line without its end.
pub const RECORD_BYTES_MAX: usize = 12 * 1024 * 1024;
/// Maximum actions of a record.
pub const RECORD_ACTIONS_MAX: usize = 10_000;
/// Maximum parents of a record.
pub const RECORD_PARENTS_MAX: usize = 1_000;
/// Maximum records of a plan. Also the highest clock, which counts the records of a chain.
pub const RECORDS_MAX: usize = 1_000_000;
/// Maximum bytes of the tag of a clone.
pub const CLONE_TAG_BYTES_MAX: usize = 32;
/// Maximum bytes of the key that places a task among its siblings.
pub const PLACE_BYTES_MAX: usize = 512;
