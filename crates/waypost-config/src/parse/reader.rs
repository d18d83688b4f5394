//! Reads tables and values of a TOML file; a wrong value is noted with its line, and reading continues.

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use waypost_core::nearest;

use crate::layer::{Layer, ReadFile};
use crate::problem::ConfigProblem;
use crate::settings::SECONDS_MAX;

pub(super) fn set(place: &mut u32, number: Option<u64>) {
    if let Some(number) = number {
        *place = u32::try_from(number).unwrap_or(u32::MAX);
    }
}

/// What all parts of one file share.
pub(super) struct Reader<'a> {
    pub(super) layer: &'a Layer,
    pub(super) read: ReadFile<'a>,
    pub(super) problems: &'a mut Vec<ConfigProblem>,
}

impl<'a> Reader<'a> {
    /// How the file is spoken of.
    pub(super) fn name(&self) -> &str {
        &self.layer.name
    }

    /// The line of a place in the file, from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        self.layer.text.get(..at).unwrap_or("").matches('\n').count() + 1
    }

    pub(super) fn wrong(&mut self, at: usize, what: impl Into<String>, hint: impl Into<String>) {
        self.problems.push(ConfigProblem {
            place: self.layer.name.clone(),
            line: Some(self.line(at)),
            what: what.into(),
            hint: hint.into(),
        });
    }

    pub(super) fn table<'t>(&self, path: &str, table: &'t DeTable<'t>) -> Table<'t> {
        Table { path: path.to_owned(), table, known: Vec::new() }
    }
}

/// A table that is being read, with the keys that were asked for.
pub(super) struct Table<'t> {
    path: String,
    table: &'t DeTable<'t>,
    known: Vec<&'static str>,
}

impl<'t> Table<'t> {
    pub(super) fn is_without(&self, key: &str) -> bool {
        !self.table.iter().any(|(name, _)| name.get_ref() == key)
    }

    pub(super) fn is_table(&self, key: &str) -> bool {
        self.table.iter().any(|(name, value)| name.get_ref() == key && value.get_ref().as_table().is_some())
    }

    pub(super) fn full(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(super) fn find(&mut self, key: &'static str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.known.push(key);
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    pub(super) fn expected(
        &self,
        reader: &mut Reader<'_>,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        wanted: &str,
    ) {
        let what = format!("`{}` is {}, and must be {wanted}", self.full(key), kind_of(value.get_ref()));
        reader.wrong(value.span().start, what, "correct the value");
    }

    pub(super) fn text(&mut self, reader: &mut Reader<'_>, key: &'static str) -> Option<(usize, String)> {
        let value = self.find(key)?;
        match value.get_ref().as_str() {
            Some(text) => Some((value.span().start, text.to_owned())),
            None => {
                self.expected(reader, key, value, "a text");
                None
            }
        }
    }

    pub(super) fn flag(&mut self, reader: &mut Reader<'_>, key: &'static str) -> Option<bool> {
        let value = self.find(key)?;
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.expected(reader, key, value, "true or false");
        }
        flag
    }

    pub(super) fn number(
        &mut self,
        reader: &mut Reader<'_>,
        key: &'static str,
        min: u64,
        max: u64,
    ) -> Option<u64> {
        let value = self.find(key)?;
        let number = value.get_ref().as_integer();
        let number = number.and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
        let number = number.filter(|number| (min..=max).contains(number));
        if number.is_none() {
            self.expected(reader, key, value, &format!("a whole number from {min} to {max}"));
        }
        number
    }

    pub(super) fn seconds(&mut self, reader: &mut Reader<'_>, key: &'static str, min: u64) -> Option<u64> {
        self.number(reader, key, min, SECONDS_MAX.into())
    }

    pub(super) fn strings(
        &mut self,
        reader: &mut Reader<'_>,
        key: &'static str,
    ) -> Option<(usize, Vec<String>)> {
        let value = self.find(key)?;
        let words = value.get_ref().as_array().and_then(|list| {
            list.iter()
                .map(|word| word.get_ref().as_str().map(str::to_owned))
                .collect::<Option<Vec<String>>>()
        });
        if words.is_none() {
            self.expected(reader, key, value, "a list of texts");
        }
        words.map(|words| (value.span().start, words))
    }

    pub(super) fn inner(&mut self, reader: &mut Reader<'_>, key: &'static str) -> Option<Table<'t>> {
        let value = self.find(key)?;
        match value.get_ref().as_table() {
            Some(table) => Some(reader.table(&self.full(key), table)),
            None => {
                self.expected(reader, key, value, "a table");
                None
            }
        }
    }

    /// Where the value of a key stands.
    pub(super) fn place(&self, key: &str) -> Option<usize> {
        let found = self.table.iter().find(|(name, _)| name.get_ref() == key);
        found.map(|(_, value)| value.span().start)
    }

    /// Everything in a table whose names are free: each with its name and where it stands.
    pub(super) fn entries(&self) -> impl Iterator<Item = (String, usize, &'t DeValue<'t>)> + use<'t> {
        let entries = self.table.iter();
        entries.map(|(name, value)| (name.get_ref().to_string(), name.span().start, value.get_ref()))
    }

    /// The named tables in a table: each with its name and where it stands.
    pub(super) fn tables(
        &mut self,
        reader: &mut Reader<'_>,
        key: &'static str,
    ) -> Vec<(String, usize, &'t DeTable<'t>)> {
        let Some(outer) = self.inner(reader, key) else { return Vec::new() };
        let mut tables = Vec::new();
        for (name, value) in outer.table.iter() {
            match value.get_ref().as_table() {
                Some(table) => tables.push((name.get_ref().to_string(), name.span().start, table)),
                None => outer.expected(reader, name.get_ref(), value, "a table"),
            }
        }
        tables
    }

    /// The tables of a list, each with where it stands.
    pub(super) fn list_of_tables(
        &mut self,
        reader: &mut Reader<'_>,
        key: &'static str,
    ) -> Vec<(usize, &'t DeTable<'t>)> {
        let Some(value) = self.find(key) else { return Vec::new() };
        let tables = value.get_ref().as_array().and_then(|list| {
            let one = |item: &'t Spanned<DeValue<'t>>| Some((item.span().start, item.get_ref().as_table()?));
            list.iter().map(one).collect::<Option<Vec<_>>>()
        });
        tables.unwrap_or_else(|| {
            self.expected(reader, key, value, "a list of tables");
            Vec::new()
        })
    }

    /// Reports every key that nobody asked for.
    pub(super) fn end(self, reader: &mut Reader<'_>) {
        for (name, _) in self.table.iter().filter(|(name, _)| !self.known.contains(&name.get_ref().as_ref()))
        {
            let hint = match nearest(name.get_ref(), self.known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it can be {}", self.known.join(", ")),
            };
            let what = format!("`{}` is not a key of the configuration", self.full(name.get_ref()));
            reader.wrong(name.span().start, what, hint);
        }
    }
}

fn kind_of(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
