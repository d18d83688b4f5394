//! The state of a plan that is kept in place of pruned events. It is part of the truth: the history continues from it.

use serde::{Deserialize, Serialize};
use waypost_core::{Draft, Plan, PlanId};

use super::fs::{self, corrupt};
use super::history_file;
use super::layout::Layout;
use crate::error::Result;
use crate::rows::Pruned;

/// The content of `pruned/ID.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PrunedFile {
    #[serde(flatten)]
    pub(super) pruned: Pruned,
    /// The plan after the last of the pruned versions, in the native format.
    plan: Draft,
    /// The state that was kept before a repair: the versions between it and the lost ones continue from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Box<Self>>,
}

impl PrunedFile {
    pub(super) fn new(pruned: &Pruned, plan: Draft) -> Self {
        Self { pruned: pruned.clone(), plan, before: None }
    }

    /// Adds the state that was kept so far for earlier versions.
    pub(super) fn after(self, before: Option<Self>) -> Self {
        Self { before: before.map(Box::new), ..self }
    }

    /// Returns the latest kept state of version `at_most` or before.
    pub(super) fn at_most(self, at_most: u64) -> Option<Self> {
        if self.pruned.up_to <= at_most { Some(self) } else { self.before?.at_most(at_most) }
    }

    /// Reads the kept state of a plan, if events were pruned or lost.
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

/// Replays the history of a plan, from its beginning or from its kept state.
pub(super) fn replay(layout: &Layout, id: &PlanId) -> Result<Plan> {
    let begin = PrunedFile::read(layout, id)?.map_or_else(|| Plan::blank(id.clone()), |kept| kept.plan(id));
    history_file::replay(&layout.history(id), begin)
}
