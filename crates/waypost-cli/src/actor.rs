//! The account and the caller of this process, with the failures of the command line.

use std::sync::OnceLock;

use waypost_account::{Account, CallerError, Evidence};
use waypost_core::Actor;

use crate::error::{Failure, Outcome};

/// The account that this process acts for.
pub fn account() -> &'static Account {
    static ACCOUNT: OnceLock<Account> = OnceLock::new();
    ACCOUNT.get_or_init(Account::current)
}

/// Collects what shows who calls.
pub fn evidence() -> Evidence {
    // A variable is evidence even if its value is not text.
    let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
    Evidence::collect(std::env::vars_os().map(|(name, value)| (text(name), text(value))))
}

/// Returns the caller: the one that the flag or the variable names, if the evidence allows it.
pub fn find(flag: Option<&str>) -> Outcome<Actor> {
    evidence().caller(flag, &account().name).map_err(|error| {
        let (message, hint) = (error.to_string(), error.hint());
        match error {
            CallerError::BadActor { .. } => Failure::usage(message, hint),
            CallerError::NotThatActor { .. } => {
                Failure { code: "not_that_actor".to_owned(), ..Failure::failed(message, hint) }
            }
        }
    })
}
