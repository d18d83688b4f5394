//! `waypost serve` in the background, on a port of its own, with a token for each agent.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Place;
use crate::run::output;

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
        let mut child = serve.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut said = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut said)?;
        let address =
            serde_json::from_str::<Value>(&said).ok().and_then(|said| Some(said["url"].as_str()?.to_owned()));
        let Some(url) = address else {
            let _gone = child.kill();
            bail!("waypost serve did not say where it listens: {said:?}");
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
