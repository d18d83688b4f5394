//! One file that `init` manages: its content, the content it should have, and the write. Never prompts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::merge::{Merged, Unmergeable};
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::files;

/// Maximum bytes of a file that is merged.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A file, and the change to make.
#[derive(Debug)]
pub(super) struct FileChange {
    /// Its name in messages.
    pub(super) name: String,
    /// Its path, with links resolved.
    pub(super) path: PathBuf,
    pub(super) what: What,
}

/// The change to make to a file.
#[derive(Debug)]
pub(super) enum What {
    /// None: it is up to date.
    Same,
    /// None: it has a different entry on purpose.
    Kept(String),
    /// Create it with this text.
    New(String),
    /// Merge our entry into it.
    Change { old: String, new: String },
    /// None: it cannot be merged.
    Refused(Unmergeable),
    /// None: it is a file of the user's own, to which a person adds this text.
    ForUser(String),
}

impl FileChange {
    /// Reads a file below `root` and computes its change. Writes nothing.
    pub(super) fn new(
        root: &Path,
        relative: &str,
        name: String,
        merge: impl Fn(Option<&str>) -> Result<Merged, Unmergeable>,
    ) -> Self {
        let (path, old) = match find(root, relative) {
            Ok(found) => found,
            Err(why) => {
                let paste = match merge(None) {
                    Ok(Merged::Text(text)) => text,
                    Ok(Merged::Same | Merged::Kept(_)) => String::new(),
                    Err(unmergeable) => unmergeable.paste,
                };
                let what = What::Refused(Unmergeable { why: format!("{why}; write this yourself"), paste });
                return Self { name, path: root.join(relative), what };
            }
        };
        let what = match (merge(old.as_deref()), old) {
            (Ok(Merged::Same), _) => What::Same,
            (Ok(Merged::Kept(why)), _) => What::Kept(why),
            (Ok(Merged::Text(new)), None) => What::New(new),
            (Ok(Merged::Text(new)), Some(old)) if new == old => What::Same,
            (Ok(Merged::Text(new)), Some(old)) => What::Change { old, new },
            (Err(unmergeable), _) => What::Refused(unmergeable),
        };
        Self { name, path, what }
    }

    /// A text for a file in the user's home, which is neither read nor changed.
    pub(super) fn for_user(file: &str, text: String) -> Self {
        Self { name: file.to_owned(), path: PathBuf::from(file), what: What::ForUser(text) }
    }

    /// Whether this is the whole text to be written.
    pub(super) fn is_text(&self, text: &str) -> bool {
        matches!(&self.what, What::New(new) if new == text)
    }

    /// The same after its write has failed: somebody else has to write the text.
    pub(super) fn refused(self, why: String) -> Self {
        let paste = match self.what {
            What::New(text) | What::Change { new: text, .. } => text,
            What::Same | What::Kept(_) | What::Refused(_) | What::ForUser(_) => String::new(),
        };
        Self { what: What::Refused(Unmergeable { why, paste }), ..self }
    }

    /// Writes the file atomically.
    pub(super) fn write(&self) -> Outcome {
        match &self.what {
            What::Same | What::Kept(_) | What::Refused(_) | What::ForUser(_) => Ok(()),
            What::New(text) => {
                if let Some(folder) = self.path.parent() {
                    fs::create_dir_all(folder).map_err(|error| Failure::file(folder, &error))?;
                }
                files::write(&self.path, text, false)
            }
            What::Change { old, new } => {
                if files::replace(&self.path, old, new)? {
                    return Ok(());
                }
                let message = format!("{} changed in the meantime", self.name);
                Err(Failure::failed(message, "nothing of it was lost; run this again"))
            }
        }
    }
}

/// Resolves a file and reads its content, if it exists. Refuses links that lead out of `root`.
fn find(root: &Path, relative: &str) -> Result<(PathBuf, Option<String>), String> {
    let said = |error: io::Error| error.to_string();
    let root = root.canonicalize().map_err(said)?;
    let path = root.join(relative);
    let mut there = path.as_path();
    let is_absent =
        |error: io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    while fs::symlink_metadata(there).is_err_and(is_absent) {
        there = there.parent().unwrap_or(&root);
    }
    let real =
        there.canonicalize().map_err(|_| format!("{} is a link that leads nowhere", shown(&root, there)))?;
    if !real.starts_with(&root) {
        return Err(format!("{} leads out of the workspace, to {}", shown(&root, there), real.display()));
    }
    let metadata = fs::metadata(&real).map_err(said)?;
    if there != path {
        let rest = path.strip_prefix(there).unwrap_or(Path::new(relative));
        let found = (real.join(rest), None);
        return if metadata.is_dir() {
            Ok(found)
        } else {
            Err(format!("{} is not a folder", shown(&root, there)))
        };
    }
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
    }
    let text = fs::read_to_string(&real).map_err(said)?;
    Ok((real, Some(text)))
}

fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
