//! Plans that travel between clones through git.

use std::collections::BTreeSet;
use std::sync::Arc;

use waypost_config::{Config, Layer, Origin};
use waypost_core::{
    Actor, ActorKind, Dependency, EffectiveStatus, Phase, Plan, Position, QuestionRequest, TaskChanges,
    TaskId,
};
use waypost_service::{
    AnswerChoice, Caller, ClaimFilter, ClaimOptions, Claimed, EditOp, Guard, Hint, InboxKind, Presence,
    QuestionRef, SecretScan, Service, SharingError, StatusChange, SyncOptions, TaskRef, TaskReport,
};
use waypost_store::SharedScope;
use waypost_testkit::id;
use waypost_text::StatusSign;

use crate::sharing_kit::{Clone, Ground, plan, settle};

/// Two clones that share a plan with two tasks.
fn two() -> (Ground, Clone, Clone) {
    let ground = Ground::new();
    let (a, b) = (ground.clone("a"), ground.clone("b"));
    a.share("p", &["one", "two"]);
    a.sync();
    b.sync();
    (ground, a, b)
}

#[test]
#[ignore = "needs git"]
fn a_shared_plan_arrives_as_a_draft_and_changes_travel_both_ways() {
    let (_ground, a, b) = two();
    assert_eq!(b.task_ids("p"), ["one", "two"]);
    b.note("p", "one", "from b");
    a.done("p", "two", "ready").unwrap();
    settle(&[&a, &b], "p");
    assert_eq!(a.notes("p", "one"), "from b");
    assert_eq!(a.questions(), [""; 0]);
}

#[test]
#[ignore = "needs git"]
fn an_import_is_one_version_and_one_that_brings_nothing_makes_none() {
    let (_ground, a, b) = two();
    let before = b.version("p");
    a.note("p", "one", "1");
    a.note("p", "one", "2");
    a.add("p", "third");
    a.sync();
    let report = b.sync();
    assert_eq!(report.imported, 3, "{report:?}");
    assert_eq!(b.version("p"), before + 1);
    b.sync();
    assert_eq!(b.version("p"), before + 1);
}

#[test]
#[ignore = "needs git"]
fn tasks_that_two_clones_add_at_once_have_different_ids() {
    let (_ground, a, b) = two();
    let (from_a, from_b) = (a.add("p", "by a"), b.add("p", "by b"));
    assert_ne!(from_a, from_b);
    settle(&[&a, &b], "p");
    let ids = a.task_ids("p");
    assert!(ids.contains(&from_a.to_string()) && ids.contains(&from_b.to_string()), "{ids:?}");
    // A number that any clone has given is not given again.
    let next = a.add("p", "later").to_string();
    assert!(next.starts_with("t2-"), "{next}");
}

#[test]
#[ignore = "needs git"]
fn a_question_that_came_while_the_task_ran_here_is_asked_once_the_attempt_is_taken_back() {
    let (_ground, a, b) = two();
    let (p, one) = (plan("p"), id("one"));
    let agent = |name: &str| Caller::new(Actor { kind: ActorKind::Agent, name: name.to_owned() });
    let whole = TaskRef { plan: &p, task: &one, attempt: None, take_over: false, seen: None };
    let asked = |clone: &Clone| {
        let question = |plan: &Plan| plan.task("one").and_then(|task| task.state.question().cloned());
        clone.service.read(&p, question).unwrap().map(|question| question.text)
    };
    a.service.claim(&agent("x"), &p, &one, ClaimOptions::default(), Guard::NONE).unwrap();
    let question = QuestionRequest { text: "Which port?".to_owned(), ..QuestionRequest::default() };
    b.service.claim(&agent("y"), &p, &one, ClaimOptions::default(), Guard::NONE).unwrap();
    b.service.report(&agent("y"), whole, TaskReport::Question(Box::new(question)), Guard::NONE).unwrap();
    b.sync();
    a.sync();
    assert_eq!(asked(&a), None, "the attempt goes on");
    let released = TaskReport::Released { reason: "later".to_owned() };
    a.service.report(&agent("x"), whole, released, Guard::NONE).unwrap();
    a.sync();
    assert_eq!(asked(&a).as_deref(), Some("Which port?"));
}

#[test]
#[ignore = "needs git"]
fn an_answer_reaches_only_the_question_that_was_read_and_the_last_one_holds_everywhere() {
    // The order of records that are made at once is random.
    (0..4).for_each(|_| answer_two_questions());
}

fn answer_two_questions() {
    let (ground, a, b) = two();
    let (p, one) = (plan("p"), id("one"));
    let whole = TaskRef { plan: &p, task: &one, attempt: None, take_over: false, seen: None };
    let ask = |clone: &Clone, name: &str, text: &str| {
        let agent = Caller::new(Actor::agent(name));
        clone.service.claim(&agent, &p, &one, ClaimOptions::default(), Guard::NONE).unwrap();
        let question = QuestionRequest { text: text.to_owned(), ..QuestionRequest::default() };
        clone.service.report(&agent, whole, TaskReport::Question(Box::new(question)), Guard::NONE).unwrap();
    };
    let answer = |clone: &Clone, answer: &str| {
        let person = clone.by.clone().present(Presence::new("terminal"));
        let read = Guard { known_version: Some(clone.version("p")) };
        clone.service.answer(&person, whole, answer, read).unwrap();
    };
    let state = |clone: &Clone| {
        let read = |plan: &Plan| {
            let state = &plan.task("one").unwrap().state;
            let last = state.answers().last().map(|last| (last.question.clone(), last.answer.clone()));
            (state.question().map(|question| question.text.clone()), last)
        };
        clone.service.read(&p, read).unwrap()
    };
    let sync = || (0..3).for_each(|_| [&a, &b].into_iter().for_each(|clone| drop(clone.sync())));
    ask(&a, "x", "Delete the copy?");
    ask(&b, "y", "Drop production?");
    sync();
    // Both are asked, one after the other, the same one everywhere.
    let ((first, none), here) = (state(&a), state(&b));
    assert_eq!((&first, &none), (&here.0, &here.1));
    answer(&a, "yes");
    sync();
    let (second, known) = state(&b);
    assert!(second.is_some() && second != first, "{second:?}");
    assert_eq!(known, Some((first.unwrap(), "yes".to_owned())));
    assert_eq!(state(&a), (second.clone(), known));
    answer(&b, "no");
    answer(&a, "never");
    sync();
    let (left, right) = (state(&a), state(&b));
    assert_eq!(left, right);
    assert_eq!((left.0.as_ref(), left.1.as_ref().map(|(question, _)| question)), (None, second.as_ref()));
    let fresh = ground.clone("c");
    fresh.sync();
    assert_eq!(state(&fresh), left);
}

