//! Who may end, skip, answer and reopen what: one table of acts × callers, and what a draft cannot bring.

use std::sync::Arc;

use waypost_config::{Config, Layer, Origin};
use waypost_core::{
    Actor, DependencyRule, Draft, Evidence, GateOutcome, GateRecord, Json, Phase, Plan, PlanId, Proof, Retry,
    Status, Task, TaskChanges, TaskId, TaskSpec, Work,
};
use waypost_service::submit::{Start, SubmitError};
use waypost_service::{
    Caller, ClaimFilter, ClaimOptions, Claimed, CreateOptions, EditOp, Guard, NewTask, Presence, ProgramOf,
    Record, Service, ServiceError, SharingError, SourceText, StatusChange, TaskRef, TaskReport, gates_of,
    question_digest, unproved_gates,
};
use waypost_store::{MemoryStore, PlanStore};
use waypost_testkit::{id, plan_of, task};

const CONFIG: &str = r#"
[executors.build]
kind = "process"
command = ["make"]
"#;

pub(crate) fn work(executor: &str) -> Option<Box<Work>> {
    Some(Box::new(Work { executor: executor.to_owned(), inputs: Json::empty_object(), shape: None }))
}

pub(crate) fn with_work(name: &str, executor: &str, after: &[&str]) -> TaskSpec {
    TaskSpec { work: work(executor), ..task(name, after) }
}

fn checked(name: &str) -> TaskSpec {
    TaskSpec { check: work("build"), ..task(name, &[]) }
}

pub(crate) fn present() -> Caller {
    Caller::new(Actor::person("ada")).present(Presence::new("terminal"))
}

pub(crate) fn unattended() -> Caller {
    Caller::new(Actor::person("ada")).present(Presence::unattended())
}

pub(crate) fn named() -> Caller {
    Caller::new(Actor::person("grace"))
}

pub(crate) fn agent() -> Caller {
    Caller::new(Actor::agent("robin"))
}

fn worker() -> Caller {
    Caller::new(Actor::worker("w1"))
}

pub(crate) struct Desk {
    pub(crate) service: Service,
    pub(crate) plan: PlanId,
}

impl Desk {
    pub(crate) fn open() -> Service {
        let layer = Layer { origin: Origin::User, name: "test".to_owned(), text: CONFIG.to_owned() };
        let config = Config::load(&[layer], []).unwrap();
        Service::new(Arc::new(PlanStore::new(Arc::new(MemoryStore::new()))), Arc::new(config))
    }

    pub(crate) fn of(by: &Caller, draft: Draft) -> Self {
        let service = Self::open();
        let plan = service.create(by, draft, CreateOptions::default()).unwrap().plan;
        Self { service, plan }
    }

    /// A person's active plan: `gate` is for a person, `after` waits for it, `far` has an executor that nothing
    /// defines, `made` is machine work that is done, `build` is machine work that w1 runs, and `todo` is plain.
    pub(crate) fn new() -> Self {
        let desk = Self::of(
            &present(),
            plan_of([
                with_work("gate", "human", &[]),
                with_work("after", "build", &["gate"]),
                with_work("far", "elsewhere", &[]),
                with_work("made", "build", &[]),
                with_work("build", "build", &[]),
                TaskSpec { check: work("build"), ..task("proof", &[]) },
                task("todo", &[]),
            ]),
        );
        desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
        desk.report(&present(), "made", done()).unwrap();
        // As a run does, which has looked at the approval.
        let start = waypost_core::Command::StartTask { task: id("build"), worker: worker().worker };
        let by = worker().actor;
        let (plan, commands) = (desk.plan.clone(), vec![start]);
        let record = Record { plan, by, commands, known_version: None, lease_seconds: Some(60) };
        desk.service.record(record).unwrap();
        desk
    }

    /// Reports on the task as it is now.
    pub(crate) fn report(&self, by: &Caller, task: &str, report: TaskReport) -> Result<(), ServiceError> {
        let digest = question_digest(&self.plan, &self.task(task));
        self.report_seen(by, task, report, Some(&digest))
    }

    pub(crate) fn report_seen(
        &self,
        by: &Caller,
        task: &str,
        report: TaskReport,
        seen: Option<&str>,
    ) -> Result<(), ServiceError> {
        let task = TaskRef { plan: &self.plan, task: &id(task), attempt: None, take_over: false, seen };
        self.service.report(by, task, report, Guard::NONE).map(drop)
    }

    /// Answers what the task asks now.
    pub(crate) fn answer(&self, by: &Caller, task: &str, answer: &str) -> Result<(), ServiceError> {
        let digest = question_digest(&self.plan, &self.task(task));
        self.answer_seen(by, task, answer, Some(&digest))
    }

