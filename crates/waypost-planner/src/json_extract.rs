//! Extracts the JSON from an answer: alone, in fences, among prose, with extra commas, or cut off.
//!
//! Does not know the request: the caller decides what fits. Never guesses missing parts.

mod lenient;

use std::ops::Range;

use serde_json::Value;

use crate::repair::{Repair, Repairs};
use lenient::{Parsed, parse};

pub use lenient::JSON_DEPTH_MAX;

/// Maximum size of an answer in bytes.
pub const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum number of positions tried where JSON may begin, per kind of fence and outside of fences.
pub const CANDIDATES_MAX: usize = 256;
/// Maximum number of candidates that reach the end of the text unfinished.
const UNENDED_MAX: usize = 8;
/// Maximum number of bytes read without finding a value.
const VAIN_BYTES_MAX: usize = 2 * ANSWER_BYTES_MAX;

/// The JSON of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Extracted {
    pub value: Value,
    pub repairs: Vec<Repair>,
}

/// Why no JSON was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoJson {
    #[error("the answer is empty")]
    Empty,
    #[error("the answer has {0} bytes, over the limit of {ANSWER_BYTES_MAX}")]
    TooLong(usize),
    /// There is none, or none that can be parsed.
    #[error("no readable JSON was found in the reply")]
    None,
}

/// Finds the JSON that `fits`. If none does, returns the first that can be parsed, so that the caller can report its problems.
pub fn extract(text: &str, fits: &dyn Fn(&Value) -> bool) -> Result<Extracted, NoJson> {
    if text.len() > ANSWER_BYTES_MAX {
        return Err(NoJson::TooLong(text.len()));
    }
    let mut repairs = Repairs::default();
    let mut rest = text;
    if let Some(after) = rest.strip_prefix('\u{FEFF}') {
        repairs.note(Repair::ByteOrderMark);
        rest = after;
    }
    if rest.trim().is_empty() {
        return Err(NoJson::Empty);
    }
    let spoken = without_thoughts(rest);
    let thought = spoken.len() < rest.len();
    let found = search(&spoken, fits);
    // If there is no match outside of the thinking, the answer may be inside of it.
    let (found, aloud) = match found {
        Some(found) if found.fits => (Some(found), true),
        other if thought => match search(rest, fits) {
            Some(inside) if inside.fits => (Some(inside), false),
            inside => (other.or(inside), true),
        },
        other => (other, true),
    };
    let found = found.ok_or(NoJson::None)?;
    if thought {
        repairs.note(if aloud { Repair::Thinking } else { Repair::Prose });
    }
    for repair in found.repairs.0 {
        repairs.note(repair);
    }
    Ok(Extracted { value: found.value, repairs: repairs.0 })
}

/// Removes `<think>…</think>`. A first `</think>` without an opening tag ends thinking that began before the text.
fn without_thoughts(text: &str) -> String {
    const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];
    let mut text = text.to_owned();
    for (open, close) in TAGS {
        let mut rest = text.as_str();
        if let Some(end) = rest.find(close)
            && rest.find(open).is_none_or(|start| start > end)
        {
            rest = &rest[end + close.len()..];
        }
        let mut spoken = String::with_capacity(rest.len());
        while let Some((before, thought)) = rest.split_once(open) {
            spoken.push_str(before);
            rest = thought.split_once(close).map_or("", |(_, after)| after);
        }
        spoken.push_str(rest);
        text = spoken;
    }
    text
}

struct Candidate {
    value: Value,
    repairs: Repairs,
    fits: bool,
    truncated: bool,
}

fn search(text: &str, fits: &dyn Fn(&Value) -> bool) -> Option<Candidate> {
    let trimmed = text.trim();
    if let Ok(value) = serde_json::from_str::<Value>(trimmed)
        && let Some(found) = whole(value, fits)
    {
        return Some(found);
    }
    let mut best: Option<Candidate> = None;
    let (mut seen, mut unended, mut vain) = (0, 0, 0);
    let mut read: Vec<Range<usize>> = Vec::new();
    for place in places(trimmed) {
        // JSON inside of a value that was already read is a part of that value.
        if unended > UNENDED_MAX || vain > VAIN_BYTES_MAX || read.iter().any(|span| span.contains(&place.at))
        {
            continue;
        }
        let parsed = match parse(trimmed, place.at) {
            Ok(parsed) => parsed,
            Err(end) => {
                vain += end - place.at;
                continue;
            }
        };
        unended += usize::from(parsed.truncated);
        let (truncated, end) = (parsed.truncated, parsed.end);
        seen += 1;
        let found = judge(trimmed, &place, parsed, fits);
        // A cut-off candidate that does not fit may be just a bracket in the prose.
        if !truncated || found.fits {
            read.push(place.at..end);
        }
        if best.as_ref().is_none_or(|best| rank(&found) < rank(best)) {
            best = Some(found);
        }
    }
    let mut best = best?;
    if seen > 1 {
        best.repairs.note(Repair::SeveralCandidates);
    }
    Some(best)
}

