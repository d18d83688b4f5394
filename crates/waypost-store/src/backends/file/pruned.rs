//! The state of a plan that is kept in place of pruned events. Part of the truth: the history continues from it.

use serde::{Deserialize, Serialize};
use waypost_core::{Draft, Plan, PlanId};

use super::fs::{self, corrupt};
use super::history_file;
use super::layout::Layout;
use crate::error::Result;
use crate::rows::Pruned;

/// What `pruned/ID.json` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PrunedFile {
    #[serde(flatten)]
    pub(super) pruned: Pruned,
    /// The plan as the last of the forgotten versions left it, in the native format.
    plan: Draft,
    /// What was kept before a repair: the versions between it and the lost ones continue from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Box<Self>>,
}

impl PrunedFile {
    pub(super) fn new(pruned: &Pruned, plan: Draft) -> Self {
        Self { pruned: pruned.clone(), plan, before: None }
    }

    /// The same with what was kept so far for earlier versions.
    pub(super) fn after(self, before: Option<Self>) -> Self {
        Self { before: before.map(Box::new), ..self }
    }

    /// The latest state that is kept of version `at_most` or before.
    pub(super) fn at_most(self, at_most: u64) -> Option<Self> {
        if self.pruned.up_to <= at_most { Some(self) } else { self.before?.at_most(at_most) }
    }

    /// What is kept of a plan, if anything was forgotten.
    pub(super) fn read(layout: &Layout, id: &PlanId) -> Result<Option<Self>> {
        let path = layout.pruned_plan(id);
        let Some(kept) = fs::read_json::<Self>(&path)? else { return Ok(None) };
        if kept.plan.version == kept.pruned.up_to {
            return Ok(Some(kept));
        }
        let detail = format!("it holds version {}, not {}", kept.plan.version, kept.pruned.up_to);
        Err(corrupt(&path, detail))
    }

    pub(super) fn plan(self, id: &PlanId) -> Plan {
        Plan::from_trusted_draft(id.clone(), self.plan)
    }
}

/// The plan that a history tells, from its beginning or from what is kept of it.
pub(super) fn replay(layout: &Layout, id: &PlanId) -> Result<Plan> {
    let begin = PrunedFile::read(layout, id)?.map_or_else(|| Plan::blank(id.clone()), |kept| kept.plan(id));
    history_file::replay(&layout.history(id), begin)
}
