//! The files that tools created. They are kept in Waypost's own folder, so that every server of the workspace may replace
//! them. Knows no rules about names.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags, open};

/// The file with the paths of created files, a JSON text per line.
const NAME: &str = "created-files";
/// Maximum bytes of that file. Files that are created later can only be replaced by the server that created them.
pub(crate) const CREATED_BYTES_MAX: u64 = 1024 * 1024;
/// Maximum number of files that a server itself remembers to have created. Further ones cannot be replaced.
pub(crate) const CREATED_FILES_MAX: usize = 10_000;

/// The files that tools created, by their paths. Only these may be replaced: a file of the same name may be a person's.
pub(crate) struct CreatedFiles {
    list: PathBuf,
    /// Those of this server, in case the list cannot be written.
    own: Mutex<BTreeSet<PathBuf>>,
}

impl CreatedFiles {
    /// The files that are listed in this folder.
    pub(crate) fn of(folder: &Path) -> Self {
        Self { list: folder.join(NAME), own: Mutex::default() }
    }

    /// Returns why a file that does not exist yet could not be listed. A file that is not listed must not be created: a
    /// command would take it for a person's.
    pub(crate) fn check_room(&self, path: &Path) -> io::Result<()> {
        let line = line_of(path)?;
        // Where plans are kept elsewhere, the folder does not exist yet.
        if let Some(folder) = self.list.parent().filter(|folder| !folder.exists()) {
            DirBuilder::new().mode(0o700).create(folder)?;
            fs::write(folder.join(".gitignore"), "*\n")?;
        }
        let length = self.open(OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)?.metadata()?.len();
        match length + line.len() as u64 <= CREATED_BYTES_MAX {
            true => Ok(()),
            false => Err(io::Error::other(format!("{} is full", self.list.display()))),
        }
    }

    pub(crate) fn insert(&self, path: PathBuf) {
        // Without the list only this server replaces the file.
        let _unlisted = self.append(&path);
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if own.len() < CREATED_FILES_MAX {
            own.insert(path);
        }
    }

    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).contains(path)
            || self.is_listed(path).unwrap_or(false)
    }

    fn append(&self, path: &Path) -> io::Result<()> {
        let line = line_of(path)?;
        let mut file = self.open(OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)?;
        if file.metadata()?.len() + line.len() as u64 <= CREATED_BYTES_MAX {
            file.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    fn is_listed(&self, path: &Path) -> io::Result<bool> {
        let mut text = String::new();
        self.open(OFlags::RDONLY)?.take(CREATED_BYTES_MAX).read_to_string(&mut text)?;
        let is_it =
            |line: &str| serde_json::from_str::<PathBuf>(line).is_ok_and(|known| known.as_path() == path);
        Ok(text.lines().any(is_it))
    }

    /// Opens the list, unless it is a link. A pipe does not block.
    fn open(&self, access: OFlags) -> io::Result<File> {
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(File::from(open(&self.list, flags, Mode::from_raw_mode(0o600))?))
    }
}

fn line_of(path: &Path) -> io::Result<String> {
    Ok(serde_json::to_string(&path.to_string_lossy())? + "\n")
}

/// Whether a tool wrote a file for an agent: it is listed, or lies in the scratch folder, in the workspace whose own folder is
/// `own` or in one that the file lies in.
pub fn is_written_by_tool(own: &Path, file: &Path) -> bool {
    let Ok(real) = file.canonicalize() else { return false };
    // A command may name a file of another workspace.
    let around = real.ancestors().skip(1).map(|folder| folder.join(".waypost"));
    std::iter::once(own.to_owned()).chain(around).any(|own| {
        let scratch = own.join("files").canonicalize();
        scratch.is_ok_and(|scratch| real.starts_with(scratch)) || CreatedFiles::of(&own).contains(&real)
    })
}
