//! The journal of what models were asked: on the disk before an answer is used, and never asked twice.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use waypost_core::Timestamp;
use waypost_llm::{Answer, Ended, ModelRequest, Purpose, Speaker, Turn};
use waypost_llm::{
    Cost, Journal, JournalError, JournalLine, Lost, Model, ModelError, Progress, Quiet, Recorded, Redactor,
    Replayed, Reply, Stop, Totals, read_journal,
};
use waypost_testkit::id;

use crate::models::{KEY, ask};

/// A folder that ends with its value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("waypost-journal-{name}-{}", std::process::id()));
        let _left_behind = fs::remove_dir_all(&folder);
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("planning/plan.jsonl")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

fn open(folder: &Folder) -> Result<Journal, JournalError> {
    let now = Timestamp::parse("2026-03-22T10:00:00Z").unwrap();
    Journal::open(&folder.file(), now, "host-1 (4711)", Redactor::new([KEY.to_owned()]))
}

fn of(purpose: Purpose, task: &str, slot: &str) -> ModelRequest {
    ModelRequest { purpose, task: Some(id(task)), slot: slot.to_owned(), ..ask() }
}

/// Answers with what it was asked last, and counts.
#[derive(Default)]
struct Echo(AtomicU32);

impl Model for Echo {
    fn ask(&self, ask: &ModelRequest, _progress: &dyn Progress, _stop: &Stop) -> Result<Reply, ModelError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let text = ask.turns.last().map(|turn| turn.text.clone()).unwrap_or_default();
        if text == "fail" {
            return Err(ModelError::NotReached { model: "echo".to_owned(), why: format!("with {KEY}") });
        }
        let answer = Answer {
            text,
            ended: Ended::Whole,
            model: "m".to_owned(),
            tokens_in: 10,
            tokens_out: 5,
            estimated: false,
        };
        Ok(Reply { answer, from: "echo".to_owned(), cost: Some(Cost(70)), recalled: false })
    }
}

fn with_text(ask: ModelRequest, text: &str) -> ModelRequest {
    ModelRequest { turns: vec![Turn { by: Speaker::User, text: text.to_owned() }], ..ask }
}

fn put(model: &dyn Model, ask: &ModelRequest) -> Result<Reply, ModelError> {
    model.ask(ask, &Quiet, &Stop::new())
}

