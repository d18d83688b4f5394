//! The planning loop: sends the requests of a session, several at once, and handles the answers one by one.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use crate::{AnswerKind, AnswerResult, Broken, Budget, Limits, ModelRequest, Price, Repair, Reserve, Spent};
use waypost_core::{Actor, Command, Phase, Plan, PlanId, Refinement, Refusal, Task};
use waypost_service::{Record, Service};
use waypost_store::WriteError;

use super::Session;
use super::result::{PlanningError, PlanningResult, StopReason};
use super::shared_budget::{CallReservation, SharedBudget};
use super::stale_answers::{changed_since, forget_outdated};
use super::token_charges::{charge, lacking};
use waypost_llm::{CancelToken, Journal, Model, ModelError, Progress, Reply, Stop};

/// How often to check whether the plan was paused or an end was requested.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// How often an answer is interpreted again because the plan changed meanwhile. The last time, it is written unconditionally.
const CONFLICTS_MAX: usize = 100;
/// How often one request may be answered; an answer that was useless twice will stay useless.
const HEARD_MAX: u32 = 3;

/// Receives the progress of planning.
pub trait PlanningObserver: Progress {
    /// An answer was interpreted, and its commands were applied to the plan.
    fn on_step(&self, step: &Step<'_>);
}

/// An answer that was interpreted.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    pub ask: &'a ModelRequest,
    pub kind: &'a AnswerKind,
    pub repairs: &'a [Repair],
    /// Why the plan refused the commands, if it did.
    pub refusal: Option<&'a Refusal>,
    pub description: &'a str,
    /// The number of ancestors of the goal.
    pub depth: usize,
    /// The number of direct subtasks of the goal.
    pub children: usize,
    /// The planning state of the goal.
    pub refinement: Option<Refinement>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Steps {
    /// Until nothing is left to ask.
    #[default]
    All,
    /// Until one answer was usable.
    One,
}

/// The maximum price of a request over all models that may answer it; `None` if any of their prices is unknown.
pub type Prices<'a> = &'a (dyn Fn(&ModelRequest) -> Option<Price> + Sync);

/// Everything needed to plan.
pub struct PlanningDriver<'a> {
    /// Reads and writes the plan.
    pub service: &'a Service,
    pub plan: PlanId,
    /// The actor in whose name the plan is changed.
    pub by: Actor,
    /// Stores its answers in `journal`.
    pub model: &'a dyn Model,
    /// The journal of this plan.
    pub journal: &'a Journal,
    /// Calls that the plan was charged for before this journal was started.
    pub calls_before: u64,
    /// Of these limits' token budget and the plan's own, the smaller applies.
    pub limits: Limits,
    pub prices: Prices<'a>,
    /// Maximum number of pending requests.
    pub parallel_max: usize,
    pub steps: Steps,
    /// Ends planning after the pending requests.
    pub halt: CancelToken,
    /// Ends planning at once.
    pub stop: Stop,
    pub watcher: &'a dyn PlanningObserver,
}

struct CallResult {
    ask: ModelRequest,
    answer: Result<Reply, ModelError>,
    /// Whether it was given up only because the budget did not allow one more call.
    broke: bool,
}

struct Run<'a, S> {
    session: &'a mut S,
    shared_budget: &'a SharedBudget,
    /// Pending requests by slot, with the version of the plan that each is based on.
    under_way: BTreeMap<String, u64>,
    heard: BTreeMap<String, u32>,
    ending: Option<StopReason>,
    /// Cancelled when there is a stop reason, so that failed calls are not retried either.
    over: CancelToken,
    thought: PlanningResult,
}

