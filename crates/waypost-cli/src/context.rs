//! The context of every command: the caller, the store, the output. Opens a store only on demand.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use serde_json::{Map, Value, json};
use waypost_account::Terminal;
use waypost_config::{Config, NotTrusted};
use waypost_core::{
    Actor, ActorKind, Draft, Phase, Plan, PlanId, Problem, ProblemLocation as InPlan, Task, TaskId,
};
use waypost_service::admission as admit;
use waypost_service::{
    Authenticator, Caller, FindBranch, Presence, ProgramOf, Service, ServiceError, SharingError, WriteReply,
    awaits_approval, may_start_tasks, resolve_task,
};
use waypost_store::{Durability, MemoryStore, PlanStore, Query, Sort, Store, open, open_for_one_command};
use waypost_text::{reveal, sanitize_line};

use crate::actor::{account, evidence};
use crate::damage;
use crate::error::{Failure, Outcome};
use crate::load_config::{self, Folders};
use crate::options::{Global, Guard};
use crate::output::Output;
use crate::repository;
use crate::runner::typeable;
use crate::shared_branch::{self, FoundBranch};
use crate::store_copy::note_copy;
use crate::store_location::{self, StoreLocation};
use crate::view::text;

/// Maximum number of ready tasks named after a write.
const READY_NAMED_MAX: usize = 5;
/// What is said of a plan of which nothing starts before a person approves it.
const NEEDS_APPROVAL: &str = "nothing starts before a person approves the plan";
/// Maximum number of names in a note about things missing from the configuration.
const NOT_CONFIGURED_NAMED_MAX: usize = 3;

/// The command line as a whole, for the commands that need it.
#[derive(Clone, Copy)]
pub struct Program {
    /// Builds its clap definition.
    pub definition: fn() -> clap::Command,
    /// Runs a line with this store as if it had been typed in the current folder, and prints what it printed.
    pub run_line: fn(&str, &str) -> Outcome,
}

pub struct Context {
    pub out: Output,
    pub program: Program,
    global: Global,
    /// Shared with the copies that services load the configuration with.
    said: Arc<NotesShown>,
}

/// What the caller knows already.
#[derive(Default)]
struct NotesShown {
    /// That the workspace's configuration is not used.
    untrusted: AtomicBool,
    /// Which settings are not used.
    ignored: AtomicBool,
    /// That what another user could have put above the workspace is not used.
    passed_over: AtomicBool,
}

/// A resolved plan and its store.
pub struct PlanHandle {
    /// All plans of its store, for reading.
    pub plans: Arc<PlanStore>,
    /// The service for operations on them.
    pub service: Service,
    pub id: PlanId,
}

#[derive(Debug, Args)]
pub struct PlanWrite {
    /// Plan id, or an unambiguous prefix
    plan: String,
    #[command(flatten)]
    pub guard: Guard,
}

impl PlanWrite {
    /// Returns the plan, the caller, and the expected version.
    pub fn find(&self, context: &Context) -> Outcome<(PlanHandle, Caller, waypost_service::Guard)> {
        Ok((context.find(&self.plan)?, context.caller()?, (&self.guard).into()))
    }
}

impl Context {
    pub fn new(global: Global, program: Program) -> Self {
        Self { out: Output::new(global.json, global.color), program, global, said: Arc::default() }
    }

    /// A copy for a server, which outlives the command that started it.
    pub fn for_server(&self) -> Self {
        Self::new(self.global.clone(), self.program)
    }

    /// A copy for a thread beside a command, which says nothing of its own.
    pub fn for_background(&self) -> Self {
        let copy = self.for_server();
        copy.said.untrusted.store(true, Ordering::Relaxed);
        copy.said.ignored.store(true, Ordering::Relaxed);
        copy.said.passed_over.store(true, Ordering::Relaxed);
        copy
    }

    /// A copy for this store.
    pub fn with_store(&self, store: &str) -> Self {
        let global = Global { store: Some(store.to_owned()), global: false, ..self.global.clone() };
        Self::new(global, self.program)
    }

    /// A copy for the user's own store.
    pub fn for_user(&self) -> Self {
        Self::new(Global { store: None, global: true, ..self.global.clone() }, self.program)
    }

