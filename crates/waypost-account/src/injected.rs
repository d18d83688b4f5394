//! For tests only: replaces the account and the evidence of ancestors, so that a test depends neither on the account nor
//! on the agent host that runs it. Compiled with the feature `injected`, which programs for users do not have.

use std::env;
use std::path::PathBuf;

/// The user's id; the real one if it is not set.
const UID: &str = "WAYPOST_INJECTED_UID";
/// The user's name.
const NAME: &str = "WAYPOST_INJECTED_NAME";
/// The user's home; empty for an account without one. Folders above it are not examined: those of a test are in `/tmp`.
const HOME: &str = "WAYPOST_INJECTED_HOME";
/// The ancestors, nearest first, as `PID VARIABLE=VALUE …` separated by `;`. Empty: there are none.
const ANCESTORS: &str = "WAYPOST_INJECTED_ANCESTORS";

/// The folder of the operator's files.
const ETC: &str = "WAYPOST_INJECTED_ETC";
/// What the person at the terminal types in answer to every question, on a screen of any size. Empty: there is no
/// terminal.
const TERMINAL: &str = "WAYPOST_INJECTED_TERMINAL";

pub(crate) fn terminal() -> Option<String> {
    env::var(TERMINAL).ok()
}

pub(crate) fn operator_folder() -> Option<PathBuf> {
    env::var_os(ETC).map(PathBuf::from)
}

pub(crate) fn uid() -> Option<u32> {
    env::var(UID).ok()?.parse().ok()
}

pub(crate) fn name() -> Option<String> {
    env::var(NAME).ok()
}

pub(crate) fn home() -> Option<PathBuf> {
    env::var_os(HOME).map(PathBuf::from)
}

/// The process id of an ancestor, and its variables.
type Ancestor = (u32, Vec<(String, String)>);

pub(crate) fn ancestors() -> Option<Vec<Ancestor>> {
    let text = env::var(ANCESTORS).ok()?;
    let process = |part: &str| {
        let mut words = part.split_whitespace();
        let id = words.next()?.parse().ok()?;
        let pairs = words.filter_map(|word| word.split_once('='));
        Some((id, pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
    };
    Some(text.split(';').filter_map(process).collect())
}
