//! Options that several commands share, and the parsers of their values.

use std::ops::RangeInclusive;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;
use waypost_formats::Dialect;

use crate::error::{Failure, Outcome};
use crate::output::Color;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Store: sqlite:PATH, postgres://USER@HOST/DATABASE, file:DIR or memory: [default: the repository's
    /// .waypost/waypost.db]
    #[arg(long, global = true, value_name = "URL", env = "WAYPOST_STORE", hide_env_values = true)]
    pub store: Option<String>,
    /// Use the user's store instead of the repository's
    #[arg(long, global = true)]
    pub global: bool,
    /// Run as if started in this directory
    #[arg(short = 'C', long, global = true, value_name = "DIR")]
    pub directory: Option<std::path::PathBuf>,
    /// Name to act under: person:NAME or agent:NAME; it proves nothing [default: WAYPOST_ACTOR, the agent that owns the shell, or the user]
    #[arg(long = "as", global = true, value_name = "WHO")]
    pub actor: Option<String>,
    /// Print JSON; errors as JSON on stderr
    #[arg(long, global = true)]
    pub json: bool,
    /// When to use colour
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    pub color: Color,
}

#[derive(Clone, Debug, Default, Args)]
pub struct Guard {
    /// Write only if the plan is still at this version; exit code 3 otherwise
    #[arg(long, value_name = "N")]
    pub expect_version: Option<u64>,
}

impl From<&Guard> for waypost_service::Guard {
    fn from(guard: &Guard) -> Self {
        guard.expect_version.into()
    }
}

/// Aliases of formats.
const DIALECT_ALIASES: [(Dialect, &str); 3] =
    [(Dialect::Native, "json"), (Dialect::Markdown, "md"), (Dialect::PlanDocument, "plan_document")];

/// Parses the name of a format that can be read.
pub fn input_format() -> impl TypedValueParser<Value = Dialect> {
    format_name(Dialect::can_read)
}

/// Parses the name of a format that can be written.
pub fn output_format() -> impl TypedValueParser<Value = Dialect> {
    format_name(Dialect::can_write)
}

/// Parses the name of a format that `offered` accepts.
pub fn format_name(offered: fn(Dialect) -> bool) -> impl TypedValueParser<Value = Dialect> {
    let names = Dialect::all().filter(move |&dialect| offered(dialect)).map(|dialect| {
        let aliases = DIALECT_ALIASES.iter().filter(move |(of, _)| *of == dialect).map(|(_, alias)| *alias);
        PossibleValue::new(dialect.name()).aliases(aliases)
    });
    PossibleValuesParser::new(names).try_map(|name| {
        match DIALECT_ALIASES.iter().find(|(_, alias)| *alias == name) {
            Some((dialect, _)) => Ok(*dialect),
            None => name.parse(),
        }
    })
}

/// Parses one of these words as the value that it has in the native format.
pub fn enum_parser<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    words: impl IntoIterator<Item = PossibleValue>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(words)
        .try_map(|word| serde_json::from_value(serde_json::Value::from(word.replace('-', "_"))))
}

/// Refuses a number that is out of bounds.
pub fn within(option: &str, found: usize, bounds: RangeInclusive<usize>) -> Outcome<usize> {
    if bounds.contains(&found) {
        return Ok(found);
    }
    let hint = format!("write a number from {} to {}", bounds.start(), bounds.end());
    Err(Failure::usage(format!("{option} {found} is out of bounds"), hint))
}

/// Parses a duration into seconds: `90`, `90s`, `15m`, `2h`, `1d`.
pub fn seconds(text: &str) -> Result<u32, String> {
    let (number, factor) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 'h')) => (&text[..at], 3_600),
        Some((at, 'd')) => (&text[..at], 86_400),
        Some(_) | None => (text, 1),
    };
    let number: u32 = number.parse().map_err(|_| "write a duration such as 90, 90s, 15m or 2h".to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "this is longer than a hundred years".to_owned())
}