#[test]
fn an_answer_that_has_arrived_is_never_asked_for_again() {
    let folder = Folder::new("once");
    let echo = Arc::new(Echo::default());
    for round in 0..3 {
        let journal = Arc::new(open(&folder).unwrap());
        let model = Recorded::new(Arc::clone(&echo), journal);
        let reply = put(&model, &of(Purpose::Atomicity, "t1", "atomicity/t1")).unwrap();
        assert_eq!((reply.answer.text.as_str(), reply.recalled), ("Move to JWT", round > 0));
    }
    assert_eq!(echo.0.load(Ordering::SeqCst), 1);
    assert_eq!(fs::metadata(folder.file()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_error_is_kept_and_its_question_is_asked_again() {
    let folder = Folder::new("errors");
    let echo = Arc::new(Echo::default());
    let journal = Arc::new(open(&folder).unwrap());
    let model = Recorded::new(Arc::clone(&echo), Arc::clone(&journal));
    let failing = with_text(ask(), "fail");
    assert!(put(&model, &failing).is_err());
    assert!(put(&model, &failing).is_err());
    assert_eq!((echo.0.load(Ordering::SeqCst), journal.totals().failed), (2, 2));
    assert!(!fs::read_to_string(folder.file()).unwrap().contains(KEY));
}

#[test]
fn calls_that_broke_off_are_charged_and_counted_as_far_as_they_cost_something() {
    let folder = Folder::new("lost");
    let journal = open(&folder).unwrap();
    let asked = of(Purpose::Atomicity, "t1", "atomicity/t1");
    let broke_off = ModelError::BrokeOff { model: "echo".to_owned() };
    let lost = Lost { from: "echo".to_owned(), tokens_in: 10, tokens_out: 2, estimated: true, cost: None };
    journal.keep_error(&asked, &broke_off, Some(&lost)).unwrap();
    journal.keep_error(&asked, &broke_off, None).unwrap();
    journal.keep(&asked, put(&Echo::default(), &asked).unwrap()).unwrap();
    let totals = journal.totals();
    assert_eq!((totals.all.calls, totals.failed, totals.attempts()), (2, 2, 3));
    assert_eq!((totals.all.tokens(), totals.all.estimated, totals.all.unpriced), (27, 1, 1));
    assert_eq!(totals.by_model["echo"].tokens(), 27);
    let charges = vec![(Some(id("t1")), 12), (Some(id("t1")), 15)];
    assert_eq!(journal.charges_after(0), charges);
    drop(journal);
    assert_eq!(open(&folder).unwrap().charges_after(0), charges, "the same after a restart");
}

#[test]
fn secrets_are_in_no_line_and_what_is_used_is_what_is_kept() {
    let folder = Folder::new("secrets");
    let model = Recorded::new(Echo::default(), Arc::new(open(&folder).unwrap()));
    let telling = with_text(ask(), &format!("my keys are {KEY} and sk-proj-abcdefgh0123456789"));
    let reply = put(&model, &telling).unwrap();
    assert_eq!(reply.answer.text, "my keys are [secret] and [secret]");
    drop(model);
    let text = fs::read_to_string(folder.file()).unwrap();
    assert!(!text.contains(KEY) && !text.contains("sk-proj"), "{text}");
    let recalled = open(&folder).unwrap().find("generate/1").unwrap().reply();
    assert_eq!(recalled.answer, reply.answer);
}

#[test]
fn totals_are_told_by_task_purpose_and_model_and_what_is_forgotten_was_still_paid() {
    let folder = Folder::new("totals");
    let journal = Arc::new(open(&folder).unwrap());
    let echo = Arc::new(Echo::default());
    let model = Recorded::new(Arc::clone(&echo), Arc::clone(&journal));
    put(&model, &of(Purpose::Atomicity, "t1", "atomicity/t1")).unwrap();
    put(&model, &of(Purpose::Decompose, "t1", "decompose/t1")).unwrap();
    put(&model, &of(Purpose::Atomicity, "t2", "atomicity/t2")).unwrap();
    put(&model, &ask()).unwrap();
    let forgotten = journal.forget("t1 was rolled back", |entry| entry.task == Some(id("t1"))).unwrap();
    assert_eq!(forgotten, ["atomicity/t1", "decompose/t1"]);
    assert!(!put(&model, &of(Purpose::Atomicity, "t1", "atomicity/t1")).unwrap().recalled);
    assert!(put(&model, &of(Purpose::Atomicity, "t2", "atomicity/t2")).unwrap().recalled);
    let totals = journal.totals();
    assert_eq!((totals.all.calls, totals.all.tokens(), totals.all.cost), (5, 75, Cost(350)));
    assert_eq!(totals.by_task[&Some(id("t1"))].calls, 3);
    assert_eq!(totals.by_task[&None].calls, 1);
    assert_eq!(totals.by_purpose[&Purpose::Atomicity].calls, 3);
    assert_eq!(totals.by_model["echo"].calls, 5);
    drop((model, journal));
    assert_eq!(open(&folder).unwrap().totals(), totals, "the same after a restart");
    assert_eq!(Totals::of(&read_journal(&folder.file()).unwrap()), totals);
}

#[test]
fn a_journal_that_was_cut_anywhere_goes_on_with_what_is_whole() {
    let folder = Folder::new("torn");
    let model = Recorded::new(Echo::default(), Arc::new(open(&folder).unwrap()));
    put(&model, &of(Purpose::Atomicity, "t1", "atomicity/t1")).unwrap();
    put(&model, &of(Purpose::Atomicity, "t2", "atomicity/t2")).unwrap();
    drop(model);
    let whole = fs::read(folder.file()).unwrap();
    let ends: Vec<usize> = (0..whole.len()).filter(|&at| whole[at] == b'\n').collect();
    let near_an_end = |cut: &usize| ends.iter().any(|end| cut.abs_diff(*end) < 4);
    for cut in (0..=whole.len()).filter(|cut| cut % 23 == 0 || near_an_end(cut)) {
        fs::write(folder.file(), &whole[..cut]).unwrap();
        let journal = open(&folder).unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        // A line counts when nothing but its end is missing.
        let lines = ends.iter().filter(|&&end| end <= cut).count();
        assert_eq!(journal.find("atomicity/t1").is_some(), lines >= 2, "cut at {cut}");
        assert_eq!(journal.find("atomicity/t2").is_some(), lines >= 3, "cut at {cut}");
        let is_torn = cut > 0 && !ends.iter().any(|&end| end == cut || end + 1 == cut);
        assert_eq!(journal.torn().is_some(), is_torn, "cut at {cut}");
        journal.keep(&ask(), put(&Echo::default(), &ask()).unwrap()).unwrap();
        drop(journal);
        let lines = read_journal(&folder.file()).unwrap();
        assert!(matches!(&lines[0], JournalLine::Begun { .. }), "cut at {cut}");
        assert!(
            matches!(lines.last(), Some(JournalLine::Answered { entry, .. }) if entry.slot == "generate/1")
        );
    }
}

#[test]
fn a_line_that_is_broken_elsewhere_is_named_and_nothing_is_overwritten() {
    let folder = Folder::new("corrupt");
    let model = Recorded::new(Echo::default(), Arc::new(open(&folder).unwrap()));
    put(&model, &ask()).unwrap();
    drop(model);
    let text = fs::read_to_string(folder.file()).unwrap();
    let broken = text.replacen("\"slot\"", "\"slut\"", 1) + "{\"kind\":\"forgotten\"";
    fs::write(folder.file(), &broken).unwrap();
    let Err(JournalError::Corrupt { line, .. }) = open(&folder) else { panic!("it was read") };
    assert_eq!(line, 2);
    assert_eq!(fs::read_to_string(folder.file()).unwrap(), broken);
    fs::write(folder.file(), "{\"kind\":\"begun\",\"format\":\"waypost planning journal\",\"version\":2}\n")
        .unwrap();
    assert!(
        matches!(open(&folder), Err(JournalError::Corrupt { line: 1, .. })),
        "a version that is yet to come"
    );
}

#[test]
fn a_second_writer_is_told_who_has_it() {
    let folder = Folder::new("held");
    let first = open(&folder).unwrap();
    let by = "host-1 (4711)".to_owned();
    assert_eq!(
        open(&folder).unwrap_err(),
        JournalError::Held { file: folder.file().display().to_string(), by }
    );
    drop(first);
    assert!(open(&folder).is_ok());
}

#[test]
fn a_replay_answers_from_the_file_alone_and_says_where_it_departs() {
    let folder = Folder::new("replay");
    let model = Recorded::new(Echo::default(), Arc::new(open(&folder).unwrap()));
    put(&model, &ask()).unwrap();
    drop(model);
    let replayed = Replayed::read(&folder.file()).unwrap();
    let reply = put(&replayed, &ask()).unwrap();
    assert_eq!(
        (reply.answer.text.as_str(), reply.recalled, reply.cost),
        ("Move to JWT", false, Some(Cost(70)))
    );
    let other = put(&replayed, &with_text(ask(), "Move to PASETO")).unwrap_err();
    assert_eq!(other.code(), "departed");
    let unknown = put(&replayed, &ModelRequest { slot: "generate/2".to_owned(), ..ask() }).unwrap_err();
    assert!(unknown.to_string().ends_with("has no recorded response for generate/2"), "{unknown}");
}

#[test]
fn a_replay_knows_every_question_that_a_slot_has_had() {
    let folder = Folder::new("replay-again");
    let journal = Arc::new(open(&folder).unwrap());
    let model = Recorded::new(Echo::default(), Arc::clone(&journal));
    let reworded = with_text(ask(), "Move to PASETO");
    for asked in [ask(), reworded.clone()] {
        put(&model, &asked).unwrap();
        journal.forget("rolled back", |_| true).unwrap();
    }
    let replayed = Replayed::read(&folder.file()).unwrap();
    assert_eq!(put(&replayed, &ask()).unwrap().answer.text, "Move to JWT");
    assert_eq!(put(&replayed, &reworded).unwrap().answer.text, "Move to PASETO");
    let other = put(&replayed, &with_text(ask(), "Move to cookies")).unwrap_err();
    assert_eq!(other.code(), "departed");
}

#[test]
fn the_lines_of_a_journal_are_a_promise() {
    let folder = Folder::new("golden");
    let journal = open(&folder).unwrap();
    let asked = of(Purpose::Decompose, "t3", "decompose/t3");
    journal.keep(&asked, put(&Echo::default(), &asked).unwrap()).unwrap();
    journal.keep_error(&ask(), &ModelError::BrokeOff { model: "echo".to_owned() }, None).unwrap();
    let (from, cost) = ("echo".to_owned(), Some(Cost(7)));
    let lost = Lost { from, tokens_in: 10, tokens_out: 2, estimated: true, cost };
    journal.keep_error(&asked, &ModelError::Stopped, Some(&lost)).unwrap();
    journal.forget("rolled back", |_| true).unwrap();
    drop(journal);
    let text = fs::read_to_string(folder.file()).unwrap();
    // The moments differ from run to run.
    let text = text.split("\"2026-03-22T10:00:").enumerate().map(|(place, part)| match place {
        0 => part.to_owned(),
        _ => format!("\"MOMENT{}", &part[part.find('"').unwrap()..]),
    });
    assert_eq!(
        text.collect::<String>(),
        format!(
            "{}\n{}\n{}\n{}\n{}\n",
            r#"{"kind":"begun","format":"waypost planning journal","version":1}"#,
            format_args!(
                r#"{{"kind":"answered","at":"MOMENT","slot":"decompose/t3","purpose":"decompose","task":"t3","prompt":"generate/1","fingerprint":"{}","from":"echo","cost_millionths":70,"answer":{{"text":"Move to JWT","ended":"whole","model":"m","tokens_in":10,"tokens_out":5,"estimated":false}},"system":"You plan.","turns":[{{"by":"user","text":"Move to JWT"}}]}}"#,
                asked.fingerprint()
            ),
            format_args!(
                r#"{{"kind":"failed","at":"MOMENT","slot":"generate/1","purpose":"generate","fingerprint":"{}","code":"broke_off","error":"echo: the response ended early"}}"#,
                ask().fingerprint()
            ),
            format_args!(
                r#"{{"kind":"failed","at":"MOMENT","slot":"decompose/t3","purpose":"decompose","task":"t3","fingerprint":"{}","code":"stopped","error":"the request was cancelled","lost":{{"from":"echo","tokens_in":10,"tokens_out":2,"estimated":true,"cost_millionths":7}}}}"#,
                asked.fingerprint()
            ),
            r#"{"kind":"forgotten","at":"MOMENT","slots":["decompose/t3"],"why":"rolled back"}"#,
        )
    );
}
