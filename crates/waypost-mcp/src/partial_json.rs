//! Finds the id of a message that cannot be parsed: reads its top-level fields without parsing nested values. Knows only enough of
//! JSON to track nesting.

use rmcp::model::RequestId;
use serde_json::Value;

/// Maximum bytes of the top-level fields that are kept; an id beyond that is not found.
const OUTLINE_BYTES_MAX: usize = 4 * 1024;

/// The outermost object of a text that arrives in pieces, with `null` for every nested value.
#[derive(Debug, Default)]
pub(crate) struct PartialObject {
    kept: Vec<u8>,
    depth: usize,
    in_text: bool,
    is_escaped: bool,
    has_ended: bool,
}

impl PartialObject {
    /// Adds the next piece.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.take(byte);
        }
    }

    fn take(&mut self, byte: u8) {
        if self.in_text {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            return self.keep_at(1, byte);
        }
        match byte {
            b'"' => {
                self.in_text = true;
                self.keep_at(1, byte);
            }
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                match self.depth {
                    1 => self.keep_at(1, byte),
                    2 => b"null".iter().for_each(|byte| self.keep(*byte)),
                    _ => {}
                }
            }
            b'}' | b']' => {
                self.keep_at(1, byte);
                self.has_ended |= self.depth == 1;
                self.depth = self.depth.saturating_sub(1);
            }
            other => self.keep_at(1, other),
        }
    }

    fn keep_at(&mut self, depth: usize, byte: u8) {
        if self.depth == depth {
            self.keep(byte);
        }
    }

    fn keep(&mut self, byte: u8) {
        if !self.has_ended && self.kept.len() <= OUTLINE_BYTES_MAX {
            self.kept.push(byte);
        }
    }

    /// Returns the id if the message is a request that has one. The id of a response is the other side's: it must not be answered.
    pub(crate) fn id(&self) -> Option<RequestId> {
        let Ok(Value::Object(fields)) = serde_json::from_slice(&self.kept) else { return None };
        fields.get("method").filter(|method| method.is_string())?;
        match fields.get("id")? {
            Value::String(text) => Some(RequestId::String(text.as_str().into())),
            Value::Number(number) => number.as_i64().map(RequestId::Number),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<RequestId>) {
        let mut whole = PartialObject::default();
        whole.add(text.as_bytes());
        let mut pieces = PartialObject::default();
        text.as_bytes().chunks(1).for_each(|piece| pieces.add(piece));
        assert_eq!(whole.id(), expected, "{text}");
        assert_eq!(pieces.id(), expected, "{text}");
    }

    #[test]
    fn an_id_is_found_wherever_it_stands() {
        check(r#"{"id":7,"method":"m","params":{"id":8}}"#, Some(RequestId::Number(7)));
        check(r#"{"method":"m","params":[{"id":[8,"}"]}], "id" : -7 }"#, Some(RequestId::Number(-7)));
        check(
            r#"{"method":"m","params":{"x":"\"}{\\"},"id":"a\"b"}"#,
            Some(RequestId::String("a\"b".into())),
        );
        check(r#"{"method":"m","params":1,"id":3} {"method":"m","id":4}"#, Some(RequestId::Number(3)));
    }

    #[test]
    fn what_is_no_request_has_none() {
        check(r#"{"id":7,"result":{}}"#, None);
        check(r#"{"method":"m"}"#, None);
        check(r#"{"method":"m","id":1.5}"#, None);
        check(r#"{"method":"m","id":7"#, None);
        check(r#"[{"method":"m","id":7}]"#, None);
        check("nonsense", None);
        check(&format!(r#"{{"method":"{}","id":7}}"#, "m".repeat(OUTLINE_BYTES_MAX)), None);
    }
}
