//! What was spent, by task, purpose and model.

use std::collections::BTreeMap;

use crate::Purpose;
use waypost_core::TaskId;

use super::JournalLine;
use crate::Cost;

/// The cost of a number of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Answers, and calls that broke off after they had begun to cost something.
    pub calls: u64,
    /// Tokens of the requests.
    pub tokens_in: u64,
    /// Tokens of the answers.
    pub tokens_out: u64,
    /// The cost, as far as prices were known.
    pub cost: Cost,
    /// Calls whose price was not known.
    pub unpriced: u64,
    /// Calls whose tokens were estimated.
    pub estimated: u64,
}

impl Spent {
    /// Tokens in both directions.
    pub fn tokens(&self) -> u64 {
        self.tokens_in.saturating_add(self.tokens_out)
    }

    fn add(&mut self, one: &Self) {
        self.calls += one.calls;
        self.tokens_in = self.tokens_in.saturating_add(one.tokens_in);
        self.tokens_out = self.tokens_out.saturating_add(one.tokens_out);
        self.cost = self.cost.plus(one.cost);
        self.unpriced += one.unpriced;
        self.estimated += one.estimated;
    }
}

/// What was spent, including answers that were forgotten later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub all: Spent,
    /// For each task; `None`: for the plan as a whole.
    pub by_task: BTreeMap<Option<TaskId>, Spent>,
    pub by_purpose: BTreeMap<Purpose, Spent>,
    /// By the name of the model in the configuration.
    pub by_model: BTreeMap<String, Spent>,
    /// Calls without an answer.
    pub failed: u64,
    /// Those of the failed calls that cost nothing. They are not included in `all`.
    pub free: u64,
}

impl Totals {
    /// Sums up these lines.
    pub fn of<'a>(lines: impl IntoIterator<Item = &'a JournalLine>) -> Self {
        let mut totals = Self::default();
        lines.into_iter().for_each(|line| totals.add(line));
        totals
    }

    pub(super) fn add(&mut self, line: &JournalLine) {
        match line {
            JournalLine::Answered { entry, .. } => {
                let one = Spent {
                    calls: 1,
                    tokens_in: entry.answer.tokens_in,
                    tokens_out: entry.answer.tokens_out,
                    cost: entry.cost.unwrap_or_default(),
                    unpriced: u64::from(entry.cost.is_none()),
                    estimated: u64::from(entry.answer.estimated),
                };
                self.add_one(&one, &entry.task, entry.purpose, &entry.from);
            }
            JournalLine::Failed { task, purpose, lost: Some(lost), .. } => {
                self.failed += 1;
                let one = Spent {
                    calls: 1,
                    tokens_in: lost.tokens_in,
                    tokens_out: lost.tokens_out,
                    cost: lost.cost.unwrap_or_default(),
                    unpriced: u64::from(lost.cost.is_none()),
                    estimated: u64::from(lost.estimated),
                };
                self.add_one(&one, task, *purpose, &lost.from);
            }
            JournalLine::Failed { lost: None, .. } => {
                self.failed += 1;
                self.free += 1;
            }
            JournalLine::Begun { .. } | JournalLine::Forgotten { .. } => {}
        }
    }

    fn add_one(&mut self, one: &Spent, task: &Option<TaskId>, purpose: Purpose, from: &str) {
        self.all.add(one);
        self.by_task.entry(task.clone()).or_default().add(one);
        self.by_purpose.entry(purpose).or_default().add(one);
        self.by_model.entry(from.to_owned()).or_default().add(one);
    }

    /// Returns how many calls were made, with or without an answer.
    pub fn attempts(&self) -> u64 {
        self.all.calls.saturating_add(self.free)
    }
}
