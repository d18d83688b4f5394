//! What reads all tasks of a plan without keeping them finds the same as what keeps them.

use waypost_core::{Actor, Command, Dependency, ExternalTaskRef, Plan, PlanId, TaskId, TaskSpec, Timestamp};
use waypost_testkit::layered;

#[test]
fn the_specs_of_a_loaded_plan_are_visited_in_order_without_keeping_them() {
    let mut plan = Plan::blank(PlanId::new("p").unwrap());
    let mut draft = layered(50, 2, 8, 1);
    let there = ExternalTaskRef::parse("lib/build").unwrap();
    draft.tasks[7].spec.depends_on.push(Dependency::External(Box::new(there)));
    let create = Command::Create { draft: draft.into(), approval_required: Some(false) };
    let now = Timestamp::from_micros(1);
    let events = plan.decide(&Actor::person("ada"), now, &create).unwrap();
    plan.advance(&events, now);
    let loaded = Plan::from_snapshot(plan.snapshot().to_vec()).unwrap();
    let mut specs: Vec<TaskSpec> = Vec::new();
    loaded.for_each_spec(|spec| specs.push(spec.clone()));
    let all: Vec<TaskSpec> = plan.tasks().map(|(task, _)| task.spec.clone()).collect();
    assert_eq!(specs, all);
    let external: Vec<TaskId> = loaded.tasks_with_external_dependencies();
    assert_eq!(external, [TaskId::new("t7").unwrap()]);
    assert_eq!(loaded.work_digest(), plan.work_digest());
}
