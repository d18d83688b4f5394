//! Reads tables and values of a TOML file. Records a wrong value with its line, and continues.

use std::cell::RefCell;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::values::one_of;
use crate::layer::{Layer, ReadFile};
use crate::problem::ConfigProblem;
use crate::settings::SECONDS_MAX;

pub(super) fn set<T>(place: &mut T, said: Option<T>) {
    if let Some(said) = said {
        *place = said;
    }
}

/// The state that all tables of one file share.
pub(super) struct Reader<'a> {
    pub(super) layer: &'a Layer,
    pub(super) read: ReadFile<'a>,
    pub(super) problems: RefCell<Vec<ConfigProblem>>,
}

impl Reader<'_> {
    /// The line of an offset in the file, from 1.
    fn line(&self, at: usize) -> usize {
        self.layer.text.get(..at).unwrap_or("").matches('\n').count() + 1
    }

    /// Reads a file that is named relative to this one. Returns its name for messages and its text.
    pub(super) fn read_beside(&self, file: &str) -> (String, io::Result<String>) {
        let beside = Path::new(&self.layer.name).parent().unwrap_or(Path::new("")).join(file);
        (beside.display().to_string(), (self.read)(&beside))
    }

    pub(super) fn wrong(&self, at: usize, what: impl Into<String>, hint: impl Into<String>) {
        self.problems.borrow_mut().push(ConfigProblem {
            place: self.layer.name.clone(),
            line: Some(self.line(at)),
            what: what.into(),
            hint: hint.into(),
        });
    }
}

/// A table that is being read. Tracks which keys were requested, so that unknown ones can be reported.
pub(super) struct Table<'t> {
    pub(super) reader: &'t Reader<'t>,
    /// Its name in messages; empty for the whole file.
    pub(super) path: String,
    /// The offset of its name in the file.
    pub(super) at: usize,
    table: &'t DeTable<'t>,
    known: Vec<&'static str>,
    /// Whether unknown keys are accepted.
    is_open: bool,
}

impl<'t> Table<'t> {
    pub(super) fn new(reader: &'t Reader<'t>, path: String, at: usize, table: &'t DeTable<'t>) -> Self {
        Self { reader, path, at, table, known: Vec::new(), is_open: false }
    }

    pub(super) fn wrong(&self, at: usize, what: impl Into<String>, hint: impl Into<String>) {
        self.reader.wrong(at, what, hint);
    }

    /// Reports a value that cannot be used.
    pub(super) fn refuse<T>(&self, at: usize, what: impl Into<String>, hint: impl Into<String>) -> Option<T> {
        self.wrong(at, what, hint);
        None
    }

    /// The file, and the line of an offset in it.
    pub(super) fn place_of(&self, at: usize) -> (String, usize) {
        (self.reader.layer.name.clone(), self.reader.line(at))
    }

    /// Whether the file belongs to the workspace, and so may come with a repository.
    pub(super) fn is_of_workspace(&self) -> bool {
        self.reader.layer.origin.is_of_workspace()
    }

    /// Whether the file belongs to the account.
    pub(super) fn is_of_account(&self) -> bool {
        self.reader.layer.origin.is_of_account()
    }

    fn get(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    pub(super) fn is_without(&self, key: &str) -> bool {
        self.get(key).is_none()
    }

    pub(super) fn is_table(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value.get_ref().as_table().is_some())
    }