    /// Whether the command line or `WAYPOST_STORE` names the store.
    pub fn says_store(&self) -> bool {
        self.global.global || self.global.store.as_ref().is_some_and(|store| !store.is_empty())
    }

    /// Changes to the folder given with `-C`.
    pub fn enter(&self) -> Outcome {
        let Some(folder) = &self.global.directory else { return Ok(()) };
        std::env::set_current_dir(folder).map_err(|error| Failure::file(folder, &error))
    }

    /// The calling actor.
    pub fn actor(&self) -> Outcome<Actor> {
        crate::actor::find(self.global.actor.as_deref())
    }

    /// The calling actor, if `--as` names it.
    pub fn actor_option(&self) -> Outcome<Option<Actor>> {
        self.global.actor.is_some().then(|| self.actor()).transpose()
    }

    /// Whether the location of the store has a password.
    pub fn has_password(&self) -> bool {
        self.global.store.as_ref().is_some_and(|store| waypost_store::without_password(store) != *store)
    }

    /// The arguments that select a store other than the workspace's own. `WAYPOST_STORE` is not included, and neither is a
    /// password: they are written to files that can be committed.
    pub fn store_arguments(&self) -> Vec<String> {
        let from_variable = std::env::var("WAYPOST_STORE").ok();
        match &self.global.store {
            Some(store) if !store.is_empty() && *store != from_variable.unwrap_or_default() => {
                vec!["--store".to_owned(), waypost_store::without_password(store)]
            }
            Some(_) | None if self.global.global => vec!["--global".to_owned()],
            Some(_) | None => Vec::new(),
        }
    }

    /// The options with which another command finds the same plans from the same folder.
    pub fn place_options(&self) -> Vec<String> {
        let folder = self.global.directory.iter();
        let folder = folder.flat_map(|folder| ["-C".to_owned(), folder.display().to_string()]);
        folder.chain(self.store_arguments()).collect()
    }

    /// The location of the store that is used in the current folder.
    pub fn store_location(&self) -> Outcome<StoreLocation> {
        let from = std::env::current_dir().map_err(|error| {
            Failure::failed(
                format!("the current folder cannot be used: {error}"),
                "go to another one, or use -C",
            )
        })?;
        self.store_location_of(&from)
    }

    /// The location of the store that is used in this folder.
    pub fn store_location_of(&self, from: &Path) -> Outcome<StoreLocation> {
        let said = self.global.store.as_deref().is_some_and(|store| !store.is_empty());
        let (place, passed_over) =
            store_location::find(self.global.store.as_deref(), self.global.global, from)?;
        if let Some(passed_over) =
            passed_over.filter(|_| !self.said.passed_over.swap(true, Ordering::Relaxed))
        {
            self.out.say(format!("note: {passed_over}"));
        }
        if said || self.global.global {
            return Ok(place);
        }
        let Some(other) = place.todo_store() else { return Ok(place) };
        let folders = Folders::of(place.clone(), from);
        let is_trusted = load_config::not_trusted(&folders, self.actor()?.kind)?.is_none();
        Ok(if is_trusted { other } else { place })
    }

    /// The folders of the current folder's workspace.
    pub fn folders(&self) -> Outcome<Folders> {
        let here = std::env::current_dir().map_err(|error| Failure::file(Path::new("."), &error))?;
        self.folders_of(&here)
    }

    /// The folders of this folder's workspace.
    pub fn folders_of(&self, here: &Path) -> Outcome<Folders> {
        Ok(Folders::of(self.store_location_of(here)?, here))
    }

    /// Whether the command line or `WAYPOST_STORE` names the store, or the command line the folder.
    pub fn says_where(&self) -> bool {
        let Global { store, global, directory, .. } = &self.global;
        store.as_ref().is_some_and(|store| !store.is_empty()) || *global || directory.is_some()
    }

    /// Opens the store for reading. Creates none: a missing store is shown as empty.
    pub fn plans(&self) -> Outcome<Arc<PlanStore>> {
        let place = self.store_location()?;
        if place.is_absent() {
            return Ok(Arc::new(PlanStore::new(Arc::new(MemoryStore::new()))));
        }
        let store = open_for_one_command(&place.location, Durability::default())?;
        note_copy(&store, &place)?;
        Ok(Arc::new(PlanStore::for_one_command(store)))
    }