/// Fitting candidates come first, and complete ones among them.
fn rank(found: &Candidate) -> (bool, bool) {
    (!found.fits, found.truncated)
}

/// An answer that consists of JSON only.
fn whole(value: Value, fits: &dyn Fn(&Value) -> bool) -> Option<Candidate> {
    let mut repairs = Repairs::default();
    let value = match value {
        Value::String(inner) => {
            repairs.note(Repair::Quoted);
            serde_json::from_str(inner.trim()).ok()?
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            other
        }
    };
    if !value.is_object() && !value.is_array() {
        return None;
    }
    let (value, fits) = unwrapped(value, &mut repairs, fits);
    Some(Candidate { value, repairs, fits, truncated: false })
}

/// If the object itself does not fit, the only field that does.
fn unwrapped(value: Value, repairs: &mut Repairs, fits: &dyn Fn(&Value) -> bool) -> (Value, bool) {
    if fits(&value) {
        return (value, true);
    }
    let fields = value.as_object().into_iter().flat_map(|map| map.values());
    let mut fitting = fields.filter(|field| field.is_object() && fits(field));
    match (fitting.next().cloned(), fitting.next()) {
        (Some(inner), None) => {
            repairs.note(Repair::Wrapped);
            (inner, true)
        }
        _ => (value, false),
    }
}

fn judge(text: &str, place: &Place, parsed: Parsed, fits: &dyn Fn(&Value) -> bool) -> Candidate {
    let mut repairs = Repairs::default();
    let (before, after) = (text[..place.at].trim(), text[parsed.end..].trim());
    match place.fence {
        Fence::None if before.is_empty() && after.is_empty() => {}
        Fence::None => repairs.note(Repair::Prose),
        Fence::Json | Fence::Other => {
            let closed = after.starts_with(place.mark);
            repairs.note(if closed { Repair::Fence } else { Repair::UnclosedFence });
            let around =
                text[..place.begins].trim().len() + after.trim_start_matches(place.mark).trim().len();
            if around > 0 {
                repairs.note(Repair::Prose);
            }
        }
    }
    for repair in parsed.repairs.0 {
        repairs.note(repair);
    }
    let (value, fits) = unwrapped(parsed.value, &mut repairs, fits);
    Candidate { value, repairs, fits, truncated: parsed.truncated }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fence {
    Json,
    Other,
    None,
}

/// A position where JSON may begin.
struct Place {
    at: usize,
    fence: Fence,
    /// The start of the fence.
    begins: usize,
    /// The characters of the fence.
    mark: &'static str,
}

/// Positions where JSON may begin: first in fences marked as JSON, then in other fences, then anywhere.
fn places(text: &str) -> Vec<Place> {
    let (mut marked, mut fenced) = (Vec::new(), Vec::new());
    for mark in ["```", "~~~"] {
        for (begins, _) in text.match_indices(mark).take(CANDIDATES_MAX) {
            let inside = &text[begins + mark.len()..];
            let tag = inside.bytes().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            let space = inside[tag..].len() - inside[tag..].trim_start().len();
            if !inside[tag + space..].starts_with(['{', '[']) {
                continue;
            }
            let is_json = inside[..tag].to_ascii_lowercase().starts_with("json");
            let at = begins + mark.len() + tag + space;
            let fence = if is_json { Fence::Json } else { Fence::Other };
            if is_json { &mut marked } else { &mut fenced }.push(Place { at, fence, begins, mark });
        }
    }
    marked.extend(fenced);
    let in_fences: Vec<usize> = marked.iter().map(|place| place.at).collect();
    let anywhere = text.match_indices(['{', '[']).map(|(at, _)| at).filter(|at| !in_fences.contains(at));
    let plain = |at| Place { at, fence: Fence::None, begins: at, mark: "" };
    marked.extend(anywhere.take(CANDIDATES_MAX).map(plain));
    marked
}
