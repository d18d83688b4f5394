//! `cargo xtask find-check`: checks that the obvious search term for a behaviour leads to the file that implements it.
//!
//! A file ranks by the number of the term's words in its path, then by the number of names it defines that contain all
//! of them, then by the number of its lines that do. A word also matches the beginning of a longer one: `renew` finds
//! `renews`.

mod behaviours;

use std::cmp::Reverse;

use anyhow::{Result, ensure};

use self::behaviours::{BEHAVIOURS, Behaviour};
use crate::rust_source::{SourceFile, crates, definitions, split_words, tokens};

/// The right file must be among this many hits.
const HITS_MAX: usize = 3;

/// The result of a search for the term of a behaviour.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// The rank of the right file, from 1.
    Found(usize),
    /// The right file is not among the first hits.
    Missed { expected: &'static str, hits: Vec<String> },
    /// Neither the old nor the new file exists.
    NoFile,
}

pub(crate) fn run() -> Result<()> {
    let index = Index::new(&source_files()?);
    let mut failures = 0;
    for behaviour in BEHAVIOURS {
        let outcome = index.check(behaviour);
        let found = matches!(outcome, Outcome::Found(_));
        failures += usize::from(!found);
        println!(
            "{} {}\n     {}",
            if found { "ok  " } else { "MISS" },
            behaviour.question,
            describe(behaviour, &outcome)
        );
    }
    ensure!(failures == 0, "{failures} of {} search terms do not lead to their file", BEHAVIOURS.len());
    Ok(())
}

fn describe(behaviour: &Behaviour, outcome: &Outcome) -> String {
    let Behaviour { term, old, new, .. } = behaviour;
    match outcome {
        Outcome::Found(place) => format!("{term:?}: hit {place}"),
        Outcome::Missed { expected, hits } => {
            format!("{term:?}: {expected} is not among [{}]", hits.join(", "))
        }
        Outcome::NoFile => format!("{term:?}: neither {new} nor {old} exists"),
    }
}

/// Returns the sources of the product.
fn source_files() -> Result<Vec<SourceFile>> {
    let product = crates()?.into_iter().filter(|one| one.name != "xtask");
    Ok(product.flat_map(|one| one.files).collect())
}

/// Returns the words of a text in lower case, each after a space, so that a search for a space and a word matches only
/// the beginning of words.
fn searchable(text: &str) -> String {
    split_words(text).iter().flat_map(|word| [" ", word]).collect()
}

/// The words of every file.
struct Index {
    files: Vec<IndexedFile>,
}

struct IndexedFile {
    /// The path below `crates`.
    path: String,
    path_words: String,
    definitions: Vec<String>,
    lines: Vec<String>,
}

impl Index {
    fn new(files: &[SourceFile]) -> Self {
        let index = |file: &SourceFile| {
            let path = file.path.strip_prefix("crates/").unwrap_or(&file.path);
            let (_, below) = path.split_once("/src/").unwrap_or(("", path));
            IndexedFile {
                path: path.to_owned(),
                path_words: searchable(below),
                definitions: definitions(&tokens(&file.text))
                    .iter()
                    .map(|one| searchable(one.name))
                    .collect(),
                lines: file.text.lines().map(searchable).collect(),
            }
        };
        Self { files: files.iter().map(index).collect() }
    }

    /// Returns all files that match the term, best first.
    fn search(&self, term: &str) -> Vec<&str> {
        let wanted: Vec<String> = split_words(term).iter().map(|word| format!(" {word}")).collect();
        let has_all = |words: &&String| wanted.iter().all(|one| words.contains(one));
        let score = |file: &IndexedFile| {
            let in_path = wanted.iter().filter(|one| file.path_words.contains(*one)).count();
            (
                in_path,
                file.definitions.iter().filter(has_all).count(),
                file.lines.iter().filter(has_all).count(),
            )
        };
        let mut hits: Vec<_> =
            self.files.iter().map(|file| (Reverse(score(file)), file.path.as_str())).collect();
        hits.retain(|(Reverse(score), _)| *score != (0, 0, 0));
        hits.sort();
        hits.into_iter().map(|(_, path)| path).collect()
    }

    fn check(&self, behaviour: &Behaviour) -> Outcome {
        let exists = |path: &&str| self.files.iter().any(|file| file.path == **path);
        let Some(expected) = [behaviour.new, behaviour.old].into_iter().find(|path| exists(path)) else {
            return Outcome::NoFile;
        };
        let hits = self.search(behaviour.term);
        let first = &hits[..hits.len().min(HITS_MAX)];
        match first.iter().position(|path| *path == expected) {
            Some(place) => Outcome::Found(place + 1),
            None => Outcome::Missed { expected, hits: first.iter().map(|path| (*path).to_owned()).collect() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obvious_search_terms_lead_to_the_right_file() {
        let index = Index::new(&source_files().unwrap());
        assert!(BEHAVIOURS.len() >= 20);
        let missed = BEHAVIOURS.iter().map(|behaviour| (behaviour, index.check(behaviour)));
        let missed = missed.filter(|(_, outcome)| !matches!(outcome, Outcome::Found(_)));
        let wrong: Vec<String> = missed.map(|(behaviour, outcome)| describe(behaviour, &outcome)).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    fn index(files: &[(&str, &str)]) -> Index {
        let file = |(path, text): &(&str, &str)| SourceFile {
            path: format!("crates/{path}"),
            module: Vec::new(),
            text: (*text).to_owned(),
        };
        Index::new(&files.iter().map(file).collect::<Vec<_>>())
    }

    #[test]
    fn paths_rank_before_definitions_and_definitions_before_other_lines() {
        let found = index(&[
            ("a/src/comments.rs", "// renews a lease\n// renews a lease\n// renews another lease"),
            ("a/src/defines.rs", "fn renew_leases() {}"),
            ("a/src/lease.rs", ""),
            ("a/src/unrelated.rs", "fn release() {}"),
            ("lease/src/b.rs", "// renew\n// lease"),
        ]);
        assert_eq!(found.search("renew lease"), ["a/src/lease.rs", "a/src/defines.rs", "a/src/comments.rs"]);
    }

    #[test]
    fn the_file_may_have_its_old_or_its_new_name_but_must_exist() {
        let behaviour = Behaviour {
            question: "Who?",
            term: "heartbeat",
            old: "a/src/life.rs",
            new: "a/src/heartbeat.rs",
        };
        let missed = |hits: &[&str]| Outcome::Missed {
            expected: "a/src/life.rs",
            hits: hits.iter().map(|hit| (*hit).to_owned()).collect(),
        };
        let check =
            |files: &[(&str, &str)], expected: Outcome| assert_eq!(index(files).check(&behaviour), expected);
        check(&[("a/src/heartbeat.rs", "")], Outcome::Found(1));
        check(&[("a/src/life.rs", "fn heartbeat() {}")], Outcome::Found(1));
        check(&[("a/src/life.rs", "")], missed(&[]));
        check(&[("a/src/other.rs", "fn heartbeat() {}")], Outcome::NoFile);
        let better = "fn heartbeat() {} fn send_heartbeat() {}";
        let busy = [
            ("a/src/1.rs", better),
            ("a/src/2.rs", better),
            ("a/src/3.rs", better),
            ("a/src/life.rs", "// heartbeat"),
        ];
        check(&busy, missed(&["a/src/1.rs", "a/src/2.rs", "a/src/3.rs"]));
    }
}
