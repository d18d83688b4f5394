//! The front ends of the built program over one store: the command line, an MCP server for each agent, the HTTP API, the
//! terminal UI. Sends a request and reports how it was answered; knows nothing of what is allowed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::run::configure;
use crate::transcript::Workspace;

/// The longest that an answer may take on a busy machine.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(60);

/// An executor, so that plans of agents need approval. Nothing here runs it.
const CONFIGURATION: &str = "[executors.run]\nkind = \"process\"\ncommand = [\"true\"]\n";

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Caller {
    Person,
    Agent,
    /// An agent that works on nothing: what [`Caller::Agent`] claimed is not its own.
    OtherAgent,
    Worker,
}

impl Caller {
    pub(crate) const ALL: [Self; 4] = [Self::Person, Self::Agent, Self::OtherAgent, Self::Worker];

    fn role(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Agent | Self::OtherAgent => "agent",
            Self::Worker => "worker",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Person => "ada",
            Self::Agent => "robin",
            Self::OtherAgent => "wren",
            Self::Worker => "drone",
        }
    }

    pub(crate) fn is_agent(self) -> bool {
        self.role() == "agent"
    }

    /// As events and leases name it.
    pub(crate) fn actor(self) -> String {
        format!("{}:{}", self.role(), self.name())
    }
}

/// How a request was answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Accepted(Value),
    /// With the stable code, if the answer has one, and the whole answer.
    Refused {
        code: Option<String>,
        answer: Value,
    },
}

impl Reply {
    fn refused(answer: Value) -> Self {
        Self::Refused { code: answer["code"].as_str().map(str::to_owned), answer }
    }

    /// What was answered to a request that has to be accepted.
    #[track_caller]
    pub(crate) fn accepted(self) -> Value {
        match self {
            Self::Accepted(answer) => answer,
            Self::Refused { answer, .. } => panic!("refused: {answer}"),
        }
    }

    /// The code of a refusal, for messages of tests and for comparing.
    pub(crate) fn code(&self) -> String {
        match self {
            Self::Accepted(_) => "accepted".to_owned(),
            Self::Refused { code: Some(code), .. } => code.clone(),
            Self::Refused { code: None, answer } => format!("refused without a code: {answer}"),
        }
    }
}

fn hello(agent: &str) -> Value {
    json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": { "name": agent, "version": "1" },
    })
}

/// A server process for one agent, and the client at its other end.
pub(crate) struct McpClient {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last_id: u64,
}

impl McpClient {
    pub(crate) fn start(workspace: &Workspace, agent: &str) -> Self {
        Self::with_arguments(workspace, agent, &[])
    }

    pub(crate) fn with_arguments(workspace: &Workspace, agent: &str, arguments: &[&str]) -> Self {
        let mut process = workspace
            .command(env!("CARGO_BIN_EXE_waypost"))
            .args(["mcp", "--agent", agent])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let input = process.stdin.take();
        let mut client = Self { process, input, lines, last_id: 0 };
        let id = client.request("initialize", &hello(agent));
        client.answers(&[id]);
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    fn request(&mut self, method: &str, parameters: &Value) -> u64 {
        self.last_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": parameters }));
        self.last_id
    }

    /// The results of these requests, in the order of the requests.
    fn answers(&mut self, ids: &[u64]) -> Vec<Value> {
        let mut found = BTreeMap::new();
        while found.len() < ids.len() {
            let line = self.lines.recv_timeout(ANSWER_WAIT_MAX).expect("the server answers");
            let mut answer: Value = serde_json::from_str(&line).unwrap();
            if let Some(id) = answer["id"].as_u64().filter(|id| ids.contains(id)) {
                assert_eq!(answer.get("error"), None, "{line}");
                found.insert(id, answer["result"].take());
            }
        }
        found.into_values().collect()
    }

    /// Ends the server, which has to end well.
    pub(crate) fn end(mut self) {
        drop(self.input.take());
        assert!(self.process.wait().unwrap().success());
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Reply {
        self.call_all(tool, vec![arguments]).remove(0)
    }

    /// Sends all calls before it reads the first answer.
    pub(crate) fn call_all(&mut self, tool: &str, arguments: Vec<Value>) -> Vec<Reply> {
        let ids: Vec<u64> = arguments
            .into_iter()
            .map(|arguments| self.request("tools/call", &json!({ "name": tool, "arguments": arguments })))
            .collect();
        self.answers(&ids).into_iter().map(reply_of).collect()
    }
}

/// How a tool answered.
fn reply_of(mut result: Value) -> Reply {
    if result["isError"] != true {
        return Reply::Accepted(result["structuredContent"].take());
    }
    let mut answer = result["structuredContent"].take();
    if answer.is_null() {
        answer = json!({ "text": result["content"][0]["text"] });
    }
    Reply::refused(answer)
}

impl Drop for McpClient {
    fn drop(&mut self) {
        // A server ends with its input.
        drop(self.input.take());
        let _ended = self.process.wait();
    }
}

/// A request to the HTTP API.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    method: String,
    path: String,
    body: Option<Value>,
    known_version: Option<u64>,
}

impl Request {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self { method: "GET".to_owned(), path: path.into(), body: None, known_version: None }
    }

