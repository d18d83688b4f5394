//! What every command needs: who asks, which store, where to say it. Opens a store only when it is asked to.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use waypost_config::Config;
use waypost_core::{Actor, Command, Draft, Phase, Place as InPlan, Plan, PlanId, Problem, Refusal, TaskId};
use waypost_service::admission as admit;
use waypost_store::{Committed, Durability, MemoryStore, Plans, WriteRequest, open};

use crate::cli::{Global, Guard};
use crate::error::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::setup::{self, Folders};
use crate::view::text;
use crate::workspace::{self, Place};

/// Ids of ready tasks that an answer names.
const READY_NAMED_MAX: usize = 5;
/// Things that the configuration does not have, as far as a note names them.
const NOT_CONFIGURED_NAMED_MAX: usize = 3;

/// What every command needs.
pub(crate) struct Context {
    /// Where to say it.
    pub(crate) out: Output,
    global: Global,
}

/// A plan that was found.
pub(crate) struct Found {
    /// All plans of its store.
    pub(crate) plans: Plans,
    /// Its id.
    pub(crate) id: PlanId,
}

impl Context {
    /// For the options that every command has.
    pub(crate) fn new(global: Global) -> Self {
        Self { out: Output::new(global.json, global.color), global }
    }

    /// The same for a server, which outlives the command that started it.
    pub(crate) fn for_server(&self) -> Self {
        Self::new(self.global.clone())
    }

    /// The same for the user's own store.
    pub(crate) fn for_user(&self) -> Self {
        Self::new(Global { store: None, global: true, ..self.global.clone() })
    }

    /// Whether the command line, or a variable, says which store is meant.
    pub(crate) fn says_store(&self) -> bool {
        self.global.global || self.global.store.as_ref().is_some_and(|store| !store.is_empty())
    }

    /// Goes to the folder that was named.
    pub(crate) fn enter(&self) -> Outcome {
        let Some(folder) = &self.global.directory else { return Ok(()) };
        std::env::set_current_dir(folder).map_err(|error| Failure::file(folder, &error))
    }

    /// Who asks.
    pub(crate) fn actor(&self) -> Outcome<Actor> {
        crate::actor::find(self.global.actor.as_deref(), |name| std::env::var(name).ok())
    }

    /// The words of the command line that name another store than the workspace's own; what a variable says is not among them.
    pub(crate) fn said_store(&self) -> Vec<String> {
        let from_variable = std::env::var("WAYPOST_STORE").ok();
        match &self.global.store {
            Some(store) if !store.is_empty() && *store != from_variable.unwrap_or_default() => {
                vec!["--store".to_owned(), store.clone()]
            }
            Some(_) | None if self.global.global => vec!["--global".to_owned()],
            Some(_) | None => Vec::new(),
        }
    }

    /// The store that is meant.
    pub(crate) fn place(&self) -> Outcome<Place> {
        let from = std::env::current_dir().map_err(|error| {
            Failure::failed(
                format!("the current folder cannot be used: {error}"),
                "go to another one, or say -C",
            )
        })?;
        self.place_of(&from)
    }

    /// The store that is meant by somebody who works in this folder.
    pub(crate) fn place_of(&self, from: &Path) -> Outcome<Place> {
        let said = self.global.store.as_deref().is_some_and(|store| !store.is_empty());
        let place = workspace::find(self.global.store.as_deref(), self.global.global, from)?;
        if said || self.global.global { Ok(place) } else { Ok(place.with_todo_store()) }
    }

    /// Whether the command line says which store or folder is meant.
    pub(crate) fn says_where(&self) -> bool {
        let Global { store, global, directory, .. } = &self.global;
        store.as_ref().is_some_and(|store| !store.is_empty()) || *global || directory.is_some()
    }

    /// The plans that are there. Makes no store: one that does not exist has no plans.
    pub(crate) fn plans(&self) -> Outcome<Plans> {
        let place = self.place()?;
        if place.is_absent() {
            return Ok(Plans::new(Arc::new(MemoryStore::new())));
        }
        Ok(Plans::for_one_command(open(&place.location, Durability::default())?))
    }

    /// The plans, in a store that is made when it does not exist.
    pub(crate) fn plans_to_add_to(&self) -> Outcome<Plans> {
        let place = self.place()?;
        place.prepare()?;
        Ok(Plans::for_one_command(open(&place.location, Durability::default())?))
    }

