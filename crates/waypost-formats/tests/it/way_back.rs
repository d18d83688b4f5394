//! A plan that goes out as a file comes back as it was: for random plans and every format, a text that was not edited changes
//! nothing, and one edited word changes one word. Seeded, so that a failure can be repeated.

use waypost_core::{
    Command, Complexity, Dependency, DependencyRule, Digest, Draft, ExternalTaskRef, Json, Lock, LockMode,
    Phase, Plan, PlanChanges, PlanId, PlannerNotes, Retry, Status, Task, TaskId, TaskSpec, TaskState, Work,
    validate,
};
use waypost_formats::{Dialect, Form, Update, Written, read, update, write};
use waypost_testkit::{SeededRng, id};

use crate::fuzz::STABLE;

const ROUNDS: u64 = 150;

const TEXTS: [&str; 12] = [
    "",
    "plain",
    "two\nlines",
    "  spaces  ",
    "# a heading",
    "- [x] an item",
    "**Step 1:** stars",
    "a `code` and a [link](x)",
    "after: t1",
    "\u{00fc}ml\u{00e4}ut \u{1f600}",
    "\"quotes\" and \\ slashes",
    "a paragraph\n\nand another\n\n```sh\nmake\n```",
];

fn text(rng: &mut SeededRng) -> String {
    (*rng.pick(&TEXTS)).to_owned()
}

fn work(rng: &mut SeededRng) -> Option<Box<Work>> {
    let inputs = Json::of(&serde_json::json!({ "run": text(rng), "n": rng.below(9) }));
    let work = Work { executor: "shell".to_owned(), inputs, shape: None };
    rng.chance(30).then(|| Box::new(work))
}

/// Returns a random plan in which every field is set at times. Descriptions are told apart by a number.
fn random_plan(rng: &mut SeededRng) -> Draft {
    let mut draft = Draft::new("a title");
    draft.id = Some("plan".parse::<PlanId>().unwrap());
    draft.spec.goal = text(rng);
    draft.spec.status = text(rng);
    draft.spec.body = text(rng);
    draft.spec.owner = if rng.chance(30) { "somebody".to_owned() } else { String::new() };
    draft.spec.queue = if rng.chance(30) { "gpu".to_owned() } else { String::new() };
    let count = rng.below(7);
    let mut specs: Vec<TaskSpec> = Vec::new();
    for number in 0..count {
        let mut spec = TaskSpec::new(id(&format!("t{}", number + 1)), format!("task{number} {}", text(rng)));
        let earlier: Vec<TaskId> = specs.iter().map(|spec| spec.id.clone()).collect();
        if rng.chance(30) && !earlier.is_empty() {
            spec.parent = Some(rng.pick(&earlier).clone());
        }
        if rng.chance(40) && !earlier.is_empty() {
            spec.depends_on.push(Dependency::Task(rng.pick(&earlier).clone()));
        }
        if rng.chance(15) {
            let there = ExternalTaskRef { agent: Some("other".to_owned()), plan: None, task: id("x") };
            spec.depends_on.push(Dependency::External(Box::new(there)));
        }
        spec.when = *rng.pick(&[DependencyRule::AllDone, DependencyRule::AllFinished]);
        spec.complexity = *rng.pick(&[None, Some(Complexity::Low), Some(Complexity::High)]);
        spec.notes = text(rng);
        spec.tools = rng.chance(30).then(|| vec!["Read".to_owned(), "Edit".to_owned()]);
        spec.skip = rng.chance(10);
        spec.work = work(rng);
        spec.check = work(rng);
        let retry = Retry { attempts: 3, backoff_seconds: 10, backoff_seconds_max: 60 };
        spec.retry = rng.chance(20).then(|| Box::new(retry));
        spec.timeout_seconds = rng.chance(20).then_some(90);
        spec.priority = if rng.chance(20) { -3 } else { 0 };
        spec.provides = rng.chance(20).then(|| "places".to_owned());
        if rng.chance(20) {
            spec.locks.push(Lock { key: "src".to_owned(), mode: LockMode::Shared });
        }
        specs.push(spec);
    }
    let state = |rng: &mut SeededRng| {
        let status = *rng.pick(&[Status::Pending, Status::Done, Status::Failed, Status::Skipped]);
        let done = (status == Status::Done).then(|| "a result".to_owned());
        TaskState { status, attempt: 1, result: done, ..TaskState::default() }
    };
    draft.tasks = specs.into_iter().map(|spec| Task { state: state(rng), spec }).collect();
    if !validate(&draft).is_empty() {
        return random_plan(rng);
    }
    // As a store has it.
    Plan::from_trusted_draft("plan".parse().unwrap(), draft).to_draft()
}

