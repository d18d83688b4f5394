//! Every limit of a plan, by name. A limit that is not here does not exist.

/// Tasks in one plan.
pub const TASKS_MAX: usize = 1_000_000;
/// Bytes of a plan id.
pub const PLAN_ID_BYTES_MAX: usize = 128;
/// Bytes of a task id.
pub const TASK_ID_BYTES_MAX: usize = 256;
/// Bytes of a plan's body.
pub const BODY_BYTES_MAX: usize = 10 * 1024 * 1024;
/// Bytes of any single line of text: a title, a queue, a lock key, an author's status.
pub const LINE_BYTES_MAX: usize = 4 * 1024;
/// Bytes of a task's description, notes, reasoning, result, error or reason.
pub const TEXT_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a JSON value: inputs, output, one received output.
pub const JSON_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Dependencies of one task.
pub const DEPENDENCIES_MAX: usize = 100_000;
/// Locks of one task.
pub const LOCKS_MAX: usize = 256;
/// Levels of parents above a task.
pub const DEPTH_MAX: usize = 1_000;
/// Attempts that a task may be given.
pub const ATTEMPTS_MAX: u32 = 1_000;
/// Problems that one report lists; the rest are counted.
pub const PROBLEMS_MAX: usize = 1_000;
/// Bytes of a question to a person, and of its answer.
pub const QUESTION_BYTES_MAX: usize = 4 * 1024;
/// Bytes of a progress report.
pub const PROGRESS_BYTES_MAX: usize = 16 * 1024;
/// Answers that a question may offer.
pub const CHOICES_MAX: usize = 50;
/// Bytes of what whoever asks wants back along with the answer.
pub const QUESTION_STATE_BYTES_MAX: usize = 64 * 1024;
/// Answers of one task that are kept; of more, the latest.
pub const ANSWERS_MAX: usize = 100;
/// Bytes of a check's output that are kept as evidence.
pub const EVIDENCE_OUTPUT_BYTES_MAX: usize = 64 * 1024;
/// Bytes of the end of a check's log that are kept as evidence.
pub const EVIDENCE_LOG_BYTES_MAX: usize = 8 * 1024;
