//! A call that waits says so, and streams over HTTP begin as the client's protocol has it.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower_service::Service;
use waypost_mcp::{HttpService, Server, http_service};

use crate::line::{Era, Line, options, plan, request, text};
use crate::session::World;

/// Reached only by what does not happen.
const BOUND: Duration = Duration::from_secs(120);

/// A client that notes the progress of its calls.
#[derive(Clone, Default)]
struct Patient {
    heard: Arc<Notify>,
}

impl ClientHandler for Patient {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("patient", "1"))
    }

    async fn on_progress(&self, note: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        assert!(note.progress >= 1.0);
        self.heard.notify_one();
    }
}

#[test]
fn a_call_that_waits_for_a_person_or_an_event_reports_progress() {
    let world = World::new();
    let id = plan(
        &world,
        json!({ "title": "T", "owner": "planner", "tasks": [{ "id": "a", "work": { "executor": "noop" } }] }),
    );
    for era in [Era::Old, Era::New] {
        let patient = Patient::default();
        let line = Line::new(Server::new(options(&world, Some("planner"))), patient.clone(), era);
        for (tool, arguments) in
            [("plan_start", json!({ "plan": id, "wait": 600 })), ("events", json!({ "wait": 600 }))]
        {
            line.runtime.block_on(async {
                let call = line.client().call_tool(request(tool, arguments));
                let heard = tokio::time::timeout(BOUND, patient.heard.notified());
                tokio::select! {
                    answer = call => panic!("{tool}: it did not wait: {}", text(&answer.unwrap())),
                    heard = heard => heard.expect("a notification"),
                }
            });
        }
    }
}

/// Posts a message of a session and returns the first event of the stream that answers it, if one does, and the session.
async fn first_event(
    service: &mut HttpService,
    message: &Value,
    session: Option<(&str, &str)>,
) -> (String, String) {
    let mut asked = Request::post("http://localhost/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if let Some((session, version)) = session {
        asked = asked.header("mcp-session-id", session).header("mcp-protocol-version", version);
    }
    let answer =
        service.call(asked.body(Full::new(Bytes::from(message.to_string()))).unwrap()).await.unwrap();
    let session = answer.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
    let mut body = answer.into_body();
    let mut stream = String::new();
    while !stream.contains("\n\n") {
        let Some(frame) = body.frame().await else { break };
        stream.push_str(&String::from_utf8_lossy(frame.unwrap().data_ref().unwrap()));
    }
    (stream.split("\n\n").next().unwrap().to_owned(), session.unwrap_or_default())
}

/// Returns the first events of the streams that answer `initialize` and the requests after it.
async fn first_events(version: &str) -> Vec<String> {
    let world = World::new();
    let mut service = http_service(&Server::new(options(&world, Some("planner"))), 1 << 20);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    } });
    let (event, id) = first_event(&mut service, &hello, None).await;
    let (mut events, session) = (vec![event], Some((id.as_str(), version)));
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    first_event(&mut service, &ready, session).await;
    for (method, params) in
        [("tools/list", json!({})), ("tools/call", json!({ "name": "plan_list", "arguments": {} }))]
    {
        let asked = json!({ "jsonrpc": "2.0", "id": 2, "method": method, "params": params });
        events.push(first_event(&mut service, &asked, session).await.0);
    }
    events
}

#[test]
fn only_clients_that_know_it_get_an_empty_first_event() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (version, is_empty) in
        [("2024-11-05", false), ("2025-03-26", false), ("2025-06-18", false), ("2025-11-25", true)]
    {
        let events = runtime.block_on(async {
            tokio::time::timeout(BOUND, first_events(version)).await.expect("events in time")
        });
        for event in events {
            assert_eq!(!event.contains("\"jsonrpc\""), is_empty, "{version}: {event}");
        }
    }
}
