//! Builds requests: from a prompt to a request, and from an unusable answer to the next request.

use waypost_core::TaskId;

use crate::prompts::{REPAIR, SYSTEM, Values};
use crate::schemas::schema;
use crate::{Answer, Ended, ModelRequest, Prompts, Purpose, Speaker, Turn};

/// Maximum size of a model's own answer that it is shown again, in bytes.
pub const SHOWN_AGAIN_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of problems reported at once; the others are counted.
pub const PROBLEMS_TOLD_MAX: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptPolicy {
    pub prompts: Prompts,
    /// How often an unusable answer is returned to the model.
    pub repairs_max: u32,
    /// Maximum number of tokens of an answer.
    pub tokens_max: u32,
    /// In hundredths; `None` uses a default per purpose.
    pub temperature: Option<u32>,
}

impl Default for PromptPolicy {
    fn default() -> Self {
        Self { prompts: Prompts::default(), repairs_max: 2, tokens_max: 4096, temperature: None }
    }
}

impl PromptPolicy {
    /// The first request of a slot.
    pub(crate) fn ask(
        &self,
        purpose: Purpose,
        task: Option<TaskId>,
        slot: String,
        values: &Values,
    ) -> ModelRequest {
        ModelRequest {
            purpose,
            task,
            slot,
            prompt: self.prompts.version(purpose),
            system: self.prompts.render(SYSTEM, &Values::default()),
            turns: vec![Turn { by: Speaker::User, text: self.prompts.render(purpose.name(), values) }],
            schema: Some(schema(purpose)),
            tokens_max: self.tokens_max,
            temperature: self.temperature.unwrap_or(match purpose {
                Purpose::Generate | Purpose::Decompose | Purpose::Refine => 50,
                Purpose::Atomicity | Purpose::Dependencies | Purpose::Digest | Purpose::WriteExam => 30,
                Purpose::AnswerExam | Purpose::GradeExam => 0,
            }),
        }
    }

    /// The request that returns an answer with all its problems.
    fn again(&self, first: &ModelRequest, tries: u32, answer: &Answer, problems: &[String]) -> ModelRequest {
        let mut told: Vec<String> =
            problems.iter().take(PROBLEMS_TOLD_MAX).map(|problem| format!("- {problem}")).collect();
        if problems.len() > PROBLEMS_TOLD_MAX {
            told.push(format!("- and {} more", problems.len() - PROBLEMS_TOLD_MAX));
        }
        let values = Values::default().plain("problems", told.join("\n"));
        let mut ask = first.clone();
        ask.slot = format!("{}/{}", first.slot, tries + 1);
        // Servers refuse an empty turn, and a model that does not see its answer does not know that it was wrong.
        let shown = if answer.text.trim().is_empty() { "(nothing)" } else { beginning(&answer.text) };
        ask.turns.push(Turn { by: Speaker::Assistant, text: shown.to_owned() });
        ask.turns.push(Turn { by: Speaker::User, text: self.prompts.render(REPAIR, &values) });
        ask
    }
}

fn beginning(text: &str) -> &str {
    let mut end = text.len().min(SHOWN_AGAIN_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A request with its attempts.
#[derive(Clone, Debug)]
pub(crate) struct Tries {
    first: ModelRequest,
    /// The open request.
    pub(crate) open: ModelRequest,
    /// All answers so far, unchanged.
    pub(crate) answers: Vec<String>,
}

impl Tries {
    pub(crate) fn new(first: ModelRequest) -> Self {
        Self { open: first.clone(), first, answers: Vec::new() }
    }

    /// Whether another unusable answer would be the last.
    pub(crate) fn is_last(&self, manner: &PromptPolicy) -> bool {
        self.answers.len() as u32 >= manner.repairs_max
    }

    /// Records an unusable answer. Returns whether another attempt is open.
    pub(crate) fn failed(&mut self, manner: &PromptPolicy, answer: &Answer, problems: &[String]) -> bool {
        let last = self.is_last(manner);
        self.answers.push(answer.text.clone());
        if !last {
            self.open = manner.again(&self.first, self.answers.len() as u32, answer, problems);
        }
        !last
    }
}

/// The problem of an answer that reached its maximum number of tokens: that of the request, of the model (`max_tokens`), or
/// what is left of a budget.
pub(crate) const CUT: &str = "the answer was cut off at the most tokens that it may have (max_tokens)";

/// Puts the problem that an answer was cut off before all others.
pub(crate) fn cut_first(answer: &Answer, mut problems: Vec<String>) -> Vec<String> {
    let is_told = problems.iter().any(|problem| problem.starts_with(CUT));
    if let (Ended::Cut, false, Some(cut)) = (answer.ended, is_told, ended_badly(answer)) {
        problems.insert(0, cut);
    }
    problems
}

/// The problem with how an answer ended, whatever its content.
pub(crate) fn ended_badly(answer: &Answer) -> Option<String> {
    match answer.ended {
        Ended::Whole => None,
        Ended::Cut => Some(format!("{CUT} before it was complete; answer with fewer words")),
        Ended::Refused => {
            Some("the request was declined; it asks only for a plan of work, in JSON".to_owned())
        }
    }
}

/// A task's id as a part of a slot. Slashes are escaped, because they separate the parts.
pub(crate) fn slot_name(id: &TaskId) -> String {
    id.as_str().replace('%', "%25").replace('/', "%2F")
}
