//! Programs that are not ours talk to the built binary: the MCP Inspector, the Python SDK, Schemathesis, and the official conformance
//! suite. Nothing here knows the inside of Waypost.

mod conformance;
mod inspector;
mod schemathesis;
mod sdk;
mod server;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::npm::Packages;
use crate::run::workshop;

/// The clients that come from npm.
const PACKAGES: &[(&str, &str)] =
    &[("@modelcontextprotocol/inspector", "2.12.0"), ("@modelcontextprotocol/conformance", "0.1.16")];

/// All of them.
pub(crate) fn run(waypost: &Path) -> Result<()> {
    let packages = Packages::install("node-clients", PACKAGES)?;
    inspector::run(&packages, waypost)?;
    sdk::run(waypost)?;
    schemathesis::run(waypost)?;
    conformance::run(&packages, waypost)
}

/// A folder of its own: a workspace with nothing in it, and a home.
pub(crate) struct Place {
    pub(crate) workspace: PathBuf,
    home: PathBuf,
}

impl Place {
    /// An empty one.
    pub(crate) fn empty(name: &str) -> Result<Self> {
        let folder = workshop().join("clients").join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        let place = Self { workspace: folder.join("workspace"), home: folder.join("home") };
        std::fs::create_dir_all(place.workspace.join(".waypost"))?;
        std::fs::create_dir_all(&place.home)?;
        Ok(place)
    }

    /// Puts a file into the workspace.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let file = self.workspace.join(name);
        std::fs::write(&file, text)?;
        Ok(file)
    }

    /// Lets a program see no other workspace, home or setting than these.
    pub(crate) fn enter(&self, command: &mut Command) {
        command.current_dir(&self.workspace).env_clear();
        command.env("HOME", &self.home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    }
}
