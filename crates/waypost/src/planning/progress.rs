//! Shows the progress of planning: the calls in progress redrawn in place on a terminal, a line for each answer. Silent
//! for programs, which get only the result.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use waypost_core::Refinement;
use waypost_llm::{CallEvent, Progress};
use waypost_planner::planning::{PlanningObserver, Step};
use waypost_planner::{AnswerKind, ModelRequest, Purpose};

use waypost_cli::context::Context;
use waypost_cli::output::LiveOutput;
use waypost_cli::style::Look;
use waypost_cli::view::text;

/// The interval between two redraws.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of calls in progress that are named.
const NAMED_MAX: usize = 4;
/// Maximum width of a step's description.
const WORDS_COLUMNS: usize = 100;
/// Maximum depth that is indented.
const DEPTH_DRAWN_MAX: usize = 10;
/// Maximum number of an answer's problems that are shown.
const PROBLEMS_MAX: usize = 3;

pub(crate) struct ProgressOutput {
    live: LiveOutput,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    under_way: BTreeMap<String, u64>,
    tokens: u64,
    drawn: Option<Instant>,
}

impl ProgressOutput {
    pub(crate) fn new(context: &Context) -> Self {
        Self { live: context.out.live(), state: Mutex::default() }
    }

    /// Prints a permanent line.
    pub(crate) fn say(&self, look: Look, verb: &str, words: &str) {
        self.say_at(0, look, verb, words);
    }

    /// Prints a permanent line, indented by the depth of the goal.
    fn say_at(&self, depth: usize, look: Look, verb: &str, words: &str) {
        let indent = "  ".repeat(depth.min(DEPTH_DRAWN_MAX));
        self.live.line(look, verb, &format!("{indent}{}", text::excerpt(words, WORDS_COLUMNS)));
    }

    /// Erases the status line.
    pub(crate) fn end(&self) {
        self.live.status("");
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw(&self, state: &mut State, at_once: bool) {
        let recent = state.drawn.is_some_and(|drawn| drawn.elapsed() < DRAW_INTERVAL);
        if recent && !at_once {
            return;
        }
        state.drawn = Some(Instant::now());
        if state.under_way.is_empty() {
            return self.live.status("");
        }
        let named = state.under_way.iter().take(NAMED_MAX);
        let mut names: Vec<String> = named
            .map(|(slot, tokens)| match tokens {
                0 => slot.clone(),
                tokens => format!("{slot} ({tokens} tokens)"),
            })
            .collect();
        if state.under_way.len() > NAMED_MAX {
            names.push(format!("+{}", state.under_way.len() - NAMED_MAX));
        }
        self.live.status(&format!("asking {} · {} tokens so far", names.join(", "), state.tokens));
    }
}

impl Progress for ProgressOutput {
    fn on_event(&self, ask: &ModelRequest, moment: &CallEvent<'_>) {
        let mut state = self.state();
        match moment {
            CallEvent::Asked { .. } => {
                state.under_way.insert(ask.slot.clone(), 0);
                self.draw(&mut state, true);
            }
            CallEvent::Received { tokens, .. } => {
                state.under_way.insert(ask.slot.clone(), *tokens);
                self.draw(&mut state, false);
            }
            CallEvent::Failed { lost, .. } => {
                let lost = lost.map_or(0, |lost| lost.tokens());
                state.tokens = state.tokens.saturating_add(lost);
                state.under_way.remove(&ask.slot);
                self.draw(&mut state, true);
            }
            CallEvent::Waits { milliseconds, why, .. } => {
                let words = format!("{}: {why}; again in {} s", ask.slot, milliseconds.div_ceil(1000));
                self.say(Look::Yellow, "waits", &words);
            }
            CallEvent::TurnedDown { model, to, .. } => {
                let words = format!("{model} does not support schemas; using {to} from now on");
                self.say(Look::Yellow, "without", &words);
            }
            CallEvent::FellBack { from, to, why } => {
                self.say(Look::Yellow, "instead", &format!("using {to} instead of {from}: {why}"));
            }
            CallEvent::Answered { reply } => {
                state.under_way.remove(&ask.slot);
                if !reply.recalled {
                    state.tokens = state.tokens.saturating_add(reply.answer.tokens());
                }
                self.draw(&mut state, true);
            }
        }
    }
}

impl PlanningObserver for ProgressOutput {
    fn on_step(&self, step: &Step<'_>) {
        let Some((look, verb, words)) = describe_step(step) else { return };
        self.say_at(step.depth, look, verb, &words);
        for repair in step.repairs {
            self.say_at(step.depth + 1, Look::Dim, "", repair.describe());
        }
    }
}

/// Returns the look, the verb and the text for an answer; `None` if it is not shown.
fn describe_step(step: &Step<'_>) -> Option<(Look, &'static str, String)> {
    let name = step.ask.task.as_ref().map_or("the plan", |task| task.as_str());
    if let Some(refusal) = step.refusal {
        return Some((Look::Yellow, "left", format!("{name}: the plan refused it: {refusal}")));
    }
    let described = || format!("{name}  {}", text::one_line(step.description));
    match step.kind {
        AnswerKind::Taken => match (step.ask.purpose, step.refinement) {
            (Purpose::Atomicity, Some(Refinement::Atomic)) => Some((Look::Green, "small", described())),
            (Purpose::Decompose | Purpose::Dependencies, Some(Refinement::Decomposed)) => Some((
                Look::Plain,
                "broken",
                format!("{} → {}", described(), text::count(step.children, "goal")),
            )),
            (Purpose::Refine, _) => Some((Look::Dim, "refined", described())),
            (Purpose::GradeExam | Purpose::Digest, _) => Some((Look::Green, "digest", described())),
            (
                Purpose::Generate
                | Purpose::Atomicity
                | Purpose::Decompose
                | Purpose::Dependencies
                | Purpose::WriteExam
                | Purpose::AnswerExam,
                _,
            ) => None,
        },
        AnswerKind::Again { problems } => {
            let shown: Vec<&str> = problems.iter().take(PROBLEMS_MAX).map(String::as_str).collect();
            let more = problems.len().saturating_sub(shown.len());
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            Some((Look::Yellow, "again", format!("{}: {}{more}", step.ask.slot, shown.join("; "))))
        }
        AnswerKind::Stopped(stopped) => Some((Look::Yellow, "left", format!("{name}: {stopped}"))),
        AnswerKind::Without { problems } => {
            let last = problems.first().map_or("", String::as_str);
            Some((Look::Yellow, "without", format!("{}: {last}", step.ask.slot)))
        }
        AnswerKind::Stale => {
            Some((Look::Dim, "stale", format!("{}: the plan has changed since", step.ask.slot)))
        }
    }
}
