//! The folder of JSON files: its exact shape, and what happens when people, programs and crashes touch it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};

use waypost_core::{Command, Draft, Phase, Plan, Timestamp};
use waypost_store::{
    Append, FileStore, IndexChanges, LeaseTerms, NewPlan, PlanStore, PlanSummary, StoreError, Transaction,
    WriteError,
};
use waypost_testkit::chain;

use crate::kit::*;
use crate::place::{Folder, Place};
use crate::wrapped::Wrapped;

fn root(place: &Place) -> PathBuf {
    place.folder().join("plans")
}

fn readable(place: &Place, name: &str) -> PathBuf {
    root(place).join(format!("plans/{name}.json"))
}

fn history(place: &Place, name: &str) -> PathBuf {
    root(place).join(format!("history/{name}.jsonl"))
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// Damage as it is told to whoever addresses a plan.
fn damage<R>(answer: Result<R, WriteError>) -> String {
    match answer.map(drop) {
        Err(WriteError::Store(error @ StoreError::Corrupt { .. })) => error.to_string(),
        other => panic!("expected damage to be named, got {other:?}"),
    }
}

/// A folder with two plans, `p` at version 2 and `q`, that nothing has in memory.
fn two_plans() -> Place {
    let place = Place::file();
    let plans = place.plans();
    create_small(&plans, "p");
    write(&plans, "p", add("second")).unwrap();
    create_small(&plans, "q");
    place
}

/// Whatever happened to `p`, the rest of the store goes on.
fn others_go_on(place: &Place) {
    let plans = place.plans();
    write(&plans, "q", retitle("still here")).unwrap();
    assert!(list(&plans, &everything()).contains(&"q".to_owned()));
    create_small(&plans, "new");
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
            ".bell\n.lock\n.journal.json\n.pending/\n.snapshots/\nleases.json\nsubscriptions.json\nworkers.json\n.relay-*\n",
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

/// What happens to the files of plan `p`, which has three versions and the tasks first, second and third.
struct Damage {
    name: &'static str,
    strike: fn(&Place),
    /// The file and line that are named.
    named: &'static str,
    /// The versions whose events are left after the repair.
    left: &'static [u64],
    tasks: usize,
}

fn change_history(place: &Place, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
    let path = history(place, "p");
    let bytes = fs::read(&path).unwrap();
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    change(&mut lines);
    fs::write(path, lines.concat()).unwrap();
}

const DAMAGES: [Damage; 14] = [
    Damage {
        name: "a last line that is missing",
        strike: |place| change_history(place, |lines| drop(lines.pop())),
        named: "history/p.jsonl",
        left: &[1, 2],
        tasks: 3,
    },
    Damage {
        name: "a byte after the last line",
        strike: |place| change_history(place, |lines| lines.push(b"x".to_vec())),
        named: "history/p.jsonl line 4",
        left: &[1, 2, 3],
        tasks: 3,
    },
    Damage {
        name: "a byte at the end of the last line",
        strike: |place| {
            change_history(place, |lines| {
                let end = lines[2].len() - 1;
                lines[2].insert(end, b'}');
            });
        },
        named: "history/p.jsonl line 3",
        left: &[1, 2, 3],
        tasks: 3,
    },
    Damage {
        name: "a last line that ends early",
        strike: |place| change_history(place, |lines| lines[2].truncate(60)),
        named: "history/p.jsonl line 3",
        left: &[1, 2],
        tasks: 3,
    },
    Damage {
        name: "a line of garbage between two others",
        strike: |place| change_history(place, |lines| lines.insert(1, b"<<<<<<< ours\n".to_vec())),
        named: "history/p.jsonl line 2",
        left: &[1, 2, 3],
        tasks: 3,
    },
    Damage {
        name: "garbage in the place of a line",
        strike: |place| change_history(place, |lines| lines[1] = b"garbage\n".to_vec()),
        named: "history/p.jsonl line 2",
        left: &[1, 3],
        tasks: 3,
    },
    Damage {
        name: "NULs in the place of the last line",
        strike: |place| change_history(place, |lines| lines[2].fill(0)),
        named: "history/p.jsonl line 3",
        left: &[1, 2],
        tasks: 3,
    },
    Damage {
        name: "NULs after the last line",
        strike: |place| change_history(place, |lines| lines.push(vec![0; 4096])),
        named: "history/p.jsonl line 4",
        left: &[1, 2, 3],
        tasks: 3,
    },
    Damage {
        name: "bytes that are not UTF-8",
        strike: |place| change_history(place, |lines| lines[2][5] = 0xff),
        named: "history/p.jsonl line 3",
        left: &[1, 2],
        tasks: 3,
    },
    Damage {
        name: "two lines joined",
        strike: |place| {
            change_history(place, |lines| {
                lines[1].pop();
            });
        },
        named: "history/p.jsonl line 2",
        left: &[1, 2, 3],
        tasks: 3,
    },
    Damage {
        name: "no history",
        strike: |place| fs::remove_file(history(place, "p")).unwrap(),
        named: "plans/p.json",
        left: &[],
        tasks: 3,
    },
    Damage {
        name: "an empty history",
        strike: |place| fs::write(history(place, "p"), "").unwrap(),
        named: "history/p.jsonl line 1",
        left: &[],
        tasks: 3,
    },
    Damage {
        name: "a plan's JSON that cannot be read",
        strike: |place| fs::write(readable(place, "p"), "{\"title\": ").unwrap(),
        named: "plans/p.json",
        left: &[1, 2, 3],
        tasks: 3,
    },
    Damage {
        name: "neither the last line nor the plan's JSON",
        strike: |place| {
            change_history(place, |lines| lines[2].truncate(60));
            fs::write(readable(place, "p"), "{").unwrap();
        },
        named: "history/p.jsonl line 3",
        left: &[1, 2],
        tasks: 2,
    },
];

/// A folder with `p` at version 3, and `q`.
fn three_versions() -> Place {
    let place = two_plans();
    write(&place.plans(), "p", add("third")).unwrap();
    place
}

#[test]
fn a_damaged_plan_is_named_wherever_it_is_asked_for() {
    for Damage { name, strike, named, .. } in DAMAGES {
        let place = three_versions();
        strike(&place);
        let plans = place.plans();
        assert_eq!(plans.resolve("p").unwrap(), plan("p"), "{name}: it is not said to be missing");
        let told = damage(write(&plans, "p", add("fourth")));
        assert!(told.contains(&format!("{named} is damaged")), "{name}: {told}");
        // A plan whose last versions are lost can be read as its own file has it.
        if named.contains(" line ") {
            damage(plans.with_plan(&plan("p"), Plan::version));
        }
        let page = plans.heads(&everything()).unwrap();
        assert!(page.items.iter().any(|head| head.id == plan("q")), "{name}: the others are listed");
        let warned = page.warnings.iter().any(|line| line.contains(named));
        assert!(warned, "{name}: {:?}", page.warnings);
        let found = plans.doctor(false).unwrap();
        assert!(found.iter().any(|finding| finding.what.contains(named)), "{name}: {found:?}");
        assert!(log(&plans).iter().any(|entry| entry.plan == plan("q")), "{name}: its events can be read");
        others_go_on(&place);
    }
}

#[test]
fn the_doctor_names_what_is_intact() {
    let place = three_versions();
    change_history(&place, |lines| lines[2].truncate(60));
    let found = place.plans().doctor(false).unwrap();
    let expected = format!("; intact: versions 1 to 2; {} at version 3", readable(&place, "p").display());
    assert!(found.iter().any(|finding| finding.what.ends_with(&expected)), "{found:?}");
}

#[test]
fn the_doctor_repairs_a_damaged_plan_from_what_is_intact() {
    for Damage { name, strike, left, tasks, .. } in DAMAGES {
        let place = three_versions();
        strike(&place);
        let damaged: Vec<Vec<u8>> = [history(&place, "p"), readable(&place, "p")]
            .iter()
            .filter_map(|path| fs::read(path).ok())
            .collect();
        let plans = place.plans();
        let found = plans.doctor(true).unwrap();
        let repaired = |finding: &waypost_store::Finding| finding.repaired && finding.plan == Some(plan("p"));
        assert!(!found.is_empty() && found.iter().all(repaired), "{name}: {found:?}");
        assert_eq!(place.plans().doctor(false).unwrap(), [], "{name}");

        let now_is = now(&place.plans(), "p");
        assert_eq!((now_is.version(), now_is.len()), (3, tasks), "{name}");
        let events = plans.history(&plan("p"), 0, 10).unwrap();
        let with_events: Vec<u64> =
            events.iter().filter(|entry| !entry.is_forgotten()).map(|entry| entry.version).collect();
        assert_eq!((events.len(), with_events.as_slice()), (3, left), "{name}");
        assert_eq!(write(&plans, "p", add("fourth")).unwrap().version, 4, "{name}");
        let numbers: Vec<u64> = log(&place.plans()).iter().map(|entry| entry.sequence).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5], "{name}: the log has no gaps");
        let kept: Vec<Vec<u8>> = fs::read_dir(root(&place).join("damaged"))
            .map(|folder| folder.map(|file| fs::read(file.unwrap().path()).unwrap()).collect())
            .unwrap_or_default();
        let is_aside = damaged.iter().any(|bytes| kept.contains(bytes));
        assert_eq!(is_aside, name != "no history", "{name}: the damaged file is kept aside");
        let told = found.iter().any(|finding| finding.what.contains("is kept in"));
        assert_eq!(told, is_aside, "{name}: {found:?}");
        assert_eq!(place.plans().doctor(true).unwrap(), [], "{name}: nothing is left to repair");
    }
}

