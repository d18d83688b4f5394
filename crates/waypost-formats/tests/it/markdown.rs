//! Plans as Markdown texts: what people edit.

use waypost_core::{
    Complexity, Dependency, DependencyRule, Draft, ExternalTaskRef, Json, Lock, LockMode, Status, Task,
    TaskSpec, Timestamp, Work,
};
use waypost_formats::{Dialect, Form, read, sniff};
use waypost_testkit::{SeededRng, chain, fan_out, id, layered, plan_of, task as new_task};

use crate::{draft, fixture, losses, problems, task, written};

const DIALECT: Dialect = Dialect::Markdown;

/// Writes a plan, reads it back, and finds the same plan.
#[track_caller]
fn same_again(plan: &Draft) -> String {
    let text = written(plan, DIALECT, Form::AsRead);
    let reading = read(&text, Some(DIALECT), Some("elsewhere.md")).unwrap();
    assert_eq!(reading.problems, [], "{text}");
    let mut back = reading.drafts[0].clone();
    // A file without an id has one that follows from its content.
    back.id.take_if(|id| reading.derived_ids.contains(id));
    assert_eq!(back.spec, plan.spec, "{text}");
    assert_eq!(back.tasks, plan.tasks, "{text}");
    assert_eq!(back, *plan, "{text}");
    assert_eq!(losses(plan, DIALECT, Form::AsRead), [] as [&str; 0]);
    text
}

#[test]
fn a_whole_plan_is_read_and_written_back_as_the_same_text() {
    let text = fixture("markdown/kitchen.md");
    let plan = draft(&text, DIALECT);
    assert_eq!(sniff(&text, None), Some(DIALECT));
    assert_eq!(plan.spec.title, "Kitchen: rebuild");
    assert_eq!(plan.spec.goal, "Cook at home again.\nBefore winter.");
    assert_eq!(plan.spec.body, "# Kitchen\n\nRemember the old pipes.");
    assert_eq!(plan.version, 7);
    let pipes = task(&plan, "pipes");
    assert_eq!(pipes.state.status, Status::Running);
    assert_eq!(pipes.spec.notes, "Shut the water first.\n\nThe plumber knows where.");
    assert_eq!(pipes.spec.complexity, Some(Complexity::High));
    assert_eq!(pipes.spec.priority, 3);
    assert_eq!(pipes.spec.tools.as_deref(), Some(["wrench".to_owned(), "torch".to_owned()].as_slice()));
    assert_eq!(pipes.spec.locks, [Lock { key: "water:main".into(), mode: LockMode::Exclusive }]);
    let paint = task(&plan, "paint");
    assert_eq!(paint.spec.parent, Some(id("walls")));
    assert_eq!((paint.spec.when, paint.spec.skip), (DependencyRule::AllFinished, true));
    assert_eq!(task(&plan, "plaster").spec.description, "Plaster\nTwo coats.\nOne day in between.");
    assert_eq!(task(&plan, "fit").spec.depends_on[1].to_string(), "shop:deliver");
    assert_eq!(task(&plan, "odd id: 1").spec.description, "Ends like a list (skip)");
    assert_eq!(written(&plan, DIALECT, Form::AsRead), text);
}

#[test]
fn tasks_in_the_middle_of_a_text_stay_there() {
    let text = fixture("markdown/middle.md");
    let mut plan = draft(&text, DIALECT);
    assert_eq!(plan.spec.body, "Where we go.\n\n## Tasks\n\n## Costs\n\n- 100 for the train\n");
    assert_eq!(plan.tasks.len(), 2);
    assert_eq!(written(&plan, DIALECT, Form::AsRead), text);
    plan.tasks.push(Task::new(new_task("go", &["pack"])));
    assert!(same_again(&plan).contains("- [ ] go: do go  (after: pack)\n\n## Costs"));
}

#[test]
fn any_body_comes_back_as_it_was() {
    let bodies = [
        "",
        "\n",
        "\n\n\n",
        "no end",
        "with end\n",
        "two ends\n\n",
        " indented",
        "a\r\nb\r\n",
        "---\nnot: front matter\n---\n",
        "## Tasks",
        "## Tasks\n",
        "## Tasks\n\n",
        "## Tasks\n\ntext\n",
        "## Tasks\n\n\n\ntext\n",
        "## Tasks\ntext right below\n",
        "## Tasks\n\n- [ ] looks: like a task\n",
        "## Tasks\n\n- [ ] looks: like a task\n\n## After\n",
        "```\n## Tasks\n\n- [ ] code: in a fence\n```\n",
        "```\n## Tasks\n- [ ] a fence that nobody closes",
        "## Tasks\n\n## Tasks\n\n- [ ] a: b\n\nmore\n## tasks\n",
        "- [ ] a checklist of its own\n",
    ];
    for body in bodies {
        for mut plan in [plan_of([]), chain(2)] {
            plan.spec.body = body.into();
            same_again(&plan);
        }
    }
}

