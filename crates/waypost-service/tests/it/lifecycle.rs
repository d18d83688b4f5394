//! Who owns a new plan, what can be started, and what a rejection needs.

use std::sync::Arc;

use waypost_config::Config;
use waypost_core::{Actor, Draft, EffectiveStatus, Phase, PlanId};
use waypost_service::submit::{RunnableDraft, Start};
use waypost_service::{
    Caller, CreateOptions, EditOp, Guard, Presence, Service, ServiceError, StatusChange, why,
};
use waypost_store::{MemoryStore, PlanStore};
use waypost_testkit::{id, plan_of, task};

fn service() -> Service {
    let config = Config::load(&[], []).unwrap();
    Service::new(Arc::new(PlanStore::new(Arc::new(MemoryStore::new()))), Arc::new(config))
}

fn robin() -> Caller {
    Caller::new(Actor::agent("robin"))
}

fn ada() -> Caller {
    Caller::new(Actor::person("ada")).present(Presence::new("terminal"))
}

fn draft(owner: &str) -> Draft {
    let mut draft = plan_of([task("a", &[])]);
    draft.spec.owner = owner.to_owned();
    draft
}

#[test]
fn an_agent_owns_the_plan_that_it_makes_unless_the_draft_names_an_owner() {
    let service = service();
    let config = service.config().unwrap();
    for (by, named, owner) in
        [(robin(), "", "robin"), (robin(), "kim", "kim"), (ada(), "", ""), (ada(), "kim", "kim")]
    {
        let created = service.create(&by, draft(named), CreateOptions::default()).unwrap().plan;
        let submitted = RunnableDraft::new(&config, draft(named), None).unwrap();
        let submitted = service.submit(&by, &submitted).unwrap().plan;
        for plan in [created, submitted] {
            let found = service.read(&plan, |plan| plan.spec().owner.clone()).unwrap();
            assert_eq!(found, owner, "{by:?} {named:?}");
        }
    }
}

#[test]
fn what_is_paused_ended_or_archived_is_not_started() {
    type Stop = fn(&Service, &PlanId) -> Result<(), ServiceError>;
    let stops: [(&str, Stop); 3] = [
        ("wrong_phase", |service, plan| service.pause(&robin(), plan, "", Guard::NONE).map(drop)),
        ("wrong_phase", |service, plan| {
            service.finish(&robin(), plan, Phase::Completed, "", Guard::NONE).map(drop)
        }),
        ("archived", |service, plan| service.archive(&robin(), plan, Guard::NONE).map(drop)),
    ];
    for (code, stop) in stops {
        let service = service();
        let plan = service.create(&robin(), draft(""), CreateOptions::default()).unwrap().plan;
        assert_eq!(service.start(&robin(), &plan, false, Guard::NONE).unwrap(), Start::Runs);
        assert!(!service.activate(&robin(), &plan, Guard::NONE).unwrap().changed, "it is active already");
        assert_eq!(service.activate(&robin(), &plan, Guard::at(1)).unwrap_err().code(), "conflict");
        stop(&service, &plan).unwrap();
        for by in [robin(), ada()] {
            assert_eq!(service.startable(&by, &plan).unwrap_err().code(), code);
            assert_eq!(service.start(&by, &plan, false, Guard::NONE).unwrap_err().code(), code);
            assert_eq!(service.activate(&by, &plan, Guard::NONE).unwrap_err().code(), code);
        }
    }
}

#[test]
fn a_rejection_needs_a_reason() {
    let service = service();
    let plan = service.create(&robin(), draft(""), CreateOptions::default()).unwrap().plan;
    let code = |by: &Caller, reason| service.reject(by, &plan, reason, Guard::NONE).unwrap_err().code();
    assert_eq!(code(&ada(), " "), "invalid");
    assert_eq!(code(&robin(), ""), "needs_person");
    service.reject(&ada(), &plan, "tests first", Guard::NONE).unwrap();
    assert_eq!(service.read(&plan, |plan| plan.state().reason.clone()).unwrap(), "tests first");
    let why = why(service.plans(), None, &plan, &id("a")).unwrap();
    assert_eq!(why.reasons[0].words, "a person's approval; person:ada rejected it (\"tests first\")");
}

#[test]
fn what_waits_for_a_task_behind_a_skip_is_told_how_that_stands_once_the_plan_has_started() {
    let service = service();
    let mut draft = plan_of([task("a", &[]), task("b", &["a"]), task("c", &["b"])]);
    draft.tasks[0].spec.skip = true;
    let plan = service.create(&ada(), draft, CreateOptions::default()).unwrap().plan;
    let told = |task: &str| {
        let why = why(service.plans(), None, &plan, &id(task)).unwrap();
        (why.standing, why.reasons.into_iter().map(|reason| reason.words).collect::<Vec<_>>())
    };
    let skips = "nothing: its author skips it once the plan has started, and dependants do not wait for it";
    assert_eq!(told("a"), (Some(EffectiveStatus::Skipped), vec![skips.to_owned()]));
    assert_eq!(told("b"), (Some(EffectiveStatus::Ready), Vec::new()));
    assert_eq!(told("c"), (Some(EffectiveStatus::Blocked), vec!["b (ready)".to_owned()]));
}

#[test]
fn an_edit_that_ends_another_agents_open_tasks_does_not_also_end_or_archive_the_plan() {
    let mallory = Caller::new(Actor::agent("mallory"));
    let status = |status: StatusChange| EditOp::SetStatus { task: id("a"), status, take_over: false };
    let done = || status(StatusChange::Done { result: None, output: None, sure: true });
    let takes = [
        (vec![done(), EditOp::SetArchived(true)], "archive it"),
        (vec![done(), EditOp::SetPhase { phase: Phase::Completed, summary: "over".to_owned() }], "end it"),
        (vec![status(StatusChange::Skipped { reason: None }), EditOp::SetArchived(true)], "archive it"),
        (vec![status(StatusChange::Skipped { reason: None })], "skip its tasks"),
    ];
    for (ops, wanted) in takes {
        let service = service();
        let plan = service.create(&robin(), draft(""), CreateOptions::default()).unwrap().plan;
        service.activate(&robin(), &plan, Guard::NONE).unwrap();
        let refused = service.edit(&mallory, &plan, ops.clone(), Guard::NONE).unwrap_err();
        let expected = format!("the plan belongs to robin and has open tasks; agent:mallory cannot {wanted}");
        assert_eq!((refused.code().as_str(), refused.to_string()), ("not_its_plan", expected));
        service.edit(&robin(), &plan, ops, Guard::NONE).unwrap();
    }
}
