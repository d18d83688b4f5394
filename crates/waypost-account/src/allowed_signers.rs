//! The keys that may sign approvals: OpenSSH's `allowed_signers` format, and `revoked_keys` beside it.
//!
//! Stricter than `ssh-keygen`: one line that cannot be read makes the whole file an error, and certificates are not
//! accepted. Whether a key is valid is judged now, not at the time that a signature claims.

use std::path::{Path, PathBuf};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use ssh_key::{Algorithm, HashAlg, PublicKey};
use waypost_core::Timestamp;

use crate::account::Account;
use crate::account_files::{AccountFileError, FileStamp};

/// Maximum number of lines of a file of signers or of revoked keys.
pub const SIGNERS_MAX: usize = 10_000;
/// The file of revoked keys beside the signers.
const REVOKED: &str = "revoked_keys";

/// The keys that may sign.
#[derive(Clone, Debug, Default)]
pub struct AllowedSigners {
    lines: Vec<Line>,
}

/// Keys that may not sign any more, whatever the signers say.
#[derive(Clone, Debug, Default)]
pub struct RevokedKeys {
    keys: Vec<PublicKey>,
}

/// One line: whose key it is, and where and when it counts.
#[derive(Clone, Debug)]
struct Line {
    /// Patterns of principals, separated by commas.
    principals: String,
    key: PublicKey,
    options: Options,
}

#[derive(Clone, Debug, Default)]
struct Options {
    /// Patterns of namespaces, separated by commas.
    namespaces: Option<String>,
    /// In seconds since 1970.
    valid_after: Option<i64>,
    valid_before: Option<i64>,
}

/// Why a file of signers cannot be used. Then nothing that is signed starts.
#[derive(Debug, thiserror::Error)]
pub enum SignerFileError {
    #[error(transparent)]
    File(#[from] AccountFileError),
    #[error("{}:{line}: {what}", file.display())]
    Line { file: PathBuf, line: usize, what: String },
}

/// Why a key may not sign.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    #[error("the signature is by {0}, which is not an allowed signer")]
    Unlisted(String),
    #[error("the key {0} was revoked")]
    Revoked(String),
    #[error("the key {key} may not sign as {signer}")]
    Principal { key: String, signer: String },
    #[error("the key {key} may not sign in the namespace {namespace}")]
    Namespace { key: String, namespace: String },
    #[error("the key {key} is valid from {from}")]
    NotYet { key: String, from: Timestamp },
    #[error("the key {key} was valid until {until}")]
    Expired { key: String, until: Timestamp },
}

/// Returns the fingerprint (`SHA256:…`) of a public key such as `ssh-ed25519 AAAA…`.
pub fn fingerprint(key: &str) -> Option<String> {
    Some(public_key(key.trim())?.fingerprint(HashAlg::Sha256).to_string())
}

fn files_of(account: &Account, named: Option<&Path>) -> Vec<PathBuf> {
    named.map_or_else(|| account.signer_files(), |named| vec![named.to_owned()])
}

fn revoked_beside(file: &Path) -> PathBuf {
    file.with_file_name(REVOKED)
}

impl AllowedSigners {
    /// Returns the state of all files that [`AllowedSigners::load`] would read, without reading them.
    pub fn stamps(account: &Account, named: Option<&Path>) -> Vec<Option<FileStamp>> {
        let both = |file: PathBuf| [FileStamp::of(&file), FileStamp::of(&revoked_beside(&file))];
        files_of(account, named).into_iter().flat_map(both).collect()
    }

    /// Reads the signers: the named file, or otherwise the operator's or the user's; and the keys revoked beside them.
    /// Without a file nobody may sign.
    pub fn load(account: &Account, named: Option<&Path>) -> Result<(Self, RevokedKeys), SignerFileError> {
        for file in files_of(account, named) {
            let Some(bytes) = account.read(&file)? else { continue };
            let signers = Self::parse(&file, &bytes)?;
            let beside = revoked_beside(&file);
            let revoked = account.read(&beside)?.map(|bytes| RevokedKeys::parse(&beside, &bytes));
            return Ok((signers, revoked.transpose()?.unwrap_or_default()));
        }
        Ok((Self::default(), RevokedKeys::default()))
    }

    pub fn parse(file: &Path, bytes: &[u8]) -> Result<Self, SignerFileError> {
        Ok(Self { lines: lines(file, bytes, line)? })
    }

