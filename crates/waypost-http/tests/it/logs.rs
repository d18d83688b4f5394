//! The log of an attempt, read as it is written.

use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use waypost_core::{Actor, PlanId, TaskId};

use super::api::{BOUND, Desk};
use super::tokens_in;

/// What a stream says, event by event.
struct Stream {
    body: Incoming,
    text: String,
}

/// One event of a log.
#[derive(Debug, Default, PartialEq)]
struct Said {
    id: Option<String>,
    kind: String,
    data: Value,
}

impl Stream {
    async fn open(desk: &Desk, bearer: &str, last: Option<&str>) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
        let url = format!("http://{}/api/v1/plans/p/tasks/a/log?follow=true", desk.at);
        let mut request = hyper::Request::get(url).header("authorization", bearer);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = client.request(request.body(Full::new(Bytes::new())).unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), text: String::new() }
    }

    /// The next event; nothing when the stream has ended.
    async fn next(&mut self) -> Option<Said> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                let said = Said {
                    id: field("id: ").map(str::to_owned),
                    kind: field("event: ").unwrap_or_default().to_owned(),
                    data: field("data: ").map_or(Value::Null, |data| serde_json::from_str(data).unwrap()),
                };
                self.text = rest.to_owned();
                if !said.kind.is_empty() {
                    return Some(said);
                }
                continue;
            }
            let frame = tokio::time::timeout(BOUND, self.body.frame()).await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&frame.unwrap().into_data().unwrap()).unwrap());
        }
    }
}

/// A desk with a task that somebody works on, and the file that its attempt writes into.
fn at_work() -> (Desk, std::path::PathBuf) {
    let desk = Desk::new();
    desk.plan("p", &["a"]);
    desk.post("/plans/p/actions/start", &json!({})).ok();
    desk.post("/plans/p/tasks/a/actions/claim", &json!({})).ok();
    let (plan, task) = (PlanId::new("p").unwrap(), TaskId::new("a").unwrap());
    let path = waypost_store::log_path(&desk.folder.path().join("logs"), &plan, &task, 1);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    (desk, path)
}

fn log(id: &str, text: &str) -> Option<Said> {
    Some(Said { id: Some(id.to_owned()), kind: "log".to_owned(), data: json!(text) })
}

#[test]
fn a_log_is_told_as_it_is_written_and_goes_on_where_it_was_cut_off() {
    let (desk, path) = at_work();
    std::fs::write(&path, "first\n").unwrap();
    desk.runtime.block_on(async {
        let mut stream = Stream::open(&desk, &desk.bearer(), None).await;
        assert_eq!(stream.next().await, log("6", "first\n"));
        std::fs::write(&path, "first\nsecond\n").unwrap();
        assert_eq!(stream.next().await, log("13", "second\n"));
        let mut again = Stream::open(&desk, &desk.bearer(), Some("6")).await;
        assert_eq!(again.next().await, log("13", "second\n"));
    });
    desk.post("/plans/p/tasks/a/actions/done", &json!({})).ok();
    desk.runtime.block_on(async {
        let mut late = Stream::open(&desk, &desk.bearer(), Some("13")).await;
        assert_eq!(late.next().await.map(|said| said.kind), Some("end".to_owned()));
        assert_eq!(late.next().await, None);
    });
}

#[test]
fn whoever_follows_a_log_is_out_when_the_token_is_revoked() {
    let (desk, path) = at_work();
    std::fs::write(&path, "first\n").unwrap();
    let mut stream = desk.runtime.block_on(async {
        let mut stream = Stream::open(&desk, &desk.bearer(), None).await;
        assert_eq!(stream.next().await, log("6", "first\n"));
        stream
    });
    let tokens = tokens_in(desk.folder.path());
    let own = tokens.list().unwrap().into_iter().find(|token| token.actor() == Actor::person("ada")).unwrap();
    tokens.revoke(&own.id, &Actor::person("ada")).unwrap();
    assert_eq!(desk.runtime.block_on(stream.next()), None, "it ends although the task runs on");
    desk.get("/plans/p/tasks/a/log?follow=true").problem(401);
}
