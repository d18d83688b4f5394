//! Approvals hold for what a person has seen, and for nothing else.

use std::sync::Arc;

use waypost_config::{ApprovalPolicy, ApprovalSettings, Config, Definitions, Layer, Origin};
use waypost_core::{
    Actor, Draft, Json, Plan, PlanId, Proof, Retry, StartRefusal, StartRefusalReason, TaskChanges, TaskSpec,
    Timestamp, Work,
};
use waypost_service::{
    Caller, CreateOptions, EditOp, Guard, Hint, PersonAct, PersonVerb, Presence, Preview, Risk, Seen,
    Service, ServiceError, may_start, names_digest, preview_digest, start_refusal_hint, start_refusal_text,
};
use waypost_store::{MemoryStore, PlanStore, Worker, WorkerKind};
use waypost_testkit::{plan_of, task};

const CONFIG: &str = r#"
[executors.build]
kind = "process"
command = ["make", "build"]

[executors.deploy]
kind = "process"
command = ["make", "deploy"]
"#;

fn config(text: &str) -> Config {
    let layer = Layer { origin: Origin::User, name: "test".to_owned(), text: text.to_owned() };
    Config::load(&[layer], []).unwrap()
}

fn work(executor: &str, inputs: &str) -> Option<Box<Work>> {
    let inputs = Json::parse(inputs).unwrap();
    Some(Box::new(Work { executor: executor.to_owned(), inputs, shape: None }))
}

