//! Generates a whole plan from a goal in one conversation. Decides what to ask and validates the answers; stores no plan.

mod parse;

use std::collections::HashMap;

use waypost_core::{Draft, Task, TaskId, TaskSpec, validate};

use crate::lenient_fields::{Reading, json_of};
use crate::prompting::{Tries, cut_first};
use crate::prompts::{Values, data};
use crate::prose_plan::{Order, STEP_COMPLEXITY, steps_of_text};
use crate::repair::Repair;
use crate::similarity::{one_line, restates, significant_words};
use crate::{Answer, Ended, ModelRequest, PromptPolicy, Purpose};

/// Default maximum number of tasks.
pub const TASKS_MAX: usize = 20;
/// Upper limit of [`PlanBrief::tasks_max`].
pub const TASKS_ASKED_MAX: usize = 100_000;
/// Maximum size of the goal and everything given with it in bytes.
pub const INPUT_BYTES_MAX: usize = 1024 * 1024;
/// Maximum width of a plan's title in columns.
const TITLE_COLUMNS_MAX: usize = 100;

/// A text that the model is given to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// Its name, such as the path of a file.
    pub name: String,
    pub text: String,
}

/// Whether a plan in prose is accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextPlans {
    /// Only JSON is accepted.
    #[default]
    Refused,
    /// Numbered lines and bullets are read as tasks, which is reported as a repair.
    Taken,
}

/// The input of plan generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanBrief {
    pub goal: String,
    pub context: Vec<Context>,
    /// An overview of the repository, such as a list of paths.
    pub map: String,
    /// Constraints on the plan, one line each.
    pub constraints: Vec<String>,
    /// Maximum number of tasks.
    pub tasks_max: usize,
    pub text_plans: TextPlans,
}

impl PlanBrief {
    /// A brief with a goal only, and defaults for the rest.
    pub fn new(goal: impl Into<String>) -> Self {
        Self {
            goal: goal.into(),
            context: Vec::new(),
            map: String::new(),
            constraints: Vec::new(),
            tasks_max: TASKS_MAX,
            text_plans: TextPlans::default(),
        }
    }
}

/// Why a brief is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unwanted {
    #[error("the goal is empty; say what is to be reached")]
    NoGoal,
    /// The maximum number of tasks is out of range.
    #[error("a plan may have between 2 and {TASKS_ASKED_MAX} tasks, not {0}")]
    TasksMax(usize),
    /// The input is too large.
    #[error(
        "the goal and what is to be read with it have {0} bytes, over the limit of {INPUT_BYTES_MAX}; name fewer or smaller files"
    )]
    TooMuchToRead(usize),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Generated {
    /// A valid plan, not saved yet.
    Plan(Box<Planned>),
    /// The answer is unusable. The next request reports the problems to the model.
    Again {
        /// One sentence each.
        problems: Vec<String>,
    },
    /// The last answer is unusable, and no attempts are left.
    GaveUp(GenerationFailed),
}

/// A plan written by a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Valid by the core's own checks.
    pub draft: Draft,
    pub repairs: Vec<Repair>,
    /// How many answers were rejected before it.
    pub returned: usize,
}

/// A failed conversation with its problems and answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerationFailed {
    /// The problems of the last answer, one sentence each.
    pub problems: Vec<String>,
    /// All answers, unchanged.
    pub answers: Vec<String>,
    /// Whether the last answer was cut off, or reached its maximum number of tokens.
    pub broke_off: bool,
}

/// A conversation that produces a plan or fails.
#[derive(Clone, Debug)]
pub struct Generate {
    manner: PromptPolicy,
    wanted: PlanBrief,
    tries: Tries,
    over: bool,
}

impl Generate {
    /// Starts a conversation. Each conversation about a plan needs its own `slot`, such as `generate`.
    pub fn new(manner: PromptPolicy, wanted: PlanBrief, slot: impl Into<String>) -> Result<Self, Unwanted> {
        if wanted.goal.trim().is_empty() {
            return Err(Unwanted::NoGoal);
        }
        if !(2..=TASKS_ASKED_MAX).contains(&wanted.tasks_max) {
            return Err(Unwanted::TasksMax(wanted.tasks_max));
        }
        let read = wanted.context.iter().map(|file| file.name.len() + file.text.len()).sum::<usize>()
            + wanted.goal.len()
            + wanted.map.len()
            + wanted.constraints.iter().map(String::len).sum::<usize>();
        if read > INPUT_BYTES_MAX {
            return Err(Unwanted::TooMuchToRead(read));
        }
        let files: Vec<String> = wanted.context.iter().map(|file| data(&file.name, &file.text)).collect();
        let constraints: Vec<String> = wanted.constraints.iter().map(|line| format!("- {line}")).collect();
        let mut values = Values::default()
            .data("goal", &wanted.goal)
            .data_under("constraints", "The plan must heed these:", &constraints.join("\n"))
            .data_under("map", "What the project has:", &wanted.map)
            .plain("tasks_max", wanted.tasks_max);
        if !files.is_empty() {
            values = values.plain("context", format!("Files of the project:\n{}", files.join("\n\n")));
        }
        let ask = manner.ask(Purpose::Generate, None, slot.into(), &values);
        Ok(Self { manner, wanted, tries: Tries::new(ask), over: false })
    }