    /// The plan that an id or its beginning names.
    pub(crate) fn find(&self, id: &str) -> Outcome<Found> {
        let plans = self.plans()?;
        let id = plans.resolve(id)?;
        Ok(Found { plans, id })
    }

    /// What of a draft can never be run as it is, by the configuration; what cannot be run here yet is noted.
    pub(crate) fn misfits(&mut self, draft: &Draft) -> Outcome<Vec<Problem>> {
        if !admit::names_configured(draft) {
            return Ok(Vec::new());
        }
        let problems = admit::problems(&self.config()?, draft);
        Ok(self.note_not_configured(problems))
    }

    /// Looks whether the configuration lets these be written: every write of tasks comes past here.
    pub(crate) fn admit(&mut self, commands: &[Command]) -> Outcome {
        if !commands.iter().any(admit::asks_configuration) {
            return Ok(());
        }
        let config = self.config()?;
        let problems =
            commands.iter().flat_map(|command| admit::command_problems(&config, command)).collect();
        let misfits = self.note_not_configured(problems);
        if misfits.is_empty() {
            return Ok(());
        }
        let misfits: Vec<(Option<String>, Problem)> = misfits.into_iter().map(|one| (None, one)).collect();
        Err(Failure::invalid("what would be written", &misfits))
    }

    /// Whether a new plan needs a person's approval before machines run it; nothing where that is up to what it asks for.
    pub(crate) fn approval_required(&self) -> Outcome<Option<bool>> {
        Ok(self.config()?.approval.required())
    }

    fn config(&self) -> Outcome<Config> {
        setup::config(&Folders::find(self)?, None)
    }

    /// Notes what only keeps a plan from running here, and returns the rest.
    fn note_not_configured(&mut self, problems: Vec<Problem>) -> Vec<Problem> {
        let (misfits, unknown): (Vec<_>, Vec<_>) = problems.into_iter().partition(admit::forbids_writing);
        let mut named: Vec<(String, Vec<&InPlan>)> = Vec::new();
        for problem in &unknown {
            let what = problem.wrong.to_string();
            match named.iter_mut().find(|(known, _)| *known == what) {
                Some((_, places)) if places.contains(&&problem.place) => {}
                Some((_, places)) => places.push(&problem.place),
                None => named.push((what, vec![&problem.place])),
            }
        }
        let said: Vec<String> = named
            .iter()
            .take(NOT_CONFIGURED_NAMED_MAX)
            .map(|(what, places)| match places.as_slice() {
                [place] => format!("{what} ({place})"),
                places => format!("{what} ({})", text::count(places.len(), "task")),
            })
            .collect();
        if !said.is_empty() {
            let rest = named.len() - said.len();
            let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
            self.out.note(format!("by the configuration here this cannot run: {}{more}", said.join("; ")));
        }
        misfits
    }

    /// Writes one version.
    pub(crate) fn write(
        &mut self,
        found: &Found,
        commands: Vec<Command>,
        guard: &Guard,
    ) -> Outcome<Committed> {
        self.write_leased(found, commands, guard, None)
    }

    /// Says what tasks now wait for elsewhere that is not there so far.
    pub(crate) fn warn(&mut self, committed: &Committed) {
        for warning in committed.warnings() {
            self.out.note(text::one_line(&warning));
        }
    }

    /// Writes one version; what it starts is believed to be worked on for so long.
    pub(crate) fn write_leased(
        &mut self,
        found: &Found,
        commands: Vec<Command>,
        guard: &Guard,
        lease_seconds: Option<u32>,
    ) -> Outcome<Committed> {
        self.admit(&commands)?;
        let committed = found.plans.write(WriteRequest {
            plan: found.id.clone(),
            by: self.actor()?,
            commands,
            known_version: guard.expect_version,
            lease_seconds,
        })?;
        self.warn(&committed);
        Ok(committed)
    }

    /// Writes one version and answers in a few words.
    pub(crate) fn write_and_answer(
        &mut self,
        found: &Found,
        commands: Vec<Command>,
        guard: &Guard,
        said: &str,
    ) -> Outcome {
        let committed = self.write(found, commands, guard)?;
        self.answer(found, &committed, said, None, Map::new())
    }

