//! Files of the workspace, read and written for a model: nothing outside of it, nothing through a link, only regular files, and
//! writes are atomic. Knows nothing of plans.
//!
//! A path is opened folder by folder from the workspace, each relative to the one before and without following links, so that a
//! concurrent change of folders cannot redirect it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fchmod, fstat, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use crate::protected_paths::{self, Access};
use crate::tool_error::ToolError;
use crate::workspace::Workspace;

/// Maximum bytes of a file.
pub(crate) const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The hint for a path that is not a regular file of the workspace.
const INSIDE: &str = "name a regular file in the workspace by its relative path";

/// Reads a text file of the workspace.
pub(crate) fn read(workspace: &Workspace, path: &str) -> Result<String, ToolError> {
    let place = Place::find(workspace, path, Access::Read)?;
    place.must_be_plain()?;
    // Do not block, in case the file is replaced by a pipe at this very moment.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file =
        openat(&place.folder, &place.name, flags, Mode::empty()).map_err(|error| place.failed(error))?;
    let found = fstat(&file).map_err(|error| place.failed(error))?;
    place.check(FileType::from_raw_mode(found.st_mode))?;
    let mut bytes = Vec::new();
    let taken = File::from(file).take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    taken.map_err(|error| place.broke(&error))?;
    fits(path, bytes.len())?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        ToolError::new(format!("{path} is not UTF-8 text: byte {at} cannot be read"), "save it as UTF-8")
    })
}

/// Writes a whole file of the workspace, creates missing folders, and replaces an existing file. Returns the number of bytes.
pub(crate) fn write(workspace: &Workspace, path: &str, text: &str) -> Result<u64, ToolError> {
    fits(path, text.len())?;
    let place = Place::find(workspace, path, Access::Write)?;
    let permissions = place.plain_or_absent()?;
    let temporary = temporary_name(&place.name);
    let written = put(&place, &temporary, text, permissions);
    if written.is_err() {
        // Leave nothing behind. If the removal fails too, the first error matters more.
        let _gone = unlinkat(&place.folder, &temporary, AtFlags::empty());
    }
    written.map_err(|error| place.broke(&error))?;
    Ok(text.len() as u64)
}

/// Like [`write()`], but refuses to replace a file with other content.
pub(crate) fn write_new(workspace: &Workspace, path: &str, text: &str) -> Result<u64, ToolError> {
    let place = Place::find(workspace, path, Access::Write)?;
    if place.plain_or_absent()?.is_some() && read(workspace, path)? != text {
        let message = format!("{path} exists with other content; nothing was written");
        return Err(ToolError::new(message, "name another file, or pass `overwrite` to replace it"));
    }
    write(workspace, path, text)
}

fn put(place: &Place, temporary: &str, text: &str, permissions: Option<Mode>) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(&place.folder, temporary, flags, Mode::from_raw_mode(0o666))?);
    file.write_all(text.as_bytes())?;
    if let Some(permissions) = permissions {
        fchmod(&file, permissions)?;
    }
    file.sync_all()?;
    renameat(&place.folder, temporary, &place.folder, &place.name)?;
    // After a crash either the new file is there with all its bytes, or the old one is.
    rustix::fs::fsync(&place.folder)?;
    Ok(())
}

/// Returns a name that no other writer on this machine uses at the same time.
fn temporary_name(name: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    // A file name may have 255 bytes.
    let short = waypost_text::head_bytes(name, 160);
    format!(".{short}.{}-{number}.tmp", std::process::id())
}

fn fits(path: &str, bytes: usize) -> Result<(), ToolError> {
    if bytes as u64 <= FILE_BYTES_MAX {
        return Ok(());
    }
    let message = format!("{path} has more than {FILE_BYTES_MAX} bytes");
    Err(ToolError::new(message, "split it into several plans"))
}

/// A name in an open folder of the workspace.
struct Place {
    folder: OwnedFd,
    name: String,
    /// The path as the caller wrote it, for messages.
    said: String,
}

impl Place {
    /// Opens the folder of a path. For a write, creates missing folders.
    fn find(workspace: &Workspace, said: &str, access: Access) -> Result<Self, ToolError> {
        let mut names = names(&workspace.folder, said)?;
        protected_paths::refuse(workspace, said, &names, access)?;
        let name = names.pop().ok_or_else(|| ToolError::new(format!("{said:?} names no file"), INSIDE))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // The workspace itself may be reached through links: the operator chose its location.
        let opened = rustix::fs::open(&workspace.folder, flags, Mode::empty());
        let folder = opened.map_err(|error| failed(&workspace.folder.display().to_string(), error))?;
        let mut place = Self { folder, name, said: said.to_owned() };
        for folder in names {
            place.folder = place.enter(&folder, access)?;
        }
        Ok(place)
    }

