//! The folder of JSON files after a crash in the middle of a commit.

use std::fs;

use waypost_core::{Command, Plan};
use waypost_store::{
    Append, FileStore, IndexChanges, LeaseTerms, PlanStore, PlanSummary, StoreError, Transaction,
};
use waypost_testkit::chain;

use crate::damaged_files::*;
use crate::kit::*;
use crate::place::Folder;

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
            let fourth = write(&plans, "p", add("fourth")).unwrap();
            assert_eq!(number(&plans, &fourth), 5);
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
        let create = Command::Create { draft: chain(1).into(), approval_required: None };
        append(transaction, &mut Plan::blank(plan("z")), &create)?;
        // The lines of `p` can be appended, and those of `z`, which come after them, cannot.
        fs::create_dir(history(&place, "z")).unwrap();
        Ok(())
    });
    assert!(
        matches!(outcome, Err(StoreError::Corrupt { what, .. }) if what == history(&place, "z").display().to_string())
    );
    fs::remove_dir(history(&place, "z")).unwrap();
    assert_eq!(text(&history(&place, "p")), before);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    let plans = PlanStore::new(store);
    let third = write(&plans, "p", add("third")).unwrap();
    assert_eq!(number(&plans, &third), 4, "no number was used up");
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
