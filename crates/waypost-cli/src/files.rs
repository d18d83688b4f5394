//! Reads and atomically writes the files that a person names. Knows nothing of formats.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use crate::error::{Exit, Failure, Outcome};

/// Maximum bytes of a file or stream.
const FILE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// The name of standard input in messages.
pub const STANDARD_INPUT: &str = "stdin";

/// Reads a text; `-` is standard input.
pub fn read(path: &str) -> Outcome<String> {
    let failed = |error: io::Error| Failure::file(Path::new(name_of(path)), &error);
    let mut bytes = Vec::new();
    let count = if path == "-" {
        io::stdin().lock().take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?
    } else {
        if Path::new(path).is_dir() {
            return Err(Failure::failed(format!("{path} is a folder, not a file"), "name a file in it"));
        }
        let file = File::open(path).map_err(failed)?;
        bytes
            .reserve_exact(file.metadata().map_or(0, |metadata| metadata.len().min(FILE_BYTES_MAX)) as usize);
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?
    };
    if count as u64 > FILE_BYTES_MAX {
        let message = format!("{} has more than {FILE_BYTES_MAX} bytes", name_of(path));
        return Err(Failure::failed(message, "split it into several plans"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let message = format!("{} is not UTF-8 text: byte {at} cannot be read", name_of(path));
        Failure::new(Exit::Invalid, message, "save it as UTF-8")
    })
}

/// The name of a path in messages.
pub fn name_of(path: &str) -> &str {
    if path == "-" { STANDARD_INPUT } else { path }
}

/// A text of the command line: `@FILE` is read from the file, `@-` from standard input.
pub fn text_argument(text: &str) -> Outcome<String> {
    match text.strip_prefix('@') {
        Some(path) => read(path),
        None => Ok(text.to_owned()),
    }
}

/// Whether this account can create files in a folder, without trying.
pub fn may_create_in(folder: &Path) -> io::Result<()> {
    rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from)
}

/// Writes a file atomically. An existing one is replaced only with `force`.
pub fn write(path: &Path, text: &str, force: bool) -> Outcome {
    let failed = |error: io::Error| Failure::file(path, &error);
    let name = path.file_name().ok_or_else(|| {
        Failure::usage(format!("{} is not a file name", path.display()), "name a file to write")
    })?;
    if !force && path.symlink_metadata().is_ok() {
        return Err(failed(io::ErrorKind::AlreadyExists.into()));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        let message = format!("the folder {} does not exist", folder.display());
        return Err(Failure::not_found(message, "make it first, or name another"));
    }
    let temporary = folder.join(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
    let written = put(&temporary, text).and_then(|()| publish(&temporary, path, force));
    // The temporary file never stays behind; after a rename it is gone already.
    let _gone = fs::remove_file(&temporary);
    written.map_err(failed)
}

/// Replaces a file that contains `expected`, atomically and with the same permissions. Returns `false` if it contains
/// something else, and leaves it alone. Another process may write the file at the very moment of the replacement. On
/// Linux the old content is therefore checked after the exchange, and put back if it is not the expected one.
pub fn replace(path: &Path, expected: &str, text: &str) -> Outcome<bool> {
    let failed = |error: io::Error| Failure::file(path, &error);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let permissions = fs::metadata(path).map_err(failed)?.permissions();
    let written = put(&temporary, text)
        .and_then(|()| fs::set_permissions(&temporary, permissions))
        .and_then(|()| exchange(path, &temporary, expected));
    let _gone = fs::remove_file(&temporary);
    written.map_err(failed)
}

fn exchange(path: &Path, temporary: &Path, expected: &str) -> io::Result<bool> {
    let is_expected = |path: &Path| fs::read(path).is_ok_and(|bytes| bytes == expected.as_bytes());
    if !is_expected(path) {
        return Ok(false);
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        let exchange = || renameat_with(CWD, temporary, CWD, path, RenameFlags::EXCHANGE);
        match exchange() {
            Ok(()) if is_expected(temporary) => return Ok(true),
            Ok(()) => return exchange().map(|()| false).map_err(io::Error::from),
            // Not every file system supports this.
            Err(_) => {}
        }
    }
    fs::rename(temporary, path).map(|()| true)
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Gives a finished file its name. A hard link fails if the name is taken, so a race overwrites nothing. Where hard
/// links are not supported, the file is renamed.
fn publish(temporary: &Path, path: &Path, force: bool) -> io::Result<()> {
    if force {
        return fs::rename(temporary, path);
    }
    match fs::hard_link(temporary, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => fs::rename(temporary, path),
        linked => linked,
    }
}

/// Creates a file that only this user can read, for an editor.
pub fn write_private(folder: &Path, stem: &str, ending: &str, text: &str) -> Outcome<PathBuf> {
    use std::os::unix::fs::OpenOptionsExt;
    for number in 0..1_000 {
        let path = folder.join(format!("{stem}-{}-{number}.{ending}", std::process::id()));
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        match opened.and_then(|mut file| file.write_all(text.as_bytes())) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Failure::file(&path, &error)),
        }
    }
    Err(Failure::failed(format!("{} is full of drafts", folder.display()), "remove old ones"))
}
