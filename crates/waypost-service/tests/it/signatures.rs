//! Signed approvals: which signatures count on this machine, and which proof they give.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use ed25519_dalek::{Signer as _, SigningKey};
use waypost_account::{Account, fingerprint};
use waypost_config::ApprovalSettings;
use waypost_core::canonical::sha256;
use waypost_core::{
    Actor, Approval, ApprovalKind, ApprovalSignature, ApprovedWork, Json, PlanId, Proof, Timestamp,
};
use waypost_service::{Approved, Authenticator, NotAuthentic};

const ADA: &str = "ada@example.org";
/// The key of all tests.
const SEED: [u8; 32] = [7; 32];

fn now() -> Timestamp {
    Timestamp::parse("2026-11-16T12:00:00Z").unwrap()
}

/// A string with its length before it, as SSH writes them.
fn string(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// What holds the key: a file, or a security key that signs with these flags.
#[derive(Clone, Copy)]
enum Holder {
    File,
    SecurityKey { flags: u8 },
}

impl Holder {
    fn algorithm(self) -> &'static str {
        match self {
            Self::File => "ssh-ed25519",
            Self::SecurityKey { .. } => "sk-ssh-ed25519@openssh.com",
        }
    }

    fn public_bytes(self) -> Vec<u8> {
        let key = SigningKey::from_bytes(&SEED);
        let application = match self {
            Self::File => Vec::new(),
            Self::SecurityKey { .. } => string(b"ssh:"),
        };
        [string(self.algorithm().as_bytes()), string(key.verifying_key().as_bytes()), application].concat()
    }

    fn public(self) -> String {
        format!("{} {}", self.algorithm(), base64(&self.public_bytes()))
    }

    /// Signs a message as `ssh-keygen -Y sign -n NAMESPACE` would.
    fn sign(self, namespace: &str, message: &str) -> String {
        let header = [string(namespace.as_bytes()), string(b""), string(b"sha256")].concat();
        let signed = [&b"SSHSIG"[..], &header, &string(&sha256(message.as_bytes()))].concat();
        let (data, trailer) = match self {
            Self::File => (signed, Vec::new()),
            Self::SecurityKey { flags } => {
                let trailer = [&[flags][..], &7_u32.to_be_bytes()].concat();
                ([&sha256(b"ssh:")[..], &trailer, &sha256(&signed)].concat(), trailer)
            }
        };
        let value = SigningKey::from_bytes(&SEED).sign(&data).to_bytes();
        let value = [string(self.algorithm().as_bytes()), string(&value), trailer].concat();
        let whole =
            [&b"SSHSIG\0\0\0\x01"[..], &string(&self.public_bytes()), &header, &string(&value)].concat();
        format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", base64(&whole))
    }
}

/// An account with signers, in a private folder that is gone at the end.
struct Place {
    root: PathBuf,
    settings: ApprovalSettings,
    authenticator: Authenticator,
    plan: PlanId,
}

