//! Turns a file or a plan name into an active plan in the store: checks the configuration, finds an existing plan, asks
//! for approval. Runs nothing.

use std::path::Path;
use std::sync::Arc;

use waypost_account::Terminal;
use waypost_config::Config;
use waypost_core::{ActorKind, Difference, Draft, Plan, PlanChanges, PlanId, Problem, ProblemKind};
use waypost_mcp::is_written_by_tool;
use waypost_service::submit::{RunChanges, RunnableDraft, Start, SubmitError, Submitted as Entry};
use waypost_service::{Caller, EditOp, Guard, PersonAct, PersonVerb, Seen, ServiceError};
use waypost_store::PlanStore;

use waypost_cli::approval_prompt::{self, Answer};
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::plan_input;
use waypost_cli::view::{differences as difference_lines, text};
use waypost_text::shell_word;

/// What a person is asked before a plan runs.
const QUESTION: &str = "Approve and run it?";
/// Maximum number of differences named in an error.
const DIFFERENCES_NAMED_MAX: usize = 8;

/// A request to run or submit a plan.
pub(crate) struct RunRequest<'a> {
    /// The command line argument: a file or a plan.
    pub(crate) what: &'a str,
    /// The queue to place the plan on.
    pub(crate) queue: Option<&'a str>,
    /// What the calling person says about approval.
    pub(crate) answer: Answer<'a>,
    /// The executor for tasks without work.
    pub(crate) executor: Option<&'a str>,
    /// Whether a stored plan is changed although nobody can be asked: it then waits for approval.
    pub(crate) may_wait: bool,
}

/// A plan that was added to the store or was already there.
pub(crate) struct SubmittedPlan {
    pub(crate) plans: Arc<PlanStore>,
    pub(crate) id: PlanId,
    /// Whether it is new.
    pub(crate) made: bool,
    /// Whether the caller named the file that it is stored from.
    pub(crate) named: bool,
}

/// A run that a person agreed to before the plan was changed for it.
pub(crate) struct AgreedRun {
    by: Caller,
    /// The digest of what was shown.
    digest: String,
}

/// The state of a plan's approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Approval {
    /// The plan is active.
    Given,
    /// A person has to approve it later.
    Awaited,
}

/// Checks that a draft can run here. Everything that the configuration does not allow is an error.
pub(crate) fn runnable(config: &Config, draft: Draft, executor: Option<&str>) -> Outcome<RunnableDraft> {
    RunnableDraft::new(config, draft, executor).map_err(|problems| not_allowed(config, &problems))
}

/// Like [`runnable`]. What is missing may be defined in a configuration that nobody has trusted.
pub(crate) fn runnable_by(
    context: &mut Context,
    config: &Config,
    draft: Draft,
    executor: Option<&str>,
) -> Outcome<RunnableDraft> {
    let runnable = match (runnable(config, draft, executor), &config.not_trusted) {
        (Err(_), Some(not_trusted)) => {
            context.note_ignored(config);
            return Err(context.untrusted(not_trusted)?);
        }
        (Err(failure), None) => {
            // What is missing may stand in a file that is not used.
            context.note_ignored(config);
            return Err(failure);
        }
        (Ok(runnable), _) => runnable,
    };
    context.note_untrusted(config);
    Ok(runnable)
}

/// Like [`runnable_by`], for a plan that an agent leaves for approval. What nobody here can run is stored with a note, and
/// the approver sees it.
pub(crate) fn storable_by(
    context: &mut Context,
    config: &Config,
    draft: Draft,
    executor: Option<&str>,
) -> Outcome<RunnableDraft> {
    if context.actor()?.kind != ActorKind::Agent || config.not_trusted.is_some() {
        return runnable_by(context, config, draft, executor);
    }
    let (draft, problems) = RunnableDraft::to_store(config, draft, executor)
        .map_err(|problems| not_allowed(config, &problems))?;
    for problem in problems {
        context.out.note_fact(format!("not runnable with this configuration: {problem}"));
    }
    Ok(draft)
}

