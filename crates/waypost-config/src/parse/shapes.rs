//! Parses `[shapes.NAME]`: a description and a schema, which is inline or in a file next to the configuration.

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reader::Table;
use crate::input_schema::{BadSchema, Shape};
use crate::settings::SCHEMA_BYTES_MAX;

impl Table<'_> {
    /// Reads a shape. Returns `None` if it is wrong, after reporting why.
    pub(super) fn shape(&mut self) -> Option<Shape> {
        let description = self.text("description").unwrap_or_default();
        match self.find("input_schema") {
            None => Some(Shape::without_schema(description)),
            Some(value) => self.schema(description, value),
        }
    }

    fn schema(&self, description: String, value: &Spanned<DeValue<'_>>) -> Option<Shape> {
        let name = format!("`{}.input_schema`", self.path);
        let (schema, from) = match value.get_ref() {
            DeValue::String(file) => match self.schema_file(file) {
                Ok(schema) => (schema, format!("{name} ({file})")),
                Err(why) => {
                    let what = format!("{name} is the file {file:?}, and {why}");
                    let hint = "name a JSON file, relative to this one, or write the schema here";
                    return self.refuse(value.span().start, what, hint);
                }
            },
            DeValue::Table(_) => (json(value.get_ref()), name),
            DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_) => {
                self.expected("input_schema", value, "a table or the name of a file");
                return None;
            }
        };
        let wrong = |bad: BadSchema| {
            let place = if bad.at.is_empty() { String::new() } else { format!(" at {}", bad.at) };
            let what = format!("{from} is not a JSON Schema{place}: {}", bad.what);
            self.wrong(place_in(value, &bad.at), what, "correct the schema there");
        };
        Shape::new(description, schema).map_err(wrong).ok()
    }

    fn schema_file(&self, file: &str) -> Result<Value, String> {
        let text = self.reader.read_beside(file).1.map_err(|error| format!("it cannot be read: {error}"))?;
        if text.len() > SCHEMA_BYTES_MAX {
            return Err(format!("it has more than {SCHEMA_BYTES_MAX} bytes"));
        }
        serde_json::from_str(&text).map_err(|error| format!("it is not JSON: {error}"))
    }
}

/// The offset of a place of the schema in the text, or of its closest known ancestor.
fn place_in(value: &Spanned<DeValue<'_>>, pointer: &str) -> usize {
    let mut found = value.span().start;
    let mut value = value.get_ref();
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        let next = match value {
            DeValue::Table(table) => {
                table.iter().find(|(name, _)| *name.get_ref() == step).map(|(_, next)| next)
            }
            DeValue::Array(list) => step.parse::<usize>().ok().and_then(|number| list.get(number)),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => None,
        };
        let Some(next) = next else { break };
        (found, value) = (next.span().start, next.get_ref());
    }
    found
}

/// Converts a TOML value to JSON. A date becomes its text.
fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(flag) => Value::from(*flag),
        DeValue::Datetime(date) => Value::from(date.to_string()),
        DeValue::Integer(number) => {
            let text = number.as_str();
            i64::from_str_radix(text, number.radix()).map_or_else(|_| Value::from(text), Value::from)
        }
        DeValue::Float(number) => {
            number.as_str().parse::<f64>().map_or_else(|_| Value::from(number.as_str()), Value::from)
        }
        DeValue::Array(list) => list.iter().map(|item| json(item.get_ref())).collect(),
        DeValue::Table(table) => table_json(table),
    }
}

/// Converts a TOML table to JSON.
pub(super) fn table_json(table: &DeTable<'_>) -> Value {
    let fields = table.iter().map(|(name, value)| (name.get_ref().to_string(), json(value.get_ref())));
    Value::Object(fields.collect::<Map<String, Value>>())
}
