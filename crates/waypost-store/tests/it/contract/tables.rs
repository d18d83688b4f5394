//! The tables beside the plans: ready tasks, leases, locks, waits.

use waypost_core::{
    Command, Counts, Dependency, Draft, ExternalTaskRef, Lock, LockMode, Outcome, Phase, Plan, PlanChanges,
    Position, Refusal, Status, TaskChanges, TaskSpec, Timestamp, UpstreamResult,
};
use waypost_store::{
    IndexRows, LeaseFilter, LockFilter, PlanStore, PlanSummary, Query, Record, WaitFilter, WriteRequest,
};
use waypost_testkit::{SeededRng, id, plan_of, task};

use crate::kit::*;
use crate::place::Place;

fn elsewhere(name: &str) -> ExternalTaskRef {
    ExternalTaskRef { agent: None, plan: Some(plan("other")), task: id(name) }
}

fn lock(key: &str, mode: LockMode) -> Lock {
    Lock { key: key.to_owned(), mode }
}

fn locked(name: &str, key: &str, mode: LockMode) -> TaskSpec {
    TaskSpec { locks: vec![lock(key, mode)], ..task(name, &[]) }
}

/// Some command for a plan; often one that will be refused.
pub(super) fn any_command(dice: &mut SeededRng, current: &Plan, round: usize) -> Command {
    let names = task_names(current);
    let any = |dice: &mut SeededRng| id(if names.is_empty() { "none" } else { dice.pick(&names).as_str() });
    if current.state().archived {
        return Command::Unarchive;
    }
    match dice.below(20) {
        0..=4 => {
            let mut spec = task(&format!("n{round}"), &[]);
            for _ in 0..dice.below(3) {
                spec.depends_on.push(Dependency::Task(any(dice)));
            }
            if dice.chance(30) {
                spec.depends_on
                    .push(Dependency::External(Box::new(elsewhere(&format!("e{}", dice.below(3))))));
            }
            if dice.chance(30) {
                let mode = *dice.pick(&[LockMode::Shared, LockMode::Exclusive]);
                spec.locks.push(lock(&format!("key-{}", dice.below(3)), mode));
            }
            spec.parent = dice.chance(20).then(|| any(dice));
            spec.priority = dice.below(3) as i32;
            spec.skip = dice.chance(10);
            let place = if dice.chance(50) { Position::First } else { Position::Last };
            Command::AddTasks { tasks: vec![spec], place }
        }
        5 => {
            let changes = TaskChanges { priority: Some(dice.below(5) as i32), ..TaskChanges::default() };
            Command::ReviseTask { task: any(dice), changes: Box::new(changes) }
        }
        6 => {
            let on = Dependency::External(Box::new(elsewhere("e1")));
            let mut changes =
                TaskChanges { locks: Some(vec![lock("key-9", LockMode::Shared)]), ..Default::default() };
            if dice.chance(50) {
                changes = TaskChanges {
                    depends_on: Some(vec![on, Dependency::Task(any(dice))]),
                    ..Default::default()
                };
            }
            Command::ReviseTask { task: any(dice), changes: Box::new(changes) }
        }
        7 => Command::RemoveTask { task: any(dice), detach: dice.chance(70) },
        8 => Command::MoveTask {
            task: any(dice),
            parent: Some(dice.chance(50).then(|| any(dice))),
            place: Position::Last,
        },
        9..=11 => Command::StartTask { task: any(dice), worker: "host-1".to_owned() },
        12 | 13 => {
            let running: Vec<_> = current.running().map(|task| task.spec.id.clone()).collect();
            let outcome = match dice.below(3) {
                0 => Outcome::Done { result: None, output: None, evidence: None },
                1 => Outcome::Failed { error: "no".to_owned(), evidence: None },
                _ => Outcome::Skipped { reason: None },
            };
            let task = if running.is_empty() { any(dice) } else { dice.pick(&running).clone() };
            Command::FinishTask { task, attempt: None, outcome, retry: None }
        }
        14 => Command::CancelTask { task: any(dice), reason: "enough".to_owned() },
        15 => Command::RetryTask { task: any(dice) },
        16 => Command::RetryPlan,
        17 => {
            let status = *dice.pick(&[Status::Done, Status::Failed]);
            let received = UpstreamResult { status, output: None, ..UpstreamResult::default() };
            Command::ReceiveOutput {
                task: any(dice),
                from: elsewhere(&format!("e{}", dice.below(3))),
                received,
                untrusted: dice.below(4) == 0,
            }
        }
        18 => dice
            .pick(&[
                Command::Pause { reason: "wait".to_owned() },
                Command::Resume,
                Command::Activate,
                Command::Archive,
                Command::Unarchive,
                Command::FinishPlan { phase: Phase::Failed, summary: "so it is".to_owned() },
            ])
            .clone(),
        _ => {
            let mut draft = current.to_draft();
            if draft.tasks.len() > 1 && dice.chance(50) {
                draft.tasks.remove(dice.below(draft.tasks.len()));
            }
            draft.tasks.reverse();
            Command::Replace(Box::new(Draft { version: 0, ..draft }))
        }
    }
}

