//! Version conflicts: who wrote since, which versions, and how much differs. Nothing was written.

use serde_json::{Value, json};
use waypost_core::{DiffStat, Difference, Plan, PlanId};
use waypost_store::{Conflict, VersionRecord};

use super::name::{Document, KnownVersion};
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Maximum number of versions that a reply lists.
const VERSIONS_NAMED_MAX: usize = 20;

/// docker-agent's wording for the next step.
const RETRY: &str = "re-read the plan and retry";

/// A version conflict in docker-agent's wording, with the changes since.
pub(super) fn version_conflict(
    call: &Call,
    name: &str,
    known: KnownVersion,
    conflict: &Conflict,
) -> Result<ToolError, ToolError> {
    let document = call.read(&conflict.plan, Document::of)?;
    let (version, offset) = (document.version_of(known.version), document.offset);
    if !(1..conflict.current).contains(&version) {
        // This version was never stored here: there is nothing to compare with.
        return Ok(mismatch(name, known, conflict.current + offset, RETRY));
    }
    let mut entries = call.workspace.plans().history(&conflict.plan, version, VERSIONS_NAMED_MAX)?;
    entries.iter_mut().for_each(|entry| entry.version += offset);
    let current = conflict.current + offset;
    let differs = described(&conflict.differences);
    let mut since = writers(&entries);
    let named = entries.last().map_or(known.version, |last| last.version);
    if current > named {
        since.push_str(&format!(", and {} more versions were written", current - named));
    }
    let hint = format!("{RETRY}. Since then {since}; differs: {differs}");
    let versions: Vec<Value> = entries
        .iter()
        .map(|entry| json!({ "version": entry.version, "by": entry.actor.to_string() }))
        .collect();
    Ok(mismatch(name, known, current, &hint)
        .with_fact("written_since", versions)
        .with_fact("differs", differs))
}

/// Describes differences in the words of these tools, which call the owner the author.
pub(super) fn described(differences: &[Difference]) -> String {
    let mut stat = DiffStat::of(differences);
    for field in stat.fields.iter_mut().filter(|field| **field == "owner") {
        *field = "author";
    }
    stat.describe()
}

/// A version conflict for a document that does not exist.
pub(super) fn absent(
    call: &Call,
    name: &str,
    known: KnownVersion,
    deleted: Option<&PlanId>,
) -> Result<ToolError, ToolError> {
    let mut hint = RETRY.to_owned();
    if let Some(id) = deleted {
        let version = call.workspace.plans().with_plan(id, Plan::version)?;
        let last = call.workspace.plans().history(id, version.saturating_sub(1), 1)?;
        let by = last.first().map(|entry| format!(" by {}", entry.actor)).unwrap_or_default();
        hint.push_str(&format!(". It was deleted{by} in version {version}"));
    }
    Ok(mismatch(name, known, 0, &hint))
}

fn mismatch(name: &str, known: KnownVersion, current: u64, hint: &str) -> ToolError {
    let KnownVersion { version, word } = known;
    let message = format!(
        "version conflict on plan {name:?}: last_known_{word} {version} does not match current {word} {current}"
    );
    ToolError::new(message, hint)
        .with_fact("code", "conflict")
        .with_fact("last_known_version", version)
        .with_fact("version", current)
}

/// Formats the writers, e.g. `agent:a wrote versions 2, 4; agent:b wrote version 3`.
fn writers(entries: &[VersionRecord]) -> String {
    let mut by: Vec<(String, Vec<String>)> = Vec::new();
    for entry in entries {
        let (actor, version) = (entry.actor.to_string(), entry.version.to_string());
        match by.iter_mut().find(|(known, _)| *known == actor) {
            Some((_, versions)) => versions.push(version),
            None => by.push((actor, vec![version])),
        }
    }
    let words = by.into_iter().map(|(actor, versions)| {
        let many = if versions.len() == 1 { "" } else { "s" };
        format!("{actor} wrote version{many} {}", versions.join(", "))
    });
    words.collect::<Vec<_>>().join("; ")
}
