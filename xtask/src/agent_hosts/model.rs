//! A scripted model on loopback: Anthropic's Messages, OpenAI's Responses and Chat Completions and Gemini's
//! generateContent, as far as the hosts use them. Records the offered tools and its own steps.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::script::{Made, Move, Script, TOOLS};

/// A part of our tools' names at every host that gives them a prefix.
const SERVER: &str = "waypost";
/// Fields by which a reply of ours is known: a task's inputs are objects, too.
const REPLY_FIELDS: [&str; 4] = ["id", "plan", "task", "phase"];
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
    /// The requests that offered tools, as text.
    pub(crate) requests: Vec<String>,
    /// Requests that nothing here answers.
    pub(crate) unknown: Vec<String>,
}

/// A running model.
pub(crate) struct Model {
    /// The address that it listens on.
    pub(crate) address: SocketAddr,
    record: Arc<Mutex<Record>>,
}

/// A request, in the terms of all APIs.
#[derive(Default)]
struct Request {
    /// Every offered tool with its definition.
    tools: Vec<(String, Value)>,
    /// The calls so far, by the names that the host uses.
    made: Vec<Made>,
}

impl Model {
    /// Starts a model on a free port. It ends with the process.
    pub(crate) fn start(script: Script) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot bind a loopback port")?;
        let address = listener.local_addr()?;
        let record = Arc::new(Mutex::new(Record::default()));
        let kept = Arc::clone(&record);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let record = Arc::clone(&kept);
                // A host may close the connection early.
                thread::spawn(move || answer(&stream, &record, script).unwrap_or_default());
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
fn answer(stream: &TcpStream, record: &Mutex<Record>, script: Script) -> io::Result<()> {
    let (method, path, body) = read(stream)?;
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let wants_stream = asked["stream"] == true;
    let decide = |read: fn(&Value) -> Request| decide(record, script, read(&asked), &body);
    let reply = match (method.as_str(), path) {
        ("POST", "/v1/messages") => messages(&asked, decide(read_messages), wants_stream),
        ("POST", "/v1/responses") => responses(decide(read_responses), wants_stream),
        ("POST", "/v1/chat/completions") => completions(decide(read_completions), wants_stream),
        ("POST", path) if path.ends_with(":streamGenerateContent") => {
            events(vec![generated(decide(read_contents))])
        }
        ("POST", path) if path.ends_with(":generateContent") => whole(&generated(decide(read_contents))),
        ("GET", "/v1/models") => {
            whole(&json!({ "object": "list", "data": [{ "id": "scripted", "object": "model" }] }))
        }
        (_, _) => {
            let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
            record.unknown.push(format!("{method} {path}"));
            "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}".to_owned()
        }
    };
    (&mut &*stream).write_all(reply.as_bytes())
}

/// A reply in one piece.
fn whole(value: &Value) -> String {
    let text = value.to_string();
    let length = text.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}"
    )
}

/// A streamed reply.
fn events(events: Vec<Value>) -> String {
    let mut text =
        String::from("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n");
    for event in events {
        if let Some(name) = event["type"].as_str() {
            text.push_str(&format!("event: {name}\n"));
        }
        text.push_str(&format!("data: {event}\n\n"));
    }
    text
}

fn read(stream: &TcpStream) -> io::Result<(String, String, Vec<u8>)> {
    let mut reader = BufReader::new(stream.take(REQUEST_BYTES_MAX));
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (mut length, mut is_chunked) = (0, false);
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
        is_chunked = is_chunked
            || (name.eq_ignore_ascii_case("transfer-encoding")
                && value.trim().eq_ignore_ascii_case("chunked"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    while is_chunked {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let mut chunk = vec![0; size + 2];
        reader.read_exact(&mut chunk)?;
        body.extend_from_slice(&chunk[..size]);
        is_chunked = size > 0;
    }
    Ok((method, path, body))
}

/// Our tool that a host calls by this name.
fn ours(name: &str) -> Option<&'static str> {
    TOOLS.into_iter().find(|tool| {
        name.strip_suffix(tool).is_some_and(|prefix| prefix.is_empty() || prefix.contains(SERVER))
    })
}

/// Records the request, and decides the next step: a call by the name that the host uses.
fn decide(record: &Mutex<Record>, script: Script, asked: Request, body: &[u8]) -> (usize, Turn) {
    let number = asked.made.len();
    // Hosts also request titles and the like, without tools.
    if asked.tools.is_empty() {
        return (number, Turn::Say("A title".to_owned()));
    }
    let body = String::from_utf8_lossy(body).into_owned();
    let own = |made: &Made| Some(Made { tool: ours(&made.tool)?.to_owned(), answer: made.answer.clone() });
    let made: Vec<Made> = asked.made.iter().filter_map(own).collect();
    let tools: Vec<(String, Value)> =
        asked.tools.iter().filter_map(|(name, tool)| Some((ours(name)?.to_owned(), tool.clone()))).collect();
    let names: Vec<String> = tools.iter().map(|(name, _)| name.clone()).collect();
    let step = script.next(&names, &made, &body);
    let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
    record.requests.push(body);
    record.tools = tools;
    record.made = made;
    let turn = match step {
        Move::Say(words) => {
            record.said.clone_from(&words);
            Turn::Say(words)
        }
        Move::Call(tool, arguments) => {
            let name = asked.tools.into_iter().map(|(name, _)| name).find(|name| ours(name) == Some(tool));
            Turn::Call(name.unwrap_or_else(|| tool.to_owned()), arguments)
        }
    };
    (number, turn)
}

/// A step in the host's terms.
enum Turn {
    Call(String, Value),
    Say(String),
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
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
        let mut values = serde_json::Deserializer::from_str(from).into_iter::<Value>();
        let value = values.next()?.ok()?;
        let object = value.get("structuredContent").unwrap_or(&value);
        match object["text"].as_str().filter(|_| object["type"] == "text") {
            Some(text) => Some(text.to_owned()),
            None => REPLY_FIELDS.iter().any(|name| object.get(name).is_some()).then(|| object.to_string()),
        }
    };
    blocks.iter().find_map(object).unwrap_or_else(|| blocks.join("\n"))
}

