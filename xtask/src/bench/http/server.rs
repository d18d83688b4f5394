//! `waypost serve` in a workspace, and a minimal client of its API, which signs in as the dashboard does.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::server;

/// Maximum duration of a plan.
const RUN_SECONDS_MAX: u64 = 300;
/// Time between two checks whether a plan has ended.
const LOOK: Duration = Duration::from_millis(20);

/// A server, killed on drop.
pub(super) struct Server {
    child: Child,
    address: String,
    /// The headers of a signed-in person.
    session: Vec<(&'static str, String)>,
    /// Never receives anything: waiting for it is a pause.
    silence: Receiver<()>,
}

/// A response.
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Server {
    pub(super) fn start(waypost: &Path, workspace: &Path, options: &[&str]) -> Result<Self> {
        let mut serve = Command::new(waypost);
        serve.current_dir(workspace).env_clear().env("HOME", workspace);
        serve.args(["--json", "serve", "--listen", "127.0.0.1:0"]).args(options);
        let (child, (address, link)) = server::start(&mut serve, workspace, |reported| {
            let text = |name: &str| reported[name].as_str().map(str::to_owned);
            Some((text("address")?, text("login_file")?))
        })?;
        let mut server = Self { child, address, session: Vec::new(), silence: channel().1 };
        server.sign_in(&std::fs::read_to_string(link)?)?;
        Ok(server)
    }

    /// Exchanges the sign-in link for a session.
    fn sign_in(&mut self, link: &str) -> Result<()> {
        let (site, code) = link.trim().split_once("/#login=").context("no sign-in link")?;
        self.session.push(("Origin", site.to_owned()));
        let answer = self.ask("POST /login HTTP/1.1\r\n", &json!({ "code": code }).to_string())?;
        let body: Value = serde_json::from_slice(&answer.body)?;
        let secret = body["session"].as_str().context("not signed in")?.to_owned();
        let cookie = answer.head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("set-cookie")
                .then(|| value.split(';').next().unwrap_or_default().to_owned())
        });
        self.session.push(("x-waypost-session", secret));
        self.session.push(("Cookie", cookie.context("no cookie")?));
        Ok(())
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn api(&self) -> String {
        format!("http://{}/api/v1", self.address)
    }

    pub(super) fn session(&self) -> &[(&'static str, String)] {
        &self.session
    }

    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    fn ask(&self, head: &str, body: &str) -> Result<Answer> {
        let mut stream = TcpStream::connect(&self.address)?;
        let (host, bytes) = (&self.address, body.len());
        let session = self.session.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let session: String = session.collect();
        write!(
            stream,
            "{head}Host: {host}\r\n{session}Content-Type: application/json\r\n\
             Content-Length: {bytes}\r\nConnection: close\r\n\r\n{body}"
        )?;
        let mut whole = Vec::new();
        stream.read_to_end(&mut whole)?;
        let end =
            whole.windows(4).position(|four| four == b"\r\n\r\n").context("response without a header")?;
        let head = String::from_utf8_lossy(&whole[..end]).into_owned();
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .context("response without a status")?;
        let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = whole.split_off(end + 4);
        Ok(Answer { status, head, body: if chunked { whole_of(&body)? } else { body } })
    }

    fn json(&self, head: &str, body: &str) -> Result<Value> {
        let answer = self.ask(head, body)?;
        let text = String::from_utf8_lossy(&answer.body);
        if !(200..300).contains(&answer.status) {
            bail!("{} returned {}: {text}", head.lines().next().unwrap_or_default(), answer.status);
        }
        Ok(serde_json::from_str(&text)?)
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.json(&format!("POST /api/v1{path} HTTP/1.1\r\n"), &body.to_string())
    }

    fn get(&self, path: &str) -> Result<Value> {
        self.json(&format!("GET /api/v1{path} HTTP/1.1\r\n"), "")
    }

    /// Starts and approves a plan, and returns the seconds from the approval until it is completed.
    pub(super) fn run_plan(&self, plan: &str) -> Result<f64> {
        self.post(&format!("/plans/{plan}/actions/start"), &json!({}))?;
        let seen = self.get(&format!("/plans/{plan}/preview"))?;
        let seen = json!({ "version": seen["version"], "digest": seen["digest"] });
        let begin = Instant::now();
        self.post(&format!("/plans/{plan}/actions/approve"), &seen)?;
        loop {
            let found = self.get(&format!("/plans?text={plan}"))?;
            let phase = found["plans"][0]["phase"].as_str().unwrap_or_default().to_owned();
            match phase.as_str() {
                "completed" => return Ok(begin.elapsed().as_secs_f64()),
                "active" if begin.elapsed().as_secs() < RUN_SECONDS_MAX => {
                    let _waited = self.silence.recv_timeout(LOOK);
                }
                _ => bail!("plan {plan} did not complete: {found}"),
            }
        }
    }

    /// Returns the size of a file's body in this encoding, as transferred.
    pub(super) fn transferred(&self, path: &str, encoding: &str) -> Result<usize> {
        let head = format!("GET {path} HTTP/1.1\r\nAccept: text/html\r\nAccept-Encoding: {encoding}\r\n");
        let answer = self.ask(&head, "")?;
        if answer.status != 200 {
            bail!("{path} returned {}", answer.status);
        }
        Ok(answer.body.len())
    }
}

/// Returns the path of a workspace's store.
pub(super) fn store_path(workspace: &Path) -> PathBuf {
    workspace.join(".waypost/waypost.db")
}

/// Decodes a chunked body.
fn whole_of(mut pieces: &[u8]) -> Result<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = pieces.windows(2).position(|two| two == b"\r\n").context("chunk without a size")?;
        let size = usize::from_str_radix(std::str::from_utf8(&pieces[..end])?.trim(), 16)?;
        let from = end + 2;
        if size == 0 {
            return Ok(whole);
        }
        whole.extend_from_slice(pieces.get(from..from + size).context("truncated chunk")?);
        pieces = &pieces[from + size + 2..];
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _waited = self.child.wait();
    }
}
