//! The Python SDK of the protocol, with agents that work together over standard input and output, and over HTTP.

use std::path::Path;

use anyhow::Result;

use super::Place;
use super::server::Server;
use crate::python;
use crate::run::{must, program};

const PACKAGES: &[&str] = &["mcp==2.3.0"];
const AGENTS: &str = include_str!("agents.py");
/// Every plan asks a person before it runs.
const CONFIG: &str = "approval = \"all\"\n";

pub(super) fn run(waypost: &Path) -> Result<()> {
    let python = python::with_packages("python-sdk", PACKAGES)?;
    let place = Place::empty("sdk-stdio")?;
    place.write(".waypost/config.toml", CONFIG)?;
    let script = place.write("../agents.py", AGENTS)?;
    let mut agents = program(&python);
    place.enter(&mut agents);
    agents.arg(&script).arg("stdio").arg(waypost).arg(&place.workspace);
    must("agents with the Python SDK over stdio", &mut agents)?;

    let place = Place::empty("sdk-http")?;
    place.write(".waypost/config.toml", CONFIG)?;
    let server = Server::start(waypost, &place, &["native", "jaato"], &["parent", "implementer"])?;
    let mut agents = program(&python);
    place.enter(&mut agents);
    agents.arg(&script).arg("http").arg(server.url()).args(server.tokens()).arg(&place.workspace);
    must("agents with the Python SDK over HTTP", &mut agents)
}