    pub(crate) fn answer_seen(
        &self,
        by: &Caller,
        task: &str,
        answer: &str,
        seen: Option<&str>,
    ) -> Result<(), ServiceError> {
        let task = TaskRef { plan: &self.plan, task: &id(task), attempt: None, take_over: false, seen };
        self.service.answer(by, task, answer, Guard::NONE).map(drop)
    }

    pub(crate) fn claim(&self, by: &Caller, task: &str) -> Result<(), ServiceError> {
        let options = ClaimOptions::default();
        self.service.claim(by, &self.plan, &id(task), options, Guard::NONE).map(drop)
    }

    pub(crate) fn edit(&self, by: &Caller, ops: Vec<EditOp>) -> Result<(), ServiceError> {
        self.service.edit(by, &self.plan, ops, Guard::NONE).map(drop)
    }

    pub(crate) fn task(&self, task: &str) -> Task {
        self.service.read(&self.plan, |plan| plan.task(task).cloned()).unwrap().unwrap()
    }

    pub(crate) fn unproved(&self) -> Vec<TaskId> {
        let config = self.service.config().unwrap();
        let authenticator = self.service.authenticator().unwrap().clone();
        let find = |plan: &Plan| {
            let mut is_proved = |task: &TaskId, gate: &GateRecord| {
                authenticator.is_gate_proved(&config.approval, (plan.id(), task), gate, gate.at)
            };
            unproved_gates(plan, &gates_of(&config, plan), &mut is_proved)
        };
        self.service.read(&self.plan, find).unwrap()
    }
}

/// The code of a refusal; empty for what was done.
pub(crate) fn code(done: Result<(), ServiceError>) -> String {
    done.map_or_else(|error| error.code(), |()| String::new())
}

pub(crate) fn done() -> TaskReport {
    TaskReport::Done { result: None, output: None, sure: false }
}

pub(crate) fn skipped() -> TaskReport {
    TaskReport::Skipped { reason: None }
}

pub(crate) fn set(task: &str, status: StatusChange) -> Vec<EditOp> {
    vec![EditOp::SetStatus { task: id(task), status, take_over: false }]
}

type Tried = fn(&Desk, &Caller) -> Result<(), ServiceError>;

/// The code of the refusal for the present person, the one without a terminal, one by another name, the agent and
/// the worker; empty where the act is accepted.
type Row = (&'static str, Tried, [&'static str; 5]);

const GATE: [&str; 5] = ["", "needs_terminal", "not_that_actor", "human_gate", "human_gate"];
const STOP: [&str; 5] = ["", "needs_terminal", "not_that_actor", "stopped_by_person", "stopped_by_person"];
const PERSON: [&str; 5] = ["", "", "", "needs_person", "needs_person"];
const PROVED: [&str; 5] = ["", "needs_terminal", "not_that_actor", "needs_person", "needs_person"];

/// The acts that a person has to be present for, after a person's stop.
fn stopped(desk: &Desk, stop: impl FnOnce(&Service, &PlanId)) {
    stop(&desk.service, &desk.plan);
}

