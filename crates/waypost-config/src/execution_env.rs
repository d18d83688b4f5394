//! The environment of attempts and model clients: folders, environment variables, and the secrets that the
//! configuration names. The only module of this crate that reads files.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use crate::executor::Secret;

/// The environment in which tasks are executed.
#[derive(Clone, Debug)]
pub struct ExecutionEnv {
    /// The folder outside of which no work starts.
    pub workspace: PathBuf,
    /// The folder of the attempts' logs.
    pub logs: PathBuf,
    /// The folder of the notes of remote jobs. Whoever writes there has requests sent, with secrets: it is the account's.
    pub remote_notes: PathBuf,
    /// Our own environment. The configuration decides which variables are passed on.
    pub variables: BTreeMap<String, String>,
    /// The name of this run. Its processes are found by it if the run dies.
    pub worker: String,
}

impl ExecutionEnv {
    /// Reads the value of a secret. One newline at its end is removed.
    pub fn secret(&self, name: &str, secret: &Secret) -> Result<String, String> {
        let value = match secret {
            Secret::Variable(variable) => self.variables.get(variable).cloned(),
            Secret::File(file) => path_read(&self.workspace, file).and_then(fs::read_to_string).ok(),
        };
        let value = value.ok_or_else(|| format!("the secret {name} is not where the configuration says"))?;
        Ok(value.strip_suffix('\n').unwrap_or(&value).to_owned())
    }
}

/// Returns the path of a file that the configuration names, relative to the workspace. One inside of it is no link.
fn path_read(workspace: &Path, file: impl AsRef<Path>) -> io::Result<PathBuf> {
    let mut path = PathBuf::new();
    for part in workspace.join(&file).components() {
        match part {
            Component::ParentDir => _ = path.pop(),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => path.push(part),
        }
    }
    match path.strip_prefix(workspace) {
        Ok(inside) => path_inside(workspace, inside),
        Err(_) => Ok(path),
    }
}

/// Returns the path of a file of the workspace that is no link. Agents may make links to files that they cannot read; previews
/// would show those, and programs get them.
pub fn path_inside(workspace: &Path, file: impl AsRef<Path>) -> io::Result<PathBuf> {
    let (workspace, file) = (workspace.canonicalize()?, file.as_ref());
    let path = workspace.join(file).canonicalize()?;
    if !path.starts_with(&workspace) {
        return Err(io::Error::other("it leads out of the workspace"));
    }
    let named: PathBuf = workspace.join(file).components().collect();
    if path != named {
        return Err(io::Error::other("it is a symbolic link, or has one on its path"));
    }
    match fs::metadata(&path)?.nlink() {
        1 => Ok(path),
        names => Err(io::Error::other(format!("it has {names} names (hard links)"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_the_workspace_is_no_link() {
        let root = std::env::temp_dir().join(format!("waypost-secret-links-{}", std::process::id()));
        let workspace = root.join("work");
        fs::create_dir_all(workspace.join("keys")).unwrap();
        fs::write(root.join("private"), "private\n").unwrap();
        fs::write(workspace.join("keys/token"), "token\n").unwrap();
        std::os::unix::fs::symlink("../../private", workspace.join("keys/link")).unwrap();
        std::os::unix::fs::symlink(&root, workspace.join("folder")).unwrap();
        fs::hard_link(root.join("private"), workspace.join("keys/hard")).unwrap();
        let workspace_key = workspace.join("keys/token").display().to_string();
        let env = ExecutionEnv {
            workspace,
            logs: PathBuf::new(),
            remote_notes: PathBuf::new(),
            variables: BTreeMap::new(),
            worker: String::new(),
        };
        let secret = |file: &str| env.secret("s", &Secret::File(file.to_owned())).ok();
        for file in ["keys/token", "./keys/../keys/token", &workspace_key] {
            assert_eq!(secret(file).as_deref(), Some("token"), "{file}");
        }
        for file in ["keys/link", "folder/private", "keys/hard"] {
            assert_eq!(secret(file), None, "{file}");
        }
        fs::remove_file(env.workspace.join("keys/hard")).unwrap();
        assert_eq!(secret("../private").as_deref(), Some("private"), "outside is not for agents to write");
        fs::remove_dir_all(root).unwrap();
    }
}
