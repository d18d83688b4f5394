//! Edits to a plan, in part and as a whole.

use super::*;

#[test]
fn tasks_are_added_where_they_are_wanted_all_or_none() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[])]));
    let put = |names: &[&str], place| Command::AddTasks {
        tasks: names.iter().map(|name| task(name, &[])).collect(),
        place,
    };
    desk.does(put(&["c", "d"], Position::First));
    desk.does(put(&["e"], Position::After(id("a"))));
    desk.does(put(&["f"], Position::Before(id("a"))));
    assert_eq!(order(&desk), "c d f a e b");
    let refusal = desk.refuses(add(vec![task("g", &[]), task("a", &[])]));
    assert!(matches!(refusal, Refusal::Invalid { .. }));
    assert_eq!(order(&desk), "c d f a e b");
    desk.does(add(vec![child("y", "x", &["z"]), task("x", &[]), task("z", &[])]));
    assert_eq!(order(&desk), "c d f a e b x -y z");
    assert_eq!(desk.standing("y"), EffectiveStatus::Blocked);
}

#[test]
fn what_others_depend_on_is_removed_only_when_they_are_detached() {
    let mut desk = Desk::with(plan_of([
        task("a", &[]),
        task("p", &[]),
        child("x", "p", &["a"]),
        task("b", &["x", "a"]),
    ]));
    let refusal = desk.refuses(ask::remove("p", false));
    assert_eq!(refusal, Refusal::HasDependants { task: "p".into(), dependants: vec!["b".into()] });
    desk.does(ask::remove("p", true));
    assert_eq!(desk.standings(), "a:ready b:blocked");
    assert_eq!(desk.plan.task("b").unwrap().spec.depends_on, [Dependency::Task(id("a"))]);
    desk.does(ask::start("a"));
    assert!(matches!(desk.refuses(ask::remove("a", true)), Refusal::StillRunning { .. }));
}

#[test]
fn tasks_move_with_all_below_them() {
    let mut desk = Desk::with(plan_of([
        task("a", &[]),
        task("p", &["a"]),
        child("x", "p", &[]),
        child("y", "x", &[]),
        task("q", &[]),
    ]));
    let put = |name: &str, parent: Option<Option<&str>>, place| Command::MoveTask {
        task: id(name),
        parent: parent.map(|parent| parent.map(id)),
        place,
    };
    assert_eq!(desk.standing("y"), EffectiveStatus::Blocked);
    desk.does(put("x", Some(Some("q")), Position::Last));
    assert_eq!(order(&desk), "a p q -x --y");
    assert_eq!(desk.standings(), "a:ready p:blocked q:ready x:ready y:ready");
    desk.does(put("x", Some(None), Position::First));
    assert_eq!(order(&desk), "x -y a p q");
    assert_eq!(desk.does(put("x", None, Position::First)), [], "it stands there already");
    desk.does(put("x", None, Position::After(id("p"))));
    assert_eq!(order(&desk), "a p x -y q");
    assert!(matches!(desk.refuses(put("x", None, Position::After(id("y")))), Refusal::NoSuchTask { .. }));
}

#[test]
fn a_task_with_work_or_that_runs_gets_no_children() {
    let mut desk = Desk::with(plan_of([by_machine("a", &[]), task("b", &[])]));
    assert!(matches!(desk.refuses(add(vec![child("x", "a", &[])])), Refusal::Invalid { .. }));
    desk.does(ask::start("b"));
    assert!(matches!(desk.refuses(add(vec![child("x", "b", &[])])), Refusal::WrongStatus { .. }));
}

#[test]
fn what_has_begun_keeps_its_work_and_dependencies() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[])]));
    desk.does(ask::start("a"));
    let depend = TaskChanges { add_dependencies: vec![Dependency::Task(id("b"))], ..TaskChanges::default() };
    assert!(matches!(desk.refuses(ask::revise("a", depend.clone())), Refusal::WrongStatus { .. }));
    desk.does(ask::finish("a", done()));
    assert!(matches!(desk.refuses(ask::revise("a", depend)), Refusal::WrongStatus { .. }));
    desk.does(ask::revise("a", TaskChanges { notes: Some("well done".into()), ..TaskChanges::default() }));
}