fn free_ids() -> impl Iterator<Item = TaskId> {
    (100..).map(|number| id(&format!("t{number}")))
}

fn updated(text: &str, dialect: Dialect, before: &Draft) -> Update {
    let written = Written { text, dialect: Some(dialect), file_name: None, name: "it" };
    update(written, before, None, free_ids()).unwrap_or_else(|error| panic!("{dialect}: {error:?}\n{text}"))
}

/// Returns the plan after the update, as far as the author is concerned.
fn after(update: &Update, before: &Draft) -> (waypost_core::PlanSpec, Vec<(TaskSpec, Status)>) {
    let author = |draft: &Draft| {
        let tasks = draft.tasks.iter().map(|task| (task.spec.clone(), task.state.status));
        (draft.spec.clone(), tasks.collect())
    };
    match &update.command {
        Command::Replace(draft) => author(draft),
        Command::RevisePlan(changes) => {
            let PlanChanges { title, status, body, .. } = (**changes).clone();
            let (mut spec, tasks) = author(before);
            spec.title = title.unwrap_or(spec.title);
            spec.status = status.unwrap_or(spec.status);
            spec.body = body.unwrap_or(spec.body);
            (spec, tasks)
        }
        other => panic!("{other:?}"),
    }
}

fn author(draft: &Draft) -> (waypost_core::PlanSpec, Vec<(TaskSpec, Status)>) {
    after(
        &Update { command: Command::Replace(Box::new(draft.clone())), notes: Vec::new(), phase: None },
        draft,
    )
}

#[test]
fn a_text_that_was_not_edited_changes_nothing() {
    for seed in 0..ROUNDS {
        let before = random_plan(&mut SeededRng::new(seed));
        for dialect in STABLE {
            for form in [Form::AsRead, Form::Document, Form::Program] {
                let Ok(writing) = write(&before, dialect, form) else { continue };
                let update = updated(&writing.text, dialect, &before);
                let (found, wanted) = (after(&update, &before), author(&before));
                assert_eq!(found, wanted, "seed {seed}, {dialect}, {form:?}:\n{}", writing.text);
            }
        }
    }
}

#[test]
fn one_edited_word_changes_one_word() {
    for seed in 0..ROUNDS {
        let mut rng = SeededRng::new(seed);
        let before = random_plan(&mut rng);
        if before.tasks.is_empty() {
            continue;
        }
        let number = rng.below(before.tasks.len());
        let word = before.tasks[number].spec.description.split(' ').next().unwrap().to_owned();
        for dialect in STABLE.into_iter().filter(|dialect| *dialect != Dialect::PlanDocument) {
            let Ok(writing) = write(&before, dialect, Form::AsRead) else { continue };
            // A format without descriptions has none to edit.
            if !writing.text.contains(&word) {
                continue;
            }
            let edited = writing.text.replacen(&word, &format!("{word}-more"), 1);
            let mut wanted = author(&before);
            let spec = &mut wanted.1[number].0;
            let found = after(&updated(&edited, dialect, &before), &before);
            let now = &found.1[number].0.description;
            assert!(now.starts_with(&format!("{word}-more")), "seed {seed}, {dialect}: {now:?}\n{edited}");
            spec.description.clone_from(now);
            assert_eq!(found, wanted, "seed {seed}, {dialect}:\n{edited}");
        }
    }
}

