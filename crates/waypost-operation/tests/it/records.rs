//! How a record is written and read, and what is refused.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use waypost_core::{
    Comment, Complexity, DependencyRule, ForeignFields, Hold, Json, Lock, LockMode, Refinement, Retry,
    StopKind, limits,
};
use waypost_operation::{
    Action, ActionRef, CloneTag, Field, ListField, OperationSet, OutcomeKind, ParsedRecord, PlanStart,
    Record, RecordError, RecordHeader, RecordId, RefusedRecord, Signature, StartState, TaskRef, TaskStart,
    TravellingWork,
};
use waypost_testkit::id;

use crate::committed;
use crate::kit::{ada, agent, at, plan_id};

const RECORDS: &str = "tests/golden/records.jsonl";

fn header(clock: u64, parents: Vec<RecordId>) -> RecordHeader {
    let from = CloneTag::new("k7f").unwrap();
    RecordHeader { plan: plan_id(), clock, parents, at: at(clock), by: ada(), from }
}

fn record(clock: u64, parents: &[RecordId], actions: Vec<Action>) -> Record {
    Record::new(header(clock, parents.to_vec()), actions).unwrap()
}

fn some_id() -> RecordId {
    "0123456789abcdefghjkmnpqr0".parse().unwrap()
}

fn task() -> TaskRef {
    "t1#012345".parse().unwrap()
}

fn bare(name: &str) -> TaskStart {
    serde_json::from_value(json!({ "task": name, "place": "a0" })).unwrap()
}

