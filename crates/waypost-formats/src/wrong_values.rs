//! What of a JSON value does not fit a type: every place, not only the first, each with its path and in plain words.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use serde_path_to_error::{Path, Segment};
use waypost_text::plain_parse_error;

/// Maximum number of places that are named.
const WRONG_MAX: usize = 20;

/// A place in a value that does not fit.
#[derive(Debug, PartialEq, Eq)]
pub struct WrongValue {
    /// The path of the place, such as `locks[0].key`; empty for the value as a whole.
    pub path: String,
    /// What is expected there, or `None` if the field is missing.
    pub words: Option<String>,
}

/// Returns every place where `value` does not fit `T`.
pub fn wrong_values<T: DeserializeOwned>(mut value: Value) -> Vec<WrongValue> {
    let mut found = Vec::new();
    while found.len() < WRONG_MAX {
        let Err(TypeMismatch { path, words, wrong }) = fit::<T>(&value) else { break };
        found.push(wrong);
        // A value that fits takes its place, so that the next error is another one.
        let stand_ins = [Value::Null, json!("x"), json!(1), json!(true), json!([]), json!({})];
        let mended = stand_ins.into_iter().find_map(|stand_in| {
            let mut mended = value.clone();
            *at(&mut mended, &path)? = stand_in;
            match fit::<T>(&mended) {
                Err(again) if again.path == path || again.words == words => None,
                Ok(()) | Err(_) => Some(mended),
            }
        });
        let Some(mended) = mended else { break };
        value = mended;
    }
    found
}

/// The first place that does not fit.
struct TypeMismatch {
    path: Vec<Step>,
    /// The words of the deserializer.
    words: String,
    wrong: WrongValue,
}

#[derive(PartialEq)]
enum Step {
    Field(String),
    Entry(usize),
}

fn fit<T: DeserializeOwned>(value: &Value) -> Result<(), TypeMismatch> {
    let Err(error) = serde_path_to_error::deserialize::<_, T>(value) else { return Ok(()) };
    let words = error.inner().to_string();
    let mut path = steps(error.path());
    let missing = words.strip_prefix("missing field ").and_then(|rest| rest.split('`').nth(1));
    if let Some(name) = missing {
        path.push(Step::Field(name.to_owned()));
    }
    let is_unknown = words.starts_with("unknown field ");
    let shown = if is_unknown { &path[..path.len().saturating_sub(1)] } else { &path[..] };
    let wrong =
        WrongValue { path: text_of(shown), words: missing.is_none().then(|| plain_parse_error("", &words)) };
    Err(TypeMismatch { path, words, wrong })
}

fn steps(path: &Path) -> Vec<Step> {
    let step = |segment: &Segment| match segment {
        Segment::Seq { index } => Some(Step::Entry(*index)),
        Segment::Map { key } => Some(Step::Field(key.clone())),
        Segment::Enum { .. } | Segment::Unknown => None,
    };
    path.iter().filter_map(step).collect()
}

fn text_of(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Field(name) if text.is_empty() => text.push_str(name),
            Step::Field(name) => text.push_str(&format!(".{name}")),
            Step::Entry(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// Returns the place in the value; a missing field is made.
fn at<'a>(value: &'a mut Value, path: &[Step]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, step| match (step, value) {
        (Step::Field(name), Value::Object(fields)) => {
            Some(fields.entry(name.as_str()).or_insert(Value::Null))
        }
        (Step::Entry(index), Value::Array(entries)) => entries.get_mut(*index),
        (Step::Field(_) | Step::Entry(_), _) => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use waypost_core::TaskSpec;

    use super::wrong_values;

    #[test]
    fn every_place_is_named_with_its_path() {
        let task = json!({
            "id": "t1",
            "priority": "high",
            "work": { "executor": 5, "inputs": 3 },
            "retry": { "attempts": "x" },
            "locks": ["a", { "key": 3 }, { "mode": "shared" }, { "key": "b", "mode": "none" }],
        });
        let found = wrong_values::<TaskSpec>(task).into_iter();
        let mut told: Vec<String> = found
            .map(|wrong| format!("{}: {}", wrong.path, wrong.words.unwrap_or("missing".to_owned())))
            .collect();
        told.sort();
        assert_eq!(
            told,
            [
                "locks[1].key: must be text, not `3`",
                "locks[2].key: missing",
                "locks[3].mode: `none` is not a known value; use one of exclusive, shared",
                "priority: must be a whole number from -2147483648 to 2147483647, not \"high\"",
                "retry.attempts: must be a whole number from 0 to 4294967295, not \"x\"",
                "work.executor: must be text, not `5`",
            ]
        );
    }

    #[test]
    fn a_value_that_fits_has_none_and_one_that_never_fits_has_one() {
        assert_eq!(wrong_values::<TaskSpec>(json!({ "id": "t1" })), []);
        assert_eq!(wrong_values::<TaskSpec>(json!([1])).len(), 1);
    }
}
