//! The link that signs the person who starts a server in to its dashboard. It contains a secret, so it is shown on a
//! terminal only; otherwise it is written to a private file, and logs contain the path.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::load_config::Folders;

/// Where the link is.
pub(super) enum SignInLink {
    /// To be printed on the terminal.
    Printed(String),
    /// In a file that only its owner reads, and that is removed with the server.
    File(PathBuf),
    /// Nowhere: the file cannot be written.
    Unwritable(PathBuf, io::Error),
}

impl SignInLink {
    /// Creates the link. A file is placed in the folder of the tokens and named after the port, which only one server
    /// has.
    pub(super) fn publish(at: SocketAddr, code: &str, folders: &Folders, tokens: &Path) -> Self {
        let mut reachable = at;
        if at.ip().is_unspecified() {
            reachable.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        let url = format!("http://{reachable}/#login={code}");
        if io::stdout().is_terminal() {
            return Self::Printed(url);
        }
        // If the folder cannot be created, neither can the file.
        let _reported_below = folders.prepare();
        let path = tokens.with_file_name(format!("login-{}.url", at.port()));
        match write(&path, &url) {
            Ok(()) => Self::File(path),
            Err(error) => Self::Unwritable(path, error),
        }
    }
}

fn write(path: &Path, url: &str) -> io::Result<()> {
    // A server that was killed leaves its file, which may have other permissions.
    let _absent = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{url}")
}

impl Drop for SignInLink {
    fn drop(&mut self) {
        if let Self::File(path) = self {
            let _removed_already = fs::remove_file(path);
        }
    }
}