    /// Removes the key with this fingerprint.
    pub fn remove(&mut self, fingerprint: &str) {
        self.lines.retain(|line| line.key.fingerprint(HashAlg::Sha256).to_string() != fingerprint);
    }

    /// Returns the first name, without patterns, that the file gives to a public key such as `ssh-ed25519 AAAA…`.
    pub fn principal_of(&self, key: &str) -> Option<String> {
        let key = public_key(key.trim())?;
        let lines = self.lines.iter().filter(|line| line.key.key_data() == key.key_data());
        let names = lines.flat_map(|line| line.principals.split(','));
        names.filter(|name| !name.contains(['*', '?', '!'])).map(str::to_owned).next()
    }

    /// Checks that the key may sign as this signer now.
    pub(crate) fn check(
        &self,
        key: &PublicKey,
        signer: &str,
        namespace: &str,
        revoked: &RevokedKeys,
        now: Timestamp,
    ) -> Result<(), NotAllowed> {
        let name = key.fingerprint(HashAlg::Sha256).to_string();
        let is_same = |other: &PublicKey| other.key_data() == key.key_data();
        if revoked.keys.iter().any(is_same) {
            return Err(NotAllowed::Revoked(name));
        }
        let mut refusal = NotAllowed::Unlisted(name.clone());
        for line in self.lines.iter().filter(|line| is_same(&line.key)) {
            match line.check(&name, signer, namespace, now) {
                Ok(()) => return Ok(()),
                Err(other) => refusal = other,
            }
        }
        Err(refusal)
    }
}

impl RevokedKeys {
    /// Reads one public key a line.
    pub fn parse(file: &Path, bytes: &[u8]) -> Result<Self, SignerFileError> {
        let key = |text: &str| public_key(text).ok_or_else(|| "this is not a public key".to_owned());
        Ok(Self { keys: lines(file, bytes, key)? })
    }
}

impl Line {
    fn check(&self, name: &str, signer: &str, namespace: &str, now: Timestamp) -> Result<(), NotAllowed> {
        let key = name.to_owned();
        let Options { namespaces, valid_after, valid_before } = &self.options;
        if !matches_list(signer, &self.principals) {
            return Err(NotAllowed::Principal { key, signer: signer.to_owned() });
        }
        if namespaces.as_ref().is_some_and(|patterns| !matches_list(namespace, patterns)) {
            return Err(NotAllowed::Namespace { key, namespace: namespace.to_owned() });
        }
        let seconds = now.as_micros().div_euclid(SECOND);
        if let Some(after) = valid_after.filter(|after| seconds < *after) {
            return Err(NotAllowed::NotYet { key, from: Timestamp::from_micros(after * SECOND) });
        }
        if let Some(before) = valid_before.filter(|before| seconds > *before) {
            return Err(NotAllowed::Expired { key, until: Timestamp::from_micros(before * SECOND) });
        }
        Ok(())
    }
}

const SECOND: i64 = 1_000_000;

/// Reads every line that is not empty or a comment.
fn lines<T>(
    file: &Path,
    bytes: &[u8],
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, SignerFileError> {
    let mut found = Vec::new();
    for (number, bytes) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let wrong = |what: String| SignerFileError::Line { file: file.to_owned(), line: number + 1, what };
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("this is not UTF-8".to_owned()))?;
        let text = text.trim_matches([' ', '\t', '\r']);
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if found.len() == SIGNERS_MAX {
            return Err(wrong(format!("a file has at most {SIGNERS_MAX} keys")));
        }
        found.push(read(text).map_err(wrong)?);
    }
    Ok(found)
}

/// Reads `principals [options] key`.
fn line(text: &str) -> Result<Line, String> {
    let quoted = text.strip_prefix('"').and_then(|rest| rest.split_once('"'));
    let (principals, rest) = quoted.or_else(|| text.split_once([' ', '\t'])).ok_or("there is no key")?;
    let rest = rest.trim_start_matches([' ', '\t']);
    let (options, key) = match public_key(rest) {
        Some(key) => (Options::default(), key),
        None => {
            let (options, key) = split_unquoted(rest).ok_or("there is no key")?;
            (options_of(options)?, public_key(key).ok_or("this is not a public key")?)
        }
    };
    Ok(Line { principals: principals.to_owned(), key, options })
}

/// Reads `algorithm base64 [comment]`.
fn public_key(text: &str) -> Option<PublicKey> {
    let mut words = text.split([' ', '\t']).filter(|word| !word.is_empty());
    let key = PublicKey::from_openssh(&format!("{} {}", words.next()?, words.next()?)).ok()?;
    // A certificate, or something that is not known to be a key.
    (!matches!(key.algorithm(), Algorithm::Other(_))).then_some(key)
}

