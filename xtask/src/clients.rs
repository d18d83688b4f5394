//! Tests the built binary with clients: the MCP Inspector, the Python SDK, Schemathesis, the official conformance suite, the
//! Python and TypeScript clients that we distribute, and agents of four SDKs. Uses none of Waypost's own code.

mod conformance;
mod inspector;
mod lossy_proxy;
mod packages;
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
    let from_npm = Packages::install("node-clients", PACKAGES)?;
    inspector::run(&from_npm, waypost)?;
    sdk::run(waypost)?;
    packages::run(waypost)?;
    crate::agent_hosts::run(crate::agent_hosts::SDKS)?;
    schemathesis::run(waypost)?;
    conformance::run(&from_npm, waypost)
}

/// Runs only the Python and TypeScript clients.
pub(crate) fn run_packages(waypost: &Path) -> Result<()> {
    packages::run(waypost)
}
