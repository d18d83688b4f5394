//! Names of documents, lookup by name, and the version that a caller last knew. Names are plan ids.

use waypost_core::{BadId, Plan, PlanId, PlanSpec, Timestamp};
pub(super) use waypost_formats::plan_document::is_name;
use waypost_formats::plan_document::revision_offset;
use waypost_service::ServiceError;

use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// A document at one version.
#[derive(Clone)]
pub(super) struct Document {
    pub(super) id: PlanId,
    pub(super) version: u64,
    pub(super) spec: PlanSpec,
    pub(super) updated_at: Option<Timestamp>,
    /// Number of tasks that the plan has besides its text.
    pub(super) tasks: usize,
    pub(super) deleted: bool,
    /// By how much its revision exceeds the version of its plan.
    pub(super) offset: u64,
}

impl Document {
    pub(super) fn of(plan: &Plan) -> Self {
        Self {
            id: plan.id().clone(),
            version: plan.version(),
            spec: plan.spec().clone(),
            updated_at: plan.state().updated_at,
            tasks: plan.len(),
            deleted: plan.state().archived,
            offset: revision_offset(&plan.spec().foreign),
        }
    }

    /// The number that callers and files know this version by.
    pub(super) fn revision(&self) -> u64 {
        self.version + self.offset
    }

    /// The version of the plan that a caller knows by this number; 0 for one that was never stored here.
    pub(super) fn version_of(&self, revision: u64) -> u64 {
        revision.saturating_sub(self.offset)
    }
}

/// Returns the plan id for a name. An existing plan can also be named by an id that is not a valid document name.
pub(super) fn id(call: &Call, name: &str) -> Result<PlanId, ToolError> {
    let invalid = || {
        let rule = "use only lowercase letters, digits, '-' and '_', starting with a letter or digit";
        ToolError::new(format!("invalid plan name {name:?}: {rule}"), "").with_fact("code", "invalid_name")
    };
    match PlanId::new(name) {
        Ok(id) if is_name(name) => Ok(id),
        Ok(id) if find_any(call, &id)?.is_some_and(|found| !found.deleted) => Ok(id),
        Err(BadId::TooLong(max)) if is_name(name) => {
            let message = format!("invalid plan name: it has {} bytes, and {max} are allowed", name.len());
            Err(ToolError::new(message, "choose a shorter one").with_fact("code", "invalid_name"))
        }
        Ok(_) | Err(_) => Err(invalid()),
    }
}

/// Returns the document with this id, even if it was deleted.
pub(super) fn find_any(call: &Call, id: &PlanId) -> Result<Option<Document>, ToolError> {
    match call.read(id, Document::of) {
        Ok(found) => Ok(Some(found)),
        Err(ServiceError::NoSuchPlan(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the document with this name. A missing or deleted document is an error.
pub(super) fn find(call: &Call, name: &str) -> Result<Document, ToolError> {
    let found = find_any(call, &id(call, name)?)?;
    found.filter(|found| !found.deleted).ok_or_else(|| not_found(name))
}

pub(super) fn not_found(name: &str) -> ToolError {
    ToolError::new(format!("plan {name:?} not found"), "list_plans shows the names")
        .with_fact("code", "no_such_plan")
}

/// The version that the caller last knew, under either argument name.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastKnown {
    pub(super) last_known_version: Option<u64>,
    pub(super) last_known_revision: Option<u64>,
}

/// The version that the caller knew, and the argument name that the caller used.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownVersion {
    pub(super) version: u64,
    /// `version` or `revision`.
    pub(super) word: &'static str,
}

impl LastKnown {
    pub(super) fn known(self) -> Result<Option<KnownVersion>, ToolError> {
        let known = |word| move |version| KnownVersion { version, word };
        match (self.last_known_version, self.last_known_revision) {
            (Some(version), Some(revision)) if version != revision => Err(ToolError::new(
                format!("last_known_version is {version} and last_known_revision {revision}"),
                "they are aliases: pass one of them",
            )),
            (Some(version), _) => Ok(Some(version).map(known("version"))),
            (None, revision) => Ok(revision.map(known("revision"))),
        }
    }
}

/// Treats an empty text as omitted, like docker-agent.
pub(super) fn nonempty(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}
