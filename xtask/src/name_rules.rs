//! Words that names may not use: a reader searches for the terms of the field, not for private ones. `cargo xtask names
//! [CRATE]` lists the violations. Covers names of modules, types, traits, functions and enum variants, and the help
//! texts of the command line; not comments, fields and local variables.

use anyhow::{Result, ensure};

use crate::rust_source::{Crate, Item, SourceFile, crates, definitions, split_words, tokens, without_tests};

/// Metaphors and participles that no name may contain.
const WORDS: &str = "\
    bell bells desk dice ear ears elsewhere fate ground happening hear heard hears honesty linger \
    lingers manner mates misfit nobody patience patiently paying purse ripple said seemly shelf \
    somebody spoken standing steer steers surroundings told vigil whereabouts whoever whose workshop";

/// Whole names that no module, type or trait may have. As part of a longer name these words are ordinary English.
const NAMES: &str = "\
    afterwards again ahead aside ask asked asking attention beside calling closer concession \
    consequence dialogue disclosure doubt earlier ending entered extent found gave_up go_on going \
    gone hands held inside kept known last_words leaving letters life live making marks meaning \
    means not_entered noted occurrence others ours pace pacing put received refused rest room \
    roster rounds seat seats sheet stand subscribed takes talk thinker thinking thought touched \
    trouble troubles turns wanted ways when where which wish words working wrong";

/// Whole names that no function may have.
const FUNCTIONS: &str = "\
    aside asks_the_same_as converse depends_also_on depends_no_more_on give_back_lost hold \
    id_for_later look meant_by mind_the_gap on_offer remarked set_back sign_of_life \
    versions_at_hand word words write_what_can_be write_what_can_be_within write_within";

/// Phrases that no help text may contain: they are private, or contain nothing that a reader could search for.
const PHRASES: &str = "\
    anew, are told, believed to, come along, come to its end, comes along, cut off, for ever, \
    forget it, found out, go on, goes on, gone on, hear of, hears of, in words, is asked, is said, \
    is told, let those, looked at, makes no sense, over all others, put away, put right, puts away, \
    say that, says so, so many, take along, take back, take out of, tell of, tells of, that goes, \
    the thinking, think about, thinking about, those who, was told, what came of, what goes, \
    whoever, without a word";

/// A name or a help text that contains a denied word.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    file: String,
    line: usize,
    text: String,
}

/// `cargo xtask names [CRATE…]`: prints the violations.
pub(crate) fn run(wanted: &[&str]) -> Result<()> {
    let crates = crates()?;
    let unknown = wanted.iter().find(|name| !crates.iter().any(|one| one.name == **name));
    ensure!(unknown.is_none(), "no crate is named {}", unknown.unwrap_or(&""));
    for one in crates.iter().filter(|one| wanted.is_empty() || wanted.contains(&one.name.as_str())) {
        let (names, texts) = (names(one), help_texts(one));
        println!("{}: {} names, {} help texts", one.name, names.len(), texts.len());
        print!("{}", describe(names.iter().chain(&texts)));
    }
    Ok(())
}

fn describe<'a>(violations: impl Iterator<Item = &'a Violation>) -> String {
    violations.map(|Violation { file, line, text }| format!("  {file}:{line}  {text}\n")).collect()
}

/// Returns the names of a crate that contain a denied word.
fn names(source: &Crate) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in &source.files {
        if let Some(name) = file.module.last().filter(|name| is_denied(Item::Module, name)) {
            found.push(Violation { file: file.path.clone(), line: 1, text: format!("module {name}") });
        }
        let all = tokens(&file.text);
        for definition in definitions(&without_tests(&all).0) {
            // A module in its own file is counted there.
            if definition.item != Item::Module && is_denied(definition.item, definition.name) {
                let kind = match definition.item {
                    Item::Function => "fn",
                    Item::Type => "type",
                    Item::Trait => "trait",
                    Item::Variant => "variant",
                    Item::Value | Item::Module | Item::Macro => "name",
                };
                let text = format!("{kind} {}", definition.name);
                found.push(Violation { file: file.path.clone(), line: definition.line, text });
            }
        }
    }
    found
}