    /// Opens the store, and creates it if it is missing. Says where a new one is, unless a repository says that.
    pub fn plans_to_add_to(&self) -> Outcome<Arc<PlanStore>> {
        let place = self.store_location()?;
        let is_news = place.is_absent() && place.is_outside_repositories();
        let plans = self.plans_in(&place)?;
        if is_news {
            self.out.say(format!("plans of this folder and those below it are kept in {}", place.shown()));
        }
        Ok(plans)
    }

    /// Opens the store at a place, and creates it if it is missing.
    pub fn plans_in(&self, place: &StoreLocation) -> Outcome<Arc<PlanStore>> {
        let is_new = place.is_absent();
        place.prepare()?;
        let plans = Arc::new(PlanStore::for_one_command(open_store(place)?));
        if is_new && let Some(exposed) = place.folder.as_deref().and_then(repository::not_ignored) {
            self.out.say(format!("note: {exposed}"));
        }
        Ok(plans)
    }

    /// The account that vouches for approvals in the store.
    pub fn authenticator(&self) -> Outcome<Authenticator> {
        Ok(Authenticator::new(account(), &self.store_location()?.location))
    }

    /// Finds the branch for the store of this command. The store has to exist.
    pub fn shared_branch(&self) -> Outcome<FoundBranch> {
        let folders = self.folders()?;
        let config = self.load_config(&folders, None)?;
        if let Some(not_trusted) = &config.not_trusted {
            // Whoever syncs another branch than the colleagues shares with nobody.
            let asked = load_config::load_untrusted(&folders, self.actor()?.kind)?.git;
            if (&asked.reference, &asked.remote) != (&config.git.reference, &config.git.remote) {
                let file = reveal(&not_trusted.file);
                let (name, remote) = (reveal(&asked.reference), reveal(&asked.remote));
                let message = format!(
                    "{file} is not trusted on this machine, and its [git] section names another branch: {name} of {remote}"
                );
                let failure = Failure::failed(message, not_trusted.hint());
                return Err(Failure { code: not_trusted.code().to_owned(), ..failure });
            }
        }
        shared_branch::find_with(&folders.workspace, &config, &self.store_location()?)
    }

    /// Says where the plans of a store without any are: on the branch of shared plans.
    pub fn note_shared_plans(&self) {
        if let Ok(found) = self.for_background().shared_branch()
            && found.is_there()
        {
            let branch = found.branch_name();
            self.out.say(format!("this repository shares plans ({branch}): `waypost sync` brings them here"));
        }
    }

    /// Returns what finds the branch while a command runs that stays.
    pub fn branch_finder(&self) -> FindBranch {
        // A command can be asked by several threads at once.
        let context = Mutex::new(self.for_background());
        Arc::new(move || {
            let context = context.lock().unwrap_or_else(PoisonError::into_inner);
            let found = context.shared_branch().map_err(|failure| SharingError::NoBranch {
                problem: failure.one_line(),
                hint: failure.hint,
            });
            Ok(found?.shared)
        })
    }

    /// The service for these plans with a configuration that is loaded already.
    pub fn service_with(&self, plans: &Arc<PlanStore>, config: &Arc<Config>) -> Outcome<Service> {
        let service = Service::new(Arc::clone(plans), Arc::clone(config));
        let service = service.with_shared_branch(self.branch_finder());
        Ok(service.with_authenticator(self.authenticator()?))
    }

    /// The service for these plans with the configuration that a file names, if one does. An agent's file can only
    /// tighten.
    pub fn service_named(&self, plans: &Arc<PlanStore>, named: Option<&Path>) -> Outcome<Service> {
        match named {
            None => Ok(self.service(plans)),
            Some(_) => self.service_with(plans, &Arc::new(self.load_config(&self.folders()?, named)?)),
        }
    }

