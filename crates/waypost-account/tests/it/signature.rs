//! SSH signatures: vectors of the real `ssh-keygen`, signatures of security keys made here, and mutations that are judged
//! by both.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ed25519_dalek::Signer as _;
use waypost_account::{
    ARMOUR_BYTES_MAX, AllowedSigners, BadSignature, RevokedKeys, SIGNERS_MAX, SignerFileError, Verified,
    sign, verify,
};
use waypost_core::Timestamp;
use waypost_core::canonical::sha256;
use waypost_testkit::SeededRng;

use crate::{Scratch, set_mode};

/// How many mutations are compared with `ssh-keygen`, unless `WAYPOST_MUTATIONS` says otherwise.
const MUTATIONS: usize = 300;
/// How many mutations only must not panic.
const MUTATIONS_ALONE: usize = 20_000;
const ADA: &str = "ada@example.org";
/// The time of all tests, as the library and as `ssh-keygen` want it.
const NOW: (&str, &str) = ("2026-11-16T12:00:00Z", "20261116120000Z");

fn now() -> Timestamp {
    Timestamp::parse(NOW.0).unwrap()
}

fn vector(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name);
    fs::read_to_string(path).unwrap()
}

fn signers(text: &str) -> AllowedSigners {
    AllowedSigners::parse(Path::new("signers"), text.as_bytes()).unwrap()
}

fn judge(armour: &str, signers: &str) -> Result<Verified, BadSignature> {
    let signers = self::signers(signers);
    verify(armour.as_bytes(), vector("message").as_bytes(), ADA, &signers, &RevokedKeys::default(), now())
}

#[track_caller]
fn check(vector_name: &str, key: &str, expected: Result<bool, &str>) {
    let key = if key.is_empty() { String::new() } else { vector(key) };
    let line = if key.is_empty() { String::new() } else { format!("{ADA} {key}") };
    let found = judge(&vector(vector_name), &line).map(|verified| verified.touch);
    let found = found.map_err(|error| error.to_string());
    assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|text| *text));
}

#[test]
fn signatures_of_accepted_algorithms_verify() {
    check("ed25519.sig", "ed25519.pub", Ok(false));
    check("ed25519-sha256.sig", "ed25519.pub", Ok(false));
    check("ecdsa-p256.sig", "ecdsa-p256.pub", Ok(false));
}

#[test]
#[ignore = "needs ssh-keygen"]
fn everything_else_is_refused_by_its_name() {
    check("rsa.sig", "rsa.pub", Err("signatures by ssh-rsa keys are not accepted"));
    check("dsa.sig", "dsa.pub", Err("signatures by ssh-dss keys are not accepted"));
    check("ecdsa-p384.sig", "ecdsa-p384.pub", Err("signatures by ecdsa-sha2-nistp384 keys are not accepted"));
    let certificate = "signatures by ssh-ed25519-cert-v01@openssh.com keys are not accepted";
    check("cert.sig", "ed25519.pub", Err(certificate));
    check("ed25519-git.sig", "ed25519.pub", Err("the signature was made for \"git\", not for \"waypost\""));
    let key = fingerprint("ed25519.pub");
    let unlisted = format!("the signature is by {key}, which is not an allowed signer");
    check("ed25519.sig", "ecdsa-p256.pub", Err(&unlisted));
    check("ed25519.sig", "", Err(&unlisted));
}

/// The fingerprint of a key as `ssh-keygen` prints it.
fn fingerprint(key: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(key);
    let output = Command::new("ssh-keygen").args(["-l", "-f"]).arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split(' ').nth(1).unwrap().to_owned()
}

