//! Opens the dashboard in the person's browser. The sign-in link contains a secret, and every user of a machine sees the
//! arguments of programs: the browser gets a private page that leads to the link.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use waypost_cli::actor::account;
use waypost_cli::output::Output;

/// The program that opens a file as the desktop does.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// The page, which is removed with the server.
pub(super) struct SignInPage {
    path: PathBuf,
}

impl SignInPage {
    /// Writes the page into the folder of the tokens and lets the desktop open it. What goes wrong is reported: the
    /// server does not depend on it.
    pub(super) fn open(url: &str, port: u16, tokens: Option<&Path>, out: Output) -> Option<Self> {
        let Some(tokens) = tokens else {
            out.note_now(
                "no browser was opened: this account has no home for the private page that leads to the link",
            );
            return None;
        };
        let page = Self { path: tokens.with_file_name(format!("login-{port}.html")) };
        let text = format!(
            "<!doctype html><meta charset=\"utf-8\"><title>Waypost</title>\n\
             <meta http-equiv=\"refresh\" content=\"0;url={url}\">\n<a href=\"{url}\">Open the dashboard</a>\n"
        );
        if let Err(error) = account().write(&page.path, text.as_bytes()) {
            out.note_now(format!("no browser was opened: {error} ({})", error.hint()));
            return None;
        }
        let mut opener = Command::new(OPENER);
        opener.arg(&page.path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match opener.spawn() {
            // It may last as long as the browser.
            Ok(mut child) => drop(std::thread::spawn(move || match child.wait() {
                Ok(status) if status.success() => {}
                Ok(status) => failed(&out, &status.to_string()),
                Err(error) => failed(&out, &error.to_string()),
            })),
            Err(error) => failed(&out, &error.to_string()),
        }
        Some(page)
    }
}

fn failed(out: &Output, why: &str) {
    out.note_now(format!("no browser was opened: {OPENER}: {why}; open the sign-in link yourself"));
}

impl Drop for SignInPage {
    fn drop(&mut self) {
        let _removed_already = fs::remove_file(&self.path);
    }
}