#[test]
fn no_number_is_given_again_while_files_are_missing() {
    type Strike = fn(&Place);
    let all: Strike = |place| {
        fs::rename(readable(place, "p"), place.folder().join("p.json")).unwrap();
        fs::rename(history(place, "p"), place.folder().join("p.jsonl")).unwrap();
    };
    let end: Strike = |place| {
        fs::rename(readable(place, "p"), place.folder().join("p.json")).unwrap();
        fs::copy(history(place, "p"), place.folder().join("p.jsonl")).unwrap();
        change_history(place, |lines| drop(lines.pop()));
    };
    for (strike, left) in [(all, 1), (end, 3)] {
        let place = three_versions();
        strike(&place);
        let plans = place.plans();
        let new = NewPlan { id: Some(plan("p")), by: ada(), draft: chain(1), approval_required: None };
        let told = [
            damage(write(&plans, "q", add("second"))),
            if left == 1 { damage(plans.create(new)) } else { damage(write(&plans, "p", add("other"))) },
        ];
        let counts = format!("it counts 4 versions, but the histories hold {left}");
        for told in told {
            assert!(told.contains("store.json is damaged") && told.contains(&counts), "{told}");
            assert!(told.contains("backup") && told.contains("waypost doctor --repair"), "{told}");
            assert_eq!(told.contains("plans/p.json"), left == 3, "what is known to be missing: {told}");
        }
        assert!(!plans.doctor(false).unwrap().is_empty());

        // The files are brought back.
        let restored = Place::file();
        copy(&root(&place), &root(&restored));
        fs::copy(place.folder().join("p.json"), readable(&restored, "p")).unwrap();
        fs::copy(place.folder().join("p.jsonl"), history(&restored, "p")).unwrap();
        assert_eq!(write(&restored.plans(), "p", add("fourth")).unwrap().version, 4);

        // The loss is accepted.
        let found = place.plans().doctor(true).unwrap();
        assert!(!found.is_empty() && found.iter().all(|finding| finding.repaired), "{found:?}");
        assert_eq!(place.plans().doctor(false).unwrap(), []);
        let plans = place.plans();
        if left == 3 {
            assert_eq!(write(&plans, "p", add("other")).unwrap().version, 4, "version 3 was given before");
        }
        assert!(write(&plans, "q", add("second")).unwrap().sequence > 4);
        assert_eq!(place.plans().doctor(true).unwrap(), []);
        let number = log(&plans).last().unwrap().sequence;
        assert_eq!(write(&place.plans(), "q", add("third")).unwrap().sequence, number + 1);
    }
}

