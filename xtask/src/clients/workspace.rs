//! A private workspace for a client under test.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::exec::{cache_dir, output};

/// An empty workspace and a home directory.
pub(super) struct Workspace {
    pub(super) folder: PathBuf,
    home: PathBuf,
}

impl Workspace {
    /// Creates both empty, removing what an earlier run left.
    pub(super) fn empty(name: &str) -> Result<Self> {
        let folder = cache_dir().join("clients").join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        let created = Self { folder: folder.join("workspace"), home: folder.join("home") };
        std::fs::create_dir_all(created.folder.join(".waypost"))?;
        std::fs::create_dir_all(&created.home)?;
        // A repository of its own: below a worktree of ours, the plans would be those of our main checkout.
        output(Command::new("git").args(["init", "--quiet"]).arg(&created.folder))?;
        Ok(created)
    }

    /// Writes a file into the workspace.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let file = self.folder.join(name);
        std::fs::write(&file, text)?;
        Ok(file)
    }

    /// Makes a command run in this workspace with this home, and without the caller's environment except `PATH`.
    pub(super) fn enter(&self, command: &mut Command) {
        command.current_dir(&self.folder).env_clear();
        command.env("HOME", &self.home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    }
}