fn work() -> TravellingWork {
    // A number that no floating-point number holds.
    let inputs = Json::parse(r#"{"n":9007199254740993,"command":"make ü"}"#).unwrap();
    TravellingWork { executor: "shell".into(), inputs, shape: Some("build".into()) }
}

fn foreign() -> ForeignFields {
    ForeignFields(BTreeMap::from([("clido".to_owned(), Json::from(json!({ "z": 1.5, "a": [null] })))]))
}

/// One of each action, in the order of the list, and others of its kind.
fn actions() -> Vec<Action> {
    let set = |on: Option<TaskRef>, field: Field, to: Value, over: Vec<RecordId>| Action::Set {
        task: on,
        field,
        to,
        over,
    };
    let start = TaskStart {
        parent: Some(TaskRef::in_same_record(id("t0"))),
        description: "build it".into(),
        depends_on: vec![json!("t2#012345"), json!({ "plan": "other", "task": "far" })],
        when: DependencyRule::AllFinished,
        complexity: Some(Complexity::High),
        notes: "with care".into(),
        tools: vec!["cargo".into()],
        skip: true,
        locks: vec![
            Lock { key: "db".into(), mode: LockMode::Exclusive },
            Lock { key: "disk".into(), mode: LockMode::Shared },
        ],
        work: Some(work()),
        check: Some(TravellingWork { shape: None, ..work() }),
        retry: Some(Retry { attempts: 3, backoff_seconds: 5, backoff_seconds_max: 60 }),
        timeout_seconds: Some(60),
        priority: -2,
        provides: Some("binary".into()),
        refinement: Some(Refinement::Atomic),
        reasoning: Some("small".into()),
        graph_node_id: Some("n1".into()),
        digest: Some(Json::from(json!({ "summary": "built", "compression_ratio": 0.1 }))),
        tokens: 7,
        foreign: foreign(),
        held: Some(Hold { by: ada(), reason: "not yet".into() }),
        state: Some(StartState {
            outcome: OutcomeKind::Done,
            text: Some("it works".into()),
            output: Some(Json::from(json!([1]))),
            by: None,
        }),
        ..bare("t1")
    };
    vec![
        Action::Create(Box::default()),
        Action::Create(Box::new(PlanStart {
            title: "release".into(),
            goal: "ship".into(),
            status: "nearly".into(),
            owner: "planner".into(),
            queue: "fast".into(),
            token_budget: Some(1000),
            body: "# Release\n".into(),
            foreign: foreign(),
            archived: true,
            tokens: 12,
            created_by: Some(agent()),
        })),
        Action::Add(Box::new(bare("t0"))),
        Action::Add(Box::new(start)),
        set(None, Field::Title, json!("release 2"), vec![some_id()]),
        set(Some(task()), Field::Notes, json!("a\nb"), vec![]),
        set(Some(task()), Field::Parent, json!("t0#012345"), vec![]),
        set(Some(task()), Field::Place, json!("a1V"), vec![]),
        set(Some(task()), Field::Work, serde_json::to_value(work()).unwrap(), vec![]),
        set(Some(task()), Field::Held, Value::Null, vec![]),
        set(Some(task()), Field::Foreign("clido".into()), json!("{\"z\":1.5}"), vec![]),
        Action::Include { task: task(), list: ListField::DependsOn, item: json!("t2#012345") },
        Action::Include {
            task: task(),
            list: ListField::Locks,
            item: json!({ "key": "disk", "mode": "shared" }),
        },
        Action::Exclude { task: task(), list: ListField::Tools, item: json!("cargo"), over: vec![some_id()] },
        Action::Remove { tasks: vec![task()], over: vec![] },
        Action::Remove { tasks: vec![task()], over: vec![some_id()] },
        Action::Report {
            task: task(),
            outcome: OutcomeKind::Done,
            text: Some("it works".into()),
            output: Some(Json::from(json!({ "size": 1.5 }))),
            evidence: Some(Json::from(json!({ "passed": true }))),
            over: vec![some_id()],
        },
        Action::Report {
            task: task(),
            outcome: OutcomeKind::Cancelled,
            text: None,
            output: None,
            evidence: None,
            over: vec![],
        },
        Action::Retry { task: task(), over: vec![some_id()] },
        Action::Claim { task: task(), worker: "agent:codex#k3".into() },
        Action::Ask { task: task(), question: "which?".into(), choices: vec!["a".into(), "b".into()] },
        Action::Answer { task: task(), answer: "a".into(), over: vec![some_id()] },
        Action::Charge { task: Some(task()), tokens: 5, moved: true },
        Action::Charge { task: None, tokens: 5, moved: false },
        Action::Stop { kind: StopKind::Paused, reason: "lunch".into(), by: Some(ada()) },
        Action::Resume { over: vec![some_id()] },
        Action::Approve { approval: Json::from(json!({ "version": 3 })) },
        Action::Delete {},
        Action::Dismiss {
            over: vec![ActionRef { record: some_id(), index: 0 }, ActionRef { record: some_id(), index: 3 }],
        },
        Action::Comment { task: task(), text: "mind the\nmirror".into(), by: None, at: None },
        Action::Comment { task: task(), text: "so it was".into(), by: Some(agent()), at: Some(at(7)) },
    ]
}

/// What later builds learned to write: labels, assignees, comments, and who stopped a task.
fn annotations() -> Vec<Action> {
    let comment = Comment { by: agent(), at: at(7), text: "so it was".into() };
    vec![
        Action::Add(Box::new(TaskStart {
            labels: vec!["frontend".into(), "risky".into()],
            assignee: Some("person:ada".into()),
            comments: vec![comment],
            ..bare("t9")
        })),
        Action::Include { task: task(), list: ListField::Labels, item: json!("risky") },
        Action::Exclude {
            task: task(),
            list: ListField::Labels,
            item: json!("risky"),
            over: vec![some_id()],
        },
        Action::Set {
            task: Some(task()),
            field: Field::Assignee,
            to: json!("person:ada"),
            over: vec![some_id()],
        },
        // Who ended a task before it was shared.
        Action::Add(Box::new(TaskStart {
            state: Some(StartState {
                outcome: OutcomeKind::Cancelled,
                text: None,
                output: None,
                by: Some(ada()),
            }),
            ..bare("t10")
        })),
    ]
}

fn records() -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    for action in actions().into_iter().chain(annotations()) {
        let parents: Vec<RecordId> = records.last().map(Record::id).into_iter().collect();
        let is_signed = matches!(action, Action::Dismiss { .. });
        let mut record = record(records.len() as u64 + 1, &parents, vec![action]);
        if is_signed {
            record = record.sign(Signature { key: "SHA256:abc".into(), value: "U1NI\"".into() });
        }
        records.push(record);
    }
    records
}