/// Splits at the first white space outside of quotes.
fn split_unquoted(text: &str) -> Option<(&str, &str)> {
    let (mut is_quoted, mut before) = (false, '\0');
    for (at, character) in text.char_indices() {
        match character {
            '"' if before != '\\' => is_quoted = !is_quoted,
            ' ' | '\t' if !is_quoted => {
                return Some((&text[..at], text[at..].trim_start_matches([' ', '\t'])));
            }
            _ => {}
        }
        before = character;
    }
    None
}

fn options_of(text: &str) -> Result<Options, String> {
    let mut options = Options::default();
    let mut rest = text;
    loop {
        let end = rest.find(['=', ',']).unwrap_or(rest.len());
        let name = rest[..end].to_ascii_lowercase();
        rest = &rest[end..];
        match name.as_str() {
            "namespaces" => set(&name, &mut options.namespaces, quoted(&mut rest)?)?,
            "valid-after" => set(&name, &mut options.valid_after, moment(&quoted(&mut rest)?)?)?,
            "valid-before" => set(&name, &mut options.valid_before, moment(&quoted(&mut rest)?)?)?,
            "cert-authority" => return Err("certificates are not accepted".to_owned()),
            _ => return Err(format!("unknown option {name:?}")),
        }
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None if rest.is_empty() => break,
            None => return Err(format!("unexpected {rest:?}")),
        }
    }
    match (options.valid_after, options.valid_before) {
        (Some(after), Some(before)) if before <= after => {
            Err("valid-before is before valid-after".to_owned())
        }
        _ => Ok(options),
    }
}

fn set<T>(name: &str, place: &mut Option<T>, value: T) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("two {name} options")),
    }
}

/// Takes `="value"`.
fn quoted(rest: &mut &str) -> Result<String, String> {
    let text = rest.strip_prefix("=\"").ok_or("the value of an option is not quoted")?;
    let mut value = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' if characters.next_if(|(_, next)| *next == '"').is_some() => value.push('"'),
            '"' => {
                *rest = &text[at + 1..];
                return Ok(value);
            }
            other => value.push(other),
        }
    }
    Err("the value of an option has no closing quote".to_owned())
}

/// Reads `YYYYMMDD[HHMM[SS]]` in the time zone of the machine, or in UTC with a `Z`, as seconds since 1970.
fn moment(text: &str) -> Result<i64, String> {
    let wrong = || format!("{text:?} is not a time such as 20261231 or 202612312359Z");
    let utc = text.strip_suffix(['Z', 'z']);
    let digits = utc.unwrap_or(text);
    if !matches!(digits.len(), 8 | 12 | 14) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let year: i16 = digits[..4].parse().map_err(|_| wrong())?;
    let part = |at: usize| digits.get(at..at + 2).map_or(Ok(0), |part| part.parse::<i8>());
    let [month, day, hour, minute, second] = [4, 6, 8, 10, 12].map(|at| part(at).unwrap_or(-1));
    let civil = DateTime::new(year, month, day, hour, minute, second, 0).map_err(|_| wrong())?;
    let zone = if utc.is_some() { TimeZone::UTC } else { TimeZone::system() };
    let seconds = civil.to_zoned(zone).map_err(|_| wrong())?.timestamp().as_second();
    if seconds > 0 { Ok(seconds) } else { Err(wrong()) }
}

/// Whether a list of patterns accepts a text: one matches, and none that begins with `!` does.
fn matches_list(text: &str, patterns: &str) -> bool {
    let mut is_accepted = false;
    for pattern in patterns.split(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) if matches(text, pattern) => return false,
            Some(_) => {}
            None => is_accepted |= matches(text, pattern),
        }
    }
    is_accepted
}

/// Whether a text has the form of a pattern with `*` and `?`.
fn matches(text: &str, pattern: &str) -> bool {
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let (mut at, mut next) = (0, 0);
    // Where the last `*` is, and where the text continued after what it stands for.
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(next) {
            Some(b'*') => {
                star = Some((next, at));
                next += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[at] => (at, next) = (at + 1, next + 1),
            Some(_) | None => match star {
                Some((place, from)) => {
                    star = Some((place, from + 1));
                    (at, next) = (from + 1, place + 1);
                }
                None => return false,
            },
        }
    }
    pattern[next..].iter().all(|byte| *byte == b'*')
}
