//! Resources, subscriptions, prompts and completion, as clients of both eras use them.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ArgumentInfo, ClientCapabilities, ClientConfig, CompleteRequestParams, CompletionContext,
    GetPromptRequestParams, Implementation, PaginatedRequestParams, ReadResourceRequestParams, Reference,
    ResourceContents, ResourceUpdatedNotificationParam, ServerNotification, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use waypost_core::{Command, Outcome, PlanId, TaskId};
use waypost_mcp::Server;

use crate::line::{Era, Line, options, plan};
use crate::session::World;

/// Long enough for everything that has to happen, and reached only by what does not.
const BOUND: Duration = Duration::from_secs(30);

/// A client that notes what it is told.
#[derive(Clone)]
struct Reader {
    told: mpsc::UnboundedSender<String>,
    heard: Arc<Mutex<mpsc::UnboundedReceiver<String>>>,
}

impl Reader {
    fn new() -> Self {
        let (told, heard) = mpsc::unbounded_channel();
        Self { told, heard: Arc::new(Mutex::new(heard)) }
    }
}

impl ClientHandler for Reader {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("reader", "1"))
    }
    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.told.send(params.uri).unwrap();
    }
    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.told.send("list".to_owned()).unwrap();
    }
}

fn line(world: &World, era: Era) -> (Line<Reader>, Reader) {
    let reader = Reader::new();
    (Line::new(Server::new(options(world, Some("planner"))), reader.clone(), era), reader)
}

fn hear(line: &Line<Reader>, reader: &Reader) -> String {
    let heard = async { reader.heard.lock().await.recv().await.unwrap() };
    line.runtime.block_on(async { tokio::time::timeout(BOUND, heard).await }).expect("the client is told")
}

fn two_tasks(world: &World) -> PlanId {
    let tasks = json!([{ "id": "a", "description": "first" }, { "id": "b/ö", "depends_on": ["a"] }]);
    plan(world, json!({ "title": "Two", "owner": "planner", "tasks": tasks }))
}

fn work(world: &World, plan: &PlanId, task: &str) {
    let task = TaskId::new(task).unwrap();
    world.person(plan.as_str(), Command::StartTask { task, worker: "ada".to_owned() });
}

fn read(line: &Line<Reader>, uri: &str) -> Result<(String, String), String> {
    let read = line.runtime.block_on(line.client().read_resource(ReadResourceRequestParams::new(uri)));
    let contents = read.map_err(|error| error.to_string())?.contents;
    let [ResourceContents::TextResourceContents { uri: named, mime_type, text, .. }] = contents.as_slice()
    else {
        panic!("one text: {contents:?}")
    };
    assert_eq!(named, uri);
    Ok((mime_type.clone().unwrap(), text.clone()))
}

#[test]
fn plans_tasks_and_histories_can_be_read() {
    let world = World::new();
    let plan = two_tasks(&world);
    work(&world, &plan, "a");
    let (line, _) = line(&world, Era::Old);
    let json_of = |uri: String| -> Value {
        let (mime, text) = read(&line, &uri).unwrap();
        assert_eq!(mime, "application/json");
        serde_json::from_str(&text).unwrap()
    };
    let all = json_of("waypost://plans".to_owned());
    assert_eq!((&all["total"], &all["plans"][0]["title"]), (&json!(1), &json!("Two")));
    let native = json_of(format!("waypost://plans/{plan}"));
    assert_eq!((&native["format"], &native["tasks"][0]["id"]), (&json!("waypost/1"), &json!("a")));
    let task = json_of(format!("waypost://plans/{plan}/tasks/b%2F%C3%B6"));
    assert_eq!((&task["standing"], &task["task"]["id"]), (&json!("blocked"), &json!("b/ö")));
    let history = json_of(format!("waypost://plans/{plan}/history"));
    assert_eq!(history["versions"][0]["command"], "start_task");
    assert_eq!(history["versions"][1]["by"], "agent:planner");
    let (mime, markdown) = read(&line, &format!("waypost://plans/{plan}/markdown")).unwrap();
    assert!(mime == "text/markdown" && markdown.contains("title: Two"), "{markdown}");
    for wrong in ["waypost://elsewhere", "file:///etc/passwd"] {
        assert!(read(&line, wrong).is_err(), "{wrong}");
    }
    let said = read(&line, "waypost://plans/nope").unwrap_err();
    assert!(said.contains("no plan is called nope; waypost://plans lists the plans"), "{said}");
    let templates = line.runtime.block_on(line.client().list_all_resource_templates()).unwrap();
    assert_eq!(templates.len(), 4);
}

#[test]
fn the_list_of_plans_comes_in_pages() {
    let world = World::new();
    for number in 0..60 {
        plan(&world, json!({ "title": format!("Plan {number}") }));
    }
    let (line, _) = line(&world, Era::Old);
    let page = |cursor: Option<String>| {
        let asked = PaginatedRequestParams::default().with_cursor(cursor);
        line.runtime.block_on(line.client().list_resources(Some(asked))).unwrap()
    };
    let first = page(None);
    assert_eq!(first.resources.len(), 51, "the list itself, and a page of plans");
    let second = page(first.next_cursor.clone());
    assert_eq!((second.resources.len(), second.next_cursor), (10, None));
    let junk = PaginatedRequestParams::default().with_cursor(Some("junk".to_owned()));
    let said = line.runtime.block_on(line.client().list_resources(Some(junk))).unwrap_err().to_string();
    assert!(said.contains("\"junk\" is not a cursor of this list"), "{said}");
}