impl RunRequest<'_> {
    /// Returns the stored plan: the named one, the one that the file was submitted as before, or a new one.
    pub(crate) fn enter(
        &self,
        context: &Context,
        config: &Arc<Config>,
        draft: RunnableDraft,
    ) -> Outcome<SubmittedPlan> {
        if !plan_input::is_file(self.what) {
            let found = context.find(self.what)?;
            return Ok(SubmittedPlan { plans: found.plans, id: found.id, made: false, named: false });
        }
        let plans = context.plans_to_add_to()?;
        let service = context.service_with(&plans, config)?;
        let entered = service.submit(&context.caller()?, &draft);
        let Entry { plan: id, made } = entered.map_err(|error| not_entered(self.what, error))?;
        // What an agent wrote through a tool does not become the caller's own plan by its name.
        let is_tools = is_written_by_tool(&context.folders()?.own, Path::new(self.what));
        let named = !is_tools && (made || service.is_as_written(&id, draft.draft())?);
        Ok(SubmittedPlan { plans, id, made, named })
    }

    /// Returns the stored plan that the run of a file would continue. Writes nothing.
    pub(crate) fn stored(
        &self,
        context: &Context,
        config: &Arc<Config>,
        draft: &RunnableDraft,
    ) -> Outcome<Option<Draft>> {
        if !plan_input::is_file(self.what) {
            return Ok(None);
        }
        let plans = context.plans()?;
        let found = context.service_with(&plans, config)?.find_submitted(draft);
        let found = found.map_err(|error| not_entered(self.what, error))?;
        Ok(found.map(|id| plans.with_plan(&id, Plan::to_draft)).transpose()?)
    }

    /// Places the plan on the queue, and assigns the executor, if there is one, to tasks without work. A person who has to approve
    /// the result is asked first: whoever says no has changed nothing. Returns what the person agreed to.
    pub(crate) fn change(
        &self,
        context: &Context,
        config: &Arc<Config>,
        SubmittedPlan { plans, id, .. }: &SubmittedPlan,
    ) -> Outcome<Option<AgreedRun>> {
        let (service, caller) = (context.service_with(plans, config)?, context.caller()?);
        let queue = self.queue.filter(|_| !plan_input::is_file(self.what));
        let changes = RunChanges { queue, executor: self.executor };
        let agreed = match service.preview_run(&caller, id, changes)? {
            Some(preview) if self.can_ask(context)? => {
                let by = approval_prompt::confirm(context, &service, &preview, self.answer, QUESTION)?;
                Some(AgreedRun { by, digest: preview.digest })
            }
            Some(_) if self.changes_nothing_unasked(context)? => return Err(self.change_needs_terminal(id)),
            Some(_) | None => None,
        };
        if let Some(queue) = queue {
            let changes = PlanChanges { queue: Some(queue.to_owned()), ..PlanChanges::default() };
            let ops = vec![EditOp::RevisePlan(Box::new(changes))];
            service.edit(&caller, id, ops, Guard::NONE)?;
        }
        if let Some(executor) = self.executor {
            service.assign(&caller, id, executor).map_err(|error| not_entered(self.what, error))?;
        }
        Ok(agreed)
    }

    /// Activates the plan, with a person's approval if it is needed and can be given now.
    pub(crate) fn activate(
        &self,
        context: &Context,
        config: &Arc<Config>,
        SubmittedPlan { plans, id, named, .. }: &SubmittedPlan,
        agreed: Option<AgreedRun>,
    ) -> Outcome<Approval> {
        let service = context.service_with(plans, config)?;
        if let Some(AgreedRun { by, digest }) = agreed {
            // If anybody else has changed the plan meanwhile, it has another digest, and nothing is approved.
            let version = service.read(id, Plan::version)?;
            service.approve(&by, id, Seen { version, digest }, "", Guard::NONE)?;
        }
        if service.start(&context.caller()?, id, *named, Guard::NONE)? == Start::Runs {
            return Ok(Approval::Given);
        }
        if !self.can_ask(context)? {
            return Ok(Approval::Awaited);
        }
        let preview = service.preview(id)?;
        let by = approval_prompt::confirm(context, &service, &preview, self.answer, QUESTION)?;
        // Approves what was shown: if the plan has changed since, nothing is approved.
        service.approve(&by, id, preview.seen(), "", Guard::NONE)?;
        // The plan may have been active before, with an approval of something else.
        match service.start(&by, id, false, Guard::NONE)? {
            Start::Runs => Ok(Approval::Given),
            Start::NeedsApproval { .. } => Ok(Approval::Awaited),
        }
    }

    /// The refusal of changes to a stored plan that would need approval.
    fn change_needs_terminal(&self, id: &PlanId) -> Failure {
        let message = format!(
            "plan {id} would run with another queue or executor, which needs approval, and there is no terminal to ask for it"
        );
        let mut hint = "nothing was changed; run the same command in a terminal".to_owned();
        if let Some(executor) = self.executor {
            let executor = shell_word(executor);
            hint.push_str(&format!(
                "; without one, give its tasks the executor (`waypost task revise {id} TASK --executor {executor}`), then \
                 approve the plan with `waypost approve {id} --sign` or in the dashboard"
            ));
        }
        Failure { code: "needs_approval".to_owned(), ..Failure::failed(message, hint) }
    }

    /// Whether a person who cannot be asked changes nothing. What an agent changes waits for approval.
    fn changes_nothing_unasked(&self, context: &Context) -> Outcome<bool> {
        let is_person = context.actor()?.kind == ActorKind::Person;
        Ok(is_person && !self.may_wait && !plan_input::is_file(self.what))
    }

    /// Whether the caller is a person who can be asked, or who has answered already.
    pub(super) fn can_ask(&self, context: &Context) -> Outcome<bool> {
        let is_person = context.actor()?.kind == ActorKind::Person;
        Ok(is_person && Terminal::open().is_ok() && (self.answer.yes || !context.out.json))
    }
}

