//! From a goal to a whole plan in one conversation. Says what to ask and checks what comes back; keeps no plan.

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

/// Tasks that a plan has at the most, unless somebody says otherwise.
pub const TASKS_MAX: usize = 20;
/// Tasks that one answer may be asked for.
pub const TASKS_ASKED_MAX: usize = 100_000;
/// Bytes of the goal and of everything that a model is given to read with it.
pub const INPUT_BYTES_MAX: usize = 1024 * 1024;
/// Columns of a plan's title.
const TITLE_COLUMNS_MAX: usize = 100;

/// A text that the model is given to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// What it is called: the path of a file.
    pub name: String,
    pub text: String,
}

/// Whether a plan in prose is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextPlans {
    /// Only JSON will do.
    #[default]
    Refused,
    /// Numbered lines and bullets are taken for tasks, and that is told as a repair.
    Taken,
}

/// What a plan is wanted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanBrief {
    /// What is to be reached.
    pub goal: String,
    /// Texts to read.
    pub context: Vec<Context>,
    /// What the repository has: a list of paths, say.
    pub map: String,
    /// What the plan must heed, one line each.
    pub constraints: Vec<String>,
    /// Tasks that the plan may have.
    pub tasks_max: usize,
    /// Whether a plan in prose is taken.
    pub text_plans: TextPlans,
}

impl PlanBrief {
    /// A plan for a goal, and nothing else said.
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

/// Why a plan cannot be asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unwanted {
    /// There is no goal.
    #[error("the goal is empty; say what is to be reached")]
    NoGoal,
    /// The number of tasks makes no sense.
    #[error("a plan may have between 2 and {TASKS_ASKED_MAX} tasks, not {0}")]
    TasksMax(usize),
    /// There is too much to read.
    #[error(
        "the goal and what is to be read with it have {0} bytes, over the limit of {INPUT_BYTES_MAX}; name fewer or smaller files"
    )]
    TooMuchToRead(usize),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Generated {
    /// A sound plan, which nobody has saved.
    Plan(Box<Planned>),
    /// It cannot be used; the model is asked again, and told all of this.
    Again {
        /// What is wrong, one sentence each.
        problems: Vec<String>,
    },
    /// It cannot be used, and the model was asked often enough.
    GaveUp(GenerationFailed),
}

/// A plan from a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The plan: sound by the core's own checks.
    pub draft: Draft,
    pub repairs: Vec<Repair>,
    /// How many answers had to be returned before it.
    pub returned: usize,
}

/// A refusal with everything that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerationFailed {
    /// What is wrong with the last answer, one sentence each.
    pub problems: Vec<String>,
    /// All answers as they came.
    pub answers: Vec<String>,
    /// Whether the last of them broke off, or was cut off at the most tokens that it may have.
    pub broke_off: bool,
}

/// A conversation that ends in a plan or in a refusal.
#[derive(Clone, Debug)]
pub struct Generate {
    manner: PromptPolicy,
    wanted: PlanBrief,
    tries: Tries,
    over: bool,
}

impl Generate {
    /// Begins it. Each conversation of a plan needs a `slot` of its own, such as `generate`.
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

    /// The question that is open; none when the conversation is over.
    pub fn next(&self) -> Option<&ModelRequest> {
        (!self.over).then_some(&self.tries.open)
    }

    /// What an answer to the open question means.
    pub fn interpret(&mut self, answer: &Answer) -> Generated {
        let (draft, mut reading) = self.understand(answer);
        // A plan that broke off is incomplete, however sound the rest: it is never taken for a whole one.
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

    /// The draft of these tasks, with everything that is wrong with it noted.
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
