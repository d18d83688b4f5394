//! What a merge of version control leaves in the folder: conflict markers, both sides of a history, numbers of the log that two
//! clones gave. All of it is named by file and line, and a repair takes one side, whole.

use std::fs;

use waypost_store::PlanStore;

use crate::damaged_files::*;
use crate::kit::*;
use crate::place::Place;

/// Two clones of a store with the plans `p` and `q`, which are written to separately.
fn clones() -> [Place; 2] {
    let ours = two_plans();
    let theirs = Place::file();
    let _none = fs::remove_dir_all(root(&theirs));
    copy(&root(&ours), &root(&theirs));
    [ours, theirs]
}

/// Both sides of a file, as git writes them where it cannot merge: what they share stays.
fn conflict(ours: &str, theirs: &str) -> String {
    let shared = ours.lines().zip(theirs.lines()).take_while(|(one, other)| one == other).count();
    let rest = |text: &str| text.lines().skip(shared).map(|line| format!("{line}\n")).collect::<String>();
    let head: String = ours.lines().take(shared).map(|line| format!("{line}\n")).collect();
    format!("{head}<<<<<<< HEAD\n{}=======\n{}>>>>>>> other\n", rest(ours), rest(theirs))
}

/// Writes both sides of the files of plan `p`, and of the store's own file, into `ours`.
fn merge_with_conflicts(ours: &Place, theirs: &Place) {
    let files = [history(ours, "p"), readable(ours, "p"), root(ours).join("store.json")];
    let others = [history(theirs, "p"), readable(theirs, "p"), root(theirs).join("store.json")];
    for (own, other) in files.iter().zip(&others) {
        if text(own) != text(other) {
            fs::write(own, conflict(&text(own), &text(other))).unwrap();
        }
    }
}

fn findings(plans: &PlanStore, repair: bool) -> String {
    plans.doctor(repair).unwrap().iter().map(|finding| format!("{}\n", finding.what)).collect()
}

#[test]
fn conflict_markers_are_named_by_file_and_line() {
    let [ours, theirs] = clones();
    write(&ours.plans(), "p", add("ours")).unwrap();
    for name in ["theirs", "theirs, too"] {
        write(&theirs.plans(), "p", add(name)).unwrap();
    }
    merge_with_conflicts(&ours, &theirs);
    let plans = ours.plans();
    let marker = "a merge left a conflict marker here";
    let told = damage(write(&plans, "p", add("more")));
    assert!(told.contains(&format!("history/p.jsonl line 3 is damaged: {marker}")), "{told}");
    let warnings = plans.heads(&everything()).unwrap().warnings.join("\n");
    assert!(warnings.contains(&format!("history/p.jsonl line 3 is damaged: {marker}")), "{warnings}");
    let found = findings(&plans, false);
    let line =
        text(&root(&ours).join("store.json")).lines().position(|line| line.starts_with("<<<")).unwrap();
    assert!(found.contains(&format!("store.json is damaged: line {}: {marker}", line + 1)), "{found}");
    // With the history whole again, it is the plan's own file that is named.
    let line = text(&readable(&ours, "p")).lines().position(|line| line.starts_with("<<<")).unwrap();
    fs::copy(history(&theirs, "p"), history(&ours, "p")).unwrap();
    fs::copy(root(&theirs).join("store.json"), root(&ours).join("store.json")).unwrap();
    let told = damage(write(&ours.plans(), "p", add("more")));
    assert!(told.contains(&format!("plans/p.json is damaged: line {}: {marker}", line + 1)), "{told}");
}

#[test]
fn both_sides_without_markers_are_named_by_line() {
    let [ours, theirs] = clones();
    write(&ours.plans(), "p", add("ours")).unwrap();
    write(&theirs.plans(), "p", add("theirs")).unwrap();
    let other = text(&history(&theirs, "p")).lines().last().unwrap().to_owned();
    fs::write(history(&ours, "p"), format!("{}{other}\n", text(&history(&ours, "p")))).unwrap();
    let found = findings(&ours.plans(), false);
    assert!(
        found.contains("history/p.jsonl line 4 is damaged: version 3 of plan p stands here again"),
        "{found}"
    );
}

#[test]
fn a_repair_takes_the_first_side_whole_and_names_what_is_left_of_the_other() {
    let [ours, theirs] = clones();
    write(&ours.plans(), "p", add("ours")).unwrap();
    let others: Vec<String> = (1..=7).map(|number| format!("theirs {number}")).collect();
    for name in &others {
        write(&theirs.plans(), "p", add(name)).unwrap();
    }
    let expected = now(&ours.plans(), "p").to_draft();
    merge_with_conflicts(&ours, &theirs);
    let found = findings(&ours.plans(), true);
    let left_out = "from version 3 on, both sides of a merge are there: the one that stands first counts, and this of the other is left out: version 3 (";
    assert!(found.contains(left_out) && found.contains("version 5 ("), "{found}");
    for name in &others {
        assert!(found.contains(&format!("\"{name}\"")), "nothing has to be dug out: {found}");
    }
    assert!(!found.contains("lost"), "what is left out was never a version of this plan: {found}");
    let plans = ours.plans();
    assert_eq!(plans.doctor(false).unwrap(), [], "{found}");
    assert_eq!(now(&plans, "p").to_draft(), expected, "as this side had it");
    assert!(plans.verify(&plan("p")).unwrap().unwrap().first_break.is_none());
    let kept = text(&root(&ours).join("damaged/history-p.jsonl"));
    assert!(kept.contains("theirs 2"), "the other side is kept aside");
    write(&plans, "p", add("goes on")).unwrap();
    others_go_on(&ours);
    assert_eq!(ours.plans().doctor(false).unwrap(), []);
}

#[test]
fn numbers_of_the_log_that_two_clones_gave_are_given_again() {
    let [ours, theirs] = clones();
    write(&ours.plans(), "p", add("ours")).unwrap();
    write(&theirs.plans(), "q", add("theirs")).unwrap();
    // Version control merges this without a conflict.
    for file in [history, readable] {
        fs::copy(file(&theirs, "q"), file(&ours, "q")).unwrap();
    }
    write(&ours.plans(), "q", add("after the merge")).unwrap();
    write(&ours.plans(), "p", add("after the merge")).unwrap();
    let plans = ours.plans();
    let found = findings(&plans, false);
    assert!(found.contains("plans p and q both have version number 4 of the log"), "{found}");
    let before = [now(&plans, "p").to_draft(), now(&plans, "q").to_draft()];
    let found = findings(&ours.plans(), true);
    assert!(found.contains("versions 2 to 3 of plan q got the numbers from 7 on"), "{found}");
    let plans = ours.plans();
    assert_eq!(plans.doctor(false).unwrap(), []);
    assert_eq!([now(&plans, "p").to_draft(), now(&plans, "q").to_draft()], before);
    let mut numbers: Vec<u64> = log(&plans).iter().map(|entry| entry.sequence).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4, 6, 7, 8], "each once");
    for name in ["p", "q"] {
        assert!(plans.verify(&plan(name)).unwrap().unwrap().first_break.is_none(), "{name}");
    }
    assert_eq!(write(&plans, "q", add("goes on")).unwrap().version, 4);
    assert_eq!(ours.plans().doctor(true).unwrap(), [], "nothing is left to repair");
}
