use std::sync::Arc;

use waypost_config::Config;
use waypost_core::{Dependency, Draft, Plan, PlanId, TaskSpec};
use waypost_service::{Caller, EditOp, Guard, Service};
use waypost_store::{MemoryStore, PlanStore};
use waypost_testkit::{SeededRng, layered};
use waypost_tui::edit_buffer::EditBuffer;
use waypost_tui::plan::LoadedPlan;

use crate::{create, example, now, person};

fn plan_of(draft: Draft) -> Plan {
    let mut plan = Plan::blank(PlanId::new("p").unwrap());
    let create = waypost_core::Command::Create { draft: draft.into(), approval_required: None };
    let events = plan.decide(&person(), now(), &create).unwrap();
    plan.advance(&events, now());
    plan
}

fn store_of(draft: Draft) -> Service {
    let plans = Arc::new(PlanStore::new(Arc::new(MemoryStore::new())));
    create(&plans, "p", draft);
    Service::new(plans, Arc::new(Config::default()))
}

fn loaded(service: &Service) -> Plan {
    service.read(&PlanId::new("p").unwrap(), Plan::clone).unwrap()
}

/// The plan after the edits.
fn saved(service: Service, edits: Vec<EditOp>) -> Plan {
    let written =
        service.edit(&Caller::new(person()), &PlanId::new("p").unwrap(), edits.clone(), Guard::NONE);
    written.unwrap_or_else(|error| panic!("{error}\n{edits:?}"));
    loaded(&service)
}

fn buffer_of(plan: &Plan) -> EditBuffer {
    EditBuffer::new(LoadedPlan::of(plan))
}

/// One random edit. Cycles may result.
fn edit(buffer: &mut EditBuffer, dice: &mut SeededRng) {
    let count = buffer.rows().len();
    let at = dice.below(count);
    match dice.below(9) {
        0 => drop(buffer.insert((count > 0).then_some(at), TaskSpec::new(waypost_testkit::id("t1"), "new"))),
        1 if count > 2 => buffer.remove(at),
        2 => drop(buffer.move_up(at)),
        3 => drop(buffer.move_down(at)),
        4 => drop(buffer.indent(at)),
        5 => drop(buffer.outdent(at)),
        6 => buffer.toggle_skip(at),
        7 => {
            let Some(row) = buffer.rows().get(at) else { return };
            let mut spec = row.spec().clone();
            spec.description = format!("described {}", dice.below(100));
            buffer.revise(at, spec);
        }
        _ => {
            let Some(row) = buffer.rows().get(at) else { return };
            let mut spec = row.spec().clone();
            let on = Dependency::Task(buffer.rows()[dice.below(count)].id().clone());
            if spec.depends_on.contains(&on) {
                spec.depends_on.retain(|other| *other != on);
            } else {
                spec.depends_on.push(on);
            }
            buffer.revise(at, spec);
        }
    }
}

#[test]
fn undoing_everything_gives_what_was_and_redoing_everything_what_became_of_it() {
    for seed in 0..60 {
        let mut dice = SeededRng::new(seed);
        let mut buffer = buffer_of(&plan_of(if seed % 2 == 0 { example() } else { layered(30, 2, 6, seed) }));
        let before = buffer.draft();
        for _ in 0..40 {
            edit(&mut buffer, &mut dice);
        }
        let after = buffer.draft();
        while buffer.undo().is_some() {}
        assert_eq!(buffer.draft(), before, "seed {seed}");
        assert!(!buffer.is_changed());
        while buffer.redo().is_some() {}
        assert_eq!(buffer.draft(), after, "seed {seed}");
    }
}

#[test]
fn saving_any_sound_edits_makes_the_stored_plan_what_the_buffer_says() {
    let mut sound = 0;
    for seed in 0..300 {
        let mut dice = SeededRng::new(seed);
        let plan = store_of(if seed % 2 == 0 { example() } else { layered(20, 2, 5, seed) });
        let mut buffer = buffer_of(&loaded(&plan));
        for _ in 0..1 + dice.below(12) {
            edit(&mut buffer, &mut dice);
        }
        buffer.check();
        if !buffer.problems().all().is_empty() {
            continue;
        }
        sound += 1;
        let specs = |draft: &Draft| draft.tasks.iter().map(|task| task.spec.clone()).collect::<Vec<_>>();
        let saved = saved(plan, buffer.edit_ops());
        assert_eq!(specs(&saved.to_draft()), specs(&buffer.draft()), "seed {seed}");
    }
    assert!(sound > 100, "{sound} of 300 were sound");
}

#[test]
fn nothing_edited_asks_nothing_of_the_store() {
    assert!(buffer_of(&plan_of(example())).edit_ops().is_empty());
}

#[test]
fn new_tasks_that_stand_together_are_added_together() {
    let mut buffer = buffer_of(&plan_of(example()));
    let mut after = 0;
    for name in ["n1", "n2", "n3"] {
        after = buffer.insert(Some(after), TaskSpec::new(waypost_testkit::id(name), name)).unwrap();
    }
    let ops = buffer.edit_ops();
    assert!(matches!(ops.as_slice(), [EditOp::AddTasks { tasks, .. }] if tasks.len() == 3), "{ops:?}");
}

#[test]
fn edits_made_on_another_version_keep_both_sides() {
    let plan = plan_of(example());
    for seed in 0..200 {
        let mut dice = SeededRng::new(seed);
        let mut mine = buffer_of(&plan);
        let mut theirs = buffer_of(&plan);
        for _ in 0..4 {
            edit(&mut mine, &mut dice);
            edit(&mut theirs, &mut dice);
        }
        theirs.check();
        if !theirs.problems().all().is_empty() {
            continue;
        }
        let stored = saved(store_of(example()), theirs.edit_ops());
        let rebased = mine.rebased(LoadedPlan::of(&stored)).buffer;
        assert_eq!(rebased.base().version, stored.version());
        // What I described last stands, where the task is still there.
        for row in mine.rows() {
            let base = plan.task(row.id().as_str());
            if let (Some(at), Some(base)) = (rebased.place(row.id()), base)
                && row.spec().description != base.spec.description
            {
                assert_eq!(rebased.rows()[at].spec().description, row.spec().description, "seed {seed}");
            }
        }
        // Whatever I wrote is in, also where they took the task out or gave its id to another.
        for row in mine.rows() {
            let base = plan.task(row.id().as_str()).map(|task| &task.spec.description);
            let words = &row.spec().description;
            let kept = rebased.rows().iter().filter(|other| other.spec().description == *words).count();
            let written = mine.rows().iter().filter(|other| other.spec().description == *words).count();
            assert!(base == Some(words) || kept >= written, "seed {seed}: {} {words}", row.id());
        }
        // What I took out is out; what only they added is in.
        for (task, _) in stored.tasks().filter(|(task, _)| plan.task(task.spec.id.as_str()).is_none()) {
            assert!(rebased.place(&task.spec.id).is_some(), "seed {seed}: {}", task.spec.id);
        }
        for task in &plan.to_draft().tasks {
            if mine.place(&task.spec.id).is_none() {
                assert!(rebased.place(&task.spec.id).is_none(), "seed {seed}: {}", task.spec.id);
            }
        }
    }
}
