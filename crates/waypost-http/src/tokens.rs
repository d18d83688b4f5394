//! Tokens, which name the caller and its role. People create and revoke them; only the SHA-256 of a token is stored.
//!
//! They are in the account's files and not in the workspace, where agents write.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use waypost_account::{ACCOUNT_FILE_BYTES_MAX, Account, AccountFileError, Records, TrustRecords};
use waypost_core::{Actor, ActorKind, Proof, Timestamp};
use waypost_service::Caller;

/// Maximum number of tokens of a store.
pub const TOKENS_MAX: usize = 1_000;
/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;
/// Random bytes of a token's id.
const ID_BYTES: usize = 4;
/// The prefix of a token, so that people and secret scanners recognize it.
const PREFIX: &str = "waypost_";
/// Maximum length of a token, in bytes; longer texts are not compared.
const TOKEN_CHARACTERS_MAX: usize = 200;
/// The file of earlier versions, in the workspace's own folder.
const OLD_FILE: &str = "tokens.json";

/// What the holder of a token may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything that a person may do, including approving and answering.
    Person,
    /// What an agent may do.
    #[default]
    Agent,
    /// Claim tasks, report on those that it holds, and ask.
    Worker,
    /// Read only.
    Reader,
}

impl Role {
    /// Returns the name of the role in files and requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Agent => "agent",
            Self::Worker => "worker",
            Self::Reader => "reader",
        }
    }
}

/// A stored token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The id, which is not secret.
    pub id: String,
    /// The name of its holder.
    pub agent: String,
    /// What the holder may do.
    #[serde(default)]
    pub role: Role,
    /// The SHA-256 of the token, in hexadecimal.
    pub sha256: String,
    /// When the token was created.
    pub created_at: Timestamp,
    /// The person who created it.
    pub created_by: Actor,
    /// The only path that the token grants; without one it grants all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<String>,
    /// Whether the person at the holder's client may approve there, if the account's configuration names the client.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub elicitation: bool,
}

/// What a new token is for.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewToken<'a> {
    /// The name of its holder.
    pub agent: &'a str,
    pub role: Role,
    /// The only path that it grants.
    pub only: Option<&'a str>,
    pub elicitation: bool,
}

impl Token {
    /// Returns the holder. A reader counts as an agent.
    pub fn actor(&self) -> Actor {
        match self.role {
            Role::Person => Actor::person(self.agent.clone()),
            Role::Agent | Role::Reader => Actor::agent(self.agent.clone()),
            Role::Worker => Actor::worker(self.agent.clone()),
        }
    }
}

#[derive(Default, Serialize, Deserialize)]
struct TokenFile {
    tokens: Vec<Token>,
}

/// Why tokens cannot be read, created or revoked.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Only a person may create or revoke tokens.
    #[error("only a person can make or revoke a token, not {0}")]
    OnlyAPerson(Actor),
    /// The token can approve, so a person has to be present.
    #[error("making a token that can approve needs a person at a terminal, and there is none")]
    NeedsTerminal,
    /// The account has no home.
    #[error("this account has no home, so it keeps no tokens")]
    NoHome,
    /// The file cannot be read or written.
    #[error(transparent)]
    Account(#[from] AccountFileError),
    /// The file cannot be read.
    #[error("{path}: {error}", path = path.display())]
    File { path: PathBuf, error: io::Error },
    /// The file is not a list of tokens.
    #[error("{path} is not a list of tokens: {error}", path = path.display())]
    Corrupt { path: PathBuf, error: serde_json::Error },
    /// The limit of tokens is reached.
    #[error("there are {TOKENS_MAX} tokens already")]
    TooMany,
    /// No token has this id prefix, or several do.
    #[error("{0} tokens begin with {1:?}")]
    NotOne(usize, String),
    /// The token is in a file that is only read.
    #[error("this token is in {path}, which is only read", path = .0.display())]
    NotOurs(PathBuf),
    /// The system provides no random numbers.
    #[error("no random numbers: {0}")]
    Random(String),
}

impl TokenError {
    /// Returns what to do next.
    pub fn hint(&self) -> String {
        let hint = match self {
            Self::OnlyAPerson(_) => "ask a person to run `waypost token new --agent NAME`",
            Self::NeedsTerminal => "run `waypost token new` in a terminal of your own, without --as",
            Self::NoHome => {
                "use the sign-in link of `waypost serve`; an operator can put tokens into /etc/waypost/tokens.json"
            }
            Self::Account(error) => return error.hint(),
            Self::File { .. } => "check the permissions of the file",
            Self::Corrupt { .. } => "restore the file, or delete it and create new tokens",
            Self::TooMany => "revoke unused tokens",
            Self::NotOne(..) => "`waypost token list` lists them",
            Self::NotOurs(_) => "delete it from that file; it ends at once",
            Self::Random(_) => "retry",
        };
        hint.to_owned()
    }
}