fn is_denied(item: Item, name: &str) -> bool {
    let words = split_words(name);
    let whole = words.join("_");
    let in_words = words.iter().any(|word| is_listed(WORDS, word));
    match item {
        Item::Module | Item::Type | Item::Trait => in_words || is_listed(NAMES, &whole),
        Item::Function => in_words || is_listed(FUNCTIONS, &whole),
        Item::Variant => in_words,
        Item::Value | Item::Macro => false,
    }
}

fn is_listed(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|listed| listed == name)
}

/// Returns the help texts of a crate that contain a denied phrase.
fn help_texts(source: &Crate) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in &source.files {
        for (line, text) in help_lines(file) {
            let plain = format!(" {} ", split_words(text).join(" "));
            let phrase = PHRASES.split(", ").find(|phrase| plain.contains(&format!(" {phrase} ")));
            if let Some(phrase) = phrase {
                let text = format!("help text with {phrase:?}: {}", text.trim());
                found.push(Violation { file: file.path.clone(), line, text });
            }
        }
    }
    found
}

/// Returns the doc lines that become clap's help: those of items that derive one of its traits.
fn help_lines(file: &SourceFile) -> Vec<(usize, &str)> {
    const TRAITS: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];
    let (mut found, mut docs, mut is_command) = (Vec::new(), Vec::new(), false);
    for (at, line) in file.text.lines().enumerate() {
        if let Some(text) = line.trim_start().strip_prefix("///") {
            docs.push((at + 1, text));
        } else if line.starts_with("#[derive(") {
            is_command = identifiers(line).any(|name| TRAITS.contains(&name));
        } else if line == "}" || (line.ends_with(';') && !line.starts_with(' ')) {
            // The end of an item: rustfmt indents everything inside.
            if is_command {
                found.append(&mut docs);
            }
            docs.clear();
            is_command = false;
        }
    }
    found
}

fn identifiers(line: &str) -> impl Iterator<Item = &str> {
    line.split(|sign: char| !sign.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_help_texts_use_the_words_of_the_field() {
        let crates = crates().unwrap();
        let found: Vec<Violation> =
            crates.iter().flat_map(|one| names(one).into_iter().chain(help_texts(one))).collect();
        assert!(found.is_empty(), "private words:\n{}", describe(found.iter()));
    }

    fn sample(path: &str, text: &str) -> Crate {
        let module = crate::rust_source::module_of(std::path::Path::new(path));
        let file = SourceFile { path: path.to_owned(), module, text: text.to_owned() };
        Crate { name: "sample".to_owned(), files: vec![file] }
    }

    #[test]
    fn modules_types_functions_and_variants_are_read() {
        let check = |path: &str, text: &str, expected: &[&str]| {
            let found = names(&sample(path, text));
            assert_eq!(found.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), expected, "{text}");
        };
        check("a/told.rs", "", &["module told"]);
        check(
            "a.rs",
            "struct Kept; struct KeptRows; enum E { Heard, Kept }",
            &["type Kept", "variant Heard"],
        );
        check("a.rs", "trait Ear {} fn words() {} fn count_words() {}", &["trait Ear", "fn words"]);
        check("a.rs", "fn mind_the_gap() {} fn early() {} fn background() {}", &["fn mind_the_gap"]);
        check("a.rs", "// told\nstruct A { told: u8 } const TOLD: u8 = 1;", &[]);
        check("a.rs", "#[cfg(test)] mod tests { fn told() {} }", &[]);
    }

    #[test]
    fn help_texts_are_those_of_items_that_clap_reads() {
        let text = "/// Goes on anew.\nstruct Plain {\n    /// Whoever.\n    a: u8,\n}\n\n\
                    #[derive(Debug, clap::Args)]\n/// Work on a plan\npub struct Options {\n    \
                    /// At most so many\n    limit: u8,\n    /// Show more\n    more: bool,\n}\n\n\
                    /// Nobody.\nconst A: u8 = 1;\n";
        let found = help_texts(&sample("a.rs", text));
        let lines: Vec<(usize, &str)> = found.iter().map(|one| (one.line, one.text.as_str())).collect();
        assert_eq!(lines, [(10, "help text with \"so many\": At most so many")]);
    }
}
