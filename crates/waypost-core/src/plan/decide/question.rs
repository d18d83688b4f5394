//! Decisions about questions to people: who may ask, who may answer, and which answers are valid.

use std::collections::HashSet;

use waypost_text::{has_hidden, reveal};

use super::super::Plan;
use super::{Decision, only_a_person, within};
use crate::{
    Actor, Event, Problem, ProblemKind, Question, QuestionRequest, Refusal, TaskId, Timestamp, limits,
};

impl Plan {
    pub(super) fn decide_ask(
        &self,
        by: &Actor,
        at: Timestamp,
        task: &TaskId,
        attempt: Option<u32>,
        ask: &QuestionRequest,
    ) -> Decision {
        let number = self.number(task)?;
        self.is_running(number, "suspended for a question")?;
        self.speaks_for(by, number, attempt)?;
        let QuestionRequest { text, choices, state, check } = ask;
        let known = &self.at(number).state;
        if check.is_some() && known.reported().is_none() {
            return Err(self.wrong_status(number, known.status, "checked: it is not reported"));
        }
        if text.trim().is_empty() {
            return Err(empty(task, "the question"));
        }
        within("bytes of the question", text.len(), limits::QUESTION_BYTES_MAX, task)?;
        within("choices of the question", choices.len(), limits::CHOICES_MAX, task)?;
        for choice in choices {
            if choice.trim().is_empty() {
                return Err(empty(task, "a choice"));
            }
            within("bytes of a choice", choice.len(), limits::QUESTION_BYTES_MAX, task)?;
        }
        let found = state.as_ref().map_or(0, |state| state.as_str().len());
        within("bytes of the question's state", found, limits::QUESTION_STATE_BYTES_MAX, task)?;
        let question = Question {
            text: text.clone(),
            choices: distinct(choices),
            state: ask.stored_state(),
            by: known.worker.clone().unwrap_or_else(|| by.to_string()),
            attempt: known.attempt,
            asked_at: at,
        };
        Ok(vec![Event::QuestionAsked { task: task.clone(), question: Box::new(question) }])
    }

    pub(super) fn decide_answer(&self, by: &Actor, task: &TaskId, answer: &str) -> Decision {
        only_a_person(by, "answer a question")?;
        let number = self.number(task)?;
        let Some(question) = self.at(number).state.question() else {
            return Err(Refusal::NoQuestion { task: self.name(number) });
        };
        within("bytes of the answer", answer.len(), limits::QUESTION_BYTES_MAX, task)?;
        let meant = question.answer(answer).ok_or_else(|| match question.choices.as_slice() {
            [] => empty(task, "the answer"),
            choices => Refusal::NotAChoice {
                task: self.name(number),
                answer: answer.to_owned(),
                choices: choices.to_vec(),
            },
        })?;
        Ok(vec![Event::QuestionAnswered { task: task.clone(), answer: meant, by: by.clone() }])
    }
}

fn empty(task: &TaskId, what: &str) -> Refusal {
    let wrong = ProblemKind::Empty { what: what.to_owned() };
    Refusal::Invalid { problems: vec![Problem::task(task, wrong)] }
}

/// Returns the choices without those that an answer could not tell from an earlier one. What cannot be seen is spelled out,
/// because people choose by what they read.
fn distinct(choices: &[String]) -> Vec<String> {
    let mut known = HashSet::new();
    let visible = |choice: &String| match choice.trim() {
        choice if has_hidden(choice) => reveal(choice).into_owned(),
        choice => choice.to_owned(),
    };
    choices.iter().map(visible).filter(|choice| known.insert(choice.to_lowercase())).collect()
}
