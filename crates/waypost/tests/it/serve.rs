//! `waypost serve`, called by two agents with two tokens over a real socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use waypost_testkit::injected_account;

use super::tmux::Tmux;
use super::transcript::Workspace;

/// Long enough for everything that has to happen, and reached only by what does not.
const BOUND: Duration = Duration::from_secs(60);

struct Site {
    folder: PathBuf,
    child: Child,
    url: String,
    greeting: Value,
    runtime: Runtime,
}

fn waypost(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waypost"));
    command.args(words).current_dir(folder).env_clear();
    command.env("HOME", folder).env("WAYPOST_ACTOR", "person:ada").envs(injected_account(folder));
    command
}

fn hello() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    } })
}

impl Site {
    fn new(name: &str) -> Self {
        Self::with(name, "", &["serve", "--json"])
    }

    /// The same with this configuration, begun with these words.
    fn with(name: &str, config: &str, words: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(format!("waypost-serve-{}-{name}", std::process::id()));
        std::fs::create_dir_all(folder.join(".git")).unwrap();
        std::fs::create_dir_all(folder.join(".waypost")).unwrap();
        std::fs::write(folder.join(".waypost/config.toml"), config).unwrap();
        let trusted = waypost(&folder, &["trust"]).env("WAYPOST_INJECTED_TERMINAL", "yes").output().unwrap();
        assert!(trusted.status.success(), "{}", String::from_utf8_lossy(&trusted.stderr));
        let serve = waypost(&folder, words);
        Self::begin_with(folder, serve)
    }