#[test]
#[ignore = "needs git"]
fn one_field_that_two_clones_changed_is_a_question_that_a_person_answers_for_all() {
    let (_ground, a, b) = two();
    a.note("p", "one", "Use tokio");
    b.note("p", "one", "Use async-std");
    settle(&[&a, &b], "p");
    assert_eq!(a.questions(), ["one notes"]);
    let shown = a.notes("p", "one");
    assert!(["Use tokio", "Use async-std"].contains(&shown.as_str()), "{shown}");
    let agent = Clone { by: Caller::new(Actor::agent("robin")), ..a };
    let refused = agent.resolve("p", Some("one"), "notes", AnswerChoice::Take("a".to_owned()));
    assert!(matches!(refused, Err(SharingError::NeedsPerson { .. })), "{refused:?}");
    let a = Clone { by: Caller::new(Actor::person("a")), ..agent };
    let unknown = a.resolve("p", Some("two"), "notes", AnswerChoice::Keep);
    assert!(matches!(unknown, Err(SharingError::NoSuchQuestion { .. })), "{unknown:?}");
    assert_eq!(a.resolve("p", Some("one"), "notes", AnswerChoice::Take("a".to_owned())).unwrap(), 0);
    assert_eq!(a.notes("p", "one"), "Use tokio");
    settle(&[&a, &b], "p");
    assert_eq!(b.notes("p", "one"), "Use tokio");
    assert_eq!(b.questions(), [""; 0]);
}

#[test]
#[ignore = "needs git"]
fn a_task_that_was_removed_beside_an_edit_stays_with_a_question() {
    let (_ground, a, b) = two();
    a.remove("p", "one").unwrap();
    b.note("p", "one", "still needed");
    settle(&[&a, &b], "p");
    assert_eq!(a.notes("p", "one"), "still needed");
    assert_eq!(a.questions(), ["one removal"]);
    assert_eq!(b.resolve("p", Some("one"), "removal", AnswerChoice::Remove).unwrap(), 0);
    settle(&[&a, &b], "p");
    assert_eq!(a.task_ids("p"), ["two"]);
}

#[test]
#[ignore = "needs git"]
fn a_lost_database_comes_back_from_the_branch_and_a_lost_branch_from_the_database() {
    let (ground, a, b) = two();
    a.note("p", "one", "kept");
    settle(&[&a, &b], "p");
    let text = a.text("p");
    let (database, name) = (b.database.clone(), "b");
    drop(b);
    for ending in ["", "-wal", "-shm"] {
        let _gone = std::fs::remove_file(format!("{}{ending}", database.display()));
    }
    let b = ground.open(name);
    b.sync();
    assert_eq!(b.text("p"), text);
    // Everybody's branch is deleted.
    for clone in [&a, &b] {
        ground.git(&clone.path, &["update-ref", "-d", "refs/heads/waypost"]);
        ground.git(&clone.path, &["update-ref", "-d", "refs/remotes/origin/waypost"]);
    }
    ground.git(&ground.bare(), &["update-ref", "-d", "refs/heads/waypost"]);
    let records = a.record_ids("p");
    settle(&[&a, &b], "p");
    assert_eq!(b.record_ids("p"), records);
}

#[test]
#[ignore = "needs git"]
fn a_plan_that_is_what_the_branch_once_said_is_taken_up_with_what_was_done_since() {
    let (ground, a, b) = two();
    let c = ground.clone("c");
    c.create("p", &["one", "two"]);
    a.note("p", "one", "from a");
    c.note("p", "two", "from c");
    settle(&[&a, &b], "p");
    let aside = c.sync().kept_aside;
    assert!(aside[0].reason.contains("it is not shared"), "{aside:?}");
    c.service.share(&c.by, &c.shared, &[plan("p")]).unwrap();
    settle(&[&c, &a, &b], "p");
    for clone in [&a, &b, &c] {
        assert_eq!((clone.notes("p", "one"), clone.notes("p", "two")), ("from a".into(), "from c".into()));
    }
    assert_eq!(b.questions(), [""; 0]);
    // Another plan of the same id is none of them.
    let d = ground.clone("d");
    d.create("p", &["other"]);
    d.sync();
    let refused = d.service.share(&d.by, &d.shared, &[plan("p")]);
    assert!(matches!(refused, Err(SharingError::Taken(_))), "{refused:?}");
}

#[test]
#[ignore = "needs git"]
fn a_plan_that_was_cancelled_here_and_opened_elsewhere_is_offered_to_nobody_and_started_by_a_person() {
    let (_ground, a, b) = two();
    let p = plan("p");
    a.service.finish(&a.by, &p, Phase::Cancelled, "no money", Guard::NONE).unwrap();
    a.sync();
    b.sync();
    let there = b.by.clone().present(Presence::new("terminal"));
    b.service.retry_task(&there, &p, &id("one"), Guard::NONE).unwrap();
    settle(&[&a, &b], "p");
    let next = ClaimFilter { plan: Some(&p), queue: None };
    let agent = Caller::new(Actor::agent("z"));
    let Claimed::Nothing { reasons } = a.service.claim_next(&agent, next, None).unwrap() else {
        panic!("an agent started it");
    };
    assert!(
        reasons[0].contains("cancelled it") && reasons[0].contains("a person has to start it"),
        "{reasons:?}"
    );
    let person = a.by.clone().present(Presence::new("terminal"));
    let claimed = a.service.claim_next(&person, next, None).unwrap();
    assert!(matches!(claimed, Claimed::Taken { .. }), "{claimed:?}");
}

#[test]
#[ignore = "needs git"]
fn a_copied_folder_draws_another_tag_and_its_unpublished_versions_are_not_made_twice() {
    let (ground, a, b) = two();
    a.add("p", "before the copy");
    let path = ground.root.join("copy");
    drop(a);
    let copied =
        std::process::Command::new("cp").arg("-r").arg(ground.root.join("a")).arg(&path).status().unwrap();
    assert!(copied.success());
    let (a, c) = (ground.open("a"), ground.open("copy"));
    c.sync();
    a.sync();
    let (by_a, by_c) = (a.add("p", "by a"), c.add("p", "by the copy"));
    assert_ne!(by_a, by_c);
    settle(&[&a, &b, &c], "p");
    let ids = a.task_ids("p");
    assert_eq!(ids.len(), 5, "{ids:?}");
}

