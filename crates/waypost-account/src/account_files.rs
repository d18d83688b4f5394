//! Reads and writes account files. Like sshd with `StrictModes`, refuses a file that someone else could have written.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::account::Account;

/// Maximum bytes of an account file.
pub const ACCOUNT_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The mode of files that only the account reads and writes.
const FILE_MODE: u32 = 0o600;
/// The mode of their folders.
const FOLDER_MODE: u32 = 0o700;
/// Write permission of the group and of others.
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// Why an account file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AccountFileError {
    /// The file or a folder above it belongs to another user.
    #[error("{} is not used: {} belongs to uid {uid}", file.display(), at.display())]
    Foreign { file: PathBuf, at: PathBuf, uid: u32 },
    /// Others can write the file or a folder above it.
    #[error("{} is not used: others can write {}", file.display(), at.display())]
    Writable { file: PathBuf, at: PathBuf },
    #[error("{} is larger than {ACCOUNT_FILE_BYTES_MAX} bytes", .0.display())]
    TooLarge(PathBuf),
    /// The content is not what the file should contain.
    #[error("{}: {what}", file.display())]
    Malformed { file: PathBuf, what: String },
    #[error("{}: {error}", file.display())]
    Io { file: PathBuf, error: io::Error },
}

impl AccountFileError {
    /// Returns the error code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Foreign { .. } | Self::Writable { .. } => "insecure_file",
            Self::TooLarge(_) | Self::Malformed { .. } | Self::Io { .. } => "account_file",
        }
    }

    /// Returns what to do next.
    pub fn hint(&self) -> String {
        match self {
            Self::Foreign { at, .. } => format!("make it your own: chown $(id -u) {}", at.display()),
            Self::Writable { at, .. } => format!("chmod go-w {}", at.display()),
            Self::TooLarge(file) | Self::Malformed { file, .. } => format!("correct {}", file.display()),
            Self::Io { .. } => "check the permissions of the path".to_owned(),
        }
    }
}

/// The state of a file that changes with its content, its owner and its permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    inode: u64,
    mode: u32,
    owner: (u32, u32),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    /// Returns the state of a file; `None` if it does not exist or cannot be examined.
    pub fn of(file: &Path) -> Option<Self> {
        let data = fs::metadata(file).ok()?;
        Some(Self {
            inode: data.ino(),
            mode: data.mode(),
            owner: (data.uid(), data.gid()),
            bytes: data.len(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        })
    }
}

impl Account {
    /// Whether others can write what has this metadata. The user's private group does not count as others.
    pub(crate) fn others_write(&self, metadata: &Metadata) -> bool {
        let group = metadata.mode() & GROUP_WRITES != 0 && self.private_group != Some(metadata.gid());
        group || metadata.mode() & OTHERS_WRITE != 0
    }

    /// Reads an account file; `None` if it does not exist. A file that someone else could have written is an error.
    pub fn read(&self, file: &Path) -> Result<Option<Vec<u8>>, AccountFileError> {
        let failed = |error| AccountFileError::Io { file: file.to_owned(), error };
        // People keep their configuration elsewhere and link to it, so the target's folders are examined.
        let target = match fs::canonicalize(file) {
            Ok(target) => target,
            // What a link does not find may be a list of revoked keys.
            Err(error) if is_absent(&error) && fs::symlink_metadata(file).is_ok() => {
                let what = "is a link that leads nowhere".to_owned();
                return Err(AccountFileError::Malformed { file: file.to_owned(), what });
            }
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        // Opening a pipe would wait for a writer.
        if !fs::metadata(&target).map_err(failed)?.is_file() {
            return Err(AccountFileError::Malformed {
                file: file.to_owned(),
                what: "is not a plain file".to_owned(),
            });
        }
        let opened = File::open(&target).map_err(failed)?;
        self.check_one(file, &target, &opened.metadata().map_err(failed)?)?;
        self.check_above(file, &target)?;
        let mut bytes = Vec::new();
        opened.take(ACCOUNT_FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > ACCOUNT_FILE_BYTES_MAX {
            return Err(AccountFileError::TooLarge(file.to_owned()));
        }
        Ok(Some(bytes))
    }

    /// Writes a state file as a whole: readable only by the account, whatever the umask.
    pub fn write(&self, file: &Path, bytes: &[u8]) -> Result<(), AccountFileError> {
        self.replace(file, bytes, |whole, file| fs::rename(whole, file))
    }

    /// Like [`Account::write`], but fails with `AlreadyExists` if the file exists.
    pub fn write_new(&self, file: &Path, bytes: &[u8]) -> Result<(), AccountFileError> {
        self.replace(file, bytes, |whole, file| {
            let linked = fs::hard_link(whole, file);
            fs::remove_file(whole).and(linked)
        })
    }

    /// Waits until no other process changes a state file, and returns the lock, which lasts until it is dropped.
    pub fn lock(&self, file: &Path) -> Result<File, AccountFileError> {
        let failed = |error| AccountFileError::Io { file: file.to_owned(), error };
        file.parent().map_or(Ok(()), make_folders).map_err(failed)?;
        let mut options = OpenOptions::new();
        let lock = options.write(true).create(true).truncate(false).mode(FILE_MODE);
        let lock = lock.open(file.with_extension("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        Ok(lock)
    }

    /// Writes the bytes to a file beside it and puts that in place, so that no reader sees a part.
    fn replace(
        &self,
        file: &Path,
        bytes: &[u8],
        put: impl FnOnce(&Path, &Path) -> io::Result<()>,
    ) -> Result<(), AccountFileError> {
        let failed = |error| AccountFileError::Io { file: file.to_owned(), error };
        let folder = file.parent().unwrap_or(Path::new("/"));
        make_folders(folder).map_err(failed)?;
        let target = fs::canonicalize(folder).map_err(failed)?;
        self.check_one(file, &target, &fs::metadata(&target).map_err(failed)?)?;
        self.check_above(file, &target)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let whole = target.join(format!(".{name}.{}", random_name().map_err(failed)?));
        let written = write_beside(&whole, bytes).and_then(|()| put(&whole, &target.join(name.as_ref())));
        if written.is_err() {
            let _gone = fs::remove_file(&whole);
        }
        written.and_then(|()| File::open(&target)?.sync_all()).map_err(failed)
    }

    /// Examines the folders above a canonical path.
    fn check_above(&self, file: &Path, target: &Path) -> Result<(), AccountFileError> {
        for folder in target.ancestors().skip(1).take_while(|folder| *folder != self.examined_below) {
            let metadata = fs::symlink_metadata(folder)
                .map_err(|error| AccountFileError::Io { file: file.to_owned(), error })?;
            self.check_one(file, folder, &metadata)?;
        }
        Ok(())
    }

    fn check_one(&self, file: &Path, at: &Path, metadata: &Metadata) -> Result<(), AccountFileError> {
        let (file, at) = (file.to_owned(), at.to_owned());
        if metadata.uid() != self.uid && metadata.uid() != 0 {
            return Err(AccountFileError::Foreign { file, at, uid: metadata.uid() });
        }
        if self.others_write(metadata) {
            return Err(AccountFileError::Writable { file, at });
        }
        Ok(())
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Creates the missing folders with their mode, whatever the umask.
fn make_folders(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        make_folders(above)?;
    }
    match DirBuilder::new().mode(FOLDER_MODE).create(folder) {
        // Another process made it meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE)),
    }
}

fn write_beside(whole: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(whole)?;
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn random_name() -> io::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(waypost_text::hex(&bytes))
}
