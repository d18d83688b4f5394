//! Checks the pages that name tests, `docs/conformance.md` and `docs/security.md`: every test that they name exists, and every
//! row of their tables of tests names a test or says that there is none. Knows nothing about what a test shows.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use crate::exec::root;
use crate::rust_source::{Crate, Kind, SourceFile, Token, crates, test_binaries, tokens};

/// The pages, and how many tests each names at least.
const PAGES: [(&str, usize); 2] = [("docs/conformance.md", 200), ("docs/security.md", 60)];
/// What the last cell of a row says if no test shows the sentence.
const NO_TEST: &str = "no test yet";

/// A line of the page, and what is wrong with it.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    line: usize,
    text: String,
}

fn violations(page: &str, sources: &[Crate]) -> Vec<Violation> {
    let wrong_names = references(page)
        .filter_map(|(line, name)| missing(name, sources).map(|text| Violation { line, text }));
    let mut found: Vec<Violation> = wrong_names.chain(rows_without_test(page)).collect();
    found.sort_by_key(|violation| violation.line);
    found
}

/// Returns the names of tests: code spans with `::` in them, such as `waypost-formats::clido::numbered_lines_are_steps`.
fn references(page: &str) -> impl Iterator<Item = (usize, &str)> {
    page.lines().zip(1..).flat_map(|(line, number)| {
        let spans = line.split('`').skip(1).step_by(2);
        spans.filter(|span| span.contains("::")).map(move |span| (number, span))
    })
}

/// Returns the rows of tables with a last column `test` whose last cell neither names a test nor says that there is none.
fn rows_without_test(page: &str) -> Vec<Violation> {
    let (mut found, mut is_listing) = (Vec::new(), false);
    let lines: Vec<&str> = page.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let Some(row) = line.strip_prefix('|').and_then(|row| row.strip_suffix('|')) else {
            is_listing = false;
            continue;
        };
        let last = row.rsplit('|').next().unwrap_or_default().trim();
        if lines.get(at + 1).is_some_and(|next| next.starts_with("|-")) {
            is_listing = last == "test";
        } else if is_listing && !row.starts_with('-') && !last.contains("::") && !last.contains(NO_TEST) {
            let text = format!("the row names no test; name one, or write {NO_TEST:?}");
            found.push(Violation { line: at + 1, text });
        }
    }
    found
}

/// Says why there is no test of this name; nothing if there is one.
fn missing(name: &str, sources: &[Crate]) -> Option<String> {
    let mut parts: Vec<&str> = name.split("::").collect();
    let (test, crate_name) = (parts.pop()?, parts.remove(0));
    let files: Vec<&SourceFile> =
        sources.iter().filter(|one| one.name == crate_name).flat_map(|one| &one.files).collect();
    if files.is_empty() {
        return Some(format!("{name}: no crate is named {crate_name}"));
    }
    let has_test = |file: &&&SourceFile| is_test(file, test, &files);
    let mut in_module = files.iter().filter(|file| is_module(file, &parts)).peekable();
    if in_module.peek().is_none() {
        return Some(format!("{name}: {crate_name} has no module {}", parts.join("::")));
    }
    if in_module.any(|file| has_test(&file)) {
        return None;
    }
    let elsewhere = files.iter().find(has_test).map(|file| format!("; one is in {}", file.path));
    Some(format!("{name}: there is no such test{}", elsewhere.unwrap_or_default()))
}

/// Whether a file holds this module. The tests inside a source file are in a module `tests` of their own.
fn is_module(file: &SourceFile, parts: &[&str]) -> bool {
    file.module == parts
        || parts.split_last().is_some_and(|(last, rest)| *last == "tests" && file.module == rest)
}

/// Whether a file has a test of this name: a function with an attribute, or one that the module above lists in
/// `promises!`, which makes a test of it for every store.
fn is_test(file: &SourceFile, name: &str, files: &[&SourceFile]) -> bool {
    let all = tokens(&file.text);
    let listed = || {
        let (last, above) = file.module.split_last()?;
        let above = files.iter().find(|file| file.module == above)?;
        let is_function = all.windows(2).any(|pair| pair[0].is("fn") && pair[1].is(name));
        Some(is_function && promises(&tokens(&above.text)).contains(&(last.as_str(), name)))
    };
    functions_with_attribute(&all).contains(name) || listed().unwrap_or(false)
}

fn functions_with_attribute<'a>(tokens: &[Token<'a>]) -> BTreeSet<&'a str> {
    let (mut found, mut is_test) = (BTreeSet::new(), false);
    for (at, token) in tokens.iter().enumerate() {
        let rest = &tokens[at..];
        if begins(rest, &["#", "[", "test", "]"]) || begins(rest, &["#", "[", "tokio", "::", "test"]) {
            is_test = true;
        } else if token.is("fn") {
            found.extend(rest.get(1).filter(|name| is_test && name.kind == Kind::Name).map(|name| name.text));
            is_test = false;
        }
    }
    found
}

