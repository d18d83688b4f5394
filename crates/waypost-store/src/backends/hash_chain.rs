//! What the next version of a plan follows from. Knows no backend.

use waypost_core::PlanId;
use waypost_core::canonical::Hash;

use crate::error::Result;
use crate::store::Read;
use crate::stored_version::{EarlierVersions, HASH_OF_NOTHING, Predecessor};

/// Maximum number of versions that are read at a time.
const VERSIONS_READ_MAX: usize = 1_000;

/// Returns what the version after `version` follows from, given the hash of `version`. Earlier versions are only read
/// if it has none: once for each plan that an earlier Waypost wrote.
pub(super) fn predecessor(
    read: &mut dyn Read,
    plan: &PlanId,
    version: u64,
    hash: Option<Hash>,
) -> Result<Predecessor> {
    match hash {
        Some(hash) => return Ok(Predecessor::Version(hash)),
        None if version == 0 => return Ok(Predecessor::Version(HASH_OF_NOTHING)),
        None => {}
    }
    let (mut earlier, mut after) = (EarlierVersions::new(), 0);
    loop {
        let page = read.stored_versions(plan, after, VERSIONS_READ_MAX)?;
        let Some(last) = page.last() else { return Ok(Predecessor::Unhashed(earlier.finish())) };
        after = last.version;
        page.iter().for_each(|version| earlier.add(version));
    }
}
