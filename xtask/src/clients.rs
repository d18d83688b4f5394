//! Tests the built binary with third-party clients: the MCP Inspector, the Python SDK, Schemathesis, and the official
//! conformance suite. Uses none of Waypost's own code.

mod conformance;
mod inspector;
mod schemathesis;
mod sdk;
mod server;
mod workspace;

use std::path::Path;

use anyhow::Result;

use crate::npm::Packages;

/// The clients that come from npm.
const PACKAGES: &[(&str, &str)] =
    &[("@modelcontextprotocol/inspector", "2.12.0"), ("@modelcontextprotocol/conformance", "0.1.16")];

/// Runs the client that people use to try a server by hand.
pub(crate) fn run_one(waypost: &Path) -> Result<()> {
    inspector::run(&Packages::install("node-clients", PACKAGES)?, waypost)
}

/// Runs all clients.
pub(crate) fn run(waypost: &Path) -> Result<()> {
    let packages = Packages::install("node-clients", PACKAGES)?;
    inspector::run(&packages, waypost)?;
    sdk::run(waypost)?;
    schemathesis::run(waypost)?;
    conformance::run(&packages, waypost)
}