/// Replaces the only occurrence of a text in the readable file of `p`.
fn edit_readable(place: &Place, old: &str, new: &str) {
    let before = text(&readable(place, "p"));
    assert_eq!(before.matches(old).count(), 1, "{old} in {before}");
    fs::write(readable(place, "p"), before.replace(old, new)).unwrap();
}

/// A plan of an agent that needs approval, at version 2, with the commands that follow.
fn agents_plan(commands: &[Command]) -> Place {
    let place = Place::file();
    let plans = place.plans();
    let draft = waypost_testkit::plan_of([waypost_testkit::task("first", &[])]);
    plans.create(NewPlan { id: Some(plan("p")), by: bot(), draft, approval_required: None }).unwrap();
    write(&plans, "p", Command::RequestApproval { message: String::new() }).unwrap();
    for command in commands {
        write(&plans, "p", command.clone()).unwrap();
    }
    place
}

fn approve() -> Command {
    Command::Approve { version: 2, note: String::new(), work: None }
}

#[test]
fn a_repair_restores_no_approval_that_no_intact_version_supports() {
    type Strike = fn(&Place);
    let edit: Strike = |place| edit_readable(place, "\"awaiting_approval\"", "\"active\"");
    let strip: Strike = |place| edit_readable(place, "\"approval_required\": true,", "");
    let cases: [(&str, &[Command], Strike, Phase); 4] = [
        ("the version that approved it is torn", &[approve()], |_| {}, Phase::Draft),
        ("somebody wrote a phase into the file", &[retitle("x")], edit, Phase::Draft),
        ("somebody took the requirement out of the file", &[retitle("x")], strip, Phase::AwaitingApproval),
        (
            "somebody wrote a task into the file of an approved plan",
            &[approve(), retitle("x")],
            |place| edit_readable(place, "\"id\": \"first\"", "\"id\": \"other\""),
            Phase::Draft,
        ),
    ];
    for (name, commands, strike, phase) in cases {
        let place = agents_plan(commands);
        strike(&place);
        change_history(&place, |lines| lines.last_mut().unwrap().truncate(60));
        let found = place.plans().doctor(true).unwrap();
        assert!(found.iter().all(|finding| finding.repaired), "{name}: {found:?}");
        let told = found.iter().any(|finding| finding.what.contains("needs approval again"));
        assert_eq!(told, phase == Phase::Draft, "{name}: {found:?}");
        let state = now(&place.plans(), "p").state().clone();
        assert_eq!((state.phase, state.approval), (phase, None), "{name}");
        assert!(state.approval_required, "{name}");
        assert_eq!(place.plans().doctor(false).unwrap(), [], "{name}");
    }
    // What an intact version supports stays.
    let place = agents_plan(&[approve(), start("first")]);
    change_history(&place, |lines| lines[3].truncate(60));
    place.plans().doctor(true).unwrap();
    let plan = now(&place.plans(), "p");
    assert_eq!((plan.state().phase, plan.version()), (Phase::Active, 4));
    assert!(plan.state().approval.is_some());
}

