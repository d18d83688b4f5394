//! The folder of JSON files: its exact shape, and what happens when people and programs touch it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};

use waypost_core::{Command, Draft, Timestamp};
use waypost_store::{FileStore, NewPlan, PlanStore, Record, StoreError, WriteError};
use waypost_testkit::chain;

use crate::kit::*;
use crate::place::Place;
use crate::wrapped::Wrapped;

pub(crate) fn root(place: &Place) -> PathBuf {
    place.folder().join("plans")
}

pub(crate) fn readable(place: &Place, name: &str) -> PathBuf {
    root(place).join(format!("plans/{name}.json"))
}

pub(crate) fn history(place: &Place, name: &str) -> PathBuf {
    root(place).join(format!("history/{name}.jsonl"))
}

pub(crate) fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// Damage as it is told to whoever addresses a plan.
pub(crate) fn damage<R>(answer: Result<R, WriteError>) -> String {
    match answer.map(drop) {
        Err(WriteError::Store(error @ StoreError::Corrupt { .. })) => error.to_string(),
        other => panic!("expected damage to be named, got {other:?}"),
    }
}

/// A folder with two plans, `p` at version 2 and `q`, that nothing has in memory.
pub(crate) fn two_plans() -> Place {
    let place = Place::file();
    let plans = place.plans();
    create_small(&plans, "p");
    write(&plans, "p", add("second")).unwrap();
    create_small(&plans, "q");
    place
}

/// Whatever happened to `p`, the rest of the store goes on.
pub(crate) fn others_go_on(place: &Place) {
    let plans = place.plans();
    write(&plans, "q", retitle("still here")).unwrap();
    assert!(list(&plans, &everything()).contains(&"q".to_owned()));
    create_small(&plans, "new");
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn the_files_have_exactly_this_shape() {
    let place = Place::file();
    let seconds = AtomicI64::new(1_774_000_000);
    let clock = move || Timestamp::from_micros(seconds.fetch_add(1, Ordering::Relaxed) * 1_000_000);
    let plans = PlanStore::new(Wrapped::with_clock(place.store(), clock));
    create(&plans, "moon", chain(2));
    let started =
        waypost_store::WriteRequest { lease_seconds: Some(60), ..request("moon", vec![start("t0")]) };
    plans.write(started).unwrap();
    let shapes = [
        (readable(&place, "moon"), include_str!("../fixtures/file-store/plans/moon.json")),
        (history(&place, "moon"), include_str!("../fixtures/file-store/history/moon.jsonl")),
        (root(&place).join("store.json"), include_str!("../fixtures/file-store/store.json")),
        (root(&place).join("leases.json"), include_str!("../fixtures/file-store/leases.json")),
        (
            root(&place).join(".gitignore"),
            ".bell\n.lock\n.journal.json\n.pending/\n.snapshots/\nleases.json\nsubscriptions.json\nworkers.json\nshared.json\n.sharing\n.relay-*\n",
        ),
    ];
    let id = look(&place.store(), |read| Ok(read.store_state()?.id));
    for (path, expected) in shapes {
        // The only random part.
        let expected = expected.replace("0123456789abcdef0123456789abcdef", &id);
        assert_eq!(text(&path), expected, "{}", path.display());
    }
}

#[test]
fn a_folder_without_hashes_is_upgraded_and_its_next_version_covers_the_earlier_ones() {
    let place = Place::file();
    drop(place.store());
    let old = [
        (readable(&place, "moon"), include_str!("../fixtures/file-store-1/plans/moon.json")),
        (history(&place, "moon"), include_str!("../fixtures/file-store-1/history/moon.jsonl")),
        (root(&place).join("store.json"), include_str!("../fixtures/file-store-1/store.json")),
        (root(&place).join("leases.json"), include_str!("../fixtures/file-store-1/leases.json")),
    ];
    for (path, content) in &old {
        fs::write(path, content).unwrap();
    }
    let plans = place.plans();
    assert_eq!(plans.doctor(false).unwrap(), []);
    let (_, old_history) = &old[1];
    assert_eq!(text(&history(&place, "moon")), *old_history, "old lines stay as they are");
    write(&plans, "moon", retitle("To the moon")).unwrap();
    let lines = text(&history(&place, "moon"));
    let line = lines.strip_prefix(old_history).unwrap();
    let hash = look(plans.store(), |read| Ok(read.plan_state(&plan("moon"))?.hash())).unwrap();
    let end = format!("\"hash\":\"{}\",\"chained_from\":3}}\n", waypost_text::hex(&hash));
    assert!(line.ends_with(&end), "{line}");
    let id = look(plans.store(), |read| Ok(read.store_state()?.id));
    assert_eq!(id.len(), 32);
    let fresh = place.plans();
    assert_eq!(fresh.doctor(false).unwrap(), []);
    assert_eq!(look(fresh.store(), |read| Ok(read.store_state()?.id)), id);
    fs::write(history(&place, "moon"), lines.replace("\"attempt\":1", "\"attempt\":2")).unwrap();
    let found = fresh.verify(&plan("moon")).unwrap().unwrap().first_break.unwrap().to_string();
    assert!(found.starts_with("version 3 does not follow from version 2"), "{found}");
}

#[test]
fn a_repaired_history_is_sound_and_its_next_version_covers_what_is_left() {
    let place = Place::file();
    let plans = place.plans();
    create_small(&plans, "p");
    for name in ["a", "b", "c"] {
        write(&plans, "p", add(name)).unwrap();
    }
    for (lost, chained_from) in [(1, None), (5, Some(7))] {
        let whole = text(&history(&place, "p"));
        let mut lines: Vec<&str> = whole.lines().collect();
        lines[lost] = "{}";
        fs::write(history(&place, "p"), lines.join("\n") + "\n").unwrap();
        assert!(place.plans().verify(&plan("p")).unwrap().unwrap().first_break.is_some());
        place.plans().doctor(true).unwrap();
        let fresh = place.plans();
        assert_eq!(fresh.doctor(false).unwrap(), []);
        write(&fresh, "p", retitle(&format!("without line {lost}"))).unwrap();
        write(&fresh, "p", add(&format!("after-{lost}"))).unwrap();
        assert_eq!(place.plans().doctor(false).unwrap(), []);
        assert_eq!(fresh.verify(&plan("p")).unwrap().unwrap().chained_from, chained_from);
    }
}

#[test]
fn a_readable_file_that_was_broken_by_hand_is_named_and_never_overwritten() {
    for broken in ["", "{", "[]", "{\"title\": 3}", "<<<<<<< ours\n"] {
        let place = two_plans();
        fs::write(readable(&place, "p"), broken).unwrap();
        let plans = place.plans();
        assert_eq!(task_names(&now(&plans, "p")), ["first", "second"], "the history is the truth");
        let told = damage(write(&plans, "p", add("third")));
        assert!(told.starts_with(&format!("{} is damaged", readable(&place, "p").display())), "{told}");
        others_go_on(&place);
        let found = plans.store().check().unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("plans/p.json is damaged"), "{found:?}");
        assert_eq!(text(&readable(&place, "p")), broken, "it is left as it is");
        // The history is the truth: without the broken file the plan is back.
        fs::remove_file(readable(&place, "p")).unwrap();
        assert_eq!(task_names(&now(&plans, "p")), ["first", "second"]);
    }
}