#[test]
fn any_text_in_any_field_comes_back_as_it_was() {
    let texts = [
        "",
        " ",
        "plain",
        "two\nlines",
        "\nstarts empty",
        "ends empty\n",
        "a\r\nb",
        "trailing ",
        "\ttab",
        "t9: looks like an id",
        "\"quoted\"",
        "\"quoted\": and more",
        "ends with (after: t1)",
        "ends with (skip)",
        "(priority: 4)",
        "- [x] an item",
        "> a quote",
        "| a bar",
        "notes: an attribute",
        "## Tasks",
        "---",
        "back\\slash \u{1b}[31m \u{0}",
        "日本語 ✓ \u{2028}\u{feff}",
        "{\"json\": [1]}",
        "a, b; c",
        "true",
        "12",
        "key: value #3",
    ];
    for text in texts {
        let mut plan = chain(1);
        plan.spec.title = text.into();
        plan.spec.goal = text.into();
        plan.spec.status = text.into();
        plan.spec.owner = text.into();
        plan.spec.queue = text.into();
        plan.state.summary = text.into();
        let first = &mut plan.tasks[0];
        first.spec.description = text.into();
        first.spec.notes = text.into();
        first.spec.provides = Some(text.into());
        first.spec.tools = Some(vec![text.into(), "plain".into()]);
        first.spec.locks = vec![Lock { key: text.into(), mode: LockMode::Exclusive }];
        first.state.result = Some(text.into());
        first.state.error = Some(text.into());
        first.state.reason = Some(text.into());
        first.state.progress = Some(text.into());
        same_again(&plan);
    }
}

#[test]
fn any_id_comes_back_as_it_was() {
    for name in ["t1", "a b", " a", "a:", "a,b", "(a)", "\"a\"", "ünï", "x/y#2", "[x]", "-", "skip", "日本"]
    {
        let mut child = new_task("child", &[name]);
        child.parent = Some(id(name));
        same_again(&plan_of([new_task(name, &[]), child, new_task("after", &["child", name])]));
    }
}

