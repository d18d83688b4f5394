//! The two histories of a plan that a merge has put into one file: one of them is taken, whole. Reads and writes no file.

use std::collections::BTreeMap;

use crate::stored_version::StoredVersion;

/// A version, with the fingerprint of the readable file that was written with it.
pub(super) type Line = (StoredVersion, Option<String>);

/// Maximum number of versions of the other side that are described one by one.
const DESCRIBED_MAX: usize = 5;

/// Takes the side of each version that stands first in the file, and returns the versions of the other. After the sides have parted, a
/// version counts only if its hash follows from the one before it: a mixture of both is a plan that nobody wrote.
pub(super) fn one_side(found: BTreeMap<u64, Vec<Line>>) -> (BTreeMap<u64, Line>, Vec<StoredVersion>) {
    let is_same = |one: &StoredVersion, other: &StoredVersion| {
        (one.hash, one.at, &one.actor, &one.events) == (other.hash, other.at, &other.actor, &other.events)
    };
    let has_two = |lines: &Vec<Line>| lines.iter().any(|(entry, _)| !is_same(entry, &lines[0].0));
    let has_parted = found.values().any(has_two);
    let (mut taken, mut others): (BTreeMap<u64, Line>, Vec<StoredVersion>) = Default::default();
    let mut has_ended = false;
    for (version, lines) in found {
        let before = taken.get(&version.saturating_sub(1)).and_then(|(entry, _)| entry.hash);
        let follows = |entry: &StoredVersion| match (before, entry.hash) {
            (Some(before), Some(hash)) if has_parted && entry.chained_from.is_none() => {
                entry.hash_after(&before) == hash
            }
            _ => !has_ended,
        };
        let own = lines.iter().position(|(entry, _)| follows(entry));
        has_ended |= own.is_none();
        let own = own.map(|at| lines[at].clone());
        let differs = |entry: &StoredVersion| own.as_ref().is_none_or(|(own, _)| !is_same(own, entry));
        others.extend(lines.into_iter().map(|(entry, _)| entry).filter(differs));
        taken.extend(own.map(|own| (version, own)));
    }
    (taken, others)
}

/// Names the versions of the other side, which a repair leaves out.
pub(super) fn describe(others: &[StoredVersion]) -> Option<String> {
    let first = others.first()?;
    let name =
        |entry: &StoredVersion| format!("version {} ({} by {})", entry.version, entry.command, entry.actor);
    let mut names: Vec<String> = others.iter().take(DESCRIBED_MAX).map(name).collect();
    if others.len() > DESCRIBED_MAX {
        names.push(format!("{} more", others.len() - DESCRIBED_MAX));
    }
    let (from, names) = (first.version, names.join(", "));
    Some(format!(
        "from version {from} on, both sides of a merge are there: the one that stands first counts, and this of the other is left out: {names}"
    ))
}

/// Returns the versions of the other side with all that they did, a line each.
pub(super) fn left_out(others: &[StoredVersion]) -> String {
    let line = |StoredVersion { version, command, actor, at, events, .. }: &StoredVersion| {
        format!("\nleft out: version {version} ({command} by {actor} at {at}): {events}")
    };
    others.iter().map(line).collect()
}