/// The rows that the plan should have; how long leases last is known to the store alone.
fn expected_rows(plan: &Plan, stored: &IndexRows) -> IndexRows {
    let mut rows = IndexRows::of(plan);
    for lease in &mut rows.leases {
        let row = stored.leases.iter().find(|row| row.task == lease.task && row.attempt == lease.attempt);
        (lease.until, lease.seconds) = row.map_or((None, None), |row| (row.until, row.seconds));
    }
    rows
}

/// Whatever shortcuts were taken, the events alone must tell the same.
fn check_tables(plans: &PlanStore, name: &str, seed: u64, last: &[Command]) {
    let replayed = replayed(plans, name);
    let stored = index(plans.store(), name);
    assert_eq!(stored, expected_rows(&replayed, &stored), "seed {seed}: the tables after {last:?}");
    assert_eq!(
        head(plans.store(), name),
        Some(PlanSummary::of(&replayed)),
        "seed {seed}: the head after {last:?}"
    );
    let differing = waypost_core::differences(&now(plans, name).to_draft(), &replayed.to_draft());
    assert_eq!(differing, [], "seed {seed}: the plan after {last:?}");
    assert_eq!(now(plans, name).to_draft(), replayed.to_draft(), "seed {seed}: the plan after {last:?}");
}

pub(super) fn the_tables_follow_random_histories(place: &Place) {
    for seed in 0..place.histories {
        let mut dice = SeededRng::new(seed);
        let name = format!("p-{seed}");
        let mut plans = place.plans();
        create(
            &plans,
            &name,
            plan_of([task("a", &[]), task("b", &["a"]), locked("c", "key-0", LockMode::Exclusive)]),
        );
        let mut last: Vec<Command> = Vec::new();
        let mut written = 0;
        for round in 0..80 {
            let current = now(&plans, &name);
            if dice.chance(10) {
                // Whoever goes on from a snapshot must come to the same.
                let (version, bytes) = (current.version(), now(&plans, &name).snapshot());
                plans.store().write(&mut |t| t.put(Record::Snapshot(&plan(&name), version, &bytes))).unwrap();
                plans = place.plans();
            }
            let commands: Vec<Command> = (0..1 + dice.below(4) / 2)
                .map(|part| any_command(&mut dice, &current, round * 10 + part))
                .collect();
            let lease_seconds = dice.chance(50).then_some(30);
            let asked = WriteRequest { lease_seconds, ..request(&name, commands.clone()) };
            if plans.write(asked).is_ok_and(|committed| committed.changed) {
                written += 1;
                last = commands;
                check_tables(&plans, &name, seed, &last);
            }
        }
        assert!(written > 10, "seed {seed} wrote only {written} versions");
        assert_eq!(place.plans().doctor(false).unwrap(), [], "seed {seed}, last {last:?}");
    }
}