#[test]
#[ignore = "needs git"]
fn plans_from_a_remote_that_nobody_trusted_are_shown_and_offered_to_no_agent() {
    let (ground, a, _b) = two();
    let mut c = ground.clone("c");
    c.shared.trusted = false;
    assert_eq!(c.sync().withheld, [plan("p")]);
    assert_eq!(c.task_ids("p"), ["one", "two"]);
    let agent = Caller::new(Actor::agent("robin"));
    let by_name = ClaimFilter { plan: Some(&plan("p")), ..ClaimFilter::default() };
    let refused = c.service.claim_next(&agent, by_name, None).unwrap_err();
    assert_eq!(refused.code(), "needs_person", "{refused}");
    assert_eq!(refused.hint(), waypost_service::Hint::TrustRemote);
    let nothing = c.service.claim_next(&agent, ClaimFilter::default(), None).unwrap();
    assert!(matches!(nothing, Claimed::Nothing { .. }), "{nothing:?}");
    // Nor does an agent report on a task of it, change or start the plan; a person does all of it.
    let (p, one) = (plan("p"), id("one"));
    let whole = TaskRef { plan: &p, task: &one, attempt: None, take_over: false, seen: None };
    let done = || TaskReport::Done { result: Some("made".to_owned()), output: None, sure: true };
    let comment = || vec![EditOp::CommentTask { task: one.clone(), text: "seen".to_owned() }];
    let refused = [
        c.service.claimable(&agent, by_name, 5).map(drop).unwrap_err(),
        c.service.claim(&agent, &p, &one, ClaimOptions::default(), Guard::NONE).map(drop).unwrap_err(),
        c.service.report(&agent, whole, done(), Guard::NONE).unwrap_err(),
        c.service.edit(&agent, &p, comment(), Guard::NONE).unwrap_err(),
        c.service.activate(&agent, &p, Guard::NONE).unwrap_err(),
    ];
    for error in refused {
        assert_eq!((error.code(), error.hint()), ("needs_person".to_owned(), Hint::TrustRemote), "{error}");
    }
    assert_eq!(c.service.read(&p, |plan| plan.state().phase).unwrap(), Phase::Draft);
    assert_eq!(c.service.claimable(&c.by, by_name, 5).unwrap().tasks.len(), 2);
    c.service.edit(&c.by, &p, comment(), Guard::NONE).unwrap();
    assert!(c.service.release_withheld(&agent, &c.shared).is_err());
    assert_eq!(c.service.release_withheld(&c.by, &c.shared).unwrap(), [plan("p")]);
    let taken = c.service.claim_next(&agent, ClaimFilter::default(), None).unwrap();
    assert!(matches!(taken, Claimed::Taken { .. }), "{taken:?}");
    // What this clone has trusted once is not withheld again, and its own plans never are.
    c.shared.trusted = true;
    a.note("p", "two", "more");
    a.sync();
    assert_eq!(c.sync().withheld, []);
}

#[test]
#[ignore = "needs git"]
fn whom_only_another_clone_names_is_not_shown_as_proved() {
    let (_ground, a, b) = two();
    let comment = |clone: &Clone, text: &str| {
        clone.edit("p", EditOp::CommentTask { task: id("one"), text: text.to_owned() }).unwrap();
    };
    comment(&a, "run it");
    comment(&b, "no");
    a.note("p", "two", "first");
    b.note("p", "two", "second");
    a.service.hold_tasks(&a.by, &plan("p"), &[id("one")], "wait", Guard::NONE).unwrap();
    settle(&[&a, &b], "p");
    let authors = |clone: &Clone| {
        let read = |plan: &waypost_core::Plan| {
            let state = &plan.task("one").unwrap().state;
            let comments =
                state.comments().iter().map(|comment| (comment.text.clone(), comment.by.to_string()));
            let mut found: Vec<_> = comments.collect();
            found.extend(state.held().map(|hold| (hold.reason.clone(), hold.by.to_string())));
            found.sort();
            found
        };
        clone.service.read(&plan("p"), read).unwrap()
    };
    let expected = |no: &str, run: &str, wait: &str| {
        [("no", no), ("run it", run), ("wait", wait)].map(|(text, by)| (text.to_owned(), by.to_owned()))
    };
    assert_eq!(authors(&a), expected("person:b (unverified)", "person:a", "person:a"));
    assert_eq!(authors(&b), expected("person:b", "person:a (unverified)", "person:a (unverified)"));
    let open = b.service.open_questions(None).unwrap().remove(0).questions;
    let mut versions: Vec<_> =
        open[0].conflict.versions.iter().map(|version| version.by.to_string()).collect();
    versions.sort();
    assert_eq!(versions, ["person:a (unverified)", "person:b"]);
    let text = &open[0].conflict.text;
    assert!(text.contains("person:a (unverified) (") && text.contains("person:b ("), "{text}");
    // It is known now, and the next import does not bring it again.
    let before = authors(&b);
    a.note("p", "one", "more");
    settle(&[&a, &b], "p");
    assert_eq!(authors(&b), before);
}

#[test]
#[ignore = "needs git"]
fn an_agent_ends_what_it_had_claimed_before_the_plan_was_withheld() {
    let (_ground, a, mut b) = two();
    let agent = Caller::new(Actor::agent("robin"));
    let by_name = ClaimFilter { plan: Some(&plan("p")), ..ClaimFilter::default() };
    let taken = b.service.claim_next(&agent, by_name, None).unwrap();
    assert!(matches!(taken, Claimed::Taken { task, .. } if task == id("one")));
    b.shared.trusted = false;
    a.note("p", "two", "more");
    a.sync();
    assert_eq!(b.sync().withheld, [plan("p")]);
    let report = |task: &TaskId| {
        let whole = TaskRef { plan: &plan("p"), task, attempt: None, take_over: false, seen: None };
        let done = TaskReport::Done { result: Some("made".to_owned()), output: None, sure: true };
        b.service.report(&agent, whole, done, Guard::NONE)
    };
    assert!(report(&id("one")).unwrap().changed);
    assert_eq!(report(&id("two")).unwrap_err().hint(), Hint::TrustRemote);
}

#[test]
#[ignore = "needs git"]
fn what_nobody_trusts_starts_no_machine_work_of_a_plan_that_runs_here() {
    let ground = Ground::new();
    let (a, mut b) = (ground.clone("a"), ground.clone("b"));
    b.shared.trusted = false;
    let mut deploy = waypost_testkit::task("deploy", &["build"]);
    let text = "[executors.shell]\nkind = \"process\"\ncommand = [\"true\"]\n";
    let layer = Layer { origin: Origin::User, name: "test".to_owned(), text: text.to_owned() };
    let branch = b.shared.clone();
    b.service = Service::new(Arc::clone(b.service.plans()), Arc::new(Config::load(&[layer], []).unwrap()))
        .with_shared_branch(Arc::new(move || Ok(branch.clone())));
    let (executor, inputs) = ("shell".to_owned(), waypost_core::Json::empty_object());
    deploy.work = Some(Box::new(waypost_core::Work { executor, inputs, shape: None }));
    // What waits only for an end is let go by any.
    let mut clean = waypost_testkit::task("clean", &["probe"]);
    (clean.work, clean.when) = (deploy.work.clone(), waypost_core::DependencyRule::AllFinished);
    // So is what waits for a group whose last task is moved away.
    let mut tidy = waypost_testkit::task("tidy", &["group"]);
    tidy.work.clone_from(&deploy.work);
    let by_hand = ["build", "probe", "group", "ended", "open"].map(|task| {
        let parent = matches!(task, "ended" | "open").then(|| id("group"));
        waypost_core::TaskSpec { parent, ..waypost_testkit::task(task, &[]) }
    });
    let work = deploy.work.clone();
    let draft = waypost_testkit::plan_of(by_hand.into_iter().chain([deploy, clean, tidy]));
    let options = waypost_service::CreateOptions { id: Some(plan("p")), ..Default::default() };
    b.service.create(&b.by, draft, options).unwrap();
    b.service.share(&b.by, &b.shared, &[plan("p")]).unwrap();
    // Another plan, which is not shared, waits for this one.
    let there = waypost_core::ExternalTaskRef { agent: None, plan: Some(plan("p")), task: id("build") };
    let mut after = waypost_testkit::task("after", &[]);
    (after.work, after.depends_on) = (work, vec![Dependency::External(Box::new(there))]);
    let options = waypost_service::CreateOptions { id: Some(plan("own")), ..Default::default() };
    b.service.create(&b.by, waypost_testkit::plan_of([after]), options).unwrap();
    let person = b.by.clone().present(Presence::new("terminal"));
    for name in ["p", "own"] {
        let seen = b.service.preview(&plan(name)).unwrap().seen();
        b.service.approve(&person, &plan(name), seen, "", Guard::NONE).unwrap();
    }
    b.done("p", "ended", "well").unwrap();
    b.sync();
    a.sync();
    let status = StatusChange::Skipped { reason: None };
    a.edit("p", EditOp::SetStatus { task: id("build"), status, take_over: true }).unwrap();
    let status = StatusChange::Cancelled { reason: "no".to_owned() };
    a.edit("p", EditOp::SetStatus { task: id("probe"), status, take_over: true }).unwrap();
    let away = EditOp::MoveTask { task: id("open"), parent: Some(None), position: Position::Last };
    a.edit("p", away).unwrap();
    a.sync();
    b.sync();
    let held = |name: &str, task: &str| {
        let by = |plan: &Plan| plan.task(task).unwrap().state.held().map(|hold| hold.by.to_string());
        b.service.read(&plan(name), by).unwrap()
    };
    for (name, task) in [("p", "deploy"), ("p", "clean"), ("p", "tidy"), ("own", "after")] {
        assert_eq!(held(name, task).as_deref(), Some("system:import"), "{name}/{task}");
    }
}

