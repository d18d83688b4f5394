//! All settings of a file by their full names, to be shown to people and compared. Knows no key.

use std::collections::BTreeMap;

use crate::layer::Layer;
use crate::parse::to_json;

impl Layer {
    /// Returns every setting of the file by its full name (`executors.deploy.command`), as JSON; `None` if the file cannot
    /// be parsed.
    pub fn settings(&self) -> Option<BTreeMap<String, String>> {
        let mut settings = BTreeMap::new();
        let file = to_json(self).filter(serde_json::Value::is_object)?;
        let mut open = vec![(String::new(), &file)];
        while let Some((name, value)) = open.pop() {
            match value.as_object().filter(|fields| !fields.is_empty()) {
                Some(fields) => open.extend(fields.iter().map(|(key, value)| {
                    (if name.is_empty() { key.clone() } else { format!("{name}.{key}") }, value)
                })),
                // The file itself, if it is empty.
                None if name.is_empty() => {}
                None => drop(settings.insert(name, value.to_string())),
            }
        }
        Some(settings)
    }
}
