//! How it is known that a person acted.

use bitcode::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// How it was proved that a person acted, from the weakest proof to the strongest.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    Encode,
    Decode,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Proof {
    /// A caller without a terminal that nothing marks as an agent or a worker.
    Account,
    /// The answer to a question that an agent's host asked.
    Client,
    /// A terminal, a session of the dashboard, or a person's token.
    Presence,
    /// The signature of an allowed key.
    Signature,
    /// The same by a security key that somebody touched.
    Touch,
}
