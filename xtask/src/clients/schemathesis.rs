//! Schemathesis: reads the OpenAPI document and sends valid and invalid requests for a while. No request may cause a
//! server error.

use std::path::Path;

use anyhow::{Context, Result};

use super::server::Server;
use super::workspace::Workspace;
use crate::exec::{must, program};
use crate::python;

const PACKAGES: &[&str] = &["schemathesis==4.32.5"];
/// Maximum time of the search, in seconds.
const SECONDS_MAX: &str = "60";
/// Maximum number of requests per operation.
const EXAMPLES_MAX: &str = "25";

pub(super) fn run(waypost: &Path) -> Result<()> {
    let python = python::with_packages("python-schemathesis", PACKAGES)?;
    let workspace = Workspace::empty("schemathesis")?;
    let server = Server::start(waypost, &workspace, &["native"], &["tester"])?;
    let site = server.site();
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
