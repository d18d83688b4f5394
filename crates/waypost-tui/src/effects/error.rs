//! Errors of the service as messages for the user: what failed, on what, and what to do next.

use waypost_core::Problem;
use waypost_run::RunError;
use waypost_service::submit::SubmitError;
use waypost_service::{ServiceError, SharingError};
use waypost_store::{StoreError, WriteError};

use crate::hint_text::hint_text;
use crate::note::ErrorMessage;

/// Maximum number of problems that one message names.
const PROBLEMS_NAMED_MAX: usize = 3;

impl From<ServiceError> for ErrorMessage {
    fn from(error: ServiceError) -> Self {
        if let ServiceError::Invalid { subject, problems } = &error {
            return Self::of_problems(&format!("{subject} is not valid"), problems);
        }
        Self { what: error.to_string(), hint: hint_text(error.hint()) }
    }
}

impl From<SharingError> for ErrorMessage {
    fn from(error: SharingError) -> Self {
        let what = error.to_string();
        let hint = match error {
            SharingError::Service(error) => return error.into(),
            SharingError::Git(error) => error.hint().to_owned(),
            SharingError::NoBranch { hint, .. } => hint,
            SharingError::NeedsPerson { .. } => "ask a person to do it".to_owned(),
            SharingError::QuestionChanged(_) | SharingError::NoSuchQuestion { .. } => {
                "read what is open now, and answer again".to_owned()
            }
            SharingError::Busy => "try again when it is done".to_owned(),
            SharingError::NotShared(_) => "`waypost share PLAN` shares it".to_owned(),
            SharingError::Newer(_) => "update Waypost".to_owned(),
            SharingError::Taken(_) => "`waypost sync` imports it".to_owned(),
            SharingError::Records { .. } => "`waypost doctor` checks the store".to_owned(),
            SharingError::WhichQuestion { .. } | SharingError::BadAnswer(_) => {
                "`waypost conflicts` shows how each question can be answered".to_owned()
            }
        };
        Self { what, hint }
    }
}

impl From<WriteError> for ErrorMessage {
    fn from(error: WriteError) -> Self {
        ServiceError::from(error).into()
    }
}

impl From<StoreError> for ErrorMessage {
    fn from(error: StoreError) -> Self {
        ServiceError::from(error).into()
    }
}

impl From<RunError> for ErrorMessage {
    fn from(error: RunError) -> Self {
        let what = error.to_string();
        match error {
            RunError::Plan(error) => error.into(),
            RunError::Logs { .. } => {
                Self { hint: "let this user write there, or remove what is in its place".to_owned(), what }
            }
            RunError::PlanLost { error, .. } => Self { what, ..(*error).into() },
            RunError::Store(inner)
            | RunError::StoreFailed(inner)
            | RunError::StoppedInOutage { error: inner, .. } => {
                Self { hint: hint_text(ServiceError::from(inner).hint()), what }
            }
        }
    }
}

impl From<SubmitError> for ErrorMessage {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Service(error) => error.into(),
            SubmitError::NotForMachines { .. } | SubmitError::OtherContent { .. } => Self {
                hint: "ask for approval first: `waypost request-approval`".to_owned(),
                what: error.to_string(),
            },
        }
    }
}

impl ErrorMessage {
    /// Names the first few problems.
    pub(super) fn of_problems(what: &str, problems: &[Problem]) -> Self {
        let named: Vec<String> = problems.iter().take(PROBLEMS_NAMED_MAX).map(ToString::to_string).collect();
        let more = match problems.len().saturating_sub(PROBLEMS_NAMED_MAX) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let hint = problems.first().map(Problem::hint).unwrap_or_default();
        Self { what: format!("{what}: {}{more}", named.join("; ")), hint }
    }
}