    /// Answers a write: what was done, the version, what is ready next. Never what was sent in.
    pub(crate) fn answer(
        &mut self,
        found: &Found,
        committed: &Committed,
        said: &str,
        task: Option<&TaskId>,
        more: Map<String, Value>,
    ) -> Outcome {
        let (answer, ready) = found.plans.look(&found.id, |plan| {
            let named = if may_run(plan) { READY_NAMED_MAX } else { 0 };
            let now = text::now();
            let startable = plan.on_offer().filter(|task| task.state.not_before.is_none_or(|at| at <= now));
            let ready: Vec<String> = startable.take(named).map(|task| task.spec.id.to_string()).collect();
            let mut answer = answer_json(plan, committed, &ready);
            if let Some(task) = task {
                answer.insert("task".to_owned(), task.as_str().into());
                answer.insert("standing".to_owned(), json!(plan.standing(task.as_str())));
            }
            let total = plan.on_offer_total();
            (answer, ready_words(&ready, total))
        })?;
        if self.out.json {
            let mut answer = answer;
            answer.extend(more);
            return self.out.value(&answer);
        }
        let said = if committed.changed { said.to_owned() } else { format!("{said}: nothing to change") };
        self.out.line(format!("{said} (plan {}, version {})", committed.plan, committed.version));
        if !ready.is_empty() {
            self.out.line(ready);
        }
        Ok(())
    }
}

/// Whether somebody may start a task of the plan now.
fn may_run(plan: &Plan) -> bool {
    let state = plan.state();
    match state.phase {
        Phase::Active => !state.archived,
        Phase::Draft => !(state.archived || state.approval_required && state.approval.is_none()),
        Phase::AwaitingApproval | Phase::Paused | Phase::Completed | Phase::Failed | Phase::Cancelled => {
            false
        }
    }
}

fn answer_json(plan: &Plan, committed: &Committed, ready: &[String]) -> Map<String, Value> {
    let mut answer = Map::new();
    answer.insert("id".to_owned(), committed.plan.as_str().into());
    answer.insert("version".to_owned(), committed.version.into());
    answer.insert("changed".to_owned(), committed.changed.into());
    answer.insert("phase".to_owned(), plan.state().phase.word().into());
    answer.insert("ready".to_owned(), ready.into());
    answer.insert("ready_total".to_owned(), plan.on_offer_total().into());
    answer
}

fn ready_words(ready: &[String], total: usize) -> String {
    if ready.is_empty() {
        return String::new();
    }
    let more = if total > ready.len() { format!(" (+{})", total - ready.len()) } else { String::new() };
    format!("ready next: {}{more}", ready.join(", "))
}

impl Found {
    /// Looks at the plan as it is now.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Plan) -> R) -> Outcome<R> {
        Ok(self.plans.look(&self.id, look)?)
    }

    /// The task that an id or its beginning names.
    pub(crate) fn task(&self, task: &str) -> Outcome<TaskId> {
        self.look(|plan| task_of(plan, task))?
    }
}

/// The task that an id or its beginning names.
pub(crate) fn task_of(plan: &Plan, task: &str) -> Outcome<TaskId> {
    let candidates = match plan.resolve(task) {
        Ok(id) => return Ok(id),
        Err(candidates) => candidates,
    };
    if candidates.len() > 1 {
        let names: Vec<&str> = candidates.iter().map(TaskId::as_str).collect();
        let message = format!("{task} could be any of the tasks {}", names.join(", "));
        let failure = Failure::new(Exit::NotFound, message, "write more of the id");
        return Err(Failure { code: "ambiguous".to_owned(), ..failure }.with_fact("candidates", names));
    }
    let id =
        TaskId::new(task).map_err(|error| Failure::usage(format!("{task:?}: {error}"), "name a task"))?;
    // The plan itself says which name is nearest: no command is decided on a task that is not there.
    let refusal = plan.decide(&Actor::person("nobody"), text::now(), &Command::RetryTask { task: id });
    Err(match refusal {
        Err(refusal @ Refusal::NoSuchTask { .. }) => refusal.into(),
        Ok(_) | Err(_) => Refusal::NoSuchTask { task: task.to_owned(), nearest: None }.into(),
    })
}
