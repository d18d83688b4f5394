//! Files that stand in the repository and must be what the code says; `WAYPOST_UPDATE=1` writes them anew.

use std::path::Path;

/// Compares a text with a file, by its path in the repository, or writes the file.
#[track_caller]
pub(crate) fn check(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("WAYPOST_UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, text, "WAYPOST_UPDATE=1 writes {} anew", path.display());
}

/// The same for a part of a file, between `<!-- NAME -->` and `<!-- /NAME -->`.
#[track_caller]
pub(crate) fn check_part(path: &str, name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let whole = std::fs::read_to_string(&file).unwrap();
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->\n"));
    let (before, rest) = whole.split_once(&begin).unwrap_or_else(|| panic!("{path} has no {begin}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{path} has no {end}"));
    check(path, &format!("{before}{begin}{text}{end}{after}"));
}
