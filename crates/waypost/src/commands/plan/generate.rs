//! Turns a request into a plan in the store, or reports why there is none. Resumes where an earlier process stopped.

use std::sync::Arc;

use serde_json::{Map, Value};
use waypost_config::Config;
use waypost_core::{Draft, Plan};
use waypost_llm::{Journal, Progress};
use waypost_planner::planning::{
    Drafted, NoDraft, PlanningGoal, PlanningRequest, RequestProgress, Steps, charge, generate,
};
use waypost_planner::{
    Broken, Context as Given, Generate, GenerationFailed, PlanBrief, PromptPolicy, TextPlans,
};
use waypost_service::{ApprovalRule, Caller, CreateOptions, ServiceError};
use waypost_store::{MemoryStore, PlanStore};

use crate::commands::{decompose, edit, tui};
use crate::planning::progress::ProgressOutput;
use crate::planning::{Chosen, ModelOptions, PlanningSession, author, record, report};
use waypost_cli::context::{Context, PlanHandle};
use waypost_cli::error::{Exit, Failure, Outcome};
use waypost_cli::prompt;
use waypost_cli::style::Look;
use waypost_cli::view::{self, Shown, text};

/// The slot of the conversation. It is constant because a request generates one plan.
const SLOT: &str = "generate/1";

/// A request whose journal is open.
pub(crate) type Begun = (PlanningRequest, Arc<Journal>);

/// Whether the plan is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saving {
    /// It is only shown.
    Nothing,
    /// It is saved.
    Plan {
        /// Whether to open it in the editor, if there is a terminal.
        edit: bool,
    },
}

/// A plan that is being generated.
pub(crate) struct Generation {
    pub(crate) planning: PlanningSession,
    pub(crate) order: PlanningRequest,
    pub(crate) journal: Arc<Journal>,
    pub(crate) chosen: Chosen,
    pub(crate) asked: ModelOptions,
    pub(crate) saving: Saving,
}

impl Generation {
    pub(crate) fn run(mut self, context: &mut Context) -> Outcome {
        let (journal, to) = (Arc::clone(&self.journal), self.asked.record.take());
        let outcome = match (self.make(context), self.saving) {
            (Ok(drafted), Saving::Nothing) => self.show_only(context, &drafted),
            (Ok(drafted), Saving::Plan { edit }) => self.save(context, drafted, edit),
            (Err(failure), _) => Err(failure),
        };
        // The plan has been paid for, so it is saved before anything else can fail.
        outcome.and(record(journal.path(), to.as_ref()))
    }

    fn make(&mut self, context: &mut Context) -> Outcome<Drafted> {
        let talk = ProgressOutput::new(context);
        let drafted = self.draft(&talk, |words| talk.say(Look::Yellow, "again", words))?;
        talk.end();
        match drafted {
            Ok(drafted) => Ok(drafted),
            Err(no) => Err(self.no_plan(no)?),
        }
    }

    /// Asks the model until there is a plan or a reason why there is none. `again` gets what was wrong with an answer.
    pub(crate) fn draft(
        &self,
        talk: &dyn Progress,
        again: impl Fn(&str),
    ) -> Outcome<Result<Drafted, NoDraft>> {
        let chosen = &self.chosen;
        let mut session = self.session(chosen.prompt_policy())?;
        let model = chosen.recorded(&self.journal);
        let prices = |ask: &waypost_planner::ModelRequest| chosen.price(ask);
        Ok(generate(
            &mut session,
            &*model,
            &self.journal,
            (chosen.limits(self.order.extent.limits), &prices),
            (&self.planning.halt, &self.planning.stop),
            talk,
            |ask, problems| again(&format!("{}: {}", ask.slot, problems.join("; "))),
        ))
    }

    fn session(&self, manner: PromptPolicy) -> Outcome<Generate> {
        let PlanningGoal::Plan { goal, context, map, constraints, tasks_max, prose, .. } = &self.order.want
        else {
            return Err(Failure::failed("this request is not for a plan", ""));
        };
        let given = |text: &waypost_planner::planning::Text| Given {
            name: text.name.clone(),
            text: text.text.clone(),
        };
        let wanted = PlanBrief {
            goal: goal.clone(),
            context: context.iter().map(given).collect(),
            map: map.clone(),
            constraints: constraints.clone(),
            tasks_max: *tasks_max,
            text_plans: if *prose { TextPlans::Taken } else { TextPlans::Refused },
        };
        Generate::new(manner, wanted, SLOT)
            .map_err(|unwanted| Failure::usage(unwanted.to_string(), "rephrase it"))
    }

