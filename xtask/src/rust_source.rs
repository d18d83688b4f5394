//! Reads Rust sources as tokens: files of a crate, names with their lines, definitions. Code under `#[cfg(test)]` can
//! be left out. Knows only the grammar of tokens and items; it resolves no types and expands no macros.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::exec::root;

/// A crate of the workspace with the text of all its files.
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) files: Vec<SourceFile>,
}

pub(crate) struct SourceFile {
    /// The path from the root of the repository.
    pub(crate) path: String,
    /// The path from the crate's root to this module: empty for `lib.rs` and `main.rs`.
    pub(crate) module: Vec<String>,
    pub(crate) text: String,
}

/// Returns every crate of the product, and xtask.
pub(crate) fn crates() -> Result<Vec<Crate>> {
    folders()?.iter().map(|folder| read_sources(folder, &folder.join("src"))).collect()
}

/// Returns the sources of every test binary, the folders of `tests` with a `main.rs`, under the name of its crate.
#[cfg(test)]
pub(crate) fn test_binaries() -> Result<Vec<Crate>> {
    let mut found = Vec::new();
    for folder in folders()?.into_iter().filter(|folder| folder.join("tests").is_dir()) {
        for entry in std::fs::read_dir(folder.join("tests"))? {
            let source = entry?.path();
            if source.join("main.rs").is_file() {
                found.push(read_sources(&folder, &source)?);
            }
        }
    }
    Ok(found)
}

/// Returns the folders of all crates, in order.
fn folders() -> Result<Vec<PathBuf>> {
    let mut folders = vec![root().join("xtask")];
    for entry in std::fs::read_dir(root().join("crates"))? {
        folders.push(entry?.path());
    }
    folders.retain(|folder| folder.join("src").is_dir());
    folders.sort();
    Ok(folders)
}