/// The files with the tokens of a store.
#[derive(Clone, Debug)]
pub struct TokenFiles {
    pub account: Account,
    /// The account's file for this store; `None` for an account without a home.
    pub own: Option<PathBuf>,
    /// The account's file of the signed-in browsers of this store; `None` as above.
    pub sessions: Option<PathBuf>,
    /// The operator's file, for every store. It is only read.
    pub operator: PathBuf,
    /// The file of earlier versions. It is only read, and the tokens of people in it do not count: agents write there.
    pub old: PathBuf,
}

impl TokenFiles {
    /// Returns the files for the store at this location, of a workspace with this folder of its own.
    pub fn of(account: &Account, store: &str, folder: &Path) -> Self {
        let store = canonical(store);
        Self {
            own: account.record_file(Records::Tokens, &store),
            sessions: account.record_file(Records::Sessions, &store),
            operator: account.operator_token_file(),
            old: folder.join(OLD_FILE),
            account: account.clone(),
        }
    }

    /// Returns the record that a person has trusted the workspace, if the account can keep one.
    fn trust_record(&self) -> Option<PathBuf> {
        let root = fs::canonicalize(self.old.parent()?.parent()?).ok()?;
        self.account.record_file(Records::Trust, &root)
    }

    /// Reads the file of earlier versions. It may have come with a clone, so it counts only where a person has trusted the
    /// workspace.
    fn read_old(&self) -> Result<Vec<Token>, TokenError> {
        let root = self.old.parent().and_then(Path::parent).and_then(|root| fs::canonicalize(root).ok());
        let record = root.map(|root| TrustRecords::of(&self.account).read(&root)).transpose()?.flatten();
        if record.is_some() { read_old(&self.old) } else { Ok(Vec::new()) }
    }
}

/// The canonical path of a store in files, and the location without its password of one in a database.
fn canonical(store: &str) -> PathBuf {
    let path = match store.split_once(':') {
        Some(("sqlite" | "file", path)) => Path::new(path),
        Some(_) | None => return PathBuf::from(waypost_store::without_password(store)),
    };
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // Tokens can be created before the store, and must be found after it.
    let existing = path.ancestors().find_map(|folder| {
        let rest = path.strip_prefix(folder).ok()?;
        let found = fs::canonicalize(folder).ok()?;
        Some(if rest.as_os_str().is_empty() { found } else { found.join(rest) })
    });
    existing.unwrap_or(path)
}

/// The tokens of a store.
#[derive(Debug)]
pub struct Tokens {
    files: TokenFiles,
    /// The tokens at the last change of the files, and the stamps of that state.
    known: Mutex<(Option<Stamps>, Vec<Token>)>,
    /// How often the files were read.
    reads: AtomicU64,
    /// Tokens in memory only, which end with this process.
    lent: Mutex<Vec<Token>>,
}

/// The states of the account's, the operator's and the workspace's file, and of the record that a person trusts the workspace.
type Stamps = [Option<Stamp>; 4];