    pub(crate) fn post(path: impl Into<String>, body: Value) -> Self {
        Self::new("POST", path, body)
    }

    pub(crate) fn new(method: &str, path: impl Into<String>, body: Value) -> Self {
        Self { method: method.to_owned(), path: path.into(), body: Some(body), known_version: None }
    }

    /// Only if the plan is still at this version.
    pub(crate) fn if_at(self, version: u64) -> Self {
        Self { known_version: Some(version), ..self }
    }
}

/// All front ends over the store of one workspace.
pub(crate) struct FrontEnds {
    mcp: BTreeMap<Caller, Mutex<McpClient>>,
    tokens: BTreeMap<Caller, String>,
    /// The sessions of agents with the server's MCP over HTTP.
    sessions: Mutex<BTreeMap<Caller, String>>,
    server: Child,
    address: String,
    runtime: Runtime,
    pub(crate) workspace: Workspace,
}

impl FrontEnds {
    /// The servers run, and run no plan.
    pub(crate) fn start() -> Self {
        Self::start_with(CONFIGURATION)
    }

    pub(crate) fn start_with(configuration: &str) -> Self {
        Self::start_in(Workspace::new(), configuration)
    }

    /// Over a store of files, in the folder `files` of the workspace.
    pub(crate) fn start_on_files() -> Self {
        let mut workspace = Workspace::new();
        workspace.store = Some(format!("file:{}", workspace.root.join("files").display()));
        Self::start_in(workspace, CONFIGURATION)
    }

