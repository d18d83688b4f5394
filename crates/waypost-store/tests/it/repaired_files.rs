//! What the doctor names and restores when files of the folder are damaged or lost.

use std::fs;

use waypost_core::{Command, Phase, Plan};
use waypost_store::{NewPlan, PlanStore};
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