#[test]
fn every_record_is_written_as_it_always_was() {
    let lines: String = records().iter().map(|record| record.to_line() + "\n").collect();
    let advice =
        "Other clones have the old shape, and its id. Add an action, or raise RECORD_FORMAT; change none.";
    committed::check(RECORDS, &lines, advice);
}

#[test]
fn every_record_is_read_as_it_always_was() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(RECORDS);
    let text = std::fs::read_to_string(path).unwrap();
    let found: Vec<ParsedRecord> = text.lines().map(|line| Record::parse(line.as_bytes()).unwrap()).collect();
    assert_eq!(found, records().into_iter().map(ParsedRecord::from).collect::<Vec<_>>());
    let windows = format!("{}\r", text.lines().next().unwrap());
    assert!(Record::parse(windows.as_bytes()).is_ok(), "line ends of another system");
}

#[test]
fn no_action_is_forgotten() {
    let mut names: Vec<&str> = actions().iter().map(Action::op).collect();
    names.dedup();
    assert_eq!(names, Action::OPS, "one of each, in the order of the list, next to others of its kind");
    for action in actions() {
        assert_eq!(serde_json::to_value(&action).unwrap()["op"], action.op());
    }
}

#[test]
fn any_change_of_a_line_is_noticed() {
    let line = records()[3].to_line();
    for place in 0..line.len() {
        let mut changed = line.clone().into_bytes();
        changed[place] ^= 1;
        assert!(Record::parse(&changed).is_err(), "{}", String::from_utf8_lossy(&changed));
        assert!(Record::parse(&line.as_bytes()[..place]).is_err(), "cut after {place} bytes");
    }
    let title = line.replace("build it", "break it");
    assert!(matches!(Record::parse(title.as_bytes()), Err(RecordError::WrongId { .. })));
    for marker in ["<<<<<<< HEAD", "=======", ">>>>>>> theirs"] {
        assert_eq!(Record::parse(marker.as_bytes()), Err(RecordError::ConflictMarker));
    }
    let part = &line[..line.len() / 2];
    assert!(matches!(Record::parse(part.as_bytes()), Err(RecordError::NotARecord(_))), "{part}");
}

/// Returns a line with this content and the id that belongs to it.
fn with_id(content: &str) -> String {
    // The record of an empty content has the id of its bytes; the error names the one that is right.
    let wrong = format!("{},\"id\":\"{}\",\"sig\":null}}", content.strip_suffix('}').unwrap(), some_id());
    let Err(RecordError::WrongId { found, .. }) = Record::parse(wrong.as_bytes()) else { panic!("{wrong}") };
    wrong.replace(&some_id().to_string(), &found.to_string())
}

fn content_with(changes: &str) -> String {
    let content = r#"{"v":1,"plan":"p","clock":1,"parents":[],"at":"2023-11-14T22:13:20Z","by":"person:ada","from":"k7f","do":[{"op":"delete"}]}"#;
    let Some((old, new)) = changes.split_once(" → ") else { return content.to_owned() };
    assert!(content.contains(old), "{old}");
    content.replace(old, new)
}