    fn begin_with(folder: PathBuf, mut serve: Command) -> Self {
        let mut child = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut said = String::new();
            child.stderr.as_mut().unwrap().read_to_string(&mut said).unwrap();
            panic!("it did not begin: {said}");
        }
        // To people it says where it is within a sentence.
        let said = line.split_whitespace().find(|word| word.starts_with("http")).unwrap_or_default();
        let greeting: Value = serde_json::from_str(&line).unwrap_or_else(|_| json!({ "url": said }));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { folder, child, url: greeting["url"].as_str().unwrap().to_owned(), greeting, runtime }
    }

    fn end(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Waits until a file of the workspace is there.
    fn wait_for_file(&self, name: &str) {
        let path = self.folder.join(name);
        let there = async {
            while !path.exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let found = self.runtime.block_on(async { tokio::time::timeout(BOUND, there).await });
        found.unwrap_or_else(|_| panic!("{name} never came to be"));
    }

    /// A person's token, made at a terminal.
    fn persons_token(&self) -> String {
        let mut make =
            waypost(&self.folder, &["token", "new", "--role", "person", "--name", "ada", "--json"]);
        let output = make.env("WAYPOST_INJECTED_TERMINAL", "yes").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let made: Value = serde_json::from_slice(&output.stdout).unwrap();
        made["token"].as_str().unwrap().to_owned()
    }

    /// Whom the API takes the holder of a token for.
    fn me(&self, token: &str) -> (u16, String) {
        let host = self.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        let head = format!("GET /api/v1/me HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        write!(stream, "{head}Authorization: Bearer {token}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }

    fn run(&self, words: &[&str]) -> Value {
        let output = waypost(&self.folder, words).arg("--json").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn post(&self, token: &str, session: Option<&str>, message: &Value) -> (u16, Option<String>, String) {
        self.ask("POST", token, session, message)
    }

    fn ask(
        &self,
        method: &str,
        token: &str,
        session: Option<&str>,
        message: &Value,
    ) -> (u16, Option<String>, String) {
        self.send(method, token, session, message.to_string().into_bytes())
    }

    fn send(
        &self,
        method: &str,
        token: &str,
        session: Option<&str>,
        body: Vec<u8>,
    ) -> (u16, Option<String>, String) {
        let mut request = hyper::Request::builder()
            .method(method)
            .uri(&self.url)
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let asked = async {
            let client = Client::builder(TokioExecutor::new()).build_http();
            let response = client.request(request).await.unwrap();
            let status = response.status().as_u16();
            let session = response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
            let body = response.into_body().collect().await.unwrap().to_bytes();
            (status, session, String::from_utf8(body.to_vec()).unwrap())
        };
        self.runtime.block_on(async { tokio::time::timeout(BOUND, asked).await.unwrap() })
    }

    fn begin(&self, token: &str) -> String {
        let (status, session, said) = self.post(token, None, &hello());
        assert_eq!(status, 200, "{said}");
        let session = session.unwrap();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(token, Some(&session), &ready).0, 202);
        session
    }

    /// Who the server takes the caller for: somebody without a plan is told so by name.
    fn who(&self, token: &str, session: &str) -> (u16, String) {
        let asked =
            json!({ "jsonrpc": "2.0", "id": 2, "method": "prompts/get", "params": { "name": "plan" } });
        let (status, _, said) = self.post(token, Some(session), &asked);
        let told = said.split("\"message\":\"").nth(1).and_then(|rest| rest.split(" has no plan").next());
        (status, told.unwrap_or_default().to_owned())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _waited = self.child.wait();
        let _gone = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn two_agents_with_two_tokens_share_a_server_and_no_session() {
    let mut site = Site::new("two");
    let make = |agent: &str| {
        let made = site.run(&["token", "new", "--agent", agent]);
        (made["id"].as_str().unwrap().to_owned(), made["token"].as_str().unwrap().to_owned())
    };
    let ((_, planner), (worker_id, worker)) = (make("planner"), make("worker"));
    let (first, second) = (site.begin(&planner), site.begin(&worker));
    assert_eq!(site.who(&planner, &first), (200, "planner".to_owned()));
    assert_eq!(site.who(&worker, &second), (200, "worker".to_owned()));
    assert_eq!(site.who(&worker, &first).0, 404, "the session of another is none");
    site.run(&["token", "revoke", &worker_id]);
    assert_eq!(site.who(&worker, &second).0, 401);
    assert_eq!(site.who(&planner, &first).0, 200);
    let listed = site.run(&["token", "list"]);
    assert_eq!(listed["tokens"].as_array().unwrap().len(), 1);
    assert!(!listed.to_string().contains("sha256"), "{listed}");

    site.end();
    assert!(site.child.wait().unwrap().success(), "it ends in good order");
}

/// Each task says that it began, and waits for its file.
const STEPS: &str = r#"
[executors.steps]
kind = "process"
command = ["sh", "-c", "cat > /dev/null; touch $WAYPOST_TASK.began; until [ -e $WAYPOST_TASK.go ]; do sleep 0.02; done"]
timeout_seconds = 60
"#;

#[test]
fn a_server_that_is_told_to_end_lets_what_runs_end_starts_nothing_new_and_serves_meanwhile() {
    let mut site = Site::with("drain", STEPS, &["serve"]);
    let work = json!({ "executor": "steps", "inputs": {} });
    let plan = json!({ "format": "waypost/1", "id": "steps", "title": "Steps", "tasks": [
        { "id": "first", "work": work }, { "id": "second", "depends_on": ["first"], "work": work },
    ] });
    std::fs::write(site.folder.join("plan.json"), plan.to_string()).unwrap();
    site.run(&["submit", "plan.json", "--yes"]);
    site.wait_for_file("first.began");
    let mut said = BufReader::new(site.child.stderr.take().unwrap()).lines();
    site.end();
    let waits = said.find(|line| line.as_ref().is_ok_and(|line| line.contains("no further tasks start")));
    assert!(waits.is_some(), "it says what it waits for");
    let (status, ..) = site.ask("POST", "waypost_none", None, &json!({}));
    assert_eq!(status, 401, "it answers while it waits");
    std::fs::write(site.folder.join("first.go"), "").unwrap();
    assert!(site.child.wait().unwrap().success(), "it ends in good order");
    let told: Vec<String> = said.map(Result::unwrap).collect();
    assert!(told.iter().any(|line| line.contains("the server ended")), "{told:?}");
    let shown = site.run(&["show", "steps"]);
    let standings: Vec<&Value> =
        shown["tasks"].as_array().unwrap().iter().map(|task| &task["standing"]).collect();
    assert_eq!(standings, [&json!("done"), &json!("ready")], "{shown}");
    assert!(!site.folder.join("second.began").exists(), "nothing new was started");
    assert_eq!(site.run(&["workers"])["workers"], json!([]), "its worker took its leave");
}

#[test]
fn a_session_is_ended_by_whose_it_is_and_there_are_not_more_than_there_may_be() {
    let site = Site::new("many");
    let make = |agent: &str| {
        let made = site.run(&["token", "new", "--agent", agent]);
        made["token"].as_str().unwrap().to_owned()
    };
    let (planner, worker) = (make("planner"), make("worker"));
    let first = site.begin(&planner);
    let end = |token: &str| site.ask("DELETE", token, Some(&first), &Value::Null);
    assert_eq!(end(&worker).0, 404, "the session of another is none");
    assert_eq!(site.who(&planner, &first).0, 200, "and goes on");
    assert_eq!(end(&planner), (204, None, String::new()));
    let (status, _, said) = end(&planner);
    assert_eq!(status, 404);
    assert!(said.contains("it has ended"), "{said}");
    assert_eq!(site.who(&planner, &first).0, 404);

    let sessions: Vec<String> = (0..64).map(|_| site.begin(&planner)).collect();
    let (status, session, said) = site.post(&planner, None, &hello());
    assert_eq!((status, session), (503, None), "{said}");
    assert!(said.contains("session limit reached (64), none idle; end one (DELETE)"), "{said}");
    assert_eq!(site.who(&worker, &site.begin(&worker)).0, 200, "another agent has sessions of its own");
    assert_eq!(site.ask("DELETE", &planner, Some(&sessions[0]), &Value::Null).0, 204);
    assert_eq!(site.who(&planner, &site.begin(&planner)).0, 200);
}

#[test]
fn a_body_that_is_no_message_is_answered_as_the_protocol_answers() {
    let site = Site::new("bodies");
    let made = site.run(&["token", "new", "--agent", "planner"]);
    let token = made["token"].as_str().unwrap();
    let check = |body: &[u8], status: u16, code: i64, id: &Value, words: &str| {
        let (found, _, said) = site.send("POST", token, None, body.to_vec());
        assert_eq!(found, status, "{said}");
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((&said["error"]["code"], &said["id"]), (&json!(code), id), "{said}");
        assert!(said["error"]["message"].as_str().unwrap().contains(words), "{said}");
    };
    check(b"hello?", 400, -32700, &Value::Null, "is not valid JSON: expected value");
    check(b"", 400, -32600, &Value::Null, "neither a request nor a notification");
    check(b"[]", 400, -32600, &Value::Null, "batches are not supported");
    check(br#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#, 400, -32602, &json!(7), "an object");
    assert_eq!(site.who(token, &site.begin(token)).0, 200, "and the next one is heard");
}

#[test]
fn what_is_wrong_with_the_command_line_is_said_before_anything_is_opened() {
    let folder = std::env::temp_dir().join(format!("waypost-serve-{}-wrong", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let check = |words: &[&str], expected: &str| {
        let output = waypost(&folder, words).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    };
    check(&["serve", "--listen", "everywhere"], "write ADDR:PORT, such as 127.0.0.1:8021, or a port");
    check(&["serve", "--allow-host", "a b"], "--allow-host \"a b\" is not a host name");
    check(&["serve", "--allow-origin", "example.org"], "--allow-origin \"example.org\" is not an origin");
    check(&["token", "new", "--agent", "person:ada"], "no colon");
    assert!(!folder.join(".waypost").exists());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_agent_makes_no_token() {
    let folder = std::env::temp_dir().join(format!("waypost-serve-{}-agent", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = waypost(&folder, &["token", "new", "--agent", "me"]);
    let output = command.env_remove("WAYPOST_ACTOR").env("CLAUDECODE", "1").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("only a person can make or revoke a token"), "{said}");
    assert!(output.stdout.is_empty() && !folder.join(".waypost").exists());
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Opens a sign-in link as the dashboard does.
fn open_link(link: &str) -> u16 {
    let (site, code) = link.trim().split_once("/#login=").unwrap();
    let (host, body) = (site.strip_prefix("http://").unwrap(), json!({ "code": code }).to_string());
    let mut stream = TcpStream::connect(host).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST /login HTTP/1.1\r\nHost: {host}\r\nOrigin: {site}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn without_a_terminal_the_sign_in_link_is_in_a_private_file_and_no_secret_in_the_log() {
    let mut site = Site::new("link");
    assert_eq!(site.greeting["login"], Value::Null);
    let path = PathBuf::from(site.greeting["login_file"].as_str().unwrap());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let link = std::fs::read_to_string(&path).unwrap();
    assert_eq!((open_link(&link), open_link(&link)), (200, 401));

    // The same as `serve > log 2>&1`.
    let log = site.folder.join("log");
    let file = std::fs::File::create(&log).unwrap();
    let mut serve = waypost(&site.folder, &["serve", "--no-worker"]);
    let mut child = serve.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
    let read = || std::fs::read_to_string(&log).unwrap();
    let greeted = async {
        while !read().contains("Ctrl-C stops") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    site.runtime.block_on(async { tokio::time::timeout(BOUND, greeted).await }).unwrap();
    let said = read();
    let (_, named) = said.split_once("sign-in link in ").unwrap();
    let other = PathBuf::from(named.lines().next().unwrap());
    let link = std::fs::read_to_string(&other).unwrap();
    assert_eq!(open_link(&link), 200);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    let (_, code) = link.trim().split_once("/#login=").unwrap();
    assert!(!read().contains(code) && !read().contains("login="), "{}", read());
    assert!(!other.exists(), "it is gone with the server");
    assert!(path.exists(), "the other server has a file of its own");
    site.end();
    assert!(site.child.wait().unwrap().success());
    assert!(!path.exists());
}

#[test]
#[ignore = "needs tmux"]
fn at_a_terminal_the_sign_in_link_is_printed_and_no_file_is_written() {
    let workspace = Workspace::new();
    let tmux = Tmux::new(&workspace, 160, 24);
    tmux.line("waypost serve --no-worker");
    let screen = tmux.wait("Ctrl-C stops");
    let link = screen.split_whitespace().find(|word| word.contains("/#login=")).unwrap();
    assert_eq!((open_link(link), open_link(link)), (200, 401));
    let files = std::fs::read_dir(workspace.work().join(".waypost")).unwrap();
    let names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.iter().any(|name| name.starts_with("login-")), "{names:?}");
    tmux.press(&["C-c"]);
    tmux.wait("the server ended");
}

impl Site {
    /// The text with which a tool answers, and whether it is an error.
    fn call(&self, token: &str, session: &str, tool: &str, arguments: Value) -> (bool, String) {
        let asked = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments } });
        let (status, _, said) = self.post(token, Some(session), &asked);
        assert_eq!(status, 200, "{said}");
        let message = said.lines().find_map(|line| {
            let message: Value = serde_json::from_str(line.strip_prefix("data:").unwrap_or(line)).ok()?;
            message.get("result").cloned()
        });
        let result = message.unwrap_or_else(|| panic!("{said}"));
        (result["isError"] == true, result["content"][0]["text"].as_str().unwrap().to_owned())
    }
}

/// What an agent may do with files over HTTP: nothing, or with `open` only what is in the scratch folder.
fn check_files(site: &Site, open: bool) {
    let token = site.run(&["token", "new", "--agent", "far"])["token"].as_str().unwrap().to_owned();
    let session = site.begin(&token);
    let call = |tool: &str, arguments: Value| site.call(&token, &session, tool, arguments);
    assert!(!call("plan_create", json!({ "title": "T", "tasks": ["a"] })).0);
    std::fs::write(site.folder.join(".env"), "SECRET=1").unwrap();
    std::fs::write(site.folder.join("Makefile"), "all:\n").unwrap();
    std::fs::write(site.folder.join("notes.md"), "SECRET").unwrap();
    for file in [".env", "Makefile", "notes.md", "new-plan.md", ".waypost/config.toml"] {
        for tool in ["plan_create", "plan_export", "plan_update"] {
            let arguments = json!({ "file": file, "format": "markdown" });
            let (is_error, said) = call(tool, arguments);
            assert!(is_error && !said.contains("SECRET"), "{tool} {file}: {said}");
            if !open {
                assert!(
                    said.contains("agents over HTTP") && said.contains("waypost serve --files"),
                    "{said}"
                );
            }
        }
        let arguments = json!({ "file": file, "overwrite": true });
        assert!(call("plan_export", arguments).0, "{file}");
    }
    assert_eq!(std::fs::read_to_string(site.folder.join("Makefile")).unwrap(), "all:\n");
    assert!(!site.folder.join("new-plan.md").exists());
    let (is_error, said) = call("plan_export", json!({ "file": ".waypost/files/t.md" }));
    assert_eq!(is_error, !open, "{said}");
    assert_eq!(site.folder.join(".waypost/files/t.md").exists(), open);
    let (is_error, said) = call("plan_update", json!({ "file": ".waypost/files/t.md" }));
    assert_eq!(is_error, !open, "{said}");
}

#[test]
fn an_agent_over_http_uses_no_files() {
    check_files(&Site::new("no-files"), false);
}

#[test]
fn an_agent_over_http_uses_the_scratch_folder_if_the_operator_opens_it() {
    check_files(&Site::with("files", "", &["serve", "--json", "--files"]), true);
    let home = std::env::temp_dir().join(format!("waypost-serve-{}-http", std::process::id()));
    std::fs::create_dir_all(home.join(".config/waypost")).unwrap();
    std::fs::write(home.join(".config/waypost/config.toml"), "[files]\nhttp = true\n").unwrap();
    check_files(&Site::new("http"), true);
}

#[test]
fn a_persons_token_counts_in_the_account_and_not_in_the_workspace() {
    let site = Site::new("planted");
    let token = site.persons_token();
    assert_eq!(site.me(&token).0, 200);
    let kept = PathBuf::from(site.run(&["token", "list"])["file"].as_str().unwrap());
    assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!kept.starts_with(site.folder.join(".waypost")), "{kept:?}");
    let planted = site.folder.join(".waypost/tokens.json");
    assert!(!planted.exists());
    std::fs::rename(&kept, &planted).unwrap();
    assert_eq!(site.me(&token).0, 401);
    let output = waypost(&site.folder, &["token", "list"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("a person's token does not count there"), "{said}");
}

#[test]
fn a_persons_token_is_made_by_a_person_at_a_terminal() {
    let folder = std::env::temp_dir().join(format!("waypost-serve-{}-person", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let check = |variable: (&str, &str), said: &str| {
        let mut command = waypost(&folder, &["token", "new", "--role", "person", "--name", "ada"]);
        command.env_remove("WAYPOST_ACTOR").env(variable.0, variable.1);
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), true), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
    };
    check(("WAYPOST_ATTEMPT", "1"), "only a person can make or revoke a token");
    check(("CLAUDECODE", "1"), "only a person can make or revoke a token");
    check(("INNOCENT", "1"), "needs a person at a terminal, and there is none");
    check(("WAYPOST_ACTOR", "person:bob"), "needs a person at a terminal, and there is none");
    assert!(!folder.join(".local").exists() && !folder.join(".waypost").exists());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_server_that_an_agent_starts_accepts_no_person() {
    let folder = std::env::temp_dir().join(format!("waypost-serve-{}-by-agent", std::process::id()));
    std::fs::create_dir_all(folder.join(".git")).unwrap();
    let mut serve = waypost(&folder, &["serve", "--no-worker", "--json"]);
    serve.env_remove("WAYPOST_ACTOR").env("CLAUDECODE", "1");
    let site = Site::begin_with(folder, serve);
    assert_eq!((&site.greeting["login"], &site.greeting["login_file"]), (&Value::Null, &Value::Null));
    let (status, said) = site.me(&site.persons_token());
    assert_eq!(status, 403);
    assert!(said.contains("was not started by a person"), "{said}");
    let made = site.run(&["token", "new", "--agent", "planner"]);
    assert_eq!(site.me(made["token"].as_str().unwrap()).0, 200, "agents use it");
}

#[test]
fn a_persons_token_has_no_tool_that_approves() {
    let site = Site::new("persons-tools");
    let token = site.persons_token();
    let session = site.begin(&token);
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let (status, _, said) = site.post(&token, Some(&session), &list);
    assert!(status == 200 && said.contains("plan_start") && !said.contains("approve\""), "{said}");
    let call =
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "plan_approve" } });
    assert!(site.post(&token, Some(&session), &call).2.contains("unknown tool plan_approve"));
}

#[test]
fn an_account_without_a_home_keeps_no_tokens_and_writes_no_link() {
    let folder = std::env::temp_dir().join(format!("waypost-serve-{}-homeless", std::process::id()));
    std::fs::create_dir_all(folder.join(".git")).unwrap();
    let homeless = |words: &[&str]| {
        let mut command = waypost(&folder, words);
        command.env("WAYPOST_INJECTED_HOME", "");
        command
    };
    let output = homeless(&["token", "new", "--agent", "planner"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("has no home") && said.contains("/etc/waypost/tokens.json"), "{said}");
    let serve = homeless(&["serve", "--no-worker", "--json"]);
    let site = Site::begin_with(folder.clone(), serve);
    assert_eq!((&site.greeting["login"], &site.greeting["login_file"]), (&Value::Null, &Value::Null));
}

#[test]
fn the_browser_gets_a_private_page_that_leads_to_the_sign_in_link() {
    let workspace = Workspace::new();
    let programs = workspace.root.join("programs");
    std::fs::create_dir_all(&programs).unwrap();
    let opener = programs.join(if cfg!(target_os = "macos") { "open" } else { "xdg-open" });
    std::fs::write(
        &opener,
        "#!/bin/sh\necho \"$@\" > ../opened\nls -l \"$1\" > ../mode\ncp \"$1\" ../page\nexit 0\n",
    )
    .unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let serve = |path: &str| {
        let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
        command.env("PATH", path).args(["serve", "--no-worker", "--open"]);
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        (child, said)
    };
    let end = |mut child: Child| {
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(child.wait().unwrap().success());
    };
    let (child, _said) = serve(&format!("{}:/usr/bin:/bin", programs.display()));
    let page = workspace.root.join("page");
    let mut pause = waypost_store::watch_file(&workspace.root.join("never"));
    let begun = std::time::Instant::now();
    while !std::fs::read_to_string(&page).is_ok_and(|text| text.contains("</a>")) {
        assert!(begun.elapsed() < BOUND, "no browser was opened");
        pause.wait(Duration::from_millis(20)).unwrap();
    }
    let page = std::fs::read_to_string(page).unwrap();
    let link = page.split('"').find(|part| part.starts_with("http://")).unwrap();
    assert_eq!((open_link(link), open_link(link)), (200, 401));
    let opened = std::fs::read_to_string(workspace.root.join("opened")).unwrap();
    let (_, code) = link.split_once("/#login=").unwrap();
    assert!(!opened.contains(code), "every user sees the arguments of a program: {opened}");
    assert!(std::fs::read_to_string(workspace.root.join("mode")).unwrap().starts_with("-rw-------"));
    end(child);
    assert!(!Path::new(opened.trim()).exists(), "the page is gone with the server");

    let (child, mut said) = serve("/nonexistent");
    let note = said.find(|line| line.as_ref().unwrap().contains("no browser was opened")).unwrap().unwrap();
    assert!(note.contains("open the sign-in link yourself"), "{note}");
    end(child);
}