    /// The service for these plans. Most operations do not need the configuration, so it is loaded on demand.
    pub fn service(&self, plans: &Arc<PlanStore>) -> Service {
        let (global, program, said) = (self.global.clone(), self.program, Arc::clone(&self.said));
        let load = move || {
            let context = Self { said: Arc::clone(&said), ..Self::new(global.clone(), program) };
            context.config().map(Arc::new).map_err(|failure| ServiceError::Configuration {
                message: failure.message,
                details: failure.details,
                hint: failure.hint,
            })
        };
        let service = Service::with_config_on_demand(Arc::clone(plans), Box::new(load))
            .with_shared_branch(self.branch_finder());
        // Without a location there is no store either, so that nothing has to be vouched for.
        service.with_authenticator(self.authenticator().unwrap_or_default())
    }

    /// The caller, with the proof that a person acts if there is one. Another name than the account's is only shown: it
    /// proves nothing.
    pub fn caller(&self) -> Outcome<Caller> {
        let mut caller = Caller::new(self.actor()?);
        if caller.actor.kind == ActorKind::Worker {
            let plan = caller.actor.name.clone();
            let attempt = evidence().attempt_of(&plan);
            caller.program = attempt.map(|(task, attempt)| ProgramOf { plan, task, attempt });
            caller.only_reports = true;
        }
        if caller.actor != Actor::person(account().name.as_str()) {
            return Ok(caller);
        }
        let presence =
            Terminal::open().map_or_else(|_| Presence::unattended(), |_| Presence::new("terminal"));
        Ok(caller.present(presence))
    }

    pub fn found(&self, plans: Arc<PlanStore>, id: PlanId) -> PlanHandle {
        PlanHandle { service: self.service(&plans), plans, id }
    }

    /// Notes the damage to files of the store, and what to do about it.
    pub fn note_damage(&mut self, warnings: &[String]) {
        warnings.iter().for_each(|warning| self.out.note(warning));
        if warnings.iter().any(|warning| damage::is_damage(warning)) {
            self.out.note(damage::HINT);
        }
        if warnings.iter().any(|warning| damage::is_of_version_control(warning)) {
            self.out.note(damage::SHARE_INSTEAD);
        }
    }

    /// Returns the plans of which nothing can be read, if these warnings are about damage.
    pub fn unreadable_plans(&self, plans: &PlanStore, warnings: &[String]) -> Outcome<Vec<(PlanId, String)>> {
        match warnings.iter().any(|warning| damage::is_damage(warning)) {
            true => Ok(plans.unreadable_plans()?),
            false => Ok(Vec::new()),
        }
    }

    /// Fails if nothing can be shown because it is damaged: a plan that cannot be read is not a plan that is not there.
    pub fn refuse_if_all_damaged(&self, warnings: &[String]) -> Outcome {
        let Some(damage) = warnings.iter().find(|warning| damage::is_damage(warning)) else {
            return Ok(());
        };
        let hint = damage::with_way_out(damage::HINT, damage);
        Err(Failure { code: "corrupt".to_owned(), ..Failure::failed(damage.as_str(), hint) })
    }

    /// Finds a plan by its id or an unambiguous prefix.
    pub fn find(&self, id: &str) -> Outcome<PlanHandle> {
        self.find_in(self.plans()?, id)
    }

    /// The same among these plans.
    pub fn find_in(&self, plans: Arc<PlanStore>, id: &str) -> Outcome<PlanHandle> {
        let service = self.service(&plans);
        let id = service.resolve_plan(id)?;
        Ok(PlanHandle { plans, service, id })
    }

    /// Finds the plan that is worked on, or else the one that changed last.
    pub fn find_latest(&self) -> Outcome<PlanHandle> {
        let plans = self.plans()?;
        let latest = |phases: Vec<Phase>| -> Outcome<Option<PlanId>> {
            let query = Query { phases, sort: Sort::Updated, limit: 1, ..Query::default() };
            Ok(plans.heads(&query)?.items.into_iter().next().map(|head| head.id))
        };
        let found = match latest(vec![Phase::Active, Phase::Paused])? {
            Some(id) => Some(id),
            None => latest(Vec::new())?,
        };
        match found {
            Some(id) => Ok(self.found(plans, id)),
            None => {
                let create = "create one with `waypost new`, or `waypost import` a file";
                let offered = store_location::jaato_import(&self.folders()?.workspace);
                Err(Failure::not_found("there is no plan", offered.unwrap_or(create)))
            }
        }
    }