pub(super) fn ready_tasks_come_by_urgency_and_only_from_plans_that_may_run(place: &Place) {
    let plans = place.plans();
    let urgent = |name: &str, priority: i32| TaskSpec { priority, ..task(name, &[]) };
    create(&plans, "one", plan_of([urgent("low", -1), urgent("high", 9), task("later", &["low"])]));
    create(&plans, "two", plan_of([urgent("middle", 3), urgent("low", -1)]));
    let ready = |queue: Option<&str>, limit: usize| -> Vec<String> {
        let found = plans.claimable(queue, limit).unwrap().items;
        found.iter().map(|task| format!("{}/{} {}", task.plan, task.task, task.priority)).collect()
    };
    assert_eq!(ready(None, 10), ["one/high 9", "two/middle 3", "one/low -1", "two/low -1"]);
    assert_eq!(ready(None, 2), ["one/high 9", "two/middle 3"]);
    let moved = PlanChanges { queue: Some("fast".into()), ..PlanChanges::default() };
    write(&plans, "two", revise(moved)).unwrap();
    assert_eq!(ready(Some("fast"), 10), ["two/middle 3", "two/low -1"]);
    assert_eq!(ready(Some(""), 10), ["one/high 9", "one/low -1"]);
    let raised = TaskChanges { priority: Some(10), ..TaskChanges::default() };
    write(&plans, "one", revise_task("low", raised)).unwrap();
    assert_eq!(ready(Some(""), 10), ["one/low 10", "one/high 9"], "a task that became urgent comes first");
    write(&plans, "one", Command::Activate).unwrap();
    write(&plans, "one", Command::Pause { reason: String::new() }).unwrap();
    assert_eq!(ready(Some(""), 10), Vec::<String>::new(), "a paused plan offers nothing");
    write(&plans, "two", Command::RequestApproval { message: String::new() }).unwrap();
    assert_eq!(ready(None, 10), Vec::<String>::new(), "nor does one that nobody has approved");
    write(&plans, "one", Command::Resume).unwrap();
    assert_eq!(ready(None, 10), ["one/low 10", "one/high 9"]);
}

pub(super) fn of_tasks_that_are_as_urgent_those_of_the_oldest_plan_come_first(place: &Place) {
    let plans = place.plans();
    let urgent = |name: &str, priority: i32| TaskSpec { priority, ..task(name, &[]) };
    create(&plans, "z", plan_of([urgent("a", 0)]));
    create(&plans, "y", plan_of([urgent("a", 0), urgent("b", 0)]));
    create(&plans, "x", plan_of([urgent("a", 5), urgent("b", 0)]));
    create(&plans, "w", plan_of([urgent("a", 0)]));
    let all = ["x/a", "z/a", "y/a", "y/b", "x/b", "w/a"];
    for limit in 1..=7 {
        // Another process, which has read none of them.
        let found = place.plans().claimable(None, limit).unwrap().items;
        let found: Vec<String> = found.iter().map(|task| format!("{}/{}", task.plan, task.task)).collect();
        assert_eq!(found, all[..limit.min(6)], "the first {limit}");
    }
}