#[test]
fn what_was_skipped_because_of_another_task_is_not_its_authors_skip() {
    let names = ["a", "b", "c", "d"];
    let specs = names.iter().enumerate().map(|(at, name)| {
        let mut spec = TaskSpec::new(id(name), format!("task {name}"));
        spec.work = Some(Box::new(Work { executor: "x".into(), inputs: Json::empty_object(), shape: None }));
        spec.depends_on.extend(at.checked_sub(1).map(|at| Dependency::Task(id(names[at]))));
        spec
    });
    let mut draft = waypost_testkit::plan_of(specs);
    draft.tasks[1].state.status = Status::Failed;
    for task in &mut draft.tasks[2..] {
        task.state = TaskState { status: Status::Skipped, because_of: Some(id("b")), ..TaskState::default() };
    }
    draft.tasks[0].state.status = Status::Done;
    for dialect in [Dialect::Native, Dialect::Clido, Dialect::Jaato, Dialect::Agora, Dialect::Markdown] {
        let text = write(&draft, dialect, Form::Program).unwrap().text;
        let read = waypost_formats::read(&text, Some(dialect), None).unwrap().drafts.remove(0);
        let causes: Vec<Option<&str>> =
            read.tasks.iter().map(|task| task.state.because_of.as_ref().map(TaskId::as_str)).collect();
        assert_eq!(causes, [None, None, Some("b"), Some("b")], "{dialect}:\n{text}");
    }
}

#[test]
fn a_plan_without_results_is_exact_in_formats_that_have_its_fields() {
    let mut draft = Draft::new("a title");
    draft.id = Some("plan".parse().unwrap());
    let draft = Plan::from_trusted_draft("plan".parse().unwrap(), draft).to_draft();
    for dialect in [Dialect::Clido, Dialect::Jaato, Dialect::Frctl, Dialect::Markdown, Dialect::Native] {
        let losses = write(&draft, dialect, Form::AsRead).unwrap().losses;
        assert_eq!(losses, [], "{dialect}");
    }
}

#[test]
fn a_phase_that_follows_from_the_tasks_is_not_a_loss() {
    let of = |phase: Phase, status: Status| {
        let mut task = Task { spec: TaskSpec::new("a".parse().unwrap(), "do"), state: TaskState::default() };
        task.state.status = status;
        let mut draft = Draft { tasks: vec![task], ..Draft::new("") };
        draft.spec.goal = "a goal".to_owned();
        draft.state.phase = phase;
        let losses = write(&draft, Dialect::Clido, Form::AsRead).unwrap().losses;
        losses.into_iter().map(|loss| loss.field).collect::<Vec<_>>()
    };
    assert_eq!(of(Phase::Active, Status::Pending), Vec::<String>::new());
    assert_eq!(of(Phase::Completed, Status::Done), Vec::<String>::new());
    assert_eq!(of(Phase::Failed, Status::Failed), Vec::<String>::new());
    for (phase, status) in [
        (Phase::Paused, Status::Pending),
        (Phase::AwaitingApproval, Status::Pending),
        (Phase::Completed, Status::Pending),
        (Phase::Failed, Status::Done),
    ] {
        assert_eq!(of(phase, status), ["phase"], "{phase:?} {status:?}");
    }
}

