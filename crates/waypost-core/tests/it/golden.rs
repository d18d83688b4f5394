//! Golden files for stored shapes, which are promises: one line of JSON per event, and the bytes of a small snapshot.

use std::collections::BTreeMap;

use waypost_core::{
    Answer, Approval, ApprovalKind, ApprovalSignature, ApprovedWork, Attestation, Comment, Complexity,
    Dependency, DependencyRule, Digest, Draft, Event, Evidence, ExternalTaskRef, FORMAT, ForeignFields,
    GateAhead, GateOutcome, GateRecord, Hold, Json, Lock, LockMode, Phase, Plan, PlanId, PlanSpec, PlanState,
    PlannerNotes, Proof, Question, Refinement, Rejection, Report, Retry, StartRefusal, StartRefusalReason,
    Status, Task, TaskExtras, TaskSpec, TaskState, UpstreamResult, Work,
};
use waypost_testkit::{id, task};

use crate::committed;
use crate::kit::{ada, agent, at, plan_id};

const EVENTS: &str = "tests/golden/events.jsonl";
const SNAPSHOT: &str = "tests/golden/snapshot.hex";

#[test]
fn every_event_is_written_as_it_always_was() {
    let lines: String = events().iter().map(|event| serde_json::to_string(event).unwrap() + "\n").collect();
    let advice =
        "Stored histories have the old shape. Add fields with a default; never rename, retype or remove one.";
    committed::check(EVENTS, &lines, advice);
}

#[test]
fn every_event_is_read_as_it_always_was() {
    let text =
        std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(EVENTS)).unwrap();
    let found: Vec<Event> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found, events());
}

#[test]
fn no_event_is_forgotten() {
    let mut names: Vec<&str> = events().iter().map(Event::kind).collect();
    names.dedup();
    assert_eq!(names, Event::KINDS, "one of each, in the order of the list, next to others of its kind");
}

#[test]
fn an_event_is_called_what_it_is_stored_as() {
    for event in events() {
        assert_eq!(serde_json::to_value(&event).unwrap()["event"], event.kind());
        if let Some(task) = event.task() {
            assert!(event.is_about(task), "{event:?}");
        }
    }
}

#[test]
fn a_snapshot_has_the_bytes_that_it_always_had() {
    let mut plan = Plan::from_trusted_draft(plan_id(), draft());
    let bytes = plan.snapshot().to_vec();
    let advice = "Raise SNAPSHOT_FORMAT, so that no build reads bytes that mean something else, then update this file.";
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(SNAPSHOT);
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    let hex = hex(&bytes);
    let format = |hex: &str| hex.get(..8).map(str::to_owned);
    assert!(
        known.is_empty() || known == hex || format(&known) != format(&hex),
        "the bytes changed. {advice}"
    );
    committed::check(SNAPSHOT, &hex, advice);
    let again = Plan::from_snapshot(bytes).unwrap();
    assert_eq!(again.to_draft(), plan.to_draft());
}

#[test]
fn damaged_snapshots_are_left_aside_and_never_guessed_at() {
    let bytes = Plan::from_trusted_draft(plan_id(), draft()).snapshot().to_vec();
    assert!(Plan::from_snapshot(Vec::new()).is_err());
    let mut other_format = bytes.clone();
    other_format[0] ^= 0xFF;
    assert!(Plan::from_snapshot(other_format).is_err());
    for length in 0..bytes.len() {
        assert!(
            Plan::from_snapshot(bytes[..length].to_vec()).is_err(),
            "cut after {length} of {} bytes",
            bytes.len()
        );
    }
}

/// Formats bytes as lines of 64 hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n";
    bytes.chunks(32).map(line).collect()
}

fn gate() -> GateRecord {
    GateRecord {
        by: ada(),
        at: at(7),
        version: 3,
        digest: "sha256:1".into(),
        attempt: 1,
        outcome: GateOutcome::Done,
        answer: Some("sha256:2".into()),
        proof: Proof::Presence,
        via: "terminal".into(),
        account: "1000@host".into(),
        place: Some("7d".repeat(32)),
        nonce: "9b1e".into(),
        seal: Some("3f9a".into()),
        signature: Some("-----BEGIN SSH SIGNATURE-----".into()),
    }
}

