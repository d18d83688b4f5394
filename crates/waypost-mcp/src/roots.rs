//! The folder that a client works in, from its roots, which may change. A server whose operator named a store or a folder ignores
//! roots.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Maximum number of a client's roots that are read.
const ROOTS_MAX: usize = 100;
/// Entries that mark a folder to which plans belong.
const MARKS: [&str; 2] = [".waypost", ".git"];

/// Whether a server works in the folder of its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// Use the folder that the operator named.
    Ignore,
    /// Use the client's folder; of several, prefer the one around the folder in which the server was started.
    Follow {
        /// The folder in which the server was started.
        here: PathBuf,
    },
}

/// A root that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadRoot {
    #[error("the client's root {0:?} is not a file:// URL of a folder")]
    NotAFile(String),
    #[error("the client's root {} does not exist or is not a folder", .0.display())]
    NotAFolder(PathBuf),
}

impl BadRoot {
    pub(crate) fn hint(&self) -> &'static str {
        "open an existing folder in the host, or start the server with -C DIR"
    }
}

/// Chooses the folder to work in: the innermost root around `here`, or the first root with plans or a repository, or the first
/// root. Returns `None` for a client without roots.
pub(crate) fn choose(roots: &[String], here: &Path) -> Result<Option<PathBuf>, BadRoot> {
    let mut folders = Vec::new();
    let mut bad = None;
    for root in roots.iter().take(ROOTS_MAX) {
        match folder(root) {
            Ok(folder) => folders.push(folder),
            Err(error) => {
                bad.get_or_insert(error);
            }
        }
    }
    let real = here.canonicalize().unwrap_or_else(|_| here.to_owned());
    let around = folders
        .iter()
        .filter(|folder| real.starts_with(folder))
        .max_by_key(|folder| folder.as_os_str().len());
    let marked = || folders.iter().find(|folder| MARKS.iter().any(|mark| folder.join(mark).exists()));
    match around.or_else(marked).or(folders.first()) {
        Some(folder) => Ok(Some(folder.clone())),
        None => bad.map_or(Ok(None), Err),
    }
}

/// Returns the canonical folder of a `file://` URL.
fn folder(uri: &str) -> Result<PathBuf, BadRoot> {
    let not_a_file = || BadRoot::NotAFile(waypost_text::excerpt_bytes(uri, 200));
    let rest =
        uri.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("file://")).and_then(|_| uri.get(7..));
    let rest = rest.ok_or_else(not_a_file)?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let path = decoded(path).filter(|path| path.is_absolute()).ok_or_else(not_a_file)?;
    match path.canonicalize() {
        Ok(real) if real.is_dir() => Ok(real),
        Ok(_) | Err(_) => Err(BadRoot::NotAFolder(path)),
    }
}

fn decoded(text: &str) -> Option<PathBuf> {
    let bytes: Vec<u8> = percent_encoding::percent_decode_str(text).collect();
    (!bytes.contains(&0)).then(|| PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folders that exist until the end of the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str, folders: &[&str]) -> Self {
            let base = std::env::temp_dir().join(format!("waypost-roots-{}-{name}", std::process::id()));
            for folder in folders {
                std::fs::create_dir_all(base.join(folder)).unwrap();
            }
            Self(base.canonicalize().unwrap())
        }
        fn uri(&self, folder: &str) -> String {
            format!("file://{}/{folder}", self.0.display())
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _gone = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_root_around_the_current_folder_wins_then_the_first_with_a_repository_then_the_first() {
        let scratch = Scratch::new("several", &["a", "b/.git", "c/deep/.waypost", "elsewhere"]);
        let base = &scratch.0;
        let check = |roots: &[&str], here: &str, expected: &str| {
            let roots: Vec<String> = roots.iter().map(|root| scratch.uri(root)).collect();
            assert_eq!(choose(&roots, &base.join(here)), Ok(Some(base.join(expected))));
        };
        check(&["a"], "elsewhere", "a");
        check(&["a", "b", "c"], "c/deep", "c");
        check(&["a", "c", "c/deep"], "c/deep", "c/deep");
        check(&["a", "b"], "elsewhere", "b");
        check(&["a", "c/deep"], "elsewhere", "c/deep");
        check(&["elsewhere", "a"], ".", "elsewhere");
        assert_eq!(choose(&[], base), Ok(None));
    }

    #[test]
    fn addresses_are_decoded_and_what_is_no_folder_is_named() {
        let scratch = Scratch::new("encoded", &["with blank", "50%"]);
        let base = &scratch.0;
        let check = |uri: &str, expected: Result<&str, &str>| {
            let found = choose(&[uri.to_owned()], Path::new("/")).map_err(|error| error.to_string());
            let expected = expected.map(|folder| Some(base.join(folder))).map_err(str::to_owned);
            assert_eq!(found, expected, "{uri}");
        };
        check(&scratch.uri("with%20blank"), Ok("with blank"));
        check(&scratch.uri("with blank/"), Ok("with blank"));
        check(&scratch.uri("50%25"), Ok("50%"));
        check(&format!("file://localhost{}", base.join("50%25").display()), Ok("50%"));
        let missing =
            format!("the client's root {} does not exist or is not a folder", base.join("no").display());
        check(&scratch.uri("no"), Err(&missing));
        for uri in ["https://example.org/a", "file://host/a", "file:/a", "file://%zz", "file:///a%00b", ""] {
            check(uri, Err(&format!("the client's root {uri:?} is not a file:// URL of a folder")));
        }
    }

    #[test]
    fn a_bad_root_beside_a_good_one_is_passed_over() {
        let scratch = Scratch::new("mixed", &["good"]);
        let roots = [scratch.uri("no"), scratch.uri("good")];
        assert_eq!(choose(&roots, Path::new("/")), Ok(Some(scratch.0.join("good"))));
    }
}