#[test]
fn a_damaged_line_of_a_history_is_named_by_its_number() {
    let place = two_plans();
    let whole = text(&history(&place, "p"));
    let lines: Vec<&str> = whole.lines().collect();
    let shapes = [
        (format!("{}\n{}\n", lines[0], &lines[1][..40]), "line 2"),
        (format!("{}\n{}", lines[0], &lines[1][..40]), "line 2"),
        (format!("{}\n{}", lines[0], lines[1]), "line 2"),
        (format!("{}\n{}\n", &lines[0][..40], lines[1]), "line 1"),
        (format!("{}\n", lines[1]), "line 1"),
        (format!("{}\n{}\n{}\n", lines[0], lines[1], lines[1]), "line 3"),
        (String::new(), "line 1"),
    ];
    for (damaged, where_it_is) in shapes {
        fs::write(history(&place, "p"), &damaged).unwrap();
        let plans = place.plans();
        let found = plans.store().check().unwrap().join("\n");
        assert!(found.contains(&format!("history/p.jsonl {where_it_is} is damaged")), "{damaged:?}: {found}");
        let told = damage(write(&plans, "p", add("third")));
        assert!(told.contains("history/p.jsonl"), "{damaged:?}: {told}");
        assert_eq!(text(&history(&place, "p")), damaged, "it is left as it is");
        fs::write(history(&place, "p"), &whole).unwrap();
        assert_eq!(plans.store().check().unwrap(), Vec::<String>::new(), "put right, all is well");
    }
    others_go_on(&place);
}

