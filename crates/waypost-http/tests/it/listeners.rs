//! Many listen to what happens: each hears everything once, in its order, also after it was cut off.

use axum::body::Bytes;
use futures_util::future::join_all;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use waypost_core::{Actor, PlanId, TaskId};
use waypost_http::STREAMS_PER_TOKEN_MAX;
use waypost_service::{Caller, Guard, TaskRef, TaskReport};
use waypost_store::{Cursor, EVENTS_MAX, EventFilter};

use super::api::{BOUND, Desk};

const LISTENERS: usize = 200;
const TASKS: usize = 100;
/// Those who begin when all is over, and of how much they hear.
const LATE_LISTENERS: usize = 30;
const LATE_TASKS: usize = 700;
/// Every so many events some of the listeners hang up and come again.
const HANGS_UP: usize = 40;
const LATE_HANGS_UP: usize = 400;

/// What a listener hears up to the event that ends the plan. One that hangs up says where it was when it comes again.
async fn hear(url: String, bearer: String, begin: String, hangs_up: Option<usize>) -> Vec<String> {
    let (mut heard, mut last, mut after) = (Vec::new(), None::<String>, Some(begin));
    loop {
        let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
        let place = after.take().map(|after| format!("?after={after}")).unwrap_or_default();
        let mut request = hyper::Request::get(format!("{url}{place}")).header("authorization", &bearer);
        if let Some(last) = &last {
            request = request.header("last-event-id", last);
        }
        let response = client.request(request.body(Full::new(Bytes::new())).unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        let (mut body, mut text, mut here) = (response.into_body(), String::new(), 0);
        'connection: while let Some(frame) = body.frame().await {
            text.push_str(std::str::from_utf8(&frame.unwrap().into_data().unwrap()).unwrap());
            while let Some((event, rest)) = text.split_once("\n\n") {
                let id = event.lines().find_map(|line| line.strip_prefix("id: ")).map(str::to_owned);
                let data = event.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
                text = rest.to_owned();
                let (Some(id), Some(data)) = (id, data) else { continue };
                let value: Value = serde_json::from_str(&data).unwrap();
                heard.push(format!("{}.{}", value["sequence"], value["index"]));
                last = Some(id);
                if value["kind"] == json!("plan_completed") {
                    return heard;
                }
                here += 1;
                if hangs_up == Some(here) {
                    break 'connection;
                }
            }
        }
    }
}

/// Listeners who begin behind this place.
fn listeners(desk: &Desk, count: usize, begin: Cursor, hangs_up: usize) -> Vec<JoinHandle<Vec<String>>> {
    let url = format!("http://{}/api/v1/events", desk.at);
    let one = |number: usize| {
        hear(url.clone(), desk.bearer(), begin.to_string(), number.is_multiple_of(3).then_some(hangs_up))
    };
    (0..count).map(|number| desk.runtime.spawn(one(number))).collect()
}

/// Runs a plan of so many tasks to its end.
fn run(desk: &Desk, tasks: usize) {
    desk.post("/plans/p/actions/start", &json!({})).ok();
    let (plan, by) = (PlanId::new("p").unwrap(), Caller::new(Actor::person("ada")));
    for number in 0..tasks {
        let task = TaskId::new(format!("t{number}")).unwrap();
        let done = TaskReport::Done { result: None, output: None, sure: false };
        let task = TaskRef { plan: &plan, task: &task, attempt: None, take_over: false, seen: None };
        desk.service.report(&by, task, done, Guard::NONE).unwrap();
    }
}

/// The places of all events up to the end of the plan.
fn expected(desk: &Desk, begin: Cursor) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), begin);
    loop {
        let page = desk.service.plans().events(cursor, &EventFilter::default(), EVENTS_MAX).unwrap();
        cursor = page.cursor;
        for event in page.events {
            found.push((format!("{}.{}", event.sequence, event.index), event.kind));
        }
        if !page.more {
            break;
        }
    }
    let end = found.iter().position(|(_, kind)| *kind == "plan_completed").unwrap();
    found.drain(..=end).map(|(place, _)| place).collect()
}

#[track_caller]
fn all_heard(desk: &Desk, listeners: Vec<JoinHandle<Vec<String>>>, expected: &[String]) {
    let all = async { tokio::time::timeout(BOUND, join_all(listeners)).await.unwrap() };
    for heard in desk.runtime.block_on(all) {
        assert_eq!(heard.unwrap(), expected);
    }
}

fn desk_with(tasks: usize) -> (Desk, Cursor) {
    let desk = Desk::new();
    let names: Vec<String> = (0..tasks).map(|number| format!("t{number}")).collect();
    desk.plan("p", &names.iter().map(String::as_str).collect::<Vec<_>>());
    let begin = Cursor::after(desk.service.plans().latest().unwrap());
    (desk, begin)
}