/// Reads the files below `source`, which belong to the crate in `folder`.
fn read_sources(folder: &Path, source: &Path) -> Result<Crate> {
    let name = folder.file_name().context("a crate without a name")?.to_string_lossy().into_owned();
    let mut paths = Vec::new();
    collect(source, &mut paths)?;
    paths.sort();
    let files = paths.into_iter().map(|path| {
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let module = module_of(path.strip_prefix(source)?);
        let path = path.strip_prefix(root())?.to_string_lossy().into_owned();
        Ok(SourceFile { path, module, text })
    });
    Ok(Crate { name, files: files.collect::<Result<_>>()? })
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// Returns the module of a file, given its path below `src`.
pub(crate) fn module_of(path: &Path) -> Vec<String> {
    let path = path.with_extension("");
    let mut names: Vec<String> = path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    match names.last().map(String::as_str) {
        Some("mod") => _ = names.pop(),
        Some("lib" | "main") if names.len() == 1 => names.clear(),
        _ => {}
    }
    names
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword or an identifier.
    Name,
    /// The content of a string literal.
    Text,
    /// Punctuation, or the placeholder of a number; `::` is one token.
    Sign,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

impl Token<'_> {
    pub(crate) fn is(&self, text: &str) -> bool {
        self.kind != Kind::Text && self.text == text
    }
}

/// Returns the tokens of a source, without comments, characters and lifetimes.
pub(crate) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { source, at: 0, line: 1, found: Vec::new() };
    while lexer.at < source.len() {
        lexer.step();
    }
    lexer.found
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    line: usize,
    found: Vec<Token<'a>>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn advance(&mut self, bytes: usize) -> &'a str {
        let passed = &self.rest()[..bytes];
        self.line += passed.matches('\n').count();
        self.at += bytes;
        passed
    }

    fn push(&mut self, kind: Kind, text: &'a str, line: usize) {
        self.found.push(Token { kind, text, line });
    }

    fn step(&mut self) {
        let (rest, line) = (self.rest(), self.line);
        let Some(first) = rest.chars().next() else { return };
        if rest.starts_with("//") {
            self.advance(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.advance(block_comment(rest));
        } else if let Some((opening, closing)) = raw_string(rest) {
            self.advance(opening);
            let length = self.rest().find(&closing).unwrap_or(self.rest().len());
            let text = self.advance(length);
            self.advance(closing.len().min(self.rest().len()));
            self.push(Kind::Text, text, line);
        } else if first == '"' || rest.starts_with("b\"") || rest.starts_with("c\"") {
            self.advance(if first == '"' { 1 } else { 2 });
            let length = until_unescaped(self.rest(), '"');
            let text = self.advance(length);
            self.advance(1.min(self.rest().len()));
            self.push(Kind::Text, text, line);
        } else if first == '\'' || rest.starts_with("b'") {
            self.advance(if first == '\'' { 1 } else { 2 });
            self.character_or_lifetime();
        } else if first.is_alphabetic() || first == '_' {
            let skipped = if rest.starts_with("r#") { 2 } else { 0 };
            self.advance(skipped);
            let name = self.advance(identifier_length(self.rest()));
            self.push(Kind::Name, name, line);
        } else if first.is_ascii_digit() {
            self.advance(identifier_length(rest));
            self.push(Kind::Sign, "0", line);
        } else if rest.starts_with("::") {
            let sign = self.advance(2);
            self.push(Kind::Sign, sign, line);
        } else {
            let sign = self.advance(first.len_utf8());
            if !first.is_whitespace() {
                self.push(Kind::Sign, sign, line);
            }
        }
    }

    /// Reads on after the quote.
    fn character_or_lifetime(&mut self) {
        let mut following = self.rest().chars();
        let (first, second) = (following.next(), following.next());
        if first == Some('\\') || second == Some('\'') {
            let length = until_unescaped(self.rest(), '\'');
            self.advance(length);
            self.advance(1.min(self.rest().len()));
        } else {
            self.advance(identifier_length(self.rest()));
        }
    }
}

fn identifier_length(text: &str) -> usize {
    text.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(text.len())
}

/// Returns the length of a block comment. Block comments nest.
fn block_comment(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        match rest {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn until_unescaped(text: &str, end: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if !escaped && character == end {
            return at;
        }
        escaped = !escaped && character == '\\';
    }
    text.len()
}

/// Returns the length of a raw string's opening, and its closing delimiter.
fn raw_string(text: &str) -> Option<(usize, String)> {
    let after =
        text.strip_prefix("br").or_else(|| text.strip_prefix("cr")).or_else(|| text.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let opening = text.len() - after.len() + hashes + 1;
    after[hashes..].starts_with('"').then(|| (opening, format!("\"{}", "#".repeat(hashes))))
}

/// Returns the tokens that are not under `#[cfg(test)]`, and the names of the files (`mod name;`) that are.
pub(crate) fn without_tests<'a>(tokens: &[Token<'a>]) -> (Vec<Token<'a>>, BTreeSet<&'a str>) {
    let (mut kept, mut test_modules, mut at) = (Vec::new(), BTreeSet::new(), 0);
    while let Some(token) = tokens.get(at) {
        if !is_test_attribute(&tokens[at..]) {
            kept.push(*token);
            at += 1;
            continue;
        }
        let end = at + item(&tokens[at..]);
        if let [.., keyword, name, semicolon] = &tokens[at..end]
            && keyword.is("mod")
            && semicolon.is(";")
        {
            test_modules.insert(name.text);
        }
        at = end;
    }
    (kept, test_modules)
}

fn is_test_attribute(tokens: &[Token<'_>]) -> bool {
    let begins = |texts: &[&str]| {
        tokens.len() >= texts.len() && tokens.iter().zip(texts).all(|(token, text)| token.is(text))
    };
    begins(&["#", "[", "cfg", "(", "test", ")", "]"]) || begins(&["#", "[", "cfg", "(", "all", "(", "test"])
}

/// Returns the length of an item with its attributes: up to its semicolon, or to the end of its braces.
fn item(tokens: &[Token<'_>]) -> usize {
    let (mut depth, mut attribute) = (0_usize, false);
    for (at, token) in tokens.iter().enumerate() {
        if token.kind != Kind::Sign {
            continue;
        }
        match token.text {
            "[" if depth == 0 && at > 0 && tokens[at - 1].is("#") => (depth, attribute) = (1, true),
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 && attribute {
                    attribute = false;
                } else if depth == 0 && token.text == "}" {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Item {
    Function,
    Type,
    Trait,
    Variant,
    Value,
    Module,
    Macro,
}

/// A name that a source defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Definition<'a> {
    pub(crate) item: Item,
    pub(crate) name: &'a str,
    pub(crate) line: usize,
    /// The number of braces around it: 0 at the top of a file.
    pub(crate) depth: usize,
}

/// Returns the definitions in these tokens, including enum variants.
pub(crate) fn definitions<'a>(tokens: &[Token<'a>]) -> Vec<Definition<'a>> {
    let (mut found, mut depth) = (Vec::new(), 0_usize);
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "{" if token.kind == Kind::Sign => depth += 1,
            "}" if token.kind == Kind::Sign => depth = depth.saturating_sub(1),
            _ => {}
        }
        let item = match token.text {
            _ if token.kind != Kind::Name => continue,
            "fn" => Item::Function,
            "struct" | "enum" | "union" | "type" => Item::Type,
            "trait" => Item::Trait,
            "const" | "static" => Item::Value,
            "mod" => Item::Module,
            "macro_rules" => Item::Macro,
            _ => continue,
        };
        let skipped = 1 + usize::from(item == Item::Macro);
        let Some(name) = tokens.get(at + skipped) else { continue };
        let is_keyword = ["fn", "unsafe", "async", "extern", "mut", "move", "_"].contains(&name.text);
        if name.kind == Kind::Name && !is_keyword {
            found.push(Definition { item, name: name.text, line: name.line, depth });
            if token.text == "enum" {
                variants(&tokens[at + 2..], depth + 1, &mut found);
            }
        }
    }
    found
}

/// Finds the variants of an enum, given what follows its name.
fn variants<'a>(tokens: &[Token<'a>], depth: usize, found: &mut Vec<Definition<'a>>) {
    let Some(begin) = tokens.iter().position(|token| token.is("{")) else { return };
    let (mut nested, mut expected, mut at) = (0_usize, true, begin + 1);
    while let Some(token) = tokens.get(at) {
        match (token.kind, token.text) {
            (Kind::Sign, "}") if nested == 0 => return,
            (Kind::Sign, "(" | "[" | "{") => nested += 1,
            (Kind::Sign, ")" | "]" | "}") => nested -= 1,
            (Kind::Sign, ",") if nested == 0 => expected = true,
            (Kind::Name, name) if nested == 0 && expected => {
                found.push(Definition { item: Item::Variant, name, line: token.line, depth });
                expected = false;
            }
            _ => {}
        }
        at += 1;
    }
}

