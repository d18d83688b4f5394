//! Shows a person what a task asks, and takes the answer at the terminal. It counts for what was shown.

use waypost_account::Terminal;
use waypost_config::Config;
use waypost_core::{Json, Plan, Task};
use waypost_service::{is_for_people, question_digest};
use waypost_text::reveal;

use crate::approval_prompt::{add_texts, terminal};
use crate::error::{Failure, Outcome};
use crate::prompt::{ask_at, unusable};

/// What a task asks a person.
pub struct OpenQuestion {
    /// Everything that the person reads before they answer, a line each.
    lines: Vec<String>,
    /// The digest by which the answer names it.
    pub digest: String,
    /// Whether a worker asks, and continues with the answer.
    pub is_question: bool,
}

impl OpenQuestion {
    /// Returns what a task asks; `None` if it asks nothing.
    pub fn of(plan: &Plan, task: &Task, config: &Config) -> Option<Self> {
        let (spec, question) = (&task.spec, task.state.question());
        if question.is_none() && !is_for_people(config, plan, task) {
            return None;
        }
        let mut lines = vec![format!("plan {}, task {}", plan.id(), reveal(spec.id.as_str()))];
        let mut say = |name: &'static str, text: &str| {
            if !text.is_empty() {
                add_texts(2, &[(name, text.to_owned())], &mut lines);
            }
        };
        say("title", &plan.spec().title);
        say("description", &spec.description);
        say("notes", &spec.notes);
        if let Some(work) = spec.work.as_deref().filter(|work| work.inputs != Json::empty_object()) {
            say("inputs", work.inputs.as_str());
        }
        if let Some(question) = question {
            say("question", &question.text);
            say("asked by", &question.by);
            say("possible answers", &question.choices.join(" | "));
        }
        let digest = question_digest(plan.id(), task);
        Some(Self { lines, digest, is_question: question.is_some() })
    }

    fn show(&self) -> Outcome<Terminal> {
        let mut terminal = terminal("answering", String::new())?;
        for line in &self.lines {
            terminal.write_line(line).map_err(unusable)?;
        }
        Ok(terminal)
    }

    /// Shows it, and returns the answer that is typed.
    pub fn ask(&self) -> Outcome<String> {
        let question = if self.is_question { "Your answer: " } else { "Your answer (no fails the task): " };
        let typed = ask_at(&mut self.show()?, question)?;
        match typed.trim() {
            "" => Err(nothing_answered()),
            typed => Ok(typed.to_owned()),
        }
    }

    /// Shows it, and fails unless the person confirms.
    pub fn confirm(&self, question: &str) -> Outcome {
        let typed = ask_at(&mut self.show()?, &format!("{question} Type yes to send: "))?;
        if typed.trim() == "yes" { Ok(()) } else { Err(nothing_answered()) }
    }
}

fn nothing_answered() -> Failure {
    Failure::failed("nothing was answered", "")
}