#[test]
#[ignore = "needs git"]
fn a_plan_of_the_same_name_that_is_not_shared_is_left_alone() {
    let (ground, _a, _b) = two();
    let c = ground.clone("c");
    let draft = waypost_testkit::plan_of([waypost_testkit::task("own", &[])]);
    let options = waypost_service::CreateOptions { id: Some(plan("p")), ..Default::default() };
    c.service.create(&c.by, draft, options).unwrap();
    let report = c.sync();
    assert_eq!(report.kept_aside.len(), 1, "{report:?}");
    assert_eq!(c.sync().kept_aside, report.kept_aside, "each sync says so");
    assert_eq!(c.task_ids("p"), ["own"]);
    let refused = c.service.share(&c.by, &c.shared, &[plan("p")]);
    assert!(matches!(refused, Err(SharingError::Taken(_))), "{refused:?}");
}

#[test]
#[ignore = "needs git"]
fn hostile_lines_are_named_and_the_others_count() {
    let (ground, a, b) = two();
    let folder = ground.root.join("evil");
    ground.git(&ground.root, &["clone", "--quiet", "--branch", "waypost", "origin.git", "evil"]);
    let plans = folder.join("plans/p");
    let file = std::fs::read_dir(&plans).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&file).unwrap();
    let forged = text.replacen("\"one\"", "\"own\"", 1);
    assert_ne!(text, forged);
    std::fs::write(
        plans.join("000009-bad-000000000000.jsonl"),
        format!("<<<<<<< ours\n{forged}\n{{\"v\":1\n"),
    )
    .unwrap();
    std::fs::create_dir_all(folder.join("plans/other")).unwrap();
    std::fs::write(folder.join("plans/other/000001-bad-000000000001.jsonl"), &text).unwrap();
    ground.git(&folder, &["add", "."]);
    ground.git(&folder, &["commit", "--quiet", "-m", "evil"]);
    ground.git(&folder, &["push", "--quiet"]);
    let before = a.text("p");
    a.note("p", "two", "meanwhile");
    let report = a.sync();
    assert!(report.findings.len() >= 4, "{:?}", report.findings);
    let again = BTreeSet::from_iter(a.sync().findings);
    assert_eq!(again, BTreeSet::from_iter(report.findings.clone()), "each sync names what stands there");
    assert!(
        report.findings.iter().any(|one| one.contains("000009-bad-000000000000.jsonl:1: ")),
        "{:?}",
        report.findings
    );
    assert!(
        report.findings.iter().any(|one| one.contains("plans/other/") && one.contains("plan p")),
        "{:?}",
        report.findings
    );
    b.sync();
    assert_eq!(b.notes("p", "two"), "meanwhile");
    assert_ne!(a.text("p"), before);
    assert_eq!(a.text("p"), b.text("p"));
    // Nothing of this clone is wrong because of what others pushed.
    let checked = a.service.check_sharing(&a.shared).unwrap();
    assert!(checked.findings.is_empty() && checked.notes.len() >= 4, "{checked:?}");
}

#[test]
#[ignore = "needs git"]
fn a_plan_that_is_no_longer_shared_stays_and_can_be_shared_again() {
    let (_ground, a, b) = two();
    a.service.unshare(&a.by, &[plan("p")]).unwrap();
    a.note("p", "one", "private");
    b.note("p", "two", "by b");
    b.sync();
    assert_eq!(a.sync().kept_aside.len(), 1);
    assert_eq!((a.notes("p", "two").as_str(), b.notes("p", "one").as_str()), ("", ""));
    a.service.share(&a.by, &a.shared, &[plan("p")]).unwrap();
    settle(&[&a, &b], "p");
    assert_eq!((a.notes("p", "two").as_str(), b.notes("p", "one").as_str()), ("by b", "private"));
}

#[test]
#[ignore = "needs git"]
fn only_a_person_shares_a_plan() {
    let (_ground, a, _b) = two();
    let agent = Caller::new(Actor::agent("robin"));
    assert_eq!(agent.actor.kind, ActorKind::Agent);
    let refused = a.service.share(&agent, &a.shared, &[plan("p")]);
    assert!(matches!(refused, Err(SharingError::NeedsPerson { .. })), "{refused:?}");
    assert!(matches!(a.service.unshare(&agent, &[plan("p")]), Err(SharingError::NeedsPerson { .. })));
}

#[test]
#[ignore = "needs git"]
fn offline_nothing_is_lost_and_the_next_sync_sends_it() {
    let (ground, a, b) = two();
    let (bare, away) = (ground.bare(), ground.root.join("away"));
    std::fs::rename(&bare, &away).unwrap();
    a.note("p", "one", "offline");
    let report = a.sync();
    assert!(report.remote_problem.is_some() && !report.pushed, "{report:?}");
    assert_eq!(report.published, 1);
    std::fs::rename(&away, &bare).unwrap();
    settle(&[&a, &b], "p");
    assert_eq!(b.notes("p", "one"), "offline");
}

#[test]
#[ignore = "needs git"]
fn steps_that_were_killed_are_done_again() {
    let (_ground, a, b) = two();
    a.note("p", "one", "x");
    a.service.sync(&a.shared, &SyncOptions::default()).unwrap();
    // As if the process had been killed between the commit of the branch and the note of it in the store.
    let records = a.records("p");
    let lines: Vec<(String, String)> =
        records.records().map(|record| (record.id().to_string(), record.to_line())).collect();
    let store = a.service.plans().store();
    let p = plan("p");
    store
        .write(&mut |write| {
            for (id, line) in &lines {
                let row = waypost_store::Record::Shared(SharedScope::Unpublished(&p), id, Some(line));
                write.put(row)?;
            }
            write.put(waypost_store::Record::Shared(SharedScope::Clone, "branch", None))
        })
        .unwrap();
    let report = a.sync();
    assert_eq!(report.published, 0, "the branch itself says what it holds: {report:?}");
    settle(&[&a, &b], "p");
}