#[test]
fn a_change_that_changes_nothing_is_no_event() {
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    let same = TaskChanges { description: Some("do a".into()), priority: Some(0), ..TaskChanges::default() };
    assert_eq!(desk.does(ask::revise("a", same)), []);
    assert_eq!(desk.does(Command::Replace(Box::new(desk.plan.to_draft()))), []);
    assert_eq!(desk.does(Command::RevisePlan(Box::default())), []);
}

#[test]
fn an_edit_takes_no_description_away_but_a_task_may_come_without_one() {
    let bare = TaskSpec { description: String::new(), ..task("b", &[]) };
    let mut desk = Desk::with(plan_of([task("a", &[]), bare]));
    let described = |text: &str| TaskChanges { description: Some(text.into()), ..TaskChanges::default() };
    for blank in ["", " \n"] {
        let refusal = desk.refuses(ask::revise("a", described(blank)));
        assert_eq!(refusal.to_string(), "the plan would not be valid: task a: `description` is missing");
    }
    desk.does(ask::revise("b", TaskChanges { priority: Some(1), ..TaskChanges::default() }));
    desk.does(ask::revise("b", described("do b")));
    desk.refuses(ask::revise("b", described("")));
}

#[test]
fn a_task_is_broken_down_into_children() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &["a"])]));
    let children = vec![task("a1", &[]), task("a2", &["a1"]), child("a21", "a2", &[])];
    let reasoning = Some("two steps".to_owned());
    desk.does(Command::DecomposeTask { task: id("a"), children, reasoning, tokens: 40 });
    assert_eq!(order(&desk), "a -a1 -a2 --a21 b");
    assert_eq!(desk.standings(), "a:ready a1:ready a2:blocked a21:blocked b:blocked");
    let thinking = desk.plan.task("a").unwrap().spec.thinking.clone().unwrap();
    assert_eq!((thinking.refinement, thinking.tokens), (Some(Refinement::Decomposed), 40));
    assert_eq!(thinking.reasoning.as_deref(), Some("two steps"));
}

#[test]
fn tokens_are_counted_for_the_task_and_for_the_plan() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[])]));
    let refine = |task: &str, tokens| Command::RefineTask {
        task: id(task),
        refinement: Refinement::Atomic,
        reasoning: None,
        tokens,
    };
    desk.does(refine("a", 10));
    desk.does(refine("a", 5));
    desk.does(refine("b", 1));
    let digest = Digest {
        summary: "it went well".into(),
        key_decisions: vec!["keep it small".into()],
        artifacts: vec!["a.rs".into()],
        compression_ratio: Some(0.05),
        fidelity_score: Some(0.9),
    };
    desk.does(ask::finish("a", done()));
    desk.does(Command::AttachDigest { task: id("a"), digest: digest.clone(), tokens: 4 });
    let thinking = desk.plan.task("a").unwrap().spec.thinking.clone().unwrap();
    assert_eq!((thinking.tokens, thinking.digest), (19, Some(digest)));
    assert_eq!(desk.plan.state().tokens_used, 20);
    assert_eq!(desk.status("a"), Status::Done, "a digest changes nothing else");
}

// Replace

fn replaced(desk: &mut Desk, change: impl FnOnce(&mut Draft)) -> Vec<Event> {
    let mut draft = desk.plan.to_draft();
    change(&mut draft);
    desk.does(Command::Replace(Box::new(draft)))
}