impl Place {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("waypost-signatures-{}-{number}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let root = fs::canonicalize(root).unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
        let account = Account {
            home: Some(root.clone()),
            private_group: None,
            examined_below: root.parent().unwrap().to_owned(),
            ..Account::current()
        };
        let allowed_signers = Some(root.join("allowed_signers"));
        let settings =
            ApprovalSettings { proof: Proof::Signature, allowed_signers, ..ApprovalSettings::default() };
        let authenticator = Authenticator::new(&account, "memory:");
        Self { root, settings, authenticator, plan: PlanId::new("p").unwrap() }
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        let file = self.root.join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn allow(&self, text: &str) {
        self.write("allowed_signers", text, 0o644);
    }

    /// A record of a person that says it is signed by ada; `sign` makes the signature of its message.
    fn record(&self, sign: impl FnOnce(&str) -> String) -> Approval {
        let by = Actor::person("ada");
        let work = ApprovedWork {
            digest: format!("sha256:{}", "1".repeat(64)),
            definitions: Json::empty_object(),
            proof: Proof::Touch,
            via: "terminal".to_owned(),
            kind: ApprovalKind::Explicit,
            attestation: None,
            gates: Vec::new(),
            as_of: None,
        };
        let approved = Approved { plan: &self.plan, by: &by, version: 1, note: "" };
        let mut work = self.authenticator.attest(&self.settings, approved, work, now(), None).unwrap();
        let signature = ApprovalSignature {
            armored: String::new(),
            fingerprint: String::new(),
            principal: ADA.to_owned(),
            portable: false,
        };
        work.attestation.as_mut().unwrap().signature = Some(signature.clone());
        let message = self.authenticator.message(approved, &work).unwrap().unwrap();
        let armored = sign(&message);
        work.attestation.as_mut().unwrap().signature = Some(ApprovalSignature { armored, ..signature });
        Approval { by, at: now(), version: 1, note: String::new(), work: Some(Box::new(work)) }
    }

    fn verify(&self, approval: &Approval) -> Result<Proof, String> {
        let found = self.authenticator.verify(&self.settings, &self.plan, approval, now());
        found.map_err(|why| match why {
            NotAuthentic::Signature(why) => why,
            other => format!("{other:?}"),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.root);
    }
}

/// A signature that `ssh-keygen` made with a key that is not accepted.
fn vector(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../waypost-account/tests/vectors");
    fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn what_a_signature_lacks_is_named() {
    let (key, sign) = (Holder::File.public(), |message: &str| Holder::File.sign("waypost", message));
    let name = fingerprint(&key).unwrap();
    let ada = format!("{ADA} {key}\n");
    let place = Place::new();
    let check = |what: &str, signers: &str, approval: &Approval, expected: Result<Proof, &str>| {
        place.allow(&signers.replace("KEY", &key));
        let expected = expected.map_err(|text| text.replace("KEY", &name));
        assert_eq!(place.verify(approval), expected, "{what}");
    };
    let signed = place.record(sign);
    check("signed by an allowed key", &ada, &signed, Ok(Proof::Signature));
    let of_git = place.record(|message| Holder::File.sign("git", message));
    check("made for git", &ada, &of_git, Err("the signature was made for \"git\", not for \"waypost\""));
    check("unlisted", "", &signed, Err("the signature is by KEY, which is not an allowed signer"));
    place.write("revoked_keys", &key, 0o644);
    check("revoked", &ada, &signed, Err("the key KEY was revoked"));
    fs::remove_file(place.root.join("revoked_keys")).unwrap();
    let past = format!("{ADA} valid-before=\"20200101Z\" {key}\n");
    check("out of date", &past, &signed, Err("the key KEY was valid until 2020-01-01T00:00:00Z"));
    let rsa = place.record(|_| vector("rsa.sig"));
    check("RSA", &ada, &rsa, Err("signatures by ssh-rsa keys are not accepted"));
    let certificate = place.record(|_| vector("cert.sig"));
    let refused = "signatures by ssh-ed25519-cert-v01@openssh.com keys are not accepted";
    check("a certificate", &ada, &certificate, Err(refused));
    let grace = "grace@example.org KEY\n";
    check("another principal", grace, &signed, Err("the key KEY may not sign as ada@example.org"));
    let mut other = signed.clone();
    other.work.as_mut().unwrap().digest = format!("sha256:{}", "2".repeat(64));
    check("another digest", &ada, &other, Err("the signature by KEY is not one of this text"));
    let unsigned = Approval { work: None, ..signed.clone() };
    check("nothing at all", &ada, &unsigned, Err("Unattested"));
    check("signed by an allowed key again", &ada, &signed, Ok(Proof::Signature));
}

#[test]
fn only_a_touched_security_key_proves_touch() {
    let mut place = Place::new();
    place.settings.proof = Proof::Touch;
    let flagged = |flags| Holder::SecurityKey { flags };
    let lines = [Holder::File, flagged(0)].map(|holder| format!("{ADA} {}\n", holder.public()));
    place.allow(&lines.concat());
    for (holder, proof) in [
        (Holder::File, Proof::Signature),
        (flagged(0), Proof::Signature),
        (flagged(1), Proof::Touch),
        (flagged(4), Proof::Signature),
    ] {
        // The record says touch in each case; only the signature counts.
        let record = place.record(|message| holder.sign("waypost", message));
        assert_eq!(place.verify(&record), Ok(proof));
    }
}

#[test]
fn a_change_of_the_signers_is_noticed_at_the_next_start() {
    let place = Place::new();
    let ada = format!("{ADA} {}\n", Holder::File.public());
    let record = place.record(|message| Holder::File.sign("waypost", message));
    let refused = |expected: &str| {
        let why = place.verify(&record).unwrap_err();
        assert!(why.contains(expected), "{why}");
    };
    refused("is not an allowed signer");
    place.allow(&ada);
    assert_eq!(place.verify(&record), Ok(Proof::Signature));
    // A removed key, a line that cannot be read, and a file that others can write.
    place.allow("# nobody\n");
    refused("is not an allowed signer");
    place.allow(&format!("{ada}bad\n"));
    refused("allowed_signers:2: there is no key");
    place.allow(&ada);
    assert_eq!(place.verify(&record), Ok(Proof::Signature));
    place.write("allowed_signers", &ada, 0o664);
    refused("others can write");
    place.allow(&ada);
    place.write("revoked_keys", &Holder::File.public(), 0o644);
    refused("was revoked");
    fs::remove_file(place.root.join("revoked_keys")).unwrap();
    assert_eq!(place.verify(&record), Ok(Proof::Signature));
    fs::remove_file(place.root.join("allowed_signers")).unwrap();
    refused("is not an allowed signer");
    // As it would be without one of several keys.
    place.allow(&ada);
    let without = place.authenticator.clone().without_key(fingerprint(&Holder::File.public()).unwrap());
    assert!(without.verify(&place.settings, &place.plan, &record, now()).is_err());
    assert_eq!(place.verify(&record), Ok(Proof::Signature));
}