/// Returns the pairs of module and function that follow `promises! {`.
fn promises<'a>(tokens: &[Token<'a>]) -> BTreeSet<(&'a str, &'a str)> {
    let begin = (0..tokens.len()).find(|at| begins(&tokens[*at..], &["promises", "!", "{"]));
    let listed = begin.map_or(&[][..], |begin| &tokens[begin..]);
    listed.windows(3).filter(|three| three[1].is("::")).map(|three| (three[0].text, three[2].text)).collect()
}

fn begins(tokens: &[Token<'_>], texts: &[&str]) -> bool {
    tokens.len() >= texts.len() && tokens.iter().zip(texts).all(|(token, text)| token.is(text))
}

fn read_page(page: &'static str) -> Result<String> {
    std::fs::read_to_string(root().join(page)).context(page)
}

fn all_sources() -> Result<Vec<Crate>> {
    let mut sources = crates()?;
    sources.extend(test_binaries()?);
    Ok(sources)
}

mod tests {
    use super::*;

    #[test]
    fn every_test_that_a_page_names_exists() {
        let sources = all_sources().unwrap();
        let mut lines: Vec<String> = Vec::new();
        for (name, tests_min) in PAGES {
            let page = read_page(name).unwrap();
            assert!(references(&page).count() >= tests_min, "{name}");
            let found = violations(&page, &sources);
            lines.extend(found.iter().map(|one| format!("{name}:{}: {}", one.line, one.text)));
        }
        assert!(lines.is_empty(), "{}", lines.join("\n"));
    }

    /// Every script that a page names as a test of the dashboard exists.
    #[test]
    fn every_script_that_a_page_names_exists() {
        for (name, _) in PAGES {
            let page = read_page(name).unwrap();
            let spans = page.split('`').skip(1).step_by(2);
            for script in spans.filter(|span| span.ends_with(".mjs")) {
                assert!(root().join(script).is_file(), "{name}: {script}");
            }
        }
    }

    fn sample(name: &str, files: &[(&str, &str)]) -> Crate {
        let file = |(path, text): &(&str, &str)| SourceFile {
            path: format!("crates/{name}/{path}"),
            module: crate::rust_source::module_of(std::path::Path::new(path)),
            text: (*text).to_owned(),
        };
        Crate { name: name.to_owned(), files: files.iter().map(file).collect() }
    }

    #[track_caller]
    fn check_page(page: &str, expected: &[(usize, &str)]) {
        let sources = [
            sample(
                "a-b",
                &[
                    ("main.rs", "mod clido; #[test] fn whole_plans_are_read() {}"),
                    ("clido.rs", "#[test]\n#[ignore]\nfn steps_are_read() {} fn helper() {}"),
                    ("http/mod.rs", "#[tokio::test(flavor = \"x\")] async fn a_page_is_sent() {}"),
                    ("suite.rs", "promises! { memory; { order::first_comes_first } }"),
                    ("suite/order.rs", "pub(super) fn first_comes_first() {} pub(super) fn not_listed() {}"),
                ],
            ),
            sample("a-b", &[("names.rs", "#[cfg(test)] mod tests { #[test] fn names_are_short() {} }")]),
        ];
        let found = violations(page, &sources);
        let found: Vec<(usize, &str)> = found.iter().map(|one| (one.line, one.text.as_str())).collect();
        assert_eq!(found, expected, "{page}");
    }

    #[test]
    fn tests_are_found_by_crate_module_and_name() {
        check_page(
            "`a-b::clido::steps_are_read`, `a-b::whole_plans_are_read`, `a-b::http::a_page_is_sent`, \
             `a-b::names::tests::names_are_short`, `a-b::suite::order::first_comes_first`, `waypost run`",
            &[],
        );
    }

    #[test]
    fn a_wrong_name_is_reported_with_its_line() {
        check_page(
            "\n`a-b::clido::steps_are_red`",
            &[(2, "a-b::clido::steps_are_red: there is no such test")],
        );
        check_page("`a-b::clido::helper`", &[(1, "a-b::clido::helper: there is no such test")]);
        check_page(
            "`a-b::clido::a_page_is_sent`",
            &[(1, "a-b::clido::a_page_is_sent: there is no such test; one is in crates/a-b/http/mod.rs")],
        );
        check_page("`a-b::gone::x`", &[(1, "a-b::gone::x: a-b has no module gone")]);
        check_page("`c::clido::x`", &[(1, "c::clido::x: no crate is named c")]);
        check_page(
            "`a-b::suite::order::not_listed`",
            &[(1, "a-b::suite::order::not_listed: there is no such test")],
        );
    }

    #[test]
    fn a_row_names_a_test_or_says_that_there_is_none() {
        let table = "| says | test |\n|---|---|\n| a | `a-b::clido::steps_are_read` |\n| b | no test yet |\n| c | |\n";
        let text = "the row names no test; name one, or write \"no test yet\"";
        check_page(table, &[(5, text)]);
        check_page("| sign | meaning |\n|---|---|\n| a | b |\n", &[]);
    }
}