#[test]
#[ignore = "needs git"]
fn a_plan_with_what_looks_like_a_secret_is_shared_only_on_request() {
    let ground = Ground::new();
    let a = ground.clone("a");
    let mut draft = waypost_testkit::plan_of([waypost_testkit::task("one", &[])]);
    draft.tasks[0].spec.notes = "use ghp_0123456789abcdefABCDEF0123 for it".to_owned();
    let options = waypost_service::CreateOptions { id: Some(plan("p")), ..Default::default() };
    a.service.create(&a.by, draft, options).unwrap();
    let refused = a.service.share(&a.by, &a.shared, &[plan("p")]).unwrap_err();
    assert!(refused.to_string().starts_with("p/one notes (ghp_…) may hold a secret"), "{refused}");
    assert_eq!((refused.code().as_str(), a.tip()), ("secrets", None));
    let add = vec!["ghp_0123456789abcdefABCDEF0123".to_owned()];
    a.edit("p", EditOp::LabelTask { task: id("one"), labels: None, add, remove: Vec::new() }).unwrap();
    let refused = a.service.share(&a.by, &a.shared, &[plan("p")]).unwrap_err().to_string();
    assert!(refused.contains("p/one notes (ghp_…)") && refused.contains("p/one labels (ghp_…)"), "{refused}");
    let shared = a.service.share_with(&a.by, &a.shared, &[plan("p")], SecretScan::Allow).unwrap();
    assert_eq!(shared.plans, [plan("p")]);
}

#[test]
#[ignore = "needs git"]
fn what_neither_this_clone_nor_its_trusted_remote_wrote_is_withheld_and_not_pushed() {
    let (ground, a, b) = two();
    let stranger = Ground::new();
    let evil = stranger.clone("evil");
    evil.share("evil", &["do this"]);
    evil.sync();
    let theirs = evil.path.to_str().unwrap();
    // Once on the local branch of a clone, once by name.
    ground.git(&a.path, &["fetch", "--quiet", theirs, "+refs/heads/waypost:refs/heads/waypost"]);
    ground.git(&b.path, &["fetch", "--quiet", theirs, "refs/heads/waypost:refs/heads/stranger"]);
    let reports = [
        a.sync(),
        b.service
            .sync(&b.shared, &SyncOptions { fetch: true, push: true, from: Some("stranger".to_owned()) })
            .unwrap(),
    ];
    for (clone, report) in [&a, &b].into_iter().zip(reports) {
        assert_eq!((report.strange, report.withheld), (vec![plan("evil")], vec![plan("evil")]));
        let agent = Caller::new(Actor::agent("robin"));
        let by_name = ClaimFilter { plan: Some(&plan("evil")), ..ClaimFilter::default() };
        assert!(clone.service.claim_next(&agent, by_name, None).is_err());
    }
    let bare = ground.bare();
    let files = ground.git(&bare, &["ls-tree", "-r", "--name-only", "waypost"]);
    assert!(!files.contains("plans/evil"), "{files}");
    // What comes from the remote is still merged, and a person can accept the rest.
    assert_eq!(a.service.release_withheld(&a.by, &a.shared).unwrap(), [plan("evil")]);
    let report = a.sync();
    assert!(report.pushed && report.strange.is_empty(), "{report:?}");
}

#[test]
#[ignore = "needs git"]
fn another_reference_gets_all_records() {
    let (ground, mut a, b) = two();
    a.note("p", "one", "before");
    a.sync();
    a.shared.name = waypost_git::RefName::new("refs/heads/other").unwrap();
    a.sync();
    a.note("p", "two", "after");
    a.sync();
    let mut b = b;
    b.shared.name = a.shared.name.clone();
    b.sync();
    b.sync();
    assert_eq!((b.notes("p", "one").as_str(), b.notes("p", "two").as_str()), ("before", "after"));
    let fresh = ground.clone("fresh");
    let fresh = Clone {
        shared: waypost_service::SharedBranch { name: a.shared.name.clone(), ..fresh.shared.clone() },
        ..fresh
    };
    fresh.sync();
    assert_eq!(fresh.notes("p", "one"), "before");
}

#[test]
#[ignore = "needs git"]
fn an_answer_names_what_was_read_and_answers_nothing_else() {
    let (_ground, a, b) = two();
    a.note("p", "one", "Use tokio");
    b.note("p", "one", "Use async-std");
    settle(&[&a, &b], "p");
    let question = |clone: &Clone| clone.service.open_questions(None).unwrap()[0].questions[0].clone();
    let read = question(&a);
    assert_eq!(read.digest, question(&b).digest, "the same question in every clone");
    b.note("p", "two", "of something else");
    settle(&[&a, &b], "p");
    assert_eq!(read.digest, question(&a).digest, "other changes do not matter");
    // A third clone writes a third value without knowing of the others.
    let answer = |clone: &Clone, seen: &str| {
        let name = plan("p");
        let of = QuestionRef { plan: &name, task: None, subject: None, seen: Some(seen) };
        let choice = AnswerChoice::Take("a".to_owned());
        clone.service.resolve_question(&clone.by, &clone.shared, of, &choice)
    };
    let before = a.version("p");
    let wrong = answer(&a, &format!("sha256:{}", "0".repeat(64)));
    assert!(matches!(wrong, Err(SharingError::QuestionChanged(_))), "{wrong:?}");
    assert_eq!((a.version("p"), a.questions()), (before, vec!["one notes".to_owned()]));
    assert_eq!(answer(&a, &read.digest).unwrap().questions, 0);
    let again = answer(&a, &read.digest);
    assert!(matches!(again, Err(SharingError::QuestionChanged(_))), "it was answered: {again:?}");
}

#[test]
#[ignore = "needs git"]
fn a_store_that_serves_two_repositories_sends_each_its_own_plans() {
    let (here, elsewhere) = (Ground::new(), Ground::new());
    let mut a = here.clone("a");
    let mut b = elsewhere.clone("b");
    a.shared.home = Some(a.shared.address.clone());
    b.shared.home = Some(b.shared.address.clone());
    a.share("p", &["one"]);
    a.sync();
    // The same store, in another repository.
    let b = Clone { service: a.service.clone(), database: a.database.clone(), ..b };
    b.share("q", &["two"]);
    b.sync();
    a.sync();
    let listed = |ground: &Ground| ground.git(&ground.bare(), &["ls-tree", "-r", "--name-only", "waypost"]);
    assert!(listed(&here).contains("plans/p/") && !listed(&here).contains("plans/q/"));
    assert!(listed(&elsewhere).contains("plans/q/") && !listed(&elsewhere).contains("plans/p/"));
}

