//! Digests of finished work, and an exam that measures how much of it a digest preserves. Decides what to ask; the plan
//! stores the result.
//!
//! Fidelity is not estimated from the size of a digest: questions are written from the original, answered from the digest
//! alone, and graded. The score is the share of answers that agree.

mod evaluation;
mod source_text;

use serde_json::Value;
use waypost_core::{Command, Digest, Plan, TaskId};

use crate::lenient_fields::{has_one_of, json_of, kind_of};
use crate::prompting::{Tries, cut_first, slot_name};
use crate::prompts::{Values, fingerprint};
use crate::repair::{Repair, Repairs};
use crate::similarity::one_line;
use crate::{Answer, Ended, GenerationFailed, ModelRequest, PromptPolicy, Purpose};
use evaluation::{Given, Question};
use source_text::digest_text;

pub use evaluation::QUESTIONS_MAX;
use waypost_llm::token_estimate::estimate;

/// A summary must have fewer words than this.
pub const SUMMARY_WORDS_MAX: usize = 100;
/// Maximum number of decisions, and of artifacts, in a digest.
pub const LIST_MAX: usize = 10;
/// Maximum width of each entry in columns.
pub const ITEM_COLUMNS_MAX: usize = 300;
/// Default number of questions in an exam.
pub const QUESTIONS: usize = 5;
/// Maximum number of words of an answer in an exam.
pub const ANSWER_WORDS_MAX: usize = 20;

/// Whether the fidelity of a digest is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fidelity {
    /// By an exam with this number of questions.
    Examined { questions: usize },
    /// It is not measured, and the digest has no score.
    Unknown,
}

impl Default for Fidelity {
    fn default() -> Self {
        Self::Examined { questions: QUESTIONS }
    }
}

/// Why a task cannot be digested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDigest {
    /// The plan has no such task.
    #[error("no task is called {0}")]
    NoSuchTask(TaskId),
    #[error("task {0} has not finished; only finished work has a digest")]
    NotFinished(TaskId),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Digested {
    /// The answer was used, and there is another request.
    Taken { repairs: Vec<Repair> },
    /// The answer is unusable. The next request reports the problems to the model.
    Again {
        /// One sentence each.
        problems: Vec<String>,
    },
    Done {
        /// The command that stores the digest.
        command: Box<Command>,
        /// The repairs of the last answer.
        repairs: Vec<Repair>,
        /// Why an exam that was requested could not be held; empty otherwise.
        unexamined: Vec<String>,
    },
    /// No answer was usable, so there is no digest.
    GaveUp(GenerationFailed),
}

#[derive(Clone, Debug)]
enum Stage {
    Digest,
    WriteExam { digest: Digest },
    AnswerExam { digest: Digest, questions: Vec<Question> },
    GradeExam { digest: Digest, given: Vec<Given> },
    Over,
}

/// A conversation that produces a digest of one task.
#[derive(Clone, Debug)]
pub struct Digesting {
    manner: PromptPolicy,
    fidelity: Fidelity,
    task: TaskId,
    original: String,
    stage: Stage,
    tries: Tries,
}

impl Digesting {
    /// Starts a conversation about a finished task.
    pub fn new(
        manner: PromptPolicy,
        fidelity: Fidelity,
        plan: &Plan,
        task: &TaskId,
    ) -> Result<Self, NoDigest> {
        let found = plan.task(task.as_str()).ok_or_else(|| NoDigest::NoSuchTask(task.clone()))?;
        if !found.state.status.is_finished() {
            return Err(NoDigest::NotFinished(task.clone()));
        }
        let original = source_text::text_of(plan, found);
        let values = Values::default()
            .data("original", &original)
            .plain("words_max", SUMMARY_WORDS_MAX)
            .plain("list_max", LIST_MAX);
        let slot = slot(Purpose::Digest, task, &original);
        let ask = manner.ask(Purpose::Digest, Some(task.clone()), slot, &values);
        Ok(Self {
            manner,
            fidelity,
            task: task.clone(),
            original,
            stage: Stage::Digest,
            tries: Tries::new(ask),
        })
    }

    /// The open request; `None` when the conversation is over.
    pub fn next(&self) -> Option<&ModelRequest> {
        match self.stage {
            Stage::Digest | Stage::WriteExam { .. } | Stage::AnswerExam { .. } | Stage::GradeExam { .. } => {
                Some(&self.tries.open)
            }
            Stage::Over => None,
        }
    }

