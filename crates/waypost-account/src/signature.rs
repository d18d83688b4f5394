//! Verifies SSH signatures (SSHSIG, as `ssh-keygen -Y sign` writes them) of allowed signers.
//!
//! The envelope is read here, so that everything that is not accepted is refused by its name; keys, signature values and
//! the mathematics are those of `ssh-key`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ssh_key::{Algorithm, EcdsaCurve, HashAlg, PublicKey, Signature, SshSig};
use waypost_core::Timestamp;

use crate::allowed_signers::{AllowedSigners, NotAllowed, RevokedKeys};

/// The namespace of our signatures: one made for git or for a file does not count here.
pub const NAMESPACE: &str = "waypost";
/// Maximum bytes of an armoured signature.
pub const ARMOUR_BYTES_MAX: usize = 4096;
/// The lines around a signature.
const BEGIN: &[u8] = b"-----BEGIN SSH SIGNATURE-----";
const END: &[u8] = b"-----END SSH SIGNATURE-----";
/// The first bytes of a signature.
const MAGIC: &[u8] = b"SSHSIG";
/// The only version.
const VERSION: u32 = 1;
/// The bytes after the value of a security key's signature: flags and counter.
const TRAILER_BYTES: usize = 5;
/// The flag of user presence.
const USER_PRESENT: u8 = 0x01;

/// A signature that is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The key's fingerprint: `SHA256:…`.
    pub fingerprint: String,
    /// Whether a security key signed and saw its user touch it.
    pub touch: bool,
}

/// Why a signature does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSignature {
    #[error("the signature has {0} bytes; the maximum is {ARMOUR_BYTES_MAX}")]
    TooLong(usize),
    #[error("the signature cannot be read: {0}")]
    Malformed(&'static str),
    #[error("SSH signatures of version {0} are not accepted")]
    Version(u32),
    #[error("the signature was made for {0:?}, not for {NAMESPACE:?}")]
    Namespace(String),
    #[error("signatures by {0} keys are not accepted")]
    Algorithm(String),
    #[error("the hash {0:?} is not accepted")]
    Hash(String),
    #[error("the signature by {0} is not one of this text")]
    Wrong(String),
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
}

/// The parts of a signature.
struct Parts {
    key: PublicKey,
    hash: HashAlg,
    signature: Signature,
}

/// A signature of a message by some key. It stays one; whether the key may sign changes.
#[derive(Clone, Debug)]
pub struct Signed {
    key: PublicKey,
    touch: bool,
}

impl Signed {
    /// Verifies that some key signed the message.
    pub fn read(armour: &[u8], message: &[u8]) -> Result<Self, BadSignature> {
        let Parts { key, hash, signature } = parts(&unarmoured(armour)?)?;
        let touch = is_of_security_key(&key)
            && signature
                .as_bytes()
                .iter()
                .nth_back(TRAILER_BYTES - 1)
                .is_some_and(|flags| flags & USER_PRESENT != 0);
        let wrong = |_| BadSignature::Wrong(key.fingerprint(HashAlg::Sha256).to_string());
        let whole = SshSig::new(key.key_data().clone(), NAMESPACE, hash, signature).map_err(wrong)?;
        key.verify(NAMESPACE, message, &whole).map_err(wrong)?;
        Ok(Self { key, touch })
    }

    /// Checks that the key may sign as this signer now.
    pub fn check(
        &self,
        signer: &str,
        signers: &AllowedSigners,
        revoked: &RevokedKeys,
        now: Timestamp,
    ) -> Result<Verified, BadSignature> {
        signers.check(&self.key, signer, NAMESPACE, revoked, now)?;
        Ok(Verified { fingerprint: self.key.fingerprint(HashAlg::Sha256).to_string(), touch: self.touch })
    }
}

/// Verifies that an allowed key of this signer signed the message, as of now.
pub fn verify(
    armour: &[u8],
    message: &[u8],
    signer: &str,
    signers: &AllowedSigners,
    revoked: &RevokedKeys,
    now: Timestamp,
) -> Result<Verified, BadSignature> {
    Signed::read(armour, message)?.check(signer, signers, revoked, now)
}

