//! Files of the workspace, read and written for a model: nothing outside of it, nothing through a link, only regular files with
//! one name, and writes are atomic. `file_rules` decides which paths. Knows nothing of plans.
//!
//! A path is opened folder by folder from the workspace, each relative to the one before and without following links, so that a
//! concurrent change of folders cannot redirect it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawMode, Stat, fchmod, fstat, fsync, linkat, mkdirat, openat, renameat,
    stat, statat, unlinkat,
};
use rustix::io::Errno;
use waypost_formats::Dialect;

use crate::file_rules::{FilePath, Folder, SCRATCH};
use crate::tool_error::ToolError;
use crate::workspace::Workspace;

/// Maximum bytes of a file.
pub(crate) const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The hint for a path that is not a regular file of the workspace.
const INSIDE: &str = "name a regular file in the workspace by its relative path";
/// Keeps Waypost's own folder out of version control.
const GITIGNORE: (&str, &[u8]) = (".gitignore", b"*\n");
/// The permissions of files, less the umask.
const FILE_MODE: RawMode = 0o644;

/// The files of a workspace, as one caller may use them.
pub(crate) struct Files<'a> {
    pub(crate) workspace: &'a Workspace,
    /// Whether the caller is elsewhere, and so has no files of its own here.
    pub(crate) over_http: bool,
}

