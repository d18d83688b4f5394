//! The door over HTTP, called by a real client over a real socket.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod api;
mod document;
mod door;
mod layout;
mod listeners;
mod logs;
mod metrics;
mod sessions;
mod tokens;
mod work;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use waypost_account::Account;
use waypost_core::Actor;
use waypost_http::{NewToken, TokenFiles, Tokens};
use waypost_service::{Caller, Presence};

/// A folder that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("waypost-http-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// The files of an account whose home is in this folder, for a workspace in it.
fn token_files(folder: &Path) -> TokenFiles {
    let folder = std::fs::canonicalize(folder).unwrap();
    let (home, own) = (folder.join("home"), folder.join("work/.waypost"));
    for folder in [&home, &own] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let (name, examined_below) = ("ada".to_owned(), folder.clone());
    let account = Account {
        name,
        home: Some(home),
        private_group: None,
        sudo_uid: None,
        examined_below,
        ..Account::current()
    };
    let store = format!("sqlite:{}", own.join("waypost.db").display());
    TokenFiles { operator: folder.join("etc/tokens.json"), ..TokenFiles::of(&account, &store, &own) }
}

fn tokens_in(folder: &Path) -> Tokens {
    Tokens::new(token_files(folder))
}

/// A person at a terminal.
fn ada() -> Caller {
    Caller::new(Actor::person("ada")).present(Presence::new("terminal"))
}

fn for_agent(agent: &str) -> NewToken<'_> {
    NewToken { agent, ..NewToken::default() }
}
