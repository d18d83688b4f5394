//! `waypost serve` in the background, on a port of its own, with a token for each agent.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Place;
use crate::run::output;

/// How long it may take to say where it listens.
const START_SECONDS_MAX: u64 = 30;

/// A server that ends with this.
pub(super) struct Server {
    child: Child,
    url: String,
    tokens: Vec<String>,
}

impl Server {
    /// Starts one with these sets of tools, for these agents.
    pub(super) fn start(waypost: &Path, place: &Place, toolsets: &[&str], agents: &[&str]) -> Result<Self> {
        let waypost = || {
            let mut command = Command::new(waypost);
            place.enter(&mut command);
            command
        };
        let mut tokens = Vec::new();
        for agent in agents {
            let mut make = waypost();
            let made =
                output(make.args(["--json", "--as", "person:tester", "token", "new", "--agent", agent]))?;
            let made: Value = serde_json::from_str(&made)?;
            tokens.push(made["token"].as_str().context("no token")?.to_owned());
        }
        let mut serve = waypost();
        serve.args(["--json", "serve", "--listen", "127.0.0.1:0", "--toolset", &toolsets.join(",")]);
        let log = std::fs::File::create(place.workspace.join("serve.log"))?;
        let mut child = serve.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()?;
        let mut output = BufReader::new(child.stdout.take().context("no output")?);
        let (tell, told) = channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let _gone = output.read_line(&mut line).map(|_| tell.send(line));
            // Kept open for as long as the server writes.
            let _rest = std::io::copy(&mut output, &mut std::io::sink());
        });
        let said = told.recv_timeout(Duration::from_secs(START_SECONDS_MAX)).unwrap_or_default();
        let said: Value = serde_json::from_str(&said).unwrap_or_default();
        let Some(url) = said["url"].as_str().map(str::to_owned) else {
            let _gone = child.kill();
            bail!(
                "waypost serve did not say where it listens; {}/serve.log says why",
                place.workspace.display()
            );
        };
        Ok(Self { child, url, tokens })
    }

    /// Where the tools are.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The tokens, in the order of the agents.
    pub(super) fn tokens(&self) -> &[String] {
        &self.tokens
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _waited = self.child.wait();
    }
}
