//! Signs a message with `ssh-keygen`, the program that git uses: ssh-agent, passphrases, PKCS#11 and security keys work
//! as they do there. The result is verified before it is returned.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use waypost_core::Timestamp;

use crate::allowed_signers::{AllowedSigners, RevokedKeys};
use crate::signature::{BadSignature, NAMESPACE, Verified, verify};

/// The program that signs.
const PROGRAM: &str = "ssh-keygen";
/// The variables that it sees.
const VARIABLES: [&str; 7] =
    ["PATH", "HOME", "TERM", "SSH_AUTH_SOCK", "SSH_ASKPASS", "DISPLAY", "WAYLAND_DISPLAY"];

/// Why nothing was signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    #[error("cannot run {PROGRAM}: {0}")]
    NotStarted(io::Error),
    /// It has told the reason on standard error.
    #[error("{PROGRAM} did not sign ({0})")]
    Failed(std::process::ExitStatus),
    #[error("{PROGRAM} signed, but the signature does not count here: {0}")]
    NotAccepted(#[from] BadSignature),
}

/// Signs a message and verifies the signature as a worker would. `key` is the private key, or a public key whose private
/// one the ssh-agent holds. Questions go to the terminal.
pub fn sign(
    message: &str,
    key: &Path,
    variable: impl Fn(&str) -> Option<OsString>,
    signer: &str,
    (signers, revoked): (&AllowedSigners, &RevokedKeys),
    now: Timestamp,
) -> Result<(String, Verified), SignError> {
    let mut command = Command::new(PROGRAM);
    command.args(["-Y", "sign", "-n", NAMESPACE, "-f"]).arg(key).env_clear();
    command.envs(VARIABLES.iter().filter_map(|name| Some((name, variable(name)?))));
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(SignError::NotStarted)?;
    if let Some(mut stdin) = child.stdin.take() {
        // If it ended before it read everything, its exit status says why.
        let _unread = stdin.write_all(message.as_bytes());
    }
    let output = child.wait_with_output().map_err(SignError::NotStarted)?;
    if !output.status.success() {
        return Err(SignError::Failed(output.status));
    }
    let verified = verify(&output.stdout, message.as_bytes(), signer, signers, revoked, now)?;
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), verified))
}