#[test]
#[ignore = "needs ssh-keygen"]
fn a_line_says_whose_key_counts_where_and_when() {
    let (key, name) = (vector("ed25519.pub"), fingerprint("ed25519.pub"));
    let armour = vector("ed25519.sig");
    let check = |line: &str, expected: Result<(), &str>| {
        let found = judge(&armour, &line.replace("KEY", &key)).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(|text| text.replace("KEY", &name)), "{line}");
    };
    for line in [
        "ada@example.org KEY",
        "*@example.org KEY",
        "grace,ada@example.??? KEY",
        "\"ada@example.org\" KEY",
        "ada@example.org namespaces=\"git,waypost\" KEY",
        "ada@example.org NAMESPACES=\"way*\",valid-after=\"20261116\",valid-before=\"20261117Z\" KEY",
        "ada@example.org valid-before=\"20261116120000Z\" KEY",
        "# a comment\n\n\tada@example.org\tKEY\r",
        // One line that fits is enough.
        "grace KEY\nada@example.org valid-before=\"20200101Z\" KEY\nada@example.org KEY",
    ] {
        check(line, Ok(()));
    }
    let principal = Err("the key KEY may not sign as ada@example.org");
    check("grace KEY", principal);
    check("!ada@*,*@example.org KEY", principal);
    check("ada KEY", principal);
    check("ada@example.org namespaces=\"git\" KEY", Err("the key KEY may not sign in the namespace waypost"));
    check(
        "ada@example.org valid-after=\"20261116120001Z\" KEY",
        Err("the key KEY is valid from 2026-11-16T12:00:01Z"),
    );
    check(
        "ada@example.org valid-before=\"202611161159Z\" KEY",
        Err("the key KEY was valid until 2026-11-16T11:59:00Z"),
    );
}

#[test]
fn a_bad_line_makes_the_file_an_error() {
    let key = vector("ed25519.pub");
    let check = |line: &str, expected: &str| {
        let text = format!("# first\n{}", line.replace("KEY", &key));
        let found = AllowedSigners::parse(Path::new("signers"), text.as_bytes()).err();
        assert_eq!(found.map(|error| error.to_string()).as_deref(), Some(expected), "{line}");
    };
    check("ada", "signers:2: there is no key");
    check("ada ssh-ed25519 AAAA", "signers:2: unknown option \"ssh-ed25519\"");
    check("ada cert-authority KEY", "signers:2: certificates are not accepted");
    check("ada agent-forwarding KEY", "signers:2: unknown option \"agent-forwarding\"");
    check("ada namespaces=waypost KEY", "signers:2: the value of an option is not quoted");
    check("ada namespaces=\"waypost KEY", "signers:2: there is no key");
    check("ada namespaces=\"a\",namespaces=\"b\" KEY", "signers:2: two namespaces options");
    check("ada namespaces=\"a\", KEY", "signers:2: unknown option \"\"");
    check("ada namespaces=\"a\"b KEY", "signers:2: unexpected \"b\"");
    check(
        "ada valid-after=\"20270101Z\",valid-before=\"20260101Z\" KEY",
        "signers:2: valid-before is before valid-after",
    );
    for time in ["2026", "20261301", "2026010112", "20260101Q", "19700101Z", "2026-1-1"] {
        let expected = format!("signers:2: {time:?} is not a time such as 20261231 or 202612312359Z");
        check(&format!("ada valid-after=\"{time}\" KEY"), &expected);
    }
    check(
        &format!("ada {}", vector("cert.pub").trim()),
        "signers:2: unknown option \"ssh-ed25519-cert-v01@openssh.com\"",
    );
    let revoked = RevokedKeys::parse(Path::new("revoked_keys"), b"nonsense\n").err().unwrap().to_string();
    assert_eq!(revoked, "revoked_keys:1: this is not a public key");
    let bytes = RevokedKeys::parse(Path::new("revoked_keys"), b"\n\xff").err().unwrap().to_string();
    assert_eq!(bytes, "revoked_keys:2: this is not UTF-8");
}

