//! What a draft says, field by field, so that a writer can name everything that it leaves out.
//!
//! Knows no format. Every struct is taken apart without `..`: a new field breaks the build here, and whoever adds it
//! has to say how it is called.

use waypost_core::{
    DependencyRule, Draft, Phase, PlanSpec, PlanState, Status, Task, TaskExtras, TaskSpec, TaskState,
};

/// The names of all that is set in a plan. Foreign fields are named `foreign.<format>`; tasks are not listed.
pub(crate) fn set_in_plan(draft: &Draft) -> Vec<String> {
    let Draft { format: _, id, version, spec, state, tasks: _ } = draft;
    let PlanSpec { title, goal, status, owner, queue, token_budget, body, foreign } = spec;
    let PlanState {
        phase,
        approval_required,
        approval_waived,
        approval,
        created_by,
        created_at,
        updated_at,
        started_at,
        finished_at,
        tokens_used,
        // The store's own count: nobody takes it over from a text.
        calls: _,
        summary,
        // The phase says that it has ended.
        closed: _,
        reason,
        archived,
        attempts_gone,
    } = state;
    let mut set = named([
        ("id", id.is_some()),
        ("version", *version != 0),
        ("title", !title.is_empty()),
        ("goal", !goal.is_empty()),
        ("status", !status.is_empty()),
        ("owner", !owner.is_empty()),
        ("queue", !queue.is_empty()),
        ("token_budget", token_budget.is_some()),
        ("body", !body.is_empty()),
        ("phase", *phase != Phase::default()),
        ("approval_required", *approval_required),
        ("approval_waived", *approval_waived),
        ("approval", approval.is_some()),
        ("created_by", created_by.is_some()),
        ("created_at", created_at.is_some()),
        ("updated_at", updated_at.is_some()),
        ("started_at", started_at.is_some()),
        ("finished_at", finished_at.is_some()),
        ("tokens_used", *tokens_used != 0),
        ("summary", !summary.is_empty()),
        ("reason", !reason.is_empty()),
        ("archived", *archived),
        ("attempts_gone", *attempts_gone != 0),
    ]);
    set.extend(foreign.0.keys().map(|dialect| format!("foreign.{dialect}")));
    set
}

/// The names of all that is set in a task. Its id and its foreign fields are named as in [`set_in_plan`].
pub(crate) fn set_in_task(task: &Task) -> Vec<String> {
    let Task { spec, state } = task;
    let TaskSpec {
        id: _,
        description,
        parent,
        depends_on,
        when,
        complexity,
        notes,
        tools,
        skip,
        locks,
        work,
        check,
        retry,
        timeout_seconds,
        priority,
        provides,
        thinking,
        foreign,
    } = spec;
    let TaskState {
        status,
        attempt,
        tries,
        created_at,
        updated_at,
        started_at,
        finished_at,
        not_before,
        worker,
        progress,
        result,
        output,
        error,
        reason,
        because_of,
        received,
        aside,
    } = state;
    let TaskExtras { reported, evidence, question, answers } = aside.as_deref().cloned().unwrap_or_default();
    let mut set = named([
        ("id", true),
        ("description", !description.is_empty()),
        ("parent", parent.is_some()),
        ("depends_on", !depends_on.is_empty()),
        ("when", *when != DependencyRule::default()),
        ("complexity", complexity.is_some()),
        ("notes", !notes.is_empty()),
        ("tools", tools.is_some()),
        ("skip", *skip),
        ("locks", !locks.is_empty()),
        ("work", work.is_some()),
        ("check", check.is_some()),
        ("retry", retry.is_some()),
        ("timeout_seconds", timeout_seconds.is_some()),
        ("priority", *priority != 0),
        ("provides", provides.is_some()),
        ("thinking", thinking.is_some()),
        ("status", *status != Status::default()),
        ("attempt", *attempt != 0),
        ("tries", *tries != 0),
        ("created_at", created_at.is_some()),
        ("updated_at", updated_at.is_some()),
        ("started_at", started_at.is_some()),
        ("finished_at", finished_at.is_some()),
        ("not_before", not_before.is_some()),
        ("worker", worker.is_some()),
        ("progress", progress.is_some()),
        ("result", result.is_some()),
        ("output", output.is_some()),
        ("error", error.is_some()),
        ("reason", reason.is_some()),
        ("because_of", because_of.is_some()),
        ("received", !received.is_empty()),
        ("reported", reported.is_some()),
        ("evidence", evidence.is_some()),
        ("question", question.is_some()),
        ("answers", !answers.is_empty()),
    ]);
    set.extend(foreign.0.keys().map(|dialect| format!("foreign.{dialect}")));
    set
}

fn named<const N: usize>(fields: [(&str, bool); N]) -> Vec<String> {
    fields.into_iter().filter(|(_, set)| *set).map(|(name, _)| name.to_owned()).collect()
}