fn rows() -> Vec<Row> {
    vec![
        ("done gate", |desk, by| desk.report(by, "gate", done()), GATE),
        ("fail gate", |desk, by| desk.report(by, "gate", TaskReport::Failed { error: "no".into() }), GATE),
        ("skip gate", |desk, by| desk.report(by, "gate", skipped()), GATE),
        (
            "cancel gate",
            |desk, by| desk.service.cancel_task(by, &desk.plan, &id("gate"), "", Guard::NONE).map(drop),
            GATE,
        ),
        (
            "edit gate",
            |desk, by| {
                desk.edit(by, set("gate", StatusChange::Done { result: None, output: None, sure: false }))
            },
            GATE,
        ),
        (
            "add and end a gate",
            |desk, by| {
                let add = NewTask::named(with_work("new", "human", &[]));
                let mut ops = vec![EditOp::AddTasks { tasks: vec![add], position: Default::default() }];
                ops.extend(set("new", StatusChange::Done { result: None, output: None, sure: false }));
                desk.edit(by, ops)
            },
            GATE,
        ),
        ("claim gate", |desk, by| desk.claim(by, "gate"), ["", "", "", "human_gate", "human_gate"]),
        ("claim far", |desk, by| desk.claim(by, "far"), ["", "", "", "machine_work", "human_gate"]),
        ("answer gate", |desk, by| desk.answer(by, "gate", "yes"), PROVED),
        (
            "claim after",
            |desk, by| desk.claim(by, "after"),
            ["blocked", "blocked", "blocked", "machine_work", "blocked"],
        ),
        (
            "skip work",
            |desk, by| desk.report(by, "far", skipped()),
            ["", "", "", "machine_work", "wrong_status"],
        ),
        ("skip a checked task", |desk, by| desk.report(by, "proof", skipped()), PERSON),
        (
            "skip a plain task",
            |desk, by| desk.report(by, "todo", skipped()),
            ["", "", "", "", "needs_person"],
        ),
        (
            "done pending work",
            |desk, by| desk.report(by, "far", done()),
            ["", "", "", "machine_work", "wrong_status"],
        ),
        (
            "done running work",
            |desk, by| desk.report(by, "build", done()),
            ["", "", "", "already_running", ""],
        ),
        (
            "rerun done work",
            |desk, by| desk.service.retry_task(by, &desk.plan, &id("made"), Guard::NONE).map(drop),
            PROVED,
        ),
        (
            "resume a person's pause",
            |desk, by| {
                stopped(desk, |service, plan| {
                    drop(service.pause(&unattended(), plan, "wrong", Guard::NONE).unwrap())
                });
                desk.service.resume(by, &desk.plan, Guard::NONE).map(drop)
            },
            STOP,
        ),
        (
            "resume an agent's pause",
            |desk, by| {
                stopped(desk, |service, plan| drop(service.pause(&agent(), plan, "", Guard::NONE).unwrap()));
                desk.service.resume(by, &desk.plan, Guard::NONE).map(drop)
            },
            [""; 5],
        ),
        (
            "retry a person's cancel",
            |desk, by| {
                desk.service.cancel_task(&unattended(), &desk.plan, &id("todo"), "", Guard::NONE)?;
                desk.service.retry_task(by, &desk.plan, &id("todo"), Guard::NONE).map(drop)
            },
            STOP,
        ),
        (
            "unarchive what a person archived",
            |desk, by| {
                desk.report(&worker(), "build", TaskReport::Released { reason: String::new() })?;
                desk.service.archive(&unattended(), &desk.plan, Guard::NONE)?;
                desk.service.unarchive(by, &desk.plan, Guard::NONE).map(drop)
            },
            STOP,
        ),
        (
            "unarchive and resume in one edit",
            |desk, by| {
                desk.report(&worker(), "build", TaskReport::Released { reason: String::new() })?;
                desk.service.pause(&unattended(), &desk.plan, "", Guard::NONE)?;
                desk.service.archive(&agent(), &desk.plan, Guard::NONE)?;
                let phase = EditOp::SetPhase { phase: Phase::Active, summary: String::new() };
                desk.edit(by, vec![EditOp::SetArchived(false), phase])
            },
            STOP,
        ),
        (
            "import over a person's cancel",
            |desk, by| {
                desk.service.finish(&unattended(), &desk.plan, Phase::Cancelled, "", Guard::NONE)?;
                let text = r#"{"format":"waypost/1","title":"P","tasks":[{"id":"x","description":"x"}]}"#;
                let source =
                    SourceText { text: text.into(), format: None, file_name: None, name: "x".into() };
                desk.service.update(by, &desk.plan, source, Guard::NONE).map(drop)
            },
            STOP,
        ),
        (
            "create with the id of a stopped plan",
            |desk, by| {
                desk.service.pause(&unattended(), &desk.plan, "", Guard::NONE)?;
                let options = CreateOptions { id: Some(desk.plan.clone()), ..CreateOptions::default() };
                desk.service.create(by, plan_of([task("x", &[])]), options).map(drop)
            },
            ["stopped_by_person"; 5],
        ),
        (
            "purge",
            |desk, by| {
                desk.service.purge(by, &desk.plan).map_err(|error| match error {
                    SharingError::Service(error) => error,
                    error => panic!("{error}"),
                })
            },
            PROVED,
        ),
        (
            "stop",
            |desk, by| {
                desk.service.pause(by, &desk.plan, "", Guard::NONE)?;
                desk.service.finish(by, &desk.plan, Phase::Cancelled, "", Guard::NONE).map(drop)
            },
            [""; 5],
        ),
    ]
}