impl PlanningDriver<'_> {
    /// Plans until the session is over or something ends it. Pending answers are awaited and stored.
    pub fn run<S: Session>(&self, session: &mut S) -> Result<PlanningResult, PlanningError> {
        charge(self.service, &self.plan, &self.by, self.journal, self.calls_before)?;
        let begun = Instant::now();
        let over = CancelToken::default();
        let stop = self.stop.clone().or_after(&self.halt).or_after(&over);
        let stop = stop.or_at(end_of(begun, &self.limits));
        let shared_budget = SharedBudget::new(self.budget()?);
        let mut run = Run {
            session,
            shared_budget: &shared_budget,
            under_way: BTreeMap::new(),
            heard: BTreeMap::new(),
            ending: None,
            over,
            thought: PlanningResult::default(),
        };
        let mut version = 0;
        thread::scope(|scope| {
            let (tell, heard) = mpsc::channel();
            loop {
                shared_budget.budget().set_seconds(begun.elapsed().as_secs());
                self.check_plan(&mut run, &mut version)?;
                if run.ending.is_none() {
                    self.ask_what_can_be(&mut run, scope, (&tell, &stop, &shared_budget))?;
                }
                if run.ending.is_some() {
                    run.over.cancel();
                }
                if run.under_way.is_empty() {
                    break;
                }
                self.handle_answer(&mut run, &heard)?;
            }
            Ok::<(), PlanningError>(())
        })?;
        run.thought.ending = run.ending.unwrap_or(StopReason::Over);
        Ok(run.thought)
    }

    /// The limits, and the amounts spent so far.
    fn budget(&self) -> Result<Budget, PlanningError> {
        let (used, own) = self.service.plans().with_plan(&self.plan, |plan| {
            (u64::try_from(plan.state().tokens_used).unwrap_or(0), plan.spec().token_budget)
        })?;
        let totals = self.journal.totals();
        // The plan's author may lower the operator's limit, but not raise it.
        let tokens_max = own.into_iter().chain(self.limits.tokens_max).min();
        let limits = Limits { tokens_max, ..self.limits };
        let (calls, cost_micros) = (totals.attempts(), totals.all.cost.0);
        let spent = Spent { calls, tokens: used, cost_micros, seconds: 0 };
        Ok(Budget::new(limits, spent))
    }

    /// Checks whether planning must end, and forgets answers about goals that others changed.
    fn check_plan<S: Session>(&self, run: &mut Run<'_, S>, version: &mut u64) -> Result<(), PlanningError> {
        if run.ending.is_some() {
            return Ok(());
        }
        if self.halt.is_cancelled() || self.stop.is_cancelled() {
            run.ending = Some(StopReason::Halted);
            return Ok(());
        }
        let looked = self.service.plans().with_plan(&self.plan, |plan| (plan.version(), ending_of(plan)));
        let (current, ending) = match looked {
            Err(WriteError::NotFound(_)) => (*version, Some(StopReason::Gone)),
            looked => looked?,
        };
        run.ending = ending;
        if current != *version {
            forget_outdated(self.service.plans(), &self.plan, &self.by, self.journal, *version)?;
            *version = current;
        }
        Ok(())
    }

    /// Sends every request that can be sent now.
    fn ask_what_can_be<'scope, S: Session>(
        &'scope self,
        run: &mut Run<'_, S>,
        scope: &'scope Scope<'scope, '_>,
        (tell, stop, shared_budget): (&Sender<CallResult>, &Stop, &'scope SharedBudget),
    ) -> Result<(), PlanningError> {
        let (version, asks) =
            self.service.plans().with_plan(&self.plan, |plan| (plan.version(), run.session.next(plan)))?;
        for mut ask in asks {
            if run.under_way.len() >= self.parallel_max.max(1) {
                break;
            }
            if run.under_way.contains_key(&ask.slot) {
                continue;
            }
            if run.heard.get(&ask.slot).is_some_and(|&times| times >= HEARD_MAX) {
                run.ending = Some(StopReason::Circles { slot: ask.slot });
                break;
            }
            let reserve = match self.set_aside(run, &ask)? {
                Ok(reserve) => reserve,
                // Reservations of pending requests may be released.
                Err(_) if !run.under_way.is_empty() => break,
                Err(broken) => {
                    run.ending = Some(StopReason::Bound(broken));
                    break;
                }
            };
            if let Some(reserve) = &reserve {
                ask.tokens_max = ask.tokens_max.min(reserve.answer_tokens_max);
            }
            run.under_way.insert(ask.slot.clone(), version);
            let paying = CallReservation::new(shared_budget, (self.prices)(&ask), reserve, self.watcher);
            let (tell, stop) = (tell.clone(), stop.clone().or_after(paying.broke()));
            scope.spawn(move || {
                let answer = self.model.ask(&ask, &paying, &stop);
                let broke = paying.end(&answer);
                // The receiver is gone if planning failed meanwhile; the journal has the answer.
                let _gone = tell.send(CallResult { ask, answer, broke });
            });
        }
        if run.under_way.is_empty() && run.ending.is_none() {
            run.ending = Some(StopReason::Over);
        }
        Ok(())
    }

    /// Reserves the maximum cost of a request, or returns the limit that it would exceed. An answer in the journal costs nothing.
    fn set_aside<S: Session>(
        &self,
        run: &mut Run<'_, S>,
        ask: &ModelRequest,
    ) -> Result<Result<Option<Reserve>, Broken>, PlanningError> {
        if self.journal.find(&ask.slot).is_some() {
            return Ok(Ok(None));
        }
        let price = (self.prices)(ask);
        let reserved = run.shared_budget.budget().reserve(ask, price);
        let broken = match reserved {
            Ok(reserve) => return Ok(Ok(Some(reserve))),
            Err(broken) if !run.under_way.is_empty() => return Ok(Err(broken)),
            Err(broken) => broken,
        };
        // The plan's budget may have been raised meanwhile.
        let again = self.budget()?;
        let mut budget = run.shared_budget.budget();
        let seconds = budget.spent().seconds;
        *budget = again;
        budget.set_seconds(seconds);
        Ok(budget.reserve(ask, price).map(Some).map_err(|_| broken))
    }

    /// Waits for an answer, or until it is time to check the plan again.
    fn handle_answer<S: Session>(
        &self,
        run: &mut Run<'_, S>,
        heard: &Receiver<CallResult>,
    ) -> Result<(), PlanningError> {
        let CallResult { ask, answer, broke } = match heard.recv_timeout(LOOK_AGAIN) {
            Ok(told) => told,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(()),
        };
        let version = run.under_way.remove(&ask.slot).unwrap_or(0);
        match answer {
            Ok(reply) => {
                *run.heard.entry(ask.slot.clone()).or_default() += 1;
                if reply.recalled {
                    run.thought.recalled += 1;
                } else {
                    run.thought.asked += 1;
                    run.thought.tokens = run.thought.tokens.saturating_add(reply.answer.tokens());
                }
                if !reply.recalled && self.is_outdated(&ask, version)? {
                    return self.drop_answer(run, &ask);
                }
                self.take(run, &ask, &reply)
            }
            Err(error) => {
                self.charge_lost(run)?;
                if broke && !self.halt.is_cancelled() {
                    // Asked again if other requests release their reservations; otherwise the limit is reported.
                    return Ok(());
                }
                // After a requested end, failures are not reported; they are in the journal.
                let is_halted = self.halt.is_cancelled() || matches!(error, ModelError::Stopped);
                run.ending.get_or_insert(if is_halted {
                    StopReason::Halted
                } else if let ModelError::OutOfTime { .. } = error {
                    StopReason::Bound(run.shared_budget.budget().out_of_time())
                } else {
                    StopReason::Trouble(error)
                });
                Ok(())
            }
        }
    }

    /// Charges the plan for failed calls.
    fn charge_lost<S: Session>(&self, run: &mut Run<'_, S>) -> Result<(), PlanningError> {
        match charge(self.service, &self.plan, &self.by, self.journal, self.calls_before) {
            Err(WriteError::Refused(Refusal::Archived { .. }) | WriteError::NotFound(_)) => {
                run.ending.get_or_insert(StopReason::Gone);
                Ok(())
            }
            charged => Ok(charged.map(drop)?),
        }
    }

    /// Whether others changed the goal while the model was working on it.
    fn is_outdated(&self, ask: &ModelRequest, version: u64) -> Result<bool, PlanningError> {
        let Some(task) = &ask.task else { return Ok(false) };
        let changed = changed_since(self.service.plans(), &self.plan, &self.by, version, None)?;
        Ok(changed.contains_key(task))
    }

    /// Discards an answer about an earlier state of a goal. It is charged nevertheless.
    fn drop_answer<S: Session>(&self, run: &mut Run<'_, S>, ask: &ModelRequest) -> Result<(), PlanningError> {
        self.journal.forget("the goal was changed meanwhile", |entry| entry.slot == ask.slot)?;
        charge(self.service, &self.plan, &self.by, self.journal, self.calls_before)?;
        let stale = AnswerResult { commands: Vec::new(), kind: AnswerKind::Stale, repairs: Vec::new() };
        self.note(run, ask, &stale, None);
        Ok(())
    }

    /// Interprets an answer against the current plan and applies the result. If the plan changed in between, interprets it again.
    fn take<S: Session>(
        &self,
        run: &mut Run<'_, S>,
        ask: &ModelRequest,
        reply: &Reply,
    ) -> Result<(), PlanningError> {
        for round in 0..=CONFLICTS_MAX {
            let mut session = run.session.clone();
            let looked = self.service.plans().with_plan(&self.plan, |plan| {
                let heard = session.interpret(plan, ask, &reply.answer);
                (plan.version(), heard, lacking(plan, self.journal, self.calls_before))
            });
            let (version, heard, mut commands) = match looked {
                Err(WriteError::NotFound(_)) => {
                    run.ending.get_or_insert(StopReason::Gone);
                    return Ok(());
                }
                looked => looked?,
            };
            commands.extend(heard.commands.iter().cloned().map(without_tokens));
            let written = if commands.is_empty() {
                Ok(())
            } else {
                let known_version = (round < CONFLICTS_MAX).then_some(version);
                self.write(commands, known_version)
            };
            let refusal = match written {
                Ok(()) => None,
                Err(WriteError::Conflict(_)) => continue,
                Err(WriteError::Refused(Refusal::Archived { .. }) | WriteError::NotFound(_)) => {
                    run.ending.get_or_insert(StopReason::Gone);
                    return Ok(());
                }
                Err(WriteError::Refused(refusal)) => {
                    // The answer is charged in any case.
                    charge(self.service, &self.plan, &self.by, self.journal, self.calls_before)?;
                    if let Some(task) = &ask.task {
                        session.refused(task, &refusal.to_string());
                    }
                    Some(refusal)
                }
                Err(error) => return Err(error.into()),
            };
            *run.session = session;
            if !reply.recalled {
                self.count_step(run, &heard.kind);
            }
            self.note(run, ask, &heard, refusal.as_ref());
            return Ok(());
        }
        Ok(())
    }

    fn write(&self, commands: Vec<Command>, known_version: Option<u64>) -> Result<(), WriteError> {
        let (plan, by) = (self.plan.clone(), self.by.clone());
        self.service.record(Record { plan, by, commands, known_version, lease_seconds: None }).map(drop)
    }

    /// Counts a step. Only a new, usable answer counts: answers from the journal merely restore the state of an earlier process.
    fn count_step<S: Session>(&self, run: &mut Run<'_, S>, meaning: &AnswerKind) {
        let is_step = match meaning {
            AnswerKind::Taken | AnswerKind::Stopped(_) | AnswerKind::Without { .. } => true,
            AnswerKind::Again { .. } | AnswerKind::Stale => false,
        };
        if is_step && self.steps == Steps::One {
            run.ending.get_or_insert(StopReason::Stepped);
        }
    }

    fn note<S: Session>(
        &self,
        run: &mut Run<'_, S>,
        ask: &ModelRequest,
        heard: &AnswerResult,
        refusal: Option<&Refusal>,
    ) {
        run.thought.repairs.extend(&heard.repairs);
        run.thought.returned += u64::from(matches!(heard.kind, AnswerKind::Again { .. }));
        let told = self.service.plans().with_plan(&self.plan, |plan| {
            let found = ask.task.as_ref().and_then(|task| plan.task(task.as_str()));
            let thinking = found.and_then(|task| task.spec.thinking.as_ref());
            self.watcher.on_step(&Step {
                ask,
                kind: &heard.kind,
                repairs: &heard.repairs,
                refusal,
                description: found.map_or("", |task| task.spec.description.as_str()),
                depth: found.map_or(0, |task| depth(plan, task)),
                children: found.map_or(0, |task| plan.children(task.spec.id.as_str()).len()),
                refinement: thinking.and_then(|thinking| thinking.refinement),
            });
        });
        // A plan that is gone is noticed at the next check.
        let _gone = told;
    }
}

