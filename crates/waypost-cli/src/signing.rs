//! Options for signing what a person decides, with `ssh-keygen`.

use std::path::{Path, PathBuf};

use clap::Args;
use waypost_account::AllowedSigners;
use waypost_config::ApprovalSettings;
use waypost_service::{ServiceError, Signing, WriteReply};

use crate::actor::account;
use crate::context::PlanHandle;
use crate::error::{Failure, Outcome};
use crate::git_config;

// The key of a command whose option `--sign` signs. A doc comment would become the help text of that command.
#[derive(Debug, Args)]
pub struct SigningKey {
    /// Key to sign with: a private key, or a public key whose private one is in the ssh-agent [default: approval.signing_key,
    /// then the key with which git signs]
    #[arg(long, value_name = "FILE", requires = "sign")]
    key: Option<PathBuf>,
}

impl SigningKey {
    /// Calls the service with the key and the principal that it belongs to.
    pub fn sign(
        &self,
        found: &PlanHandle,
        act: impl FnOnce(&Signing<'_>) -> Result<WriteReply, ServiceError>,
    ) -> Outcome<WriteReply> {
        let settings = found.service.config()?.approval.clone();
        let named = self.key.as_ref().or(settings.signing_key.as_ref()).cloned();
        let Some(key) = named.or_else(git_config::signing_key) else {
            let hint = "add --key FILE, or set approval.signing_key in your configuration";
            return Err(Failure::usage("--sign needs a key", hint));
        };
        let principal = principal(&settings, &key)?;
        let variable = |name: &str| std::env::var_os(name);
        Ok(act(&Signing { key: &key, principal: &principal, portable: false, variable: &variable })?)
    }
}

/// The name under which the allowed signers list a key.
fn principal(settings: &ApprovalSettings, key: &Path) -> Outcome<String> {
    let public = public_file(key);
    let text = std::fs::read_to_string(&public).map_err(|error| Failure::file(&public, &error))?;
    let signers = AllowedSigners::load(account(), settings.allowed_signers.as_deref());
    let (signers, _) = signers.map_err(|error| Failure::failed(error.to_string(), "correct the file"))?;
    signers.principal_of(&text).ok_or_else(|| {
        let message = format!("{} is not an allowed signer", public.display());
        Failure::failed(message, "add its line to ~/.config/waypost/allowed_signers: PRINCIPAL KEY")
    })
}

/// The file of the public key that belongs to a key.
pub fn public_file(key: &Path) -> PathBuf {
    if key.extension().is_some_and(|ending| ending == "pub") {
        key.to_owned()
    } else {
        let mut name = key.as_os_str().to_owned();
        name.push(".pub");
        PathBuf::from(name)
    }
}
