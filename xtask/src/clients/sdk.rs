//! Agents that work together through the MCP Python SDK, over stdio and over HTTP.

use std::path::Path;

use anyhow::Result;

use super::server::Server;
use super::workspace::Workspace;
use crate::exec::{must, program};
use crate::python;

const PACKAGES: &[&str] = &["mcp==2.3.0"];
const AGENTS: &str = include_str!("agents.py");
/// Every plan needs a person's approval before it runs.
const CONFIG: &str = "approval = \"all\"\n";

pub(super) fn run(waypost: &Path) -> Result<()> {
    let python = python::with_packages("python-sdk", PACKAGES)?;
    let workspace = Workspace::empty("sdk-stdio")?;
    workspace.write(".waypost/config.toml", CONFIG)?;
    let script = workspace.write("../agents.py", AGENTS)?;
    let mut agents = program(&python);
    workspace.enter(&mut agents);
    agents.arg(&script).arg("stdio").arg(waypost).arg(&workspace.folder);
    must("run agents with the Python SDK over stdio", &mut agents)?;

    let workspace = Workspace::empty("sdk-http")?;
    workspace.write(".waypost/config.toml", CONFIG)?;
    let server = Server::start(waypost, &workspace, &["native", "jaato"], &["parent", "implementer"])?;
    let mut agents = program(&python);
    workspace.enter(&mut agents);
    agents.arg(&script).arg("http").arg(waypost).arg(&workspace.folder);
    agents.arg(server.url()).args(server.tokens());
    must("run agents with the Python SDK over HTTP", &mut agents)
}