#[test]
fn each_of_many_listeners_hears_every_event_once_and_in_order() {
    let (desk, begin) = desk_with(TASKS);
    let listeners = listeners(&desk, LISTENERS, begin, HANGS_UP);
    run(&desk, TASKS);
    let expected = expected(&desk, begin);
    assert!(expected.len() >= TASKS, "{}", expected.len());
    all_heard(&desk, listeners, &expected);
}

#[test]
fn those_who_come_late_hear_everything_from_where_they_begin() {
    let (desk, begin) = desk_with(LATE_TASKS);
    run(&desk, LATE_TASKS);
    let expected = expected(&desk, begin);
    assert!(expected.len() > EVENTS_MAX, "more than a page: {}", expected.len());
    let listeners = listeners(&desk, LATE_LISTENERS, begin, LATE_HANGS_UP);
    all_heard(&desk, listeners, &expected);
}

#[test]
fn the_streams_of_one_token_are_bounded_and_others_have_their_own() {
    let desk = Desk::new();
    let url = format!("http://{}/api/v1/events?after=latest", desk.at);
    let open = |bearer: String| {
        let url = url.clone();
        desk.runtime.block_on(async move {
            let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
            let request = hyper::Request::get(url).header("authorization", bearer);
            client.request(request.body(Full::new(Bytes::new())).unwrap()).await.unwrap()
        })
    };
    let mut streams: Vec<_> = (0..STREAMS_PER_TOKEN_MAX).map(|_| open(desk.bearer())).collect();
    assert!(streams.iter().all(|stream| stream.status() == 200));
    assert_eq!(open(desk.bearer()).status(), 429);
    assert_eq!(open(format!("Bearer {}", desk.reader)).status(), 200);
    desk.get("/plans").ok();
    streams.pop();
    // The server notices the end of a connection a moment later.
    while open(desk.bearer()).status() == 429 {
        std::thread::yield_now();
    }
}

/// The data of the first frame with this event name. Says over `ready` when it is connected.
async fn first_frame(url: String, bearer: String, name: &str, ready: oneshot::Sender<()>) -> Value {
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let request = hyper::Request::get(url).header("authorization", &bearer);
    let response = client.request(request.body(Full::new(Bytes::new())).unwrap()).await.unwrap();
    let (mut body, mut text, mut ready) = (response.into_body(), String::new(), Some(ready));
    while let Some(frame) = body.frame().await {
        text.push_str(std::str::from_utf8(&frame.unwrap().into_data().unwrap()).unwrap());
        ready.take().map(|ready| ready.send(()));
        while let Some((event, rest)) = text.split_once("\n\n") {
            let data = event.strip_prefix(&format!("event: {name}\ndata: ")).map(str::to_owned);
            text = rest.to_owned();
            if let Some(data) = data {
                return serde_json::from_str(&data).unwrap();
            }
        }
    }
    panic!("the stream ended")
}

#[test]
fn progress_is_sent_live_without_a_position_and_stands_in_the_plan() {
    let desk = Desk::new();
    desk.plan("p", &["a", "b"]);
    desk.post("/plans/p/actions/start", &json!({})).ok();
    desk.post("/plans/p/tasks/a/actions/claim", &json!({})).ok();
    let before = desk.get("/plans/p").ok()["version"].clone();
    let (ready, is_ready) = oneshot::channel();
    let url = format!("http://{}/api/v1/events?plan=p&kind=task_progressed", desk.at);
    let heard = desk.runtime.spawn(first_frame(url, desk.bearer(), "progress", ready));
    desk.runtime.block_on(is_ready).unwrap();
    desk.post("/plans/p/tasks/a/actions/progress", &json!({ "progress": "half" })).ok();
    let heard = desk.runtime.block_on(async { tokio::time::timeout(BOUND, heard).await.unwrap().unwrap() });
    assert_eq!(
        (&heard["plan"], &heard["task"], &heard["progress"]),
        (&json!("p"), &json!("a"), &json!("half"))
    );
    let plan = desk.get("/plans/p").ok();
    assert_eq!((&plan["version"], &plan["running"][0]["progress"]), (&before, &json!("half")));
    assert_eq!(desk.get("/plans/p/tasks/a").ok()["state"]["progress"], "half");
    assert_eq!(desk.get("/plans/p/tasks").ok()["tasks"][0]["progress"], "half");
    desk.post("/plans/p/tasks/a/actions/done", &json!({})).ok();
    assert_eq!(desk.get("/plans/p/tasks/a").ok()["state"].get("progress"), None);
}
