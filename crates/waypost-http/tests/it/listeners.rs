//! Many listen to what happens: each hears everything once, in its order, also after it was cut off.

use axum::body::Bytes;
use futures_util::future::join_all;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use waypost_core::{Actor, Command, Outcome, PlanId, TaskId};
use waypost_store::{Cursor, EVENTS_MAX, EventFilter, WriteRequest};

use super::api::{BOUND, Desk};

const LISTENERS: usize = 200;
const TASKS: usize = 100;
/// Every so many events some of the listeners hang up and come again.
const HANGS_UP: usize = 40;

/// What a listener hears up to the event that ends the plan. One that hangs up says where it was when it comes again.
async fn hear(url: String, bearer: String, begin: String, hangs_up: bool) -> Vec<String> {
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
                if hangs_up && here == HANGS_UP {
                    break 'connection;
                }
            }
        }
    }
}

#[test]
fn each_of_many_listeners_hears_every_event_once_and_in_order() {
    let desk = Desk::new();
    let names: Vec<String> = (0..TASKS).map(|number| format!("t{number}")).collect();
    desk.plan("p", &names.iter().map(String::as_str).collect::<Vec<_>>());
    let begin = Cursor::after(desk.plans.latest().unwrap());
    let url = format!("http://{}/api/v1/events", desk.at);
    let listeners = (0..LISTENERS).map(|number| {
        desk.runtime.spawn(hear(url.clone(), desk.bearer(), begin.to_string(), number % 3 == 0))
    });
    let listeners: Vec<_> = listeners.collect();
    desk.post("/plans/p/actions/start", &json!({})).ok();
    for name in &names {
        let task = TaskId::new(name.as_str()).unwrap();
        let outcome = Outcome::Done { result: None, output: None, evidence: None };
        let finish = Command::FinishTask { task, attempt: None, outcome, retry: None };
        let (plan, by) = (PlanId::new("p").unwrap(), Actor::person("ada"));
        let request =
            WriteRequest { plan, by, commands: vec![finish], known_version: None, lease_seconds: None };
        desk.plans.write(request).unwrap();
    }
    let mut expected = Vec::new();
    let mut cursor = begin;
    loop {
        let page = desk.plans.events(cursor, &EventFilter::default(), EVENTS_MAX).unwrap();
        cursor = page.cursor;
        for event in page.events {
            expected.push((format!("{}.{}", event.sequence, event.index), event.kind));
        }
        if !page.more {
            break;
        }
    }
    let end = expected.iter().position(|(_, kind)| *kind == "plan_completed").unwrap();
    let expected: Vec<String> = expected.drain(..=end).map(|(place, _)| place).collect();
    assert!(expected.len() >= TASKS, "{}", expected.len());
    let all = async { tokio::time::timeout(BOUND, join_all(listeners)).await.unwrap() };
    for heard in desk.runtime.block_on(all) {
        assert_eq!(heard.unwrap(), expected);
    }
}
