//! The current time. This is the only place of the backends that reads the system clock.

use std::time::{SystemTime, UNIX_EPOCH};

use waypost_core::Timestamp;

/// Returns the time of the system clock.
#[expect(clippy::disallowed_methods, reason = "this is the one place that asks the machine")]
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
