//! Searches the tasks of all plans. A search reads the plans that changed last, up to fixed limits, and says when there was
//! more to read.

use std::collections::BTreeMap;

use serde::Serialize;
use waypost_config::Config;
use waypost_core::{EffectiveStatus, Plan, PlanId, Task, TaskId};
use waypost_store::{ArchiveFilter, Query, Sort};
use waypost_text::{StatusSign, excerpt};

use crate::error::ServiceError;
use crate::human_answer::HumanExecutors;
use crate::plan_status::title_of;
use crate::service::Service;

/// Maximum number of plans that a search reads, those that changed last first.
pub const SEARCHED_PLANS_MAX: usize = 1_000;
/// Maximum number of tasks that a search reads, in all plans together.
pub const SEARCHED_TASKS_MAX: usize = 200_000;
/// Maximum number of words in a search; the rest is ignored.
pub const SEARCH_WORDS_MAX: usize = 10;
/// Plans fetched at a time.
const PLANS_PAGE: usize = 100;
/// Maximum width of the text of a found task, in columns.
const TEXT_COLUMNS_MAX: usize = 200;

/// What a search looks for. All conditions hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskSearch {
    /// Words, each of which is in the id, the description, the notes, a label or the assignee of the task, or in the title
    /// or id of its plan; letter case does not count.
    pub text: String,
    /// Only tasks with one of these statuses; empty for any.
    pub statuses: Vec<EffectiveStatus>,
    /// Only tasks with this label.
    pub label: Option<String>,
    /// Only tasks of this assignee.
    pub assignee: Option<String>,
    /// Only tasks of this plan.
    pub plan: Option<PlanId>,
    /// Whether archived plans are searched too.
    pub archived: bool,
}

/// A task that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundTask {
    /// The plan.
    pub plan: PlanId,
    /// The title of the plan.
    pub plan_title: String,
    /// The task.
    pub task: TaskId,
    /// The title of the task.
    pub text: String,
    /// Its status.
    pub standing: Option<EffectiveStatus>,
    /// Whether it waits for a person to do it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub for_person: bool,
    /// Its labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Who is to take care of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
}

impl FoundTask {
    /// The sign under which every front end shows it.
    pub fn sign(&self) -> StatusSign {
        let of_status = self.standing.map_or(StatusSign::Blocked, EffectiveStatus::sign);
        if self.for_person { StatusSign::Person } else { of_status }
    }
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FoundTasks {
    /// What was found, the best first.
    pub tasks: Vec<FoundTask>,
    /// The number of all tasks that fit in the plans that were read.
    pub total: usize,
    /// How many of these have tasks in them, so that nobody works on them.
    pub parents: usize,
    /// The number of plans that were read.
    pub plans_read: usize,
    /// Whether there are plans that were not read.
    pub more: bool,
}

/// How well a task fits, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Id,
    IdBegins,
    Task,
    Plan,
}