    /// The parts of a draft that are missing from the configuration or forbidden by it.
    pub fn configuration_problems(&self, draft: &Draft) -> Outcome<Vec<Problem>> {
        if !admit::names_configured(draft) {
            return Ok(Vec::new());
        }
        Ok(admit::problems(&self.config()?, draft))
    }

    fn config(&self) -> Outcome<Config> {
        self.load_config(&self.folders()?, None)
    }

    /// Loads the configuration of these folders, as far as the caller may choose it.
    pub fn load_config(&self, folders: &Folders, named: Option<&Path>) -> Outcome<Config> {
        let config = load_config::load(folders, named, self.actor()?.kind)?;
        self.note_untrusted(&config);
        Ok(config)
    }

    /// Says once that the workspace's configuration is not used.
    pub fn note_untrusted(&self, config: &Config) {
        if let Some(not_trusted) =
            config.not_trusted.as_ref().filter(|_| !self.said.untrusted.swap(true, Ordering::Relaxed))
        {
            self.out.say(format!("note: {not_trusted} ({})", not_trusted.hint()));
        }
    }

    /// Notes once the settings and files that are not used.
    pub fn note_ignored(&mut self, config: &Config) {
        if !self.said.ignored.swap(true, Ordering::Relaxed) {
            config.ignored.iter().for_each(|words| self.out.note(words));
        }
    }

    /// Returns the failure of a command that would run what nobody has trusted. Nothing else says it then.
    pub fn untrusted(&self, not_trusted: &NotTrusted) -> Outcome<Failure> {
        self.said.untrusted.store(true, Ordering::Relaxed);
        Ok(load_config::untrusted(not_trusted, self.actor()?.kind))
    }

    /// Notes the problems that only prevent a plan from running here, and returns the others.
    pub fn note_not_configured(&mut self, problems: Vec<Problem>) -> Vec<Problem> {
        let (forbidden, unknown): (Vec<_>, Vec<_>) = problems.into_iter().partition(admit::forbids_writing);
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
            self.out.note_fact(format!("not runnable with this configuration: {}{more}", said.join("; ")));
        }
        forbidden
    }

    /// Notes warnings about a write that succeeded.
    pub fn warn(&mut self, reply: &WriteReply) {
        for warning in &reply.warnings {
            self.out.note(sanitize_line(warning));
        }
        self.note_not_configured(reply.not_runnable.clone());
    }

    /// Reports a write to a plan.
    pub fn done(&mut self, found: &PlanHandle, reply: &WriteReply, said: &str) -> Outcome {
        self.warn(reply);
        self.answer(found, reply, said, None, Map::new())
    }

    /// Reports a write to one task.
    pub fn done_task(
        &mut self,
        found: &PlanHandle,
        reply: &WriteReply,
        task: &TaskId,
        said: &str,
    ) -> Outcome {
        self.warn(reply);
        self.answer(found, reply, said, Some(task), Map::new())
    }

    /// Reports a write: what was done, the version, which tasks are ready. Never repeats the input.
    pub fn answer(
        &mut self,
        found: &PlanHandle,
        committed: &WriteReply,
        said: &str,
        task: Option<&TaskId>,
        more: Map<String, Value>,
    ) -> Outcome {
        let (answer, ready) = found.plans.with_plan(&found.id, |plan| {
            let named = if may_start_tasks(plan) { READY_NAMED_MAX } else { 0 };
            let (now, started) = (text::now(), plan.as_started());
            let startable =
                started.claimable().filter(|task| task.state.not_before.is_none_or(|at| at <= now));
            let ready: Vec<String> = startable.take(named).map(|task| task.spec.id.to_string()).collect();
            let mut answer = answer_json(plan, committed, &ready);
            if let Some(task) = task {
                answer.insert("task".to_owned(), task.as_str().into());
                answer.insert("standing".to_owned(), json!(started.effective_status(task.as_str())));
            }
            let total = started.claimable_total();
            let words = match ready.is_empty() && awaits_approval(plan) {
                true => NEEDS_APPROVAL.to_owned(),
                false => ready_words(&ready, total),
            };
            (answer, words)
        })?;
        if self.out.json {
            let mut answer = answer;
            answer.extend(more);
            return self.out.value(&answer);
        }
        let said = if committed.changed { said.to_owned() } else { format!("{said}: nothing to change") };
        let said = typeable(&said);
        self.out.line(format!("{said} (plan {}, version {})", committed.plan, committed.version));
        if !ready.is_empty() {
            self.out.line(ready);
        }
        Ok(())
    }
}