/// Distinguishes two states of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Tokens {
    /// The tokens in these files.
    pub fn new(files: TokenFiles) -> Self {
        Self { files, known: Mutex::default(), reads: AtomicU64::default(), lent: Mutex::default() }
    }

    /// Returns the file that stores new tokens.
    pub fn path(&self) -> Option<&Path> {
        self.files.own.as_deref()
    }

    pub(crate) fn files(&self) -> &TokenFiles {
        &self.files
    }

    /// Returns the file that changes most often.
    pub(crate) fn watched(&self) -> &Path {
        self.path().unwrap_or(&self.files.operator)
    }

    /// Returns a number that differs after each change that this process has noticed, also of one that was undone.
    pub(crate) fn changes(&self) -> u64 {
        // Files that cannot be read are noticed by every caller.
        let _noticed = self.list();
        self.reads.load(Ordering::Acquire)
    }

    /// Returns all tokens: the stored ones in order of creation, then those in memory.
    pub fn list(&self) -> Result<Vec<Token>, TokenError> {
        self.among(|tokens| tokens.cloned().collect())
    }

    /// Passes all current tokens to `look`. Reads the files only if one has changed.
    fn among<R>(&self, look: impl FnOnce(&mut dyn Iterator<Item = &Token>) -> R) -> Result<R, TokenError> {
        let TokenFiles { own, operator, old, .. } = &self.files;
        let own = own.as_deref().map(stamp).transpose()?.flatten();
        let old = stamp(old).unwrap_or_default();
        // Trust decides only whether the file of earlier versions counts, and few workspaces still have one.
        let trust = old.and_then(|_| stamp(&self.files.trust_record()?).unwrap_or_default());
        let stamps = [own, stamp(operator)?, old, trust];
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != Some(stamps) {
            self.reads.fetch_add(1, Ordering::AcqRel);
            *known = (Some(stamps), self.read()?);
        }
        let lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(look(&mut known.1.iter().chain(lent.iter())))
    }

    /// Returns what the person who starts a server should know about the files.
    pub fn warnings(&self) -> Vec<String> {
        let TokenFiles { account, own, operator, old, .. } = &self.files;
        let unused = own.iter().chain([operator]).filter_map(|file| {
            let error = account.read(file).err().filter(is_insecure)?;
            Some(format!("{error} ({})", error.hint()))
        });
        let (found, broken) = match read_old(old) {
            Ok(found) => (found, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let persons = found.iter().any(|token| token.role == Role::Person);
        let counts = self.files.read_old().is_ok_and(|counting| !counting.is_empty());
        let moved = (!found.is_empty()).then(|| {
            let why = if counts {
                "the next release does not read it"
            } else {
                "nobody has trusted this workspace, so it does not count"
            };
            format!("{}: {why}; make new tokens with `waypost token new`", old.display())
        });
        let refused = persons.then(|| {
            let file = old.display();
            format!("{file}: a person's token does not count there; make a new one: waypost token new --role person")
        });
        unused.chain(broken).chain(moved).chain(refused).collect()
    }

    /// Creates a token. Its text is returned only here and stored nowhere. Only a person can, and only a present one if the
    /// token can approve.
    pub fn make(&self, new: NewToken<'_>, by: &Caller, at: Timestamp) -> Result<(Token, String), TokenError> {
        only_a_person(&by.actor)?;
        let is_present = by.presence.as_ref().is_some_and(|presence| presence.proof >= Proof::Presence);
        if (new.role == Role::Person || new.elicitation) && !is_present {
            return Err(TokenError::NeedsTerminal);
        }
        let (token, text) = fresh(new, &by.actor, at)?;
        let made = token.clone();
        self.change(|tokens| {
            if tokens.len() >= TOKENS_MAX {
                return Err(TokenError::TooMany);
            }
            tokens.push(token);
            Ok(())
        })?;
        Ok((made, text))
    }

    /// Creates a token that ends with this process and is stored in no file. Its text is discarded: sessions use it. The
    /// next process that lends one to the same person gives it the same id, so that their sessions continue.
    pub fn lend(&self, role: Role, agent: &str, by: &Actor, at: Timestamp) -> Result<Token, TokenError> {
        only_a_person(by)?;
        let (token, _) = fresh(NewToken { agent, role, ..NewToken::default() }, by, at)?;
        let holder = sha256_hex(format!("{}\n{agent}", role.as_str()).as_bytes());
        let token = Token { id: format!("lent-{holder}"), ..token };
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).push(token.clone());
        Ok(token)
    }

    /// Returns the token with this id, unless it was revoked.
    pub(crate) fn with_id(&self, id: &str) -> Result<Option<Token>, TokenError> {
        self.among(|mut tokens| Iterator::find(&mut tokens, |token| token.id == id).cloned())
    }

    /// Revokes the token with this id prefix.
    pub fn revoke(&self, id: &str, by: &Actor) -> Result<Token, TokenError> {
        only_a_person(by)?;
        let TokenFiles { account, operator, old, .. } = &self.files;
        let begins = |token: &Token| !id.is_empty() && token.id.starts_with(id);
        let of_old = self.files.read_old().unwrap_or_default();
        for (file, tokens) in [(operator, read(account, operator)?), (old, of_old)] {
            if tokens.iter().any(begins) {
                return Err(TokenError::NotOurs(file.clone()));
            }
        }
        self.change(|tokens| {
            let found: Vec<usize> = (0..tokens.len()).filter(|&at| tokens[at].id.starts_with(id)).collect();
            match found.as_slice() {
                [at] if !id.is_empty() => Ok(tokens.remove(*at)),
                several => Err(TokenError::NotOne(several.len(), id.to_owned())),
            }
        })
    }

    /// Returns the token with this text. Takes the same time for a wrong text as for a right one.
    pub fn find(&self, text: &str) -> Result<Option<Token>, TokenError> {
        if text.len() > TOKEN_CHARACTERS_MAX {
            return Ok(None);
        }
        let sha256 = sha256_hex(text.as_bytes());
        self.among(|tokens| {
            let mut found = None;
            for token in tokens {
                if bool::from(token.sha256.as_bytes().ct_eq(sha256.as_bytes())) {
                    found = Some(token);
                }
            }
            found.cloned()
        })
    }

    fn read(&self) -> Result<Vec<Token>, TokenError> {
        let TokenFiles { account, own, operator, .. } = &self.files;
        let mut tokens = own.as_deref().map(|own| read(account, own)).transpose()?.unwrap_or_default();
        tokens.extend(read(account, operator)?);
        // Whoever can spoil this file must not keep everyone out.
        let old = self.files.read_old().unwrap_or_default().into_iter();
        let old = old.filter(|token| token.role != Role::Person);
        tokens.extend(old.map(|token| Token { elicitation: false, ..token }));
        Ok(tokens)
    }

    /// Rewrites the account's file. A lock serializes concurrent changes.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<Token>) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let account = &self.files.account;
        let own = self.files.own.as_deref().ok_or(TokenError::NoHome)?;
        let _lock = account.lock(own)?;
        let mut tokens = parse(own, account.read(own)?)?;
        let changed = change(&mut tokens)?;
        let text =
            serde_json::to_string_pretty(&TokenFile { tokens }).map_err(|error| corrupt(own, error))?;
        account.write(own, format!("{text}\n").as_bytes())?;
        Ok(changed)
    }
}

