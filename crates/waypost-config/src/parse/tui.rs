//! Parses `[tui]`: settings of the terminal interface. The interface knows which actions exist; this module does not.

use toml::de::DeValue;

use super::reader::{Table, set};
use crate::settings::{Binding, Tui};

impl Table<'_> {
    pub(super) fn tui(&mut self, tui: &mut Tui) {
        set(&mut tui.mouse, self.flag("mouse"));
        let Some(keys) = self.inner("keys") else { return };
        for (place, at, value) in keys.entries() {
            match value.as_table() {
                Some(actions) => {
                    let actions = Table::new(self.reader, String::new(), at, actions);
                    for (action, at, value) in actions.entries() {
                        self.binding(tui, format!("{place}.{action}"), at, value);
                    }
                }
                None => self.binding(tui, place, at, value),
            }
        }
    }

    /// Reads one key as a string, or several as a list. An empty list removes the action's keys.
    fn binding(&self, tui: &mut Tui, action: String, at: usize, value: &DeValue<'_>) {
        let one = value.as_str().map(|key| vec![key.to_owned()]);
        let many = || {
            let words = value.as_array()?.iter().map(|key| key.get_ref().as_str().map(str::to_owned));
            words.collect::<Option<Vec<String>>>()
        };
        let Some(keys) = one.or_else(many) else {
            let what = format!("`tui.keys.{action}` must be a key or a list of keys");
            return self.wrong(at, what, "for example editor.save = [\"s\", \"ctrl+s\"]");
        };
        tui.keys.retain(|known| known.action != action);
        let (place, line) = self.place_of(at);
        tui.keys.push(Binding { action, keys, place, line });
    }
}
