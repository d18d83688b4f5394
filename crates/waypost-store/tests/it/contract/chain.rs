//! Versions whose hashes follow from each other, and stores whose history was changed behind Waypost's back.

use std::collections::BTreeSet;
use std::sync::Arc;

use waypost_core::canonical::Hash;
use waypost_core::{Command, Plan};
use waypost_store::{
    Anchor, IndexRows, PlanStore, PlanSummary, PruneMode, Record, Running, Store, StoredVersion, copy,
};
use waypost_testkit::{SeededRng, plan_of, task};

use super::tables::any_command;
use crate::kit::*;
use crate::place::Place;

fn stored(store: &Arc<dyn Store>, name: &str) -> Vec<StoredVersion> {
    look(store, |read| read.stored_versions(&plan(name), 0, 1_000))
}

fn latest_hash(store: &Arc<dyn Store>, name: &str) -> Option<Hash> {
    look(store, |read| Ok(read.plan_state(&plan(name))?.hash()))
}

/// The hash of a version as `docs/stores.md` specifies it.
fn hash_of(version: &StoredVersion, before: &Hash) -> Hash {
    let mut bytes = Vec::new();
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend((text.len() as u64).to_be_bytes());
        bytes.extend(text.as_bytes());
    };
    text(&mut bytes, "waypost/version/1");
    bytes.extend(before);
    text(&mut bytes, version.plan.as_str());
    bytes.extend(version.version.to_be_bytes());
    bytes.extend(version.at.as_micros().to_be_bytes());
    text(&mut bytes, &version.actor);
    text(&mut bytes, &version.command);
    text(&mut bytes, &version.events);
    ring::digest::digest(&ring::digest::SHA256, &bytes).as_ref().try_into().unwrap()
}

/// Six versions of plan `p`, and the plan that they lead to.
fn history() -> (Vec<StoredVersion>, Plan) {
    let place = Place::memory();
    let plans = place.plans();
    create_small(&plans, "p");
    for name in ["a", "b", "c", "d", "e"] {
        write(&plans, "p", add(name)).unwrap();
    }
    (stored(&place.store(), "p"), now(&plans, "p"))
}

/// Writes these versions into an empty store, as somebody could who can write the database.
fn forge(place: &Place, versions: &[StoredVersion], told: &Plan) {
    let forged = place.store().write(&mut |transaction| {
        transaction.import_versions(versions)?;
        transaction.replace_index(told, &PlanSummary::of(told), &IndexRows::of(told))
    });
    forged.unwrap();
}

/// The first break of plan `p`. The doctor must report the same.
fn first_break(place: &Place) -> String {
    let verified = place.plans().verify(&plan("p")).unwrap().unwrap();
    let found = verified.first_break.map(|found| found.to_string()).unwrap_or_default();
    let findings = place.plans().doctor(false).unwrap();
    assert!(findings.iter().any(|finding| finding.what == found), "{found}: {findings:?}");
    found
}

fn sound(plans: &PlanStore, name: &str) {
    let verified = plans.verify(&plan(name)).unwrap().unwrap();
    assert_eq!(verified.first_break, None);
    let hash = latest_hash(plans.store(), name).map(|hash| waypost_text::hex(&hash));
    assert_eq!((verified.version, verified.hash), (now(plans, name).version(), hash));
    assert_eq!(plans.doctor(false).unwrap(), []);
}

fn prune(plans: &PlanStore) {
    plans.prune(0, &ada(), PruneMode::Act, &mut |_| {}).unwrap();
}

/// Makes plan `p` of one task and has it done.
fn create_done(plans: &PlanStore) {
    create_small(plans, "p");
    for command in [Command::Activate, start("first"), finish("first")] {
        write(plans, "p", command).unwrap();
    }
}

pub(super) fn every_version_follows_from_the_one_before_it(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    create_small(&plans, "q");
    // Several versions in one transaction, then by another process.
    let together = ["a", "b", "c"].map(|name| request("p", vec![add(name)]));
    assert!(plans.write_each(together.to_vec()).iter().all(Result::is_ok));
    let by_bot = waypost_store::WriteRequest { by: bot(), ..request("p", vec![retitle("Größe \0 €")]) };
    place.plans().write(by_bot).unwrap();
    let versions = stored(&place.store(), "p");
    assert_eq!(versions.len(), 5);
    let mut before = Hash::default();
    for version in &versions {
        assert_eq!((version.hash, version.chained_from), (Some(hash_of(version, &before)), None));
        before = version.hash.unwrap();
    }
    assert_eq!(latest_hash(&place.store(), "p"), Some(before));
    assert_ne!(latest_hash(&place.store(), "q"), versions[0].hash, "the plan is inside");
    for name in ["p", "q"] {
        sound(&place.plans(), name);
    }
}

