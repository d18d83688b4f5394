//! A minimal MCP client over stdio that records what a model would read and write.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Maximum time to wait for a reply.
const ANSWER_SECONDS_MAX: u64 = 120;

/// What a model has in its context after some calls.
#[derive(Default)]
pub(super) struct Transcript {
    /// The tool definitions, as the server lists them.
    pub(super) definitions: String,
    /// The definitions without annotations and output schemas, which some hosts do not pass to their model.
    pub(super) lean_definitions: String,
    pub(super) requests: Vec<String>,
    pub(super) answers: Vec<String>,
}

impl Transcript {
    /// Records an edit of a file with the host's own tool, which every host has.
    pub(super) fn edit_file(&mut self, path: &str, old: &str, new: &str) {
        let arguments = json!({ "file_path": path, "old_string": old, "new_string": new });
        self.requests.push(json!({ "name": "edit", "arguments": arguments }).to_string());
        self.answers.push("ok".to_owned());
    }
}

/// A running server, and the transcript of the calls.
pub(super) struct Session {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    number: u64,
    pub(super) transcript: Transcript,
}

impl Session {
    /// Starts a server and initializes the connection.
    pub(super) fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let log = std::fs::File::create(log)?;
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn()?;
        let input = child.stdin.take().context("no standard input")?;
        let output = BufReader::new(child.stdout.take().context("no standard output")?);
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut session = Self { child, input, lines, number: 0, transcript: Transcript::default() };
        let client = json!({ "name": "bench", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        session.ask("initialize", &hello)?;
        session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(session)
    }

    /// Returns the process id of the server.
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Calls a tool, and records the call and the reply.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let call = json!({ "name": tool, "arguments": arguments });
        self.transcript.requests.push(call.to_string());
        let result = self.ask("tools/call", &call)?;
        let text = text(&result);
        if result["isError"] == true {
            bail!("{tool} {arguments}: {text}");
        }
        self.transcript.answers.push(text);
        Ok(result)
    }

    /// Lists the tools.
    pub(super) fn list(&mut self) -> Result<()> {
        let mut listed: Vec<Value> = Vec::new();
        let mut page = json!({});
        loop {
            let mut answer = self.ask("tools/list", &page)?;
            listed.append(answer["tools"].as_array_mut().context("no tools")?);
            if answer["nextCursor"].is_null() {
                break;
            }
            page = json!({ "cursor": answer["nextCursor"] });
        }
        let lean = listed.iter().map(|tool| {
            json!({ "name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"] })
        });
        self.transcript.lean_definitions = lean.collect::<Value>().to_string();
        self.transcript.definitions = Value::from(listed).to_string();
        Ok(())
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.number += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.number, "method": method, "params": params }))?;
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(ANSWER_SECONDS_MAX));
            let line = line.with_context(|| format!("no response to {method}"))?;
            // Some servers write more than protocol messages to stdout.
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            if message["id"] == self.number && message["method"].is_null() {
                if !message["error"].is_null() {
                    bail!("{method} {params}: {}", message["error"]);
                }
                return Ok(message["result"].clone());
            }
            if message["id"].is_number() && message["method"].is_string() {
                let error = json!({ "code": -32601, "message": "not offered" });
                self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }))?;
            }
        }
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        self.input.write_all(line.as_bytes())?;
        Ok(self.input.flush()?)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// Returns the text of a reply, which is what models read.
fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}
