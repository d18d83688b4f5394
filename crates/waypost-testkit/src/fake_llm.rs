//! A scripted model server for tests: OpenAI's and Anthropic's protocols on one free port of this machine, with all the
//! faults of real servers. Records the requests.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};

/// Characters of an answer in each chunk of a stream.
const PIECE_CHARACTERS: usize = 7;
/// The same for an endless answer: large, so that a test reaches the size limit soon.
const ENDLESS_CHARACTERS: usize = 8_000;

/// The reply to one request.
#[derive(Clone, Debug)]
pub enum ScriptedReply {
    /// An answer with this text, in the protocol of the request, streamed if requested.
    Say(String),
    /// The same, cut off at the token limit.
    SayCut(String),
    /// An answer with this text and without a token usage.
    SayUncounted(String),
    Refuse(String),
    /// A stream of exactly these bytes, flushed after each chunk, then closed.
    Stream(Vec<Vec<u8>>),
    /// A streamed answer that closes in the middle.
    HalfClose(String),
    /// A streamed answer that stays open in the middle and sends nothing more.
    FallSilent(String),
    /// A response with this status.
    Status {
        /// Such as 429.
        status: u16,
        /// Additional headers.
        headers: Vec<(String, String)>,
        body: String,
    },
    /// The connection is accepted, and nothing is ever sent.
    Hang,
    /// Bytes that are not HTTP.
    Garbage,
    /// Well-formed HTTP with a body that is not an answer.
    Nonsense(String),
    /// An answer that never ends.
    Endless,
}

impl ScriptedReply {
    /// A response with this status and an error in the body, in the format of real servers.
    pub fn status(status: u16, kind: &str, message: &str) -> Self {
        let body = json!({ "type": "error", "error": { "type": kind, "message": message } }).to_string();
        Self::Status { status, headers: Vec::new(), body }
    }

    /// Adds a header; no effect on other replies.
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        if let Self::Status { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}

#[derive(Clone, Debug)]
pub struct Seen {
    /// Such as `POST`.
    pub method: String,
    /// The path; the full URL in a request to a proxy.
    pub path: String,
    /// With the names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

type ReplyFn = Box<dyn FnMut(&Seen) -> ScriptedReply + Send>;

struct Shared {
    director: Mutex<ReplyFn>,
    seen: Mutex<Vec<Seen>>,
    models: Mutex<Vec<String>>,
    over: AtomicBool,
}

/// A scripted model server. Dropping it ends it.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ModelServer {
    /// Sends these replies, one for each request. Further requests get a 500 with a message.
    pub fn playing(plays: impl IntoIterator<Item = ScriptedReply>) -> Self {
        let mut plays: VecDeque<ScriptedReply> = plays.into_iter().collect();
        Self::directed(move |_| {
            let out = || ScriptedReply::status(500, "script", "the script has no more answers");
            plays.pop_front().unwrap_or_else(out)
        })
    }

    /// Sends the replies that the closure returns for each request.
    pub fn directed(director: impl FnMut(&Seen) -> ScriptedReply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port of this machine");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            director: Mutex::new(Box::new(director)),
            seen: Mutex::default(),
            models: Mutex::new(vec!["scripted".to_owned()]),
            over: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if of_thread.over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&of_thread);
                // A client that hangs up is not an error.
                thread::spawn(move || drop(serve(stream, &shared)));
            }
        });
        Self { address, shared }
    }

    /// Sets the list of models.
    pub fn with_models(self, names: &[&str]) -> Self {
        *lock(&self.shared.models) = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// The address: `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The base URL for OpenAI's protocol.
    pub fn openai(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The base URL for Anthropic's protocol.
    pub fn anthropic(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all requests so far, including those for lists of models.
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.shared.seen).clone()
    }

    /// Returns the number of requests so far, without those for lists of models.
    pub fn asked(&self) -> usize {
        lock(&self.shared.seen).iter().filter(|seen| seen.method == "POST").count()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // The listener waits for a connection.
        drop(TcpStream::connect(self.address));
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let Some(seen) = read(&stream)? else { return Ok(()) };
    lock(&shared.seen).push(seen.clone());
    if seen.method == "GET" && seen.path.ends_with("/models") {
        let names = lock(&shared.models).clone();
        let list: Vec<Value> = names.iter().map(|name| json!({ "id": name, "object": "model" })).collect();
        return whole(&mut stream, 200, &[], &json!({ "object": "list", "data": list }).to_string());
    }
    let play = (lock(&shared.director))(&seen);
    perform(&mut stream, &seen, play)
}

fn read(stream: &TcpStream) -> std::io::Result<Option<Seen>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Seen { method, path, headers, body: String::from_utf8_lossy(&body).into_owned() }))
}