    fn start_in(workspace: Workspace, configuration: &str) -> Self {
        configure(&workspace, configuration);
        let mut server = workspace
            .command(env!("CARGO_BIN_EXE_waypost"))
            .args(["serve", "--no-worker", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let greeting: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no greeting: {line:?}"));
        let address = greeting["address"].as_str().unwrap().to_owned();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (mcp, tokens, sessions) = (BTreeMap::new(), BTreeMap::new(), Mutex::default());
        let mut front_ends = Self { mcp, tokens, sessions, server, address, runtime, workspace };
        for caller in Caller::ALL {
            front_ends.tokens.insert(caller, front_ends.token(caller.role(), caller.name()));
        }
        for caller in Caller::ALL.into_iter().filter(|caller| caller.is_agent()) {
            let client = McpClient::start(&front_ends.workspace, caller.name());
            front_ends.mcp.insert(caller, Mutex::new(client));
        }
        front_ends
    }

    /// A new token of this role.
    pub(crate) fn token(&self, role: &str, name: &str) -> String {
        let made = self.cli(Caller::Person, &["token", "new", "--role", role, "--name", name]);
        made.accepted()["token"].as_str().unwrap().to_owned()
    }

    pub(crate) fn cli(&self, caller: Caller, words: &[&str]) -> Reply {
        let mut command = self.workspace.command(env!("CARGO_BIN_EXE_waypost"));
        command.env("WAYPOST_INJECTED_TERMINAL", "yes");
        let output = command.args(["--as", &caller.actor(), "--json"]).args(words).output().unwrap();
        let text = if output.status.success() { &output.stdout } else { &output.stderr };
        let text = String::from_utf8_lossy(text);
        // Notes come first.
        let line = text.lines().last().unwrap_or_default();
        let mut answer: Value =
            serde_json::from_str(line).unwrap_or_else(|_| panic!("{words:?} answers {text:?}"));
        match output.status.success() {
            true => Reply::Accepted(answer),
            false => Reply::refused(answer["error"].take()),
        }
    }

    /// The MCP server of an agent.
    pub(crate) fn mcp(&self, caller: Caller) -> MutexGuard<'_, McpClient> {
        self.mcp[&caller].lock().unwrap()
    }

    /// Calls a tool of the server's MCP over HTTP, in the one session of the agent.
    pub(crate) fn mcp_over_http(&self, caller: Caller, tool: &str, arguments: Value) -> Reply {
        let mut sessions = self.sessions.lock().unwrap();
        let session = sessions.entry(caller).or_insert_with(|| {
            let hello =
                json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello(caller.name()) });
            let session = self.post_mcp(caller, None, &hello).0.unwrap();
            let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            self.post_mcp(caller, Some(&session), &ready);
            session
        });
        let call = json!({ "name": tool, "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call });
        let (_, said) = self.post_mcp(caller, Some(session), &call);
        // It comes as it is, or as an event of a stream.
        let answers = said.lines().map(|line| line.strip_prefix("data:").unwrap_or(line));
        let mut answers = answers.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let answer = answers.find(|answer| answer["id"] == 2);
        reply_of(answer.unwrap_or_else(|| panic!("{tool} answers {said:?}"))["result"].take())
    }

    fn post_mcp(&self, caller: Caller, session: Option<&str>, message: &Value) -> (Option<String>, String) {
        let mut request = hyper::Request::builder()
            .method("POST")
            .uri(format!("http://{}/mcp", self.address))
            .header("authorization", format!("Bearer {}", self.tokens[&caller]))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        let request = request.body(Full::new(Bytes::from(message.to_string()))).unwrap();
        let exchange = async {
            let client = Client::builder(TokioExecutor::new()).build_http();
            let response = client.request(request).await.unwrap();
            let session = response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
            let body = response.into_body().collect().await.unwrap().to_bytes();
            (session, String::from_utf8_lossy(&body).into_owned())
        };
        self.runtime.block_on(async { tokio::time::timeout(ANSWER_WAIT_MAX, exchange).await.unwrap() })
    }

    pub(crate) fn http(&self, caller: Caller, request: Request) -> Reply {
        self.http_all(caller, vec![request]).remove(0)
    }

    /// Sends all requests at the same time; the answers are in the order of the requests.
    pub(crate) fn http_all(&self, caller: Caller, requests: Vec<Request>) -> Vec<Reply> {
        self.http_with(&self.tokens[&caller], requests)
    }

    /// The same with a token that is none of the callers'.
    pub(crate) fn http_with(&self, token: &str, requests: Vec<Request>) -> Vec<Reply> {
        let sent: Vec<_> = requests
            .into_iter()
            .map(|Request { method, path, body, known_version }| {
                let body = body.map(|body| body.to_string()).unwrap_or_default();
                let mut request = hyper::Request::builder()
                    .method(method.as_str())
                    .uri(format!("http://{}/api/v1{path}", self.address))
                    .header("authorization", format!("Bearer {token}"))
                    .header("content-type", "application/json")
                    .header("accept", "application/json");
                if let Some(version) = known_version {
                    request = request.header("if-match", format!("\"{version}\""));
                }
                let request = request.body(Full::new(Bytes::from(body))).unwrap();
                let exchange = async {
                    let client = Client::builder(TokioExecutor::new()).build_http();
                    let response = client.request(request).await.unwrap();
                    let status = response.status();
                    let body = response.into_body().collect().await.unwrap().to_bytes();
                    let answer: Value = serde_json::from_slice(&body)
                        .unwrap_or_else(|_| panic!("{status}: {}", String::from_utf8_lossy(&body)));
                    if status.is_success() { Reply::Accepted(answer) } else { Reply::refused(answer) }
                };
                self.runtime.spawn(async { tokio::time::timeout(ANSWER_WAIT_MAX, exchange).await.unwrap() })
            })
            .collect();
        let answered = sent.into_iter().map(|sent| self.runtime.block_on(sent).unwrap());
        answered.collect()
    }

    /// Reads over HTTP what has to be there.
    #[track_caller]
    pub(crate) fn read(&self, path: &str) -> Value {
        self.http(Caller::Person, Request::get(path)).accepted()
    }
}

impl Drop for FrontEnds {
    fn drop(&mut self) {
        let _ended = self.server.kill();
        let _waited = self.server.wait();
    }
}