fn foreign() -> ForeignFields {
    let fields = serde_json::json!({ "z": 1, "a": [1.5, null, "ü"] });
    ForeignFields(BTreeMap::from([("clido".to_owned(), Json::from(fields))]))
}

fn digest() -> Digest {
    Digest {
        summary: "it went well".into(),
        key_decisions: vec!["keep it small".into()],
        artifacts: vec!["src/lib.rs".into()],
        compression_ratio: Some(0.05),
        fidelity_score: Some(0.9),
    }
}

fn far() -> ExternalTaskRef {
    ExternalTaskRef {
        agent: Some("builder".into()),
        plan: Some(PlanId::new("other").unwrap()),
        task: id("far"),
    }
}

fn received() -> UpstreamResult {
    UpstreamResult {
        status: Status::Done,
        output: Some(Json::of(&[1, 2])),
        provides: Some("schema".into()),
        plan: Some(PlanId::new("other").unwrap()),
        reason: None,
    }
}

/// A task with every field set.
fn full_spec() -> TaskSpec {
    TaskSpec {
        id: id("full"),
        description: "everything at once".into(),
        parent: Some(id("group")),
        depends_on: vec![
            Dependency::Task(id("plain")),
            Dependency::External(Box::new(far())),
            Dependency::External(Box::new(ExternalTaskRef { agent: None, ..far() })),
            Dependency::External(Box::new(ExternalTaskRef { plan: None, ..far() })),
        ],
        when: DependencyRule::AnyDone,
        complexity: Some(Complexity::High),
        notes: "mind the gap".into(),
        tools: Some(vec!["grep".into()]),
        skip: true,
        locks: vec![
            Lock { key: "db".into(), mode: LockMode::Exclusive },
            Lock { key: "disk".into(), mode: LockMode::Shared },
        ],
        work: Some(Box::new(Work {
            executor: "shell".into(),
            inputs: Json::parse(r#"{"command":"make"}"#).unwrap(),
            shape: Some("command".into()),
        })),
        check: Some(Box::new(Work { executor: "test".into(), inputs: Json::empty_object(), shape: None })),
        retry: Some(Box::new(Retry { attempts: 3, backoff_seconds: 5, backoff_seconds_max: 60 })),
        timeout_seconds: Some(600),
        priority: -2,
        provides: Some("binary".into()),
        thinking: Some(Box::new(PlannerNotes {
            refinement: Some(Refinement::Atomic),
            reasoning: Some("small enough".into()),
            tokens: 12,
            graph_node_id: Some("n1".into()),
            digest: Some(digest()),
        })),
        foreign: foreign(),
    }
}

fn full_state() -> TaskState {
    TaskState {
        status: Status::Pending,
        attempt: 2,
        tries: 1,
        created_at: Some(at(0)),
        updated_at: Some(at(1)),
        started_at: Some(at(2)),
        finished_at: None,
        not_before: Some(at(3)),
        worker: Some("host-1".into()),
        progress: Some("half".into()),
        result: Some("fine".into()),
        output: Some(Json::of(&"x")),
        error: Some("it broke".into()),
        reason: Some("not needed".into()),
        because_of: Some(id("plain")),
        received: BTreeMap::from([("builder:far".to_owned(), received())]),
        aside: Some(Box::new(TaskExtras {
            stopped_by: Some(ada()),
            gate: Some(gate()),
            held: Some(Hold { by: ada(), reason: "not before Monday".into() }),
            reported: Some(Report {
                result: Some("fine".into()),
                output: Some(Json::of(&1)),
                at: at(2),
                by: agent(),
            }),
            evidence: Some(evidence()),
            question: Some(question()),
            answers: vec![Answer {
                question: "which one?".into(),
                answer: "the left one".into(),
                by: ada(),
                at: at(2),
                state: Some(Json::of(&[1])),
            }],
            comments: vec![Comment { by: ada(), at: at(2), text: "mind the\nmirror".into() }],
            labels: vec!["frontend".into(), "risky".into()],
            assignee: Some("person:ada".into()),
        })),
    }
}

fn evidence() -> Evidence {
    Evidence {
        passed: false,
        check: "test".into(),
        worker: "host-1".into(),
        at: Some(at(3)),
        outcome: "it ended with exit code 1".into(),
        output: Some(Json::of(&"x")),
        log_tail: Some("1 of 2 failed\n".into()),
        digest: "sha256:00".into(),
    }
}

fn question() -> Question {
    Question {
        text: "left or right?".into(),
        choices: vec!["left".into(), "right".into()],
        state: Some(Json::of(&2)),
        by: "host-1".into(),
        attempt: 2,
        asked_at: at(3),
    }
}

/// A plan with every field set.
fn draft() -> Draft {
    let ended = TaskState { status: Status::Failed, finished_at: Some(at(4)), ..TaskState::default() };
    Draft {
        format: FORMAT.to_owned(),
        id: Some(plan_id()),
        version: 7,
        spec: PlanSpec {
            title: "a plan".into(),
            goal: "all of it".into(),
            status: "looking good".into(),
            owner: "planner".into(),
            queue: "nightly".into(),
            token_budget: Some(1000),
            body: "# Why\n\nBecause.".into(),
            foreign: foreign(),
        },
        state: PlanState {
            stopped_by: Some(ada()),
            archived_by: Some(ada()),
            numbers_gone: [("step_".to_owned(), 3)].into(),
            phase: Phase::Active,
            approval_required: true,
            approval_waived: true,
            approval: Some(Approval {
                by: ada(),
                at: at(5),
                version: 6,
                note: "fine".into(),
                work: Some(approved_work()),
            }),
            start_refusals: vec![refusal()],
            created_by: Some(agent()),
            created_at: Some(at(0)),
            updated_at: Some(at(6)),
            started_at: Some(at(5)),
            finished_at: None,
            tokens_used: 12,
            calls: 3,
            summary: "so far".into(),
            closed: true,
            reason: "lunch".into(),
            archived: false,
            attempts_gone: 3,
            rejections: vec![Rejection { by: ada(), work: "4e".repeat(32) }],
        },
        tasks: vec![
            Task { spec: task("plain", &[]), state: ended },
            Task::new(task("group", &[])),
            Task { spec: full_spec(), state: full_state() },
        ],
    }
}

fn approved_work() -> Box<ApprovedWork> {
    Box::new(ApprovedWork {
        digest: format!("sha256:{}", "3f".repeat(32)),
        definitions: Json::parse(r#"{"executor deploy":{"process":{"command":["make","deploy"]}}}"#).unwrap(),
        proof: Proof::Presence,
        via: "terminal".into(),
        kind: ApprovalKind::Own,
        attestation: Some(Attestation {
            account: "1000@host".into(),
            place: Some("7d".repeat(32)),
            approved_at: at(7),
            nonce: "9b".repeat(16),
            history: "5c".repeat(32),
            expires_at: Some(at(8)),
            seal: Some("ab".repeat(32)),
            signature: Some(ApprovalSignature {
                armored: "-----BEGIN SSH SIGNATURE-----".into(),
                fingerprint: "SHA256:abc".into(),
                principal: "ada@example.org".into(),
                portable: true,
            }),
        }),
        gates: vec![gate_ahead("sha256:4")],
        as_of: Some(12),
    })
}

fn gate_ahead(question: &str) -> GateAhead {
    let plan = PlanId::new("gates").unwrap();
    GateAhead { plan, task: id("g"), before: vec![id("a")], question: question.to_owned() }
}

/// As before approvals were sealed, and the questions of other plans were kept.
fn unsealed_work() -> Box<ApprovedWork> {
    let gates = vec![gate_ahead("")];
    Box::new(ApprovedWork { kind: ApprovalKind::Explicit, attestation: None, gates, ..*approved_work() })
}

fn refusal() -> StartRefusal {
    StartRefusal {
        worker: "host-1".into(),
        reason: StartRefusalReason::DigestMismatch,
        digest: format!("sha256:{}", "81".repeat(32)),
        differences: vec!["executor deploy: command".into()],
    }
}

/// Every kind of event; those with optional fields both with and without them.
fn events() -> Vec<Event> {
    let tasks = vec![id("a"), id("b")];
    vec![
        Event::PlanCreated { draft: Box::new(draft()), by: agent() },
        Event::PlanCreated { draft: Box::new(Draft::new("a plan")), by: ada() },
        Event::PlanRevised {
            title: Some("another".into()),
            goal: Some("less".into()),
            status: Some("slow".into()),
            owner: Some("builder".into()),
            queue: Some(String::new()),
            token_budget: Some(0),
            body: Some("text".into()),
            foreign: Some(foreign()),
        },
        Event::PlanRevised {
            title: None,
            goal: None,
            status: None,
            owner: None,
            queue: None,
            token_budget: None,
            body: None,
            foreign: None,
        },
        Event::PlanRestored { version: 1 },
        Event::PlanMerged {
            operations: 12,
            from: vec!["k7f".into(), "x9d".into()],
            state: "9b1e".into(),
            questions: 1,
            removals: Vec::new(),
            to_draft: true,
            begun: false,
        },
        Event::PlanMerged {
            operations: 1,
            from: Vec::new(),
            state: "9b1e".into(),
            questions: 0,
            removals: Vec::new(),
            to_draft: false,
            begun: false,
        },
        Event::PlanMerged {
            operations: 1,
            from: Vec::new(),
            state: "9b1e".into(),
            questions: 0,
            removals: Vec::new(),
            to_draft: false,
            begun: true,
        },
        Event::PlanMerged {
            operations: 1,
            from: Vec::new(),
            state: "9b1e".into(),
            questions: 1,
            removals: vec![id("a"), id("b")],
            to_draft: false,
            begun: false,
        },
        Event::TasksAdded { tasks: vec![task("a", &[]), task("b", &["a"])], index: Some(1) },
        Event::TasksAdded { tasks: vec![full_spec()], index: None },
        Event::TaskRevised { task: Box::new(full_spec()) },
        Event::TasksRemoved { tasks: tasks.clone() },
        Event::TaskMoved { task: id("a"), parent: Some(id("group")), index: 3 },
        Event::TaskMoved { task: id("a"), parent: None, index: 0 },
        Event::TasksReordered { parent: Some(id("group")), order: tasks.clone() },
        Event::TasksReordered { parent: None, order: tasks.clone() },
        Event::TasksReset { tasks: tasks.clone() },
        Event::ApprovalRequested { message: "may I?".into() },
        Event::PlanApproved { by: ada(), version: 6, note: "fine".into(), work: None },
        Event::PlanApproved { by: ada(), version: 6, note: String::new(), work: Some(approved_work()) },
        Event::PlanApproved { by: ada(), version: 6, note: String::new(), work: Some(unsealed_work()) },
        Event::StartRefused { refusal: Box::new(refusal()) },
        Event::PlanRejected { by: ada(), reason: "too bold".into() },
        Event::ApprovalVoided {},
        Event::PlanActivated {},
        Event::PlanPaused { reason: "lunch".into(), by: None },
        Event::PlanPaused { reason: "lunch".into(), by: Some(ada()) },
        Event::PlanResumed { to_draft: false },
        Event::PlanResumed { to_draft: true },
        Event::PlanFinished { phase: Phase::Completed, summary: "that is all".into(), by: None },
        Event::PlanFinished { phase: Phase::Failed, summary: String::new(), by: None },
        Event::PlanFinished { phase: Phase::Cancelled, summary: String::new(), by: Some(ada()) },
        Event::PlanArchived { by: None },
        Event::PlanArchived { by: Some(ada()) },
        Event::PlanUnarchived {},
        Event::TaskQueued { task: id("a"), attempt: 2, worker: "host-1".into() },
        Event::TaskStarted { task: id("a"), attempt: 2, worker: "host-1".into(), started_at: None },
        Event::TaskStarted { task: id("a"), attempt: 2, worker: "host-1".into(), started_at: Some(at(5)) },
        Event::TaskProgressed { task: id("a"), progress: "half".into() },
        Event::TaskDone {
            task: id("a"),
            result: Some("fine".into()),
            output: Some(Json::of(&1)),
            evidence: Some(Box::new(Evidence { passed: true, ..evidence() })),
        },
        Event::TaskDone { task: id("a"), result: None, output: None, evidence: None },
        Event::TaskReported {
            task: id("a"),
            result: Some("fine".into()),
            output: Some(Json::of(&1)),
            by: agent(),
        },
        Event::TaskReported { task: id("a"), result: None, output: None, by: ada() },
        Event::TaskFailed {
            task: id("a"),
            error: "it broke".into(),
            again_at: Some(at(9)),
            evidence: Some(Box::new(Evidence { at: None, output: None, log_tail: None, ..evidence() })),
        },
        Event::TaskFailed { task: id("a"), error: "it broke".into(), again_at: None, evidence: None },
        Event::TaskReleased { task: id("a"), reason: "lunch".into() },
        Event::TaskReleased { task: id("a"), reason: String::new() },
        Event::QuestionAsked { task: id("a"), question: Box::new(question()) },
        Event::QuestionAsked {
            task: id("a"),
            question: Box::new(Question { choices: Vec::new(), state: None, ..question() }),
        },
        Event::QuestionAnswered { task: id("a"), answer: "left".into(), by: ada() },
        Event::GateRecorded { task: id("a"), gate: Box::new(gate()) },
        Event::TaskSkipped { task: id("a"), reason: Some("not needed".into()), by: None },
        Event::TaskSkipped { task: id("a"), reason: None, by: None },
        Event::TaskSkipped { task: id("a"), reason: None, by: Some(ada()) },
        Event::TasksCancelled { tasks: tasks.clone(), reason: "enough".into(), by: None },
        Event::TasksCancelled { tasks: tasks.clone(), reason: "enough".into(), by: Some(ada()) },
        Event::TasksRetried { tasks },
        Event::TaskRefined {
            task: id("a"),
            refinement: Refinement::Decomposing,
            reasoning: Some("too large".into()),
            tokens: 12,
        },
        Event::TaskRefined { task: id("a"), refinement: Refinement::Decomposed, reasoning: None, tokens: 0 },
        Event::DigestAttached { task: id("a"), digest: digest(), tokens: 5 },
        Event::TokensCharged { task: Some(id("a")), tokens: 7, call: 1 },
        Event::TokensCharged { task: None, tokens: 9, call: 2 },
        Event::TaskRolledBack { task: id("a"), tokens: 3 },
        Event::OutputReceived { task: id("a"), from: far(), received: received() },
        Event::OutputReceived {
            task: id("a"),
            from: ExternalTaskRef { agent: None, ..far() },
            received: UpstreamResult {
                status: Status::Cancelled,
                reason: Some("plan other was purged".into()),
                ..UpstreamResult::default()
            },
        },
        Event::OutputWithdrawn { task: id("a"), from: far() },
        Event::TaskHeld { task: id("a"), by: ada(), reason: "not before Monday".into() },
        Event::TaskHeld { task: id("a"), by: agent(), reason: String::new() },
        Event::TaskUnheld { task: id("a") },
        Event::TaskCommented {
            task: id("a"),
            by: ada(),
            text: "mind the\nmirror".into(),
            at: None,
            place: None,
        },
        Event::TaskCommented {
            task: id("a"),
            by: agent(),
            text: "as in the other clone".into(),
            at: Some(at(7)),
            place: Some(0),
        },
        Event::TaskLabeled { task: id("a"), labels: vec!["frontend".into(), "risky".into()] },
        Event::TaskAssigned { task: id("a"), assignee: Some("person:ada".into()) },
        Event::TaskAssigned { task: id("a"), assignee: None },
    ]
}