/// Files without an id, and one whose id cannot be used here.
const NAMELESS: [(&str, &str); 8] = [
    ("l.md", "# T\n\nWords.\n\n- [ ] one\n  - [x] two\n- [ ] three\n"),
    ("m.md", "---\ntitle: T\n---\n\nWords.\n\n## Tasks\n\n- [ ] one\n"),
    ("n.json", r#"{"format":"waypost/1","title":"N","tasks":[{"id":"t1","description":"d"}]}"#),
    ("j.json", r#"{"title":"J","steps":["a","b"]}"#),
    ("c.json", r#"{"goal":"G","tasks":[{"id":"t1","description":"d"}]}"#),
    ("w.json", r#"{"meta":{"goal":"W"},"tasks":[{"id":"t1","description":"d"}]}"#),
    (
        "a.json",
        r#"{"id":"no id?","queue":"q","items":[{"id":"a","executor":"x","inputs":{},"depends_on":[],"resourceLocks":[]}]}"#,
    ),
    (
        "f.json",
        r#"{"schema_version":"1.0","id":"../x","title":"F","root_goal_id":"r","goals":{"r":{"id":"r","description":"root","child_ids":["k"]},"k":{"id":"k","description":"kid","parent_id":"r"}}}"#,
    ),
];

#[test]
fn the_same_file_is_the_same_plan_also_after_it_was_written_back() {
    let mut ids = std::collections::BTreeSet::new();
    for (name, text) in NAMELESS {
        let reading = read(text, None, Some(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let draft = reading.drafts[0].clone();
        let id = draft.id.clone().unwrap_or_else(|| panic!("{name} has no id: {reading:?}"));
        assert!(ids.insert(id.clone()), "{name}: {id}");
        assert!(reading.derived_ids.contains(&id), "{name}");
        let mut stored = Plan::from_trusted_draft(id.clone(), draft).to_draft();
        stored.tasks.iter_mut().for_each(|task| task.state.status = Status::Done);
        let written = waypost_formats::write_back(&stored, reading.dialect).unwrap();
        let again = read(&written.text, None, Some(name)).unwrap();
        assert_eq!(again.drafts[0].id, Some(id), "{name}:\n{}", written.text);
    }
}

#[test]
fn a_text_that_is_not_of_a_file_has_no_id_of_its_own() {
    for (name, text) in NAMELESS.into_iter().filter(|(name, _)| *name != "f.json" && *name != "a.json") {
        assert_eq!(read(text, None, None).unwrap().drafts[0].id, None, "{name}");
    }
}

#[test]
fn another_content_without_an_id_is_another_plan() {
    let id = |text: &str| read(text, None, Some("l.md")).unwrap().drafts[0].id.clone();
    let list = "# T\n\n- [ ] one\n";
    assert_eq!(id(list), id("# T\n\n- [x] one\n"), "what is done does not matter");
    for other in ["# U\n\n- [ ] one\n", "# T\n\n- [ ] two\n", "# T\n\n- [ ] one\n- [ ] two\n"] {
        assert_ne!(id(list), id(other), "{other}");
    }
}

fn plan_of(text: &str, dialect: Dialect) -> Draft {
    let draft = read(text, Some(dialect), Some("it")).unwrap().drafts.remove(0);
    Plan::from_trusted_draft(draft.id.clone().unwrap(), draft).to_draft()
}

#[test]
fn a_markdown_text_for_people_leaves_unknown_fields_alone() {
    let before = plan_of(
        r#"{"meta":{"id":"p","goal":"G","team":"x"},"risk":3,"tasks":[{"id":"a","description":"one","x":[1]}]}"#,
        Dialect::Clido,
    );
    let text = write(&before, Dialect::Markdown, Form::Document).unwrap().text;
    let update = updated(&text.replace("one", "two"), Dialect::Markdown, &before);
    let (spec, tasks) = after(&update, &before);
    assert_eq!((&spec, &tasks[0].0.foreign), (&before.spec, &before.tasks[0].spec.foreign));
    assert_eq!(tasks[0].0.description, "two");
}

#[test]
fn fields_that_a_foreign_text_leaves_out_stay_as_they_are() {
    let mut before = plan_of(
        r#"{"format":"waypost/1","id":"p","title":"P","goal":"P","tasks":[{"id":"z","description":"y"},
            {"id":"a","description":"x","notes":"N","tools":["Read"],"complexity":"high","skip":true,"depends_on":["z"],"provides":"o",
             "thinking":{"reasoning":"why","tokens":7}}]}"#,
        Dialect::Native,
    );
    before.tasks[0].state.status = Status::Done;
    let texts = [
        (
            Dialect::Clido,
            r#"{"goal":"P","tasks":[{"id":"z","description":"y"},{"id":"a","description":"x"}]}"#,
        ),
        (Dialect::Jaato, r#"{"plan_id":"p","title":"P","steps":[{"id":"z"},{"id":"a"}]}"#),
        (
            Dialect::Frctl,
            r#"{"id":"p","root_goal_id":"p-root","goals":{"p-root":{"id":"p-root","description":"P","child_ids":["z","a"]},
                "z":{"id":"z","description":"y","parent_id":"p-root"},"a":{"id":"a","description":"x","parent_id":"p-root"}}}"#,
        ),
    ];
    for (dialect, text) in texts {
        assert_eq!(after(&updated(text, dialect, &before), &before), author(&before), "{dialect}");
    }
    // What is written counts, also if it is empty.
    let text = r#"{"goal":"P","tasks":[{"id":"z","description":"y"},{"id":"a","description":"x","notes":"","skip":false,"tools":null}]}"#;
    let (_, tasks) = after(&updated(text, Dialect::Clido, &before), &before);
    let a = &tasks[1].0;
    assert_eq!(
        (a.notes.as_str(), a.skip, &a.tools, a.complexity),
        ("", false, &None, Some(Complexity::High))
    );
}

#[test]
fn unknown_fields_that_a_foreign_text_leaves_out_stay_at_every_level() {
    let before = plan_of(
        r#"{"meta":{"id":"p","goal":"G","team":"x"},"risk":3,"tasks":[{"id":"a","description":"one","x":[1]}]}"#,
        Dialect::Clido,
    );
    let text = r#"{"meta":{"id":"p","goal":"G"},"tasks":[{"id":"a","description":"two","y":2}]}"#;
    let (spec, tasks) = after(&updated(text, Dialect::Clido, &before), &before);
    let unknown = |fields: &waypost_core::ForeignFields| {
        let mut fields = fields.of("clido");
        fields.retain(|name, _| !name.starts_with('$'));
        serde_json::Value::Object(fields)
    };
    assert_eq!(unknown(&spec.foreign), serde_json::json!({ "meta": { "team": "x" }, "risk": 3 }));
    assert_eq!(unknown(&tasks[0].0.foreign), serde_json::json!({ "x": [1], "y": 2 }));
}

#[test]
fn an_edited_lock_changes_one_lock() {
    let before = plan_of(
        r#"{"format":"waypost/1","id":"p","title":"P","tasks":[{"id":"a","description":"x","status":"done","work":{"executor":"e","inputs":{}},
            "locks":["l1",{"key":"l2","mode":"shared"}]}]}"#,
        Dialect::Native,
    );
    for form in [Form::Document, Form::Program] {
        let text = write(&before, Dialect::Agora, form).unwrap().text.replace("\"l1\"", "\"l9\"");
        let (_, tasks) = after(&updated(&text, Dialect::Agora, &before), &before);
        let lock = |key: &str, mode| Lock { key: key.to_owned(), mode };
        assert_eq!(tasks[0].0.locks, [lock("l9", LockMode::Exclusive), lock("l2", LockMode::Shared)]);
        assert_eq!(tasks[0].1, Status::Done);
    }
}

