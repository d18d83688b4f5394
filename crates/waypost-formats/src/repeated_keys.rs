//! Finds keys that a JSON object has twice. Readers take the last one, so that the text says something that is dropped.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Maximum number of repeated keys that are named.
const NAMED_MAX: usize = 10;

/// Returns the keys that an object in the text has more than once, each by its path. Nothing for a text that is not JSON.
pub(crate) fn repeated_keys(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut reader = serde_json::Deserializer::from_str(text);
    let whole = Place { node: Node { parent: None, name: Name::Whole }, found: &mut found };
    match whole.deserialize(&mut reader) {
        Ok(()) => found,
        Err(_) => Vec::new(),
    }
}

#[derive(Clone, Copy)]
enum Name<'a> {
    Whole,
    Key(&'a str),
    Number(usize),
}

/// A value in the text. Its path is put together only where it is needed.
#[derive(Clone, Copy)]
struct Node<'a> {
    parent: Option<&'a Node<'a>>,
    name: Name<'a>,
}

impl Node<'_> {
    fn path(&self) -> String {
        let above = self.parent.map(Node::path).unwrap_or_default();
        match self.name {
            Name::Whole => above,
            Name::Key(key) if above.is_empty() => key.to_owned(),
            Name::Key(key) => format!("{above}.{key}"),
            Name::Number(number) => format!("{above}[{number}]"),
        }
    }
}

struct Place<'a, 'f> {
    node: Node<'a>,
    found: &'f mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Place<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut known = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let node = Node { parent: Some(&self.node), name: Name::Key(&key) };
            if known.contains(&key) && self.found.len() < NAMED_MAX {
                self.found.push(node.path());
            }
            map.next_value_seed(Place { node, found: self.found })?;
            known.insert(key);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut at = 0;
        let node = |at: usize| Node { parent: Some(&self.node), name: Name::Number(at) };
        while list.next_element_seed(Place { node: node(at), found: self.found })?.is_some() {
            at += 1;
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_there_twice_is_named_by_its_path() {
        let text = r#"{"a": 1, "b": [{"c": null}, {"c": true, "c": 1.5}], "a": {"d": "x", "d": -1}}"#;
        assert_eq!(repeated_keys(text), ["b[1].c", "a", "a.d"]);
        assert_eq!(repeated_keys("{} and more"), Vec::<String>::new());
        assert_eq!(repeated_keys("no JSON"), Vec::<String>::new());
    }
}