fn perform(stream: &mut TcpStream, seen: &Seen, play: ScriptedReply) -> std::io::Result<()> {
    match play {
        ScriptedReply::Say(text) => {
            say(stream, seen, &ReplyText { text: &text, how: How::Whole, counted: true })
        }
        ScriptedReply::SayCut(text) => {
            say(stream, seen, &ReplyText { text: &text, how: How::Cut, counted: true })
        }
        ScriptedReply::SayUncounted(text) => {
            say(stream, seen, &ReplyText { text: &text, how: How::Whole, counted: false })
        }
        ScriptedReply::Refuse(text) => {
            say(stream, seen, &ReplyText { text: &text, how: How::Refused, counted: true })
        }
        ScriptedReply::Stream(pieces) => {
            begin_stream(stream)?;
            pieces.iter().try_for_each(|piece| stream.write_all(piece).and_then(|()| stream.flush()))
        }
        ScriptedReply::HalfClose(text) => half(stream, seen, &text),
        ScriptedReply::FallSilent(text) => half(stream, seen, &text).and_then(|()| until_gone(stream)),
        ScriptedReply::Status { status, headers, body } => whole(stream, status, &headers, &body),
        ScriptedReply::Hang => until_gone(stream),
        ScriptedReply::Garbage => stream.write_all(b"\x16\x03\x01 this is no HTTP at all\r\n\r\n"),
        ScriptedReply::Nonsense(body) => whole(stream, 200, &[], &body),
        ScriptedReply::Endless => {
            begin_stream(stream)?;
            let text = "again and again ".repeat(ENDLESS_CHARACTERS / 16);
            let said = ReplyText { text: &text, how: How::Whole, counted: true };
            let events = events_of(seen, &said, ENDLESS_CHARACTERS);
            let piece: String = events.into_iter().filter(|event| event.contains("again")).collect();
            // The client hangs up.
            loop {
                stream.write_all(piece.as_bytes())?;
            }
        }
    }
}

/// Waits until the client hangs up.
fn until_gone(stream: &mut TcpStream) -> std::io::Result<()> {
    while stream.read(&mut [0; 64])? > 0 {}
    Ok(())
}

fn half(stream: &mut TcpStream, seen: &Seen, text: &str) -> std::io::Result<()> {
    begin_stream(stream)?;
    let events = events(seen, &ReplyText { text, how: How::Whole, counted: true });
    let whole = events.concat();
    stream.write_all(&whole.as_bytes()[..whole.len() / 2])?;
    stream.flush()
}

fn begin_stream(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n",
    )
}

fn whole(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(String, String)],
    body: &str,
) -> std::io::Result<()> {
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} Played\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n{more}\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.flush()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Whole,
    Cut,
    Refused,
}

struct ReplyText<'a> {
    text: &'a str,
    how: How,
    counted: bool,
}

impl ReplyText<'_> {
    fn tokens(&self, seen: &Seen) -> (usize, usize) {
        (seen.body.len() / 4 + 1, self.text.len() / 4 + 1)
    }
}

fn say(stream: &mut TcpStream, seen: &Seen, said: &ReplyText<'_>) -> std::io::Result<()> {
    if seen.json()["stream"] != true {
        return whole(stream, 200, &[], &body(seen, said).to_string());
    }
    begin_stream(stream)?;
    events(seen, said)
        .iter()
        .try_for_each(|event| stream.write_all(event.as_bytes()).and_then(|()| stream.flush()))
}

fn is_anthropic(seen: &Seen) -> bool {
    seen.path.ends_with("/messages")
}

