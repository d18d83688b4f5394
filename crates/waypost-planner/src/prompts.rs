//! Prompts: templates in `prompts/`, each of which a project may replace. Knows no plans.
//!
//! A template's first line is `version: …`; `{{name}}` is replaced by a value. Values are inserted once and not scanned
//! again, so they cannot introduce placeholders. Text from others is marked as data.

use std::collections::BTreeMap;

use ring::digest;

use waypost_text::truncate;

use crate::Purpose;

/// Maximum size of a template in bytes.
pub const TEMPLATE_BYTES_MAX: usize = 64 * 1024;

/// The template that describes the model's role.
pub(crate) const SYSTEM: &str = "system";
/// The template that returns an answer to the model.
pub(crate) const REPAIR: &str = "repair";

/// A template and its allowed placeholders.
struct BuiltinPrompt {
    name: &'static str,
    text: &'static str,
    placeholders: &'static [&'static str],
}

macro_rules! known {
    ($($name:literal: $($placeholder:literal)*;)*) => {
        &[$(BuiltinPrompt {
            name: $name,
            text: include_str!(concat!("../prompts/", $name, ".md")),
            placeholders: &[$($placeholder),*],
        }),*]
    };
}

const KNOWN: &[BuiltinPrompt] = known! {
    "system":;
    "repair": "problems";
    "generate": "goal" "constraints" "map" "context" "tasks_max";
    "atomicity": "goal" "ancestors" "siblings";
    "decompose": "goal" "why" "ancestors" "siblings" "children_min" "children_max";
    "dependencies": "goal" "ancestors" "children" "example_first" "example_second";
    "refine": "goal" "ancestors" "settled" "rest" "added_max";
    "digest": "original" "words_max" "list_max";
    "examine": "original" "questions" "answer_words";
    "sit": "digest" "questions" "answer_words";
    "mark": "answers";
};

/// Why a project's template is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPrompt {
    #[error("no prompt is called {name}; there are {}", KNOWN.iter().map(|known| known.name).collect::<Vec<_>>().join(", "))]
    UnknownName {
        /// The name used by the project.
        name: String,
    },
    #[error("prompt {name} has the unknown placeholder {{{{{placeholder}}}}}; it may have {}", list(known))]
    UnknownPlaceholder {
        name: String,
        placeholder: String,
        /// The allowed placeholders.
        known: Vec<String>,
    },
    #[error("prompt {name} has {{{{ without }}}} after it: {after}")]
    Unclosed { name: String, after: String },
    #[error("prompt {name} is empty")]
    Empty { name: String },
    #[error("prompt {name} has {found} bytes, over the limit of {TEMPLATE_BYTES_MAX}")]
    TooLong { name: String, found: usize },
}

fn list(known: &[String]) -> String {
    let braced = known.iter().map(|name| format!("{{{{{name}}}}}"));
    if known.is_empty() { "none".to_owned() } else { braced.collect::<Vec<_>>().join(", ") }
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Value(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Template {
    version: String,
    pieces: Vec<Piece>,
}

/// All prompts: the built-in ones, some of them replaced by a project's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompts {
    templates: BTreeMap<&'static str, Template>,
}

impl Default for Prompts {
    fn default() -> Self {
        let templates =
            KNOWN.iter().filter_map(|known| Some((known.name, read(known, known.text, "").ok()?)));
        Self { templates: templates.collect() }
    }
}

impl Prompts {
    /// The names of all templates. A project may replace each.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|known| known.name)
    }

    /// The text of a built-in template, as a starting point for a project's own.
    pub fn built_in(name: &str) -> Option<&'static str> {
        KNOWN.iter().find(|known| known.name == name).map(|known| known.text)
    }

    /// The allowed placeholders of a template.
    pub fn placeholders(name: &str) -> Option<&'static [&'static str]> {
        KNOWN.iter().find(|known| known.name == name).map(|known| known.placeholders)
    }

    /// The built-in templates, with those in `overrides` replaced.
    pub fn with<'a>(overrides: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, BadPrompt> {
        let mut prompts = Self::default();
        for (name, text) in overrides {
            let known = KNOWN.iter().find(|known| known.name == name);
            let known = known.ok_or_else(|| BadPrompt::UnknownName { name: name.to_owned() })?;
            prompts.templates.insert(known.name, read(known, text, "project-")?);
        }
        Ok(prompts)
    }

    /// The version of the prompt for a purpose: `decompose/1`, or `decompose/project-…` for a project's own.
    pub fn version(&self, purpose: Purpose) -> String {
        let version = self.templates.get(purpose.name()).map_or("", |template| template.version.as_str());
        format!("{}/{version}", purpose.name())
    }

    /// Renders a prompt with its values. Empty paragraphs are removed.
    pub(crate) fn render(&self, name: &str, values: &Values) -> String {
        let mut text = String::new();
        for piece in self.templates.get(name).into_iter().flat_map(|template| &template.pieces) {
            match piece {
                Piece::Text(piece) => {
                    // An empty value leaves blank lines behind.
                    let piece = if text.is_empty() || text.ends_with("\n\n") {
                        piece.trim_start_matches('\n')
                    } else {
                        piece
                    };
                    text.push_str(piece);
                }
                Piece::Value(name) => text.push_str(values.get(name)),
            }
        }
        text.trim().to_owned()
    }
}