fn stamp(file: &Path) -> Result<Option<Stamp>, TokenError> {
    match fs::metadata(file) {
        Ok(found) => Ok(Some(Stamp {
            inode: found.ino(),
            bytes: found.size(),
            changed: (found.mtime(), found.mtime_nsec()),
        })),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(TokenError::File { path: file.to_owned(), error }),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn is_insecure(error: &AccountFileError) -> bool {
    matches!(error, AccountFileError::Foreign { .. } | AccountFileError::Writable { .. })
}

/// Reads an account file. One that others could have written counts as absent.
fn read(account: &Account, file: &Path) -> Result<Vec<Token>, TokenError> {
    match account.read(file) {
        Ok(found) => parse(file, found),
        Err(error) if is_insecure(&error) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

fn read_old(file: &Path) -> Result<Vec<Token>, TokenError> {
    // Reading a pipe would wait for a writer, and agents can make one here.
    if fs::metadata(file).is_ok_and(|found| !found.is_file() || found.len() > ACCOUNT_FILE_BYTES_MAX) {
        return Ok(Vec::new());
    }
    match fs::read(file) {
        Ok(found) => parse(file, Some(found)),
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        Err(error) => Err(TokenError::File { path: file.to_owned(), error }),
    }
}

fn parse(file: &Path, found: Option<Vec<u8>>) -> Result<Vec<Token>, TokenError> {
    let Some(bytes) = found else { return Ok(Vec::new()) };
    let parsed: TokenFile = serde_json::from_slice(&bytes).map_err(|error| corrupt(file, error))?;
    Ok(parsed.tokens)
}

fn corrupt(file: &Path, error: serde_json::Error) -> TokenError {
    TokenError::Corrupt { path: file.to_owned(), error }
}

/// Creates a token and its text.
fn fresh(new: NewToken<'_>, by: &Actor, at: Timestamp) -> Result<(Token, String), TokenError> {
    let NewToken { agent, role, only, elicitation } = new;
    let text = format!("{PREFIX}{}", random::<TOKEN_BYTES>()?);
    let token = Token {
        id: random::<ID_BYTES>()?,
        agent: agent.to_owned(),
        role,
        sha256: sha256_hex(text.as_bytes()),
        created_at: at,
        created_by: by.clone(),
        only: only.map(str::to_owned),
        elicitation,
    };
    Ok((token, text))
}

fn only_a_person(by: &Actor) -> Result<(), TokenError> {
    match by.kind {
        ActorKind::Person => Ok(()),
        ActorKind::Agent | ActorKind::Worker | ActorKind::System => Err(TokenError::OnlyAPerson(by.clone())),
    }
}

pub(crate) fn random<const BYTES: usize>() -> Result<String, TokenError> {
    let mut bytes = [0_u8; BYTES];
    getrandom::fill(&mut bytes).map_err(|error| TokenError::Random(error.to_string()))?;
    Ok(waypost_text::hex(&bytes))
}

pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    waypost_text::hex(digest(&SHA256, bytes).as_ref())
}