pub(super) fn what_its_author_skips_counts_as_skipped_before_the_start(place: &Place) {
    let plans = place.plans();
    let skip = TaskSpec { skip: true, ..task("a", &[]) };
    let urgent = TaskSpec { priority: 7, ..task("b", &["a"]) };
    create(&plans, "p", plan_of([skip, urgent, task("c", &["b"])]));
    let counts = || {
        let head = plans.heads(&Query { limit: 1, ..Query::default() }).unwrap().items.remove(0);
        let Counts { total, ready, blocked, skipped, .. } = head.counts;
        (total, ready, blocked, skipped, head.urgency)
    };
    let ready = || plans.claimable(None, 10).unwrap().items.into_iter().map(|found| found.task.to_string());
    assert_eq!(counts(), (3, 1, 1, 1, 7));
    assert_eq!(ready().collect::<Vec<_>>(), ["b"]);
    let whole = plans.with_plan(&plan("p"), PlanSummary::detailed).unwrap();
    assert_eq!(plans.heads(&Query { limit: 1, ..Query::default() }).unwrap().items, [whole]);
    // The start changes none of it, and neither does a task that is no longer skipped.
    write(&plans, "p", Command::Activate).unwrap();
    assert_eq!(counts(), (3, 1, 1, 1, 7));
    create(&plans, "q", plan_of([TaskSpec { skip: true, ..task("x", &[]) }]));
    let wanted = TaskChanges { skip: Some(false), ..TaskChanges::default() };
    write(&plans, "q", revise_task("x", wanted)).unwrap();
    assert_eq!(ready().collect::<Vec<_>>(), ["b", "x"]);
    assert_eq!(place.plans().doctor(false).unwrap(), []);
}

pub(super) fn a_lock_that_another_plan_holds_is_refused_and_its_holder_named(place: &Place) {
    let (one, other) = (place.plans(), place.plans());
    create(&one, "a", plan_of([locked("x", "database", LockMode::Exclusive)]));
    create(
        &one,
        "b",
        plan_of([locked("y", "database", LockMode::Exclusive), locked("z", "disk", LockMode::Exclusive)]),
    );
    write(&one, "a", start("x")).unwrap();
    let held = refusal(write(&other, "b", start("y")));
    assert_eq!(held, Refusal::LockHeld { task: "y".into(), key: "database".into(), holder: "a/x".into() });
    assert_eq!(now(&other, "b").counts().running, 0, "nothing was started");
    write(&other, "b", start("z")).unwrap();
    write(&one, "a", finish("x")).unwrap();
    write(&other, "b", start("y")).unwrap();
    let holders = look(one.store(), |read| read.locks(LockFilter::Keys(&["database", "disk", "other"])));
    let mut holders: Vec<String> =
        holders.iter().map(|held| format!("{}/{}", held.plan, held.task)).collect();
    holders.sort();
    assert_eq!(holders, ["b/y", "b/z"]);
}

pub(super) fn shared_locks_coexist(place: &Place) {
    let plans = place.plans();
    create(&plans, "a", plan_of([locked("reads", "database", LockMode::Shared)]));
    create(
        &plans,
        "b",
        plan_of([
            locked("reads", "database", LockMode::Shared),
            locked("writes", "database", LockMode::Exclusive),
        ]),
    );
    write(&plans, "a", start("reads")).unwrap();
    write(&plans, "b", start("reads")).unwrap();
    assert!(matches!(refusal(write(&plans, "b", start("writes"))), Refusal::LockHeld { .. }));
    write(&plans, "a", finish("reads")).unwrap();
    let held = refusal(write(&plans, "b", start("writes")));
    assert_eq!(
        held,
        Refusal::LockHeld { task: "writes".into(), key: "database".into(), holder: "b/reads".into() }
    );
    write(&plans, "b", finish("reads")).unwrap();
    write(&plans, "b", start("writes")).unwrap();
}

pub(super) fn a_batch_cannot_take_one_lock_twice_but_can_pass_it_on(place: &Place) {
    let plans = place.plans();
    create(
        &plans,
        "p",
        plan_of([locked("x", "database", LockMode::Exclusive), locked("y", "database", LockMode::Exclusive)]),
    );
    let held = refusal(plans.write(request("p", vec![start("x"), start("y")])));
    assert_eq!(held, Refusal::LockHeld { task: "y".into(), key: "database".into(), holder: "p/x".into() });
    assert_eq!(now(&plans, "p").counts().running, 0);
    write(&plans, "p", start("x")).unwrap();
    plans.write(request("p", vec![finish("x"), start("y")])).unwrap();
    assert_eq!(
        index(plans.store(), "p").locks.iter().map(|held| held.task.as_str()).collect::<Vec<_>>(),
        ["y"]
    );
}