    fn enter(&self, name: &str, access: Access) -> Result<OwnedFd, ToolError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || openat(&self.folder, name, flags, Mode::empty());
        match open() {
            Ok(folder) => Ok(folder),
            Err(Errno::NOENT) if access == Access::Write => {
                match mkdirat(&self.folder, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => open().map_err(|error| self.failed(error)),
                    Err(error) => Err(self.failed(error)),
                }
            }
            // With NOFOLLOW a link is not a folder.
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let message = format!("{}: {name} is a link or not a folder", self.said);
                Err(ToolError::new(message, INSIDE))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    fn must_be_plain(&self) -> Result<(), ToolError> {
        match self.plain_or_absent()? {
            Some(_) => Ok(()),
            None => Err(self.failed(Errno::NOENT)),
        }
    }

    /// Returns the permissions of the file, or `None` if it does not exist.
    fn plain_or_absent(&self) -> Result<Option<Mode>, ToolError> {
        match statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => {
                self.check(FileType::from_raw_mode(found.st_mode))?;
                Ok(Some(Mode::from_raw_mode(found.st_mode)))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn check(&self, kind: FileType) -> Result<(), ToolError> {
        let what = match kind {
            FileType::RegularFile => return Ok(()),
            FileType::Symlink => "a link",
            FileType::Directory => "a folder",
            FileType::Fifo => "a pipe",
            FileType::Socket => "a socket",
            FileType::CharacterDevice | FileType::BlockDevice => "a device",
            FileType::Unknown => "something unknown",
        };
        Err(ToolError::new(format!("{} is {what}, not a regular file", self.said), INSIDE))
    }

    fn failed(&self, error: Errno) -> ToolError {
        failed(&self.said, error)
    }

    fn broke(&self, error: &io::Error) -> ToolError {
        match error.raw_os_error() {
            Some(number) => self.failed(Errno::from_raw_os_error(number)),
            None => ToolError::new(format!("{}: {error}", self.said), INSIDE),
        }
    }
}

fn failed(said: &str, error: Errno) -> ToolError {
    match error {
        Errno::NOENT => ToolError::new(format!("there is no file {said}"), INSIDE),
        Errno::LOOP => ToolError::new(format!("{said} is a link, not a regular file"), INSIDE),
        Errno::ACCESS | Errno::PERM => {
            ToolError::new(format!("{said} cannot be read or written by this user"), "name another file")
        }
        error => ToolError::new(format!("{said}: {}", io::Error::from(error)), INSIDE),
    }
}

/// Returns the path components from the workspace to the file.
fn names(workspace: &Path, said: &str) -> Result<Vec<String>, ToolError> {
    if said.trim().is_empty() || said.contains('\0') {
        return Err(ToolError::new(format!("{said:?} names no file"), INSIDE));
    }
    let outside = || ToolError::new(format!("{said} is outside of the workspace"), INSIDE);
    let mut path = PathBuf::from(said);
    if path.is_absolute() {
        let canonical = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let inner = path.strip_prefix(workspace).or_else(|_| path.strip_prefix(&canonical));
        path = inner.map_err(|_| outside())?.to_owned();
    }
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_string_lossy().into_owned()),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(outside()),
        }
    }
    if said.ends_with('/') {
        return Err(ToolError::new(format!("{said} names a folder, not a file"), INSIDE));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::Arc;

    use waypost_store::{MemoryStore, PlanStore};

    use super::*;

    /// A workspace next to a secret, both in a folder that is removed at the end.
    struct Beside {
        all: PathBuf,
        workspace: Workspace,
    }

    impl Beside {
        fn new(name: &str) -> Self {
            let all = std::env::temp_dir().join(format!("waypost-files-{name}-{}", std::process::id()));
            let _old = std::fs::remove_dir_all(&all);
            let folder = all.join("workspace");
            std::fs::create_dir_all(folder.join("notes")).unwrap();
            std::fs::create_dir_all(all.join("outside")).unwrap();
            std::fs::write(all.join("outside/secret"), "secret").unwrap();
            let plans = Arc::new(PlanStore::new(Arc::new(MemoryStore::new())));
            let own = folder.join(".waypost");
            Self { all, workspace: Workspace::new(plans, Arc::default(), folder, own) }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.workspace.folder.join(name)
        }

        fn refused(&self, path: &str) -> (String, String) {
            let read = read(&self.workspace, path).unwrap_err().message;
            (read, write(&self.workspace, path, "written").unwrap_err().message)
        }
    }

    impl Drop for Beside {
        fn drop(&mut self) {
            let _gone = std::fs::remove_dir_all(&self.all);
        }
    }

    #[test]
    fn a_file_of_the_workspace_is_written_whole_and_read_again() {
        let beside = Beside::new("plain");
        assert_eq!(write(&beside.workspace, "notes/new/plan.md", "héllo").unwrap(), 6);
        assert_eq!(read(&beside.workspace, "./notes/new/plan.md").unwrap(), "héllo");
        let absolute = beside.path("notes/new/plan.md").display().to_string();
        assert_eq!(read(&beside.workspace, &absolute).unwrap(), "héllo");
        let left: Vec<_> = std::fs::read_dir(beside.path("notes/new")).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing else is left: {left:?}");
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_permissions() {
        let beside = Beside::new("mode");
        std::fs::write(beside.path("plan.md"), "old").unwrap();
        std::fs::set_permissions(beside.path("plan.md"), PermissionsExt::from_mode(0o640)).unwrap();
        write(&beside.workspace, "plan.md", "new").unwrap();
        let mode = std::fs::metadata(beside.path("plan.md")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    fn nothing_outside_of_the_workspace_is_read_or_written() {
        let beside = Beside::new("outside");
        let secret = beside.all.join("outside/secret").display().to_string();
        for path in
            ["../outside/secret", "notes/../../outside/secret", "notes/../plan.md", &secret, "/etc/passwd"]
        {
            let (read, write) = beside.refused(path);
            assert!(read.contains("outside of the workspace"), "{path}: {read}");
            assert_eq!(read, write);
        }
        assert_eq!(std::fs::read_to_string(secret).unwrap(), "secret");
    }

    #[test]
    fn links_are_followed_nowhere() {
        let beside = Beside::new("links");
        symlink(beside.all.join("outside"), beside.path("away")).unwrap();
        symlink(beside.all.join("outside/secret"), beside.path("secret")).unwrap();
        symlink(beside.path("notes"), beside.path("near")).unwrap();
        for path in ["away/secret", "secret", "near/plan.md"] {
            let (read, write) = beside.refused(path);
            assert!(read.contains("a link"), "{path}: {read}");
            assert!(write.contains("a link"), "{path}: {write}");
        }
        assert_eq!(std::fs::read_to_string(beside.all.join("outside/secret")).unwrap(), "secret");
    }

    #[test]
    fn folders_pipes_and_what_decides_what_is_allowed_are_refused() {
        let beside = Beside::new("kinds");
        let made = std::process::Command::new("mkfifo").arg(beside.path("pipe")).status();
        assert!(made.unwrap().success());
        for (path, why) in [
            ("pipe", "a pipe"),
            ("notes", "a folder"),
            ("notes/", "a folder"),
            ("", "names no file"),
            (".", "names no file"),
            (".waypost/config.toml", "neither read nor written"),
            (".git/hooks/pre-commit", "neither read nor written"),
            ("sub/.GIT/config", "neither read nor written"),
        ] {
            let (read, write) = beside.refused(path);
            assert!(read.contains(why), "{path}: {read}");
            assert!(write.contains(why), "{path}: {write}");
        }
        assert!(
            read(&beside.workspace, "absent.md").unwrap_err().message.contains("there is no file absent.md")
        );
    }

    #[test]
    fn a_file_may_be_as_large_as_the_limit_and_no_larger() {
        let beside = Beside::new("size");
        let file = File::create(beside.path("large")).unwrap();
        file.set_len(FILE_BYTES_MAX).unwrap();
        assert_eq!(read(&beside.workspace, "large").unwrap().len() as u64, FILE_BYTES_MAX);
        file.set_len(FILE_BYTES_MAX + 1).unwrap();
        assert!(read(&beside.workspace, "large").unwrap_err().message.contains("67108864 bytes"));
        std::fs::write(beside.path("bytes"), [b'a', 0xff]).unwrap();
        assert!(read(&beside.workspace, "bytes").unwrap_err().message.contains("byte 1 cannot be read"));
    }
}
