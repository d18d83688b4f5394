//! One call of a tool: who calls, with which arguments, on which workspace.

use std::sync::Arc;

use rmcp::{Peer, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use waypost_core::{Actor, Command, Phase, PlanId};
use waypost_store::{Committed, Query, Sort};

use crate::refused::Refused;
use crate::workspace::{Workspace, Write};

/// One call of a tool.
pub(crate) struct Call {
    pub(crate) workspace: Arc<Workspace>,
    /// The agent who calls: never a person, whatever it says.
    pub(crate) by: Actor,
    pub(crate) arguments: Map<String, Value>,
    /// The program at the other end, which may be able to ask a person.
    pub(crate) client: Client,
}

/// The program at the other end of a call.
pub(crate) struct Client {
    pub(crate) peer: Peer<RoleServer>,
    /// The runtime on which it can be talked to.
    pub(crate) runtime: tokio::runtime::Handle,
    /// Whether it can ask the person who sits there.
    pub(crate) can_ask: bool,
    /// Set when nobody waits for the answer any more.
    pub(crate) gone: Box<dyn Fn() -> bool + Send>,
}

impl Call {
    /// The arguments as `T`; what does not fit is named.
    pub(crate) fn arguments<T: DeserializeOwned>(&self) -> Result<T, Refused> {
        serde_json::from_value(Value::Object(self.arguments.clone())).map_err(|error| {
            Refused::new(format!("the arguments do not fit: {error}"), "see the tool's input schema")
        })
    }

    /// The plan that an id or its beginning names.
    pub(crate) fn plan(&self, id: &str) -> Result<PlanId, Refused> {
        Ok(self.workspace.plans.resolve(id)?)
    }

    /// The caller's own newest plan that has not ended, if there is one.
    pub(crate) fn own_plan(&self) -> Result<Option<PlanId>, Refused> {
        self.newest(Phase::ALL.into_iter().filter(|phase| !phase.is_finished()).collect())
    }

    /// The caller's own newest plan, be it one that has ended.
    pub(crate) fn latest_plan(&self) -> Result<Option<PlanId>, Refused> {
        self.newest(Vec::new())
    }

    fn newest(&self, phases: Vec<Phase>) -> Result<Option<PlanId>, Refused> {
        let owner = Some(self.by.name.clone());
        let query = Query { owner, phases, sort: Sort::Created, limit: 1, ..Query::default() };
        let page = self.workspace.plans.heads(&query)?;
        Ok(page.items.into_iter().next().map(|head| head.id))
    }

    /// Writes one version.
    pub(crate) fn write(&self, plan: &PlanId, commands: Vec<Command>) -> Result<Committed, Refused> {
        self.workspace.write(Write {
            plan: plan.clone(),
            by: self.by.clone(),
            commands,
            known_version: None,
            lease_seconds: None,
        })
    }
}
