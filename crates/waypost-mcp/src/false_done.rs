//! False "done" reports: a model that could not do a task tends to report it as done and to admit it in the result; dependent
//! tasks then build on nothing.

/// What to tell whoever reports such a thing as done. It is written down as reported: words alone prove nothing.
pub(crate) const NUDGE: &str = "if it was not done, report it as failed";

/// How people and models say that they did not do something.
const FAILURE_PHRASES: &str = include_str!("failure_phrases.txt");

/// Words before an admission that turn it around: "no longer unable to", "tests that failed to build now do" is beyond us.
const NEGATIONS: [&str; 4] = ["no longer ", "not ", "never ", "nothing "];

/// The words of a result that say that it was not done, if there are any.
pub(crate) fn find_failure_phrase(result: &str) -> Option<&'static str> {
    // People and models write both apostrophes.
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