    /// Explains why there is no plan, and how to continue.
    fn no_plan(&mut self, no: NoDraft) -> Outcome<Failure> {
        let again = "the same command, or `waypost plan continue`, resumes from here";
        let spent = report::spent_words(&self.journal.totals().all);
        Ok(match no {
            NoDraft::GaveUp(gave_up) => {
                self.order.close();
                self.planning.keep(&self.order)?;
                let path = keep_answers(&self.journal, &gave_up)?;
                let count = text::count(gave_up.answers.len(), "answer");
                let message = format!("the model returned no usable plan: {count}, {spent}");
                let hint = match gave_up.broke_off {
                    true => {
                        "raise `max_tokens` of the model in the configuration, request fewer tasks (--max-tasks), or use another model (--model)"
                    }
                    false => "rephrase the goal, allow more tasks, or use another model (--model)",
                };
                let mut failure = Failure::new(Exit::Invalid, message, hint)
                    .with_fact("problems", gave_up.problems.clone())
                    .with_fact("returned", gave_up.answers.len().saturating_sub(1))
                    .with_fact("answers", path.clone());
                failure.code = "no_plan".to_owned();
                failure.details = gave_up.problems.iter().map(|problem| format!("  {problem}")).collect();
                failure.details.push(format!("  its replies are kept in {path}"));
                failure
            }
            NoDraft::Bound(broken) => {
                let hint = match &broken {
                    Broken::Over { bound, .. } => {
                        format!("raise {}; {again}", report::option_of(*bound))
                    }
                    Broken::Unpriced {} => {
                        format!(
                            "{}, or leave out --cost and cost_budget; then the same command resumes from here",
                            report::PRICES
                        )
                    }
                };
                let failure = Failure::failed(broken.to_string(), hint);
                Failure { code: "bound".to_owned(), ..failure }.with_fact("bound", broken.bound().name())
            }
            NoDraft::Trouble(error) => {
                let hint = format!("{}; {again}", error.hint());
                Failure { code: error.code().to_owned(), ..Failure::failed(error.to_string(), hint) }
            }
            NoDraft::Halted => Failure::new(Exit::Interrupted, format!("interrupted: {spent}"), again),
        })
    }

    /// Shows a plan without saving it.
    fn show_only(mut self, context: &mut Context, drafted: &Drafted) -> Outcome {
        self.order.stand = RequestProgress::Shown;
        self.planning.keep(&self.order)?;
        let plans = Arc::new(PlanStore::new(Arc::new(MemoryStore::new())));
        let by = Caller::new(author(context, &drafted.from)?);
        let draft = drafted.planned.draft.clone();
        let options = CreateOptions { approval: ApprovalRule::ByWork, ..CreateOptions::default() };
        let made = context.service(&plans).create(&by, draft, options)?;
        let mut fields = self.fields(drafted);
        fields.insert("saved".to_owned(), false.into());
        let found = context.found(plans, made.plan);
        found.read(|plan| show(plan, context, fields, Head::Without))??;
        context.out.say("nothing was saved: the same command without --dry-run saves this plan");
        Ok(())
    }

    /// Saves the plan, breaks it down if that was asked for, and shows it.
    fn save(mut self, context: &mut Context, drafted: Drafted, edit: bool) -> Outcome {
        self.store(context, &drafted)?;
        let mut fields = self.fields(&drafted);
        fields.insert("saved".to_owned(), true.into());
        let decomposes = matches!(self.order.want, PlanningGoal::Plan { decompose: true, .. });
        let id = self.order.plan.clone();
        if decomposes {
            self.order.want = PlanningGoal::Decompose { task: None };
            self.planning.keep(&self.order)?;
            let begun = (self.order, self.journal);
            let thought = decompose::think(context, &self.planning, begun, &self.chosen, Steps::All)?;
            fields.extend(thought.fields);
            let found = self.planning.found(id);
            found.read(|plan| show(plan, context, fields, Head::With))??;
            context.out.say(format!("saved as plan {}", found.id));
            thought.outcome?;
            return open_editor(context, &found, edit);
        }
        self.order.close();
        self.planning.keep(&self.order)?;
        let found = self.planning.found(id);
        found.read(|plan| show(plan, context, fields, Head::With))??;
        context.out.say(format!("saved as plan {}", found.id));
        open_editor(context, &found, edit)
    }