#[test]
fn a_replaced_plan_keeps_what_happened_to_tasks_that_ask_the_same() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[]), task("c", &["a", "b"])]));
    desk.does(ask::finish("a", Outcome::Done { result: Some("fine".into()), output: None, evidence: None }));
    desk.does(ask::finish("b", done()));
    desk.does(ask::start("c"));
    replaced(&mut desk, |draft| {
        draft.spec.title = "another".into();
        draft.tasks[0].spec.notes = "seen".into();
        draft.tasks[1].spec.description = "do b otherwise".into();
        // Execution state in the text is ignored.
        draft.tasks[0].state = Default::default();
        draft.state.phase = Phase::Cancelled;
    });
    assert_eq!(desk.standings(), "a:done b:ready c:running");
    assert_eq!(desk.plan.task("a").unwrap().state.result.as_deref(), Some("fine"));
    assert_eq!(desk.plan.spec().title, "another");
    assert_eq!(desk.plan.state().phase, Phase::Active);
}

#[test]
fn a_replaced_plan_has_the_tasks_order_and_parents_of_the_draft() {
    let mut desk = Desk::with(plan_of([
        task("a", &[]),
        task("b", &["a"]),
        task("p", &[]),
        child("x", "p", &[]),
        child("y", "p", &[]),
    ]));
    replaced(&mut desk, |draft| {
        let mut spec = |name: &str| {
            let place = draft.tasks.iter().position(|task| task.spec.id.as_str() == name).unwrap();
            draft.tasks.remove(place).spec
        };
        let (mut a, mut x, mut y, p) = (spec("a"), spec("x"), spec("y"), spec("p"));
        a.parent = Some(id("y"));
        y.parent = None;
        x.depends_on = vec![Dependency::Task(id("n"))];
        x.parent = Some(id("n2"));
        draft.tasks =
            [task("n2", &[]), x, p, y, a, child("n", "p", &[])].into_iter().map(Task::new).collect();
    });
    assert_eq!(order(&desk), "n2 -x p -n y -a");
    assert_eq!(desk.standings(), "n2:blocked x:blocked p:ready n:ready y:ready a:ready");
}

#[test]
fn a_replaced_plan_may_turn_parents_upside_down() {
    let mut desk = Desk::with(plan_of([task("a", &[]), child("b", "a", &[]), child("c", "b", &[])]));
    replaced(&mut desk, |draft| {
        let parents = [Some(id("b")), Some(id("c")), None];
        for (task, parent) in draft.tasks.iter_mut().zip(parents) {
            task.spec.parent = parent;
        }
        draft.tasks.reverse();
    });
    assert_eq!(order(&desk), "c -b --a");
    assert_eq!(desk.plan.counts().total, 1);
}

#[test]
fn a_replaced_plan_drops_nothing_that_runs() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[])]));
    desk.does(ask::start("a"));
    let still_running = Refusal::StillRunning { running: vec!["a".into()] };
    let mut without = desk.plan.to_draft();
    without.tasks.remove(0);
    assert_eq!(desk.refuses(Command::Replace(Box::new(without))), still_running);
    let mut other = desk.plan.to_draft();
    other.tasks[0].spec.description = "do it otherwise".into();
    assert_eq!(desk.refuses(Command::Replace(Box::new(other))), still_running);
    let mut group = desk.plan.to_draft();
    group.tasks[1].spec.parent = Some(id("a"));
    assert_eq!(desk.refuses(Command::Replace(Box::new(group))), still_running);
}

#[test]
fn a_replaced_plan_stays_paused() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[])]));
    desk.does(ask::finish("a", done()));
    desk.does(Command::Pause { reason: "lunch".into() });
    replaced(&mut desk, |draft| {
        draft.tasks.remove(1);
        draft.tasks[0].spec.description = "do it again".into();
    });
    assert_eq!(desk.standings(), "a:ready");
    assert_eq!(desk.plan.state().phase, Phase::Paused);
}

#[test]
fn a_draft_with_problems_replaces_nothing() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &["a"])]));
    let mut draft = desk.plan.to_draft();
    draft.tasks[0].spec.depends_on = vec![Dependency::Task(id("b"))];
    assert!(matches!(desk.refuses(Command::Replace(Box::new(draft))), Refusal::Invalid { .. }));
}

// Planning

fn charge(task: Option<&str>, tokens: i64, call: u64) -> Command {
    Command::ChargeTokens { task: task.map(id), tokens, call }
}

