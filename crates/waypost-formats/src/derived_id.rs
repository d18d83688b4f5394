//! Ids of plans whose files name none, or one that cannot be used here. Such an id follows from the content, so that the same file
//! is always the same plan, also after its results were written into it.
//!
//! Does not know the store: another plan may have the id already.

use waypost_core::canonical::CanonicalHasher;
use waypost_core::{Draft, ForeignFields, PlanId, PlanSpec, TaskSpec};
use waypost_text::hex;

use crate::preserved_fields::PreservedFields;
use crate::{Dialect, Reading, clido};

/// The number of hexadecimal digits of a derived id.
const DIGITS: usize = 12;

/// Gives every plan without an id one that follows from its content.
pub(crate) fn derive_ids(reading: &mut Reading) {
    for draft in reading.drafts.iter_mut().filter(|draft| draft.id.is_none()) {
        let Some(id) = derived_id(draft, reading.dialect) else { continue };
        reading.derived_ids.insert(id.clone());
        draft.id = Some(id);
    }
}

fn derived_id(draft: &mut Draft, dialect: Dialect) -> Option<PlanId> {
    let mut kept = PreservedFields::of(&draft.spec.foreign, dialect);
    let unusable = kept.text("id").or_else(|| kept.text("name")).filter(|id| !id.is_empty());
    let text = match unusable {
        Some(unusable) => {
            let mut hasher = CanonicalHasher::new("plan-name", 1);
            hasher.text(unusable);
            plan_id(hasher)
        }
        // clido's own rule, so that both programs mean the same plan.
        None if dialect == Dialect::Clido && !draft.spec.goal.is_empty() => {
            if kept.text("form") == Some("flat") {
                kept.set("derived_id", true);
                kept.keep_in(&mut draft.spec.foreign, dialect);
            }
            clido::derived_id(&draft.spec.goal)
        }
        None => plan_id(of_content(draft)),
    };
    text.parse().ok()
}

/// Returns the id of a plan whose own id another plan has. It follows from both, so that the same file is the same plan here, too.
pub fn alternative_id(draft: &Draft) -> Option<PlanId> {
    let mut hasher = of_content(draft);
    hasher.text(draft.id.as_ref()?.as_str());
    plan_id(hasher).parse().ok()
}

fn plan_id(hasher: CanonicalHasher) -> String {
    let mut digits = hex(&hasher.finish());
    digits.truncate(DIGITS);
    format!("plan-{digits}")
}

/// Hashes what the author wrote. Statuses and results are left out, and so are the hints about how it was written.
fn of_content(draft: &Draft) -> CanonicalHasher {
    let mut hasher = CanonicalHasher::new("plan-content", 1);
    let text = |value: serde_json::Result<String>| value.unwrap_or_default();
    let plan = PlanSpec { foreign: ForeignFields::default(), ..draft.spec.clone() };
    hasher.text(&text(serde_json::to_string(&plan)));
    hasher.list(draft.tasks.iter(), |hasher, task| {
        let spec = TaskSpec { foreign: ForeignFields::default(), ..task.spec.clone() };
        hasher.text(&text(serde_json::to_string(&spec)))
    });
    hasher
}