#[test]
fn intact_versions_before_a_lost_one_can_be_read_after_the_repair() {
    let place = three_versions();
    change_history(&place, |lines| lines[2].truncate(60));
    let plans = place.plans();
    plans.doctor(true).unwrap();
    write(&plans, "p", add("fourth")).unwrap();
    write(&plans, "p", add("fifth")).unwrap();
    let sizes = |plans: &PlanStore| -> Vec<usize> {
        (1..=5).map(|version| plans.at_version(&plan("p"), version).unwrap().len()).collect()
    };
    assert_eq!(sizes(&plans), [1, 2, 3, 4, 5]);
    // Another version is lost, and its state takes its place beside the first.
    change_history(&place, |lines| lines[4].truncate(60));
    place.plans().doctor(true).unwrap();
    assert_eq!(sizes(&place.plans()), [1, 2, 3, 4, 5]);
    assert_eq!(place.plans().doctor(false).unwrap(), []);
    // A line in the middle: only the lost version itself is gone.
    let place = three_versions();
    change_history(&place, |lines| lines[1] = b"garbage\n".to_vec());
    let plans = place.plans();
    plans.doctor(true).unwrap();
    assert_eq!(plans.at_version(&plan("p"), 1).unwrap().len(), 1);
    assert_eq!(plans.at_version(&plan("p"), 3).unwrap().len(), 3);
    let lost = plans.at_version(&plan("p"), 2).map(drop).unwrap_err().to_string();
    assert!(lost.starts_with("versions 2 to 3 of plan p were lost on "), "{lost}");
    // Nothing but the plan's own file is left: its versions were not pruned either.
    let place = three_versions();
    fs::remove_file(history(&place, "p")).unwrap();
    let plans = place.plans();
    plans.doctor(true).unwrap();
    let lost = plans.at_version(&plan("p"), 2).map(drop).unwrap_err().to_string();
    assert!(lost.starts_with("versions 1 to 3 of plan p were lost on "), "{lost}");
}