/// Explains why an unapproved plan does not run.
pub(super) fn not_approved(
    context: &Context,
    what: &str,
    plans: &PlanStore,
    id: &PlanId,
) -> Outcome<Failure> {
    let by = context.actor()?;
    if by.kind != ActorKind::Person {
        let act = PersonAct::on_plan(PersonVerb::Approve, id);
        let failure: Failure = ServiceError::NeedsPerson { what: "approve a plan", by, act }.into();
        let message = format!("plan {id} needs approval before it runs: {}", failure.message);
        return Ok(Failure { message, ..failure });
    }
    let sign = format!("run `waypost approve {id}` in a terminal, or `waypost approve {id} --sign`");
    let (from, hint) = if plan_input::is_file(what) {
        ("", sign)
    } else {
        let is_own =
            plans.store().query(|read| read.head(id))?.is_some_and(|head| head.created_by == Some(by));
        let file = if is_own { "; or run the file that you imported: `waypost run FILE`" } else { "" };
        (" from the store, where agents can change it", format!("{sign}{file}"))
    };
    let message =
        format!("plan {id} needs approval before it runs{from}, and there is no terminal to ask for it");
    Ok(Failure { code: "needs_approval".to_owned(), ..Failure::failed(message, hint) })
}

/// Explains why a plan could not be submitted.
fn not_entered(what: &str, error: SubmitError) -> Failure {
    match error {
        SubmitError::OtherContent { plan, differences } => other_content(what, &plan, &differences),
        SubmitError::NotForMachines { ref plan, .. } => {
            let hint = format!("a person runs `waypost run {plan}` in a terminal, which shows it and asks");
            Failure { code: "approval_needed".to_owned(), ..Failure::failed(error.to_string(), hint) }
        }
        SubmitError::Service(error) => error.into(),
    }
}

fn other_content(what: &str, id: &PlanId, found: &[Difference]) -> Failure {
    let message = format!("plan {id} is already in the store, and {what} differs from it");
    let hint = format!(
        "write the file into the plan with `waypost update {id} --from-file {}`, or run the plan with `waypost run {id}`",
        shell_word(what)
    );
    let mut failure = Failure { code: "other_content".to_owned(), ..Failure::failed(message, hint) };
    let lines = difference_lines::short_lines(found);
    failure.details =
        lines.iter().take(DIFFERENCES_NAMED_MAX).map(|line| format!("  {}", line.text)).collect();
    if lines.len() > DIFFERENCES_NAMED_MAX {
        failure.details.push(format!("  … and {} more", lines.len() - DIFFERENCES_NAMED_MAX));
    }
    failure.with_fact("plan", id.as_str())
}

fn not_allowed(config: &Config, problems: &[Problem]) -> Failure {
    let listed: Vec<(Option<String>, Problem)> =
        problems.iter().map(|problem| (None, problem.clone())).collect();
    let mut failure = Failure::invalid("the plan", &listed);
    let what = match problems {
        [one] => one.to_string(),
        many => text::count(many.len(), "problem"),
    };
    failure.message = format!("the configuration does not allow this plan; nothing ran: {what}");
    if problems.iter().any(|problem| matches!(problem.wrong, ProblemKind::UnknownExecutor { .. })) {
        let names: Vec<&str> = config.executors.keys().map(String::as_str).collect();
        failure.hint = format!(
            "the configuration has the executors {}; docs/configuration.md describes how to add one",
            names.join(", ")
        );
    }
    failure
}
