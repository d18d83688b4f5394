//! Who calls, and what the account vouches for, by examples and by random search.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod account;
mod evidence;
mod ownership;
mod seal;
mod signature;
mod trust;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use waypost_account::Account;

/// A private folder that is gone at the end, and an account whose home is in it.
struct Scratch {
    root: PathBuf,
    account: Account,
}

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("waypost-account-{}-{number}", std::process::id()));
        fs::create_dir_all(root.join("home")).unwrap();
        let root = fs::canonicalize(root).unwrap();
        set_mode(&root, 0o755);
        set_mode(&root.join("home"), 0o755);
        let account = Account {
            name: "ada".to_owned(),
            home: Some(root.join("home")),
            private_group: None,
            sudo_uid: None,
            examined_below: root.clone(),
            ..Account::current()
        };
        Self { root, account }
    }

    fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The account for which the files of this process are another user's. Root can give files away instead.
    fn stranger(&self, file: &Path) -> Account {
        const NOBODY: u32 = 65_534;
        if self.account.uid != 0 {
            return Account { uid: self.account.uid + 1, ..self.account.clone() };
        }
        std::os::unix::fs::lchown(file, Some(NOBODY), None).unwrap();
        self.account.clone()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.root);
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