pub(super) fn leases_are_listed_when_they_end_and_can_be_renewed(place: &Place) {
    let plans = place.plans();
    create(&plans, "p", plan_of([task("a", &[]), task("b", &[]), task("c", &[])]));
    let begin = |name: &str, lease_seconds: Option<u32>| {
        plans.write(WriteRequest { lease_seconds, by: worker(), ..request("p", vec![start(name)]) }).unwrap();
        now(&plans, "p").task(name).unwrap().state.started_at.unwrap()
    };
    let started = begin("a", Some(100));
    begin("b", Some(1_000));
    begin("c", None);
    let ended = |before: Option<Timestamp>| -> Vec<String> {
        let filter = before.map_or(LeaseFilter::All, LeaseFilter::EndedBefore);
        let found = look(plans.store(), |read| read.leases(&filter, 10));
        found.iter().map(|lease| lease.task.to_string()).collect()
    };
    assert_eq!(ended(None), ["c", "a", "b"], "all, those that never end first");
    assert_eq!(
        ended(Some(started.plus_seconds(100))),
        Vec::<String>::new(),
        "it ends after, not at, its last moment"
    );
    assert_eq!(ended(Some(started.plus_seconds(101))), ["a"]);
    assert_eq!(ended(Some(started.plus_seconds(1_000_000))), ["a", "b"], "without an end it never ends");
    let lease =
        &look(plans.store(), |read| read.leases(&LeaseFilter::EndedBefore(started.plus_seconds(101)), 10))[0];
    assert_eq!(
        (lease.attempt, lease.worker.as_str(), lease.until),
        (1, "host-1", Some(started.plus_seconds(100)))
    );

    let renew = |name: &str, attempt: u32, until: Timestamp| {
        let mut renewed = None;
        plans
            .store()
            .write(&mut |transaction| {
                renewed = Some(transaction.renew_lease(&plan("p"), name, attempt, until)?);
                Ok(())
            })
            .unwrap();
        renewed.unwrap()
    };
    assert!(renew("a", 1, started.plus_seconds(500)));
    assert!(!renew("a", 2, started.plus_seconds(900)), "only the attempt that has it");
    assert!(!renew("none", 1, started.plus_seconds(900)));
    assert_eq!(ended(Some(started.plus_seconds(500))), Vec::<String>::new());
    assert_eq!(ended(Some(started.plus_seconds(501))), ["a"]);
    assert_eq!(now(&plans, "p").version(), 4, "a renewal is no version");

    let lost = Command::LoseTask { task: id("a"), attempt: 1, retry: None };
    write(&plans, "p", lost).unwrap();
    write(&plans, "p", finish("b")).unwrap();
    assert_eq!(ended(None), ["c"]);
    assert!(!renew("a", 1, started.plus_seconds(900)), "a lost attempt renews nothing");
    begin("a", None);
    assert_eq!(
        index(plans.store(), "p").leases[0].until,
        None,
        "a new attempt has nothing of the old one's end"
    );
}

