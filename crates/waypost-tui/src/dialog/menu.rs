//! A list of options, of which one is chosen: with arrows, with a digit, or with a filter that is typed. Draws nothing.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::text;
use crate::text_input::TextInput;

/// Number of options that a digit chooses.
const DIGITS: usize = 9;

/// One option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MenuOption {
    pub label: String,
    /// Shown next to the label; the filter finds it too.
    pub detail: String,
    /// Not shown; the filter finds it.
    pub keywords: String,
}

impl MenuOption {
    pub fn new(label: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { label: label.into(), detail: detail.into(), keywords: String::new() }
    }
}

/// What a key or a click chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picked {
    /// The option with this index.
    Option(usize),
    /// A text that is none of the options.
    Typed(String),
}

/// A list of options.
#[derive(Clone, Debug)]
pub struct Menu {
    options: Vec<MenuOption>,
    /// The typed filter; without one, digits choose.
    filter: Option<TextInput>,
    /// Whether a typed text that is no option can be chosen.
    takes_text: bool,
    /// Indices of the options that match the filter.
    found: Vec<usize>,
    selected: usize,
    /// Whether Enter takes the selected option. Where a second Enter by mistake would do harm, an option has to be gone to first.
    is_marked: bool,
    top: usize,
    /// The columns of the widest option.
    columns: usize,
}

impl Menu {
    /// A list whose options are chosen by digits too.
    pub fn new(options: Vec<MenuOption>) -> Self {
        let found = (0..options.len()).collect();
        let columns = columns(&options);
        Self {
            columns,
            options,
            filter: None,
            takes_text: false,
            found,
            selected: 0,
            is_marked: true,
            top: 0,
        }
    }

    /// A list with a filter.
    pub fn filtered(options: Vec<MenuOption>) -> Self {
        Self { filter: Some(TextInput::line("")), ..Self::new(options) }
    }

    /// Lets a typed text be chosen that is none of the options.
    #[must_use]
    pub fn or_typed(self) -> Self {
        Self { takes_text: true, ..self }
    }

    /// Marks no option: Enter takes none before one was gone to.
    #[must_use]
    pub fn unmarked(self) -> Self {
        Self { is_marked: false, ..self }
    }

    /// Selects an option.
    #[must_use]
    pub fn at(self, option: usize) -> Self {
        let selected = option.min(self.found.len().saturating_sub(1));
        Self { selected, ..self }
    }

    /// Replaces the options, and filters them again. The selection stays on its option if it is still there.
    pub fn set_options(&mut self, options: Vec<MenuOption>) {
        let before = self.found.get(self.selected).and_then(|&at| self.options.get(at)).cloned();
        let selected = self.selected;
        self.columns = columns(&options);
        self.options = options;
        self.find();
        let again = |&at: &usize| Some(&self.options[at]) == before.as_ref();
        self.selected = match selected {
            0 => 0,
            _ => self.found.iter().position(again).unwrap_or(0),
        };
    }

    pub fn filter(&self) -> Option<&TextInput> {
        self.filter.as_ref()
    }

    pub fn has_filter(&self) -> bool {
        self.filter.is_some()
    }

    /// The number of rows that all options need.
    pub fn rows(&self) -> usize {
        self.options.len() + usize::from(self.has_filter()) + usize::from(self.takes_text)
    }

    /// The columns that the widest option needs.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The text that can be chosen although it is no option.
    fn typed(&self) -> Option<&str> {
        let typed = self.filter.as_ref()?.text().trim();
        let is_new = !typed.is_empty() && self.options.iter().all(|option| option.label != typed);
        (self.takes_text && is_new).then_some(typed)
    }

    /// The visible rows: each option with its digit, whether it is selected; last the typed text.
    pub fn visible(&self, rows: usize) -> impl Iterator<Item = (MenuOption, Option<usize>, bool)> {
        let digit = |place: usize| (!self.has_filter() && place < DIGITS).then_some(place + 1);
        let first = self.first_row(rows);
        let end = (first + rows).min(self.count());
        (first..end).map(move |place| {
            let option = match self.found.get(place) {
                Some(&at) => self.options[at].clone(),
                None => MenuOption::new(format!("“{}”", self.typed().unwrap_or_default()), "new"),
            };
            (option, digit(place), self.is_marked && place == self.selected)
        })
    }