#[test]
fn each_act_is_for_those_who_may_do_it() {
    let callers = [present(), unattended(), named(), agent(), worker()];
    let mut wrong = Vec::new();
    for (name, act, codes) in rows() {
        for (by, expected) in callers.iter().zip(codes) {
            let desk = Desk::new();
            let found = act(&desk, by).map_or_else(|error| error.code(), |()| String::new());
            if found != expected {
                wrong
                    .push(format!("{name} by {} ({:?}): {found:?}, not {expected:?}", by.actor, by.presence));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn without_a_terminal_nobody_is_more_than_an_agent_in_a_plan_that_a_person_approved() {
    let tasks = || {
        plan_of([
            with_work("work", "build", &[]),
            checked("proof"),
            task("skipped", &[]),
            task("order", &["work"]),
            with_work("after", "build", &["order"]),
            task("todo", &[]),
        ])
    };
    let acts: [(&str, Tried); 8] = [
        ("start", |desk, by| desk.claim(by, "work")),
        ("done", |desk, by| desk.report(by, "work", done())),
        ("fail", |desk, by| desk.report(by, "work", TaskReport::Failed { error: "no".into() })),
        ("skip", |desk, by| desk.report(by, "work", skipped())),
        ("skip", |desk, by| desk.report(by, "proof", skipped())),
        ("skip", |desk, by| desk.report(by, "order", skipped())),
        ("edit", |desk, by| {
            let child = NewTask::named(TaskSpec { parent: Some(id("proof")), ..task("new", &[]) });
            desk.edit(by, vec![EditOp::AddTasks { tasks: vec![child], position: Default::default() }])
        }),
        ("retry", |desk, by| desk.service.retry_task(by, &desk.plan, &id("skipped"), Guard::NONE).map(drop)),
    ];
    for (verb, act) in acts {
        for (author, by, expected) in [
            (agent(), unattended(), "needs_terminal"),
            (agent(), named(), "not_that_actor"),
            (agent(), present(), ""),
            (unattended(), unattended(), ""),
        ] {
            let desk = Desk::of(&author, tasks());
            match author == agent() {
                true => {
                    let seen = desk.service.preview(&desk.plan).unwrap().seen();
                    drop(desk.service.approve(&present(), &desk.plan, seen, "", Guard::NONE).unwrap());
                }
                false => drop(desk.service.activate(&author, &desk.plan, Guard::NONE).unwrap()),
            }
            desk.report(&present(), "skipped", skipped()).unwrap();
            let found = act(&desk, &by);
            if let Err(ServiceError::NeedsTerminal { act, .. }) = &found {
                assert_eq!(act.verb.to_string(), verb);
            }
            assert_eq!(code(found), expected, "{verb} by {by:?} in the plan of {}", author.actor);
            // What agents may do stays possible, and so does a stop.
            desk.report(&by, "todo", done()).unwrap();
            desk.service.pause(&by, &desk.plan, "", Guard::NONE).unwrap();
        }
    }
}

#[test]
fn a_person_who_ends_a_gate_leaves_a_record() {
    let desk = Desk::new();
    desk.answer(&present(), "gate", "yes").unwrap();
    let gate = desk.task("gate").state.gate().cloned().unwrap();
    assert_eq!(
        (gate.outcome, gate.proof, gate.via.as_str()),
        (GateOutcome::Done, Proof::Presence, "terminal")
    );
    assert_eq!((gate.by, gate.attempt), (Actor::person("ada"), 0));
    assert!(gate.answer.unwrap().starts_with("sha256:"));
    assert!(desk.unproved().is_empty());
    desk.service.retry_task(&present(), &desk.plan, &id("gate"), Guard::NONE).unwrap();
    assert!(desk.task("gate").state.gate().is_none(), "a new end needs a new record");
}

#[test]
fn nothing_starts_behind_a_gate_that_no_person_ended() {
    let gate = with_work("gate", "human", &[]);
    let inner = TaskSpec { parent: Some(id("group")), ..with_work("inner", "build", &[]) };
    let tasks =
        [gate, task("group", &["gate"]), inner, with_work("last", "build", &["inner"]), task("free", &[])];
    // As a writer of the database would.
    let mut draft = plan_of(tasks);
    draft.tasks[0].state.status = Status::Done;
    let service = Desk::open();
    let human = [id("gate")];
    let plans = Arc::clone(service.plans());
    let by = Actor::person("ada");
    let made = plans.create(waypost_store::NewPlan { id: None, by, draft, approval_required: None }).unwrap();
    let desk = Desk { service, plan: made.plan };
    assert_eq!(desk.unproved(), human);
    let behind = desk.service.read(&desk.plan, |plan| plan.tasks_behind(&human)).unwrap();
    let mut behind: Vec<&str> = behind.iter().map(TaskId::as_str).collect();
    behind.sort_unstable();
    assert_eq!(behind, ["group", "inner", "last"]);
}

#[test]
fn no_agents_word_skips_a_gate_for_work_that_runs_even_if_something_failed() {
    let failed = || TaskReport::Failed { error: "no".into() };
    let tasks = || {
        let last = with_work("last", "build", &["gate"]);
        [
            task("first", &[]),
            with_work("made", "build", &[]),
            with_work("gate", "human", &["first", "made"]),
            TaskSpec { when: DependencyRule::AllFinished, ..last },
        ]
    };
    type Ends = fn(&Desk, TaskReport) -> Result<(), ServiceError>;
    let ends: [(&str, Ends, bool); 4] = [
        ("an agent fails a task without work", |desk, failed| desk.report(&agent(), "first", failed), true),
        (
            "an agent gives work up",
            |desk, _| {
                let made = id("made");
                desk.service.cancel_task(&agent(), &desk.plan, &made, "", Guard::NONE).map(drop)
            },
            true,
        ),
        (
            "a person stops a task",
            |desk, _| {
                let first = id("first");
                desk.service.cancel_task(&present(), &desk.plan, &first, "", Guard::NONE).map(drop)
            },
            false,
        ),
        (
            "a machine fails",
            |desk, failed| {
                let start = waypost_core::Command::StartTask { task: id("made"), worker: worker().worker };
                let (plan, by) = (desk.plan.clone(), worker().actor);
                let commands = vec![start];
                let record = Record { plan, by, commands, known_version: None, lease_seconds: Some(60) };
                desk.service.record(record).unwrap();
                desk.report(&worker(), "made", failed)
            },
            false,
        ),
    ];
    for (name, end, holds) in ends {
        let desk = Desk::of(&present(), plan_of(tasks()));
        desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
        end(&desk, failed()).unwrap();
        assert_eq!(desk.task("gate").state.status, Status::Skipped, "{name}");
        let expected = if holds { vec![id("gate")] } else { Vec::new() };
        assert_eq!(desk.unproved(), expected, "{name}");
    }
    // The work of machines does not fail by an agent's word.
    let desk = Desk::of(&present(), plan_of(tasks()));
    desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
    assert_eq!(code(desk.report(&agent(), "made", failed())), "machine_work");
}

fn ended_with(status: Status) -> Draft {
    let mut draft = plan_of([
        with_work("gate", "human", &[]),
        checked("proof"),
        with_work("deploy", "build", &["gate", "proof"]),
        task("todo", &[]),
    ]);
    for task in draft.tasks.iter_mut().filter(|task| task.spec.id != id("deploy")) {
        task.state.status = status;
        let evidence = Evidence {
            passed: true,
            check: "build".into(),
            worker: "w1".into(),
            at: None,
            outcome: "fine".into(),
            output: None,
            log_tail: None,
            digest: "sha256:0".into(),
        };
        task.state.aside.get_or_insert_default().evidence = Some(evidence);
    }
    draft
}

#[test]
fn a_draft_brings_no_done_past_a_check_or_a_gate() {
    for (by, gate) in [(agent(), Status::Pending), (unattended(), Status::Pending), (present(), Status::Done)]
    {
        let desk = Desk::of(&by, ended_with(Status::Done));
        assert_eq!(desk.task("gate").state.status, gate, "{}", by.actor);
        assert_eq!(desk.task("gate").state.gate().is_some(), gate == Status::Done);
        let proof = desk.task("proof").state;
        assert_eq!((proof.status, proof.reported().is_some()), (Status::Pending, true), "{}", by.actor);
        assert!(proof.evidence().is_none());
        assert_eq!(desk.task("todo").state.status, Status::Done);
        assert_eq!(desk.unproved(), []);
    }
    let desk = Desk::of(&agent(), ended_with(Status::Skipped));
    for name in ["gate", "proof"] {
        assert_eq!(desk.task(name).state.status, Status::Pending, "{name}");
    }
}

#[test]
fn a_plan_that_has_ended_keeps_what_it_brings() {
    let mut draft = ended_with(Status::Done);
    draft.state.phase = Phase::Completed;
    let claims_to_have_ended = Desk::of(&agent(), draft.clone());
    assert_eq!(claims_to_have_ended.task("gate").state.status, Status::Pending, "deploy is open");
    draft.tasks.iter_mut().for_each(|task| task.state.status = Status::Done);
    let ended = Desk::of(&agent(), draft);
    for name in ["gate", "proof", "deploy"] {
        let state = ended.task(name).state;
        assert_eq!((state.status, state.aside), (Status::Done, None), "{name}");
    }
}

#[test]
fn a_program_reports_on_its_own_attempt_only() {
    let desk =
        Desk::of(&present(), plan_of([with_work("one", "build", &[]), with_work("two", "build", &[])]));
    desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
    desk.claim(&worker(), "one").unwrap();
    desk.claim(&worker(), "two").unwrap();
    let plan = desk.plan.to_string();
    let program = |task: &str, attempt| Caller {
        program: Some(ProgramOf { plan: plan.clone(), task: task.to_owned(), attempt }),
        ..Caller::new(Actor::worker(plan.as_str()))
    };
    let finish = |by: &Caller, task: &str, attempt| {
        let task = TaskRef {
            plan: &desk.plan,
            task: &id(task),
            attempt: Some(attempt),
            take_over: false,
            seen: None,
        };
        let found = desk.service.report(by, task, done(), Guard::NONE);
        found.map_or_else(|error| error.code(), |_| String::new())
    };
    assert_eq!(finish(&program("one", 1), "two", 1), "already_running");
    assert_eq!(finish(&program("two", 0), "two", 1), "stale_attempt");
    assert_eq!(finish(&program("two", 1), "two", 0), "stale_attempt");
    assert_eq!(finish(&Caller::new(Actor::worker("other")), "two", 1), "already_running");
    assert_eq!(finish(&program("two", 1), "two", 1), "");
}

#[test]
fn a_program_does_nothing_in_other_plans_and_starts_no_other_work() {
    let desk = Desk::of(
        &present(),
        plan_of([with_work("one", "build", &[]), with_work("two", "build", &[]), task("todo", &[])]),
    );
    desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
    let program = |plan: &str| Caller {
        program: Some(ProgramOf { plan: plan.to_owned(), task: "one".to_owned(), attempt: 1 }),
        ..Caller::new(Actor::worker(plan))
    };
    let (own, other) = (program(desk.plan.as_str()), program("elsewhere"));
    let acts: [(&str, Tried); 6] = [
        ("start", |desk, by| desk.claim(by, "two")),
        ("done", |desk, by| desk.report(by, "todo", done())),
        ("pause", |desk, by| desk.service.pause(by, &desk.plan, "", Guard::NONE).map(drop)),
        ("archive", |desk, by| desk.service.archive(by, &desk.plan, Guard::NONE).map(drop)),
        ("finish", |desk, by| {
            desk.service.finish(by, &desk.plan, Phase::Completed, "", Guard::NONE).map(drop)
        }),
        ("add", |desk, by| {
            let tasks = vec![NewTask::named(task("more", &[]))];
            desk.edit(by, vec![EditOp::AddTasks { tasks, position: Default::default() }])
        }),
    ];
    for (name, act) in acts {
        assert_eq!(code(act(&desk, &other)), "not_its_task", "{name}");
    }
    for task in ["two", "todo"] {
        assert_eq!(code(desk.claim(&own, task)), "not_its_task", "{task}");
    }
    assert_eq!(code(desk.report(&own, "todo", done())), "wrong_status", "it is not its task");
    assert_eq!(code(desk.service.pause(&own, &desk.plan, "", Guard::NONE).map(drop)), "not_for_workers");
    let draft = plan_of([task("a", &[])]);
    let made = desk.service.create(&own, draft, CreateOptions::default()).map(drop);
    assert_eq!(code(made), "not_for_workers");
}

#[test]
fn words_that_an_agent_wrote_get_an_executor_only_from_a_person_who_then_has_to_look() {
    for more in [None, Some(with_work("made", "build", &[]))] {
        only_a_person_assigns(Desk::of(&present(), plan_of([task("todo", &[])].into_iter().chain(more))));
    }
    // A person's own words are the person's own work.
    let own = Desk::of(&present(), plan_of([task("todo", &[])]));
    own.service.assign(&unattended(), &own.plan, "build").unwrap();
}

fn only_a_person_assigns(desk: Desk) {
    desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
    desk.edit(
        &agent(),
        vec![EditOp::AddTasks {
            tasks: vec![NewTask::named(task("evil", &[]))],
            position: Default::default(),
        }],
    )
    .unwrap();
    for by in [agent(), unattended(), named()] {
        let refused = desk.service.assign(&by, &desk.plan, "build");
        assert!(matches!(refused, Err(SubmitError::NotForMachines { .. })), "{by:?}");
    }
    desk.service.assign(&present(), &desk.plan, "build").unwrap();
    let state = desk.service.read(&desk.plan, |plan| plan.state().clone()).unwrap();
    assert!(state.approval.is_none() && state.phase != Phase::Active, "{state:?}");
    let started = desk.service.start(&present(), &desk.plan, false, Guard::NONE).unwrap();
    assert!(matches!(started, Start::NeedsApproval { .. }), "nobody has seen it");
}

#[test]
fn an_agent_retries_failed_work_only_within_its_attempts() {
    let attempts = |attempts| Some(Box::new(Retry { attempts, backoff_seconds: 0, backoff_seconds_max: 0 }));
    for (allowed, expected) in [(1, "needs_person"), (3, "")] {
        let spec = TaskSpec { retry: attempts(allowed), ..with_work("a", "build", &[]) };
        let desk = Desk::of(&present(), plan_of([spec]));
        desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
        desk.claim(&worker(), "a").unwrap();
        desk.report(&worker(), "a", TaskReport::Failed { error: "no".into() }).unwrap();
        let found = desk.service.retry_task(&agent(), &desk.plan, &id("a"), Guard::NONE);
        assert_eq!(found.map_or_else(|error| error.code(), |_| String::new()), expected, "{allowed}");
    }
}

#[test]
fn the_next_task_of_an_agent_or_a_worker_is_never_a_gate() {
    let desk = Desk::of(&present(), plan_of([with_work("gate", "human", &[])]));
    desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
    for by in [agent(), worker()] {
        let filter = ClaimFilter { plan: Some(&desk.plan), queue: None };
        let claimed = desk.service.claim_next(&by, filter, None).unwrap();
        assert!(matches!(claimed, Claimed::Nothing { .. }), "{claimed:?}");
    }
}

pub(crate) fn no_more_waits(task: &str) -> Vec<EditOp> {
    let changes = TaskChanges { depends_on: Some(Vec::new()), ..TaskChanges::default() };
    vec![EditOp::ReviseTask { task: id(task), changes: Box::new(changes) }]
}

/// `note` waits for `gate`, which is for a person; a task of another plan could wait for `note`.
pub(crate) fn noted(more: Vec<TaskSpec>) -> Desk {
    let tasks = [with_work("gate", "human", &[]), task("note", &["gate"]), task("group", &[])];
    let desk = Desk::of(&present(), plan_of(tasks.into_iter().chain(more)));
    desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
    desk
}

#[test]
fn no_agent_takes_anything_out_from_behind_a_gate_that_is_open() {
    let acts: [(&str, Tried); 6] = [
        ("waits for nothing", |desk, by| desk.edit(by, no_more_waits("note"))),
        ("skip", |desk, by| desk.report(by, "note", skipped())),
        ("skip by an edit", |desk, by| desk.edit(by, set("note", StatusChange::Skipped { reason: None }))),
        ("cancel", |desk, by| {
            desk.service.cancel_task(by, &desk.plan, &id("note"), "", Guard::NONE).map(drop)
        }),
        ("update", |desk, by| {
            let text = r#"{"format":"waypost/1","tasks":[{"id":"gate","work":{"executor":"human"}},
                {"id":"note","description":"note"},{"id":"group","description":"group"}]}"#;
            let (format, file_name, name) = (None, None, "text".to_owned());
            let source = SourceText { text: text.to_owned(), format, file_name, name };
            desk.service.update(by, &desk.plan, source, Guard::NONE).map(drop)
        }),
        ("twice in one edit", |desk, by| {
            let ops = [set("note", StatusChange::Skipped { reason: None }), no_more_waits("note")];
            desk.edit(by, ops.into_iter().rev().flatten().collect())
        }),
    ];
    for (name, act) in acts {
        let desk = noted(Vec::new());
        let refused = act(&desk, &agent()).unwrap_err();
        assert_eq!(refused.code(), "human_gate", "{name}: {refused}");
        act(&desk, &present()).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let desk = noted(Vec::new());
    desk.answer(&present(), "gate", "yes").unwrap();
    desk.report(&agent(), "note", skipped()).unwrap();
}

#[test]
fn an_answered_question_stays_the_one_that_was_answered() {
    let desk = noted(Vec::new());
    let ask = |text: &str| {
        let changes = TaskChanges { description: Some(text.to_owned()), ..TaskChanges::default() };
        vec![EditOp::ReviseTask { task: id("gate"), changes: Box::new(changes) }]
    };
    desk.edit(&present(), ask("tidy the docs?")).unwrap();
    desk.answer(&present(), "gate", "yes").unwrap();
    assert_eq!(code(desk.edit(&agent(), ask("deploy?"))), "human_gate");
    desk.edit(&present(), ask("deploy?")).unwrap();
    let preview = desk.service.preview(&desk.plan).unwrap();
    let shown = preview.groups.iter().flat_map(|group| &group.tasks).find(|task| task.id == "gate").unwrap();
    let status = shown.particulars.iter().find(|(name, _)| *name == "status").unwrap();
    assert!(status.1.starts_with("done by person:"), "{status:?}");
}

#[test]
fn a_gate_that_is_open_holds_what_was_ended_behind_it() {
    let desk = noted(vec![task("second", &["note"]), with_work("after", "build", &["second"])]);
    assert_eq!(desk.unproved(), []);
    desk.report(&present(), "second", skipped()).unwrap();
    assert_eq!(desk.unproved(), [id("gate")], "nobody has said yes");
    desk.answer(&present(), "gate", "yes").unwrap();
    assert_eq!(desk.unproved(), []);
    // One good end is enough for what is content with any.
    let any = TaskSpec { when: DependencyRule::AnyDone, ..task("any", &["note", "free"]) };
    let desk = noted(vec![task("free", &[]), any, with_work("after", "build", &["any"])]);
    desk.report(&agent(), "free", done()).unwrap();
    desk.report(&agent(), "any", done()).unwrap();
    assert_eq!(desk.unproved(), []);
}

#[test]
fn an_executor_that_is_not_defined_here_may_be_a_person_elsewhere() {
    let plans = Arc::new(PlanStore::new(Arc::new(MemoryStore::new())));
    let with = |text: &str| {
        let layer = Layer { origin: Origin::User, name: "test".to_owned(), text: text.to_owned() };
        Service::new(Arc::clone(&plans), Arc::new(Config::load(&[layer], []).unwrap()))
    };
    let (there, here) = (with("[executors.sign]\nkind = \"human\"\n"), with(""));
    let draft = plan_of([with_work("gate", "sign", &[]), task("after", &["gate"])]);
    let plan = there.create(&agent(), draft, CreateOptions::default()).unwrap().plan;
    // Before it was approved, it is its author's.
    here.cancel_task(&agent(), &plan, &id("gate"), "", Guard::NONE).unwrap();
    here.retry_task(&agent(), &plan, &id("gate"), Guard::NONE).unwrap();
    let seen = there.preview(&plan).unwrap().seen();
    there.approve(&present(), &plan, seen, "", Guard::NONE).unwrap();
    for service in [&here, &there] {
        let refused = service.cancel_task(&agent(), &plan, &id("gate"), "", Guard::NONE).unwrap_err();
        assert_eq!(refused.code(), "human_gate", "{refused}");
    }
    there.cancel_task(&present(), &plan, &id("gate"), "", Guard::NONE).unwrap();
    let refused = here.retry_task(&agent(), &plan, &id("gate"), Guard::NONE).unwrap_err();
    assert_eq!(refused.code(), "human_gate", "{refused}");
}

#[test]
fn only_a_yes_or_a_no_ends_a_task_for_people() {
    for (answer, ended) in [
        ("yes", Some(Status::Done)),
        ("Yes, it looks right", Some(Status::Done)),
        ("yes, nothing is missing", Some(Status::Done)),
        ("no", Some(Status::Failed)),
        ("No: the date is wrong", Some(Status::Failed)),
        ("no, yes", Some(Status::Failed)),
        ("yes, no", None),
        ("yes. No!", None),
        ("yesterday", None),
        ("not yet", None),
        ("ok", None),
        ("nein", None),
    ] {
        let desk = Desk::of(&present(), plan_of([with_work("gate", "human", &[])]));
        desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
        let answered = desk.answer(&present(), "gate", answer);
        match ended {
            Some(status) => assert_eq!(desk.task("gate").state.status, status, "{answer}: {answered:?}"),
            None => {
                assert_eq!(code(answered), "answer_unclear", "{answer}");
                assert_eq!(desk.task("gate").state.status, Status::Pending, "{answer}");
            }
        }
    }
}

#[test]
fn an_answer_counts_only_for_what_was_read() {
    let desk = Desk::of(&present(), plan_of([with_work("gate", "human", &[]), task("todo", &[])]));
    desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
    let gate = || question_digest(&desk.plan, &desk.task("gate"));
    assert_eq!(code(desk.answer_seen(&present(), "gate", "yes", None)), "seen_missing");
    let endings = || [done(), TaskReport::Skipped { reason: None }];
    for ending in endings() {
        assert_eq!(code(desk.report_seen(&present(), "gate", ending, None)), "seen_missing");
    }
    let read = gate();
    let words = TaskChanges { description: Some("delete it all?".into()), ..TaskChanges::default() };
    desk.edit(&agent(), vec![EditOp::ReviseTask { task: id("gate"), changes: Box::new(words) }]).unwrap();
    for ending in endings() {
        let reported = desk.report_seen(&present(), "gate", ending, Some(&read));
        assert_eq!(code(reported), "changed_since_seen");
    }
    let Err(error) = desk.answer_seen(&present(), "gate", "yes", Some(&read)) else { panic!() };
    assert_eq!(error.code(), "changed_since_seen");
    assert!(error.to_string().contains("delete it all?"), "{error}");
    assert_eq!(error.facts()["digest"], gate());
    assert_eq!(desk.task("gate").state.status, Status::Pending);
    let seen = desk.service.preview(&desk.plan).unwrap().seen();
    desk.service.approve(&present(), &desk.plan, seen, "", Guard::NONE).unwrap();
    // The version of the plan names the question as well.
    let version = desk.service.read(&desk.plan, Plan::version).unwrap();
    let task = TaskRef { plan: &desk.plan, task: &id("gate"), attempt: None, take_over: false, seen: None };
    desk.service.answer(&present(), task, "yes", Guard::at(version)).unwrap();
    // A worker that asks once more, the same, asks another question.
    desk.claim(&agent(), "todo").unwrap();
    let ask = || {
        TaskReport::Question(Box::new(waypost_core::QuestionRequest {
            text: "now?".into(),
            ..Default::default()
        }))
    };
    desk.report(&agent(), "todo", ask()).unwrap();
    let first = question_digest(&desk.plan, &desk.task("todo"));
    desk.answer_seen(&present(), "todo", "yes", Some(&first)).unwrap();
    desk.claim(&agent(), "todo").unwrap();
    desk.report(&agent(), "todo", ask()).unwrap();
    assert_eq!(code(desk.answer_seen(&present(), "todo", "yes", Some(&first))), "changed_since_seen");
}
