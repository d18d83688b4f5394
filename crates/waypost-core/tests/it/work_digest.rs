//! Which fields the work digest covers, and which it does not.

use waypost_core::{
    Complexity, Dependency, DependencyRule, Draft, ExternalTaskRef, ForeignFields, Json, Lock, LockMode,
    Plan, PlannerNotes, Retry, Task, TaskSpec, Work, canonical::Hash,
};

use waypost_testkit::{id, plan_of, task};

use crate::committed;
use crate::kit::{ada, at, plan_id, work};

fn digest(draft: &Draft) -> Hash {
    Plan::from_trusted_draft(plan_id(), draft.clone()).work_digest()
}

fn hex(hash: Hash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A plan with a group, a machine task in it that uses every field, and an item for people.
fn draft() -> Draft {
    let mut full = task("full", &["item"]);
    full.parent = Some(id("group"));
    full.depends_on.push(Dependency::External(Box::new(ExternalTaskRef {
        agent: Some("builder".into()),
        plan: None,
        task: id("far"),
    })));
    full.locks = vec![Lock { key: "db".into(), mode: LockMode::Exclusive }];
    full.work = Some(work());
    full.check = Some(work());
    full.retry = Some(Box::new(Retry { attempts: 3, backoff_seconds: 5, backoff_seconds_max: 60 }));
    full.timeout_seconds = Some(600);
    full.provides = Some("binary".into());
    full.tools = Some(vec!["grep".into(), "sed".into()]);
    full.complexity = Some(Complexity::High);
    full.notes = "mind the gap".into();
    plan_of([task("item", &[]), task("group", &[]), full])
}

type Change = (&'static str, fn(&mut Draft));

fn full(draft: &mut Draft) -> &mut TaskSpec {
    &mut draft.tasks[2].spec
}

fn work_of(draft: &mut Draft) -> &mut Work {
    full(draft).work.as_mut().unwrap()
}

fn add(draft: &mut Draft, spec: TaskSpec) {
    draft.tasks.push(Task::new(spec));
}

const INSIDE: &[Change] = &[
    ("title", |draft| draft.spec.title.push('!')),
    ("goal", |draft| draft.spec.goal.push('!')),
    ("queue", |draft| draft.spec.queue.push('!')),
    ("id", |draft| full(draft).id = id("other")),
    ("description", |draft| full(draft).description.push('!')),
    ("notes", |draft| full(draft).notes.push('!')),
    ("from notes to description", |draft| {
        full(draft).description.push('m');
        full(draft).notes.remove(0);
    }),
    ("parent", |draft| full(draft).parent = None),
    ("words of the parent", |draft| draft.tasks[1].spec.notes.push('!')),
    ("dependency", |draft| full(draft).depends_on.truncate(1)),
    ("agent of a dependency", |draft| {
        let Some(Dependency::External(there)) = full(draft).depends_on.last_mut() else { panic!() };
        there.agent = Some("another".into());
    }),
    ("when", |draft| full(draft).when = DependencyRule::AnyDone),
    ("skip", |draft| full(draft).skip = true),
    ("lock", |draft| full(draft).locks[0].key.push('!')),
    ("mode of a lock", |draft| full(draft).locks[0].mode = LockMode::Shared),
    ("executor", |draft| work_of(draft).executor.push('!')),
    ("inputs", |draft| work_of(draft).inputs = Json::parse(r#"{"n":9007199254740992}"#).unwrap()),
    ("inputs that are one double", |draft| {
        work_of(draft).inputs = Json::parse(r#"{"n":9007199254740993}"#).unwrap();
    }),
    ("shape", |draft| work_of(draft).shape = Some(String::new())),
    ("no work", |draft| full(draft).work = None),
    ("check", |draft| full(draft).check.as_mut().unwrap().executor.push('!')),
    ("no check", |draft| full(draft).check = None),
    ("attempts", |draft| full(draft).retry.as_mut().unwrap().attempts = 4),
    ("backoff", |draft| full(draft).retry.as_mut().unwrap().backoff_seconds = 6),
    ("longest backoff", |draft| full(draft).retry.as_mut().unwrap().backoff_seconds_max = 61),
    ("no retry", |draft| full(draft).retry = None),
    ("timeout", |draft| full(draft).timeout_seconds = None),
    ("provides", |draft| full(draft).provides = None),
    ("tools", |draft| full(draft).tools.as_mut().unwrap().swap(0, 1)),
    ("tools in one", |draft| full(draft).tools = Some(vec!["grepsed".into()])),
    ("complexity", |draft| full(draft).complexity = None),
    ("non-ASCII", |draft| full(draft).description.push('ü')),
    ("the same in other bytes", |draft| full(draft).description.push_str("u\u{308}")),
    ("machine task", |draft| add(draft, TaskSpec { work: Some(work()), ..task("new", &[]) })),
];

const OUTSIDE: &[Change] = &[
    ("status", |draft| draft.spec.status.push('!')),
    ("owner", |draft| draft.spec.owner.push('!')),
    ("body", |draft| draft.spec.body.push('!')),
    ("budget", |draft| draft.spec.token_budget = Some(1)),
    ("foreign", |draft| full(draft).foreign = ForeignFields([("x".into(), Json::empty_object())].into())),
    ("priority", |draft| full(draft).priority = 9),
    ("thinking", |draft| full(draft).thinking = Some(Box::new(PlannerNotes::default()))),
    ("order of dependencies", |draft| full(draft).depends_on.reverse()),
    ("item", |draft| draft.tasks[0].spec.description.push('!')),
    ("another item", |draft| add(draft, task("new", &[]))),
    ("order of tasks", |draft| draft.tasks.swap(0, 1)),
    ("what came of it", |draft| {
        draft.state.created_by = Some(ada());
        draft.tasks[2].state.attempt = 7;
        draft.tasks[2].state.finished_at = Some(at(1));
        draft.tasks[2].state.output = Some(Json::empty_object());
    }),
];

#[test]
fn each_field_is_in_the_digest_or_left_out_of_it() {
    let mut seen = vec![("as it is", digest(&draft()))];
    for (what, change) in INSIDE {
        let mut changed = draft();
        change(&mut changed);
        let new = digest(&changed);
        let same = seen.iter().find(|(_, other)| *other == new);
        assert!(same.is_none(), "{what} has the digest of {same:?}");
        seen.push((what, new));
    }
    for (what, change) in OUTSIDE {
        let mut changed = draft();
        change(&mut changed);
        assert_eq!(digest(&changed), digest(&draft()), "{what}");
    }
}

/// Approvals are stored for years: a plan must have the same digest in every version of Waypost.
#[test]
fn digests_are_what_they_always_were() {
    let vectors = [("as it is", (|_| {}) as fn(&mut Draft))].into_iter().chain(INSIDE.iter().copied());
    let lines = vectors.map(|(what, change)| {
        let mut changed = draft();
        change(&mut changed);
        format!("{} {what}\n", hex(digest(&changed)))
    });
    let found: String = lines.collect();
    committed::check("tests/golden/work_digests.txt", &found, "WAYPOST_UPDATE=1 writes it anew");
}
