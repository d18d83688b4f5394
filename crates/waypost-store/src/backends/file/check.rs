//! Checks all files of the folder and reports the damage. Changes nothing.

use std::collections::BTreeMap;

use waypost_core::PlanId;

use super::fs;
use super::history_file::ReadPosition;
use super::layout::{Layout, StoreFile};
use super::plan_cache::{Facts, NO_HISTORY, PlanCacheEntry, Readable};
use super::pruned;
use super::repair;
use super::small_files::small_files;
use crate::error::{Result, StoreError};

/// Returns each damage as one line.
pub(super) fn check(layout: &Layout) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let store = match StoreFile::read(layout) {
        Ok(file) => Some(file),
        Err(error) => {
            note(&mut wrong, error)?;
            None
        }
    };
    let mut numbers: BTreeMap<u64, PlanId> = BTreeMap::new();
    let mut all_read = true;
    for name in fs::names(&layout.histories(), ".jsonl")? {
        match PlanId::new(name.clone()) {
            Err(error) => {
                wrong.push(format!("{}: {error}", layout.histories().join(name + ".jsonl").display()))
            }
            Ok(id) => {
                let outcome = check_plan(layout, &id, &mut wrong, &mut numbers);
                if let Err(error) = outcome {
                    all_read = false;
                    note(&mut wrong, error)?;
                    if let (Some(_), Some(line)) = (&store, wrong.last_mut()) {
                        line.push_str("; ");
                        line.push_str(&repair::describe_intact(layout, &id)?);
                    }
                }
            }
        }
    }
    for name in fs::names(&layout.plans(), ".json")? {
        let path = layout.plans().join(format!("{name}.json"));
        match PlanId::new(name) {
            Err(error) => wrong.push(format!("{}: {error}", path.display())),
            Ok(id) if fs::Stamp::of(&layout.history(&id))?.is_none() => {
                all_read = false;
                wrong.push(format!("{}: {NO_HISTORY}", path.display()));
            }
            Ok(_) => {}
        }
    }
    for damage in small_files(layout).into_iter().filter_map(|(_, checked)| checked.err()) {
        note(&mut wrong, damage)?;
    }
    for name in fs::names(&layout.edited(), ".json")? {
        let path = layout.edited().join(name + ".json");
        let keeps = "keeps what was written into a plan's file by hand; take it over or delete it";
        wrong.push(format!("{} {keeps}", path.display()));
    }
    if let Some(store) = store.filter(|_| all_read) {
        check_numbers(layout, &store, &numbers, &mut wrong);
    }
    Ok(wrong)
}

/// Records damage and returns every other error.
fn note(wrong: &mut Vec<String>, error: StoreError) -> Result<()> {
    match error {
        StoreError::Corrupt { .. } | StoreError::TooNew { .. } => {
            wrong.push(error.to_string());
            Ok(())
        }
        StoreError::Busy
        | StoreError::HolderStopped { .. }
        | StoreError::Files { .. }
        | StoreError::DiskFull { .. }
        | StoreError::StoreRemoved { .. }
        | StoreError::Database(_)
        | StoreError::Unreachable(_)
        | StoreError::NotADatabase(_)
        | StoreError::Pruned { .. }
        | StoreError::BadCursor(_)
        | StoreError::BadLocation(_) => Err(error),
    }
}

fn check_plan(
    layout: &Layout,
    id: &PlanId,
    wrong: &mut Vec<String>,
    numbers: &mut BTreeMap<u64, PlanId>,
) -> Result<()> {
    let (path, history) = (layout.plan(id), layout.history(id));
    let mut marks = ReadPosition::default();
    marks.catch_up(&history, id)?;
    for number in marks.sequences() {
        if let Some(other) = numbers.insert(number, id.clone()) {
            wrong.push(format!("plans {other} and {id} both have version number {number} of the log"));
        }
    }
    let Some(known) = PlanCacheEntry::read(layout, id)? else { return Ok(()) };
    wrong.extend(known.warning(id, &path));
    // A fingerprint proves that the file is as it was written; only the events prove that its content is right.
    if matches!(known.readable, Readable::Current) && !known.tail.purged {
        let truth = Facts::of(&pruned::replay(layout, id)?);
        if known.facts.as_ref().is_some_and(|facts| facts.head != truth.head || facts.rows != truth.rows) {
            let path = path.display();
            wrong.push(format!("{path} differs from its history; delete it, and the next write renews it"));
        }
    }
    Ok(())
}

/// Checks that the sequence numbers of the log have no gaps and do not exceed the last one.
fn check_numbers(
    layout: &Layout,
    file: &StoreFile,
    numbers: &BTreeMap<u64, PlanId>,
    wrong: &mut Vec<String>,
) {
    let (store, last) = (layout.store(), file.sequence);
    if let Some((number, plan)) = numbers.last_key_value().filter(|(number, _)| **number > last) {
        let store = store.display();
        wrong.push(format!(
            "{store} says that {last} versions were written, but plan {plan} has number {number}"
        ));
    }
    let expected = 1..=last;
    if let Some(missing) = expected.clone().find(|number| !numbers.contains_key(number)) {
        let missing_total = expected.count() - numbers.range(..=last).count();
        if missing_total as u64 == file.lost {
            return;
        }
        let store = store.display();
        wrong.push(format!(
            "{store} says that {last} versions were written, but number {missing} ({missing_total} in all) is in no history: restore the files from a backup, or accept the loss with a repair"
        ));
    }
}
