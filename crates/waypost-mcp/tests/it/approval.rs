//! Approval by the person at the client: what they are shown, what their answer means, and that nothing else means it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{
    CallToolResponse, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ErrorData, Implementation,
};
use rmcp::service::RequestContext;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use tokio::sync::Notify;
use waypost_core::{Command, Phase, Plan, PlanChanges, PlanId, Proof};
use waypost_mcp::{Server, Toolset};
use waypost_service::short_digest;

use crate::line::{Era, Line, options, plan, request, text};
use crate::session::World;

/// Long enough for everything that has to happen, and reached only by what does not.
const BOUND: Duration = Duration::from_secs(30);

const EXECUTOR: &str = "[executors.tests]\nkind = \"process\"\ncommand = [\"cargo\", \"test\"]\n";
/// The account accepts the word of the client that the tests use.
const CONFIG: &str = "[approval]\nproof = \"client\"\nelicitation = [\"person:host\"]\n\
    [executors.tests]\nkind = \"process\"\ncommand = [\"cargo\", \"test\"]\n";

type Deed = Box<dyn FnOnce() -> ElicitResult + Send>;

/// A person at a client, with what they do when they are asked.
#[derive(Clone, Default)]
struct Person {
    deeds: Arc<Mutex<VecDeque<Deed>>>,
    asked: Arc<Mutex<Vec<String>>>,
    was_asked: Arc<Notify>,
    was_spared: Arc<Notify>,
    is_absent: bool,
}

impl Person {
    fn who(deeds: impl IntoIterator<Item = Deed>) -> Self {
        Self { deeds: Arc::new(Mutex::new(deeds.into_iter().collect())), ..Self::default() }
    }

