//! Committed files that must match the code; `WAYPOST_UPDATE=1` rewrites them.

use std::path::Path;

/// Compares a file, relative to the crate's directory, with its expected content.
pub(crate) fn check(path: &str, wanted: &str, advice: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("WAYPOST_UPDATE").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let first = found.lines().zip(wanted.lines()).position(|(found, wanted)| found != wanted);
    let line = first.unwrap_or_else(|| found.lines().count().min(wanted.lines().count()));
    assert!(
        found == wanted,
        "{} is not what the code says, from line {}:\n  it says:     {}\n  should say:  {}\n{advice}",
        path.display(),
        line + 1,
        found.lines().nth(line).unwrap_or("(the end)"),
        wanted.lines().nth(line).unwrap_or("(the end)"),
    );
}