    /// The first visible option, if so many rows are visible.
    fn first_row(&self, rows: usize) -> usize {
        self.top.min(self.selected).max((self.selected + 1).saturating_sub(rows.max(1)))
    }

    fn count(&self) -> usize {
        self.found.len() + usize::from(self.typed().is_some())
    }

    fn step(&mut self, by: isize, rows: usize) {
        self.top = self.first_row(rows);
        // The first step goes to the first option, or to the last.
        let by = match (std::mem::replace(&mut self.is_marked, true), by) {
            (true, by) => by,
            (false, 0..) => 0,
            (false, _) => isize::MAX,
        };
        self.selected = self.selected.saturating_add_signed(by).min(self.count().saturating_sub(1));
        self.top = self.first_row(rows);
    }

    pub fn scroll(&mut self, by: isize, rows: usize) {
        self.step(by, rows);
    }

    /// Chooses a visible row.
    pub fn pick_row(&mut self, row: usize, rows: usize) -> Option<Picked> {
        let place = self.first_row(rows) + row;
        (place < self.count()).then(|| (self.selected, self.is_marked) = (place, true))?;
        self.pick()
    }

    /// The selected option.
    pub fn pick(&self) -> Option<Picked> {
        match self.found.get(self.selected).filter(|_| self.is_marked) {
            Some(&option) => Some(Picked::Option(option)),
            None => self.typed().map(|typed| Picked::Typed(typed.to_owned())),
        }
    }

    /// Handles a key; `rows` is the number of visible rows. Returns what it chose.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    pub fn key(&mut self, key: KeyEvent, rows: usize) -> Option<Picked> {
        let page = rows.max(1) as isize;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => return self.pick(),
            KeyCode::Up => self.step(-1, rows),
            KeyCode::Down => self.step(1, rows),
            KeyCode::PageUp => self.step(-page, rows),
            KeyCode::PageDown => self.step(page, rows),
            KeyCode::Char('n') if control => self.step(1, rows),
            KeyCode::Char('p') if control => self.step(-1, rows),
            KeyCode::Home if !self.has_filter() => self.step(isize::MIN, rows),
            KeyCode::End if !self.has_filter() => self.step(isize::MAX, rows),
            KeyCode::Char('k') if !self.has_filter() => self.step(-1, rows),
            KeyCode::Char('j') if !self.has_filter() => self.step(1, rows),
            KeyCode::Char(digit @ '1'..='9') if !self.has_filter() => {
                let place = digit as usize - '1' as usize;
                if place < self.found.len() {
                    (self.selected, self.is_marked) = (place, true);
                    return self.pick();
                }
            }
            _ => self.type_key(key),
        }
        None
    }

    fn type_key(&mut self, key: KeyEvent) {
        let Some(filter) = &mut self.filter else { return };
        let before = filter.text().to_owned();
        filter.key(key);
        if before != filter.text() {
            self.find();
        }
    }

    pub fn paste(&mut self, text: &str) {
        if let Some(filter) = &mut self.filter {
            filter.insert(text);
            self.find();
        }
    }

    /// Finds the options with every word of the filter; those that begin with it come first.
    fn find(&mut self) {
        let wanted =
            self.filter.as_ref().map(|filter| filter.text().trim().to_lowercase()).unwrap_or_default();
        let words: Vec<&str> = wanted.split_whitespace().collect();
        let mut found: Vec<(bool, usize)> = Vec::new();
        for (at, option) in self.options.iter().enumerate() {
            let label = option.label.to_lowercase();
            let detail = option.detail.to_lowercase();
            let has = |word: &&str| {
                label.contains(*word) || detail.contains(*word) || option.keywords.contains(*word)
            };
            if words.iter().all(has) {
                found.push((!label.starts_with(&wanted), at));
            }
        }
        found.sort();
        self.found = found.into_iter().map(|(_, at)| at).collect();
        (self.selected, self.top) = (0, 0);
    }
}

fn columns(options: &[MenuOption]) -> usize {
    let wide = |option: &MenuOption| text::width(&option.label) + text::width(&option.detail) + 7;
    options.iter().map(wide).max().unwrap_or(0)
}