/// Opens a store. The account notes one that did not exist as its own.
pub fn open_store(place: &StoreLocation) -> Outcome<Arc<dyn Store>> {
    let is_new = place.is_absent();
    let store = open(&place.location, Durability::default())?;
    if is_new {
        note(place, &*store)?;
    } else {
        note_copy(&store, place)?;
    }
    Ok(store)
}

/// Notes the store of a folder that a person trusts as the account's own. Returns whether another one was noted before.
pub fn note_store(place: &StoreLocation) -> Outcome<bool> {
    if place.is_absent() {
        return Ok(false);
    }
    note(place, &*open(&place.location, Durability::default())?)
}

fn note(place: &StoreLocation, store: &dyn Store) -> Outcome<bool> {
    let authenticator = Authenticator::new(account(), &place.location).in_store(store)?;
    let is_other = authenticator.is_other_store();
    // An account that cannot keep records approves what it runs.
    Ok(authenticator.note_store().is_ok() && is_other)
}

fn answer_json(plan: &Plan, committed: &WriteReply, ready: &[String]) -> Map<String, Value> {
    let mut answer = Map::new();
    answer.insert("id".to_owned(), committed.plan.as_str().into());
    answer.insert("version".to_owned(), committed.version.into());
    answer.insert("changed".to_owned(), committed.changed.into());
    answer.insert("phase".to_owned(), plan.state().phase.as_str().into());
    if awaits_approval(plan) {
        answer.insert("awaits_approval".to_owned(), true.into());
    }
    answer.insert("ready".to_owned(), ready.into());
    answer.insert(
        "ready_total".to_owned(),
        (if may_start_tasks(plan) { plan.as_started().claimable_total() } else { 0 }).into(),
    );
    answer
}

fn ready_words(ready: &[String], total: usize) -> String {
    if ready.is_empty() {
        return String::new();
    }
    let more = if total > ready.len() { format!(" (+{})", total - ready.len()) } else { String::new() };
    format!("ready next: {}{more}", ready.join(", "))
}

impl PlanHandle {
    /// Reads the plan's current version.
    pub fn read<R>(&self, read: impl FnOnce(&Plan) -> R) -> Outcome<R> {
        Ok(self.plans.with_plan(&self.id, read)?)
    }

    /// Reads all that is intact of the plan, with the latest progress of its tasks, and notes damage to its files.
    pub fn view<R>(&self, context: &mut Context, look: impl FnOnce(&Plan, &mut Context) -> R) -> Outcome<R> {
        Ok(self.plans.view(&self.id, |plan, warnings| {
            context.note_damage(warnings);
            look(plan, context)
        })?)
    }

    /// Notes damage to the plan's files.
    pub fn note_damage(&self, context: &mut Context) -> Outcome {
        let damage: Vec<String> = self.plans.store().damage(&self.id)?.into_iter().collect();
        context.note_damage(&damage);
        Ok(())
    }

    /// Resolves a task's id or an unambiguous prefix.
    pub fn task(&self, task: &str) -> Outcome<TaskId> {
        Ok(self.plans.view(&self.id, |plan, _| resolve_task(plan, task))??)
    }

    /// Resolves the ids of tasks, or unambiguous prefixes.
    pub fn tasks(&self, tasks: &[String]) -> Outcome<Vec<TaskId>> {
        tasks.iter().map(|task| self.task(task)).collect()
    }
}

/// Resolves a task's id or an unambiguous prefix.
pub fn task_of(plan: &Plan, task: &str) -> Outcome<TaskId> {
    Ok(resolve_task(plan, task)?)
}

/// Finds a task by its id or an unambiguous prefix.
pub fn whole_task_of<'a>(plan: &'a Plan, task: &str) -> Outcome<&'a Task> {
    let id = task_of(plan, task)?;
    Ok(plan.task(id.as_str()).ok_or_else(|| plan.no_such_task(id.as_str()))?)
}