#[test]
fn files_and_signatures_have_a_maximum_size() {
    let line = format!("{ADA} {}", vector("ed25519.pub"));
    let parse = |count: usize| AllowedSigners::parse(Path::new("signers"), line.repeat(count).as_bytes());
    assert!(parse(SIGNERS_MAX).is_ok());
    let said = parse(SIGNERS_MAX + 1).err().unwrap().to_string();
    assert_eq!(said, "signers:10001: a file has at most 10000 keys");
    let armour = vector("ed25519.sig");
    let padded = |length: usize| format!("{armour}{}", "\n".repeat(length - armour.len()));
    assert!(judge(&padded(ARMOUR_BYTES_MAX), &line).is_ok());
    assert_eq!(judge(&padded(ARMOUR_BYTES_MAX + 1), &line), Err(BadSignature::TooLong(ARMOUR_BYTES_MAX + 1)));
}

#[test]
#[ignore = "needs ssh-keygen"]
fn a_revoked_key_and_another_text_do_not_count() {
    let key = vector("ed25519.pub");
    let signers = signers(&format!("{ADA} {key}"));
    let revoked = RevokedKeys::parse(Path::new("revoked_keys"), key.as_bytes()).unwrap();
    let (armour, message) = (vector("ed25519.sig"), vector("message"));
    let judge = |message: &str, revoked: &RevokedKeys| {
        verify(armour.as_bytes(), message.as_bytes(), ADA, &signers, revoked, now())
            .map_err(|e| e.to_string())
    };
    assert!(judge(&message, &RevokedKeys::default()).is_ok());
    let name = fingerprint("ed25519.pub");
    assert_eq!(judge(&message, &revoked), Err(format!("the key {name} was revoked")));
    let other = judge(&message.replace("kq3", "kq4"), &RevokedKeys::default());
    assert_eq!(other, Err(format!("the signature by {name} is not one of this text")));
}

#[test]
fn signers_are_read_from_account_files_that_nobody_else_can_write() {
    let scratch = Scratch::new();
    let folder = scratch.home().join(".config/waypost");
    fs::create_dir_all(&folder).unwrap();
    for folder in [folder.parent().unwrap(), &folder] {
        set_mode(folder, 0o755);
    }
    let load = || AllowedSigners::load(&scratch.account, Some(&folder.join("allowed_signers")));
    let judge = || {
        let (signers, revoked) = load()?;
        let message = vector("message");
        let armour = vector("ed25519.sig");
        Ok::<_, SignerFileError>(
            verify(armour.as_bytes(), message.as_bytes(), ADA, &signers, &revoked, now()).is_ok(),
        )
    };
    assert!(!judge().unwrap(), "without a file nobody may sign");
    let file = folder.join("allowed_signers");
    let put = |path: &Path, text: &str| {
        fs::write(path, text).unwrap();
        set_mode(path, 0o644);
    };
    put(&file, &format!("{ADA} {}", vector("ed25519.pub")));
    assert!(judge().unwrap());
    set_mode(&file, 0o664);
    let said = judge().unwrap_err();
    assert!(matches!(&said, SignerFileError::File(error) if error.code() == "insecure_file"), "{said}");
    set_mode(&file, 0o644);
    put(&folder.join("revoked_keys"), &vector("ed25519.pub"));
    assert!(!judge().unwrap(), "revocation wins");
    put(&folder.join("revoked_keys"), "bad");
    assert!(judge().unwrap_err().to_string().ends_with("revoked_keys:1: this is not a public key"));
}