#[test]
fn everything_a_task_can_say_comes_back() {
    let mut spec = new_task("everything", &["first"]);
    spec.depends_on.push(Dependency::External(Box::new(ExternalTaskRef {
        agent: Some("helper".into()),
        plan: None,
        task: id("far away"),
    })));
    spec.when = DependencyRule::AnyDone;
    spec.complexity = Some(Complexity::Medium);
    spec.notes = "one\n\n  two".into();
    spec.tools = Some(Vec::new());
    spec.skip = true;
    spec.locks = vec![Lock { key: "db".into(), mode: LockMode::Shared }];
    let work = |executor: &str| {
        Some(Box::new(Work {
            executor: executor.into(),
            inputs: Json::parse(r#"{"n":1.50,"t":"a\nb"}"#).unwrap(),
            shape: Some("s".into()),
        }))
    };
    spec.work = work("shell");
    spec.check = work("test");
    spec.priority = -3;
    let mut everything = Task::new(spec);
    everything.state.status = Status::Cancelled;
    everything.state.attempt = 4;
    everything.state.started_at = Timestamp::parse("2026-01-01T00:00:00.123456Z").ok();
    everything.state.output = Json::parse(r#"{"a":[1,2,null]}"#).ok();
    everything.state.because_of = Some(id("first"));
    let mut plan = plan_of([new_task("first", &[])]);
    plan.tasks.push(everything);
    plan.spec.token_budget = Some(5);
    plan.state.archived = true;
    same_again(&plan);
}

#[test]
fn many_shapes_come_back() {
    let mut deep = chain(60);
    for n in 1..60 {
        deep.tasks[n].spec.parent = Some(id(&format!("t{}", n - 1)));
    }
    same_again(&deep);
    same_again(&fan_out(30));
    same_again(&layered(300, 4, 40, 7));
    let mut orphan = new_task("orphan", &[]);
    orphan.parent = Some(id("nobody"));
    let mut ring = [new_task("a", &[]), new_task("b", &[])];
    ring[0].parent = Some(id("b"));
    ring[1].parent = Some(id("a"));
    let [a, b] = ring;
    same_again(&plan_of([orphan, a, b]));
}

#[test]
fn random_texts_come_back() {
    let pieces =
        ["\n", "- [ ] ", "## Tasks", "```", "t1: ", "(after: t1)", " ", "\"", ">", "|", "x", ":", "\t", "é"];
    let mut dice = SeededRng::new(11);
    let mut text = || (0..dice.below(9)).map(|_| *dice.pick(&pieces)).collect::<String>();
    for _ in 0..400 {
        let mut plan = chain(3);
        plan.spec.body = text();
        plan.spec.title = text();
        for task in &mut plan.tasks {
            task.spec.description = text();
            task.spec.notes = text();
        }
        same_again(&plan);
    }
}

#[test]
fn siblings_keep_their_order_when_the_tree_is_written() {
    let mut plan =
        plan_of([new_task("a", &[]), new_task("b", &[]), new_task("a1", &[]), new_task("b1", &[])]);
    plan.tasks[2].spec.parent = Some(id("a"));
    plan.tasks[3].spec.parent = Some(id("b"));
    let back = draft(&written(&plan, DIALECT, Form::AsRead), DIALECT);
    let ids: Vec<&str> = back.tasks.iter().map(|task| task.spec.id.as_str()).collect();
    assert_eq!(ids, ["a", "a1", "b", "b1"]);
    assert_eq!(task(&back, "b1").spec.parent, Some(id("b")));
}

#[test]
fn for_people_the_notes_of_machines_are_left_out_and_named() {
    let plan = draft(&fixture("markdown/kitchen.md"), DIALECT);
    let text = written(&plan, DIALECT, Form::Document);
    assert!(!text.contains("state:") && !text.contains("foreign:"));
    assert_eq!(losses(&plan, DIALECT, Form::Document), ["plan: foreign.clido"]);
    let back = draft(&text, DIALECT);
    assert_eq!(task(&back, "strip").state.result.as_deref(), Some("Skip is full"));
}

#[test]
fn what_people_forget_when_they_edit_is_forgiven_and_said() {
    let text = "---\ntitle: T\n---\n\n## Tasks\n\n- [ ] a: A\n- b: no box\n- [?] c: odd mark\n- [ ] no id\n  free text\n\n  and more\n";
    let reading = read(text, Some(DIALECT), None).unwrap();
    assert_eq!(reading.problems, []);
    assert_eq!(
        reading.notes,
        [
            "line 8: an item without a box; read as pending",
            "line 9: the mark [?] is not known; read as pending"
        ]
    );
    let plan = &reading.drafts[0];
    let ids: Vec<&str> = plan.tasks.iter().map(|task| task.spec.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c", "t1"]);
    assert_eq!(task(plan, "t1").spec.notes, "free text\n\nand more");
}

#[test]
fn every_wrong_attribute_is_reported_with_its_task() {
    let text = "---\nversion: many\nphase: asleep\nowner: [a]\nid: not/an/id\nno colon\n---\n## Tasks\n- [ ] a: A\n  \
                priority: high\n  work: {\"executor\": 1}\n  complexity: extreme\n  skip: perhaps\n  after: [1]\n";
    let found = problems(text, DIALECT);
    let starts = [
        "plan: `version` has the wrong type: line 2: expected a whole number, found `many`",
        "plan: `phase` has the wrong type: line 3: expected one of draft,",
        "plan: `owner` has the wrong type: line 4: expected a text",
        "plan: `id` has the wrong type: line 5: a plan id may use",
        "plan: line 6: `no colon` is no `key: value`",
        "task a: `priority` has the wrong type: expected a whole number, found `high`",
        "task a: `work` has the wrong type: invalid type: integer",
        "task a: `complexity` has the wrong type: expected low, medium or high, found `extreme`",
        "task a: `skip` has the wrong type: expected true or false, found `perhaps`",
        "task a: `after` has the wrong type: invalid type: integer",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (found, start) in found.iter().zip(starts) {
        assert!(found.starts_with(start), "{found}");
    }
}

#[test]
fn a_text_without_front_matter_is_a_body_with_its_heading_as_the_title() {
    let plan = draft("# Where to go\n\nSouth.\n", DIALECT);
    assert_eq!(
        (plan.spec.title.as_str(), plan.spec.body.as_str()),
        ("Where to go", "# Where to go\n\nSouth.\n")
    );
    let reading = read("South.\n", Some(DIALECT), Some("trips/to-the-sea.md")).unwrap();
    assert_eq!(reading.drafts[0].spec.title, "to-the-sea");
}

#[test]
fn foreign_front_matter_that_was_tampered_with_cannot_break_the_file() {
    let mut plan = chain(1);
    let kept = serde_json::json!({"tags": "tags: a\n---\ntitle: stolen", "x": "title: stolen", "y": 1});
    plan.spec.foreign.keep("markdown", kept.as_object().unwrap().clone());
    let text = written(&plan, DIALECT, Form::AsRead);
    assert!(!text.contains("stolen"));
    assert_eq!(losses(&plan, DIALECT, Form::AsRead), ["plan: foreign.markdown"]);
}

#[test]
fn a_deep_tree_does_not_grow_with_the_square_of_its_depth() {
    let mut deep = chain(3_000);
    for n in 1..3_000 {
        deep.tasks[n].spec.parent = Some(id(&format!("t{}", n - 1)));
    }
    assert!(same_again(&deep).len() < 3_000 * 150);
}

#[test]
fn a_task_of_its_own_is_made_of_nothing_but_a_description() {
    let spec = TaskSpec::new(id("t1"), "Only this");
    let plan = plan_of([spec]);
    assert!(same_again(&plan).ends_with("## Tasks\n\n- [ ] t1: Only this\n"));
}