pub(super) fn a_changed_version_is_the_first_break(place: &Place) {
    let (good, told) = history();
    let mut versions = good.clone();
    versions[2].events = versions[2].events.replace("do b", "do something else");
    assert_ne!(versions, good);
    forge(place, &versions, &told);
    let found = first_break(place);
    assert!(found.starts_with("version 3 does not follow from version 2; last good: 20"), "{found}");
    assert!(found.ends_with(" by person:ada"), "{found}");
}

pub(super) fn a_removed_version_is_the_first_break(place: &Place) {
    let (mut versions, told) = history();
    versions.remove(2);
    forge(place, &versions, &told);
    let found = first_break(place);
    let named = match place.location.starts_with("file:") {
        true => "history/p.jsonl line 3 is damaged: version 4 of plan p stands here; last good: 20",
        false => "version 3 is missing from the history; last good: 20",
    };
    assert!(found.contains(named), "{found}");
}

pub(super) fn swapped_versions_are_the_first_break(place: &Place) {
    let (mut versions, told) = history();
    let (events, hash) = (versions[4].events.clone(), versions[4].hash);
    versions[4].events = std::mem::replace(&mut versions[3].events, events);
    versions[4].hash = std::mem::replace(&mut versions[3].hash, hash);
    forge(place, &versions, &told);
    let found = first_break(place);
    assert!(found.starts_with("version 4 does not follow from version 3; last good: 20"), "{found}");
}

pub(super) fn a_changed_snapshot_is_the_first_break(place: &Place) {
    let (versions, told) = history();
    forge(place, &versions, &told);
    sound(&place.plans(), "p");
    let early = place.plans().at_version(&plan("p"), 4).unwrap();
    let mut draft = early.to_draft();
    draft.spec.title = "another plan".to_owned();
    let bytes = Plan::from_trusted_draft(plan("p"), draft).snapshot();
    place.store().write(&mut |transaction| transaction.put(Record::Snapshot(&plan("p"), 4, &bytes))).unwrap();
    let found = first_break(place);
    let named = "the snapshot of version 4 differs from what the events say; last good: 20";
    assert!(found.starts_with(named), "{found}");
}

pub(super) fn a_history_that_was_cut_or_written_anew_is_shown_by_an_anchor(place: &Place) {
    let (versions, told) = history();
    let anchor = |version: &StoredVersion| -> Anchor {
        let hash = waypost_text::hex(&version.hash.unwrap());
        format!("p {} {hash}", version.version).parse().unwrap()
    };
    let (early, late) = (anchor(&versions[1]), anchor(&versions[5]));
    let plans = place.plans();
    let missing = plans.check_anchor(&early).unwrap().unwrap();
    assert!(missing.contains("not in this store"), "{missing}");
    let shorter = Place::memory();
    forge(&shorter, &versions, &told);
    let cut = shorter.plans().at_version(&plan("p"), 4).unwrap();
    forge(place, &versions[..4], &cut);
    sound(&place.plans(), "p");
    assert_eq!(plans.check_anchor(&early).unwrap(), None);
    let found = plans.check_anchor(&late).unwrap();
    assert_eq!(found.as_deref(), Some("its history ends with version 4, before version 6"));
    for name in ["x", "y"] {
        write(&plans, "p", add(name)).unwrap();
    }
    sound(&place.plans(), "p");
    let found = plans.check_anchor(&late).unwrap();
    assert_eq!(found.as_deref(), Some("version 6 is not the one of the anchor"));
    for line in ["p 1", "p one 00", "p 1 00", "p 1 zz", "p 1 2 3", ""] {
        assert!(line.parse::<Anchor>().is_err(), "{line}");
    }
}