fn build(id: &str) -> TaskSpec {
    TaskSpec { work: work("build", r#"{"target":"all"}"#), ..task(id, &[]) }
}

struct Desk {
    service: Service,
    plan: PlanId,
}

impl Desk {
    /// A plan that an agent wrote, with this configuration.
    fn with(text: &str, draft: Draft) -> Self {
        let plans = Arc::new(PlanStore::new(Arc::new(MemoryStore::new())));
        let service = Service::new(plans, Arc::new(config(text)));
        let robin = Caller::new(Actor::agent("robin"));
        let plan = service.create(&robin, draft, CreateOptions::default()).unwrap().plan;
        Self { service, plan }
    }

    fn new(tasks: impl IntoIterator<Item = TaskSpec>) -> Self {
        Self::with(CONFIG, plan_of(tasks))
    }

    /// The same store with another configuration.
    fn configured(&self, text: &str) -> Self {
        let service = Service::new(Arc::clone(self.service.plans()), Arc::new(config(text)));
        Self { service, plan: self.plan.clone() }
    }

    fn preview(&self) -> Preview {
        self.service.preview(&self.plan).unwrap()
    }

    fn approve(&self, by: &Caller, seen: &Seen) -> Result<u64, ServiceError> {
        Ok(self.service.approve(by, &self.plan, seen.clone(), "", Guard::NONE)?.version)
    }

    fn now(&self) -> Timestamp {
        self.service.plans().store().query(|read| Ok(read.now())).unwrap()
    }

    fn may_start(&self, policy: ApprovalPolicy) -> Result<(), (StartRefusalReason, String)> {
        let config = self.service.config().unwrap();
        let settings = ApprovalSettings { policy, ..config.approval.clone() };
        let definitions = Definitions::of(&config);
        let check = |plan: &Plan| {
            let facts = self.service.authenticator().unwrap().facts(&settings, plan, self.now());
            may_start(&settings, &definitions, plan, "w1", &facts)
                .map_err(|refusal| (refusal.reason, start_refusal_text(plan, &refusal)))
        };
        self.service.read(&self.plan, check).unwrap()
    }
}

fn ada() -> Caller {
    Caller::new(Actor::person("ada")).present(Presence::new("terminal"))
}

#[test]
fn an_approval_keeps_what_was_seen_and_how_it_was_given() {
    let desk = Desk::new([build("a"), build("b")]);
    let preview = desk.preview();
    assert_eq!((preview.total, preview.unresolved.len()), (2, 0));
    desk.approve(&ada(), &preview.seen()).unwrap();
    let approval = desk.service.read(&desk.plan, |plan| plan.state().approval.clone()).unwrap().unwrap();
    let work = approval.work.unwrap();
    assert_eq!((work.digest, work.proof, work.via.as_str()), (preview.digest, Proof::Presence, "terminal"));
    assert_eq!(work.definitions.value()["executor build"]["process"]["command"][1], "build");
    assert_eq!(desk.may_start(ApprovalPolicy::Work), Ok(()));
}

#[test]
fn nothing_is_approved_that_was_not_seen() {
    let desk = Desk::new([build("a")]);
    let seen = desk.preview().seen();
    for wrong in
        [Seen { version: 2, ..seen.clone() }, Seen { digest: format!("{}0", seen.digest), ..seen.clone() }]
    {
        let refused = desk.approve(&ada(), &wrong);
        assert!(matches!(refused, Err(ServiceError::ChangedSinceSeen { .. })), "{refused:?}");
    }
    let robin = Caller::new(Actor::agent("robin"));
    let note = TaskChanges { notes: Some("!".into()), ..TaskChanges::default() };
    let task = waypost_core::TaskId::new("a").unwrap();
    let ops = vec![EditOp::ReviseTask { task, changes: Box::new(note) }];
    desk.service.edit(&robin, &desk.plan, ops, Guard::NONE).unwrap();
    let refused = desk.approve(&ada(), &seen);
    let Err(ServiceError::ChangedSinceSeen { seen: 1, current: 2, changes, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(changes, ["~ a notes: (none) → !"]);
    desk.approve(&ada(), &desk.preview().seen()).unwrap();
}

#[test]
fn what_changed_while_a_person_read_is_named() {
    let desk = Desk::new([build("a")]);
    // The worker of the plan reads another configuration meanwhile.
    let publish = |text: &str| {
        let now = desk.now();
        let mut config = config(text);
        config.pinned_files.workspace = "/srv/work".into();
        let mut worker = Worker {
            name: "elsewhere:1".to_owned(),
            host: "elsewhere".to_owned(),
            kind: WorkerKind::Worker,
            queues: vec!["default".to_owned()],
            plans: Vec::new(),
            executors: vec!["build".to_owned()],
            capacity: None,
            version: "0.1.0".to_owned(),
            began: now,
            seen: now,
            until: now,
            draining: false,
            definitions: Some(Json::of(&Definitions::of(&config))),
            waits_for: Vec::new(),
        };
        desk.service.register_worker(&mut worker, 60).unwrap();
    };
    publish(&CONFIG.replace("\"build\"", "\"all\""));
    let shown = desk.preview();
    assert_eq!(shown.resolved_by.as_deref(), Some("elsewhere:1"));
    let folder = |shown: &Preview| shown.about.iter().find(|(name, _)| *name == "folder").cloned().unwrap().1;
    assert_eq!(folder(&shown), "/srv/work");
    publish(&CONFIG.replace("\"build\"", "\"evil\""));
    let refused = desk.approve(&ada(), &shown.seen()).unwrap_err();
    assert_eq!(refused.code(), "changed_since_seen");
    let said = format!("plan {} changed while you were reading: executor build: command", desk.plan);
    assert_eq!(refused.to_string(), said);
    publish(CONFIG);
    let shown = desk.preview();
    assert_eq!(shown.resolved_by, None);
    assert_eq!(folder(&shown), "/srv/work (worker elsewhere:1)", "it would start the same elsewhere");
    // Another process knows what was approved last, and the latest versions of the plan.
    desk.approve(&ada(), &shown.seen()).unwrap();
    desk.service.unregister_worker("elsewhere:1", &[]).unwrap();
    let later = desk.configured(&CONFIG.replace("\"build\"", "\"evil\""));
    let refused = later.service.not_as_seen(&later.preview(), &shown.digest);
    assert_eq!(refused.to_string(), said);
    let robin = Caller::new(Actor::agent("robin"));
    let note = TaskChanges { notes: Some("!".into()), ..TaskChanges::default() };
    let task = waypost_core::TaskId::new("a").unwrap();
    let ops = vec![EditOp::ReviseTask { task, changes: Box::new(note) }];
    desk.service.edit(&robin, &desk.plan, ops, Guard::NONE).unwrap();
    let fresh = desk.configured(CONFIG);
    let refused = fresh.service.not_as_seen(&fresh.preview(), &shown.digest);
    assert_eq!(refused.facts()["changes"], serde_json::json!(["~ a notes: (none) → !"]));
    // So few characters name nothing: an agent could make two plans that begin with them.
    assert!(
        names_digest(&shown.digest[..7 + 32], &shown.digest)
            && !names_digest(&shown.digest[..7 + 31], &shown.digest)
    );
}

#[test]
fn a_preview_says_what_changed_since_the_last_approval_even_if_that_is_void() {
    let desk = Desk::new([build("a"), build("b")]);
    assert_eq!(desk.preview().changes, None, "nobody has approved it");
    desk.approve(&ada(), &desk.preview().seen()).unwrap();
    assert_eq!(desk.preview().changes, None, "it is what was approved");
    let robin = Caller::new(Actor::agent("robin"));
    let words = TaskChanges { notes: Some("rm -rf".into()), ..TaskChanges::default() };
    let task = waypost_core::TaskId::new("b").unwrap();
    let ops = vec![EditOp::ReviseTask { task, changes: Box::new(words) }];
    desk.service.edit(&robin, &desk.plan, ops, Guard::NONE).unwrap();
    let approval = desk.service.read(&desk.plan, |plan| plan.state().approval.clone()).unwrap();
    assert_eq!(approval, None, "it is void");
    let preview = desk.preview();
    assert_eq!(preview.changes, Some((1, vec!["~ b notes: (none) → rm -rf".to_owned()])));
    assert_eq!(preview.since_approval, [""; 0]);
}

#[test]
fn only_a_person_who_is_present_approves() {
    let desk = Desk::new([build("a")]);
    let seen = desk.preview().seen();
    let absent = desk.approve(&Caller::new(Actor::person("ada")), &seen);
    assert!(
        matches!(absent, Err(ServiceError::NeedsTerminal { .. } | ServiceError::NotThatActor { .. })),
        "{absent:?}"
    );
    for actor in [Actor::agent("robin"), Actor::worker("w1")] {
        let by = Caller::new(actor.clone()).present(Presence::new("terminal"));
        let refused = desk.approve(&by, &seen);
        let Err(ServiceError::NeedsPerson { by, .. }) = refused else {
            panic!("{actor}: {refused:?}");
        };
        assert_eq!(by, actor, "the refusal names who asked");
    }
}

#[test]
fn an_answer_at_an_agents_host_is_not_enough_where_presence_is_asked_for() {
    let host = Presence { proof: Proof::Client, via: "elicitation:host".to_owned() };
    let someone = Caller::new(Actor::person("someone at host")).present(host);
    let desk = Desk::new([build("a")]);
    let error = desk.approve(&someone, &desk.preview().seen()).unwrap_err();
    assert_eq!(error.code(), "needs_proof");
    assert_eq!(error.to_string(), "approval here needs a person who is present; client is not enough");
    let act = PersonAct::on_plan(PersonVerb::Approve, &desk.plan);
    assert_eq!(error.hint(), Hint::ProvePresence(act));
    let accepting = desk.configured(&format!("[approval]\nproof = \"client\"\n{CONFIG}"));
    accepting.approve(&someone, &accepting.preview().seen()).unwrap();
}

#[test]
fn every_refusal_of_a_worker_has_a_text_without_commands_and_a_hint() {
    let desk = Desk::new([build("a")]);
    desk.approve(&ada(), &desk.preview().seen()).unwrap();
    let plan = || desk.plan.clone();
    let sign = |touch| Hint::Sign { act: PersonAct::on_plan(PersonVerb::Approve, &desk.plan), touch };
    use StartRefusalReason as Reason;
    let rows = [
        (Reason::NoDigest, "", "was approved by an earlier version of Waypost", Hint::Approve(plan())),
        (Reason::NoRecord, "", "nobody has approved plan", Hint::RunOrApprove(plan())),
        (Reason::NotAuthentic, "", "was not given on this account", Hint::Approve(plan())),
        (
            Reason::NotAuthentic,
            "SHA256:x is unknown",
            "SHA256:x is unknown",
            Hint::ApproveOrAllowSigner(plan()),
        ),
        (
            Reason::StoreChanged,
            "a.db",
            "a.db is not the store that this account used there",
            Hint::TrustStore,
        ),
        (Reason::Expired, "", "ended on", Hint::Approve(plan())),
        (Reason::ProofTooLow, "a signature", "w1 needs a signature", sign(false)),
        (Reason::ProofTooLow, "a signature with touch", "presence is not enough", sign(true)),
        (Reason::ProofTooLow, "a person who is present", "w1 needs a person", Hint::Approve(plan())),
        (
            Reason::GateNotProved,
            "gate",
            "w1 starts nothing behind gate",
            Hint::AnswerAgain { plan: plan(), task: "gate".to_owned() },
        ),
        (
            Reason::DigestMismatch,
            "executor build: command",
            "w1 would run 81c0 (executor build: command)",
            Hint::ApproveOrRestore(plan()),
        ),
    ];
    for (reason, detail, text, hint) in rows {
        let differences = Some(detail.to_owned()).filter(|detail| !detail.is_empty());
        let (worker, digest) = ("w1".to_owned(), "sha256:81c0".to_owned());
        let refusal = StartRefusal { worker, reason, digest, differences: differences.into_iter().collect() };
        let said = desk.service.read(&desk.plan, |plan| start_refusal_text(plan, &refusal)).unwrap();
        assert!(said.contains(text) && !said.contains("waypost "), "{reason}: {said}");
        assert_eq!(start_refusal_hint(&desk.plan, &refusal), hint, "{reason}");
    }
}

#[test]
fn what_nobody_defines_cannot_be_approved() {
    let desk = Desk::new([build("a"), TaskSpec { work: work("unknown", "{}"), ..task("b", &[]) }]);
    let preview = desk.preview();
    assert_eq!(preview.unresolved, ["unknown"]);
    let refused = desk.approve(&ada(), &preview.seen());
    assert!(matches!(refused, Err(ServiceError::UnresolvedExecutor { .. })), "{refused:?}");
}

#[test]
fn a_worker_with_another_command_starts_nothing_until_a_person_approves_that() {
    let desk = Desk::new([build("a")]);
    desk.approve(&ada(), &desk.preview().seen()).unwrap();
    let evil = desk.configured(&CONFIG.replace("\"build\"", "\"evil\""));
    let (reason, text) = evil.may_start(ApprovalPolicy::Work).unwrap_err();
    assert_eq!(reason, StartRefusalReason::DigestMismatch);
    assert!(text.contains("(executor build: command)"), "{text}");
    assert_eq!(evil.preview().since_approval, ["executor build: command"]);
    assert_eq!(evil.may_start(ApprovalPolicy::Never), Ok(()), "the worker's operator asks for no approval");
    evil.approve(&ada(), &evil.preview().seen()).unwrap();
    assert_eq!(evil.may_start(ApprovalPolicy::Work), Ok(()));
    assert!(desk.may_start(ApprovalPolicy::Work).is_err(), "what was approved before no longer is");
}

#[test]
fn what_the_plan_does_not_use_may_change() {
    let desk = Desk::new([build("a")]);
    desk.approve(&ada(), &desk.preview().seen()).unwrap();
    for other in [
        CONFIG.replace("\"deploy\"", "\"destroy\""),
        format!("{CONFIG}\n[executors.new]\nkind = \"process\"\ncommand = [\"true\"]\n"),
        format!("{CONFIG}\n[queues.default]\nconcurrency = 7\n"),
        format!("{CONFIG}\n[reporters.log]\nkind = \"file\"\npath = \"events.log\"\n"),
    ] {
        assert_eq!(desk.configured(&other).may_start(ApprovalPolicy::Work), Ok(()), "{other}");
    }
}

/// Every key of an executor, with a value that differs from its default or from the first line.
const KEYS: &[(&str, &str, &str)] = &[
    ("process", "command = [\"make\", \"build\"]", "command = [\"make\", \"all\"]"),
    ("process", "command = [\"make\"]\nshell = true", "command = [\"make\"]"),
    ("process", "command = [\"make\"]", "command = [\"make\"]\ndirectory = \"sub\""),
    ("process", "command = [\"make\"]", "command = [\"make\"]\nenvironment = [\"TOKEN\"]"),
    ("process", "command = [\"make\"]", "command = [\"make\"]\nsecrets.TOKEN = { variable = \"T\" }"),
    (
        "process",
        "command = [\"make\"]\nsecrets.TOKEN = { variable = \"T\" }",
        "command = [\"make\"]\nsecrets.TOKEN = { variable = \"U\" }",
    ),
    ("process", "command = [\"make\"]", "command = [\"make\"]\ntimeout_seconds = 5"),
    ("http", "url = \"https://a.example/x\"", "url = \"https://b.example/x\""),
    ("http", "url = \"https://a.example/x\"", "url = \"https://a.example/x\"\nmethod = \"PUT\""),
    ("http", "url = \"https://a.example/x\"", "url = \"https://a.example/x\"\nheaders.X = \"y\""),
    ("agent", "command = [\"claude\", \"-p\"]", "command = [\"claude\", \"-p\"]\nworktree = true"),
    (
        "agent",
        "command = [\"claude\", \"-p\"]",
        "command = [\"claude\", \"-p\"]\nprompt = \"Do {description}\"",
    ),
];

#[test]
fn every_key_of_a_used_executor_is_bound() {
    for (kind, before, after) in KEYS {
        let text = |body: &str| format!("[executors.build]\nkind = \"{kind}\"\n{body}\n");
        let desk = Desk::with(&text(before), plan_of([build("a")]));
        desk.approve(&ada(), &desk.preview().seen()).unwrap();
        assert_eq!(desk.may_start(ApprovalPolicy::Work), Ok(()), "{kind}: {before}");
        let refused = desk.configured(&text(after)).may_start(ApprovalPolicy::Work);
        assert!(refused.is_err(), "{kind}: {before} became {after}");
    }
}

/// Lines of a dispatch executor and of its worker that say where, in what and as whom something runs.
const PLACES: &[(&str, &str)] = &[
    ("image = \"a@sha256:0\"", "image = \"b@sha256:0\""),
    ("image = \"a\"", "image = \"a\"\nnetwork = \"host\""),
    ("image = \"a\"", "image = \"a\"\nuser = \"root\""),
    ("image = \"a\"", "image = \"a\"\nmounts = [{ source = \"src\", target = \"/src\" }]"),
    ("image = \"a\"", "image = \"a\"\ntarget = \"kubernetes\""),
    (
        "image = \"a\"\ntarget = \"kubernetes\"",
        "image = \"a\"\ntarget = \"kubernetes\"\nservice_account = \"admin\"",
    ),
    ("image = \"a\"", "target = \"slurm\""),
    ("target = \"slurm\"", "target = \"slurm\"\npartition = \"gpu\""),
    ("target = \"slurm\"", "target = \"local\""),
];

#[test]
fn the_place_where_something_runs_is_bound() {
    let text = |lines: &str| {
        format!(
            "[executors.build]\nkind = \"dispatch\"\ntarget = \"container\"\n[executors.build.workers.w]\ncommand = [\"make\"]\n{lines}\n"
        )
    };
    for (before, after) in PLACES {
        let inputs = r#"{"subagent":"w","workerInput":{}}"#;
        let task = TaskSpec { work: work("build", inputs), ..task("a", &[]) };
        let desk = Desk::with(&text(before), plan_of([task]));
        desk.approve(&ada(), &desk.preview().seen()).unwrap();
        assert_eq!(desk.may_start(ApprovalPolicy::Work), Ok(()), "{before}");
        let (reason, _) = desk.configured(&text(after)).may_start(ApprovalPolicy::Work).unwrap_err();
        assert_eq!(reason, StartRefusalReason::DigestMismatch, "{before} became {after}");
    }
}

#[test]
fn the_defaults_of_retries_and_time_limits_are_bound() {
    let desk = Desk::new([build("a")]);
    desk.approve(&ada(), &desk.preview().seen()).unwrap();
    for more in ["[retry]\nattempts = 50\n", "[limits]\ntimeout_seconds = 5\n"] {
        assert!(
            desk.configured(&format!("{more}{CONFIG}")).may_start(ApprovalPolicy::Work).is_err(),
            "{more}"
        );
    }
}

#[test]
fn an_approval_without_a_digest_starts_nothing() {
    let desk = Desk::new([build("a")]);
    let version = 1;
    let approve = waypost_core::Command::Approve { version, note: String::new(), work: None };
    let request = waypost_store::WriteRequest {
        plan: desk.plan.clone(),
        by: Actor::person("ada"),
        commands: vec![approve],
        known_version: None,
        lease_seconds: None,
    };
    desk.service.plans().write(request).unwrap();
    let (reason, text) = desk.may_start(ApprovalPolicy::Work).unwrap_err();
    assert_eq!(reason, StartRefusalReason::NoDigest);
    assert!(text.contains("earlier version of Waypost"), "{text}");
    desk.approve(&ada(), &desk.preview().seen()).unwrap();
    assert_eq!(desk.may_start(ApprovalPolicy::Work), Ok(()));
}

#[test]
fn tasks_are_grouped_by_what_runs_and_risky_groups_come_first() {
    let many = (0..1_499).map(|number| build(&format!("t{number}")));
    let last = TaskSpec { work: work("deploy", r#"{"path":"rm -rf /"}"#), ..task("last", &[]) };
    let desk = Desk::new(many.chain([last]));
    let preview = desk.preview();
    assert_eq!((preview.total, preview.groups.len()), (1_500, 2));
    assert_eq!(preview.groups[0].tasks[0].id, "last");
    assert!(preview.groups[0].risks.starts_with(&[Risk::Deletion]), "{:?}", preview.groups[0].risks);
    assert!(preview.groups[0].risks.contains(&Risk::UsedOnce));
    let shown: usize = preview.groups.iter().map(|group| group.tasks.len()).sum();
    assert_eq!(shown, 1_500, "nothing is left out");
}

#[test]
fn running_does_not_change_the_digest() {
    let retry = Retry { attempts: 3, backoff_seconds: 0, backoff_seconds_max: 0 };
    let desk = Desk::new([TaskSpec { retry: Some(Box::new(retry)), ..build("a") }, build("b")]);
    desk.approve(&ada(), &desk.preview().seen()).unwrap();
    let definitions = Definitions::of(&desk.service.config().unwrap());
    let digest = || desk.service.read(&desk.plan, |plan| preview_digest(&definitions, plan).0).unwrap();
    let before = digest();
    let start = |task: &str| waypost_core::Command::StartTask {
        task: waypost_core::TaskId::new(task).unwrap(),
        worker: "w1".to_owned(),
    };
    let request = waypost_store::WriteRequest {
        plan: desk.plan.clone(),
        by: Actor::worker("w1"),
        commands: vec![start("a"), start("b")],
        known_version: None,
        lease_seconds: None,
    };
    desk.service.plans().write(request).unwrap();
    assert_eq!(digest(), before);
}
