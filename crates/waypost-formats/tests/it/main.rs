//! The formats, from outside: text in, drafts out, and back. One test binary; each module tests one format.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "clippy takes only the test functions for tests"
)]

mod agora;
mod checklist;
mod clido;
mod drawing;
mod formats;
mod frctl;
mod fuzz;
mod jaato;
mod markdown;
mod movers;
mod native;
mod pictures;
mod plan_document;
mod way_back;

use std::path::PathBuf;

use serde_json::Value;
use waypost_core::{Draft, Task};
use waypost_formats::{Dialect, Form, Reading, read, write};

/// A file of `tests/fixtures`.
fn fixture(name: &str) -> String {
    let path = fixtures().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Compares `text` with a golden file. With `WAYPOST_UPDATE=1` it writes the file instead.
fn golden(name: &str, text: &str) {
    if std::env::var_os("WAYPOST_UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(fixtures().join(name), text).unwrap();
    }
    assert!(fixture(name) == text, "{name} is not what is written now:\n{text}");
}

/// Observed data of another program, or a line that says that it is not here.
fn observed(name: &str) -> Option<String> {
    beside(waypost_testkit::observed_data(), name)
}

/// A document that a format comes from, or a line that says that it is not here.
fn seed(name: &str) -> Option<String> {
    beside(waypost_testkit::seed_documents(), name)
}

fn beside(folder: Option<PathBuf>, name: &str) -> Option<String> {
    let text = folder.and_then(|folder| std::fs::read_to_string(folder.join(name)).ok());
    if text.is_none() {
        eprintln!("{name} is not beside this checkout; only the fixtures are tested");
    }
    text
}

fn reading(text: &str, dialect: Dialect) -> Reading {
    read(text, Some(dialect), None).unwrap_or_else(|error| panic!("{dialect}: {error}\n{text}"))
}

/// The only draft of a reading that has nothing to complain about.
fn draft(text: &str, dialect: Dialect) -> Draft {
    let mut reading = reading(text, dialect);
    assert_eq!(reading.problems, [], "{text}");
    assert_eq!(reading.drafts.len(), 1, "{text}");
    reading.drafts.remove(0)
}

fn written(draft: &Draft, dialect: Dialect, form: Form) -> String {
    write(draft, dialect, form).unwrap().text
}

fn losses(draft: &Draft, dialect: Dialect, form: Form) -> Vec<String> {
    write(draft, dialect, form).unwrap().losses.iter().map(ToString::to_string).collect()
}

fn problems(text: &str, dialect: Dialect) -> Vec<String> {
    reading(text, dialect).problems.iter().map(ToString::to_string).collect()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn task<'a>(draft: &'a Draft, id: &str) -> &'a Task {
    draft.tasks.iter().find(|task| task.spec.id.as_str() == id).unwrap_or_else(|| panic!("no task {id}"))
}
