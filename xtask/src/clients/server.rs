//! `waypost serve` in the background, on a port of its own, with a token for each agent.

use std::path::Path;
use std::process::{Child, Command};

use anyhow::{Context, Result};
use serde_json::Value;

use super::workspace::Workspace;
use crate::exec::output;
use crate::server;

/// A server, killed on drop.
pub(super) struct Server {
    child: Child,
    url: String,
    tokens: Vec<String>,
}

impl Server {
    /// Starts a server with these toolsets, for these agents.
    pub(super) fn start(
        waypost: &Path,
        workspace: &Workspace,
        toolsets: &[&str],
        agents: &[&str],
    ) -> Result<Self> {
        let waypost = || {
            let mut command = Command::new(waypost);
            workspace.enter(&mut command);
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
        serve.arg("--files");
        let (child, url) =
            server::start(&mut serve, &workspace.folder, |said| Some(said["url"].as_str()?.to_owned()))?;
        Ok(Self { child, url, tokens })
    }

    /// Returns the address of the MCP endpoint.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the address of the server itself.
    pub(super) fn site(&self) -> &str {
        self.url.trim_end_matches("/mcp")
    }

    /// Returns the tokens, in the order of the agents.
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
