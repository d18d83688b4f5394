//! What was spent, by whom and on what.

use std::collections::BTreeMap;

use waypost_core::TaskId;
use waypost_planner::Purpose;

use super::JournalLine;
use crate::models::Cost;

/// What some calls came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Answers.
    pub calls: u64,
    /// Tokens of the questions.
    pub tokens_in: u64,
    /// Tokens of the answers.
    pub tokens_out: u64,
    /// Money, as far as prices were known.
    pub cost: Cost,
    /// Answers whose price was not known.
    pub unpriced: u64,
    /// Answers whose tokens were estimated.
    pub estimated: u64,
}

impl Spent {
    /// Tokens both ways.
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

/// What was spent, answers that were forgotten later included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// On everything.
    pub all: Spent,
    /// On each task; on none: on the plan as a whole.
    pub by_task: BTreeMap<Option<TaskId>, Spent>,
    /// For each purpose.
    pub by_purpose: BTreeMap<Purpose, Spent>,
    /// By each model, as the configuration calls it.
    pub by_model: BTreeMap<String, Spent>,
    /// Calls without an answer.
    pub failed: u64,
}

impl Totals {
    /// Those of these lines.
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
                self.all.add(&one);
                self.by_task.entry(entry.task.clone()).or_default().add(&one);
                self.by_purpose.entry(entry.purpose).or_default().add(&one);
                self.by_model.entry(entry.from.clone()).or_default().add(&one);
            }
            JournalLine::Failed { .. } => self.failed += 1,
            JournalLine::Begun { .. } | JournalLine::Forgotten { .. } => {}
        }
    }
}