/// The deadline of planning that began at `begun`.
pub(super) fn end_of(begun: Instant, limits: &Limits) -> Option<Instant> {
    begun.checked_add(Duration::from_secs(limits.seconds_max?))
}

/// The number of ancestors of a goal.
fn depth(plan: &Plan, task: &Task) -> usize {
    let above = |task: &Task| task.spec.parent.as_ref().and_then(|parent| plan.task(parent.as_str()));
    std::iter::successors(above(task), |task| above(task)).count()
}

/// Why planning must not continue, if so.
fn ending_of(plan: &Plan) -> Option<StopReason> {
    match plan.state().phase {
        _ if plan.state().archived => Some(StopReason::Gone),
        Phase::Paused => Some(StopReason::Paused),
        // A finished plan may have work to digest.
        Phase::Draft
        | Phase::AwaitingApproval
        | Phase::Active
        | Phase::Completed
        | Phase::Failed
        | Phase::Cancelled => None,
    }
}

/// The command without tokens, which are charged by call number instead.
fn without_tokens(mut command: Command) -> Command {
    if let Command::RefineTask { tokens, .. }
    | Command::DecomposeTask { tokens, .. }
    | Command::AttachDigest { tokens, .. } = &mut command
    {
        *tokens = 0;
    }
    command
}