    /// Interprets an answer to the open request.
    pub fn interpret(&mut self, answer: &Answer) -> Digested {
        let heard = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Digest => match self.read_digest(answer) {
                Ok((digest, repairs)) => Ok((self.after_digest(digest), repairs)),
                Err(problems) => Err((Stage::Digest, problems)),
            },
            Stage::WriteExam { digest } => match evaluation::questions(answer, self.questions()) {
                Ok((questions, repairs)) => Ok((self.sit(digest, questions), repairs)),
                Err(problems) => Err((Stage::WriteExam { digest }, problems)),
            },
            Stage::AnswerExam { digest, questions } => match evaluation::given(answer, &questions) {
                Ok((given, repairs)) => Ok((self.mark(digest, given), repairs)),
                Err(problems) => Err((Stage::AnswerExam { digest, questions }, problems)),
            },
            Stage::GradeExam { mut digest, given } => match evaluation::agreed(answer, &given) {
                Ok((agreed, repairs)) => {
                    digest.fidelity_score = Some(agreed as f64 / given.len() as f64);
                    Ok((After::Done(digest), repairs))
                }
                Err(problems) => Err((Stage::GradeExam { digest, given }, problems)),
            },
            Stage::Over => return Digested::Taken { repairs: Vec::new() },
        };
        match heard {
            Ok((After::Done(digest), repairs)) => self.done(digest, repairs, Vec::new()),
            Ok((After::Ask(stage, ask), repairs)) => {
                (self.stage, self.tries) = (stage, Tries::new(*ask));
                Digested::Taken { repairs: repairs.0 }
            }
            Err((stage, problems)) => self.unusable(stage, answer, cut_first(answer, problems)),
        }
    }

    fn unusable(&mut self, stage: Stage, answer: &Answer, problems: Vec<String>) -> Digested {
        if self.tries.failed(&self.manner, answer, &problems) {
            self.stage = stage;
            return Digested::Again { problems };
        }
        match stage {
            Stage::Digest | Stage::Over => {
                let broke_off = answer.ended == Ended::Cut;
                Digested::GaveUp(GenerationFailed {
                    problems,
                    answers: self.tries.answers.clone(),
                    broke_off,
                })
            }
            // The digest is usable; only its fidelity is unknown.
            Stage::WriteExam { digest }
            | Stage::AnswerExam { digest, .. }
            | Stage::GradeExam { digest, .. } => self.done(digest, Repairs::default(), problems),
        }
    }

    fn done(&self, digest: Digest, repairs: Repairs, unexamined: Vec<String>) -> Digested {
        let command = Command::AttachDigest { task: self.task.clone(), digest, tokens: 0 };
        Digested::Done { command: Box::new(command), repairs: repairs.0, unexamined }
    }

    fn questions(&self) -> usize {
        match self.fidelity {
            Fidelity::Examined { questions } => questions.clamp(1, QUESTIONS_MAX),
            Fidelity::Unknown => 0,
        }
    }

    fn after_digest(&self, digest: Digest) -> After {
        if self.questions() == 0 {
            return After::Done(digest);
        }
        let values = Values::default()
            .data("original", &self.original)
            .plain("questions", self.questions())
            .plain("answer_words", ANSWER_WORDS_MAX);
        self.ask(Purpose::WriteExam, &values, Stage::WriteExam { digest })
    }

    fn sit(&self, digest: Digest, questions: Vec<Question>) -> After {
        let asked =
            questions.iter().enumerate().map(|(place, one)| format!("{}. {}", place + 1, one.question));
        let values = Values::default()
            .data("digest", &digest_text(&digest))
            .data("questions", &asked.collect::<Vec<_>>().join("\n"))
            .plain("answer_words", ANSWER_WORDS_MAX);
        self.ask(Purpose::AnswerExam, &values, Stage::AnswerExam { digest, questions })
    }

    fn mark(&self, digest: Digest, given: Vec<Given>) -> After {
        let pairs = given.iter().enumerate().map(|(place, one)| {
            format!("{}. {}\n   right: {}\n   given: {}", place + 1, one.question, one.right, one.given)
        });
        let values = Values::default().data("answers", &pairs.collect::<Vec<_>>().join("\n"));
        self.ask(Purpose::GradeExam, &values, Stage::GradeExam { digest, given })
    }

    fn ask(&self, purpose: Purpose, values: &Values, stage: Stage) -> After {
        let slot = slot(purpose, &self.task, &self.original);
        After::Ask(stage, Box::new(self.manner.ask(purpose, Some(self.task.clone()), slot, values)))
    }

    fn read_digest(&self, answer: &Answer) -> Result<(Digest, Repairs), Vec<String>> {
        const SUMMARY: &[&str] = &["summary", "digest"];
        let (value, mut reading) = json_of(answer, &|value: &Value| has_one_of(value, SUMMARY))?;
        let Some(map) = value.as_object() else {
            return Err(vec![format!(
                "the answer must be an object with `summary`, not {}",
                kind_of(&value)
            )]);
        };
        let summary = reading.field(map, SUMMARY).and_then(|value| reading.text(value)).unwrap_or_default();
        let words = count_words(&summary);
        if summary.is_empty() {
            reading.problem("`summary` is missing or empty; say what was achieved");
        } else if words >= SUMMARY_WORDS_MAX {
            reading
                .problem(format!("`summary` has {words} words; it must have fewer than {SUMMARY_WORDS_MAX}"));
        }
        let mut list = |names: &[&str], name: &str| {
            let field = reading.field(map, names);
            let items = reading.texts(field, name);
            if items.len() > LIST_MAX {
                reading.problem(format!("{name} has {} entries, over the limit of {LIST_MAX}", items.len()));
            }
            items.into_iter().map(|item| one_line(&item, ITEM_COLUMNS_MAX)).collect::<Vec<_>>()
        };
        let key_decisions = list(&["key_decisions", "decisions"], "`key_decisions`");
        let artifacts = list(&["artifacts", "key_artifacts"], "`artifacts`");
        if !reading.problems.is_empty() {
            return Err(reading.problems);
        }
        let mut digest =
            Digest { summary, key_decisions, artifacts, compression_ratio: None, fidelity_score: None };
        let (before, after) = (estimate(&self.original), estimate(&digest_text(&digest)));
        digest.compression_ratio = (before > 0).then(|| after as f64 / before as f64);
        Ok((digest, reading.repairs))
    }
}

enum After {
    Ask(Stage, Box<ModelRequest>),
    Done(Digest),
}

/// The slot of a request about a task. It changes with the result of the task.
fn slot(purpose: Purpose, task: &TaskId, original: &str) -> String {
    format!("{}/{}:{}", purpose.name(), slot_name(task), fingerprint(original))
}

/// Counts words; two characters of a script without spaces count as one word.
fn count_words(text: &str) -> usize {
    let unspaced = text.chars().filter(|&character| character > '\u{2E7F}').count();
    text.split_whitespace().count() + unspaced / 2
}