#[test]
fn intact_versions_of_a_damaged_plan_can_be_read() {
    for Damage { name, strike, named, .. } in DAMAGES {
        let place = three_versions();
        strike(&place);
        let plans = place.plans();
        let (last, damage) = plans.readable_versions(&plan("p")).unwrap();
        let damage = damage.expect(name);
        assert!(damage.contains(named), "{name}: {damage}");
        let entries = plans.history(&plan("p"), 0, 10);
        match last {
            0 => assert!(entries.is_err(), "{name}"),
            _ => assert_eq!(entries.unwrap().len() as u64, last, "{name}"),
        }
        for version in 1..=last {
            let plan = plans.at_version(&plan("p"), version).unwrap();
            assert_eq!(plan.len() as u64, version, "{name}");
        }
        assert!(plans.at_version(&plan("p"), last + 1).is_err(), "{name}");
        let view = plans.view(&plan("p"), |plan, warnings| (plan.len() as u64, warnings.join("; ")));
        match last {
            0 => assert!(self::damage(view).contains(named), "{name}"),
            _ => {
                let (tasks, warnings) = view.unwrap();
                assert_eq!(tasks, last, "{name}");
                assert!(warnings.contains(named), "{name}: {warnings}");
            }
        }
    }
    assert_eq!(three_versions().plans().readable_versions(&plan("p")).unwrap(), (3, None));
}

#[test]
fn a_damaged_file_of_the_store_itself_is_named_and_set_aside() {
    for file in ["leases.json", "workers.json", "subscriptions.json", "store.json"] {
        let place = two_plans();
        write(&place.plans(), "p", start("first")).unwrap();
        fs::write(root(&place).join(file), "{\"p\": ").unwrap();
        let plans = place.plans();
        let found = plans.doctor(false).unwrap();
        let named = format!("{file} is damaged");
        assert_eq!(found.iter().filter(|finding| finding.what.contains(&named)).count(), 1, "{found:?}");
        assert_eq!(now(&plans, "p").len(), 2, "{file}: plans can be read");
        assert_eq!(
            plans.with_progress(&plan("p"), Plan::len).unwrap(),
            2,
            "{file}: also with their progress"
        );
        let found = plans.doctor(true).unwrap();
        assert!(found.iter().all(|finding| finding.repaired), "{file}: {found:?}");
        assert!(found[0].what.contains(file) && found[0].what.contains("damaged/"), "{found:?}");
        assert_eq!(text(&root(&place).join("damaged").join(file)), "{\"p\": ", "{file}");
        assert_eq!(place.plans().doctor(false).unwrap(), [], "{file}");
        others_go_on(&place);
        let numbers: Vec<u64> = log(&place.plans()).iter().map(|entry| entry.sequence).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6], "{file}: the log has no gaps");
    }
}

#[test]
fn a_store_file_is_rebuilt_beside_a_torn_history() {
    let place = three_versions();
    fs::remove_file(root(&place).join("store.json")).unwrap();
    change_history(&place, |lines| lines[2].truncate(60));
    let found = place.plans().doctor(true).unwrap();
    assert!(found.iter().all(|finding| finding.repaired), "{found:?}");
    assert_eq!(place.plans().doctor(false).unwrap(), []);
    assert_eq!(now(&place.plans(), "p").version(), 3);
    assert_eq!(write(&place.plans(), "p", add("fourth")).unwrap().sequence, 5);
}

#[test]
fn a_task_whose_lease_was_lost_can_be_reclaimed() {
    let place = two_plans();
    let ended = |plans: &PlanStore| {
        look(plans.store(), |read| {
            let now = read.now();
            read.leases(&waypost_store::LeaseFilter::ended(now), 10)
        })
        .len()
    };
    let plans = place.plans();
    write(&plans, "p", start("first")).unwrap();
    assert_eq!(ended(&plans), 0, "a lease without an end does not end");
    fs::remove_file(root(&place).join("leases.json")).unwrap();
    assert_eq!(ended(&plans), 1);
    write(&plans, "q", start("first")).unwrap();
    assert_eq!(ended(&plans), 1, "also when the file is there again");
    assert_eq!(place.plans().doctor(false).unwrap(), []);
}