fn body(seen: &Seen, said: &ReplyText<'_>) -> Value {
    let (tokens_in, tokens_out) = said.tokens(seen);
    let asked = seen.json();
    if is_anthropic(seen) {
        let reason = anthropic_reason(&asked, said.how);
        let content = match serde_json::from_str::<Value>(said.text) {
            Ok(input) if asked["tools"].is_array() && said.how != How::Refused => {
                json!([{ "type": "tool_use", "id": "t", "name": asked["tools"][0]["name"], "input": input }])
            }
            Ok(_) | Err(_) => json!([{ "type": "text", "text": said.text }]),
        };
        let mut body =
            json!({ "type": "message", "model": asked["model"], "content": content, "stop_reason": reason });
        if said.counted {
            body["usage"] = json!({ "input_tokens": tokens_in, "output_tokens": tokens_out });
        }
        return body;
    }
    let message = match said.how {
        How::Refused => json!({ "role": "assistant", "content": null, "refusal": said.text }),
        How::Whole | How::Cut => json!({ "role": "assistant", "content": said.text }),
    };
    let choice = json!({ "index": 0, "message": message, "finish_reason": openai_reason(said.how) });
    let mut body = json!({ "model": asked["model"], "choices": [choice] });
    if said.counted {
        body["usage"] = json!({ "prompt_tokens": tokens_in, "completion_tokens": tokens_out });
    }
    body
}

fn openai_reason(how: How) -> &'static str {
    match how {
        How::Whole | How::Refused => "stop",
        How::Cut => "length",
    }
}

fn anthropic_reason(asked: &Value, how: How) -> &'static str {
    match how {
        How::Whole if asked["tools"].is_array() => "tool_use",
        How::Whole => "end_turn",
        How::Cut => "max_tokens",
        How::Refused => "refusal",
    }
}

/// The events of a streamed answer.
fn events(seen: &Seen, said: &ReplyText<'_>) -> Vec<String> {
    events_of(seen, said, PIECE_CHARACTERS)
}

fn events_of(seen: &Seen, said: &ReplyText<'_>, piece_characters: usize) -> Vec<String> {
    let characters: Vec<char> = said.text.chars().collect();
    let pieces: Vec<String> =
        characters.chunks(piece_characters).map(|piece| piece.iter().collect()).collect();
    let (tokens_in, tokens_out) = said.tokens(seen);
    let asked = seen.json();
    let mut events = Vec::new();
    if is_anthropic(seen) {
        let mut send = |event: Value| {
            events.push(format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()));
        };
        let is_tool = asked["tools"].is_array() && said.how != How::Refused;
        let mut message = json!({ "type": "message", "model": asked["model"], "content": [] });
        let mut end = json!({ "type": "message_delta", "delta": { "stop_reason": anthropic_reason(&asked, said.how) } });
        if said.counted {
            message["usage"] = json!({ "input_tokens": tokens_in, "output_tokens": 1 });
            end["usage"] = json!({ "output_tokens": tokens_out });
        }
        send(json!({ "type": "message_start", "message": message }));
        let block = match is_tool {
            true => json!({ "type": "tool_use", "id": "t", "name": asked["tools"][0]["name"], "input": {} }),
            false => json!({ "type": "text", "text": "" }),
        };
        send(json!({ "type": "content_block_start", "index": 0, "content_block": block }));
        send(json!({ "type": "ping" }));
        for piece in pieces {
            let delta = match is_tool {
                true => json!({ "type": "input_json_delta", "partial_json": piece }),
                false => json!({ "type": "text_delta", "text": piece }),
            };
            send(json!({ "type": "content_block_delta", "index": 0, "delta": delta }));
        }
        send(json!({ "type": "content_block_stop", "index": 0 }));
        send(end);
        send(json!({ "type": "message_stop" }));
        return events;
    }
    let mut send = |event: Value| events.push(format!("data: {event}\n\n"));
    let key = if said.how == How::Refused { "refusal" } else { "content" };
    for piece in pieces {
        let mut delta = json!({ "role": "assistant" });
        delta[key] = piece.into();
        send(
            json!({ "model": asked["model"], "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] }),
        );
    }
    send(
        json!({ "model": asked["model"], "choices": [{ "index": 0, "delta": {}, "finish_reason": openai_reason(said.how) }] }),
    );
    if said.counted && asked["stream_options"]["include_usage"] == true {
        send(
            json!({ "choices": [], "usage": { "prompt_tokens": tokens_in, "completion_tokens": tokens_out } }),
        );
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}
