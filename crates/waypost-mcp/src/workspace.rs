//! What a tool works on: the plans of a workspace, what its configuration allows, and its folder. How these are found is
//! up to whoever makes the door.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use waypost_config::Config;
use waypost_core::{Actor, Command, Draft, Phase, PlanId, Problem, TaskId, Timestamp};
use waypost_service::admission as admit;
use waypost_store::{Committed, Head, Lease, NewPlan, Page, Plans, Query, Sort, StoreError, WriteRequest};

use crate::tool_error::ToolError;

/// Leases that are looked through for those of one worker.
const LEASES_MAX: usize = 10_000;

/// The plans of a workspace, its configuration and its folder.
pub struct Workspace {
    /// All plans of its store.
    pub plans: Plans,
    /// What the operator allows.
    pub config: Config,
    /// The folder that files may be read from and written to.
    pub folder: PathBuf,
    /// The folder that is Waypost's own: logs of attempts, and which workers are alive.
    pub own: PathBuf,
}

/// Why there is no workspace.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Unopened {
    /// What happened, to what.
    pub message: String,
    /// What to do next.
    pub hint: String,
}

impl From<Unopened> for ToolError {
    fn from(unopened: Unopened) -> Self {
        Self::new(unopened.message, unopened.hint)
    }
}

/// Finds the workspace of a folder; without one, of the folder that the server was started in.
pub type Opener = Arc<dyn Fn(Option<&Path>) -> Result<Workspace, Unopened> + Send + Sync>;

/// Commands for one plan, as a tool asks for them.
pub(crate) struct Write {
    pub(crate) plan: PlanId,
    pub(crate) by: Actor,
    pub(crate) commands: Vec<Command>,
    /// The version that the caller knew, when it matters.
    pub(crate) known_version: Option<u64>,
    /// For how long a started task is believed to be worked on.
    pub(crate) lease_seconds: Option<u32>,
}

impl Workspace {
    /// Makes a plan, if the configuration lets it be written.
    pub(crate) fn create(
        &self,
        by: &Actor,
        id: Option<PlanId>,
        draft: Draft,
    ) -> Result<Committed, ToolError> {
        self.create_with(by, id, draft, self.config.approval.required())
    }

    /// The same for plans that need a person's word whatever they ask for, unless the operator wants none.
    pub(crate) fn create_for_approval(&self, by: &Actor, draft: Draft) -> Result<Committed, ToolError> {
        let required = self.config.approval.required().unwrap_or(true);
        self.create_with(by, None, draft, Some(required))
    }

    fn create_with(
        &self,
        by: &Actor,
        id: Option<PlanId>,
        draft: Draft,
        approval_required: Option<bool>,
    ) -> Result<Committed, ToolError> {
        self.admit(admit::problems(&self.config, &draft))?;
        Ok(self.plans.create(NewPlan { id, by: by.clone(), draft, approval_required })?)
    }

    /// Writes one version, if the configuration lets it be written.
    pub(crate) fn write(&self, write: Write) -> Result<Committed, ToolError> {
        let Write { plan, by, commands, known_version, lease_seconds } = write;
        self.admit(admit::forbidden(&self.config, &commands))?;
        Ok(self.plans.write(WriteRequest { plan, by, commands, known_version, lease_seconds })?)
    }

    /// A page of plans. A cursor that no page ended with is refused: the first page would be taken for the next one.
    pub(crate) fn page(&self, query: &Query) -> Result<Page<Head>, ToolError> {
        if let Some(cursor) = query.after.as_deref().filter(|cursor| !cursor.contains('|')) {
            let message = format!("{cursor:?} is no cursor of a list of plans");
            return Err(ToolError::new(message, "send the one that the last page ended with, or none"));
        }
        Ok(self.plans.heads(query)?)
    }

    /// Somebody's own newest plan in one of these phases; in any, if none is named.
    pub(crate) fn newest(&self, of: &Actor, phases: Vec<Phase>) -> Result<Option<PlanId>, ToolError> {
        let owner = Some(of.name.clone());
        let query = Query { owner, phases, sort: Sort::Created, limit: 1, ..Query::default() };
        Ok(self.plans.heads(&query)?.items.into_iter().next().map(|head| head.id))
    }

    /// What time it is in the store.
    pub(crate) fn now(&self) -> Result<Timestamp, StoreError> {
        let mut now = Timestamp::from_micros(0);
        self.plans.store().read(&mut |read| {
            now = read.now();
            Ok(())
        })?;
        Ok(now)
    }

    /// What somebody works on, in whichever session, as far as it is leased.
    pub(crate) fn leases_of(&self, agent: &Actor) -> Result<Vec<Lease>, StoreError> {
        let mut leases = Vec::new();
        self.plans.store().read(&mut |read| {
            leases = read.leases(None, LEASES_MAX)?;
            Ok(())
        })?;
        leases.retain(|lease| agent.is_worker(&lease.worker));
        Ok(leases)
    }

    /// Whoever works on a task was heard of: it is believed for so many seconds more.
    pub(crate) fn renew(
        &self,
        plan: &PlanId,
        task: &TaskId,
        attempt: u32,
        seconds: u32,
    ) -> Result<(), StoreError> {
        self.plans.store().write(&mut |transaction| {
            let until = transaction.now().plus_seconds(u64::from(seconds));
            transaction.renew_lease(plan, task.as_str(), attempt, until).map(drop)
        })
    }

    /// What keeps a draft from being run by the configuration here, in words.
    pub(crate) fn cannot_run(&self, draft: &Draft) -> Vec<String> {
        let problems = admit::problems(&self.config, draft).into_iter();
        let unknown = problems.filter(|problem| !admit::forbids_writing(problem));
        unknown.map(|problem| format!("by the configuration here this cannot run: {problem}")).collect()
    }

    /// What the configuration does not have here it may have elsewhere: that keeps a plan from running, not from being
    /// written.
    fn admit(&self, problems: Vec<Problem>) -> Result<(), ToolError> {
        let misfits: Vec<Problem> = problems.into_iter().filter(admit::forbids_writing).collect();
        if misfits.is_empty() { Ok(()) } else { Err(ToolError::invalid(&misfits)) }
    }
}
