//! Tokens, which name the caller and its role. People create and revoke them; only the SHA-256 of a token is stored.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use waypost_core::{Actor, ActorKind, Timestamp};

/// Maximum number of tokens of a workspace.
pub const TOKENS_MAX: usize = 1_000;
/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;
/// Random bytes of a token's id.
const ID_BYTES: usize = 4;
/// The prefix of a token, so that people and secret scanners recognize it.
const PREFIX: &str = "waypost_";
/// Maximum length of a token, in bytes; longer texts are not compared.
const TOKEN_CHARACTERS_MAX: usize = 200;
/// The file that stores the tokens.
const FILE: &str = "tokens.json";

/// What the holder of a token may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything that a person may do, including approving and answering.
    Person,
    /// What an agent may do.
    #[default]
    Agent,
    /// What a worker may do.
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
    /// The file cannot be read or written.
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
    /// The system provides no random numbers.
    #[error("no random numbers: {0}")]
    Random(String),
}

impl TokenError {
    /// Returns what to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::OnlyAPerson(_) => "ask a person to run `waypost token new --agent NAME`",
            Self::File { .. } => "check the permissions of the file",
            Self::Corrupt { .. } => "restore the file, or delete it and create new tokens",
            Self::TooMany => "revoke unused tokens",
            Self::NotOne(..) => "`waypost token list` lists them",
            Self::Random(_) => "retry",
        }
    }
}

/// The tokens of a workspace.
#[derive(Debug)]
pub struct Tokens {
    path: PathBuf,
    /// The tokens at the last change of the file, and the stamp of that state.
    known: Mutex<(Option<Stamp>, Vec<Token>)>,
    /// Tokens in memory only, which end with this process.
    lent: Mutex<Vec<Token>>,
}

/// Distinguishes two states of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Tokens {
    /// The tokens stored in this folder.
    pub fn of(folder: &Path) -> Self {
        Self { path: folder.join(FILE), known: Mutex::new((None, Vec::new())), lent: Mutex::default() }
    }

    /// Returns the file that stores the tokens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns all tokens: the stored ones in order of creation, then those in memory.
    pub fn list(&self) -> Result<Vec<Token>, TokenError> {
        self.among(|tokens| tokens.cloned().collect())
    }

    /// Passes all current tokens to `look`. Reads the file only if it has changed.
    fn among<R>(&self, look: impl FnOnce(&mut dyn Iterator<Item = &Token>) -> R) -> Result<R, TokenError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.stamp()?;
        if stamp.is_none() || known.0 != stamp {
            *known = (stamp, self.read()?);
        }
        let lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(look(&mut known.1.iter().chain(lent.iter())))
    }

    /// Creates a token for an agent. Its text is returned only here and stored nowhere.
    pub fn make(&self, agent: &str, by: &Actor, at: Timestamp) -> Result<(Token, String), TokenError> {
        self.make_for(Role::Agent, agent, by, at)
    }

    /// Creates a read-only token for one path, such as `/metrics`.
    pub fn make_only(
        &self,
        agent: &str,
        path: &str,
        by: &Actor,
        at: Timestamp,
    ) -> Result<(Token, String), TokenError> {
        let (token, text) = fresh(Role::Reader, agent, by, at)?;
        self.keep(Token { only: Some(path.to_owned()), ..token }, text)
    }

    /// Creates a token for a role.
    pub fn make_for(
        &self,
        role: Role,
        agent: &str,
        by: &Actor,
        at: Timestamp,
    ) -> Result<(Token, String), TokenError> {
        let (token, text) = fresh(role, agent, by, at)?;
        self.keep(token, text)
    }

    fn keep(&self, token: Token, text: String) -> Result<(Token, String), TokenError> {
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

    /// Creates a token that ends with this process and is stored in no file. Its text is discarded: sessions use it.
    pub fn lend(&self, role: Role, agent: &str, by: &Actor, at: Timestamp) -> Result<Token, TokenError> {
        let (token, _) = fresh(role, agent, by, at)?;
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
        let sha256 = waypost_text::hex(digest(&SHA256, text.as_bytes()).as_ref());
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

    fn failed(&self, error: io::Error) -> TokenError {
        TokenError::File { path: self.path.clone(), error }
    }

    fn stamp(&self) -> Result<Option<Stamp>, TokenError> {
        match fs::metadata(&self.path) {
            Ok(found) => Ok(Some(Stamp {
                inode: found.ino(),
                bytes: found.size(),
                changed: (found.mtime(), found.mtime_nsec()),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn read(&self) -> Result<Vec<Token>, TokenError> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed(error)),
        };
        let kept: Result<TokenFile, _> = serde_json::from_str(&text);
        Ok(kept.map_err(|error| TokenError::Corrupt { path: self.path.clone(), error })?.tokens)
    }

    /// Rewrites the file. A lock serializes concurrent changes.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<Token>) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let failed = |error| self.failed(error);
        let private = || OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).clone();
        let lock = private().open(self.path.with_extension("lock")).map_err(failed)?;
        File::lock(&lock).map_err(failed)?;
        let mut tokens = self.read()?;
        let changed = change(&mut tokens)?;
        let text = serde_json::to_string_pretty(&TokenFile { tokens })
            .map_err(|error| TokenError::Corrupt { path: self.path.clone(), error })?;
        let temporary = self.path.with_extension("json.tmp");
        let put = |path: &Path| {
            // A leftover file may have other permissions.
            let _absent = fs::remove_file(path);
            let mut file = private().create_new(true).open(path)?;
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(path, &self.path)
        };
        put(&temporary).map_err(failed)?;
        Ok(changed)
    }
}

/// Creates a token and its text. Only a person can.
fn fresh(role: Role, agent: &str, by: &Actor, at: Timestamp) -> Result<(Token, String), TokenError> {
    only_a_person(by)?;
    let text = format!("{PREFIX}{}", random::<TOKEN_BYTES>()?);
    let token = Token {
        id: random::<ID_BYTES>()?,
        agent: agent.to_owned(),
        role,
        sha256: waypost_text::hex(digest(&SHA256, text.as_bytes()).as_ref()),
        created_at: at,
        created_by: by.clone(),
        only: None,
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
