//! Parses a worker's question to a person and checks its limits.

use waypost_core::{Json, QuestionRequest, limits};

use crate::outcome::AttemptOutcome;
use crate::secrets::Secrets;

/// Parses a question: plain text, or an object with `question`, `choices` and `state`. A question beyond the limits
/// fails the attempt.
pub(super) fn asked(said: &str, secrets: &Secrets) -> AttemptOutcome {
    #[derive(serde::Deserialize)]
    struct Long {
        question: String,
        #[serde(default)]
        choices: Vec<String>,
        state: Option<Json>,
    }
    let ask = match serde_json::from_str::<Long>(said) {
        Ok(Long { question, choices, state }) => QuestionRequest {
            text: secrets.redact(&question),
            choices: choices.iter().map(|choice| secrets.redact(choice)).collect(),
            state: state.map(|state| secrets.redact_decoded(state)),
            check: None,
        },
        // The log has removed the secrets.
        Err(_) => QuestionRequest { text: said.to_owned(), ..QuestionRequest::default() },
    };
    let state_bytes = ask.state.as_ref().map_or(0, |state| state.as_str().len());
    let choice_bytes = ask.choices.iter().map(String::len).max().unwrap_or(0);
    let wrong = if ask.text.trim().is_empty() || ask.choices.iter().any(|choice| choice.trim().is_empty()) {
        "an empty question or choice".to_owned()
    } else if ask.text.len().max(choice_bytes) > limits::QUESTION_BYTES_MAX {
        format!("a question or choice of more than {} bytes", limits::QUESTION_BYTES_MAX)
    } else if ask.choices.len() > limits::CHOICES_MAX {
        format!("a question with more than {} choices", limits::CHOICES_MAX)
    } else if state_bytes > limits::QUESTION_STATE_BYTES_MAX {
        format!("a question with a state of more than {} bytes", limits::QUESTION_STATE_BYTES_MAX)
    } else {
        return AttemptOutcome::Asked(Box::new(ask));
    };
    AttemptOutcome::Failed { error: format!("it asked {wrong}") }
}
