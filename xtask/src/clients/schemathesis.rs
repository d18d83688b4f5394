//! Schemathesis: reads the document of the API and sends what it allows, and what it does not, for a while. No request may
//! be answered with an error of the server.

use std::path::Path;

use anyhow::{Context, Result};

use super::server::Server;
use super::workspace::Workspace;
use crate::exec::{must, program};
use crate::python;

const PACKAGES: &[&str] = &["schemathesis==4.32.5"];
/// How long it may look for something.
const SECONDS_MAX: &str = "60";
/// Requests that each operation is sent at the most.
const EXAMPLES_MAX: &str = "25";

pub(super) fn run(waypost: &Path) -> Result<()> {
    let python = python::with_packages("python-schemathesis", PACKAGES)?;
    let workspace = Workspace::empty("schemathesis")?;
    let server = Server::start(waypost, &workspace, &["native"], &["tester"])?;
    let site = server.url().trim_end_matches("/mcp");
    let token = server.tokens().first().context("no token")?;
    let mut send = program(python.with_file_name("schemathesis"));
    workspace.enter(&mut send);
    send.arg("run").arg(format!("{site}/api/v1/openapi.json"));
    send.args(["--header", &format!("Authorization: Bearer {token}")]);
    // Streams do not end by themselves.
    send.args(["--exclude-path", "/api/v1/events", "--exclude-path-regex", "/log$"]);
    send.args(["--checks", "not_a_server_error", "--max-examples", EXAMPLES_MAX, "--max-time", SECONDS_MAX]);
    send.args(["--request-timeout", "10", "--no-color"]);
    must("fuzz the HTTP API (Schemathesis)", &mut send)
}
