//! Failures of planning: journals, stored requests and the planner, with hints.

use waypost_core::PlanId;
use waypost_llm::JournalError;
use waypost_planner::planning::{PlanningError, RequestError};

use waypost_cli::context::Context;
use waypost_cli::error::Failure;

/// Why a journal could not be used.
pub(crate) fn of_journal(error: &JournalError, plan: Option<&PlanId>) -> Failure {
    match (error, plan) {
        (JournalError::Held { by, .. }, Some(plan)) => Failure {
            code: "held".to_owned(),
            ..Failure::failed(
                format!("plan {plan} is already being planned by {by}"),
                format!("wait for it, or stop it: `waypost pause {plan}`"),
            )
        },
        (
            JournalError::Held { .. }
            | JournalError::File { .. }
            | JournalError::Corrupt { .. }
            | JournalError::TooLarge { .. },
            _,
        ) => Failure { code: "journal".to_owned(), ..Failure::failed(error.to_string(), error.hint()) },
    }
}

/// Notes the requests that were skipped because they cannot be read.
pub(crate) fn note_bad(context: &mut Context, bad: &[RequestError]) {
    for error in bad {
        let Failure { message, hint, .. } = of_order(error);
        context.out.note(format!("skipped: {message} ({hint})"));
    }
}

/// Why a stored request could not be used.
pub(crate) fn of_order(error: &RequestError) -> Failure {
    let hint = match error {
        RequestError::File { .. } => "check the permissions of the folder",
        RequestError::Corrupt { .. } => {
            "fix it or move it away: the request (goal, files, limits) is then lost; the replies are in the journal beside it"
        }
    };
    Failure { code: "order".to_owned(), ..Failure::failed(error.to_string(), hint) }
}

/// Why planning failed.
pub(crate) fn of_thinking(error: PlanningError, plan: &PlanId) -> Failure {
    match error {
        PlanningError::Store(error) => {
            let mut failure = Failure::from(error);
            failure.hint = format!("{}; then `waypost plan continue {plan}`: no reply is lost", failure.hint);
            failure
        }
        PlanningError::Journal(error) => of_journal(&error, Some(plan)),
    }
}