impl Files<'_> {
    /// Reads a file as text for people.
    pub(crate) fn read_text(&self, said: &str) -> Result<String, ToolError> {
        let path = self.path(said)?;
        path.check_text()?;
        self.read(&path)
    }

    /// Reads a file as a plan in this format, or in the one that it looks like.
    pub(crate) fn read_plan(&self, said: &str, format: Option<Dialect>) -> Result<String, ToolError> {
        let path = self.path(said)?;
        path.check_plan()?;
        let text = self.read(&path)?;
        path.check_format(&text, format)?;
        Ok(text)
    }

    fn read(&self, path: &FilePath<'_>) -> Result<String, ToolError> {
        let place = self.open(path, Access::Read)?;
        let file = place.open()?;
        self.check_not_secret(path, &fstat(&file).map_err(|error| place.failed(error))?)?;
        let mut bytes = Vec::new();
        let taken = File::from(file).take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
        taken.map_err(|error| place.broke(&error))?;
        let said = path.said;
        fits(said, bytes.len())?;
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            ToolError::new(format!("{said} is not UTF-8 text: byte {at} cannot be read"), "save it as UTF-8")
        })
    }

    /// Writes a whole file, and creates missing folders. Replaces a file with other content only if told to `overwrite` it, and
    /// only one that a tool created, that is in the scratch folder, or that the configuration lists. Returns the number of bytes.
    pub(crate) fn write(&self, said: &str, text: &str, overwrite: bool) -> Result<u64, ToolError> {
        fits(said, text.len())?;
        let path = self.path(said)?;
        let (is_listed, may_be_created) = (self.is_listed(&path), path.may_be_created());
        // Before any folder is created.
        if !is_listed && !may_be_created {
            return Err(path.not_written());
        }
        let place = self.open(&path, Access::Write)?;
        let (created, whole) = (&self.workspace.created_files, self.whole(&path));
        match place.stat()? {
            None => {
                if may_be_created {
                    created.check_room(&whole).map_err(|error| place.broke(&error))?;
                }
                place.create(text).map_err(|error| place.broke(&error))?;
                if may_be_created {
                    created.insert(whole);
                }
            }
            Some(found) if place.holds(&found, text)? => {}
            Some(found) => {
                let is_ours = path.folder == Folder::Scratch || created.contains(&whole);
                let may_replace = is_ours || is_listed && found.st_mode & 0o111 == 0;
                if !may_replace {
                    let message = format!("{said} exists and was not written by a tool; nothing was written");
                    let hint =
                        format!("name it {}/{}, or create another file", SCRATCH.join("/"), path.name());
                    return Err(ToolError::new(message, hint));
                }
                if !overwrite {
                    let message = format!("{said} exists with other content; nothing was written");
                    let hint = "name another file, or pass `overwrite` to replace it";
                    return Err(ToolError::new(message, hint));
                }
                let mode = Mode::from_raw_mode(found.st_mode & FILE_MODE);
                place.replace(text, mode).map_err(|error| place.broke(&error))?;
            }
        }
        Ok(text.len() as u64)
    }

    /// Checks a path by its name, for this caller.
    fn path<'a>(&self, said: &'a str) -> Result<FilePath<'a>, ToolError> {
        let scratch = SCRATCH.join("/");
        if self.over_http && !self.workspace.config.files.http {
            let message = format!("{said}: files are neither read nor written for agents over HTTP");
            let hint =
                format!("send the text itself; or the operator opens {scratch} with `waypost serve --files`");
            return Err(ToolError::new(message, hint));
        }
        let path = FilePath::new(said, names(&self.workspace.folder, said)?)?;
        if self.over_http && path.folder != Folder::Scratch {
            let message = format!("{said}: over HTTP only files in {scratch} are read and written");
            return Err(ToolError::new(message, format!("name it {scratch}/{}", path.name())));
        }
        Ok(path)
    }

    /// Whether the account's configuration lets tools write exactly this file.
    fn is_listed(&self, path: &FilePath<'_>) -> bool {
        let (folder, wanted) = (&self.workspace.folder, self.whole(path));
        self.workspace.config.files.write.iter().any(|listed| folder.join(listed) == wanted)
    }

    /// Returns the path with the workspace's folder.
    fn whole(&self, path: &FilePath<'_>) -> PathBuf {
        path.names.iter().fold(self.workspace.folder.clone(), |path, name| path.join(name))
    }

    fn check_not_secret(&self, path: &FilePath<'_>, found: &Stat) -> Result<(), ToolError> {
        for secret in self.workspace.config.secret_files() {
            let named = stat(self.workspace.folder.join(secret));
            if named.is_ok_and(|named| is_same(found, &named)) {
                let message = format!("{} is not read by tools: it contains a secret", path.said);
                return Err(ToolError::new(message, "name another file"));
            }
        }
        Ok(())
    }

    /// Opens the folder of a path. For a write, creates missing folders.
    fn open(&self, path: &FilePath<'_>, access: Access) -> Result<Place, ToolError> {
        let Workspace { folder, own, .. } = self.workspace;
        let mut names = path.names.clone();
        let name = names.pop().unwrap_or_default();
        // A worktree shares Waypost's own folder with the main checkout. Both roots may be reached through links: the operator
        // chose their location.
        let root = match (path.folder, own.parent(), own.file_name()) {
            (Folder::Scratch, Some(root), Some(own)) => {
                names[0] = own.to_string_lossy().into_owned();
                root
            }
            (Folder::Scratch | Folder::HostPlans | Folder::Workspace, ..) => folder.as_path(),
        };
        let opened = rustix::fs::open(root, FOLDER, Mode::empty());
        let root = opened.map_err(|error| failed(&root.display().to_string(), error))?;
        let mut place = Place { folder: root, name, said: path.said.to_owned() };
        if access == Access::Write && path.folder != Folder::Scratch {
            self.check_not_store(&place)?;
        }
        for (depth, folder) in names.iter().enumerate() {
            place.folder = place.enter(folder, access)?;
            if access == Access::Write {
                self.check_not_store(&place)?;
                if depth == 0 && path.folder == Folder::Scratch {
                    place.ignore().map_err(|error| place.broke(&error))?;
                }
            }
        }
        Ok(place)
    }

    /// Refuses the folder of a store of files: only commands change plans.
    fn check_not_store(&self, place: &Place) -> Result<(), ToolError> {
        let location = self.workspace.plans().store().location();
        let Some(("file", store)) = location.split_once(':') else { return Ok(()) };
        let found = fstat(&place.folder).map_err(|error| place.failed(error))?;
        if stat(store).is_ok_and(|store| is_same(&found, &store)) {
            let message = format!("{} belongs to the store of the plans", place.said);
            return Err(ToolError::new(message, format!("name a file in {}", SCRATCH.join("/"))));
        }
        Ok(())
    }
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// Opens a folder; following links has to be ruled out where it matters.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const NEW_FILE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

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
    fn enter(&self, name: &str, access: Access) -> Result<OwnedFd, ToolError> {
        let open = || openat(&self.folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty());
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

    /// Writes a `.gitignore` for everything in the folder, if it has none.
    fn ignore(&self) -> io::Result<()> {
        let (name, text) = GITIGNORE;
        match openat(&self.folder, name, NEW_FILE, Mode::from_raw_mode(FILE_MODE)) {
            Ok(file) => File::from(file).write_all(text),
            Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the status of a regular file, or `None` if there is nothing.
    fn stat(&self) -> Result<Option<Stat>, ToolError> {
        match statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => self.check(&found).map(|()| Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Opens a regular file for reading.
    fn open(&self) -> Result<OwnedFd, ToolError> {
        self.stat()?.ok_or_else(|| self.failed(Errno::NOENT))?;
        // Do not block, in case the file is replaced by a pipe at this very moment.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, &self.name, flags, Mode::empty());
        let file = file.map_err(|error| self.failed(error))?;
        self.check(&fstat(&file).map_err(|error| self.failed(error))?)?;
        Ok(file)
    }

    fn check(&self, found: &Stat) -> Result<(), ToolError> {
        let said = &self.said;
        let what = match FileType::from_raw_mode(found.st_mode) {
            // A second name may be anywhere, and belong to another program.
            FileType::RegularFile if found.st_nlink > 1 => {
                let message = format!("{said} has {} names (hard links)", found.st_nlink);
                return Err(ToolError::new(message, "name a file with only one"));
            }
            FileType::RegularFile => return Ok(()),
            FileType::Symlink => "a link",
            FileType::Directory => "a folder",
            FileType::Fifo => "a pipe",
            FileType::Socket => "a socket",
            FileType::CharacterDevice | FileType::BlockDevice => "a device",
            FileType::Unknown => "something unknown",
        };
        Err(ToolError::new(format!("{said} is {what}, not a regular file"), INSIDE))
    }

    /// Whether the file holds exactly this text.
    fn holds(&self, found: &Stat, text: &str) -> Result<bool, ToolError> {
        if u64::try_from(found.st_size) != Ok(text.len() as u64) {
            return Ok(false);
        }
        let mut bytes = Vec::new();
        let taken = File::from(self.open()?).take(text.len() as u64 + 1).read_to_end(&mut bytes);
        taken.map_err(|error| self.broke(&error))?;
        Ok(bytes == text.as_bytes())
    }

    /// Creates the file whole. Fails if another one appeared under its name.
    fn create(&self, text: &str) -> io::Result<()> {
        self.put(text, None, |temporary| {
            linkat(&self.folder, temporary, &self.folder, &self.name, AtFlags::empty())?;
            unlinkat(&self.folder, temporary, AtFlags::empty())
        })
    }

    /// Replaces the file whole.
    fn replace(&self, text: &str, mode: Mode) -> io::Result<()> {
        self.put(text, Some(mode), |temporary| renameat(&self.folder, temporary, &self.folder, &self.name))
    }

    /// Writes a temporary file and moves it into place. After a crash either the new file is there with all its bytes, or what
    /// was there before.
    fn put(
        &self,
        text: &str,
        mode: Option<Mode>,
        move_into_place: impl FnOnce(&str) -> rustix::io::Result<()>,
    ) -> io::Result<()> {
        let temporary = temporary_name(&self.name);
        let put = || -> io::Result<()> {
            let file = openat(&self.folder, &temporary, NEW_FILE, Mode::from_raw_mode(FILE_MODE))?;
            let mut file = File::from(file);
            file.write_all(text.as_bytes())?;
            if let Some(mode) = mode {
                fchmod(&file, mode)?;
            }
            file.sync_all()?;
            move_into_place(&temporary)?;
            Ok(fsync(&self.folder)?)
        };
        put().inspect_err(|_| {
            // Leave nothing behind. If the removal fails too, the first error matters more.
            let _gone = unlinkat(&self.folder, &temporary, AtFlags::empty());
        })
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
    if names.is_empty() {
        return Err(ToolError::new(format!("{said:?} names no file"), INSIDE));
    }
    if said.ends_with('/') {
        return Err(ToolError::new(format!("{said} names a folder, not a file"), INSIDE));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::Arc;

    use waypost_config::{Config, Layer, Origin};
    use waypost_store::{Durability, MemoryStore, PlanStore, Store};

    use super::*;
    use crate::created_files::{CREATED_BYTES_MAX, CREATED_FILES_MAX, CreatedFiles};

    /// A workspace next to a secret, both in a folder that is removed at the end.
    struct Beside {
        all: PathBuf,
        workspace: Workspace,
    }

    impl Beside {
        fn new(name: &str) -> Self {
            Self::with(name, "", |_| Arc::new(MemoryStore::new()))
        }

        fn with(name: &str, config: &str, store: impl FnOnce(&Path) -> Arc<dyn Store>) -> Self {
            let all = std::env::temp_dir().join(format!("waypost-files-{name}-{}", std::process::id()));
            let _old = fs::remove_dir_all(&all);
            let folder = all.join("workspace");
            fs::create_dir_all(folder.join("notes")).unwrap();
            fs::create_dir_all(all.join("outside")).unwrap();
            fs::write(all.join("outside/plan.md"), "secret").unwrap();
            let layer = Layer { origin: Origin::User, name: "user".to_owned(), text: config.to_owned() };
            let config = Arc::new(Config::load(&[layer], []).unwrap());
            let plans = Arc::new(PlanStore::new(store(&folder)));
            let own = folder.join(".waypost");
            Self { all, workspace: Workspace::new(plans, config, folder, own) }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.workspace.folder.join(name)
        }

        fn files(&self) -> Files<'_> {
            Files { workspace: &self.workspace, over_http: false }
        }

        fn read(&self, path: &str) -> Result<String, String> {
            self.files().read_text(path).map_err(|refused| refused.message)
        }

        fn write(&self, path: &str, text: &str) -> Result<u64, String> {
            self.files().write(path, text, false).map_err(|refused| refused.message)
        }

        fn overwrite(&self, path: &str, text: &str) -> Result<u64, String> {
            self.files().write(path, text, true).map_err(|refused| refused.message)
        }

        fn mode(&self, name: &str) -> u32 {
            fs::metadata(self.path(name)).unwrap().permissions().mode() & 0o777
        }

        #[track_caller]
        fn is_refused(&self, path: &str, why: &str) {
            let refused = [self.read(path).unwrap_err(), self.overwrite(path, "written").unwrap_err()];
            assert!(refused.iter().all(|refused| refused.contains(why)), "{path}: {refused:?}");
        }
    }

    impl Drop for Beside {
        fn drop(&mut self) {
            let _gone = fs::remove_dir_all(&self.all);
        }
    }

    #[test]
    fn a_file_of_the_workspace_is_written_whole_and_read_again() {
        let beside = Beside::new("plain");
        assert_eq!(beside.write("notes/new/plan.md", "héllo"), Ok(6));
        assert_eq!(beside.read("./notes/new/plan.md").unwrap(), "héllo");
        let absolute = beside.path("notes/new/plan.md").display().to_string();
        assert_eq!(beside.read(&absolute).unwrap(), "héllo");
        let left: Vec<_> = fs::read_dir(beside.path("notes/new")).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing else is left: {left:?}");
        assert_eq!(beside.mode("notes/new/plan.md") & !FILE_MODE, 0);
    }

    #[test]
    fn only_a_file_that_a_tool_created_is_replaced() {
        let beside = Beside::new("created");
        fs::write(beside.path("old-plan.md"), "a person's").unwrap();
        let not_ours = "old-plan.md exists and was not written by a tool; nothing was written";
        assert_eq!(beside.write("old-plan.md", "new").unwrap_err(), not_ours);
        assert_eq!(beside.overwrite("old-plan.md", "new").unwrap_err(), not_ours);
        assert_eq!(fs::read_to_string(beside.path("old-plan.md")).unwrap(), "a person's");
        assert_eq!(beside.write("old-plan.md", "a person's"), Ok(10), "it holds that already");
        assert_eq!(beside.overwrite("old-plan.md", "new").unwrap_err(), not_ours);

        beside.write("plan.md", "one").unwrap();
        fs::write(beside.path("plan.md"), "edited").unwrap();
        assert!(beside.write("plan.md", "two").unwrap_err().contains("exists with other content"));
        assert_eq!(
            beside.overwrite("notes/../plan.md", "two").unwrap_err(),
            "notes/../plan.md is outside of the workspace"
        );
        assert_eq!(beside.overwrite("./plan.md", "two"), Ok(3));
        assert_eq!(fs::read_to_string(beside.path("plan.md")).unwrap(), "two");
    }

    #[test]
    fn the_scratch_folder_takes_any_file_and_version_control_ignores_it() {
        let beside = Beside::new("scratch");
        beside.write(".waypost/files/a/notes.md", "one").unwrap();
        assert_eq!(fs::read_to_string(beside.path(".waypost/.gitignore")).unwrap(), "*\n");
        fs::write(beside.path(".waypost/files/b.md"), "another's").unwrap();
        beside.overwrite(".waypost/files/b.md", "two").unwrap();
        assert_eq!(beside.read(".waypost/files/b.md").unwrap(), "two");
        fs::write(beside.path(".waypost/.gitignore"), "mine\n").unwrap();
        beside.write(".waypost/files/c.md", "three").unwrap();
        assert_eq!(fs::read_to_string(beside.path(".waypost/.gitignore")).unwrap(), "mine\n");
    }

    #[test]
    fn a_worktree_uses_the_scratch_folder_of_the_main_checkout() {
        let mut beside = Beside::new("worktree");
        beside.workspace.own = beside.all.join("main/.waypost");
        beside.workspace.created_files = CreatedFiles::of(&beside.workspace.own);
        fs::create_dir(beside.all.join("main")).unwrap();
        beside.write(".waypost/files/notes.md", "text").unwrap();
        assert_eq!(fs::read_to_string(beside.all.join("main/.waypost/files/notes.md")).unwrap(), "text");
        assert!(!beside.path(".waypost").exists());
        fs::rename(beside.all.join("main/.waypost"), beside.all.join("elsewhere")).unwrap();
        symlink("../elsewhere", beside.all.join("main/.waypost")).unwrap();
        beside.is_refused(".waypost/files/notes.md", "a link");
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_permissions_but_is_never_executable() {
        let beside = Beside::new("mode");
        beside.write("plan.md", "old").unwrap();
        for (before, after) in [(0o640, 0o640), (0o755, 0o644)] {
            fs::set_permissions(beside.path("plan.md"), PermissionsExt::from_mode(before)).unwrap();
            beside.overwrite("plan.md", &format!("{before}")).unwrap();
            assert_eq!(beside.mode("plan.md"), after);
        }
    }

    #[test]
    fn a_file_that_the_configuration_lists_is_written_unless_it_is_executable() {
        let config = "[files]\nwrite = [\"docs/TASKS\", \"./run.sh\"]\n";
        let beside = Beside::with("listed", config, |_| Arc::new(MemoryStore::new()));
        beside.write("docs/TASKS", "one").unwrap();
        fs::write(beside.path("docs/TASKS"), "edited").unwrap();
        beside.overwrite("docs/TASKS", "two").unwrap();
        fs::write(beside.path("run.sh"), "true").unwrap();
        fs::set_permissions(beside.path("run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
        assert!(beside.overwrite("run.sh", "false").unwrap_err().contains("not written by a tool"));
        assert!(beside.write("docs/OTHER", "x").unwrap_err().contains("not named like a plan"));
    }

    #[test]
    fn nothing_outside_of_the_workspace_is_read_or_written() {
        let beside = Beside::new("outside");
        let secret = beside.all.join("outside/plan.md").display().to_string();
        for path in
            ["../outside/plan.md", "notes/../../outside/plan.md", "notes/../plan.md", &secret, "/etc/passwd"]
        {
            beside.is_refused(path, "outside of the workspace");
        }
        assert_eq!(fs::read_to_string(secret).unwrap(), "secret");
    }

    #[test]
    fn links_are_followed_nowhere() {
        let beside = Beside::new("links");
        symlink(beside.all.join("outside"), beside.path("away")).unwrap();
        symlink(beside.all.join("outside/plan.md"), beside.path("linked-plan.md")).unwrap();
        symlink(beside.path("notes"), beside.path("near")).unwrap();
        for path in ["away/plan.md", "linked-plan.md", "near/plan.md"] {
            beside.is_refused(path, "a link");
        }
        fs::hard_link(beside.all.join("outside/plan.md"), beside.path("hard-plan.md")).unwrap();
        beside.is_refused("hard-plan.md", "has 2 names (hard links)");
        assert_eq!(fs::read_to_string(beside.all.join("outside/plan.md")).unwrap(), "secret");
    }

    #[test]
    fn folders_pipes_and_hidden_files_are_refused() {
        let beside = Beside::new("kinds");
        let made = std::process::Command::new("mkfifo").arg(beside.path("pipe-plan.md")).status();
        assert!(made.unwrap().success());
        fs::create_dir(beside.path("folder-plan.md")).unwrap();
        for (path, why) in [
            ("pipe-plan.md", "a pipe"),
            ("folder-plan.md", "a folder"),
            ("notes/", "a folder"),
            ("", "names no file"),
            (".", "names no file"),
            (".waypost/config.toml", "begins with a dot"),
            (".git/hooks/pre-commit", "begins with a dot"),
        ] {
            beside.is_refused(path, why);
        }
        assert!(beside.read("absent.md").unwrap_err().contains("there is no file absent.md"));
        assert!(!beside.path("Makefile.d").exists());
        assert!(beside.write("Makefile.d/x.mk", "x").is_err());
        assert!(!beside.path("Makefile.d").exists(), "no folder is created for a file that is refused");
    }

    #[test]
    fn secrets_of_the_configuration_are_not_read() {
        let config = "[executors.build]\nkind = \"process\"\ncommand = [\"make\"]\nsecrets.TOKEN = { file = \"keys/token.txt\" }\n";
        let beside = Beside::with("secret", config, |_| Arc::new(MemoryStore::new()));
        fs::create_dir(beside.path("real")).unwrap();
        symlink("real", beside.path("keys")).unwrap();
        fs::write(beside.path("real/token.txt"), "secret").unwrap();
        fs::write(beside.path("real/other.txt"), "words").unwrap();
        assert_eq!(
            beside.read("real/token.txt").unwrap_err(),
            "real/token.txt is not read by tools: it contains a secret"
        );
        assert_eq!(beside.read("real/other.txt").unwrap(), "words");
    }

    #[test]
    fn nothing_is_written_into_a_store_of_files() {
        let beside = Beside::with("store", "", |folder| {
            let location = format!("file:{}", folder.join("plans").display());
            waypost_store::open(&location, Durability::default()).unwrap()
        });
        beside.write("plan.md", "text").unwrap();
        let refused = beside.write("plans/plans/x-plan.json", "{}").unwrap_err();
        assert_eq!(refused, "plans/plans/x-plan.json belongs to the store of the plans");
    }

    #[test]
    fn a_file_may_be_as_large_as_the_limit_and_no_larger() {
        let beside = Beside::new("size");
        let file = File::create(beside.path("large.txt")).unwrap();
        file.set_len(FILE_BYTES_MAX).unwrap();
        assert_eq!(beside.read("large.txt").unwrap().len() as u64, FILE_BYTES_MAX);
        file.set_len(FILE_BYTES_MAX + 1).unwrap();
        assert!(beside.read("large.txt").unwrap_err().contains("67108864 bytes"));
        fs::write(beside.path("bytes.txt"), [b'a', 0xff]).unwrap();
        assert!(beside.read("bytes.txt").unwrap_err().contains("byte 1 cannot be read"));
    }

    #[test]
    fn created_files_are_remembered_up_to_a_limit() {
        let created = CreatedFiles::of(Path::new("/nonexistent"));
        let path = |number: usize| PathBuf::from(format!("/w/{number}-plan.md"));
        (0..=CREATED_FILES_MAX).for_each(|number| created.insert(path(number)));
        assert!(created.contains(&path(CREATED_FILES_MAX - 1)));
        assert!(!created.contains(&path(CREATED_FILES_MAX)));
    }

    #[test]
    fn created_files_are_listed_for_other_servers_up_to_a_limit() {
        let beside = Beside::new("created");
        let own = beside.all.join("own");
        fs::create_dir(&own).unwrap();
        let path = |number: u32| PathBuf::from(format!("/w/a\n{number}-plan.md"));
        CreatedFiles::of(&own).insert(path(1));
        let list = own.join("created-files");
        assert_eq!(fs::metadata(&list).unwrap().permissions().mode() & 0o777, 0o600);
        let other = CreatedFiles::of(&own);
        assert!(other.contains(&path(1)) && !other.contains(&path(2)) && !other.contains(Path::new("/w/a")));
        // Lines that are no paths mean nothing.
        let room = usize::try_from(CREATED_BYTES_MAX).unwrap() - fs::read(&list).unwrap().len();
        let line = serde_json::to_string(&path(2)).unwrap().len() + 1;
        let filler = "x".repeat(room - line - 1) + "\n";
        fs::OpenOptions::new().append(true).open(&list).unwrap().write_all(filler.as_bytes()).unwrap();
        CreatedFiles::of(&own).insert(path(2));
        CreatedFiles::of(&own).insert(path(3));
        assert!(other.contains(&path(2)) && !other.contains(&path(3)));
        // A link or a pipe in its place is not used.
        fs::remove_file(&list).unwrap();
        symlink(beside.all.join("elsewhere"), &list).unwrap();
        CreatedFiles::of(&own).insert(path(4));
        assert!(!beside.all.join("elsewhere").exists() && !other.contains(&path(4)));
    }
}