#[test]
fn a_line_that_is_inserted_into_a_list_without_ids_leaves_the_others_as_they_are() {
    let mut before = plan_of("# T\n\n- [ ] Write it\n- [ ] Test it\n- [ ] Ship it\n", Dialect::Checklist);
    before.tasks[0].state.status = Status::Done;
    before.tasks[0].state.result = Some("written".to_owned());
    before.tasks[1].state.status = Status::Failed;
    for (at, lines) in [
        (0, "- [ ] Think\n- [ ] Write it\n- [ ] Test it\n- [ ] Ship it\n"),
        (1, "- [x] Write it\n- [ ] Think\n- [ ] Test it\n- [ ] Ship it\n"),
        (3, "- [ ] Write it\n- [!] Test it\n- [ ] Ship it\n- [ ] Think\n"),
    ] {
        let update = updated(&format!("# T\n\n{lines}"), Dialect::Checklist, &before);
        let Command::Replace(draft) = &update.command else { panic!("{update:?}") };
        let mut draft = draft.clone();
        let new = draft.tasks.remove(at);
        assert_eq!((new.spec.description.as_str(), new.state.status), ("Think", Status::Pending), "{lines}");
        assert_eq!(draft.tasks, before.tasks, "{lines}");
    }
    // A title for a plan that has neither a title nor a goal is a title.
    let plain = plan_of("- [ ] Write it\n", Dialect::Checklist);
    let (spec, _) = after(&updated("# New\n\n- [ ] Write it\n", Dialect::Checklist, &plain), &plain);
    assert_eq!((spec.title.as_str(), spec.goal.as_str()), ("New", ""));
    // Another mark counts, and so does an empty box on a line with an id.
    let update =
        updated("# T\n\n- [ ] Write it\n- [ ] Test it\n- [x] Ship it\n", Dialect::Checklist, &before);
    assert_eq!(after(&update, &before).1[2].1, Status::Done);
    let text = write(&before, Dialect::Checklist, Form::AsRead).unwrap().text.replace("[x]", "[ ]");
    assert_eq!(after(&updated(&text, Dialect::Checklist, &before), &before).1[0].1, Status::Pending);
}

