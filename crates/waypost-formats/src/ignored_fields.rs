//! Parses JSON and notes the fields that a type does not have. Does not know the formats.

use serde::Deserialize;

/// The paths of fields that a type does not have.
#[derive(Default)]
pub(crate) struct Ignored(pub(crate) Vec<String>);

impl Ignored {
    /// Parses `text` as a `T`, and records the fields that `T` does not have.
    pub(crate) fn deserialize<'de, T: Deserialize<'de>>(&mut self, text: &'de str) -> serde_json::Result<T> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        // A closure of a generic function is another type for each `T`, and so would be the readers of all that a `T` contains.
        let note: &mut dyn FnMut(serde_ignored::Path<'_>) = &mut |path| self.0.push(path.to_string());
        let value = serde_ignored::deserialize(&mut deserializer, note)?;
        deserializer.end()?;
        Ok(value)
    }
}