#[test]
fn what_somebody_wrote_into_a_readable_file_is_reported_and_does_not_count() {
    let place = two_plans();
    let edited = text(&readable(&place, "p")).replace("\"a plan\"", "\"my plan\"");
    fs::write(readable(&place, "p"), &edited).unwrap();
    let plans = place.plans();
    assert_eq!(now(&plans, "p").spec().title, "a plan");
    assert_eq!(head(plans.store(), "p").unwrap().title, "a plan");
    let found = plans.store().check().unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("plans/p.json was edited by hand"), "{found:?}");
    assert!(found[0].ends_with("to apply it, update plan p from this file"), "{found:?}");

    // The next write replaces it, but nobody's words are thrown away.
    write(&plans, "p", add("third")).unwrap();
    assert_eq!(text(&root(&place).join("edited/p@3.json")), edited);
    assert_eq!(now(&place.plans(), "p").spec().title, "a plan");
    let found = plans.store().check().unwrap();
    assert!(found.len() == 1 && found[0].contains("edited/p@3.json"), "{found:?}");
    fs::remove_file(root(&place).join("edited/p@3.json")).unwrap();
    assert_eq!(plans.store().check().unwrap(), Vec::<String>::new());
}

#[test]
fn an_edit_that_is_taken_over_leaves_no_copy() {
    let place = two_plans();
    let edited = text(&readable(&place, "p")).replace("\"a plan\"", "\"my plan\"");
    fs::write(readable(&place, "p"), &edited).unwrap();
    let plans = place.plans();
    let draft: Draft = serde_json::from_str(&edited).unwrap();
    write(&plans, "p", Command::Replace(Box::new(draft))).unwrap();
    assert_eq!(now(&plans, "p").spec().title, "my plan");
    assert_eq!(plans.store().check().unwrap(), Vec::<String>::new());
}

