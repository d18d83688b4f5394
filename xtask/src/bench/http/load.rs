//! Runs `wrk` and parses the rate that it prints.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::apt;
use crate::exec::{output, program};

/// Concurrent connections.
const CONNECTIONS: &str = "16";

/// Installs `wrk` if it is missing.
pub(super) fn wrk() -> Result<()> {
    // No option of `wrk` does nothing and succeeds, so it is enough that it starts.
    if program("wrk").arg("--version").output().is_ok() {
        return Ok(());
    }
    apt::install(&["wrk"]).context("the HTTP benchmarks need wrk")
}

/// A load: the same request repeatedly, or the requests of a script.
pub(super) struct Load<'a> {
    pub(super) url: String,
    /// The headers of a signed-in person.
    pub(super) session: &'a [(&'static str, String)],
    pub(super) script: Option<&'a str>,
    pub(super) seconds: u32,
}

impl Load<'_> {
    /// Returns the responses per second. A failed request is an error.
    pub(super) fn run(&self, scratch: &Path) -> Result<f64> {
        let mut wrk = program("wrk");
        wrk.args(["-t1", "-c", CONNECTIONS, "-d", &format!("{}s", self.seconds)]);
        wrk.args(["-H", "Content-Type: application/json"]);
        for (name, value) in self.session {
            wrk.args(["-H", &format!("{name}: {value}")]);
        }
        if let Some(script) = self.script {
            let file = scratch.join("load.lua");
            std::fs::write(&file, script)?;
            wrk.arg("-s").arg(file);
        }
        let printed = output(wrk.arg(&self.url))?;
        let line = |start: &str| printed.lines().find_map(|line| line.trim().strip_prefix(start));
        if let Some(wrong) = line("Non-2xx or 3xx responses:").or_else(|| line("Socket errors:")) {
            bail!("{}: failed requests:{wrong}\n{printed}", self.url);
        }
        let found = line("Requests/sec:").with_context(|| format!("wrk printed no rate: {printed}"))?;
        Ok(found.trim().parse()?)
    }
}