#[test]
#[ignore = "needs git"]
fn a_record_of_a_newer_waypost_is_named_by_every_sync_and_stops_nothing() {
    let (ground, a, b) = two();
    let root = a.records("p").heads()[0].to_string();
    let content = format!(
        "{{\"v\":2,\"plan\":\"p\",\"clock\":2,\"parents\":[\"{root}\"],\"at\":\"2026-11-19T00:57:20.122901Z\",\
         \"by\":\"person:eve\",\"from\":\"new\",\"do\":[{{\"op\":\"teleport\"}}]}}"
    );
    let wrong =
        format!("{},\"id\":\"{}\",\"sig\":null}}", content.strip_suffix('}').unwrap(), "0".repeat(26));
    let error = waypost_operation::Record::parse(wrong.as_bytes()).unwrap_err();
    let waypost_operation::RecordError::WrongId { found, .. } = error else { panic!("{error}") };
    let line = wrong.replace(&"0".repeat(26), &found.to_string());
    ground.git(&ground.root, &["clone", "--quiet", "--branch", "waypost", "origin.git", "newer"]);
    let folder = ground.root.join("newer");
    std::fs::write(folder.join("plans/p/000002-new-000000000000.jsonl"), line + "\n").unwrap();
    ground.git(&folder, &["add", "."]);
    ground.git(&folder, &["commit", "--quiet", "-m", "newer"]);
    ground.git(&folder, &["push", "--quiet"]);
    for _ in 0..2 {
        let report = a.sync();
        assert_eq!(report.findings.len(), 1, "{report:?}");
        assert!(report.findings[0].contains("1 record of a newer Waypost"), "{report:?}");
    }
    a.note("p", "one", "still travels");
    assert_eq!(a.sync().published, 1);
    b.sync();
    assert_eq!(b.notes("p", "one"), "still travels");
    assert!(b.records("p").contains(found), "it is passed on");
}

#[test]
#[ignore = "needs git"]
fn open_questions_come_in_pages_and_stand_in_the_inbox_and_in_the_status_of_the_plan() {
    let (_ground, a, b) = two();
    for clone in [&a, &b] {
        for task in ["one", "two"] {
            clone.note("p", task, &format!("by {}", clone.by.actor.name));
        }
    }
    b.done("p", "two", "ready").unwrap();
    let status = StatusChange::Failed { error: "no disk".to_owned() };
    a.edit("p", EditOp::SetStatus { task: id("two"), status, take_over: true }).unwrap();
    settle(&[&a, &b], "p");
    assert_eq!(a.questions().len(), 3, "{:?}", a.questions());
    let page = |after: Option<&str>| a.service.question_page(None, after, 2).unwrap();
    let first = page(None);
    assert_eq!((first.questions.len(), first.total, first.next.is_some()), (2, 3, true));
    let second = page(first.next.as_deref());
    assert_eq!((second.questions.len(), second.total, second.next), (1, 3, None));
    assert!(!first.questions.contains(&second.questions[0]));
    assert!(a.service.question_page(None, Some("nothing"), 2).is_err(), "no cursor");
    assert_eq!(a.service.question_count(&plan("p")).unwrap(), 3);
    // The plan arrived as a draft here, or failed; a person is asked nevertheless.
    let inbox = a.service.inbox().unwrap();
    let conflicts: Vec<_> = inbox.items.iter().filter(|item| item.kind == InboxKind::Conflict).collect();
    assert_eq!((conflicts.len(), inbox.totals[&InboxKind::Conflict]), (3, 3), "{inbox:?}");
    assert_eq!(conflicts[0].digest, Some(first.questions[0].question.digest.clone()));
    let statuses = a.service.plan_statuses().unwrap();
    let status = a.service.read(&plan("p"), |plan| statuses.of_plan(plan)).unwrap();
    assert_eq!(
        (status.sign, status.label.as_str(), status.needs_you),
        (StatusSign::Asking, "3 questions", true)
    );
    // What clones ended differently waits for a person, and no agent gets around that.
    let standing = a.service.read(&plan("p"), |plan| plan.effective_status("two")).unwrap();
    assert_eq!(standing, Some(EffectiveStatus::Disputed));
    let counts = a.service.read(&plan("p"), waypost_core::Plan::effective_counts).unwrap();
    assert_eq!((counts.disputed, counts.held), (1, 0));
    for by in [Caller::new(Actor::agent("robin")), a.by.clone()] {
        let refused = a.service.unhold_tasks(&by, &plan("p"), &[id("two")], Guard::NONE).unwrap_err();
        assert!(refused.to_string().contains("the answer to that question lifts its hold"), "{refused}");
    }
    for subject in ["notes", "outcome"] {
        a.resolve("p", Some("two"), subject, AnswerChoice::Take("b".to_owned())).unwrap();
    }
    a.resolve("p", Some("one"), "notes", AnswerChoice::Text("both".to_owned())).unwrap();
    assert!(a.service.inbox().unwrap().items.iter().all(|item| item.kind != InboxKind::Conflict));
    assert_eq!(page(None).total, 0);
}

#[test]
#[ignore = "needs git"]
fn a_remote_that_refuses_pushes_is_named_until_it_takes_them() {
    use std::os::unix::fs::PermissionsExt as _;
    let (ground, a, b) = two();
    let hook = ground.bare().join("hooks/pre-receive");
    std::fs::write(&hook, "#!/bin/sh\necho protected by the team\nexit 1\n").unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    a.note("p", "one", "waits");
    let report = a.sync();
    assert!(!report.pushed && report.remote_problem.is_some(), "{report:?}");
    assert_eq!((report.waiting, a.sync().waiting), (1, 1), "also when nothing is published any more");
    let backlog = a.service.sharing_backlog().unwrap();
    assert_eq!((backlog.problem.as_ref(), backlog.waiting), (report.remote_problem.as_ref(), 1));
    assert!(backlog.since.is_some());
    assert_eq!(a.service.sharing_status().unwrap().remote_problem, report.remote_problem);
    std::fs::remove_file(&hook).unwrap();
    assert!(a.sync().sent);
    assert_eq!(a.service.sharing_status().unwrap().remote_problem, None);
    b.sync();
    assert_eq!(b.notes("p", "one"), "waits");
}

#[test]
#[ignore = "needs git"]
fn a_shallow_clone_has_the_whole_plan_and_writes_to_it() {
    let (ground, a, _b) = two();
    a.note("p", "one", "1");
    a.sync();
    let address = format!("file://{}", ground.bare().display());
    ground.git(&ground.root, &["clone", "--quiet", "--depth=1", &address, "shallow"]);
    let shallow = ground.open("shallow");
    shallow.sync();
    assert_eq!(shallow.notes("p", "one"), "1");
    shallow.note("p", "two", "from the shallow clone");
    settle(&[&a, &shallow], "p");
    assert_eq!(a.notes("p", "two"), "from the shallow clone");
}

#[test]
#[ignore = "needs git"]
fn a_person_s_edit_that_knows_both_values_settles_the_question_and_an_agent_s_does_not() {
    let (_ground, mut a, b) = two();
    a.note("p", "one", "Use tokio");
    b.note("p", "one", "Use async-std");
    settle(&[&a, &b], "p");
    let person = std::mem::replace(&mut a.by, Caller::new(Actor::agent("robin")));
    a.note("p", "one", "Use threads");
    a.note("p", "one", "Use processes");
    settle(&[&a, &b], "p");
    let asked = b.service.open_questions(Some(&plan("p"))).unwrap().remove(0).questions;
    let mut values: Vec<&str> = asked[0].conflict.versions.iter().map(|one| one.value.as_str()).collect();
    values.sort_unstable();
    assert_eq!(values, ["Use async-std", "Use processes", "Use tokio"]);
    a.by = person;
    a.note("p", "one", "Use both");
    assert_eq!(a.service.question_count(&plan("p")).unwrap(), 0);
    assert_eq!(a.service.inbox().unwrap().totals.get(&InboxKind::Conflict), None);
}