#[test]
#[expect(deprecated, reason = "clients of the old era subscribe so")]
fn who_subscribed_hears_of_what_others_wrote_and_of_nothing_else() {
    let world = World::new();
    let (plan, other) = (two_tasks(&world), two_tasks(&world));
    let (line, reader) = line(&world, Era::Old);
    let subscribe =
        |uri: &str| line.runtime.block_on(line.client().subscribe(SubscribeRequestParams::new(uri)));
    let task = format!("waypost://plans/{plan}/tasks/b%2F%C3%B6");
    subscribe(&task).unwrap();
    assert!(subscribe("waypost://plans/nope").is_err());
    assert!(subscribe(&format!("waypost://plans/{plan}/tasks/nope")).is_err());
    // Neither another plan nor another task of the plan is news for it; that its dependency is done is.
    work(&world, &other, "a");
    work(&world, &plan, "a");
    let done = Command::FinishTask {
        task: TaskId::new("a").unwrap(),
        attempt: Some(1),
        outcome: Outcome::Done { result: None, output: None, evidence: None },
        retry: None,
    };
    world.person(plan.as_str(), done);
    assert_eq!(hear(&line, &reader), task);
    let whole = format!("waypost://plans/{plan}");
    subscribe(&whole).unwrap();
    line.runtime.block_on(line.client().unsubscribe(UnsubscribeRequestParams::new(task.as_str()))).unwrap();
    work(&world, &plan, "b/ö");
    assert_eq!(hear(&line, &reader), whole);
}

#[test]
fn who_has_seen_the_list_hears_when_there_is_a_new_plan() {
    let world = World::new();
    let (line, reader) = line(&world, Era::Old);
    line.runtime.block_on(line.client().list_resources(None)).unwrap();
    two_tasks(&world);
    assert_eq!(hear(&line, &reader), "list");
}

#[test]
fn a_client_of_the_new_era_listens_and_is_told() {
    let world = World::new();
    let plan = two_tasks(&world);
    let (line, _) = line(&world, Era::New);
    let uri = format!("waypost://plans/{plan}");
    let mut filter = SubscriptionFilter::builder().resources_list_changed().build();
    filter.resource_subscriptions = Some(vec![uri.clone()]);
    let mut news = line.runtime.block_on(line.client().listen(filter)).unwrap();
    let mut next = || {
        let told = line.runtime.block_on(async { tokio::time::timeout(BOUND, news.next()).await });
        match told.expect("the client is told").unwrap() {
            Some(ServerNotification::ResourceUpdatedNotification(told)) => told.params.uri,
            Some(ServerNotification::ResourceListChangedNotification(_)) => "list".to_owned(),
            other => panic!("{other:?}"),
        }
    };
    // Once at the beginning: what was read before may be another one by now.
    assert_eq!([next(), next()], ["list".to_owned(), uri.clone()]);
    work(&world, &plan, "a");
    assert_eq!(next(), uri);
    two_tasks(&world);
    assert_eq!(next(), "list");
}

#[test]
fn prompts_show_a_plan_and_tell_how_to_work_through_it() {
    let world = World::new();
    let plan = two_tasks(&world);
    let (line, _) = line(&world, Era::Old);
    let get = |name: &str, plan: Option<&PlanId>| {
        let mut asked = GetPromptRequestParams::new(name);
        asked.arguments = plan.map(|plan| json!({ "plan": plan }).as_object().unwrap().clone());
        let got =
            line.runtime.block_on(line.client().get_prompt(asked)).map_err(|error| error.to_string())?;
        let said = serde_json::to_value(&got.messages).unwrap();
        Ok::<String, String>(said[0]["content"]["text"].as_str().unwrap().to_owned())
    };
    let names = line.runtime.block_on(line.client().list_all_prompts()).unwrap();
    let names: Vec<&str> = names.iter().map(|prompt| prompt.name.as_str()).collect();
    assert_eq!(names, ["plan", "work_through_plan"]);
    let shown = get("plan", None).unwrap();
    assert!(shown.contains("Two") && shown.contains("first"), "{shown}");
    assert_eq!(get("plan", Some(&plan)).unwrap(), shown, "the latest of one's own is the one that is shown");
    let work = get("work_through_plan", Some(&plan)).unwrap();
    assert!(work.contains(plan.as_str()) && work.contains("you cannot approve"), "{work}");
    assert!(get("work_through_plan", None).unwrap_err().contains("no plan was named"));
    assert!(get("nope", None).is_err());
}

#[test]
fn ids_are_completed() {
    let world = World::new();
    let plan = two_tasks(&world);
    let (line, _) = line(&world, Era::Old);
    let complete = |reference: Reference, name: &str, begun: &str, known: Option<&PlanId>| {
        let mut asked = CompleteRequestParams::new(reference, ArgumentInfo::new(name, begun));
        asked.context = known.map(|plan| {
            let mut context = CompletionContext::new();
            context.arguments = Some([("id".to_owned(), plan.to_string())].into());
            context
        });
        line.runtime.block_on(line.client().complete(asked)).unwrap().completion.values
    };
    let template = || Reference::for_resource("waypost://plans/{id}/tasks/{task}");
    assert_eq!(complete(template(), "id", &plan.as_str()[..2], None), [plan.to_string()]);
    assert_eq!(complete(Reference::for_prompt("plan"), "plan", "", None), [plan.to_string()]);
    assert_eq!(complete(template(), "task", "b", Some(&plan)), ["b/ö"]);
    assert!(complete(template(), "task", "b", None).is_empty());
}

#[test]
fn a_server_says_what_it_is_in_few_words() {
    let world = World::new();
    let (line, _) = line(&world, Era::Old);
    let info = line.client().peer_info().unwrap();
    assert_eq!(info.server_info.as_ref().unwrap().name, "waypost");
    let words = info.instructions.as_ref().unwrap().split_whitespace().count();
    assert!((60..=130).contains(&words), "{words} words");
}
