//! A scripted model on loopback: Anthropic's Messages API and OpenAI's Responses API, streamed, as far as Claude Code
//! and Codex use them. Records the offered tools and its own steps.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::script::{self, Made, Move};

/// The prefix of our tools' names at a host.
const PREFIX: &str = "mcp__waypost";
/// Maximum size of a request.
const REQUEST_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The requests to a model, and its steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    /// Our tools, as the host defined them for the model.
    pub(crate) tools: Vec<(String, Value)>,
    /// The calls that it made, as the host reported them back.
    pub(crate) made: Vec<Made>,
    /// Its last message.
    pub(crate) said: String,
    /// The number of requests.
    pub(crate) requests: usize,
}

/// A running model.
pub(crate) struct Model {
    /// The address that it listens on.
    pub(crate) address: SocketAddr,
    record: Arc<Mutex<Record>>,
}

impl Model {
    /// Starts a model on a free port. It ends with the process.
    pub(crate) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot bind a loopback port")?;
        let address = listener.local_addr()?;
        let record = Arc::new(Mutex::new(Record::default()));
        let kept = Arc::clone(&record);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let record = Arc::clone(&kept);
                // A host may close the connection early.
                thread::spawn(move || answer(&stream, &record).unwrap_or_default());
            }
        });
        Ok(Self { address, record })
    }

    /// Returns the record so far.
    pub(crate) fn record(&self) -> Record {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Answers one request. Every connection carries only one.
fn answer(stream: &TcpStream, record: &Mutex<Record>) -> io::Result<()> {
    let (method, path, body) = read(stream)?;
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let events = match (method.as_str(), path) {
        ("POST", "/v1/messages") => messages(&asked, record),
        ("POST", "/v1/responses") => responses(&asked, record),
        (_, _) => {
            let refusal = "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            return write!(&mut &*stream, "{refusal}");
        }
    };
    let mut text =
        String::from("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n");
    for event in events {
        let name = event["type"].as_str().unwrap_or_default();
        text.push_str(&format!("event: {name}\ndata: {event}\n\n"));
    }
    (&mut &*stream).write_all(text.as_bytes())
}

fn read(stream: &TcpStream) -> io::Result<(String, String, Vec<u8>)> {
    let mut reader = BufReader::new(stream.take(REQUEST_BYTES_MAX));
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((method, path, body))
}

/// Records the request, and decides the next step.
fn decide(record: &Mutex<Record>, tools: Vec<(String, Value)>, made: Vec<Made>) -> Move {
    let names: Vec<String> = tools.iter().map(|(name, _)| name.clone()).collect();
    let step = script::next(&names, &made);
    let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
    record.requests += 1;
    record.tools = tools;
    record.made = made;
    if let Move::Say(words) = &step {
        record.said.clone_from(words);
    }
    step
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the text of a reply, which may come in several blocks and after text of the host: the JSON object in it, or
/// else all of it.
fn text_of(content: &Value) -> String {
    let blocks: Vec<&str> = match content {
        Value::String(text) => vec![text],
        content => {
            content.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect()
        }
    };
    let object = |text: &&str| {
        let from = &text[text.find('{')?..];
        serde_json::from_str::<Value>(from).ok().map(|_| from.to_owned())
    };
    blocks.iter().find_map(object).unwrap_or_else(|| blocks.join("\n"))
}

/// Anthropic's Messages API.
fn messages(asked: &Value, record: &Mutex<Record>) -> Vec<Value> {
    let ours = |name: &str| name.strip_prefix(PREFIX)?.strip_prefix("__").map(str::to_owned);
    let tools: Vec<(String, Value)> = list(asked, "tools")
        .iter()
        .filter_map(|tool| Some((ours(tool["name"].as_str()?)?, tool.clone())))
        .collect();
    let blocks: Vec<&Value> =
        list(asked, "messages").iter().flat_map(|message| list(message, "content")).collect();
    let called = |id: &Value| {
        let call = blocks.iter().find(|block| block["type"] == "tool_use" && block["id"] == *id)?;
        ours(call["name"].as_str()?)
    };
    let made: Vec<Made> = blocks
        .iter()
        .filter(|block| block["type"] == "tool_result")
        .filter_map(|block| {
            Some(Made { tool: called(&block["tool_use_id"])?, answer: text_of(&block["content"]) })
        })
        .collect();
    let number = made.len();
    // Hosts also request titles and the like, without tools.
    let step = if tools.is_empty() && list(asked, "tools").is_empty() {
        Move::Say("A title".to_owned())
    } else {
        decide(record, tools, made)
    };
    let (block, delta, stop) = match step {
        Move::Call(tool, arguments) => (
            json!({ "type": "tool_use", "id": format!("toolu_{number}"), "name": format!("{PREFIX}__{tool}"), "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": arguments.to_string() }),
            "tool_use",
        ),
        Move::Say(words) => (
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": words }),
            "end_turn",
        ),
    };
    let message = json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": asked["model"], "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 1, "output_tokens": 1 },
    });
    vec![
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({
            "type": "message_delta", "delta": { "stop_reason": stop, "stop_sequence": null },
            "usage": { "output_tokens": 1 },
        }),
        json!({ "type": "message_stop" }),
    ]
}

/// OpenAI's Responses API, where the tools of a server are one namespace.
fn responses(asked: &Value, record: &Mutex<Record>) -> Vec<Value> {
    let namespace =
        list(asked, "tools").iter().find(|tool| tool["type"] == "namespace" && tool["name"] == PREFIX);
    let tools: Vec<(String, Value)> = namespace
        .map_or(&[][..], |namespace| list(namespace, "tools"))
        .iter()
        .filter_map(|tool| Some((tool["name"].as_str()?.to_owned(), tool.clone())))
        .collect();
    let items = list(asked, "input");
    let called = |id: &Value| {
        let call = items.iter().find(|item| item["type"] == "function_call" && item["call_id"] == *id)?;
        call["name"].as_str().map(str::to_owned)
    };
    let made: Vec<Made> = items
        .iter()
        .filter(|item| item["type"] == "function_call_output")
        .filter_map(|item| Some(Made { tool: called(&item["call_id"])?, answer: text_of(&item["output"]) }))
        .collect();
    let number = made.len();
    let item = match decide(record, tools, made) {
        Move::Call(tool, arguments) => json!({
            "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
            "namespace": PREFIX, "name": tool, "arguments": arguments.to_string(),
        }),
        Move::Say(words) => json!({
            "type": "message", "id": format!("msg_{number}"), "role": "assistant",
            "content": [{ "type": "output_text", "text": words }],
        }),
    };
    let usage = json!({ "input_tokens": 1, "output_tokens": 1, "total_tokens": 2 });
    vec![
        json!({ "type": "response.created", "response": { "id": "resp" } }),
        json!({ "type": "response.output_item.done", "item": item }),
        json!({ "type": "response.completed", "response": { "id": "resp", "usage": usage } }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_found_behind_the_words_of_a_host() {
        let check = |content: Value, expected: &str| assert_eq!(text_of(&content), expected);
        check(json!("{\"plan\":\"k3m\"}"), "{\"plan\":\"k3m\"}");
        check(json!("Wall time: 0.1 seconds\nOutput:\n{\"task\":null}"), "{\"task\":null}");
        check(json!([{ "text": "Output:" }, { "text": "{\"a\":1}" }]), "{\"a\":1}");
        check(json!([{ "text": "refused {so" }, { "text": "it is" }]), "refused {so\nit is");
    }
}
