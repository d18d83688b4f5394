//! Reads `[approval]`. The workspace's file comes with a repository and lies where agents write, so it can ask for more
//! and never for less; everything else here belongs to the account's own files.

use std::path::PathBuf;

use waypost_core::Proof;

use super::reader::{Table, set};
use super::{IN_USER_CONFIG, span};
use crate::layer::Origin;
use crate::settings::{ApprovalPolicy, Config, SealRule};

const POLICIES: [(&str, ApprovalPolicy); 3] =
    [("never", ApprovalPolicy::Never), ("work", ApprovalPolicy::Work), ("all", ApprovalPolicy::All)];
const PROOFS: [(&str, Proof); 4] = [
    ("client", Proof::Client),
    ("presence", Proof::Presence),
    ("signature", Proof::Signature),
    ("touch", Proof::Touch),
];
const SEALS: [(&str, SealRule); 3] =
    [("auto", SealRule::Auto), ("required", SealRule::Required), ("off", SealRule::Off)];
/// The keys that count in the account's own files only.
const ACCOUNT_ONLY: [&str; 7] =
    ["seal", "seal_key", "unattended", "elicitation", "allowed_signers", "signing_key", "valid"];

impl Table<'_> {
    /// Reads `approval = "work"`, or a table with that value as its `policy`.
    pub(super) fn approval_key(&mut self, config: &mut Config) {
        if !self.is_table("approval") {
            return self.policy("approval", config);
        }
        self.section("approval", |table| {
            table.policy("policy", config);
            table.proof(config);
            table.pinned_images(config);
            table.account_only(config);
        });
    }

    fn policy(&mut self, key: &'static str, config: &mut Config) {
        let Some((at, word)) = self.text_at(key) else { return };
        let Some((_, policy)) = POLICIES.into_iter().find(|(name, _)| *name == word) else {
            let what = format!("`approval` is {word:?}, and can be work, all or never");
            return self.wrong(at, what, "for example approval = \"work\"");
        };
        if self.is_of_workspace() && policy < config.approval.policy {
            let what =
                format!("`approval` = {word:?} asks for less approval than the user's own configuration");
            return self.wrong(at, what, IN_USER_CONFIG);
        }
        config.approval.policy = policy;
    }

    /// Reads `proof`; `signed = true` is another word for `proof = "signature"`.
    fn proof(&mut self, config: &mut Config) {
        let at = self.place(if self.is_without("proof") { "signed" } else { "proof" });
        let signed = self.flag("signed").is_some_and(|signed| signed).then_some(Proof::Signature);
        let Some(proof) = self.choice("proof", &PROOFS).max(signed) else { return };
        if !self.is_of_account() && proof < config.approval.proof {
            let what =
                format!("`approval.proof` = \"{proof}\" asks for less than the user's own configuration");
            return self.wrong(at, what, IN_USER_CONFIG);
        }
        config.approval.proof = proof;
    }

    fn pinned_images(&mut self, config: &mut Config) {
        let Some(pinned) = self.flag("pinned_images") else { return };
        if !self.is_of_account() && !pinned && config.approval.pinned_images {
            let what = "`approval.pinned_images` = false allows what the user's own configuration does not";
            return self.wrong(self.place("pinned_images"), what, IN_USER_CONFIG);
        }
        config.approval.pinned_images = pinned;
    }

    fn account_only(&mut self, config: &mut Config) {
        let settings = &mut config.approval;
        let seal = self.choice("seal", &SEALS);
        let unattended = self.flag("unattended");
        let file = |text: String| (!text.is_empty()).then(|| PathBuf::from(text));
        let [seal_key, allowed_signers, signing_key] =
            ["seal_key", "allowed_signers", "signing_key"].map(|key| self.text(key).map(file));
        let valid = self.valid();
        let elicitation = self.elicitation(&mut config.ignored);
        if self.is_of_account() {
            set(&mut settings.seal, seal);
            set(&mut settings.unattended, unattended);
            set(&mut settings.seal_key, seal_key);
            set(&mut settings.allowed_signers, allowed_signers);
            set(&mut settings.signing_key, signing_key);
            set(&mut settings.valid_seconds, valid);
            set(&mut settings.elicitation, elicitation);
            return;
        }
        // Any file may say that nobody approves by elicitation.
        let closes = elicitation.is_some_and(|hosts| hosts.is_empty());
        if closes {
            settings.elicitation.clear();
        }
        let said = |key: &&str| !(self.is_without(key) || closes && *key == "elicitation");
        for key in ACCOUNT_ONLY.into_iter().filter(said) {
            let what = format!("`approval.{key}` counts only in the user's own configuration");
            self.wrong(self.place(key), what, IN_USER_CONFIG);
        }
    }

    fn valid(&mut self) -> Option<u64> {
        let (at, text) = self.text_at("valid")?;
        let seconds = span(&text);
        if seconds.is_none() {
            self.wrong(
                at,
                format!("`approval.valid`: {text:?} is not a duration"),
                "for example valid = \"30d\"",
            );
        }
        seconds
    }

    /// Reads the names of hosts. Earlier versions had `true` and `false` here.
    fn elicitation(&mut self, notes: &mut Vec<String>) -> Option<Vec<String>> {
        const KEY: &str = "elicitation";
        if !self.is_flag(KEY) {
            return self.strings(KEY);
        }
        if self.flag(KEY)? {
            notes.push(
                "approval.elicitation is now a list of hosts; nobody approves by elicitation until one is named"
                    .to_owned(),
            );
        }
        Some(Vec::new())
    }

    /// Whether the file belongs to the account, and so to a person.
    fn is_of_account(&self) -> bool {
        self.reader.layer.origin == Origin::User
    }
}