pub(super) fn waits_are_found_by_what_they_wait_for(place: &Place) {
    let plans = place.plans();
    let waiting = |name: &str, agent: Option<&str>, on: Option<&str>| {
        let there =
            ExternalTaskRef { agent: agent.map(str::to_owned), plan: on.map(plan), task: id("build") };
        TaskSpec { depends_on: vec![Dependency::External(Box::new(there))], ..task(name, &[]) }
    };
    create(
        &plans,
        "w",
        plan_of([
            waiting("by-plan", None, Some("lib")),
            waiting("by-agent", Some("builder"), None),
            waiting("by-both", Some("builder"), Some("lib")),
            waiting("other-plan", None, Some("app")),
            waiting("other-agent", Some("tester"), None),
        ]),
    );
    let waits = |on: &str, agent: &str, name: &str| -> Vec<String> {
        let on = WaitFilter::On { plan: &plan(on), owner: agent, task: Some(name) };
        let found = look(plans.store(), |read| read.waits(on));
        found.iter().map(|wait| wait.task.to_string()).collect()
    };
    assert_eq!(waits("lib", "builder", "build"), ["by-agent", "by-both", "by-plan"]);
    assert_eq!(waits("lib", "", "build"), ["by-plan"]);
    assert_eq!(waits("app", "tester", "build"), ["other-agent", "other-plan"]);
    assert_eq!(waits("lib", "builder", "test"), Vec::<String>::new());
    let from = ExternalTaskRef { agent: None, plan: Some(plan("lib")), task: id("build") };
    let received = UpstreamResult { status: Status::Done, output: None, ..UpstreamResult::default() };
    write(&plans, "w", Command::ReceiveOutput { task: id("by-plan"), from, received, untrusted: false })
        .unwrap();
    assert_eq!(waits("lib", "", "build"), ["by-plan"], "whoever has heard may hear otherwise");
    let all = |on: &str, agent: &str| -> Vec<String> {
        let on = WaitFilter::On { plan: &plan(on), owner: agent, task: None };
        let found = look(plans.store(), |read| read.waits(on));
        found.iter().map(|wait| wait.task.to_string()).collect()
    };
    assert_eq!(all("lib", "builder"), ["by-agent", "by-both", "by-plan"]);
    assert_eq!(
        all("lib", "tester"),
        ["by-both", "by-plan", "other-agent"],
        "whoever owns the plan that is named"
    );
    assert_eq!(all("none", "nobody"), Vec::<String>::new());
    write(&plans, "w", start("by-plan")).unwrap();
    write(&plans, "w", Command::CancelTask { task: id("by-both"), reason: String::new() }).unwrap();
    assert_eq!(waits("lib", "builder", "build"), ["by-agent"], "whoever has begun, or ended, waits no more");
}

pub(super) fn the_doctor_finds_a_wrong_index_and_puts_it_right(place: &Place) {
    let plans = place.plans();
    create(
        &plans,
        "p",
        plan_of([task("a", &[]), task("b", &["a"]), locked("c", "key", LockMode::Exclusive)]),
    );
    create_small(&plans, "sound");
    plans.write(WriteRequest { lease_seconds: Some(60), ..request("p", vec![start("c")]) }).unwrap();
    let (right, right_head) = (index(plans.store(), "p"), head(plans.store(), "p").unwrap());
    let mut wrong = right.clone();
    wrong.locks.clear();
    let wrong_head = PlanSummary { title: "wrong".to_owned(), ..right_head.clone() };
    let current = now(&plans, "p");
    plans.store().write(&mut |transaction| transaction.replace_index(&current, &wrong_head, &wrong)).unwrap();
    let findings = place.plans().doctor(false).unwrap();
    if place.has_tables {
        assert_eq!(findings.len(), 2, "the line in the list and the tables: {findings:?}");
        assert!(findings.iter().all(|finding| finding.plan == Some(plan("p")) && !finding.repaired));
        assert_eq!(index(plans.store(), "p"), wrong, "a look changes nothing");
    }
    let repaired = plans.doctor(true).unwrap();
    assert_eq!(repaired.len(), findings.len());
    assert!(repaired.iter().all(|finding| finding.repaired));
    assert_eq!(place.plans().doctor(false).unwrap(), []);
    assert_eq!(index(plans.store(), "p"), right, "with the end of the lease");
    assert_eq!(head(plans.store(), "p"), Some(right_head));
}