    fn answering(answer: ElicitResult) -> Self {
        Self::who([Box::new(move || answer) as Deed])
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Waits until they are asked, for a bounded time: a call that does not wait for them may have been answered before.
    fn first_question(&self, line: &Line<Self>) -> String {
        let asked = async { tokio::time::timeout(BOUND, self.was_asked.notified()).await };
        line.runtime.block_on(asked).expect("a question");
        self.asked()[0].clone()
    }
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let can = if self.is_absent {
            ClientCapabilities::default()
        } else {
            ClientCapabilities::builder().enable_elicitation().build()
        };
        ClientConfig::new(can, Implementation::new("person:host", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            return Err(ErrorData::invalid_params("no form", None));
        };
        let schema = serde_json::to_value(requested_schema).unwrap();
        assert_eq!(schema["required"], json!(["decision"]));
        assert_eq!(schema["properties"]["decision"].get("default"), None, "nothing is chosen for them");
        self.asked.lock().unwrap().push(message);
        self.was_asked.notify_one();
        let deed = self.deeds.lock().unwrap().pop_front();
        match deed {
            Some(deed) => Ok(tokio::task::spawn_blocking(deed).await.unwrap()),
            None => {
                context.ct.cancelled().await;
                self.was_spared.notify_one();
                Err(ErrorData::internal_error("cancelled", None))
            }
        }
    }
}

fn accept(content: Value) -> ElicitResult {
    ElicitResult::new(ElicitationAction::Accept).with_content(content)
}

fn machine_plan(world: &World) -> PlanId {
    plan(
        world,
        json!({
            "title": "Ship\u{202e} \"it\"\nnow", "owner": "planner",
            "tasks": [
                { "id": "a", "description": "think" },
                { "id": "b", "depends_on": ["a"], "work": { "executor": "tests" } },
                { "id": "c", "depends_on": ["b"], "work": { "executor": "tests" } },
            ],
        }),
    )
}

fn line(world: &World, person: &Person, era: Era) -> Line<Person> {
    Line::new(Server::new(options(world, Some("planner"))), person.clone(), era)
}

fn start(line: &Line<Person>, plan: &PlanId, wait: u64) -> String {
    text(&line.call("plan_start", json!({ "plan": plan, "message": "tests are green", "wait": wait })))
}

fn phase(world: &World, plan: &PlanId) -> Phase {
    world.plans.with_plan(plan, |plan| plan.state().phase).unwrap()
}

/// Waits until somebody has approved, for a bounded time, and says who.
fn approver(world: &World, plan: &PlanId) -> String {
    let mut watch = world.plans.watch().unwrap();
    let begun = std::time::Instant::now();
    loop {
        let by = |plan: &Plan| plan.state().approval.as_ref().map(|approval| approval.by.to_string());
        if let Some(by) = world.plans.with_plan(plan, by).unwrap() {
            return by;
        }
        assert!(begun.elapsed() < BOUND, "nobody approved");
        watch.wait(Duration::from_millis(100)).unwrap();
    }
}

#[test]
fn the_person_is_told_what_would_run_as_one_would_type_it() {
    let config = "[approval]\nproof = \"client\"\nelicitation = [\"person:host\"]\n[executors.make]\nkind = \"process\"\nshell = true\ncommand = [\"make all\"]\n[executors.hook]\n\
        kind = \"http\"\nurl = \"https://ci.example/build\"\n[checks.lint]\ncommand = [\"lint\", \"-q\"]\n";
    let world = World::with_config(config);
    let work = |id: &str, executor: &str| json!({ "id": id, "work": { "executor": executor } });
    let mut checked = work("d", "noop");
    checked["check"] = json!({ "executor": "lint" });
    let mut past = work("e", "hook");
    past["state"] = json!({ "status": "skipped" });
    let tasks = json!([work("a", "make"), work("b", "make"), work("c", "hook"), checked, past]);
    let id = plan(&world, json!({ "title": "Ship", "owner": "planner", "tasks": tasks }));
    let person = Person::answering(ElicitResult::new(ElicitationAction::Decline));
    let client = line(&world, &person, Era::Old);
    start(&client, &id, 0);
    let asked = person.first_question(&client);
    let environment = "\n      environment: PATH, HOME, USER, LANG, LC_ALL, TZ, TMPDIR, TERM";
    let limits = "\n    attempts: 1\n    time limit: none";
    let expected = format!(
        "\ntitle: Ship\nMachines would run:\n- a: sh -c 'make all' [runs in a shell, no time limit]\n    \
         executor: make{environment}{limits}\n\
         - b: sh -c 'make all' [runs in a shell, no time limit]\n\
         - c: POST https://ci.example/build [uses the network, no time limit]\n    \
         executor: hook\n      url: https://ci.example/build\n      method: POST\n      tries: 3\n      \
         poll_seconds: 5{limits}\n\
         - e: POST https://ci.example/build [uses the network, no time limit]\n    \
         status: skipped, and not asked or run again\n\
         - d: (nothing) [used once, no time limit]\n    \
         executor: noop\n    check: lint{environment}{limits}\n    check: lint -q"
    );
    assert!(asked.contains(&expected), "{asked}");
    // More than anybody reads in a question cannot be approved by answering it.
    let tasks: Vec<Value> = (0..51).map(|number| work(&format!("t{number}"), "make")).collect();
    let id = plan(&world, json!({ "title": "Ship", "owner": "planner", "tasks": tasks }));
    let person = Person::answering(accept(json!({ "decision": "approve" })));
    let client = line(&world, &person, Era::Old);
    start(&client, &id, 1);
    let asked = person.first_question(&client);
    assert!(asked.contains("51 tasks, too many to show here"), "{asked}");
    assert_eq!(phase(&world, &id), Phase::AwaitingApproval);
}

#[test]
fn the_person_at_the_client_approves_the_version_that_they_were_shown() {
    for era in [Era::Old, Era::New] {
        let world = World::with_config(CONFIG);
        let plan = machine_plan(&world);
        let person = Person::answering(accept(json!({ "decision": "approve", "reason": "looks good" })));
        let line = line(&world, &person, era);
        let said = start(&line, &plan, 30);
        assert!(said.starts_with("active"), "{era:?}: {said}");
        let expected = format!(
            "May this plan run? \"Ship\u{fffd} 'it' now\" (plan {plan}, version 2, 3 tasks, digest DIGEST)\n\
             title: Ship\\u{{202e}} \"it\"\\u{{a}}now\n\
             Machines would run:\n- b: cargo test [no time limit]\n    executor: tests\n      \
             environment: PATH, HOME, USER, LANG, LC_ALL, TZ, TMPDIR, TERM\n    attempts: 1\n    \
             time limit: none\n    depends on: a\n\
             - c: cargo test [no time limit]\n    depends on: b\n\
             The agent says: tests are green"
        );
        let approval = world.plans.with_plan(&plan, |plan| plan.state().approval.clone()).unwrap().unwrap();
        let work = approval.work.clone().unwrap();
        let expected = expected.replace("DIGEST", short_digest(&work.digest));
        assert_eq!(person.asked(), [expected], "{era:?}");
        assert_eq!((work.proof, work.via.as_str()), (Proof::Client, "elicitation:person-host"));
        assert_eq!(approval.by.to_string(), "person:someone at person-host (elicitation)");
        assert_eq!((approval.version, approval.note.as_str()), (2, "looks good"));
    }
}

#[test]
fn the_person_at_the_client_rejects_and_says_why() {
    for era in [Era::Old, Era::New] {
        let world = World::with_config(CONFIG);
        let plan = machine_plan(&world);
        let person = Person::answering(accept(json!({ "decision": "reject", "reason": "not on Friday" })));
        let said = start(&line(&world, &person, era), &plan, 30);
        assert!(said.contains("not on Friday"), "{era:?}: {said}");
        assert_ne!(phase(&world, &plan), Phase::Active);
    }
}

#[test]
fn whatever_is_not_plainly_an_approval_leaves_the_plan_waiting() {
    let answers = [
        ElicitResult::new(ElicitationAction::Decline),
        ElicitResult::new(ElicitationAction::Cancel),
        ElicitResult::new(ElicitationAction::Accept),
        accept(json!({})),
        accept(json!({ "decision": "yes" })),
        accept(json!({ "decision": true })),
        accept(json!(["approve"])),
        ElicitResult::new(ElicitationAction::Decline).with_content(json!({ "decision": "approve" })),
        ElicitResult::new(ElicitationAction::Cancel).with_content(json!({ "decision": "approve" })),
    ];
    for era in [Era::Old, Era::New] {
        let world = World::with_config(CONFIG);
        for answer in &answers {
            let plan = machine_plan(&world);
            let person = Person::answering(answer.clone());
            let client = line(&world, &person, era);
            let said = start(&client, &plan, 1);
            assert!(said.starts_with("awaiting_approval"), "{era:?} {answer:?}: {said}");
            person.first_question(&client);
            assert_eq!(person.asked().len(), 1, "{era:?} {answer:?}");
            assert_eq!(phase(&world, &plan), Phase::AwaitingApproval, "{era:?} {answer:?}");
        }
    }
}

#[test]
fn a_dismissed_question_ends_the_call_that_waits_for_the_answer() {
    for action in [ElicitationAction::Decline, ElicitationAction::Cancel] {
        for era in [Era::Old, Era::New] {
            let world = World::with_config(CONFIG);
            let plan = machine_plan(&world);
            let person = Person::answering(ElicitResult::new(action.clone()));
            // The call would wait for ten minutes, and the test for a minute at most.
            let line = line(&world, &person, era);
            let asked = request("plan_start", json!({ "plan": plan, "wait": 600 }));
            let answered = line.runtime.block_on(async {
                tokio::time::timeout(BOUND, line.client().call_tool(asked)).await.expect("an answer").unwrap()
            });
            let said = text(&answered);
            assert!(
                said.starts_with("awaiting_approval: the person at the client dismissed the question"),
                "{era:?}: {said}"
            );
            assert_eq!(phase(&world, &plan), Phase::AwaitingApproval, "{era:?}");
        }
    }
}

#[test]
fn a_plan_that_changed_while_they_looked_at_it_is_asked_about_again() {
    for era in [Era::Old, Era::New] {
        let world = Arc::new(World::with_config(CONFIG));
        let plan = machine_plan(&world);
        let (there, which) = (Arc::clone(&world), plan.clone());
        let slow: Deed = Box::new(move || {
            let changes =
                PlanChanges { title: Some("Ship something else".to_owned()), ..PlanChanges::default() };
            there.person(which.as_str(), Command::RevisePlan(changes.into()));
            accept(json!({ "decision": "approve" }))
        });
        let sure: Deed = Box::new(|| accept(json!({ "decision": "approve" })));
        let person = Person::who([slow, sure]);
        let said = start(&line(&world, &person, era), &plan, 30);
        assert!(said.starts_with("active"), "{era:?}: {said}");
        let asked = person.asked();
        assert_eq!(asked.len(), 2, "{era:?}");
        assert!(
            asked[0].contains("\"Ship\u{fffd} 'it' now\"") && asked[0].contains("version 2"),
            "{}",
            asked[0]
        );
        assert!(
            asked[1].contains("\"Ship something else\"") && asked[1].contains("version 3"),
            "{}",
            asked[1]
        );
        let approved =
            world.plans.with_plan(&plan, |plan| plan.state().approval.as_ref().unwrap().version).unwrap();
        assert_eq!(approved, 3, "{era:?}");
    }
}

#[test]
fn an_answer_in_a_terminal_ends_the_call_and_closes_the_question_at_the_client() {
    let world = World::with_config(CONFIG);
    let plan = machine_plan(&world);
    let person = Person::default();
    let line = line(&world, &person, Era::Old);
    let asked = request("plan_start", json!({ "plan": plan, "wait": 60 }));
    let said = line.runtime.block_on(async {
        let answered = line.client().call_tool(asked);
        let terminal = async {
            person.was_asked.notified().await;
            world.approve(plan.as_str());
        };
        let (answered, ()) = tokio::join!(answered, terminal);
        tokio::time::timeout(BOUND, person.was_spared.notified()).await.expect("the question is closed");
        answered.unwrap()
    });
    assert!(text(&said).starts_with("active"), "{}", text(&said));
    assert_eq!(approver(&world, &plan), "person:ada");
}

#[test]
fn a_call_that_does_not_wait_returns_at_once_and_the_person_may_answer_later() {
    let world = World::with_config(CONFIG);
    let plan = machine_plan(&world);
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let later: Deed = Box::new(move || {
        wait.recv_timeout(BOUND).unwrap();
        accept(json!({ "decision": "approve" }))
    });
    let person = Person::who([later]);
    let line = line(&world, &person, Era::Old);
    assert!(start(&line, &plan, 0).starts_with("awaiting_approval"));
    // Asked already: nobody is asked the same twice at once.
    assert!(start(&line, &plan, 0).starts_with("awaiting_approval"));
    go.send(()).unwrap();
    assert_eq!(approver(&world, &plan), "person:someone at person-host (elicitation)");
    assert_eq!(person.asked().len(), 1);
}

#[test]
fn nobody_is_asked_at_a_client_that_cannot_or_that_the_account_does_not_name() {
    let check = |era: Era, approval: &str, person: &Person| {
        let world = World::with_config(&format!("{approval}{EXECUTOR}"));
        let plan = machine_plan(&world);
        let said = start(&line(&world, person, era), &plan, 1);
        assert!(said.starts_with("awaiting_approval"), "{era:?} {approval}: {said}");
        assert!(said.contains(&format!("waypost approve {plan}")), "it says how a person approves: {said}");
        assert!(person.asked().is_empty(), "{era:?} {approval}");
        assert_eq!(phase(&world, &plan), Phase::AwaitingApproval, "{era:?} {approval}");
    };
    for era in [Era::Old, Era::New] {
        let named = "[approval]\nproof = \"client\"\nelicitation = [\"person:host\"]\n";
        check(era, named, &Person { is_absent: true, ..Person::default() });
        // What a client answers by itself approves nothing.
        for approval in [
            "",
            "[approval]\nelicitation = true\n",
            "[approval]\nproof = \"client\"\n",
            "[approval]\nproof = \"client\"\nelicitation = [\"person-host\", \"person:hos\", \"*\"]\n",
            "[approval]\nelicitation = [\"person:host\"]\n",
            "[approval]\nproof = \"presence\"\nelicitation = [\"person:host\"]\n",
            "[approval]\nproof = \"touch\"\nelicitation = [\"person:host\"]\n",
        ] {
            check(era, approval, &Person::answering(accept(json!({ "decision": "approve" }))));
        }
    }
}

#[test]
fn over_http_the_token_has_to_allow_it_too() {
    for allowed in [false, true] {
        let world = World::with_config(CONFIG);
        let plan = machine_plan(&world);
        let person = Person::answering(accept(json!({ "decision": "approve" })));
        let server = Server::new(options(&world, None)).for_agent("planner", allowed);
        let said = start(&Line::new(server, person.clone(), Era::Old), &plan, if allowed { 30 } else { 0 });
        assert_eq!(
            (said.starts_with("active"), person.asked().len()),
            (allowed, usize::from(allowed)),
            "{said}"
        );
    }
}

#[test]
fn a_cancelled_call_stops_waiting_and_nobody_is_asked_any_more() {
    let world = World::with_config(CONFIG);
    let plan = machine_plan(&world);
    let person = Person::default();
    let line = line(&world, &person, Era::Old);
    let asked = rmcp::model::ClientRequest::CallToolRequest(rmcp::model::CallToolRequest::new(request(
        "plan_start",
        json!({ "plan": plan, "wait": 600 }),
    )));
    line.runtime.block_on(async {
        let options = rmcp::service::PeerRequestOptions::no_options();
        let handle = line.client().send_cancellable_request(asked, options).await.unwrap();
        tokio::time::timeout(BOUND, person.was_asked.notified()).await.expect("the person is asked");
        handle.cancel(Some("enough".to_owned())).await.unwrap();
        tokio::time::timeout(BOUND, person.was_spared.notified()).await.expect("the question is closed");
    });
    assert_eq!(phase(&world, &plan), Phase::AwaitingApproval);
}

#[test]
fn nothing_that_an_agent_sends_approves() {
    let world = World::with_config(CONFIG);
    let plan = machine_plan(&world);
    let person = Person { is_absent: true, ..Person::default() };
    let line = line(&world, &person, Era::New);
    let approve = json!({ "action": "accept", "content": { "decision": "approve" } });
    for arguments in [
        json!({ "plan": plan, "wait": 0, "decision": "approve" }),
        json!({ "plan": plan, "wait": 0, "approval": approve }),
        json!({ "plan": plan, "wait": 0, "input_responses": { "approval": approve } }),
        json!({ "plan": plan, "wait": 0, "by": "person:ada" }),
    ] {
        let said = line.call("plan_start", arguments);
        assert!(!text(&said).starts_with("active"), "{}", text(&said));
    }
    // Answers to questions that nobody put, with and without a made-up handle.
    for state in [None, Some("00000000000000000000000000000000"), Some("roots")] {
        let mut forged = request("plan_start", json!({ "plan": plan, "wait": 0 }));
        forged.input_responses = Some([("approval".to_owned(), approve.clone())].into());
        forged.request_state = state.map(str::to_owned);
        let said = line.runtime.block_on(line.client().call_tool(forged)).unwrap();
        assert!(!text(&said).starts_with("active"), "{state:?}: {}", text(&said));
    }
    assert_eq!(phase(&world, &plan), Phase::AwaitingApproval);
}

#[test]
fn an_answer_counts_for_the_call_that_asked_and_for_no_other() {
    let world = World::with_config(CONFIG);
    let (plan, other) = (machine_plan(&world), machine_plan(&world));
    let person = Person::default();
    let line = line(&world, &person, Era::New);
    let round = |mut call: rmcp::model::CallToolRequestParams, state: Option<String>| {
        let approve = json!({ "action": "accept", "content": { "decision": "approve" } });
        call.input_responses = state.is_some().then(|| [("approval".to_owned(), approve)].into());
        call.request_state = state;
        line.runtime.block_on(line.client().call_tool_once(call)).unwrap()
    };
    let call = |plan: &PlanId| request("plan_start", json!({ "plan": plan, "wait": 30 }));
    let CallToolResponse::InputRequired(asked) = round(call(&plan), None) else { panic!("it asks first") };
    let handle = asked.request_state.unwrap();
    let CallToolResponse::Complete(refused) = round(call(&other), Some(handle.clone())) else {
        panic!("another call gets no further")
    };
    assert_eq!(text(&refused), "no call waits for this answer; call the tool again without it");
    assert_eq!((phase(&world, &plan), phase(&world, &other)), (Phase::AwaitingApproval, Phase::Draft));
    let CallToolResponse::Complete(done) = round(call(&plan), Some(handle.clone())) else {
        panic!("it goes on")
    };
    assert!(text(&done).starts_with("active"), "{}", text(&done));
    let CallToolResponse::Complete(again) = round(call(&plan), Some(handle)) else { panic!("it is over") };
    assert!(again.is_error.unwrap_or_default(), "a handle works once");
}

#[test]
fn the_plan_of_jaatos_tools_starts_by_the_form_at_a_named_host() {
    for (decision, confirmed) in [("approve", true), ("reject", false)] {
        let world = World::with_config(CONFIG);
        let person = Person::answering(accept(json!({ "decision": decision, "reason": "because" })));
        let session = world.session_with(Toolset::Jaato, "planner", person.clone());
        let made = session.call("createPlan", json!({ "title": "Ship", "steps": ["build"] })).value;
        let told = session.ask("startPlan", json!({ "message": "tests are green", "timeout": 30 }));
        assert_eq!(
            (told.is_error, &told.value["confirmed"]),
            (!confirmed, &json!(confirmed)),
            "{}",
            told.text
        );
        let asked = person.asked();
        assert!(asked.len() == 1 && asked[0].contains("The agent says: tests are green"), "{asked:?}");
        let plan = PlanId::new(made["plan_id"].as_str().unwrap()).unwrap();
        if confirmed {
            assert_eq!(approver(&world, &plan), "person:someone at person-host (elicitation)");
            let set = json!({ "step_id": "step_1", "status": "in_progress" });
            assert_eq!(session.call("setStepStatus", set).value["status"], "in_progress");
        } else {
            assert!(told.text.contains("Plan rejected by the user: because"), "{}", told.text);
            assert_eq!(phase(&world, &plan), Phase::Draft);
        }
    }
}