#[test]
fn white_space_is_nobodys_edit() {
    let place = two_plans();
    let reformatted = text(&readable(&place, "p")).replace('\n', "\r\n");
    fs::write(readable(&place, "p"), reformatted).unwrap();
    assert_eq!(place.store().check().unwrap(), Vec::<String>::new());
    assert_eq!(now(&place.plans(), "p").version(), 2);
    write(&place.plans(), "p", add("third")).unwrap();
    assert_eq!(place.store().check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_readable_file_that_is_gone_is_reported_and_renewed() {
    let place = two_plans();
    let before = text(&readable(&place, "p"));
    fs::remove_file(readable(&place, "p")).unwrap();
    let plans = place.plans();
    let found = plans.store().check().unwrap();
    assert!(found.len() == 1 && found[0].contains("plans/p.json is missing"), "{found:?}");
    assert_eq!(task_names(&now(&plans, "p")), ["first", "second"]);
    write(&plans, "p", retitle("x")).unwrap();
    write(&plans, "p", retitle("a plan")).unwrap();
    let (before, after): (Draft, Draft) = (
        serde_json::from_str(&before).unwrap(),
        serde_json::from_str(&text(&readable(&place, "p"))).unwrap(),
    );
    assert_eq!(before.tasks, after.tasks);
    assert_eq!(plans.store().check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_file_without_a_history_is_no_plan_and_is_not_overwritten() {
    let place = two_plans();
    fs::write(readable(&place, "stray"), "{\"title\": \"from elsewhere\"}").unwrap();
    let plans = place.plans();
    assert_eq!(list(&plans, &everything()).len(), 2);
    let new = NewPlan { id: Some(plan("stray")), by: ada(), draft: chain(1), approval_required: None };
    assert!(damage(plans.create(new)).contains("it has no history"));
    let found = plans.store().check().unwrap();
    assert!(found.len() == 1 && found[0].contains("plans/stray.json: it has no history"), "{found:?}");
    assert_eq!(text(&readable(&place, "stray")), "{\"title\": \"from elsewhere\"}");
}

#[test]
fn links_are_not_followed() {
    let place = two_plans();
    let outside = place.folder().join("outside");
    fs::write(&outside, "untouched").unwrap();
    for path in [readable(&place, "p"), history(&place, "p"), root(&place).join("leases.json")] {
        let kept = fs::read(&path).ok();
        let _gone = fs::remove_file(&path);
        std::os::unix::fs::symlink(&outside, &path).unwrap();
        let plans = place.plans();
        let told = damage(plans.write(request("p", vec![start("first")])));
        assert!(told.contains("symbolic link"), "{}: {told}", path.display());
        assert_eq!(text(&outside), "untouched");
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink(), "it is left as it is");
        fs::remove_file(&path).unwrap();
        if let Some(kept) = kept {
            fs::write(&path, kept).unwrap();
        }
    }
    let folder = root(&place).join("plans");
    fs::rename(&folder, place.folder().join("moved")).unwrap();
    std::os::unix::fs::symlink(place.folder().join("moved"), &folder).unwrap();
    let opened = FileStore::open(&root(&place)).map(drop);
    assert!(
        matches!(opened, Err(StoreError::Corrupt { detail, .. }) if detail.contains("not a plain folder"))
    );
}

#[test]
fn a_folder_that_lost_its_store_file_is_not_taken_for_an_empty_one() {
    let place = two_plans();
    fs::remove_file(root(&place).join("store.json")).unwrap();
    let plans = place.plans();
    assert!(damage(write(&plans, "q", add("second"))).contains("store.json is damaged: it is missing"));
    assert!(!root(&place).join("store.json").exists());
    assert_eq!(now(&plans, "p").version(), 2, "what is there can be read");
}

#[test]
fn a_folder_of_a_newer_waypost_is_refused() {
    let place = two_plans();
    fs::write(root(&place).join("store.json"), "{\"format\": \"waypost-file-store/9\", \"sequence\": 3}")
        .unwrap();
    let opened = FileStore::open(&root(&place)).map(drop);
    assert!(matches!(opened, Err(StoreError::TooNew { found: 9, known: 2, .. })));
    fs::write(root(&place).join("store.json"), "{\"format\": \"something else\", \"sequence\": 3}").unwrap();
    assert!(matches!(FileStore::open(&root(&place)).map(drop), Err(StoreError::Corrupt { .. })));
}

#[test]
fn a_folder_of_a_newer_waypost_that_allows_it_is_read_and_running_processes_finish() {
    let place = two_plans();
    let running = place.plans();
    let newer = "{\"format\": \"waypost-file-store/9\", \"sequence\": 3, \"readable_by\": 2, \"more\": [1]}";
    fs::write(root(&place).join("store.json"), newer).unwrap();
    let plans = place.plans();
    assert_eq!(list(&plans, &everything()).len(), 2);
    let refused = write(&plans, "p", add("third")).unwrap_err();
    assert!(matches!(refused, WriteError::Store(StoreError::TooNew { found: 9, .. })), "{refused}");
    assert!(matches!(plans.doctor(true), Err(StoreError::TooNew { .. })));
    assert_eq!(look(running.store(), |read| Ok(read.store_state()?.newer_schema)), Some(9));
    write(&running, "p", add("third")).unwrap();
    let stored: serde_json::Value = serde_json::from_str(&text(&root(&place).join("store.json"))).unwrap();
    let expected = serde_json::json!({
        "format": "waypost-file-store/9", "sequence": 4, "id": "", "readable_by": 2, "more": [1],
    });
    assert_eq!(stored, expected, "what this build does not know is kept");
}

#[test]
fn the_check_finds_numbers_that_are_missing_or_used_twice() {
    let place = two_plans();
    // As if two branches, each with a version of its own, had been merged.
    let mine = text(&history(&place, "q"));
    fs::write(history(&place, "q"), mine.replace("\"sequence\":3", "\"sequence\":2")).unwrap();
    let found = place.store().check().unwrap();
    assert!(found.iter().any(|line| line.contains("plans p and q both have version number 2")), "{found:?}");
    assert!(found.iter().any(|line| line.contains("number 3 (1 in all) is in no history")), "{found:?}");
}

#[test]
fn another_history_in_the_same_place_is_not_mixed_up_with_the_old_one() {
    let place = two_plans();
    let plans = place.plans();
    let (old_readable, old_history) = (text(&readable(&place, "p")), text(&history(&place, "p")));
    let old_store = text(&root(&place).join("store.json"));
    write(&plans, "p", add("mine")).unwrap();
    let bytes = now(&plans, "p").snapshot();
    plans.store().write(&mut |t| t.put(Record::Snapshot(&plan("p"), 3, &bytes))).unwrap();
    // Version control takes the folder back, and another branch has a version 3 as well.
    fs::write(readable(&place, "p"), old_readable).unwrap();
    fs::write(history(&place, "p"), old_history).unwrap();
    fs::write(root(&place).join("store.json"), old_store).unwrap();
    let other = PlanStore::new(place.store());
    write(&other, "p", add("theirs")).unwrap();
    assert_eq!(task_names(&now(&place.plans(), "p")), ["first", "second", "theirs"]);
    let kept = plans.history(&plan("p"), 0, 10).unwrap();
    assert_eq!(kept, other.history(&plan("p"), 0, 10).unwrap(), "also for whoever had read the old one");
}