#[test]
#[ignore = "needs git"]
fn no_agent_changes_the_order_or_the_work_that_a_person_is_asked_about() {
    let (_ground, mut a, b) = two();
    let on = |task: &[&str]| TaskChanges {
        depends_on: Some(task.iter().map(|task| Dependency::Task(id(task))).collect()),
        ..TaskChanges::default()
    };
    a.revise("p", "one", on(&["two"])).unwrap();
    b.revise("p", "two", on(&["one"])).unwrap();
    let group = a.add("p", "group");
    settle(&[&a, &b], "p");
    let kid = a.add("p", "kid");
    let (parent, position) = (Some(Some(group.clone())), waypost_core::Position::Last);
    a.edit("p", EditOp::MoveTask { task: kid.clone(), parent, position }).unwrap();
    let (executor, inputs) = ("shell".to_owned(), waypost_core::Json::empty_object());
    let work = Some(Some(waypost_core::Work { executor, inputs, shape: None }));
    b.revise("p", group.as_str(), TaskChanges { work, ..TaskChanges::default() }).unwrap();
    settle(&[&a, &b], "p");
    let asked = a.service.open_questions(Some(&plan("p"))).unwrap().remove(0).questions;
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked.iter().any(|asked| asked.conflict.versions[0].value.contains("shell")), "{asked:?}");
    let person = std::mem::replace(&mut a.by, Caller::new(Actor::agent("robin")));
    // One of them depends on the other; that the other depends on it, too, is set aside.
    let refused: Vec<String> = ["one", "two"]
        .iter()
        .filter_map(|task| Some(a.revise("p", task, on(&[])).err()?.to_string()))
        .collect();
    assert!(matches!(&refused[..], [one] if one.contains("only a person")), "{refused:?}");
    assert!(a.remove("p", kid.as_str()).is_err());
    assert_eq!(a.service.question_count(&plan("p")).unwrap(), 2);
    a.by = person;
    ["one", "two"].iter().for_each(|task| a.revise("p", task, on(&[])).unwrap());
    assert_eq!(a.service.question_count(&plan("p")).unwrap(), 1);
}

#[test]
#[ignore = "needs git"]
fn a_copied_store_names_no_task_before_it_has_drawn_another_tag() {
    let (_ground, a, _b) = two();
    let tag = a.service.shared_tag(&plan("p")).unwrap();
    a.service.note_place(|| a.shared.place.clone()).unwrap();
    assert_eq!(a.service.shared_tag(&plan("p")).unwrap(), tag, "it is where it was");
    a.add("p", "before the copy");
    a.service.note_place(|| "another machine".to_owned()).unwrap();
    assert_ne!(a.service.shared_tag(&plan("p")).unwrap(), tag);
    let from: Vec<String> =
        a.records("p").records().filter_map(|one| Some(one.known()?.from().to_string())).collect();
    assert!(
        from.iter().all(|from| Some(from) == tag.as_ref()),
        "what was written before keeps the tag: {from:?}"
    );
}

#[test]
#[ignore = "needs git"]
fn a_task_that_is_claimed_in_another_clone_is_offered_last() {
    let (_ground, a, b) = two();
    let agent = Caller::new(Actor::agent("zed"));
    let filter = ClaimFilter { plan: Some(&plan("p")), ..ClaimFilter::default() };
    let taken = a.service.claim_next(&agent, filter, None).unwrap();
    assert!(matches!(taken, Claimed::Taken { task, .. } if task == id("one")));
    a.sync();
    b.sync();
    // It runs in one of them, which is nobody else's state.
    assert_eq!(a.sync().imported, 0);
    assert_eq!(a.service.claims_of_other_clones(&plan("p")).unwrap().len(), 0);
    let notices = b.service.claims_of_other_clones(&plan("p")).unwrap();
    assert!(notices[&id("one")].to_string().starts_with("claimed by agent:zed in clone "), "{notices:?}");
    let offered = b.service.claimable(&agent, filter, 5).unwrap().tasks;
    assert_eq!(offered.iter().map(|(_, task)| task.as_str()).collect::<Vec<_>>(), ["two", "one"]);
    a.done("p", "one", "it works").unwrap();
    settle(&[&a, &b], "p");
    assert_eq!(b.service.claims_of_other_clones(&plan("p")).unwrap().len(), 0);
}

#[test]
#[ignore = "needs git"]
fn a_plan_that_was_purged_is_archived_in_other_clones_and_does_not_come_back() {
    let (_ground, a, b) = two();
    a.service
        .purge(
            &Caller::new(a.by.actor.clone()).present(waypost_service::Presence::new("terminal")),
            &plan("p"),
        )
        .unwrap();
    a.sync();
    b.sync();
    let state = b.service.read(&plan("p"), |plan| plan.state().clone()).unwrap();
    assert_eq!((state.archived, state.archived_by), (true, Some(Actor::person("a"))));
    assert!(a.service.read(&plan("p"), |_| ()).is_err());
    for clone in [&a, &b] {
        assert_eq!(
            clone.service.check_sharing(&clone.shared).unwrap(),
            waypost_service::SharingCheck::default()
        );
    }
    // Who wants it all the same has it.
    let present = b.by.clone().present(waypost_service::Presence::new("terminal"));
    b.service.unarchive(&present, &plan("p"), Guard::NONE).unwrap();
    b.note("p", "one", "still needed");
    b.sync();
    assert_eq!(a.sync().kept_aside.len(), 1);
    assert!(!b.service.read(&plan("p"), |plan| plan.state().archived).unwrap());
    let left = a.sync().kept_aside;
    assert_eq!(
        left.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["plan p is not imported: it was purged here, and an id is never used again"],
        "each sync says so"
    );
    assert_eq!(a.service.left_out(&a.shared).unwrap(), left);
}

#[test]
#[ignore = "needs git"]
fn what_came_from_the_trusted_remote_stays_trusted_if_the_sync_was_killed_and_the_remote_forced_back() {
    let (ground, a, b) = two();
    let first = ground.git(&ground.bare(), &["rev-parse", "refs/heads/waypost"]);
    b.note("p", "one", "from b");
    b.sync();
    // As if a sync of `a` had been killed when it had joined the branches: nothing is imported.
    ground.git(&a.path, &["fetch", "--quiet", "origin", "waypost:refs/heads/waypost"]);
    let joined = serde_json::json!({ "joined": [a.tip()] }).to_string();
    let row = waypost_store::Record::Shared(SharedScope::Clone, "remote", Some(&joined));
    a.service.plans().store().write(&mut |write| write.put(row)).unwrap();
    ground.git(&ground.bare(), &["update-ref", "refs/heads/waypost", &first]);
    let report = a.sync();
    assert!(report.strange.is_empty() && report.withheld.is_empty() && report.pushed, "{report:?}");
    assert_eq!(a.notes("p", "one"), "from b");
}