/// Splits an identifier or a path into words in lower case: `HTTPServer_v2` has `http`, `server` and `v2`.
pub(crate) fn split_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut previous, mut characters) = (' ', name.chars().peekable());
    while let Some(character) = characters.next() {
        if character.is_alphanumeric() {
            let before_lower = characters.peek().is_some_and(|next| next.is_lowercase());
            let begins_hump = character.is_uppercase() && (!previous.is_uppercase() || before_lower);
            match words.last_mut() {
                Some(word) if previous.is_alphanumeric() && !begins_hump => {
                    word.extend(character.to_lowercase())
                }
                _ => words.push(character.to_lowercase().collect()),
            }
        }
        previous = character;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        tokens(source).iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_characters_and_lifetimes_are_no_tokens() {
        assert_eq!(texts("a // b\n/* c /* d */ e */ f"), ["a", "f"]);
        assert_eq!(texts(r"&'a x '\'' '{' b'}' '\u{7f}' y"), ["&", "x", "y"]);
        assert_eq!(texts("1_000u64 0..5 r#type"), ["0", "0", ".", ".", "0", "type"]);
    }

    #[test]
    fn strings_are_one_token_and_lines_are_counted_through_them() {
        let source = "a \"x \\\" // {\n\" r#\"y \" \n\"# b::c";
        let found: Vec<(&str, usize)> = tokens(source).iter().map(|token| (token.text, token.line)).collect();
        assert_eq!(found, [("a", 1), ("x \\\" // {\n", 1), ("y \" \n", 2), ("b", 3), ("::", 3), ("c", 3)]);
    }

    #[test]
    fn test_code_is_left_out_with_its_braces() {
        let source = "fn a() {} #[cfg(test)] #[allow(x)] mod tests { fn b() { {} } } fn c() {} #[cfg(test)] mod far; \
                      #[cfg(all(test, unix))] use x::y; #[cfg(unix)] fn d() {}";
        let all = tokens(source);
        let (kept, test_modules) = without_tests(&all);
        let names: Vec<&str> = definitions(&kept).iter().map(|definition| definition.name).collect();
        assert_eq!(names, ["a", "c", "d"]);
        assert!(!kept.iter().any(|token| token.is("y")));
        assert_eq!(test_modules, BTreeSet::from(["far"]));
    }

    #[test]
    fn definitions_include_methods_and_variants() {
        let source = "pub const fn a() {} enum E { One, Two { x: u8 }, Three(Vec<F>), #[doc(hidden)] Four = 4 } \
                      impl E { const MAX: u8 = 1; fn b(&self) {} } macro_rules! m { () => {} } const _: () = ();";
        let all = tokens(source);
        let found = definitions(&all);
        let names: Vec<&str> = found.iter().map(|definition| definition.name).collect();
        assert_eq!(names, ["a", "E", "One", "Two", "Three", "Four", "MAX", "b", "m"]);
        let method = found.iter().find(|definition| definition.name == "b").unwrap();
        assert_eq!((method.item, method.depth), (Item::Function, 1));
    }

    #[test]
    fn words_are_split_at_signs_and_capitals() {
        assert_eq!(split_words("GroupCommit"), ["group", "commit"]);
        assert_eq!(split_words("HTTPServer_v2"), ["http", "server", "v2"]);
        assert_eq!(split_words("plans/slot_quota.rs"), ["plans", "slot", "quota", "rs"]);
        assert_eq!(split_words("LEASE_SECONDS_MAX"), ["lease", "seconds", "max"]);
    }

    #[test]
    fn modules_are_named_by_their_files() {
        let check = |path: &str, expected: &[&str]| assert_eq!(module_of(Path::new(path)), expected);
        check("lib.rs", &[]);
        check("main.rs", &[]);
        check("a/b.rs", &["a", "b"]);
        check("a/mod.rs", &["a"]);
        check("a/main.rs", &["a", "main"]);
    }
}
