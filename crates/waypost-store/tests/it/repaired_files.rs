//! What the doctor names and restores when files of the folder are damaged or lost.

use std::fs;
use std::time::SystemTime;

use waypost_core::{Command, Phase, Plan};
use waypost_store::{Cursor, EventFilter, LogEvent, NewPlan, PlanStore, Query, Since};
use waypost_testkit::chain;

use crate::damaged_files::*;
use crate::kit::*;
use crate::place::Place;

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

/// A process that reads the history before and after this must not depend on the resolution of the file system's clock.
fn touch_history(place: &Place) {
    if let Ok(file) = fs::File::options().write(true).open(history(place, "p")) {
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }
}

#[test]
fn a_process_that_has_the_plan_in_memory_refuses_what_a_fresh_one_refuses() {
    type Strike = fn(&Place);
    let doubled: Strike = |place| change_history(place, |lines| lines.push(lines[2].clone()));
    let same_length: Strike = |place| change_history(place, |lines| lines[1][..8].fill(b'x'));
    let line_removed: Strike = |place| change_history(place, |lines| drop(lines.remove(1)));
    let others =
        [doubled, same_length, line_removed].map(|strike| ("another", strike, "history/p.jsonl line "));
    for (name, strike, named) in
        DAMAGES.iter().map(|damage| (damage.name, damage.strike, damage.named)).chain(others)
    {
        let place = two_plans();
        let plans = place.plans();
        write(&plans, "p", add("third")).unwrap();
        strike(&place);
        touch_history(&place);
        let damaged = fs::read(history(&place, "p")).ok();
        let told = damage(write(&plans, "p", add("more")));
        assert_eq!(told, damage(write(&place.plans(), "p", add("more"))), "{name}");
        assert_eq!(fs::read(history(&place, "p")).ok(), damaged, "{name}: it is left as it is");
        let warnings = plans.heads(&everything()).unwrap().warnings;
        assert_eq!(warnings, place.plans().heads(&everything()).unwrap().warnings, "{name}");
        assert!(!warnings.is_empty(), "{name}");
        let read = plans.store().damage(&plan("p")).unwrap();
        assert_eq!(read, place.plans().store().damage(&plan("p")).unwrap(), "{name}");
        assert!(read.is_some(), "{name}");
        if named.contains(" line ") {
            let found = plans.verify(&plan("p")).unwrap().unwrap().first_break;
            assert!(found.is_some_and(|found| found.to_string().contains(named)), "{name}");
        }
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
            assert!(told.contains("backup") && told.contains("a repair"), "{told}");
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
        let second = write(&plans, "q", add("second")).unwrap();
        assert!(number(&plans, &second) > 4);
        assert_eq!(place.plans().doctor(true).unwrap(), []);
        let last = log(&plans).last().unwrap().sequence;
        let third = write(&place.plans(), "q", add("third")).unwrap();
        assert_eq!(number(&plans, &third), last + 1);
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
fn a_repair_keeps_a_plan_without_work_for_machines_active() {
    let place = three_versions();
    let plans = place.plans();
    write(&plans, "p", start("first")).unwrap();
    write(&plans, "p", add("fourth")).unwrap();
    change_history(&place, |lines| lines.last_mut().unwrap().truncate(60));
    place.plans().doctor(true).unwrap();
    let plan = now(&place.plans(), "p");
    assert_eq!((plan.state().phase, plan.len()), (Phase::Active, 4));
    assert!(!plan.state().approval_required);
}

#[test]
fn one_history_that_cannot_be_opened_stops_no_other_plan() {
    let place = three_versions();
    fs::remove_file(history(&place, "p")).unwrap();
    fs::create_dir(history(&place, "p")).unwrap();
    let plans = place.plans();
    let listed = plans.heads(&Query { limit: 10, ..Query::default() }).unwrap();
    assert!(listed.items.iter().any(|head| head.id == plan("q")), "{listed:?}");
    assert!(listed.warnings.iter().any(|warning| warning.contains("it is a folder")), "{listed:?}");
    write(&plans, "q", add("more")).unwrap();
    let found = place.plans().doctor(true).unwrap();
    assert!(found.iter().any(|finding| finding.what.contains("p.jsonl")), "{found:?}");
    assert_eq!(now(&place.plans(), "p").len(), 3);
}

#[test]
fn a_list_says_that_a_plan_is_gone() {
    let place = three_versions();
    fs::remove_file(history(&place, "p")).unwrap();
    fs::remove_file(readable(&place, "p")).unwrap();
    let listed = place.plans().heads(&Query { limit: 10, ..Query::default() }).unwrap();
    assert_eq!(listed.items.len(), 1);
    assert!(listed.warnings.iter().any(|warning| warning.contains("are missing")), "{listed:?}");
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
    let expected = "version 2 of plan p cannot be shown: the events of version 2 were lost, and the plan was";
    assert!(lost.starts_with(expected), "{lost}");
    // Nothing but the plan's own file is left: its versions were not pruned either.
    let place = three_versions();
    fs::remove_file(history(&place, "p")).unwrap();
    let plans = place.plans();
    plans.doctor(true).unwrap();
    let lost = plans.at_version(&plan("p"), 2).map(drop).unwrap_err().to_string();
    let expected =
        "versions 1 to 2 of plan p cannot be shown: the events of versions 1 to 3 were lost, and the";
    assert!(lost.starts_with(expected), "{lost}");
}

#[test]
fn intact_versions_of_a_damaged_plan_can_be_read() {
    for Damage { name, strike, named, tasks, .. } in DAMAGES {
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
        for version in last + 1..=4 {
            let shown = plans.at_version(&plan("p"), version).map(|plan| plan.len());
            assert_eq!(shown.ok(), (version == tasks as u64).then_some(tasks), "{name}: {version}");
        }
        // The plan is shown as a repair restores it, and listed as it is shown.
        let (shown, warnings) =
            plans.view(&plan("p"), |plan, warnings| (plan.clone(), warnings.join("; "))).unwrap();
        assert_eq!((shown.len(), shown.version()), (tasks, tasks as u64), "{name}");
        assert!(warnings.contains(named), "{name}: {warnings}");
        let page = plans.heads(&everything()).unwrap();
        let listed = page.items.iter().find(|head| head.id == plan("p")).expect(name);
        assert_eq!((listed.version, listed.counts), (shown.version(), shown.counts()), "{name}");
        plans.doctor(true).unwrap();
        assert_eq!(task_names(&now(&place.plans(), "p")), task_names(&shown), "{name}");
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
            plans.view(&plan("p"), |plan, _| plan.len()).unwrap(),
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
    let fourth = write(&place.plans(), "p", add("fourth")).unwrap();
    assert_eq!(number(&place.plans(), &fourth), 5);
}

#[test]
fn a_task_whose_lease_was_lost_can_be_reclaimed() {
    let place = two_plans();
    let ended = |plans: &PlanStore| {
        look(plans.store(), |read| {
            let now = read.now();
            read.leases(&waypost_store::LeaseFilter::EndedBefore(now), 10)
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

/// The stored events of a page, each with its plan and version.
fn decided(events: &[LogEvent]) -> Vec<(String, u64, &'static str)> {
    let stored = events.iter().filter(|event| !event.derived);
    stored.map(|event| (event.plan.to_string(), event.version, event.kind)).collect()
}

#[test]
fn no_cursor_passes_what_a_damaged_file_hides() {
    for Damage { name, strike, named, left, .. } in DAMAGES {
        let place = three_versions();
        write(&place.plans(), "q", add("last")).unwrap();
        let everything = EventFilter::default();
        let all = place.plans().events(Cursor::default(), &everything, 100).unwrap().events;
        let all = decided(&all);
        let owner = "agent:bot";
        let id = place.plans().subscribe(owner, everything.clone(), Since::Beginning).unwrap().id;
        strike(&place);

        let plans = place.plans();
        let page = plans.unread(owner, &id, 100).unwrap();
        let mut read = decided(&page.events);
        assert_eq!(read, all[..read.len()], "{name}: what comes before the damage is read");
        let is_of_history = named != "plans/p.json" || name == "no history";
        let warned = page.warnings.iter().any(|warning| warning.contains(named));
        assert_eq!(warned, is_of_history, "{name}: {:?}", page.warnings);
        assert_eq!(page.unreadable_from.is_some(), read.len() < all.len(), "{name}");
        assert!(!page.more, "{name}: it ends before what cannot be read");
        plans.acknowledge(owner, &id, page.cursor).unwrap();
        assert_eq!(plans.unread(owner, &id, 100).unwrap().events, [], "{name}: nothing is read twice");

        let intact = decided(&plans.intact_events(Cursor::default(), &everything, 100).unwrap().events);
        let of_q =
            |events: &[(String, u64, &'static str)]| events.iter().filter(|(plan, ..)| plan == "q").count();
        assert_eq!(of_q(&intact), 2, "{name}: the other plan is read to its end");
        let of_p = EventFilter { plans: vec![plan("p")], ..EventFilter::default() };
        let of_p = plans.events(Cursor::default(), &of_p, 100).unwrap();
        assert_eq!(!of_p.warnings.is_empty(), is_of_history, "{name}");
        let last = plans.readable_versions(&plan("p")).unwrap().0;
        assert_eq!(of_p.events.last().map_or(0, |event| event.version), last, "{name}");
        let only_q = EventFilter { plans: vec![plan("q")], ..EventFilter::default() };
        let only_q = plans.events(Cursor::default(), &only_q, 100).unwrap();
        assert_eq!(
            (only_q.events.len(), only_q.warnings),
            (2, Vec::new()),
            "{name}: another plan is no concern"
        );

        plans.doctor(true).unwrap();
        let plans = place.plans();
        let rest = plans.unread(owner, &id, 100).unwrap();
        read.extend(decided(&rest.events));
        let kept = all.iter().filter(|(plan, version, _)| plan == "q" || left.contains(version));
        assert_eq!(read, kept.cloned().collect::<Vec<_>>(), "{name}: nothing that is intact is passed over");
        assert_eq!((rest.warnings, rest.unreadable_from, rest.forgotten), (Vec::new(), None, 0), "{name}");
        assert_eq!(rest.lost, 3 - left.len() as u64, "{name}");
    }
}

/// A plan with five versions and as many tasks, whose third line is damaged.
fn without_the_third_of_five() -> Place {
    let place = three_versions();
    write(&place.plans(), "p", add("fourth")).unwrap();
    write(&place.plans(), "p", add("fifth")).unwrap();
    change_history(&place, |lines| lines[2] = b"garbage\n".to_vec());
    place
}

#[test]
fn nothing_that_is_lost_is_called_sound() {
    type Strike = fn(&Place);
    let no_file: Strike = |place| fs::remove_file(readable(place, "p")).unwrap();
    let unusable: Strike = |place| fs::write(readable(place, "p"), "{").unwrap();
    for strike in [no_file, unusable] {
        let place = without_the_third_of_five();
        strike(&place);
        let damaged = text(&history(&place, "p"));
        let found = place.plans().doctor(true).unwrap();
        let expected = "the plan is as version 2 left it; lost: the events of versions 3 to 5; versions 4 to 5 could be \
                        read but not applied";
        assert!(found.iter().any(|finding| finding.what.contains(expected)), "{found:?}");
        assert_eq!(text(&root(&place).join("damaged/history-p.jsonl")), damaged, "their records are kept");
        assert_eq!(place.plans().doctor(false).unwrap(), []);

        let plans = place.plans();
        let entries = plans.history(&plan("p"), 0, 10).unwrap();
        let words: Vec<String> = entries.iter().filter_map(|entry| entry.forgotten()).collect();
        assert_eq!((entries.len(), words), (5, vec!["lost".to_owned(); 3]));
        let plan_now = now(&plans, "p");
        assert_eq!((plan_now.version(), plan_now.len()), (5, 2));
        let described = plans.pruned(&plan("p")).unwrap().unwrap().describe();
        let expected = "the events of versions 3 to 5 were lost; versions 3 to 4 cannot be shown; version 5 is as version 2 \
                        left it; the plan was repaired on ";
        assert!(described.starts_with(expected), "{described}");
        write(&plans, "p", add("sixth")).unwrap();
        let verified = plans.verify(&plan("p")).unwrap().unwrap().first_break.unwrap().to_string();
        let expected = "the events of versions 3 to 5 were lost, and the plan was repaired; version 5 is as version 2 left it";
        assert!(verified.starts_with(expected), "{verified}");
        assert_eq!(place.plans().doctor(false).unwrap(), []);
    }
}

#[test]
fn a_repair_says_exactly_which_versions_are_missing() {
    let place = without_the_third_of_five();
    let before = place.plans().verify(&plan("q")).unwrap().unwrap();
    assert_eq!(before.first_break, None);
    let anchor = |version: u64| {
        let line = text(&history(&place, "p")).lines().nth(version as usize - 1).unwrap().to_owned();
        let line: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        let hash = line["hash"].as_str().map_or_else(|| "0".repeat(64), str::to_owned);
        format!("p {version} {hash}").parse::<waypost_store::Anchor>().unwrap()
    };
    let anchors = [1, 2, 3, 4, 5].map(anchor);
    let found = place.plans().doctor(true).unwrap();
    assert!(found.iter().any(|finding| finding.what.contains("lost: the events of version 3")), "{found:?}");
    assert!(!found.iter().any(|finding| finding.what.contains("not applied")), "{found:?}");

    let plans = place.plans();
    let described = plans.pruned(&plan("p")).unwrap().unwrap().describe();
    let expected =
        "the events of version 3 were lost; versions 3 to 4 cannot be shown; the plan was repaired on ";
    assert!(described.starts_with(expected), "{described}");
    for (version, tasks) in [(1, 1), (2, 2), (5, 5)] {
        assert_eq!(plans.at_version(&plan("p"), version).unwrap().len(), tasks);
    }
    for version in [3, 4] {
        let told = plans.at_version(&plan("p"), version).map(drop).unwrap_err().to_string();
        let expected = "versions 3 to 4 of plan p cannot be shown: the events of version 3 were lost";
        assert!(told.starts_with(expected), "{told}");
    }
    let page = plans.events(Cursor::default(), &EventFilter::default(), 100).unwrap();
    assert_eq!((page.lost, page.forgotten), (1, 0));
    let verified = plans.verify(&plan("p")).unwrap().unwrap().first_break.unwrap().to_string();
    assert!(
        verified.starts_with("the events of version 3 were lost, and the plan was repaired; last"),
        "{verified}"
    );
    let against = anchors.each_ref().map(|anchor| plans.check_anchor(anchor).unwrap());
    let lost = Some("version 3 of the anchor was lost".to_owned());
    assert_eq!(against, [None, None, lost, None, None]);
}

#[test]
fn a_line_that_is_json_but_not_a_version_hides_what_comes_after_it() {
    let place = three_versions();
    let changed = text(&history(&place, "p")).replacen("\"tasks_added\"", "\"tasks_addxd\"", 1);
    fs::write(history(&place, "p"), changed).unwrap();
    let plans = place.plans();
    let page = plans.events(Cursor::default(), &EventFilter::default(), 100).unwrap();
    assert_eq!((page.cursor, page.unreadable_from), (Cursor::after(1), Some(2)));
    assert!(page.warnings[0].contains("history/p.jsonl line 2 is damaged"), "{:?}", page.warnings);
    let (tasks, warnings) = plans.view(&plan("p"), |plan, warnings| (plan.len(), warnings.to_vec())).unwrap();
    assert!(tasks == 3 && warnings[0].contains("history/p.jsonl line 2 is damaged"), "{warnings:?}");
}
