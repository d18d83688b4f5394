//! How a session asks: from a prompt to a question, and from an answer that cannot be used to the question after it.

use waypost_core::TaskId;

use crate::prompts::{REPAIR, SYSTEM, Values};
use crate::schemas::schema;
use crate::{Answer, Ended, ModelRequest, Prompts, Purpose, Speaker, Turn};

/// Bytes of a model's own answer that it is shown again.
pub const SHOWN_AGAIN_BYTES_MAX: usize = 16 * 1024;
/// Problems that a model is told of at once; the rest are counted.
pub const PROBLEMS_TOLD_MAX: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptPolicy {
    /// In which words.
    pub prompts: Prompts,
    /// How often an answer that cannot be used is returned to the model.
    pub repairs_max: u32,
    /// Tokens that an answer may have.
    pub tokens_max: u32,
    /// Hundredths; none: each purpose has its own.
    pub temperature: Option<u32>,
}

impl Default for PromptPolicy {
    fn default() -> Self {
        Self { prompts: Prompts::default(), repairs_max: 2, tokens_max: 4096, temperature: None }
    }
}

impl PromptPolicy {
    /// The first question of a slot.
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

    /// The question that returns an answer with everything that is wrong with it.
    fn again(&self, first: &ModelRequest, tries: u32, answer: &Answer, problems: &[String]) -> ModelRequest {
        let mut told: Vec<String> =
            problems.iter().take(PROBLEMS_TOLD_MAX).map(|problem| format!("- {problem}")).collect();
        if problems.len() > PROBLEMS_TOLD_MAX {
            told.push(format!("- and {} more", problems.len() - PROBLEMS_TOLD_MAX));
        }
        let values = Values::default().plain("problems", told.join("\n"));
        let mut ask = first.clone();
        ask.slot = format!("{}/{}", first.slot, tries + 1);
        // A model that is shown nothing of its own is not told that it was wrong, and servers refuse an empty turn.
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

/// A question that has been asked, perhaps more than once.
#[derive(Clone, Debug)]
pub(crate) struct Tries {
    first: ModelRequest,
    /// The question that is open.
    pub(crate) open: ModelRequest,
    /// Everything that came back, as it came.
    pub(crate) answers: Vec<String>,
}

impl Tries {
    pub(crate) fn new(first: ModelRequest) -> Self {
        Self { open: first.clone(), first, answers: Vec::new() }
    }

    /// Whether an answer that cannot be used would be the last.
    pub(crate) fn is_last(&self, manner: &PromptPolicy) -> bool {
        self.answers.len() as u32 >= manner.repairs_max
    }

    /// The answer cannot be used: the question after it is open now, if there may be one more.
    pub(crate) fn failed(&mut self, manner: &PromptPolicy, answer: &Answer, problems: &[String]) -> bool {
        let last = self.is_last(manner);
        self.answers.push(answer.text.clone());
        if !last {
            self.open = manner.again(&self.first, self.answers.len() as u32, answer, problems);
        }
        !last
    }
}

/// How an answer is told that had as many tokens as it may have: by the question, the model's `max_tokens` or what is left of a
/// budget.
pub(crate) const CUT: &str = "the answer was cut off at the most tokens that it may have (max_tokens)";

/// What is wrong with an answer that was cut off, before everything else that is wrong with it.
pub(crate) fn cut_first(answer: &Answer, mut problems: Vec<String>) -> Vec<String> {
    let is_told = problems.iter().any(|problem| problem.starts_with(CUT));
    if let (Ended::Cut, false, Some(cut)) = (answer.ended, is_told, ended_badly(answer)) {
        problems.insert(0, cut);
    }
    problems
}

/// What is wrong with an answer as a whole, whatever stands in it.
pub(crate) fn ended_badly(answer: &Answer) -> Option<String> {
    match answer.ended {
        Ended::Whole => None,
        Ended::Cut => Some(format!("{CUT} before it was complete; answer with fewer words")),
        Ended::Refused => {
            Some("the request was declined; it asks only for a plan of work, in JSON".to_owned())
        }
    }
}

/// A task's id as a part of a slot: slashes belong to slots.
pub(crate) fn slot_name(id: &TaskId) -> String {
    id.as_str().replace('%', "%25").replace('/', "%2F")
}
