//! Reads the goal of a plan.

use waypost_cli::error::{Failure, Outcome};
use waypost_cli::files;

/// Reads the goal from the command line, or from standard input if it is `-`.
pub(crate) fn read_goal(word: &str) -> Outcome<String> {
    let goal = if word == "-" { files::read("-")? } else { word.to_owned() };
    let goal = goal.trim().to_owned();
    if goal.is_empty() {
        return Err(Failure::usage("the goal is empty", "state the goal"));
    }
    let max = waypost_core::limits::TEXT_BYTES_MAX;
    if goal.len() > max {
        let message = format!("the goal has {} bytes, over the limit of {max}", goal.len());
        return Err(Failure::usage(message, "shorten it, and pass the rest with --file"));
    }
    Ok(goal)
}