#[test]
#[ignore = "needs git"]
fn a_report_on_a_task_that_ended_in_another_clone_is_recorded_beside_the_other_outcome() {
    let (_ground, a, b) = two();
    let (robin, zed) = (Caller::new(Actor::agent("robin")), Caller::new(Actor::agent("zed")));
    for task in ["one", "two"] {
        a.service.claim(&robin, &plan("p"), &id(task), ClaimOptions::default(), Guard::NONE).unwrap();
    }
    b.done("p", "one", "by b").unwrap();
    let failed = StatusChange::Failed { error: "b cannot".to_owned() };
    b.edit("p", EditOp::SetStatus { task: id("two"), status: failed, take_over: true }).unwrap();
    settle(&[&a, &b], "p");
    let report = |by: &Caller, task: &str, result: &str| {
        let (plan, task) = (plan("p"), id(task));
        let of = TaskRef { plan: &plan, task: &task, attempt: None, take_over: false, seen: None };
        let output = Some(waypost_core::Json::of(&serde_json::json!({ "by": result })));
        let report = TaskReport::Done { result: Some(result.to_owned()), output, sure: true };
        a.service.report(by, of, report, Guard::NONE)
    };
    // Nobody took anything back from this agent.
    assert_eq!(report(&zed, "one", "by zed").unwrap_err().code(), "wrong_status");
    let reply = report(&robin, "one", "by robin").unwrap();
    assert_eq!(
        reply.warnings,
        ["task one: it was ended in another clone meanwhile, and this report is kept, too"]
    );
    let reply = report(&robin, "two", "robin can").unwrap();
    assert_eq!(
        reply.warnings,
        ["task two: it ended differently in another clone meanwhile: a person is asked which outcome holds"]
    );
    assert_eq!(report(&robin, "one", "once more").unwrap_err().code(), "wrong_status", "it is reported");
    settle(&[&a, &b], "p");
    for clone in [&a, &b] {
        let result = clone.service.read(&plan("p"), |plan| plan.task("one").unwrap().state.result.clone());
        assert_eq!(result.unwrap().as_deref(), Some("by b\n\nby robin"));
        assert_eq!(clone.questions(), ["two outcome"]);
    }
    b.resolve("p", Some("two"), "outcome", AnswerChoice::Take("robin".to_owned())).unwrap();
    settle(&[&a, &b], "p");
    let output = b.service.read(&plan("p"), |plan| plan.task("two").unwrap().state.output.clone()).unwrap();
    assert_eq!(output.unwrap().as_str(), r#"{"by":"robin can"}"#);
}

#[test]
#[ignore = "needs git"]
fn a_report_on_a_task_of_a_plan_that_was_archived_in_another_clone_is_kept() {
    let (_ground, a, b) = two();
    let robin = Caller::new(Actor::agent("robin"));
    a.service.claim(&robin, &plan("p"), &id("one"), ClaimOptions::default(), Guard::NONE).unwrap();
    a.sync();
    b.sync();
    b.service.archive(&b.by, &plan("p"), Guard::NONE).unwrap();
    settle(&[&a, &b], "p");
    assert!(a.service.read(&plan("p"), |plan| plan.state().archived).unwrap());
    let (p, one) = (plan("p"), id("one"));
    let of = TaskRef { plan: &p, task: &one, attempt: None, take_over: false, seen: None };
    let report = TaskReport::Done { result: Some("by robin".to_owned()), output: None, sure: true };
    a.service.report(&robin, of, report, Guard::NONE).unwrap();
    settle(&[&a, &b], "p");
    let result = b.service.read(&p, |plan| plan.task("one").unwrap().state.result.clone()).unwrap();
    assert_eq!(result.as_deref(), Some("by robin"));
}

#[test]
#[ignore = "needs git"]
fn a_name_that_several_versions_have_is_answered_with_the_clones_and_records() {
    let (_ground, a, mut b) = two();
    b.by = a.by.clone();
    a.note("p", "one", "from a");
    b.note("p", "one", "from b");
    settle(&[&a, &b], "p");
    let take = |who: &str| a.resolve("p", Some("one"), "notes", AnswerChoice::Take(who.to_owned()));
    let refused = take("person:a").unwrap_err().to_string();
    assert!(refused.contains("names several of the versions (person:a in clone "), "{refused}");
    assert!(refused.contains("name the clone or the record instead"), "{refused}");
    let tag = a.service.sharing_status().unwrap().tag;
    assert_eq!(take(&tag).unwrap(), 0);
    assert_eq!(a.notes("p", "one"), "from a");
}

#[test]
#[ignore = "needs git"]
fn a_branch_that_is_checked_out_is_why_nothing_leaves() {
    let (ground, a, _b) = two();
    ground.git(&a.path, &["checkout", "--quiet", "waypost"]);
    a.note("p", "one", "waits");
    let options = SyncOptions { fetch: true, push: true, from: None };
    let refused = a.service.sync(&a.shared, &options).unwrap_err();
    let backlog = a.service.sharing_backlog().unwrap();
    assert_eq!((backlog.problem, backlog.waiting), (Some(refused.to_string()), 1));
    ground.git(&a.path, &["checkout", "--quiet", "--detach"]);
    assert!(a.sync().pushed);
    assert_eq!(a.service.sharing_backlog().unwrap(), waypost_service::SharingBacklog::default());
}

#[test]
#[ignore = "needs git"]
fn a_process_asks_git_once_before_it_names_tasks() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let (_ground, a, _b) = two();
    let (asked, branch) = (Arc::new(AtomicUsize::new(0)), a.shared.clone());
    let count = Arc::clone(&asked);
    let service = a.service.clone().with_shared_branch(Arc::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(branch.clone())
    }));
    let a = Clone { service, ..a };
    for name in ["first", "second", "third"] {
        a.add("p", name);
    }
    assert_eq!((asked.load(Ordering::Relaxed), a.task_ids("p").len()), (1, 5));
}

#[test]
#[ignore = "needs git"]
fn a_backup_that_is_written_over_the_store_gives_no_id_again_that_the_branch_has() {
    let (ground, a, b) = two();
    let (database, backup) = (a.database.clone(), ground.root.join("backup.db"));
    drop(a);
    std::fs::copy(&database, &backup).unwrap();
    let a = ground.open("a");
    let published = a.add("p", "published");
    a.sync();
    b.sync();
    drop(a);
    std::fs::copy(&backup, &database).unwrap();
    let a = ground.open("a");
    assert!(!a.task_ids("p").contains(&published.to_string()), "it is the old one");
    let added = a.add("p", "after the restore");
    a.note("p", "one", "after the restore");
    assert_ne!(added, published);
    settle(&[&a, &b], "p");
    let mut ids = b.task_ids("p");
    ids.sort();
    let mut expected = ["one".to_owned(), "two".to_owned(), published.to_string(), added.to_string()];
    expected.sort();
    assert_eq!(ids, expected);
    assert_eq!(b.notes("p", "one"), "after the restore");
}