/// The bytes between the lines. As `ssh-keygen` reads it: white space does not count, nor does what follows the end.
fn unarmoured(armour: &[u8]) -> Result<Vec<u8>, BadSignature> {
    if armour.len() > ARMOUR_BYTES_MAX {
        return Err(BadSignature::TooLong(armour.len()));
    }
    let after = armour.strip_prefix(BEGIN).ok_or(BadSignature::Malformed("its first line is missing"))?;
    let end = after.windows(END.len()).position(|window| window == END);
    let inside = &after[..end.ok_or(BadSignature::Malformed("its last line is missing"))?];
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'\x0b';
    let base64: Vec<u8> = inside.iter().copied().filter(|byte| !is_space(byte)).collect();
    STANDARD.decode(base64).map_err(|_| BadSignature::Malformed("it is not base64"))
}

fn parts(bytes: &[u8]) -> Result<Parts, BadSignature> {
    const SHORT: BadSignature = BadSignature::Malformed("it ends too early");
    let bytes = bytes.strip_prefix(MAGIC).ok_or(BadSignature::Malformed("it is not an SSH signature"))?;
    let (version, mut rest) = bytes.split_first_chunk().ok_or(SHORT)?;
    let mut next = || take_string(&mut rest).ok_or(SHORT);
    let (key, namespace, reserved, hash, signature) = (next()?, next()?, next()?, next()?, next()?);
    match u32::from_be_bytes(*version) {
        VERSION => {}
        other => return Err(BadSignature::Version(other)),
    }
    if !rest.is_empty() || !reserved.is_empty() {
        return Err(BadSignature::Malformed("it contains more than a signature"));
    }
    if namespace != NAMESPACE.as_bytes() {
        return Err(BadSignature::Namespace(String::from_utf8_lossy(namespace).into_owned()));
    }
    let hash = String::from_utf8_lossy(hash);
    let hash = HashAlg::new(&hash).map_err(|_| BadSignature::Hash(hash.into_owned()))?;
    // The name is read first, so that a key of another algorithm is refused by its name.
    let algorithm = take_string(&mut &*key).ok_or(SHORT)?;
    let unreadable = |_| BadSignature::Malformed("its key cannot be read");
    if !is_accepted(algorithm) {
        return Err(BadSignature::Algorithm(String::from_utf8_lossy(algorithm).into_owned()));
    }
    let key = PublicKey::from_bytes(key).map_err(unreadable)?;
    Ok(Parts { signature: value(signature, &key)?, key, hash })
}

/// The value of a signature by this key, and nothing else.
fn value(bytes: &[u8], key: &PublicKey) -> Result<Signature, BadSignature> {
    const UNREADABLE: BadSignature = BadSignature::Malformed("its value cannot be read");
    let mut rest = bytes;
    let algorithm = take_string(&mut rest).ok_or(UNREADABLE)?;
    take_string(&mut rest).ok_or(UNREADABLE)?;
    let trailer = if is_of_security_key(key) { TRAILER_BYTES } else { 0 };
    if algorithm != key.algorithm().as_str().as_bytes() || rest.len() != trailer {
        return Err(UNREADABLE);
    }
    Signature::try_from(bytes).map_err(|_| UNREADABLE)
}

fn is_accepted(algorithm: &[u8]) -> bool {
    const ACCEPTED: [Algorithm; 4] = [
        Algorithm::Ed25519,
        Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 },
        Algorithm::SkEd25519,
        Algorithm::SkEcdsaSha2NistP256,
    ];
    ACCEPTED.iter().any(|accepted| accepted.as_str().as_bytes() == algorithm)
}

fn is_of_security_key(key: &PublicKey) -> bool {
    key.key_data().is_sk_ed25519() || key.key_data().is_sk_ecdsa_p256()
}

/// Takes a string with its length before it.
fn take_string<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (string, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(string)
}
