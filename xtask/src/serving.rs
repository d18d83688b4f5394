//! `waypost serve` in the background, for as long as somebody needs it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// How long it may take to say where it listens.
const START_SECONDS_MAX: u64 = 30;

/// Starts a server that says where it listens as JSON, of which the caller takes what it needs. Its log is in the folder.
pub(crate) fn start<T>(
    serve: &mut Command,
    folder: &Path,
    take: impl FnOnce(&Value) -> Option<T>,
) -> Result<(Child, T)> {
    let log = std::fs::File::create(folder.join("serve.log"))?;
    let mut child = serve.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()?;
    let mut output = BufReader::new(child.stdout.take().context("no output")?);
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let _gone = output.read_line(&mut line).map(|_| tell.send(line));
        // Kept open for as long as the server writes.
        let _rest = std::io::copy(&mut output, &mut std::io::sink());
    });
    let said = told.recv_timeout(Duration::from_secs(START_SECONDS_MAX)).unwrap_or_default();
    let said: Value = serde_json::from_str(&said).unwrap_or_default();
    let Some(taken) = take(&said) else {
        let _gone = child.kill();
        let _waited = child.wait();
        bail!("waypost serve did not say where it listens; {}/serve.log says why", folder.display());
    };
    Ok((child, taken))
}
