//! `[shapes.NAME]`: a description and a schema, which stands inline or in a file beside the configuration.

use std::path::Path;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reader::{Reader, Table};
use crate::input_schema::Shape;
use crate::settings::SCHEMA_BYTES_MAX;

impl Reader<'_> {
    /// The shape that a table describes; nothing when it is wrong, which was reported then.
    pub(super) fn shape(&mut self, path: &str, table: &DeTable<'_>) -> Option<Shape> {
        let mut table = self.table(path, table);
        let description = table.text(self, "description").map(|(_, text)| text).unwrap_or_default();
        let schema = table.find("input_schema");
        let shape = match schema {
            None => Some(Shape::without_schema(description)),
            Some(value) => self.schema(path, &table, description, value),
        };
        table.end(self);
        shape
    }

    fn schema(
        &mut self,
        path: &str,
        table: &Table<'_>,
        description: String,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Shape> {
        let at = value.span().start;
        let (schema, from) = match value.get_ref() {
            DeValue::String(file) => {
                let read = self.schema_file(file);
                match read {
                    Ok(schema) => (schema, format!("`{path}.input_schema` ({file})")),
                    Err(why) => {
                        let what = format!("`{path}.input_schema` is the file {file:?}, and {why}");
                        self.wrong(
                            at,
                            what,
                            "name a JSON file, relative to this one, or write the schema here",
                        );
                        return None;
                    }
                }
            }
            DeValue::Table(_) => (json(value.get_ref()), format!("`{path}.input_schema`")),
            DeValue::Boolean(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_) => {
                table.expected(self, "input_schema", value, "a table or the name of a file");
                return None;
            }
        };
        match Shape::new(description, schema) {
            Ok(shape) => Some(shape),
            Err(bad) => {
                let place = if bad.at.is_empty() { String::new() } else { format!(" at {}", bad.at) };
                let what = format!("{from} is not a JSON Schema{place}: {}", bad.what);
                self.wrong(place_in(value, &bad.at), what, "correct the schema there");
                None
            }
        }
    }

    fn schema_file(&self, file: &str) -> Result<Value, String> {
        let beside = Path::new(&self.layer.name).parent().unwrap_or(Path::new("")).join(file);
        let text = (self.read)(&beside).map_err(|error| format!("it cannot be read: {error}"))?;
        if text.len() > SCHEMA_BYTES_MAX {
            return Err(format!("it has more than {SCHEMA_BYTES_MAX} bytes"));
        }
        serde_json::from_str(&text).map_err(|error| format!("it is not JSON: {error}"))
    }
}

/// Where a place of a schema stands in the text, as near as can be said.
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

/// The same value as JSON; a date becomes the text that it is written as.
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
        DeValue::Table(table) => {
            let fields =
                table.iter().map(|(name, value)| (name.get_ref().to_string(), json(value.get_ref())));
            Value::Object(fields.collect::<Map<String, Value>>())
        }
    }
}
