//! A call that waits says so, and streams over HTTP begin as the client's protocol has it.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use serde_json::json;
use tokio::sync::Notify;
use tower_service::Service;
use waypost_mcp::{Server, http_service};

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

/// Returns the first event of the stream that answers `initialize`.
async fn first_event(version: &str) -> String {
    let world = World::new();
    let mut service = http_service(&Server::new(options(&world, Some("planner"))), 1 << 20);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    } });
    let asked = Request::post("http://localhost/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(Full::new(Bytes::from(hello.to_string())))
        .unwrap();
    let mut body = service.call(asked).await.unwrap().into_body();
    let mut stream = String::new();
    while !stream.contains("\n\n") {
        let frame = body.frame().await.expect("an event").unwrap();
        stream.push_str(&String::from_utf8_lossy(frame.data_ref().unwrap()));
    }
    stream.split("\n\n").next().unwrap().to_owned()
}

#[test]
fn only_clients_that_know_it_get_an_empty_first_event() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (version, is_empty) in
        [("2024-11-05", false), ("2025-03-26", false), ("2025-06-18", false), ("2025-11-25", true)]
    {
        let event = runtime.block_on(async {
            tokio::time::timeout(BOUND, first_event(version)).await.expect("an event in time")
        });
        assert_eq!(!event.contains("\"jsonrpc\""), is_empty, "{version}: {event}");
    }
}