/// Anthropic's Messages API.
fn read_messages(asked: &Value) -> Request {
    let tools = list(asked, "tools").iter().map(|tool| (text(&tool["name"]), tool.clone())).collect();
    let blocks: Vec<&Value> =
        list(asked, "messages").iter().flat_map(|message| list(message, "content")).collect();
    let called = |id: &Value| {
        blocks
            .iter()
            .find(|block| block["type"] == "tool_use" && block["id"] == *id)
            .map(|call| &call["name"])
    };
    let made = |block: &&Value| {
        Some(Made { tool: text(called(&block["tool_use_id"])?), answer: text_of(&block["content"]) })
    };
    let results = blocks.iter().copied().filter(|block| block["type"] == "tool_result");
    Request { tools, made: results.filter_map(|block| made(&block)).collect() }
}

fn messages(asked: &Value, (number, turn): (usize, Turn), wants_stream: bool) -> String {
    let (block, delta, stop) = match turn {
        Turn::Call(tool, arguments) => (
            json!({ "type": "tool_use", "id": format!("toolu_{number}"), "name": tool, "input": arguments }),
            json!({ "type": "input_json_delta", "partial_json": arguments.to_string() }),
            "tool_use",
        ),
        Turn::Say(words) => (
            json!({ "type": "text", "text": words }),
            json!({ "type": "text_delta", "text": words }),
            "end_turn",
        ),
    };
    let mut message = json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": asked["model"],
        "content": [block], "stop_reason": stop, "stop_sequence": null,
        "usage": { "input_tokens": 1, "output_tokens": 1 },
    });
    if !wants_stream {
        return whole(&message);
    }
    let mut start = block;
    for (name, empty) in [("input", json!({})), ("text", json!(""))] {
        if start.get(name).is_some() {
            start[name] = empty;
        }
    }
    (message["content"], message["stop_reason"]) = (json!([]), Value::Null);
    events(vec![
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": start }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({
            "type": "message_delta", "delta": { "stop_reason": stop, "stop_sequence": null },
            "usage": { "output_tokens": 1 },
        }),
        json!({ "type": "message_stop" }),
    ])
}

/// OpenAI's Responses API, where the tools of a server are one namespace.
fn read_responses(asked: &Value) -> Request {
    let mut tools = Vec::new();
    for tool in list(asked, "tools") {
        if tool["type"] == "namespace" {
            let space = text(&tool["name"]);
            let own = list(tool, "tools").iter();
            tools.extend(own.map(|tool| (format!("{space}/{}", text(&tool["name"])), tool.clone())));
        } else {
            tools.push((text(&tool["name"]), tool.clone()));
        }
    }
    let items = list(asked, "input");
    let called = |id: &Value| {
        let call = items.iter().find(|item| item["type"] == "function_call" && item["call_id"] == *id)?;
        Some(match call["namespace"].as_str() {
            Some(space) => format!("{space}/{}", text(&call["name"])),
            None => text(&call["name"]),
        })
    };
    let results = items.iter().filter(|item| item["type"] == "function_call_output");
    let made = results
        .filter_map(|item| Some(Made { tool: called(&item["call_id"])?, answer: text_of(&item["output"]) }))
        .collect();
    Request { tools, made }
}

fn responses((number, turn): (usize, Turn), wants_stream: bool) -> String {
    let item = match turn {
        Turn::Call(tool, arguments) => {
            let (space, name) = tool.split_once('/').unwrap_or(("", &tool));
            let mut call = json!({
                "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
                "name": name, "arguments": arguments.to_string(), "status": "completed",
            });
            if !space.is_empty() {
                call["namespace"] = space.into();
            }
            call
        }
        Turn::Say(words) => json!({
            "type": "message", "id": format!("msg_{number}"), "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": words, "annotations": [] }],
        }),
    };
    let usage = json!({
        "input_tokens": 1, "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": 1, "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 2,
    });
    if !wants_stream {
        return whole(&json!({
            "id": format!("resp_{number}"), "object": "response", "created_at": 1, "status": "completed",
            "model": "scripted", "output": [item], "usage": usage, "parallel_tool_calls": true,
            "tool_choice": "auto", "tools": [], "metadata": {}, "error": null, "incomplete_details": null,
        }));
    }
    events(vec![
        json!({ "type": "response.created", "response": { "id": "resp" } }),
        json!({ "type": "response.output_item.done", "item": item }),
        json!({ "type": "response.completed", "response": { "id": "resp", "usage": usage } }),
    ])
}

