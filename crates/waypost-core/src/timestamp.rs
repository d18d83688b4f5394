//! Timestamps: parsing and formatting. Does not read the clock, which belongs to the caller.

use std::fmt;
use std::time::Duration;

use bitcode::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// A point in time in UTC, with microsecond precision.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Encode, Decode,
)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

/// Text that is not a timestamp.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time such as 2026-03-22T10:00:00Z")]
pub struct BadTime(pub String);

impl Timestamp {
    /// Creates a timestamp from microseconds since 1970, clamped to the range that can be formatted.
    pub fn from_micros(micros: i64) -> Self {
        let (min, max) = (jiff::Timestamp::MIN.as_microsecond(), jiff::Timestamp::MAX.as_microsecond());
        Self(micros.clamp(min, max))
    }

    /// Returns microseconds since 1970.
    pub fn as_micros(self) -> i64 {
        self.0
    }

    /// Returns the time `seconds` later.
    pub fn plus_seconds(self, seconds: u64) -> Self {
        let micros = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000);
        Self::from_micros(self.0.saturating_add(micros))
    }

    /// Returns the time `seconds` earlier.
    pub fn minus_seconds(self, seconds: u64) -> Self {
        let micros = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000);
        Self::from_micros(self.0.saturating_sub(micros))
    }

    /// Returns the time since `earlier`; zero if that is not earlier, since clocks can be set back.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Parses RFC 3339 and the variants that programs write: any offset, none (taken as UTC), or both (`+00:00Z`).
    pub fn parse(text: &str) -> Result<Self, BadTime> {
        let bad = || BadTime(text.to_owned());
        let plain = match text.strip_suffix('Z') {
            Some(rest) if rest.len() > 6 && matches!(rest.as_bytes()[rest.len() - 6], b'+' | b'-') => rest,
            _ => text,
        };
        if let Ok(moment) = plain.parse::<jiff::Timestamp>() {
            return Ok(Self(moment.as_microsecond()));
        }
        let civil = plain.parse::<jiff::civil::DateTime>().map_err(|_| bad())?;
        let moment = civil.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| bad())?;
        Ok(Self(moment.timestamp().as_microsecond()))
    }

    /// Formats the time in UTC, to the second, for people: `2026-03-22 10:00:00`.
    pub fn to_the_second(self) -> String {
        let text = self.to_string();
        text.get(..19).unwrap_or(&text).replace('T', " ")
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(moment) => write!(f, "{moment}"),
            Err(_) => f.write_str("1970-01-01T00:00:00Z"),
        }
    }
}

impl From<Timestamp> for String {
    fn from(at: Timestamp) -> String {
        at.to_string()
    }
}

impl TryFrom<String> for Timestamp {
    type Error = BadTime;
    fn try_from(text: String) -> Result<Self, BadTime> {
        Self::parse(&text)
    }
}