#[test]
fn what_this_store_never_wrote_is_not_taken_for_a_lost_plan() {
    let place = two_plans();
    let stray = text(&readable(&place, "p")).replace("\"id\": \"p\"", "\"id\": \"stray\"");
    fs::write(readable(&place, "stray"), &stray).unwrap();
    let found = place.plans().doctor(true).unwrap();
    assert!(found.len() == 1 && !found[0].repaired, "{found:?}");
    assert_eq!(text(&readable(&place, "stray")), stray);
    assert!(!history(&place, "stray").exists());
}

#[test]
fn nothing_is_repaired_where_nothing_is_intact() {
    let place = three_versions();
    fs::write(history(&place, "p"), "garbage\n").unwrap();
    fs::write(readable(&place, "p"), "garbage\n").unwrap();
    let found = place.plans().doctor(true).unwrap();
    assert!(!found.is_empty() && found.iter().all(|finding| !finding.repaired), "{found:?}");
    assert_eq!(text(&history(&place, "p")), "garbage\n", "it is left as it is");
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
    assert!(found[0].contains("waypost update p --from-file"), "{found:?}");

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
    plans.store().write(&mut |t| t.put_snapshot(&plan("p"), 3, &bytes)).unwrap();
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

fn copy(from: &Path, to: &Path) {
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

/// A folder as a crash in the middle of a commit leaves it: version 3 of `p` is in the journal, `appended` bytes of its
/// line have reached the history, and `moved` of the pending files their places.
struct Interrupted {
    before: Folder,
    line: String,
    offset: usize,
    /// The files of the commit: where they belong, and what is in them.
    files: [(&'static str, &'static str, String); 2],
}

impl Interrupted {
    fn new() -> Self {
        let place = two_plans();
        let before = Folder::new();
        copy(&root(&place), before.path());
        write(&place.plans(), "p", add("third")).unwrap();
        let offset = text(&before.path().join("history/p.jsonl")).len();
        let line = text(&history(&place, "p"))[offset..].to_owned();
        let files = [
            ("{\"plan\":\"p\"}", "plans/p.json", text(&readable(&place, "p"))),
            ("\"store\"", "store.json", text(&root(&place).join("store.json"))),
        ];
        Self { before, line, offset, files }
    }

    fn journal(&self) -> String {
        let line = serde_json::to_string(&self.line).unwrap();
        let append = format!("{{\"plan\":\"p\",\"offset\":{},\"text\":{line}}}", self.offset);
        let files: Vec<&str> = self.files.iter().map(|(target, ..)| *target).collect();
        format!("{{\"token\":7,\"appends\":[{append}],\"files\":[{}],\"removals\":[]}}", files.join(","))
    }

    fn folder(&self, appended: &[u8], moved: usize) -> Folder {
        let folder = Folder::new();
        copy(self.before.path(), folder.path());
        let mut history = fs::read(folder.path().join("history/p.jsonl")).unwrap();
        history.extend(appended);
        fs::write(folder.path().join("history/p.jsonl"), history).unwrap();
        for (number, (_, place, content)) in self.files.iter().enumerate() {
            let pending = format!(".pending/{:016x}-{number}", 7);
            let place = if number < moved { place } else { pending.as_str() };
            fs::write(folder.path().join(place), content).unwrap();
        }
        fs::write(folder.path().join(".journal.json"), self.journal()).unwrap();
        folder
    }
}

#[test]
fn a_commit_that_was_interrupted_anywhere_is_completed() {
    let interrupted = Interrupted::new();
    let line = interrupted.line.as_bytes();
    let torn: [&[u8]; 6] =
        [b"", &line[..1], &line[..line.len() / 2], &line[..line.len() - 1], line, &[0; 100]];
    for appended in torn {
        for moved in 0..=2 {
            let folder = interrupted.folder(appended, moved);
            for _again in 0..2 {
                let plans = PlanStore::new(std::sync::Arc::new(FileStore::open(folder.path()).unwrap()));
                assert_eq!(task_names(&now(&plans, "p")), ["first", "second", "third"]);
                assert_eq!(plans.store().check().unwrap(), Vec::<String>::new());
                assert_eq!(text(&folder.path().join("history/p.jsonl")).lines().count(), 3, "appended once");
                assert!(!folder.path().join(".journal.json").exists());
                // A journal whose removal did not survive the crash is carried out again, to no effect.
                fs::write(folder.path().join(".journal.json"), interrupted.journal()).unwrap();
            }
            let plans = PlanStore::new(std::sync::Arc::new(FileStore::open(folder.path()).unwrap()));
            assert_eq!(write(&plans, "p", add("fourth")).unwrap().sequence, 5);
        }
    }
}

#[test]
fn a_process_that_has_the_store_open_completes_what_another_left() {
    let interrupted = Interrupted::new();
    let folder = interrupted.folder(b"", 0);
    let journal = folder.path().join(".journal.json");
    let aside = folder.path().join("aside");
    fs::rename(&journal, &aside).unwrap();
    let plans = PlanStore::new(std::sync::Arc::new(FileStore::open(folder.path()).unwrap()));
    assert_eq!(now(&plans, "p").version(), 2);
    fs::rename(&aside, &journal).unwrap();
    assert_eq!(now(&plans, "p").version(), 3, "a look completes it");
}

#[test]
fn a_version_that_the_journal_does_not_know_is_never_cut_off() {
    let interrupted = Interrupted::new();
    let foreign = interrupted.line.replace("third", "foreign");
    let folder = interrupted.folder(foreign.as_bytes(), 0);
    let opened = FileStore::open(folder.path()).map(drop);
    assert!(matches!(opened, Err(StoreError::Corrupt { what, .. }) if what.ends_with("history/p.jsonl")));
    assert!(text(&folder.path().join("history/p.jsonl")).ends_with(&foreign));
}

#[test]
fn a_journal_cannot_reach_outside_of_the_folder() {
    let interrupted = Interrupted::new();
    let folder = interrupted.folder(b"", 0);
    let slipped_in = interrupted.journal().replace("{\"plan\":\"p\"}", "{\"plan\":\"../../p\"}");
    fs::write(folder.path().join(".journal.json"), slipped_in).unwrap();
    let opened = FileStore::open(folder.path()).map(drop);
    assert!(matches!(opened, Err(StoreError::Corrupt { what, .. }) if what.ends_with(".journal.json")));
}

/// Appends what `command` brings about to a plan in a transaction, as the front does.
fn append(transaction: &mut dyn Transaction, plan: &mut Plan, command: &Command) -> Result<u64, StoreError> {
    let at = transaction.now();
    let events = plan.decide(&ada(), at, command).unwrap();
    plan.advance(&events, at);
    let touched = plan.take_touched();
    let index = IndexChanges::of(plan, touched, LeaseTerms::default(), at);
    let (head, actor) = (PlanSummary::of(plan), ada());
    let appended = transaction.append(&Append {
        head: &head,
        at,
        actor: &actor,
        command: "test",
        events: &events,
        index: &index,
        plan,
    })?;
    Ok(appended.sequence)
}

#[test]
fn a_commit_that_fails_half_way_is_taken_back() {
    let place = two_plans();
    let store = place.store();
    let before = text(&history(&place, "p"));
    let mut old = now(&place.plans(), "p");
    let outcome = store.write(&mut |transaction| {
        append(transaction, &mut old, &add("third"))?;
        let create = Command::Create { draft: Box::new(chain(1)), approval_required: None };
        append(transaction, &mut Plan::blank(plan("z")), &create)?;
        // The lines of `p` can be appended, and those of `z`, which come after them, cannot.
        fs::create_dir(history(&place, "z")).unwrap();
        Ok(())
    });
    assert!(matches!(outcome, Err(StoreError::Files { path, .. }) if path == history(&place, "z")));
    fs::remove_dir(history(&place, "z")).unwrap();
    assert_eq!(text(&history(&place, "p")), before);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    let plans = PlanStore::new(store);
    assert_eq!(write(&plans, "p", add("third")).unwrap().sequence, 4, "no number was used up");
    create_small(&plans, "z");
}

#[test]
fn what_a_writer_had_prepared_before_it_died_is_forgotten() {
    let place = two_plans();
    let left_over = root(&place).join(".pending/0123456789abcdef-0");
    fs::write(&left_over, "half a fi").unwrap();
    let plans = place.plans();
    assert_eq!(plans.store().check().unwrap(), Vec::<String>::new());
    write(&plans, "p", add("third")).unwrap();
    assert!(!left_over.exists());
}
