//! A version exactly as the log stores it, and its hash. The hash covers the content of the version and the hash of the
//! version before it, so that no version can be changed, removed or moved without changing all later hashes. It covers
//! neither the store nor the sequence number: a copy has the same hashes. Knows no backend.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use waypost_core::canonical::{CanonicalHasher, Hash};
use waypost_core::{BadActor, PlanId, Timestamp};
use waypost_text::from_hex;

use crate::error::{Result, StoreError};
use crate::rows::{PURGED, VersionRecord};

/// The JSON of a version that has no events any more.
pub(crate) const NO_EVENTS: &str = "[]";
/// The hash before the first version of a plan.
pub(crate) const HASH_OF_NOTHING: Hash = [0; 32];

/// One version as the log stores it: what its hash covers, and what a copy must not change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct StoredVersion {
    /// Its number among all versions of all plans.
    pub sequence: u64,
    /// The id of the plan.
    pub plan: PlanId,
    /// The number of the version in its plan, from 1.
    pub version: u64,
    /// When the version was written.
    pub at: Timestamp,
    /// The actor that wrote it.
    pub actor: String,
    /// The name of the command; several are joined with `+`.
    pub command: String,
    /// The JSON of the events, byte by byte; `[]` once they were pruned, purged or lost.
    #[serde(deserialize_with = "raw_json")]
    pub events: String,
    /// The hash of the version; `None` for versions that an earlier Waypost wrote, and for purged and lost ones.
    #[serde(default, deserialize_with = "optional_hash")]
    pub hash: Option<Hash>,
    /// The number of this version if the version before it has no hash: then its hash covers all earlier versions.
    #[serde(default)]
    pub chained_from: Option<u64>,
}

fn raw_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Box::<RawValue>::deserialize(deserializer)?.get().to_owned())
}

/// Reads a hash that is written as hexadecimal digits.
pub(crate) fn optional_hash<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Hash>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.as_deref().and_then(from_hex))
}

/// What a version follows from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Predecessor {
    /// The version before it, which has this hash.
    Version(Hash),
    /// All earlier versions, of which the latest has no hash: this is the hash of all of them together.
    Unhashed(Hash),
}

/// Hashes the versions that come before the first one with a hash, one by one.
pub(crate) struct EarlierVersions(CanonicalHasher);

impl EarlierVersions {
    pub(crate) fn new() -> Self {
        Self(CanonicalHasher::new("before", 1))
    }

    pub(crate) fn add(&mut self, version: &StoredVersion) {
        version.write_to(&mut self.0);
    }

    pub(crate) fn finish(self) -> Hash {
        self.0.finish()
    }
}

impl StoredVersion {
    fn write_to(&self, hasher: &mut CanonicalHasher) {
        hasher.text(self.plan.as_str()).number(self.version).number(self.at.as_micros() as u64);
        hasher.text(&self.actor).text(&self.command).text(&self.events);
    }

    /// Returns the hash that this version has after a version with the hash `before`.
    pub(crate) fn hash_after(&self, before: &Hash) -> Hash {
        let mut hasher = CanonicalHasher::new("version", 1);
        hasher.hash(before);
        self.write_to(&mut hasher);
        hasher.finish()
    }

    /// Sets the hash of a new version.
    pub(crate) fn after(self, predecessor: Predecessor) -> Self {
        let (before, chained_from) = match predecessor {
            Predecessor::Version(hash) => (hash, None),
            Predecessor::Unhashed(hash) => (hash, Some(self.version)),
        };
        Self { hash: Some(self.hash_after(&before)), chained_from, ..self }
    }

    /// Returns the version with its events parsed.
    pub(crate) fn record(&self) -> Result<VersionRecord> {
        let Self { sequence, version, at, .. } = *self;
        let corrupt = |detail: String| {
            let what = format!("version {version} of plan {}", self.plan);
            StoreError::Corrupt { what, detail }
        };
        let actor = self.actor.parse().map_err(|error: BadActor| corrupt(error.to_string()))?;
        let events = serde_json::from_str(&self.events).map_err(|error| corrupt(error.to_string()))?;
        let (plan, command) = (self.plan.clone(), self.command.clone());
        Ok(VersionRecord { sequence, plan, version, at, actor, command, events })
    }

    /// Returns whether the events are gone: no version is written without an event.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.events == NO_EVENTS
    }

    /// Returns the version as pruning leaves it: everything but the events stays.
    pub(crate) fn pruned(self) -> Self {
        Self { events: NO_EVENTS.to_owned(), ..self }
    }

    /// Returns the version as a purge leaves it in the log: sequence number, actor and time stay. The hash is removed
    /// as well, because it would confirm a guess of the events.
    pub(crate) fn purged(self) -> Self {
        Self { command: PURGED.to_owned(), hash: None, chained_from: None, ..self.pruned() }
    }
}