/// A string with its length before it, as SSH writes them.
fn string(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// A number as SSH writes it: the highest bit is the sign.
fn number(bytes: &[u8]) -> Vec<u8> {
    let bytes = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
    let sign: &[u8] = if bytes[0] >= 0x80 { &[0] } else { &[] };
    string(&[sign, bytes].concat())
}

/// A public key of a security key and its signature of the message with these flags. `curve` chooses the algorithm.
fn security_key(curve: bool, flags: u8) -> (String, String) {
    let message = vector("message");
    let hashed = sha256(message.as_bytes());
    let signed =
        [b"SSHSIG".to_vec(), string(b"waypost"), string(b""), string(b"sha256"), string(&hashed)].concat();
    let trailer = [&[flags][..], &7_u32.to_be_bytes()].concat();
    let data = [&sha256(b"ssh:")[..], &trailer, &sha256(&signed)].concat();
    let (algorithm, key, value) = if curve {
        let secret = p256::ecdsa::SigningKey::from_slice(&[7; 32]).unwrap();
        let signature: p256::ecdsa::Signature = secret.sign(&data);
        let (r, s) = signature.split_bytes();
        let point = secret.verifying_key().to_encoded_point(false);
        let key = [string(b"nistp256"), string(point.as_bytes())].concat();
        ("sk-ecdsa-sha2-nistp256@openssh.com", key, [number(&r), number(&s)].concat())
    } else {
        let secret = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
        let key = string(secret.verifying_key().as_bytes());
        ("sk-ssh-ed25519@openssh.com", key, secret.sign(&data).to_bytes().to_vec())
    };
    let key = [string(algorithm.as_bytes()), key, string(b"ssh:")].concat();
    let value = [string(algorithm.as_bytes()), string(&value), trailer].concat();
    let whole = [
        b"SSHSIG".to_vec(),
        1_u32.to_be_bytes().to_vec(),
        string(&key),
        string(b"waypost"),
        string(b""),
        string(b"sha256"),
        string(&value),
    ];
    let armour = base64(&whole.concat());
    (
        format!("{algorithm} {}", base64(&key)),
        format!("-----BEGIN SSH SIGNATURE-----\n{armour}\n-----END SSH SIGNATURE-----\n"),
    )
}

#[test]
#[ignore = "needs ssh-keygen"]
fn only_a_security_key_that_was_touched_shows_touch() {
    for curve in [false, true] {
        for (flags, touch) in [(0, false), (1, true), (4, false), (5, true)] {
            let (key, armour) = security_key(curve, flags);
            let verified = judge(&armour, &format!("{ADA} {key}")).unwrap();
            assert_eq!(verified.touch, touch, "{key} {flags}");
            let judged = Judge::new().verdict(armour.as_bytes(), format!("{ADA} {key}\n").as_bytes());
            assert!(judged, "ssh-keygen accepts it too");
        }
        // The flags are signed.
        let (key, armour) = security_key(curve, 0);
        let mut bytes = decode(&armour);
        let at = bytes.len() - 5;
        bytes[at] = 1;
        let forged =
            format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", base64(&bytes));
        assert!(matches!(judge(&forged, &format!("{ADA} {key}")), Err(BadSignature::Wrong(_))));
    }
}

fn decode(armour: &str) -> Vec<u8> {
    use base64::Engine;
    let inside: String = armour.lines().filter(|line| !line.starts_with('-')).collect();
    base64::engine::general_purpose::STANDARD.decode(inside).unwrap()
}

#[test]
fn versions_reserved_fields_and_trailing_bytes_are_refused() {
    let line = format!("{ADA} {}", vector("ed25519.pub"));
    let bytes = decode(&vector("ed25519.sig"));
    let judge = |bytes: &[u8]| {
        let armour =
            format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", base64(bytes));
        judge(&armour, &line)
    };
    assert!(judge(&bytes).is_ok());
    for version in [0, 2] {
        let mut other = bytes.clone();
        other[9] = version;
        assert_eq!(judge(&other), Err(BadSignature::Version(version.into())));
    }
    let more = BadSignature::Malformed("it contains more than a signature");
    assert_eq!(judge(&[&bytes[..], &[0]].concat()), Err(more.clone()));
    let after = 6 + 4 + 4 + 51 + 4 + "waypost".len();
    let reserved = [&bytes[..after], &string(b"x"), &bytes[after + 4..]].concat();
    assert_eq!(judge(&reserved), Err(more));
    for end in 0..bytes.len() {
        assert!(judge(&bytes[..end]).is_err());
    }
}

/// Lets the real `ssh-keygen` judge.
struct Judge {
    scratch: Scratch,
}

impl Judge {
    fn new() -> Self {
        Self { scratch: Scratch::new() }
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.scratch.home().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn verdict(&self, armour: &[u8], signers: &[u8]) -> bool {
        let mut command = Command::new("ssh-keygen");
        command.args(["-Y", "verify", "-n", "waypost", "-I", ADA]).arg(format!("-Overify-time={}", NOW.1));
        command.arg("-f").arg(self.file("signers", signers)).arg("-s").arg(self.file("sig", armour));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // It does not read the message of a signature that it cannot read.
        let _unread = child.stdin.take().unwrap().write_all(vector("message").as_bytes());
        child.wait().unwrap().success()
    }
}

/// Changes, removes or inserts a few bytes.
fn mutate(bytes: &[u8], rng: &mut SeededRng) -> Vec<u8> {
    const LIKELY: &[u8] = b"AQz09+/= \n\t\r\",!*?#-\\\0\xff";
    let mut mutated = bytes.to_vec();
    for _ in 0..=rng.below(3) {
        let at = rng.below(mutated.len());
        let byte = if rng.chance(50) { *rng.pick(LIKELY) } else { rng.bits() as u8 };
        match rng.below(4) {
            0 => drop(mutated.remove(at)),
            1 => mutated.insert(at, byte),
            _ => mutated[at] = byte,
        }
    }
    mutated
}

/// The vectors that are mutated, with a line of signers each.
fn mutated_vectors() -> Vec<(String, String)> {
    let line = |key: String| {
        format!("{ADA} namespaces=\"waypost\",valid-after=\"20200101Z\" {} comment\n", key.trim())
    };
    let mut all: Vec<(String, String)> =
        [("ed25519.sig", "ed25519.pub"), ("ecdsa-p256.sig", "ecdsa-p256.pub")]
            .map(|(armour, key)| (vector(armour), line(vector(key))))
            .into();
    all.extend([false, true].map(|curve| {
        let (key, armour) = security_key(curve, 1);
        (armour, line(key))
    }));
    all
}

#[test]
#[ignore = "needs ssh-keygen"]
fn mutations_have_the_verdict_of_ssh_keygen() {
    let said = std::env::var("WAYPOST_MUTATIONS").ok().and_then(|number| number.parse().ok());
    let judge = Judge::new();
    let rng = &mut SeededRng::new(19);
    let vectors = mutated_vectors();
    let mut accepted = 0;
    for _ in 0..said.unwrap_or(MUTATIONS) {
        let (armour, line) = rng.pick(&vectors);
        let (mut armour, mut line) = (armour.as_bytes().to_vec(), line.as_bytes().to_vec());
        match rng.chance(50) {
            true => armour = mutate(&armour, rng),
            false => line = mutate(&line, rng),
        }
        let shown = || format!("{}\n{}", String::from_utf8_lossy(&armour), String::from_utf8_lossy(&line));
        let theirs = judge.verdict(&armour, &line);
        let ours = AllowedSigners::parse(Path::new("signers"), &line).map_err(|error| error.to_string());
        let ours = ours.and_then(|signers| {
            let message = vector("message");
            verify(&armour, message.as_bytes(), ADA, &signers, &RevokedKeys::default(), now())
                .map_err(|error| error.to_string())
        });
        match ours {
            Ok(_) => assert!(theirs, "ssh-keygen refuses\n{}", shown()),
            Err(why) => {
                assert!(!theirs || is_stricter(&why, &line), "{why}, but ssh-keygen accepts\n{}", shown())
            }
        }
        accepted += usize::from(theirs);
    }
    assert!(accepted > 0, "some mutations change nothing that matters");
}

/// Whether this is a reason that we have on purpose and `ssh-keygen` has not.
fn is_stricter(why: &str, line: &[u8]) -> bool {
    let reasons = ["version 0", "it contains more than a signature", "is not a time", "is not UTF-8"];
    // It reads no line but the one that fits.
    let has_other_lines = line.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count() > 1;
    // It skips such white space inside base64, and a zero ends the line.
    let has_odd_space = line.iter().any(|byte| matches!(byte, b'\r' | b'\x0b' | b'\x0c' | b'\0'));
    reasons.iter().any(|reason| why.contains(reason))
        || why.starts_with("signers:") && (has_other_lines || has_odd_space)
}

#[test]
fn no_mutation_panics() {
    let rng = &mut SeededRng::new(7);
    let vectors = mutated_vectors();
    for _ in 0..MUTATIONS_ALONE {
        let (armour, line) = rng.pick(&vectors);
        let (armour, line) = (mutate(armour.as_bytes(), rng), mutate(line.as_bytes(), rng));
        let signers = AllowedSigners::parse(Path::new("signers"), &line).unwrap_or_default();
        let _verdict = verify(&armour, b"other", ADA, &signers, &RevokedKeys::default(), now());
        let _keys = RevokedKeys::parse(Path::new("revoked_keys"), &line);
    }
}

/// A key pair of the real `ssh-keygen`.
fn key_pair(scratch: &Scratch) -> (PathBuf, String) {
    let key = scratch.home().join("key");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
    assert!(made.unwrap().success());
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    (key, public)
}

#[test]
#[ignore = "needs ssh-keygen"]
fn a_key_file_signs_and_the_result_is_verified() {
    let scratch = Scratch::new();
    let (key, public) = key_pair(&scratch);
    let message = vector("message");
    let signed = |signers: &AllowedSigners| {
        let variable = |name: &str| std::env::var_os(name);
        sign(&message, &key, variable, ADA, (signers, &RevokedKeys::default()), now())
    };
    let line = format!("{ADA} {public}");
    let (armour, verified) = signed(&signers(&line)).unwrap();
    assert!(!verified.touch && verified.fingerprint.starts_with("SHA256:"));
    assert!(Judge::new().verdict(armour.as_bytes(), line.as_bytes()));
    let said = signed(&signers("")).unwrap_err().to_string();
    assert!(said.starts_with("ssh-keygen signed, but the signature does not count here: "), "{said}");
}

#[test]
#[ignore = "needs ssh-keygen"]
fn an_agent_signs_for_a_public_key_and_the_environment_is_closed() {
    struct Agent(Child);
    impl Drop for Agent {
        fn drop(&mut self) {
            let _gone = self.0.kill();
            let _waited = self.0.wait();
        }
    }
    let scratch = Scratch::new();
    let (key, public) = key_pair(&scratch);
    let socket = scratch.home().join("agent");
    let agent = Command::new("ssh-agent").arg("-D").arg("-a").arg(&socket).stdout(Stdio::null()).spawn();
    let _agent = Agent(agent.unwrap());
    let added = || {
        let mut add = Command::new("ssh-add");
        add.arg(&key).env("SSH_AUTH_SOCK", &socket).stderr(Stdio::null());
        add.status().unwrap().success()
    };
    assert!((0..1_000).any(|_| added()), "the agent has the key");
    fs::remove_file(&key).unwrap();
    let line = signers(&format!("{ADA} {public}"));
    let sign_with = |socket: Option<&Path>| {
        let variable = |name: &str| match name {
            "SSH_AUTH_SOCK" => socket.map(Into::into),
            "LD_PRELOAD" | "SSH_SK_PROVIDER" => panic!("{name} is not asked for"),
            name => std::env::var_os(name),
        };
        let public = key.with_extension("pub");
        sign(&vector("message"), &public, variable, ADA, (&line, &RevokedKeys::default()), now())
    };
    assert!(sign_with(Some(&socket)).is_ok());
    let said = sign_with(None).unwrap_err().to_string();
    assert!(said.starts_with("ssh-keygen did not sign"), "{said}");
}