fn read(known: &BuiltinPrompt, text: &str, origin: &str) -> Result<Template, BadPrompt> {
    let name = || known.name.to_owned();
    if text.len() > TEMPLATE_BYTES_MAX {
        return Err(BadPrompt::TooLong { name: name(), found: text.len() });
    }
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text).replace("\r\n", "\n");
    let (first, body) = text.split_once('\n').unwrap_or((&text, ""));
    let (version, body) = match first.strip_prefix("version:") {
        Some(version) if !version.trim().is_empty() => (format!("{origin}{}", version.trim()), body),
        // Without a version line, the version is a fingerprint of the text.
        Some(_) | None => (format!("{origin}{}", fingerprint(&text)), text.as_str()),
    };
    if body.trim().is_empty() {
        return Err(BadPrompt::Empty { name: name() });
    }
    let mut pieces = Vec::new();
    let mut rest = body;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((placeholder, behind)) = after.split_once("}}") else {
            let after = truncate(after.lines().next().unwrap_or_default(), 40).into_owned();
            return Err(BadPrompt::Unclosed { name: name(), after });
        };
        let placeholder = placeholder.trim();
        if !known.placeholders.contains(&placeholder) {
            return Err(BadPrompt::UnknownPlaceholder {
                name: name(),
                placeholder: truncate(placeholder, 80).into_owned(),
                known: known.placeholders.iter().map(|&known| known.to_owned()).collect(),
            });
        }
        pieces.extend((!before.is_empty()).then(|| Piece::Text(before.to_owned())));
        pieces.push(Piece::Value(placeholder.to_owned()));
        rest = behind;
    }
    pieces.extend((!rest.is_empty()).then(|| Piece::Text(rest.to_owned())));
    Ok(Template { version, pieces })
}

/// The first 16 hex digits of a text's SHA-256.
pub(crate) fn fingerprint(text: &str) -> String {
    waypost_text::hex(&digest::digest(&digest::SHA256, text.as_bytes()).as_ref()[..8])
}

/// The values of a prompt, by placeholder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values(BTreeMap<&'static str, String>);

impl Values {
    /// Trusted text or a number.
    pub(crate) fn plain(mut self, name: &'static str, value: impl ToString) -> Self {
        self.0.insert(name, value.to_string());
        self
    }

    /// Text from others, marked as data.
    pub(crate) fn data(self, name: &'static str, text: &str) -> Self {
        self.plain(name, data(name, text))
    }

    /// Text from others under a heading; nothing if the text is empty.
    pub(crate) fn data_under(self, name: &'static str, heading: &str, text: &str) -> Self {
        if text.trim().is_empty() {
            self
        } else {
            self.plain(name, format!("{heading}\n{}", data(name, text)))
        }
    }

    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

/// Marks a text as data with tags that the text itself cannot close.
pub(crate) fn data(name: &str, text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let tag = if lower.contains("<data") || lower.contains("</data") {
        // A text cannot contain its own fingerprint.
        format!("data-{}", fingerprint(text))
    } else {
        "data".to_owned()
    };
    let name: String =
        name.chars().map(|c| if c == '"' || c == '\n' || c == '<' { '_' } else { c }).collect();
    format!("<{tag} name=\"{name}\">\n{}\n</{tag}>", text.trim())
}