pub(super) fn a_pruned_plan_is_sound_and_its_next_version_follows_from_the_kept_hash(place: &Place) {
    let plans = place.plans();
    create_done(&plans);
    let (before, versions) = (latest_hash(&place.store(), "p"), stored(&place.store(), "p"));
    prune(&plans);
    assert_eq!(latest_hash(&place.store(), "p"), before);
    sound(&place.plans(), "p");
    write(&place.plans(), "p", Command::Archive).unwrap();
    let after = stored(&place.store(), "p");
    assert_eq!(after[4].hash, Some(hash_of(&after[4], &before.unwrap())));
    for (was, is) in versions.iter().zip(&after) {
        assert_eq!((was.hash, is.events.as_str()), (is.hash, "[]"));
    }
    sound(&place.plans(), "p");
}

pub(super) fn versions_without_hashes_are_covered_by_the_first_version_that_has_one(place: &Place) {
    let (mut versions, told) = history();
    for version in &mut versions {
        version.hash = None;
    }
    forge(place, &versions, &told);
    assert_eq!(latest_hash(&place.store(), "p"), None);
    sound(&place.plans(), "p");
    let plans = place.plans();
    for name in ["x", "y"] {
        write(&plans, "p", add(name)).unwrap();
    }
    sound(&place.plans(), "p");
    let after = stored(&place.store(), "p");
    assert_eq!(after[..6], versions[..], "they are left as they are");
    let started: Vec<_> = after.iter().map(|version| version.chained_from).collect();
    assert_eq!(started[5..], [None, Some(7), None]);
    assert_eq!(plans.verify(&plan("p")).unwrap().unwrap().chained_from, Some(7));
    assert_eq!(after[7].hash, Some(hash_of(&after[7], &after[6].hash.unwrap())));
    // A change of any of them is found.
    let changed = Place::memory();
    let mut versions = after.clone();
    versions[1].actor = "agent:robin".to_owned();
    forge(&changed, &versions, &now(&plans, "p"));
    let found = first_break(&changed);
    assert!(found.starts_with("version 7 does not follow from version 6"), "{found}");
}

pub(super) fn a_copy_keeps_the_hashes_of_random_histories(place: &Place) {
    let plans = place.plans();
    let mut dice = SeededRng::new(40);
    for name in ["p", "q", "gone"] {
        create(&plans, name, plan_of([task("first", &[]), task("second", &["first"])]));
        for round in 0..25 {
            let current = now(&plans, name);
            let _often_refused = write(&plans, name, any_command(&mut dice, &current, round));
        }
    }
    plans.purge(&plan("gone"), &ada()).unwrap();
    prune(&plans);
    let mut targets = vec![Place::memory(), Place::file(), Place::sqlite()];
    if place.location.starts_with("postgres:") {
        targets.push(Place::postgres());
    }
    targets.retain(|target| target.location != place.location);
    for target in targets {
        copy(&*place.store(), &*target.store(), Running::Allow, &mut |_| {}).unwrap();
        for name in ["p", "q", "gone"] {
            assert_eq!(stored(&target.store(), name), stored(&place.store(), name));
            assert_eq!(latest_hash(&target.store(), name), latest_hash(&place.store(), name));
        }
        write(&target.plans(), "p", retitle("it goes on")).unwrap();
        for name in ["p", "q"] {
            sound(&target.plans(), name);
        }
    }
}

pub(super) fn a_purged_plan_leaves_no_hash(place: &Place) {
    let plans = place.plans();
    create_done(&plans);
    plans.purge(&plan("p"), &ada()).unwrap();
    for version in stored(&place.store(), "p") {
        assert_eq!((version.hash, version.chained_from, version.events.as_str()), (None, None, "[]"));
    }
    assert_eq!(latest_hash(&place.store(), "p"), None);
    assert_eq!(place.plans().verify(&plan("p")).unwrap(), None);
}

pub(super) fn a_store_has_an_id_of_its_own_that_stays(place: &Place) {
    let id = |store: &Arc<dyn Store>| look(store, |read| Ok(read.store_state()?.id));
    let own = id(&place.store());
    assert_eq!(own.len(), 32);
    assert!(own.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')), "{own}");
    create_small(&place.plans(), "p");
    let ids: BTreeSet<String> = (0..3).map(|_| id(&place.store())).collect();
    assert_eq!(ids, BTreeSet::from([own.clone()]));
    assert_ne!(id(&Place::memory().store()), own);
    assert_ne!(id(&Place::file().store()), id(&Place::file().store()));
}
