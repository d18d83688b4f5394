//! Starts `waypost serve` in the background.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Maximum time until the server reports its address.
const START_SECONDS_MAX: u64 = 30;

/// Starts a server and reads the JSON line with its address. `take` picks what the caller needs from it. The server's
/// log goes to `serve.log` in the folder.
pub(crate) fn start<T>(
    serve: &mut Command,
    folder: &Path,
    take: impl FnOnce(&Value) -> Option<T>,
) -> Result<(Child, T)> {
    let log = std::fs::File::create(folder.join("serve.log"))?;
    let mut child = serve.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()?;
    let mut output = BufReader::new(child.stdout.take().context("no standard output")?);
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let _gone = output.read_line(&mut line).map(|_| sender.send(line));
        // Keeps the pipe open for as long as the server writes.
        let _rest = std::io::copy(&mut output, &mut std::io::sink());
    });
    let line = receiver.recv_timeout(Duration::from_secs(START_SECONDS_MAX)).unwrap_or_default();
    let reported: Value = serde_json::from_str(&line).unwrap_or_default();
    let Some(taken) = take(&reported) else {
        let _gone = child.kill();
        let _waited = child.wait();
        bail!("waypost serve did not report its address; see {}/serve.log", folder.display());
    };
    Ok((child, taken))
}
