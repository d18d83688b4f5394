//! Which files may access the file system and the environment, and whether each `clippy.toml` has the common rules.
//! Tests, test support and xtask are exempt.

use std::collections::BTreeSet;
use std::path::Path;

use crate::exec::root;
use crate::rust_source::{Crate, Token, crates, tokens, without_tests};

/// Crates that are not part of the product.
const TOOLS: &[&str] = &["waypost-testkit", "xtask"];

/// Files and folders that read and write files, or read `/proc`.
const FILES: &[&str] = &[
    "crates/waypost/src",
    "crates/waypost-cli/src",
    "crates/waypost-account/src",
    "crates/waypost-config/src/execution_env.rs",
    "crates/waypost-config/src/pinned_files.rs",
    "crates/waypost-exec/src",
    "crates/waypost-git/src/changed_files.rs",
    "crates/waypost-http/src/metrics.rs",
    "crates/waypost-http/src/tokens.rs",
    "crates/waypost-llm/src/journal.rs",
    "crates/waypost-mcp/src/created_files.rs",
    "crates/waypost-mcp/src/workspace_files.rs",
    "crates/waypost-planner/src/planning/request.rs",
    "crates/waypost-run/src/orphans.rs",
    "crates/waypost-run/src/reporters.rs",
    "crates/waypost-run/src/runner/log_upload.rs",
    "crates/waypost-run/src/slots.rs",
    "crates/waypost-store/src",
];

/// Files and folders that read the environment. Other library code gets what it needs as arguments. The exceptions are
/// the working directory of programs, and the variables that every PostgreSQL client reads.
const ENVIRONMENT: &[&str] = &[
    "crates/waypost/src",
    "crates/waypost-cli/src",
    "crates/waypost-account/src/account.rs",
    "crates/waypost-account/src/injected.rs",
    "crates/waypost-exec/src/pool.rs",
    "crates/waypost-store/src/backends/postgres/connection_config.rs",
];

/// Returns the files that name a module of `std` (`fs`, `env`) outside tests.
fn files_that_use(module: &str, crates: &[Crate]) -> BTreeSet<String> {
    let product = crates.iter().filter(|one| !TOOLS.contains(&one.name.as_str()));
    let files = product.flat_map(|one| &one.files);
    files
        .filter(|file| names(module, &without_tests(&tokens(&file.text)).0))
        .map(|file| file.path.clone())
        .collect()
}

/// Whether `std::MODULE` or `rustix::MODULE` is named, also in a list of imports.
fn names(module: &str, code: &[Token<'_>]) -> bool {
    code.windows(3).enumerate().any(|(at, path)| {
        let is_root = (path[0].is("std") || path[0].is("rustix")) && path[1].is("::");
        let in_list = || code[at..].iter().take_while(|token| !token.is(";")).any(|token| token.is(module));
        is_root && (path[2].is(module) || path[2].is("{") && in_list())
    })
}

/// Compares the files that use a module with those that may.
fn wrong_owners(found: &BTreeSet<String>, allowed: &[&str]) -> Vec<String> {
    let owns = |owner: &str, file: &str| Path::new(file).starts_with(owner);
    let strangers = found.iter().filter(|file| !allowed.iter().any(|owner| owns(owner, file)));
    let idle = allowed.iter().filter(|owner| !found.iter().any(|file| owns(owner, file)));
    let strangers = strangers.map(|file| format!("{file} may not: ask the file that does"));
    strangers.chain(idle.map(|owner| format!("{owner} does not any more: take it off the list"))).collect()
}

#[test]
fn only_their_owners_touch_files_and_the_environment() {
    let crates = crates().unwrap();
    assert_eq!(wrong_owners(&files_that_use("fs", &crates), FILES), [""; 0], "files");
    assert_eq!(wrong_owners(&files_that_use("env", &crates), ENVIRONMENT), [""; 0], "environment");
}

#[test]
fn a_module_of_std_is_found_wherever_it_is_named() {
    let check = |source: &str, expected: bool| {
        assert_eq!(names("fs", &without_tests(&tokens(source)).0), expected, "{source}");
    };
    check("use std::fs;", true);
    check("use std::{fs, io};", true);
    check("use std::{io, path::Path}; use a::fs;", false);
    check("fn a() { std::fs::read(b) }", true);
    check("fn a() { rustix::fs::fsync(b) }", true);
    check("use std::os::unix::fs::OpenOptionsExt;", false);
    check("// std::fs\n#[cfg(test)] mod tests { use std::fs; }", false);
}

#[test]
fn a_file_that_is_not_an_owner_and_an_owner_that_is_idle_are_named() {
    let found = BTreeSet::from(["a/b.rs".to_owned(), "c.rs".to_owned()]);
    assert_eq!(wrong_owners(&found, &["a", "c.rs"]), [""; 0]);
    assert_eq!(wrong_owners(&found, &["c.rs"]), ["a/b.rs may not: ask the file that does"]);
    assert_eq!(wrong_owners(&found, &["a", "c.rs", "d"]), ["d does not any more: take it off the list"]);
}

/// Clippy reads only the nearest `clippy.toml`, so that of a crate has to repeat the rules of the workspace.
#[test]
fn the_clippy_rules_of_a_crate_are_those_of_the_workspace_but_for_the_write_path() {
    let read = |folder: &Path| std::fs::read_to_string(folder.join("clippy.toml"));
    let rules = |text: &str| -> BTreeSet<String> {
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    };
    let common: BTreeSet<String> =
        rules(&read(&root()).unwrap()).into_iter().filter(|line| !line.contains("waypost_store::")).collect();
    let mut own = BTreeSet::new();
    for one in crates().unwrap() {
        let folder =
            if one.name == "xtask" { root().join(&one.name) } else { root().join("crates").join(&one.name) };
        if let Ok(text) = read(&folder) {
            assert_eq!(rules(&text), common, "{}", one.name);
            own.insert(one.name);
        }
    }
    let owners = ["waypost-service", "waypost-store", "xtask"].map(str::to_owned);
    assert_eq!(own, BTreeSet::from(owners), "crates that may call the write path");
}
