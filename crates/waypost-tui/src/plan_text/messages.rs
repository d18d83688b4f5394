//! The text of a plan, as it is loaded.

use waypost_core::Plan;

/// The text of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanText {
    pub title: String,
    pub version: u64,
    /// As Markdown.
    pub text: String,
}

impl PlanText {
    pub fn of(plan: &Plan) -> Self {
        let (spec, state) = (plan.spec(), plan.state());
        let mut parts = Vec::new();
        if !spec.goal.trim().is_empty() && spec.goal != spec.title {
            parts.push(format!("**Goal:** {}", spec.goal.trim()));
        }
        if !spec.body.trim().is_empty() {
            parts.push(spec.body.clone());
        }
        if !state.summary.trim().is_empty() {
            parts.push(format!("**Summary:** {}", state.summary.trim()));
        }
        Self { title: spec.title.clone(), version: plan.version(), text: parts.join("\n\n") }
    }
}
