//! What holds of several writes of one thing: those that no other write names, and for texts what they come to together.

use std::collections::{BTreeSet, HashMap};

use crate::ids::RecordId;
use waypost_core::merged_texts;

/// The number of a record in the total order, and the place of an action in it.
pub(super) type At = (u32, u32);

/// One write. The writes of one thing are in the total order.
#[derive(Clone)]
pub(super) struct Write<'a, T> {
    /// The number of the record, and the place of the action in it.
    pub(super) at: At,
    pub(super) id: RecordId,
    pub(super) over: &'a [RecordId],
    pub(super) value: T,
}

pub(super) fn places_of<T>(writes: &[Write<'_, T>]) -> HashMap<RecordId, usize> {
    writes.iter().enumerate().map(|(place, write)| (write.id, place)).collect()
}

/// How often the common text of texts is itself merged of several. Beyond that, a person is asked.
const COMMON_DEPTH_MAX: usize = 32;

/// Merges the texts of the facts, which are places in `writes`, against the newest text that all of them replaced: if
/// that is several, against what these come to together. `None` if they overlap, or if there is no such text.
pub(super) fn merged(initial: Option<&str>, writes: &[Write<'_, &str>], facts: &[usize]) -> Option<String> {
    let places = places_of(writes);
    // The facts, what they have in common, what that has in common, and so on, until it is one text.
    let mut levels = vec![facts.to_vec()];
    let mut base = loop {
        let level = levels.last()?;
        let newest = newest_common(writes, &places, level);
        match newest[..] {
            [] => break initial?.to_owned(),
            [one] => break writes[one].value.to_owned(),
            _ if levels.len() == COMMON_DEPTH_MAX => return None,
            _ => levels.push(newest),
        }
    };
    for level in levels.iter().rev() {
        let mut texts = level.iter().map(|&place| writes[place].value);
        let first = texts.next()?.to_owned();
        base = texts.try_fold(first, |merged, text| merged_texts(&base, &merged, text))?;
    }
    Some(base)
}

/// Returns the writes that all of these replaced, without those that others of them replaced.
fn newest_common<T>(
    writes: &[Write<'_, T>],
    places: &HashMap<RecordId, usize>,
    facts: &[usize],
) -> Vec<usize> {
    let replaced = |from: &[usize]| {
        let (mut seen, mut stack) = (BTreeSet::new(), from.to_vec());
        while let Some(place) = stack.pop() {
            let older = writes[place].over.iter().filter_map(|id| places.get(id)).copied();
            stack.extend(older.filter(|&older| seen.insert(older)).collect::<Vec<usize>>());
        }
        seen
    };
    let mut common: Option<BTreeSet<usize>> = None;
    for &fact in facts {
        let seen = replaced(&[fact]);
        common = Some(match common {
            None => seen,
            Some(common) => common.intersection(&seen).copied().collect(),
        });
    }
    let common: Vec<usize> = common.into_iter().flatten().collect();
    let older = replaced(&common);
    common.into_iter().filter(|place| !older.contains(place)).collect()
}