/// OpenAI's Chat Completions API.
fn read_completions(asked: &Value) -> Request {
    let tools =
        list(asked, "tools").iter().map(|tool| (text(&tool["function"]["name"]), tool.clone())).collect();
    let messages = list(asked, "messages");
    let called = |id: &Value| {
        let calls = messages.iter().flat_map(|message| list(message, "tool_calls"));
        calls.into_iter().find(|call| call["id"] == *id).map(|call| text(&call["function"]["name"]))
    };
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let made = results
        .filter_map(|message| {
            let answer = text_of(&message["content"]);
            Some(Made { tool: called(&message["tool_call_id"])?, answer })
        })
        .collect();
    Request { tools, made }
}

fn completions((number, turn): (usize, Turn), wants_stream: bool) -> String {
    let (message, stop) = match turn {
        Turn::Call(tool, arguments) => {
            let function = json!({ "name": tool, "arguments": arguments.to_string() });
            let call = json!({ "index": 0, "id": format!("call_{number}"), "type": "function", "function": function });
            (json!({ "role": "assistant", "content": null, "tool_calls": [call] }), "tool_calls")
        }
        Turn::Say(words) => (json!({ "role": "assistant", "content": words }), "stop"),
    };
    let reply = |object: &str, choices: Value| {
        json!({
            "id": format!("chatcmpl_{number}"), "object": object, "created": 1, "model": "scripted", "choices": choices,
        })
    };
    let usage = json!({ "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 });
    if !wants_stream {
        let choice = json!({ "index": 0, "message": message, "finish_reason": stop });
        let mut reply = reply("chat.completion", json!([choice]));
        reply["usage"] = usage;
        return whole(&reply);
    }
    let chunk = |delta: Value, stop: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": stop });
        reply("chat.completion.chunk", json!([choice]))
    };
    // Some hosts take a chunk with the usage for the last one, and nothing else of it.
    let mut last = reply("chat.completion.chunk", json!([]));
    last["usage"] = usage;
    events(vec![chunk(message, Value::Null), chunk(json!({}), stop.into()), last]) + "data: [DONE]\n\n"
}

/// Gemini's generateContent.
fn read_contents(asked: &Value) -> Request {
    let declared = list(asked, "tools").iter().flat_map(|tool| list(tool, "functionDeclarations"));
    let tools = declared.map(|tool| (text(&tool["name"]), tool.clone())).collect();
    let parts = list(asked, "contents").iter().flat_map(|content| list(content, "parts"));
    let made = parts
        .filter_map(|part| part.get("functionResponse"))
        .map(|reply| {
            let response = &reply["response"];
            let answer = response.get("output").map_or_else(|| response.to_string(), text_of);
            Made { tool: text(&reply["name"]), answer }
        })
        .collect();
    Request { tools, made }
}

fn generated((_, turn): (usize, Turn)) -> Value {
    let part = match turn {
        Turn::Call(tool, arguments) => json!({ "functionCall": { "name": tool, "args": arguments } }),
        Turn::Say(words) => json!({ "text": words }),
    };
    json!({
        "candidates": [{ "content": { "role": "model", "parts": [part] }, "finishReason": "STOP", "index": 0 }],
        "usageMetadata": { "promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_found_behind_the_words_of_a_host() {
        let check = |content: Value, expected: &str| assert_eq!(text_of(&content), expected);
        check(json!("{\"plan\":\"k3m\"}"), "{\"plan\":\"k3m\"}");
        check(json!("Wall time: 0.1 seconds\nOutput:\n{\"task\":null}"), "{\"task\":null}");
        check(json!([{ "text": "Output:" }, { "text": "{\"id\":1}" }]), "{\"id\":1}");
        check(json!("{\"id\":1}\n\ntext behind it"), "{\"id\":1}");
        check(json!("{\"content\":[],\"structuredContent\":{\"id\":1}}"), "{\"id\":1}");
        check(json!("{\"type\":\"text\",\"text\":\"plan k3m\"}"), "plan k3m");
        let input = "dry (plan k3m, attempt 1)\ninputs: {\"by\":\"script\"}";
        check(json!(input), input);
        check(json!([{ "text": "refused {so" }, { "text": "it is" }]), "refused {so\nit is");
    }

    #[test]
    fn our_tools_are_known_by_the_names_of_every_host() {
        for name in [
            "mcp__waypost__plan_create",
            "waypost_plan_create",
            "waypost-plan_create",
            "mcp__waypost/plan_create",
            "plan_create",
        ] {
            assert_eq!(ours(name), Some("plan_create"), "{name}");
        }
        assert_eq!(ours("calendar_events"), None);
    }
}