    pub(super) fn is_flag(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value.get_ref().as_bool().is_some())
    }

    /// The offset of a key's value; that of the table if the key is missing.
    pub(super) fn place(&self, key: &str) -> usize {
        self.get(key).map_or(self.at, |value| value.span().start)
    }

    fn full(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(super) fn find(&mut self, key: &'static str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.known.push(key);
        self.get(key)
    }

    pub(super) fn expected(&self, key: &str, value: &Spanned<DeValue<'_>>, wanted: &str) {
        let what = format!("`{}` is {}, and must be {wanted}", self.full(key), kind_of(value.get_ref()));
        self.wrong(value.span().start, what, "correct the value");
    }

    /// Reports a required key that is missing. A key with a wrong value was reported before.
    pub(super) fn missing(&self, key: &str, hint: &str) {
        if self.is_without(key) {
            self.wrong(self.at, format!("{} has no `{key}`", self.path), hint);
        }
    }

    /// A value and its offset.
    fn value<T>(
        &mut self,
        key: &'static str,
        wanted: &str,
        parse: impl FnOnce(&'t DeValue<'t>) -> Option<T>,
    ) -> Option<(usize, T)> {
        let value = self.find(key)?;
        let parsed = parse(value.get_ref());
        if parsed.is_none() {
            self.expected(key, value, wanted);
        }
        parsed.map(|parsed| (value.span().start, parsed))
    }

    pub(super) fn text_at(&mut self, key: &'static str) -> Option<(usize, String)> {
        self.value(key, "a text", |value| value.as_str().map(str::to_owned))
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        self.text_at(key).map(|(_, text)| text)
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.value(key, "true or false", DeValue::as_bool).map(|(_, flag)| flag)
    }

    pub(super) fn number(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let wanted = format!("a whole number from {} to {}", range.start(), range.end());
        let parse = |value: &DeValue<'_>| {
            let number = value.as_integer()?;
            u64::from_str_radix(number.as_str(), number.radix()).ok().filter(|number| range.contains(number))
        };
        self.value(key, &wanted, parse).map(|(_, number)| number)
    }

    pub(super) fn small(&mut self, key: &'static str, range: RangeInclusive<u32>) -> Option<u32> {
        let number = self.number(key, u64::from(*range.start())..=u64::from(*range.end()))?;
        u32::try_from(number).ok()
    }

    pub(super) fn seconds(&mut self, key: &'static str, min: u32) -> Option<u32> {
        self.small(key, min..=SECONDS_MAX)
    }

    /// A number from 0, with or without a fraction.
    pub(super) fn decimal(&mut self, key: &'static str, max: f64) -> Option<f64> {
        let parse = |value: &DeValue<'_>| {
            let text = match value {
                DeValue::Integer(number) => number.as_str(),
                DeValue::Float(number) => number.as_str(),
                DeValue::String(_)
                | DeValue::Boolean(_)
                | DeValue::Datetime(_)
                | DeValue::Array(_)
                | DeValue::Table(_) => return None,
            };
            text.parse::<f64>().ok().filter(|number| (0.0..=max).contains(number))
        };
        self.value(key, &format!("a number from 0 to {max}"), parse).map(|(_, number)| number)
    }

    pub(super) fn strings_at(&mut self, key: &'static str) -> Option<(usize, Vec<String>)> {
        self.value(key, "a list of texts", |value| {
            value.as_array()?.iter().map(|word| word.get_ref().as_str().map(str::to_owned)).collect()
        })
    }

    pub(super) fn strings(&mut self, key: &'static str) -> Option<Vec<String>> {
        self.strings_at(key).map(|(_, words)| words)
    }

    /// Looks up a key's text among known words and returns the meaning.
    pub(super) fn choice<T: Copy>(&mut self, key: &'static str, known: &[(&'static str, T)]) -> Option<T> {
        let (at, word) = self.text_at(key)?;
        let found = known.iter().find(|(name, _)| *name == word).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            let what = format!("{} has the unknown {key} {word:?}", self.path);
            self.wrong(at, what, one_of(&word, &names));
        }
        found
    }

    /// Opens an inner table. The caller must call `end` to report its unknown keys.
    pub(super) fn inner(&mut self, key: &'static str) -> Option<Table<'t>> {
        let (at, table) = self.value(key, "a table", DeValue::as_table)?;
        Some(Table::new(self.reader, self.full(key), at, table))
    }

    /// Reads an inner table, if present, and reports its unknown keys.
    pub(super) fn section<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Table<'t>) -> T,
    ) -> Option<T> {
        let mut inner = self.inner(key)?;
        let found = read(&mut inner);
        inner.end();
        Some(found)
    }

    /// All entries of a table with arbitrary names: name, offset, value.
    pub(super) fn entries(&self) -> impl Iterator<Item = (String, usize, &'t DeValue<'t>)> + use<'t> {
        let entries = self.table.iter();
        entries.map(|(name, value)| (name.get_ref().to_string(), name.span().start, value.get_ref()))
    }

    /// Reads the named tables in a table, and reports their unknown keys. Returns the valid ones by name.
    pub(super) fn tables<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&str, &mut Table<'t>) -> Option<T>,
    ) -> Vec<(String, T)> {
        let Some(outer) = self.inner(key) else { return Vec::new() };
        let mut tables = Vec::new();
        for (name, value) in outer.table.iter() {
            let (name, at) = (name.get_ref().to_string(), name.span().start);
            let Some(table) = value.get_ref().as_table() else {
                outer.expected(&name, value, "a table");
                continue;
            };
            let mut table = Table::new(self.reader, outer.full(&name), at, table);
            let found = read(&name, &mut table);
            table.end();
            tables.extend(found.map(|found| (name, found)));
        }
        tables
    }

    /// The tables of a list. The caller ends each of them.
    pub(super) fn list_of_tables(&mut self, key: &'static str) -> Vec<Table<'t>> {
        let (reader, path) = (self.reader, self.full(key));
        let table = |item: &'t Spanned<DeValue<'t>>| {
            Some(Table::new(reader, path.clone(), item.span().start, item.get_ref().as_table()?))
        };
        let tables =
            self.value(key, "a list of tables", |value| value.as_array()?.iter().map(table).collect());
        tables.map(|(_, tables)| tables).unwrap_or_default()
    }

    /// Accepts all other keys: their meaning depends on a value that is wrong.
    pub(super) fn accept_rest(&mut self) {
        self.is_open = true;
    }

    /// Reports every key that was not requested.
    pub(super) fn end(self) {
        let is_known = |name: &str| self.is_open || self.known.contains(&name);
        for (name, _) in self.table.iter().filter(|(name, _)| !is_known(name.get_ref())) {
            let hint = match waypost_core::nearest(name.get_ref(), self.known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it can be {}", self.known.join(", ")),
            };
            let what = format!("`{}` is not a key of the configuration", self.full(name.get_ref()));
            self.wrong(name.span().start, what, hint);
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
