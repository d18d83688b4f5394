//! The link that signs the person who starts a server in to its dashboard. It contains a secret, so it is shown on a
//! terminal only; otherwise it is written to a private file, and logs contain the path.

use std::fs;
use std::io::{self, IsTerminal};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use waypost_cli::actor::account;

/// Where the link is.
pub(super) enum SignInLink {
    /// To be printed on the terminal.
    Printed(String),
    /// In a file that only its owner reads, and that is removed with the server.
    File(PathBuf),
    /// Nowhere, for this reason.
    Unwritable(String),
}

/// The link with this code to a server at this address.
pub(super) fn url(at: SocketAddr, code: &str) -> String {
    let mut reachable = at;
    if at.ip().is_unspecified() {
        reachable.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    format!("http://{reachable}/#login={code}")
}

impl SignInLink {
    /// Creates the link. A file is placed in the folder of the tokens and named after the port, which only one server
    /// has.
    pub(super) fn publish(at: SocketAddr, url: String, tokens: Option<&Path>) -> Self {
        if io::stdout().is_terminal() {
            return Self::Printed(url);
        }
        let Some(tokens) = tokens else {
            let why = "there is no terminal to print it on, and this account has no home to write it to";
            return Self::Unwritable(why.to_owned());
        };
        let path = tokens.with_file_name(format!("login-{}.url", at.port()));
        match account().write(&path, format!("{url}\n").as_bytes()) {
            Ok(()) => Self::File(path),
            Err(error) => Self::Unwritable(format!("{error} ({})", error.hint())),
        }
    }
}

impl Drop for SignInLink {
    fn drop(&mut self) {
        if let Self::File(path) = self {
            let _removed_already = fs::remove_file(path);
        }
    }
}
