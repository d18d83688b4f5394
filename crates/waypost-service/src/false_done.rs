//! Detects false "done" reports: a model that could not do a task tends to report it as done and to admit the failure in the
//! result. Dependent tasks then build on nothing.

use waypost_core::{ActorKind, TaskId};

use crate::caller::Caller;
use crate::error::ServiceError;

/// How people and models phrase that they did not do something.
const FAILURE_PHRASES: &str = include_str!("failure_phrases.txt");

/// Words before a phrase that negate it, as in "no longer unable to". "Tests that failed to build now do" is not recognised.
const NEGATIONS: [&str; 4] = ["no longer ", "not ", "never ", "nothing "];

/// Refuses an agent's task as done if the result admits failure, unless the agent is sure: a phrase alone proves nothing.
pub(crate) fn check_false_done(
    by: &Caller,
    task: &TaskId,
    result: Option<&str>,
    sure: bool,
) -> Result<(), ServiceError> {
    let is_doubted = by.actor.kind == ActorKind::Agent && !sure;
    match result.filter(|_| is_doubted).and_then(find_failure_phrase) {
        Some(phrase) => Err(ServiceError::DoubtfulDone { task: task.clone(), phrase }),
        None => Ok(()),
    }
}

/// Returns the first phrase in a result that admits failure.
pub fn find_failure_phrase(result: &str) -> Option<&'static str> {
    // People and models use both apostrophes.
    let text = result.to_lowercase().replace('\u{2019}', "'");
    FAILURE_PHRASES.lines().find(|phrase| {
        text.match_indices(phrase).any(|(at, _)| {
            let before = &text[..at];
            let after = &text[at + phrase.len()..];
            let begins = !before.chars().next_back().is_some_and(char::is_alphanumeric);
            let ends = !after.chars().next().is_some_and(char::is_alphanumeric);
            begins && ends && !NEGATIONS.iter().any(|negation| before.ends_with(negation))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_admit_failure_are_noticed() {
        for (result, words) in [
            ("Could not reach the server", "could not"),
            ("I was UNABLE TO find the file.", "unable to"),
            ("We couldn\u{2019}t install it", "couldn't"),
            ("Built, but failed to publish", "failed to"),
            ("partially migrated", "partially"),
            ("The login is not implemented yet", "not implemented"),
        ] {
            assert_eq!(find_failure_phrase(result), Some(words), "{result}");
        }
    }

    #[test]
    fn results_that_admit_nothing_are_believed() {
        for result in [
            "",
            "Built and published 3 crates",
            "The server is no longer unable to start",
            "All tests pass, nothing was left incompletely done",
            "Renamed `cannotation` to `annotation`",
        ] {
            assert_eq!(find_failure_phrase(result), None, "{result}");
        }
    }
}
