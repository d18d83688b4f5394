//! Decides whether a goal is small enough.

use serde_json::Value;
use waypost_core::{Plan, Refinement, Task};

use super::context::ancestors;
use super::{AnswerKind, AnswerResult, Decompose, GIVEN_UP, marked};
use crate::Answer;
use crate::lenient_fields::{Reading, has_one_of, json_of};
use crate::prompts::Values;
use crate::repair::{Repair, Repairs};

const IS_ATOMIC: &[&str] = &["is_atomic", "atomic", "isAtomic"];

impl Decompose {
    pub(super) fn atomicity_values(&self, plan: &Plan, task: &Task) -> Values {
        self.place_values(plan, task)
    }

    pub(super) fn interpret_atomicity(
        &mut self,
        plan: &Plan,
        task: &Task,
        answer: &Answer,
    ) -> Result<AnswerResult, Vec<String>> {
        let (atomic, reasoning, repairs) = verdict(answer)?;
        let reasoning = reasoning.unwrap_or_else(|| "The model gave no reason.".to_owned());
        // A model must not be able to mark a goal as given up by its choice of words.
        let reasoning = reasoning.strip_prefix(GIVEN_UP).unwrap_or(&reasoning);
        let heard = |refinement, reasoning: &str, meaning| {
            let commands = marked(task, refinement, reasoning).into_iter().collect();
            Ok(AnswerResult { commands, kind: meaning, repairs: repairs.0 })
        };
        if atomic {
            return heard(Refinement::Atomic, reasoning, AnswerKind::Taken);
        }
        match self.bound_at(ancestors(plan, task).len(), self.goals(plan)) {
            None => heard(Refinement::Decomposing, reasoning, AnswerKind::Taken),
            Some(stopped) => {
                let reasoning =
                    format!("{reasoning}\n{}; {}.", capital(&stopped.to_string()), stopped.hint());
                heard(Refinement::Decomposing, &reasoning, AnswerKind::Stopped(stopped))
            }
        }
    }
}

/// Capitalizes the first letter.
pub(super) fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Reads whether the goal is atomic, and the reason.
fn verdict(answer: &Answer) -> Result<(bool, Option<String>, Repairs), Vec<String>> {
    let (value, mut reading) = match json_of(answer, &|value: &Value| has_one_of(value, IS_ATOMIC)) {
        Ok(found) => found,
        Err(problems) => {
            let atomic = in_words(&answer.text).ok_or(problems)?;
            let mut reading = Reading::default();
            reading.repairs.note(Repair::Words);
            return Ok((atomic, Some(answer.text.trim().to_owned()), reading.repairs));
        }
    };
    let Some(map) = value.as_object() else {
        return Err(vec!["the answer must be an object with `is_atomic` and `reasoning`".to_owned()]);
    };
    let Some(field) = reading.field(map, IS_ATOMIC) else {
        return Err(vec!["`is_atomic` is missing; it must be true or false".to_owned()]);
    };
    let Some(atomic) = reading.boolean(field) else {
        return Err(vec!["`is_atomic` must be true or false".to_owned()]);
    };
    let reasoning = reading.reasoning(map);
    Ok((atomic, reasoning, reading.repairs))
}

/// Finds `is_atomic` followed by `true` or `false` in an answer without JSON. `None` if the answer contains both.
fn in_words(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let mut said = text.match_indices("is_atomic").filter_map(|(at, name)| {
        let after = text[at + name.len()..].trim_start_matches(|c: char| !c.is_alphabetic());
        let after =
            after.strip_prefix("is ").unwrap_or(after).trim_start_matches(|c: char| !c.is_alphabetic());
        let is = |word: &str| {
            after.strip_prefix(word).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        };
        if is("true") { Some(true) } else { is("false").then_some(false) }
    });
    let first = said.next()?;
    said.all(|other| other == first).then_some(first)
}