#[test]
fn a_record_of_a_newer_version_is_kept_byte_for_byte() {
    let known = Record::parse(with_id(&content_with("")).as_bytes()).unwrap();
    assert!(matches!(known, ParsedRecord::Known(_)));
    for changes in [
        r#""v":1 → "v":2"#,
        r#""v":1 → "v":2,"new":{"a": 1.0}"#,
        r#"{"op":"delete"} → {"op":"teleport","to":"mars"}"#,
        r#"{"op":"delete"} → {"op":"delete"},{"op":"teleport"}"#,
    ] {
        let line = with_id(&content_with(changes));
        let parsed = Record::parse(line.as_bytes()).unwrap();
        assert!(matches!(parsed, ParsedRecord::Newer(_)), "{line}");
        assert_eq!((parsed.to_line(), parsed.clock(), parsed.plan()), (line, 1, &plan_id()));
        let mut set = OperationSet::new(plan_id());
        set.insert(parsed);
        assert_eq!((set.newer(), set.heads()), (1, vec![]), "nobody here has seen it");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    let refused = |changes: &str, expected: &str| {
        let error = Record::parse(with_id(&content_with(changes)).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{changes}: {error}");
    };
    refused(r#""v":1 → "v":0"#, "format 0 does not exist");
    refused(r#""clock":1 → "clock":0"#, "clocks begin at 1");
    refused(r#""clock":1 → "clock":1000001"#, "the maximum is 1000000");
    refused(r#"[{"op":"delete"}] → []"#, "no actions");
    refused(r#""plan":"p" → "plan":"../p""#, "plan id");
    refused(r#""v":1 → "v":1,"v":1"#, "duplicate field");
    refused(r#"{"op":"delete"} → {"op":"delete","x":1}"#, "unknown field");
    refused(r#"{"op":"delete"} → {"op":"delete"} "#, "not written as Waypost writes it");
    refused(r#"{"op":"delete"} → {"op":"set","field":"title","to":3}"#, "wrong type");
    refused(r#"{"op":"delete"} → {"op":"set","field":"notes","to":"x"}"#, "not a field there");
    refused(r#"{"op":"delete"} → {"op":"set","field":"colour","to":"x"}"#, "not a field");
    refused(r#"{"op":"delete"} → {"op":"set","task":"t1#012345","field":"place","to":"a00"}"#, "wrong type");
    refused(
        r#"{"op":"delete"} → {"op":"set","task":"t1#012345","field":"work","to":{"executor":"sh","inputs":"[]"}}"#,
        "wrong type",
    );
    refused(
        r#"{"op":"delete"} → {"op":"set","task":"t1#012345","field":"work","to":{"executor":"sh","inputs":"{ }"}}"#,
        "wrong type",
    );
    refused(r#"{"op":"delete"} → {"op":"add","task":"t1","place":""}"#, "not a key");
    refused(r#"{"op":"delete"} → {"op":"add","task":"t1","place":"a0","labels":["a\nb"]}"#, "short lines");
    refused(r#"{"op":"delete"} → {"op":"add","task":"t1","place":"a0","assignee":" "}"#, "short lines");
    refused(r#"{"op":"delete"} → {"op":"comment","task":"t1#012345","text":""}"#, "empty");
    refused(
        r#"{"op":"delete"} → {"op":"include","task":"t1#012345","list":"labels","item":"a\u001b"}"#,
        "not a label",
    );
    refused(r#"{"op":"delete"} → {"op":"set","task":"t1#012345","field":"assignee","to":""}"#, "wrong type");
    refused(
        r#"{"op":"delete"} → {"op":"add","task":"t1","place":"a0"},{"op":"add","task":"t1","place":"a1"}"#,
        "added twice",
    );
}

#[test]
fn every_limit_holds_at_its_maximum_and_not_beyond() {
    let is_fine = |header: RecordHeader, actions: Vec<Action>| Record::new(header, actions).is_ok();
    let deletes = |count: usize| vec![Action::Delete {}; count];
    assert!(is_fine(header(1, vec![]), deletes(limits::RECORD_ACTIONS_MAX)));
    assert!(!is_fine(header(1, vec![]), deletes(limits::RECORD_ACTIONS_MAX + 1)));
    let parents = |count: usize| vec![some_id(); count];
    assert!(is_fine(header(2, parents(limits::RECORD_PARENTS_MAX)), deletes(1)));
    assert!(!is_fine(header(2, parents(limits::RECORD_PARENTS_MAX + 1)), deletes(1)));
    assert!(is_fine(header(limits::RECORDS_MAX as u64, parents(1)), deletes(1)));
    assert!(!is_fine(header(limits::RECORDS_MAX as u64 + 1, parents(1)), deletes(1)));
    let title = |bytes: usize| {
        vec![Action::Set { task: None, field: Field::Title, to: "x".repeat(bytes).into(), over: vec![] }]
    };
    assert!(is_fine(header(1, vec![]), title(limits::LINE_BYTES_MAX)));
    assert!(!is_fine(header(1, vec![]), title(limits::LINE_BYTES_MAX + 1)));
    let place = |bytes: usize| {
        let to = format!("a0{}", "1".repeat(bytes - 2)).into();
        vec![Action::Set { task: Some(task()), field: Field::Place, to, over: vec![] }]
    };
    let comment =
        |bytes: usize| vec![Action::Comment { task: task(), text: "x".repeat(bytes), by: None, at: None }];
    assert!(is_fine(header(1, vec![]), comment(limits::COMMENT_BYTES_MAX)));
    assert!(!is_fine(header(1, vec![]), comment(limits::COMMENT_BYTES_MAX + 1)));
    let labels = |count: usize, bytes: usize| {
        let labels = (0..count).map(|number| format!("{number:x>bytes$}")).collect();
        vec![Action::Add(Box::new(TaskStart { labels, ..bare("t1") }))]
    };
    assert!(is_fine(header(1, vec![]), labels(limits::LABELS_MAX, limits::LABEL_BYTES_MAX)));
    assert!(!is_fine(header(1, vec![]), labels(limits::LABELS_MAX + 1, 8)));
    assert!(!is_fine(header(1, vec![]), labels(1, limits::LABEL_BYTES_MAX + 1)));
    assert!(is_fine(header(1, vec![]), place(limits::PLACE_BYTES_MAX)));
    assert!(!is_fine(header(1, vec![]), place(limits::PLACE_BYTES_MAX + 1)));
    // A line feed takes two bytes in a line.
    let body = |bytes: usize| {
        vec![Action::Set { task: None, field: Field::Body, to: "\n".repeat(bytes).into(), over: vec![] }]
    };
    let rest = record(1, &[], body(0)).to_line().len();
    let most = (limits::RECORD_BYTES_MAX - rest) / 2;
    assert!(is_fine(header(1, vec![]), body(most)));
    assert!(matches!(Record::new(header(1, vec![]), body(most + 1)), Err(RecordError::TooLong { .. })));
    let long = vec![b' '; limits::RECORD_BYTES_MAX + 1];
    assert!(matches!(Record::parse(&long), Err(RecordError::TooLong { .. })));
}

#[test]
fn a_set_says_the_same_in_whichever_order_its_records_came() {
    let list = records();
    let ids: Vec<RecordId> = list.iter().map(Record::id).collect();
    let mut set = OperationSet::new(plan_id());
    for record in list.iter().rev() {
        set.insert(record.clone().into());
        if set.len() < list.len() {
            assert_eq!(set.heads(), [], "the ancestors are missing");
            assert_eq!(set.waiting().len(), 1, "only the first one names what is missing");
        }
    }
    assert_eq!(set.heads(), ids[ids.len() - 1..]);
    assert_eq!((set.waiting(), set.refused()), (vec![], vec![]));
    let next = set.record(at(9), ada(), CloneTag::new("x9d").unwrap(), vec![Action::Delete {}]).unwrap();
    assert_eq!((next.clock(), next.parents()), (ids.len() as u64 + 1, set.heads().as_slice()));
}

#[test]
fn a_clock_that_does_not_follow_from_the_parents_is_refused() {
    let first = record(1, &[], vec![Action::Delete {}]);
    let late = record(900, &[first.id()], vec![Action::Delete {}]);
    let early = record(1, &[first.id()], vec![Action::Delete {}]);
    let orphan = record(900, &[some_id()], vec![Action::Delete {}]);
    let heir = record(901, &[late.id()], vec![Action::Delete {}]);
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 1, 3]] {
        let mut set = OperationSet::new(plan_id());
        for place in order {
            set.insert([&first, &late, &early, &orphan, &heir][place].clone().into());
        }
        let mut refused = vec![
            (late.id(), RefusedRecord::WrongClock { found: 900, expected: 2 }),
            (early.id(), RefusedRecord::WrongClock { found: 1, expected: 2 }),
        ];
        refused.sort_by_key(|(id, _)| (set.get(*id).unwrap().clock(), *id));
        assert_eq!(set.refused(), refused);
        assert_eq!(set.heads(), [first.id()], "what names a missing record pushes no clock");
        assert_eq!(set.waiting().len(), 2);
    }
}
