//! What a host gets that sends something else than messages, line by line.

use std::time::Duration;

use rmcp::ServiceExt;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use waypost_mcp::{LINE_BYTES_MAX, Server, StdioTransport};

use crate::line::options;
use crate::session::World;

/// Long enough for everything that has to happen, and reached only by what does not.
const BOUND: Duration = Duration::from_secs(60);

fn hello() -> Vec<u8> {
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params }).to_string().into()
}

/// Sends a line, then asks whether the server still lives: what it answered, as code, id and words, once there are so many.
fn answers_to(line: &[u8], expected: usize) -> Vec<(i64, Value, String)> {
    let world = World::new();
    let server = Server::new(options(&world, Some("planner")));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let talk = async {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (read, write) = tokio::io::split(far);
        tokio::spawn(
            async move { server.serve(StdioTransport::new(read, write)).await.unwrap().waiting().await },
        );
        let (read, mut write) = tokio::io::split(near);
        let ping = json!({ "jsonrpc": "2.0", "id": "alive", "method": "ping" }).to_string();
        let said = [hello(), line.to_vec(), ping.into()].map(|line| [&line[..], b"\n"].concat()).concat();
        tokio::spawn(async move {
            write.write_all(&said).await.unwrap();
            // Kept open: a server whose client is gone answers nothing.
            std::future::pending::<()>().await;
            drop(write);
        });
        let mut lines = BufReader::new(read).lines();
        let (mut answers, mut is_alive) = (Vec::new(), false);
        // Requests are worked on side by side: the one that came first need not be answered first.
        while !is_alive || answers.len() < expected {
            let line = lines.next_line().await.unwrap().expect("the server goes on");
            let message: Value = serde_json::from_str(&line).unwrap();
            match message["id"].as_str() {
                Some("hello") => {}
                Some("alive") => is_alive = true,
                _ => answers.push((
                    message["error"]["code"].as_i64().unwrap(),
                    message["id"].clone(),
                    message["error"]["message"].as_str().unwrap().to_owned(),
                )),
            }
        }
        answers
    };
    runtime.block_on(async { tokio::time::timeout(BOUND, talk).await.expect("an answer comes") })
}

#[track_caller]
fn check(line: &[u8], code: i64, id: &Value, words: &str) {
    let answers = answers_to(line, 1);
    let [(found, to, said)] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!((*found, to), (code, id), "{said}");
    assert!(said.contains(words), "{said}");
}

#[test]
fn a_line_that_is_no_message_is_answered_and_the_server_goes_on() {
    check(b"hello?", -32700, &Value::Null, "is not valid JSON");
    check(br#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"\ud800"}}"#, -32700, &json!(7), "JSON");
    check(br#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":1e999}}"#, -32700, &json!(7), "range");
    check(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\"}", -32700, &Value::Null, "UTF-8");
    check(b"[]", -32600, &Value::Null, "batch");
    check(br#"{"id":7,"method":"ping"}"#, -32600, &json!(7), "jsonrpc");
    let long = format!(
        r#"{{"jsonrpc":"2.0","method":"ping","params":{{"x":"{}"}},"id":7}}"#,
        "x".repeat(LINE_BYTES_MAX)
    );
    check(long.as_bytes(), -32700, &json!(7), "more than 16777216 bytes");
}

#[test]
fn parameters_that_do_not_fit_are_named() {
    let call = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#).into_bytes()
    };
    check(&call("5"), -32602, &json!(7), "params must be an object");
    check(&call("{\"name\":5}"), -32602, &json!(7), "expected name (text) and arguments (an object)");
    check(&call("{}"), -32602, &json!(7), "`name` is missing");
    check(&call(r#"{"name":"plan_list","arguments":"all"}"#), -32602, &json!(7), "arguments");
    check(br#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#, -32602, &json!(7), "none were given");
    check(br#"{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{}}"#, -32602, &json!(7), "of texts");
    check(br#"{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{}}"#, -32602, &json!(7), "uri");
    check(br#"{"jsonrpc":"2.0","id":7,"method":"plans/burn"}"#, -32601, &json!(7), "unknown method");
}

#[test]
fn what_is_only_told_is_not_answered_whenever_it_comes() {
    assert_eq!(answers_to(br#"{"jsonrpc":"2.0","method":"notifications/unheard_of","params":5}"#, 0), []);
    assert_eq!(answers_to(b"\xEF\xBB\xBF\r", 0), []);
}