    /// Writes the plan under the request's id, and charges it. A repeated call does not create a second plan.
    pub(crate) fn store(&self, context: &Context, drafted: &Drafted) -> Outcome {
        let by = author(context, &drafted.from)?;
        let mut draft = drafted.planned.draft.clone();
        draft.spec.token_budget = self.order.extent.limits.tokens_max;
        if by.kind == waypost_core::ActorKind::Agent && context.actor()? == by {
            draft.spec.owner.clone_from(&by.name);
        }
        self.create(draft, &by)?;
        charge(&self.planning.service, &self.order.plan, &by, &self.journal, self.order.calls_before)?;
        Ok(())
    }

    fn create(&self, draft: Draft, by: &waypost_core::Actor) -> Outcome {
        let options = CreateOptions { id: Some(self.order.plan.clone()), ..CreateOptions::default() };
        match self.planning.service.create(&Caller::new(by.clone()), draft, options) {
            Ok(_) => Ok(()),
            // An earlier process died right after it had created the plan.
            Err(ServiceError::Refused(waypost_core::Refusal::AlreadyExists {}) | ServiceError::IdUsed(_))
                if self.planning.plans.with_plan(&self.order.plan, |_| ()).is_ok() =>
            {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn fields(&self, drafted: &Drafted) -> Map<String, Value> {
        let Drafted { planned, asked, recalled, from } = drafted;
        let mut fields = report::spent_json(&self.journal.totals().all);
        fields.insert("asked".to_owned(), (*asked).into());
        fields.insert("recalled".to_owned(), (*recalled).into());
        fields.insert("returned".to_owned(), planned.returned.into());
        fields.insert("repairs".to_owned(), report::repairs_json(&planned.repairs));
        fields.insert("model".to_owned(), from.clone().into());
        fields.insert("journal".to_owned(), self.journal.path().display().to_string().into());
        fields
    }
}

/// Whether to show the plan's id and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    With,
    Without,
}

fn show(plan: &Plan, context: &mut Context, fields: Map<String, Value>, head: Head) -> Outcome {
    if context.out.json {
        let mut whole = match view::json::whole(plan) {
            Value::Object(whole) => whole,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Map::new()
            }
        };
        if head == Head::Without {
            whole.remove("id");
            whole.remove("version");
        }
        whole.insert("thinking".to_owned(), Value::Object(fields));
        return context.out.value(&whole);
    }
    let config = Config::default();
    let shown = Shown::of(plan, &config);
    match head {
        Head::With => view::plan::print_head(&shown, false, &mut context.out),
        Head::Without => {
            let title = context.out.paint(&plan.spec().title, Look::Bold);
            context.out.line(title);
        }
    }
    report::print_tasks(&shown, &mut context.out);
    for line in report::lines(&fields) {
        context.out.say(line);
    }
    Ok(())
}

/// Opens the plan in the editor, if there is a terminal.
fn open_editor(context: &mut Context, found: &PlanHandle, wanted: bool) -> Outcome {
    if !wanted || context.out.json || !prompt::can_ask() {
        return Ok(());
    }
    // The output so far must be visible before the editor takes over the screen.
    context.out.flush()?;
    match tui::fits() {
        Ok(()) => tui::open(context, &found.id, true),
        Err(_) => edit::edit(context, found),
    }
}

/// Writes the model's replies to a file for people to read.
fn keep_answers(journal: &Journal, gave_up: &GenerationFailed) -> Outcome<String> {
    let path = journal.path().with_extension("answers.txt");
    let count = gave_up.answers.len();
    let mut text = String::new();
    for (number, answer) in gave_up.answers.iter().enumerate() {
        text.push_str(&format!("--- answer {} of {count} ---\n{answer}\n", number + 1));
    }
    for problem in &gave_up.problems {
        text.push_str(&format!("--- wrong with the last: {problem}\n"));
    }
    waypost_cli::files::write(&path, &text, true)?;
    Ok(path.display().to_string())
}