/// Returns the tokens charged to a task and to the plan.
fn tokens(desk: &Desk, task: &str) -> (i64, i64) {
    let thinking = desk.plan.task(task).unwrap().spec.thinking.as_ref();
    (thinking.map_or(0, |thinking| thinking.tokens), desk.plan.state().tokens_used)
}

#[test]
fn a_call_is_charged_once_however_often_it_is_said() {
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    desk.does(charge(Some("a"), 10, 1));
    assert_eq!(desk.does(charge(Some("a"), 10, 1)), []);
    desk.does(charge(None, 4, 2));
    assert_eq!(desk.does(charge(Some("a"), 99, 1)), []);
    assert_eq!(tokens(&desk, "a"), (10, 14));
    desk.does(charge(Some("gone"), 6, 3));
    assert_eq!(tokens(&desk, "a"), (10, 20), "what is gone is the plan's affair");
}

#[test]
fn a_draft_cannot_bring_the_calls_of_another_plan() {
    let mut draft = plan_of([task("a", &[])]);
    draft.state.calls = 9;
    let mut desk = Desk::with(draft);
    desk.does(charge(Some("a"), 10, 1));
    assert_eq!(tokens(&desk, "a"), (10, 10));
}

#[test]
fn a_rollback_takes_the_whole_subtree_and_keeps_the_tokens() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &["a"])]));
    let decompose = |task: &str, children| Command::DecomposeTask {
        task: id(task),
        children,
        reasoning: Some("large".into()),
        tokens: 0,
    };
    desk.does(charge(Some("a"), 1, 1));
    desk.does(decompose("a", vec![task("a1", &[]), task("a2", &["a1"])]));
    desk.does(charge(Some("a1"), 10, 2));
    desk.does(decompose("a1", vec![task("a11", &[])]));
    desk.does(charge(Some("a11"), 100, 3));
    desk.does(ask::finish("a11", done()));
    desk.does(ask::finish("a2", done()));
    assert_eq!(desk.standings(), "a:done a1:done a11:done a2:done b:ready");
    desk.does(Command::RollBackTask { task: id("a"), detach: false });
    assert_eq!(desk.standings(), "a:ready b:blocked");
    assert_eq!(tokens(&desk, "a"), (111, 111));
    let thinking = desk.plan.task("a").unwrap().spec.thinking.clone().unwrap();
    assert_eq!((thinking.refinement, thinking.reasoning), (None, None));
    assert_eq!(desk.does(Command::RollBackTask { task: id("a"), detach: false }), []);
}

#[test]
fn a_rollback_spares_what_runs_and_what_others_wait_for() {
    let draft = plan_of([task("a", &[]), child("a1", "a", &[]), child("a2", "a", &[]), task("b", &["a2"])]);
    let mut desk = Desk::with(draft);
    let roll_back = |detach| Command::RollBackTask { task: id("a"), detach };
    let refused = desk.refuses(roll_back(false));
    assert!(matches!(refused, Refusal::HasDependants { .. }), "{refused}");
    desk.does(ask::start("a1"));
    let refused = desk.refuses(roll_back(true));
    assert!(matches!(refused, Refusal::StillRunning { .. }), "{refused}");
    desk.does(ask::finish("a1", done()));
    desk.does(roll_back(true));
    assert_eq!(desk.standings(), "a:ready b:ready");
}

#[test]
fn a_paused_draft_is_a_draft_again_and_runs_nothing() {
    let mut desk = Desk::made_by(&ada(), plan_of([task("a", &[])]));
    desk.does(Command::Pause { reason: "lunch".into() });
    assert_eq!(desk.plan.state().phase, Phase::Paused);
    desk.does(Command::Resume);
    assert_eq!((desk.plan.state().phase, desk.plan.state().started_at), (Phase::Draft, None));
    desk.does(Command::Activate);
    desk.does(Command::Pause { reason: "lunch".into() });
    desk.does(Command::Resume);
    assert_eq!(desk.plan.state().phase, Phase::Active);
}
