//! What the tests share: answers, a plan that takes commands, and a model that is a function.

use waypost_core::{Actor, Command, Draft, Plan, PlanId, Refinement, Task, TaskSpec, Timestamp};
use waypost_planner::{
    Answer, AnswerKind, AnswerResult, Bounds, Decompose, Ended, ModelRequest, PromptPolicy, Refining, Repair,
};
use waypost_testkit::{id, plan_of};

/// An answer with this text.
pub(crate) fn answer(text: &str) -> Answer {
    Answer {
        text: text.to_owned(),
        ended: Ended::Whole,
        model: "scripted".to_owned(),
        tokens_in: 100,
        tokens_out: 10,
        estimated: false,
    }
}

/// A plan that takes commands.
pub(crate) struct Desk {
    pub(crate) plan: Plan,
}

impl Desk {
    pub(crate) fn with(draft: Draft) -> Self {
        let mut desk = Self { plan: Plan::blank(PlanId::new("p").unwrap()) };
        desk.does(&Command::Create { draft: draft.into(), approval_required: None });
        desk
    }

    /// A plan with one goal, `t1`.
    pub(crate) fn of_goal(goal: &str) -> Self {
        let mut draft = plan_of([TaskSpec::new(id("t1"), goal)]);
        draft.spec.goal = goal.to_owned();
        Self::with(draft)
    }

    /// An agent asks, and it must happen.
    #[track_caller]
    pub(crate) fn does(&mut self, command: &Command) {
        let now = Timestamp::from_micros(1_700_000_000_000_000);
        match self.plan.decide(&Actor::agent("planner"), now, command) {
            Ok(events) if events.is_empty() => {}
            Ok(events) => self.plan.advance(&events, now),
            Err(refusal) => panic!("{command:?} was refused: {refusal}"),
        }
    }

    #[track_caller]
    pub(crate) fn task(&self, name: &str) -> &Task {
        self.plan.task(name).unwrap_or_else(|| panic!("there is no task {name}"))
    }

    pub(crate) fn refinement(&self, name: &str) -> Option<Refinement> {
        self.task(name).spec.thinking.as_ref()?.refinement
    }

    pub(crate) fn reasoning(&self, name: &str) -> String {
        self.task(name).spec.thinking.as_ref().and_then(|one| one.reasoning.clone()).unwrap_or_default()
    }

    /// The ids of all tasks with what they depend on: `t1 t1.1 t1.2(t1.1)`.
    pub(crate) fn shape(&self) -> String {
        let one = |task: &Task| {
            let on: Vec<String> = task.spec.depends_on.iter().map(ToString::to_string).collect();
            let id = &task.spec.id;
            if on.is_empty() { id.to_string() } else { format!("{id}({})", on.join(",")) }
        };
        self.plan.tasks().map(|(task, _)| one(task)).collect::<Vec<_>>().join(" ")
    }
}

/// What happened in a session.
#[derive(Default)]
pub(crate) struct Trace {
    /// The slots that were asked for, in order.
    pub(crate) slots: Vec<String>,
    pub(crate) asks: Vec<ModelRequest>,
    pub(crate) meanings: Vec<AnswerKind>,
    pub(crate) repairs: Vec<Repair>,
}

impl Trace {
    /// The last question of a slot.
    #[track_caller]
    pub(crate) fn ask(&self, slot: &str) -> &ModelRequest {
        self.asks.iter().rev().find(|ask| ask.slot == slot).unwrap_or_else(|| {
            panic!("{slot} was not asked, but {:?}", self.slots);
        })
    }
}

/// Questions in one session of a test; one that goes on longer does not end.
const QUESTIONS_MAX: usize = 20_000;

/// Drives a session to its end with a model that is a function of the question.
pub(crate) fn drive(
    session: &mut Decompose,
    desk: &mut Desk,
    model: &mut dyn FnMut(&ModelRequest) -> Answer,
) -> Trace {
    let mut trace = Trace::default();
    while let Some(ask) = session.next(&desk.plan).first().cloned() {
        assert!(trace.slots.len() < QUESTIONS_MAX, "the session does not end");
        assert!(!trace.slots.contains(&ask.slot), "{} is asked twice", ask.slot);
        let answer = model(&ask);
        let heard = session.interpret(&desk.plan, &ask, &answer);
        take(&mut trace, desk, ask, heard);
    }
    assert!(session.is_over(&desk.plan), "nothing is asked, so it is over");
    trace
}

pub(crate) fn take(trace: &mut Trace, desk: &mut Desk, ask: ModelRequest, heard: AnswerResult) {
    for command in &heard.commands {
        desk.does(command);
    }
    trace.slots.push(ask.slot.clone());
    trace.asks.push(ask);
    trace.meanings.push(heard.kind);
    trace.repairs.extend(heard.repairs);
}

/// A session with these bounds that looks at the rest never again.
pub(crate) fn session(bounds: Bounds) -> Decompose {
    Decompose::new(PromptPolicy::default(), bounds, Refining::Nothing, None)
}

/// A model that gives the answer whose slot is named, and the last one to everything else.
pub(crate) fn script<'a>(
    lines: &'a [(&'a str, &'a str)],
    otherwise: &'a str,
) -> impl FnMut(&ModelRequest) -> Answer + 'a {
    move |ask| {
        let found = lines.iter().find(|(slot, _)| *slot == ask.slot);
        answer(found.map_or(otherwise, |(_, text)| text))
    }
}

/// The last thing that we say in a question.
pub(crate) fn said(ask: &ModelRequest) -> &str {
    &ask.turns.last().unwrap().text
}
