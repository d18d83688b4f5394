//! What went wrong, in words for a person at the terminal: what happened, to what, what to do next.

use waypost_core::{Problem, Refusal};
use waypost_run::RunError;
use waypost_service::admission as admit;
use waypost_store::{StoreError, WriteError};

use crate::app::ErrorMessage;

/// Problems that one error names.
const PROBLEMS_NAMED_MAX: usize = 3;

impl From<WriteError> for ErrorMessage {
    fn from(error: WriteError) -> Self {
        let hint = error.hint();
        match error {
            WriteError::Refused(Refusal::Invalid { problems }) => {
                Self::of_problems("the plan would not be valid", &problems)
            }
            WriteError::Refused(_)
            | WriteError::Conflict(_)
            | WriteError::NotFound(_)
            | WriteError::Ambiguous { .. }
            | WriteError::NoSuchVersion { .. }
            | WriteError::IdUsed(_)
            | WriteError::Store(_) => Self { what: error.to_string(), hint },
        }
    }
}

impl From<Refusal> for ErrorMessage {
    fn from(refusal: Refusal) -> Self {
        WriteError::Refused(refusal).into()
    }
}

impl From<StoreError> for ErrorMessage {
    fn from(error: StoreError) -> Self {
        Self { what: error.to_string(), hint: error.hint().to_owned() }
    }
}

impl From<RunError> for ErrorMessage {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Plan(error) => error.into(),
            RunError::Store(ref inner) => Self { hint: inner.hint().to_owned(), what: error.to_string() },
        }
    }
}

impl ErrorMessage {
    /// Everything that is wrong with a plan, the first few by name.
    pub(crate) fn of_problems(what: &str, problems: &[Problem]) -> Self {
        let named: Vec<String> = problems.iter().take(PROBLEMS_NAMED_MAX).map(ToString::to_string).collect();
        let more = match problems.len().saturating_sub(PROBLEMS_NAMED_MAX) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let hint = problems.first().map(Problem::hint).unwrap_or_default();
        Self { what: format!("{what}: {}{more}", named.join("; ")), hint }
    }

    /// What of these problems forbids that something is written, if anything does.
    pub(crate) fn of_config_problems(problems: Vec<Problem>) -> Option<Self> {
        let misfits: Vec<Problem> = problems.into_iter().filter(admit::forbids_writing).collect();
        (!misfits.is_empty()).then(|| Self::of_problems("the configuration does not allow it", &misfits))
    }
}