#[test]
fn an_edited_description_of_a_frctl_plan_changes_the_goal_that_it_stands_for() {
    let before = plan_of(
        r#"{"meta":{"id":"p","goal":"Make it fast"},"tasks":[{"id":"a","description":"one"},{"id":"b","description":"two"}]}"#,
        Dialect::Clido,
    );
    for form in [Form::Document, Form::Program] {
        let text = write(&before, Dialect::Frctl, form).unwrap().text;
        let update = updated(&text.replace("Make it fast", "Make it small"), Dialect::Frctl, &before);
        let (spec, tasks) = after(&update, &before);
        assert_eq!(
            (spec.goal.as_str(), spec.title.as_str(), tasks.len()),
            ("Make it small", "", 2),
            "{form:?}:\n{text}"
        );
        // One of the two places where a document has it is enough.
        for replaced in 0..text.matches("Make it fast").count() {
            let mut parts = text.split("Make it fast");
            let mut edited = parts.next().unwrap().to_owned();
            for (at, part) in parts.enumerate() {
                edited.push_str(if at == replaced { "Make it small" } else { "Make it fast" });
                edited.push_str(part);
            }
            let (spec, _) = after(&updated(&edited, Dialect::Frctl, &before), &before);
            assert_eq!(
                (spec.goal.as_str(), spec.title.as_str()),
                ("Make it small", ""),
                "{replaced}:\n{edited}"
            );
        }
    }
}

#[test]
fn the_words_of_a_root_are_the_title_only_of_a_plan_that_has_no_other() {
    let text =
        r#"{"id":"p","root_goal_id":"r","goals":{"r":{"id":"r","description":"Old words","child_ids":[]}}}"#;
    let mut before = plan_of(text, Dialect::Frctl);
    assert_eq!(before.spec.title, "Old words");
    for (title, expected) in [("Old words", "New words"), ("Another title", "Another title")] {
        before.spec.title = title.to_owned();
        let update = updated(&text.replace("Old", "New"), Dialect::Frctl, &before);
        let (spec, tasks) = after(&update, &before);
        assert_eq!((spec.title.as_str(), tasks[0].0.description.as_str()), (expected, "New words"));
    }
}

#[test]
fn what_a_form_leaves_out_of_a_plan_stays() {
    let mut before = Draft::new("T");
    before.id = Some("plan".parse().unwrap());
    let digest = Digest {
        summary: "S".to_owned(),
        key_decisions: vec!["k".to_owned()],
        artifacts: vec!["f.py".to_owned()],
        compression_ratio: None,
        fidelity_score: Some(0.5),
    };
    let thinking = PlannerNotes { digest: Some(digest), ..PlannerNotes::default() };
    let spec = TaskSpec { thinking: Some(Box::new(thinking)), ..TaskSpec::new(id("a"), "x") };
    let done = TaskState { status: Status::Done, ..TaskState::default() };
    before.tasks = vec![Task { spec, state: done }, Task::new(TaskSpec::new(id("b"), "y"))];
    let before = Plan::from_trusted_draft("plan".parse().unwrap(), before).to_draft();
    let text = write(&before, Dialect::Frctl, Form::Program).unwrap().text;
    assert_eq!(after(&updated(&text, Dialect::Frctl, &before), &before), author(&before));
    // An item without a status says nothing about it, although another one has one.
    let text = write(&before, Dialect::Agora, Form::Document).unwrap().text;
    let ticked = text.replacen("\"id\": \"b\"", "\"status\": \"done\", \"id\": \"b\"", 1);
    assert_ne!(text, ticked);
    let (_, tasks) = after(&updated(&ticked, Dialect::Agora, &before), &before);
    assert_eq!(tasks.iter().map(|(_, status)| *status).collect::<Vec<_>>(), [Status::Done; 2]);
}

#[test]
fn the_list_of_a_plan_without_tasks_changes_nothing() {
    for (title, body) in [
        ("", "Read me.\n"),
        ("", "# Ideas\n\n- [ ] a\n- [x] b\n"),
        ("Ideas", "# Ideas\n\nText.\n"),
        ("Ideas", "- [ ] a\n"),
    ] {
        let mut before = Draft::new(title);
        before.spec.body = body.to_owned();
        let text = write(&before, Dialect::Checklist, Form::AsRead).unwrap().text;
        for dialect in [Some(Dialect::Checklist), None] {
            let written = Written { text: &text, dialect, file_name: None, name: "it" };
            let update = update(written, &before, None, free_ids()).unwrap();
            assert_eq!(after(&update, &before), author(&before), "{title:?} {body:?}");
        }
    }
}
