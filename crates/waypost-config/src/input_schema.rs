//! Shapes: the JSON Schemas of the configuration that inputs must match. Reads no file and fetches nothing.

use std::fmt;
use std::sync::Arc;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, Retrieve, Uri, ValidationError, Validator};
use serde_json::Value;

/// Maximum number of violations reported for one task's inputs.
pub const VIOLATIONS_MAX: usize = 20;
/// Maximum width of one violation, in columns.
const VIOLATION_COLUMNS_MAX: usize = 300;

/// A shape of the configuration: a description and an optional schema.
#[derive(Clone, Default)]
pub struct Shape {
    /// Its purpose, for people.
    pub description: String,
    /// The schema that inputs must match; without one all inputs are valid.
    schema: Option<Arc<Compiled>>,
}

struct Compiled {
    schema: Value,
    validator: Validator,
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.schema();
        f.debug_struct("Shape").field("description", &self.description).field("schema", &schema).finish()
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.description == other.description && self.schema() == other.schema()
    }
}

impl Eq for Shape {}

/// An error in a schema, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadSchema {
    /// A JSON pointer into the schema.
    pub(crate) at: String,
    pub(crate) what: String,
}

impl Shape {
    /// A shape with a schema.
    pub(crate) fn new(description: String, schema: Value) -> Result<Self, BadSchema> {
        let validator = jsonschema::options().with_retriever(Nothing).build(&schema);
        let validator = validator.map_err(|error| bad_schema(&error))?;
        Ok(Self { description, schema: Some(Arc::new(Compiled { schema, validator })) })
    }

    /// A shape that is only a name: all inputs are valid.
    pub(crate) fn without_schema(description: String) -> Self {
        Self { description, schema: None }
    }

    pub fn schema(&self) -> Option<&Value> {
        self.schema.as_ref().map(|compiled| &compiled.schema)
    }

    /// Returns where and why inputs do not match this shape, each as a clause. After the first [`VIOLATIONS_MAX`], one
    /// more entry notes that there are others.
    pub fn violations(&self, inputs: &Value) -> Vec<String> {
        let Some(compiled) = &self.schema else { return Vec::new() };
        let mut errors = compiled.validator.iter_errors(inputs);
        let mut violations: Vec<String> =
            errors.by_ref().take(VIOLATIONS_MAX).map(|e| violation(&e)).collect();
        if errors.next().is_some() {
            violations.push(format!("and more than these {VIOLATIONS_MAX}"));
        }
        violations
    }
}

/// Fetches nothing: a schema is in the configuration, or in a file that the configuration names.
struct Nothing;

impl Retrieve for Nothing {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("{uri} is remote, and nothing is fetched").into())
    }
}

fn bad_schema(error: &ValidationError<'_>) -> BadSchema {
    if let ValidationErrorKind::Referencing(_) = error.kind() {
        let what = format!("{error}: a schema can refer to itself only (`$ref` = \"#/$defs/…\")");
        return BadSchema { at: String::new(), what: short(&what) };
    }
    BadSchema { at: error.instance_path().as_str().to_owned(), what: short(&expected(error)) }
}

fn violation(error: &ValidationError<'_>) -> String {
    let at = error.instance_path().as_str();
    let what = expected(error);
    short(&if at.is_empty() { what } else { format!("at {at}: {what}") })
}

/// The expected value, in our own words where they are clearer than the library's.
#[expect(clippy::wildcard_enum_match_arm, reason = "the library has many kinds, and words for all of them")]
fn expected(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Type { kind: TypeKind::Single(kind) } => format!("expected {}", noun(*kind)),
        ValidationErrorKind::Type { kind: TypeKind::Multiple(kinds) } => {
            let kinds: Vec<&str> = kinds.iter().map(noun).collect();
            format!("expected {}", kinds.join(" or "))
        }
        ValidationErrorKind::Required { property } => format!("{property} is missing").replace('"', "`"),
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            format!("nothing may be called `{}` here", unexpected.join("`, `"))
        }
        ValidationErrorKind::Enum { options } => format!("expected one of {options}"),
        ValidationErrorKind::Constant { expected_value } => format!("expected {expected_value}"),
        ValidationErrorKind::Pattern { pattern } => format!("expected a text like /{pattern}/"),
        ValidationErrorKind::Minimum { limit } => format!("expected at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("expected at most {limit}"),
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            // For each alternative, the first reason why the value does not match it.
            let firsts = context.iter().filter_map(|errors| errors.first());
            let same_place = |inner: &&ValidationError<'_>| inner.instance_path() == error.instance_path();
            let said = |inner| if same_place(&inner) { expected(inner) } else { violation(inner) };
            let mut firsts: Vec<String> = firsts.map(said).collect();
            firsts.dedup();
            firsts.join(", or ")
        }
        ValidationErrorKind::FalseSchema => "nothing is allowed here".to_owned(),
        // The remaining kinds are rare. The value is masked because it may be long.
        _ => error.masked_with("the value").to_string(),
    }
}

fn noun(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Array => "a list",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a text",
    }
}

fn short(text: &str) -> String {
    waypost_text::truncate(text, VIOLATION_COLUMNS_MAX).into_owned()
}