    /// The open request; `None` when the conversation is over.
    pub fn next(&self) -> Option<&ModelRequest> {
        (!self.over).then_some(&self.tries.open)
    }

    /// Interprets an answer to the open request.
    pub fn interpret(&mut self, answer: &Answer) -> Generated {
        let (draft, mut reading) = self.understand(answer);
        // A plan that was cut off is incomplete even if the rest is valid, so it is never used.
        let tasks = draft.as_ref().map_or(0, |draft| draft.tasks.len());
        let broke_off = reading.broke_off(answer, tasks, "tasks");
        if let Some(problem) = &broke_off {
            reading.problems.insert(0, problem.clone());
        }
        let broke_off = broke_off.is_some() || answer.ended == Ended::Cut;
        if let (Some(draft), true) = (draft, reading.problems.is_empty()) {
            self.over = true;
            let returned = self.tries.answers.len();
            return Generated::Plan(Box::new(Planned { draft, repairs: reading.repairs.0, returned }));
        }
        let problems = cut_first(answer, reading.problems);
        if self.tries.failed(&self.manner, answer, &problems) {
            return Generated::Again { problems };
        }
        self.over = true;
        Generated::GaveUp(GenerationFailed { problems, answers: self.tries.answers.clone(), broke_off })
    }

    fn understand(&self, answer: &Answer) -> (Option<Draft>, Reading) {
        match json_of(answer, &parse::is_plan) {
            Ok((value, mut reading)) => {
                let tasks = parse::tasks(&value, &mut reading);
                (Some(self.checked(tasks, &mut reading)), reading)
            }
            Err(problems) => {
                let mut reading = Reading { problems, ..Reading::default() };
                let steps = match self.wanted.text_plans {
                    TextPlans::Refused => None,
                    TextPlans::Taken => steps_of_text(&answer.text),
                };
                let Some((steps, order)) = steps else { return (None, reading) };
                reading.problems.clear();
                reading.repairs.note(Repair::TextPlan);
                let mut tasks: Vec<TaskSpec> = Vec::new();
                for step in steps {
                    let Ok(id) = TaskId::new(format!("t{}", tasks.len() + 1)) else { continue };
                    let mut spec = TaskSpec::new(id, step.description);
                    (spec.notes, spec.complexity) = (step.notes, Some(STEP_COMPLEXITY));
                    if let (Order::Numbered, Some(before)) = (order, tasks.last()) {
                        spec.depends_on.push(waypost_core::Dependency::Task(before.id.clone()));
                    }
                    tasks.push(spec);
                }
                (Some(self.checked(tasks, &mut reading)), reading)
            }
        }
    }

    /// Builds a draft from tasks, and reports all its problems.
    fn checked(&self, tasks: Vec<TaskSpec>, reading: &mut Reading) -> Draft {
        let goal = self.wanted.goal.trim();
        let found = tasks.len();
        if found == 0 && reading.problems.is_empty() {
            reading.problem("there are no tasks in the plan; a plan has at least 2");
        }
        if found > self.wanted.tasks_max {
            let max = self.wanted.tasks_max;
            reading.problem(format!(
                "there are {found} tasks, over the limit of {max}; combine or leave out some"
            ));
        }
        if let [only] = tasks.as_slice()
            && !restates(&only.description, goal)
        {
            reading.problem("there is only one task; a plan has at least 2");
        }
        let mut said: HashMap<Vec<String>, &TaskId> = HashMap::new();
        for task in &tasks {
            let id = &task.id;
            if task.description.is_empty() {
                reading.problem(format!("task {id}: the description is empty; say what is to be done"));
            } else if restates(&task.description, goal) {
                let what = match found {
                    1 => "a single task that repeats the goal is not a plan",
                    _ => "it restates the goal",
                };
                reading.problem(format!("task {id}: {what}; say what is to be done to reach it"));
            } else if let Some(twin) = said.insert(significant_words(&task.description), id) {
                reading.problem(format!("task {id}: it says the same as task {twin}; leave one of them out"));
            }
        }
        let mut draft = Draft::new(one_line(goal, TITLE_COLUMNS_MAX));
        draft.spec.goal = goal.to_owned();
        draft.tasks = tasks.into_iter().map(Task::new).collect();
        for problem in validate(&draft) {
            reading.problem(format!("{problem}; {}", problem.hint()));
        }
        draft
    }
}
