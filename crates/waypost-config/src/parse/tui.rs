//! `[tui]`: what a person wishes of the program in a terminal. Which actions there are is known there, not here.

use toml::de::DeValue;

use super::reader::{Reader, Table};
use crate::settings::{Binding, Config};

impl Reader<'_> {
    /// Reads the table over what stands.
    pub(super) fn tui(&mut self, config: &mut Config, top: &mut Table<'_>) {
        let Some(mut table) = top.inner(self, "tui") else { return };
        if let Some(mouse) = table.flag(self, "mouse") {
            config.tui.mouse = mouse;
        }
        if let Some(keys) = table.inner(self, "keys") {
            for (place, at, value) in keys.entries() {
                match value.as_table() {
                    Some(actions) => {
                        for (action, at, value) in self.table("", actions).entries() {
                            self.binding(config, format!("{place}.{action}"), at, value);
                        }
                    }
                    None => self.binding(config, place, at, value),
                }
            }
        }
        table.end(self);
    }

    /// One key as a text, or several as a list; none takes them away.
    fn binding(&mut self, config: &mut Config, action: String, at: usize, value: &DeValue<'_>) {
        let one = value.as_str().map(|key| vec![key.to_owned()]);
        let many = || {
            let words = value.as_array()?.iter().map(|key| key.get_ref().as_str().map(str::to_owned));
            words.collect::<Option<Vec<String>>>()
        };
        let Some(keys) = one.or_else(many) else {
            let what = format!("`tui.keys.{action}` must be a key or a list of keys");
            return self.wrong(at, what, "for example editor.save = [\"s\", \"ctrl+s\"]");
        };
        config.tui.keys.retain(|known| known.action != action);
        let (place, line) = (self.name().to_owned(), self.line(at));
        config.tui.keys.push(Binding { action, keys, place, line });
    }
}