impl Service {
    /// Searches the tasks of all plans, and returns at most `limit`.
    pub fn search_tasks(&self, wanted: &TaskSearch, limit: usize) -> Result<FoundTasks, ServiceError> {
        let words = search_words(&wanted.text);
        // Without a readable configuration, what every configuration has is still true.
        let config = self.config().unwrap_or_default();
        let (mut found, mut ranking) = (FoundTasks::default(), Ranking::new(limit, &config));
        if let Some(plan) = &wanted.plan {
            self.view(plan, |plan, _| ranking.read(plan, wanted, &words))?;
            found.plans_read = 1;
            return Ok(ranking.into_found(found));
        }
        let mut room = SEARCHED_TASKS_MAX;
        let shelf = if wanted.archived { ArchiveFilter::All } else { ArchiveFilter::Current };
        let mut query = Query { shelf, sort: Sort::Updated, limit: PLANS_PAGE, ..Query::default() };
        loop {
            let page = self.plans().heads(&query)?;
            for head in &page.items {
                let tasks = head.counts.total as usize;
                if tasks > room || found.plans_read >= SEARCHED_PLANS_MAX {
                    found.more = true;
                    continue;
                }
                room -= tasks;
                found.plans_read += 1;
                if tasks == 0 {
                    continue;
                }
                match self.view(&head.id, |plan, _| ranking.read(plan, wanted, &words)) {
                    // It was purged since its summary was read.
                    Ok(()) | Err(ServiceError::NoSuchPlan(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            match page.next {
                Some(next) if found.plans_read < SEARCHED_PLANS_MAX && room > 0 => query.after = Some(next),
                next => {
                    found.more |= next.is_some();
                    return Ok(ranking.into_found(found));
                }
            }
        }
    }
}

/// The found tasks by how well they fit.
struct Ranking<'a> {
    config: &'a Config,
    limit: usize,
    total: usize,
    parents: usize,
    /// Of each rank, no more than `limit`, in the order in which they were read.
    tasks: BTreeMap<Rank, Vec<FoundTask>>,
}

impl<'a> Ranking<'a> {
    fn new(limit: usize, config: &'a Config) -> Self {
        Self { config, limit, total: 0, parents: 0, tasks: BTreeMap::new() }
    }

    fn into_found(self, found: FoundTasks) -> FoundTasks {
        let tasks = self.tasks.into_values().flatten().take(self.limit).collect();
        FoundTasks { tasks, total: self.total, parents: self.parents, ..found }
    }

    /// Adds the tasks of a plan that fit.
    fn read(&mut self, plan: &Plan, wanted: &TaskSearch, words: &[String]) {
        let spec = plan.spec();
        let title =
            [spec.title.as_str(), &spec.goal, plan.id().as_str()].into_iter().find(|text| !text.is_empty());
        let title = title.unwrap_or_default();
        let of_plan = format!("{} {}", title.to_lowercase(), plan.id().as_str().to_lowercase());
        let (started, people) = (plan.as_started(), HumanExecutors::of(self.config, plan));
        for (task, _) in plan.tasks() {
            let state = &task.state;
            if wanted.label.as_ref().is_some_and(|label| !state.labels().contains(label))
                || wanted.assignee.as_deref().is_some_and(|assignee| state.assignee() != Some(assignee))
            {
                continue;
            }
            let Some(rank) = rank(task, words, &of_plan) else { continue };
            let standing = started.effective_status(task.spec.id.as_str());
            let fits = |standing| wanted.statuses.contains(&standing);
            if !wanted.statuses.is_empty() && !standing.is_some_and(fits) {
                continue;
            }
            self.total += 1;
            self.parents += usize::from(!plan.sibling_ids(Some(task.spec.id.as_str())).is_empty());
            let alike = self.tasks.entry(rank).or_default();
            if alike.len() < self.limit {
                alike.push(FoundTask {
                    plan: plan.id().clone(),
                    plan_title: excerpt(title, TEXT_COLUMNS_MAX).into_owned(),
                    task: task.spec.id.clone(),
                    text: excerpt(&title_of(task), TEXT_COLUMNS_MAX).into_owned(),
                    standing,
                    for_person: standing
                        .is_some_and(|standing| people.sign(task, standing) == StatusSign::Person),
                    labels: state.labels().to_vec(),
                    assignee: state.assignee().map(str::to_owned),
                });
            }
        }
    }
}

fn search_words(text: &str) -> Vec<String> {
    text.split_whitespace().take(SEARCH_WORDS_MAX).map(str::to_lowercase).collect()
}

/// Returns how well a task fits; `None` if a word is missing.
fn rank(task: &Task, words: &[String], of_plan: &str) -> Option<Rank> {
    let (spec, state) = (&task.spec, &task.state);
    let id = spec.id.as_str().to_lowercase();
    if let [word] = words
        && id.starts_with(word.as_str())
    {
        return Some(if id == *word { Rank::Id } else { Rank::IdBegins });
    }
    let mut own = format!("{id}\n{}\n{}", spec.description.to_lowercase(), spec.notes.to_lowercase());
    for text in state.labels().iter().map(String::as_str).chain(state.assignee()) {
        own.push('\n');
        own.push_str(&text.to_lowercase());
    }
    let in_task = words.iter().filter(|word| own.contains(word.as_str())).count();
    if in_task == words.len() {
        return Some(Rank::Task);
    }
    // A word of the task and one of its plan find it; the words of a plan alone would find all its tasks.
    let in_plan = |word: &String| own.contains(word.as_str()) || of_plan.contains(word.as_str());
    (in_task > 0 && words.iter().all(in_plan)).then_some(Rank::Plan)
}
