//! Pictures of plans: Mermaid, Graphviz, GraphML, SVG.

use waypost_core::{Dependency, Draft, EffectiveStatus, ExternalTaskRef, Status};
use waypost_formats::{Dialect, Form, Unreadable, read};
use waypost_testkit::{chain, fan_out, id, layered, plan_of, task as new_task};

use crate::{draft, fixture, golden, losses, written};

const PICTURES: [Dialect; 4] = [Dialect::Mermaid, Dialect::Dot, Dialect::Graphml, Dialect::Svg];

/// A plan with one task of every status, a parent, a dependency elsewhere, and words of all sorts.
fn harbour() -> Draft {
    let mut plan = plan_of([
        new_task("survey", &[]),
        new_task("order", &["survey"]),
        new_task("crane", &["survey"]),
        new_task("mast", &[]),
        new_task("step", &["order", "crane"]),
        new_task("rig", &["step"]),
        new_task("paint", &["survey"]),
        new_task("sail", &["rig", "paint"]),
    ]);
    plan.spec.title = "Rig the <boat> & \"sail\"".into();
    let descriptions = [
        "Measure the deck",
        "Order spruce, bronze & rope from the yard in the north",
        "Book the crane",
        "Set the mast",
        "Step the mast with the crane: slowly, in no wind, and with everybody off the deck while it swings",
        "船の索具を取り付ける",
        "Paint <b>the hull</b>",
        "Sail to \"the\" island; come back",
    ];
    for (task, text) in plan.tasks.iter_mut().zip(descriptions) {
        task.spec.description = text.into();
    }
    let statuses = [
        Status::Done,
        Status::Running,
        Status::Failed,
        Status::Pending,
        Status::Skipped,
        Status::Pending,
        Status::Cancelled,
        Status::Pending,
    ];
    for (task, status) in plan.tasks.iter_mut().zip(statuses) {
        task.state.status = status;
    }
    plan.tasks[4].spec.parent = Some(id("mast"));
    plan.tasks[5].spec.parent = Some(id("mast"));
    plan.tasks[7].spec.depends_on.push(Dependency::External(Box::new(ExternalTaskRef {
        agent: Some("weather".into()),
        plan: None,
        task: id("forecast"),
    })));
    plan
}

/// Text that tries to break out of every format.
const HOSTILE: &str = "\"]}; end --> </text></svg><script>alert(1)</script> `x` #quot; \\\" \\N %% & \u{0}\u{1b}[31m \u{202e}\n---\nid: x";

fn hostile() -> Draft {
    let mut plan = harbour();
    plan.spec.title = HOSTILE.into();
    plan.spec.body = HOSTILE.into();
    let evil: String = HOSTILE.chars().filter(|c| !c.is_control()).collect();
    let mut first = new_task(&evil, &["survey"]);
    first.description = HOSTILE.into();
    first.notes = HOSTILE.into();
    first.parent = Some(id("survey"));
    let mut second = new_task("after", &[&evil]);
    second.parent = Some(id(&evil));
    plan.tasks.extend([first, second].map(waypost_core::Task::new));
    plan
}

#[test]
fn the_pictures_of_a_small_plan_are_these() {
    let plan = harbour();
    for (dialect, name) in PICTURES.into_iter().zip(["plan.mmd", "plan.dot", "plan.graphml", "plan.svg"]) {
        golden(&format!("pictures/{name}"), &written(&plan, dialect, Form::AsRead));
    }
}

#[test]
fn a_graph_with_every_field_has_a_native_twin() {
    // `tests/python/graphml_check.py` reads both files and finds the same nodes, edges and attributes.
    let plan = draft(&fixture("markdown/kitchen.md"), Dialect::Markdown);
    golden("pictures/kitchen.graphml", &written(&plan, Dialect::Graphml, Form::AsRead));
    golden("pictures/kitchen.json", &written(&plan, Dialect::Native, Form::AsRead));
}

#[test]
fn pictures_can_be_written_but_not_read() {
    for dialect in PICTURES {
        assert_eq!(read("x", Some(dialect), None).err(), Some(Unreadable::WriteOnly(dialect)));
    }
}

#[test]
fn hostile_text_stays_text() {
    let plan = hostile();
    for dialect in PICTURES {
        let text = written(&plan, dialect, Form::AsRead);
        // In Graphviz's language the name of a node is no text that is shown.
        assert!(dialect == Dialect::Dot || !text.contains("<script>"), "{dialect}");
        assert!(!text.contains('\u{1b}') && !text.contains('\0'), "{dialect}");
    }
    let mermaid = written(&plan, Dialect::Mermaid, Form::AsRead);
    for line in mermaid.lines().skip_while(|line| !line.starts_with("flowchart")) {
        // Two quotes around a label, and none inside.
        assert!(matches!(line.matches('"').count(), 0 | 2), "{line}");
    }
    let svg = written(&plan, Dialect::Svg, Form::AsRead);
    assert_eq!(svg.matches("</svg>").count(), 1);
    assert_eq!(svg.matches("<g").count(), svg.matches("</g>").count());
}

#[test]
fn a_status_shows_without_colour() {
    let plan = harbour();
    let mermaid = written(&plan, Dialect::Mermaid, Form::AsRead);
    for part in ["n0(\"✓", "n1([\"◐", "n2{{\"✗", "n3[\"○", "n5[\"○", "n7[\"◌", "n4[/\"⊘", "n6[\\\"■"]
    {
        assert!(mermaid.contains(part), "{part}");
    }
    let dot = written(&plan, Dialect::Dot, Form::AsRead);
    let svg = written(&plan, Dialect::Svg, Form::AsRead);
    let shown = EffectiveStatus::ALL.into_iter().filter(|status| {
        !matches!(
            status,
            EffectiveStatus::Queued
                | EffectiveStatus::Asking
                | EffectiveStatus::Reported
                | EffectiveStatus::Held
                | EffectiveStatus::Disputed
        )
    });
    for status in shown {
        assert!(svg.contains(&format!("href=\"#sign-{}\" x=\"8\"", status.as_str())), "{}", status.as_str());
        assert!(dot.contains(&format!("tooltip=\"{}: ", status.as_str())), "{}", status.as_str());
    }
}

#[test]
fn parents_are_groups_and_dependencies_are_arrows() {
    let plan = harbour();
    let mermaid = written(&plan, Dialect::Mermaid, Form::AsRead);
    assert!(mermaid.contains("subgraph g3[\"mast\"]\n    n3["));
    assert!(mermaid.contains("  n0 --> n1\n") && mermaid.contains("  o0 -.-> n7\n"));
    let dot = written(&plan, Dialect::Dot, Form::AsRead);
    assert!(dot.contains("subgraph cluster_3 {") && dot.contains("  \"survey\" -> \"order\";\n"));
    let graphml = written(&plan, Dialect::Graphml, Form::AsRead);
    assert!(graphml.contains("<edge source=\"survey\" target=\"order\"/>"));
    assert!(graphml.contains("<data key=\"task.parent\">mast</data>"));
}

#[test]
fn what_a_picture_does_not_show_is_named() {
    let mut plan = plan_of([new_task("a", &[])]);
    plan.spec.goal = "goal".into();
    plan.tasks[0].spec.notes = "notes".into();
    for dialect in [Dialect::Mermaid, Dialect::Dot, Dialect::Svg] {
        assert_eq!(losses(&plan, dialect, Form::AsRead), ["plan: goal", "task a: notes"], "{dialect}");
    }
    assert_eq!(losses(&plan, Dialect::Graphml, Form::AsRead), [] as [&str; 0]);
    plan.tasks[0].spec.notes = "bell \u{7}".into();
    assert_eq!(losses(&plan, Dialect::Graphml, Form::AsRead), ["task a: notes"]);
    plan.tasks[0].spec.notes.clear();
    plan.tasks[0].spec.description = "long ".repeat(200);
    assert!(losses(&plan, Dialect::Mermaid, Form::AsRead).contains(&"task a: description".to_owned()));
}

#[test]
fn graphml_keeps_every_field_under_a_typed_key() {
    let mut plan = harbour();
    plan.tasks[0].spec.priority = 5;
    plan.tasks[0].spec.skip = true;
    plan.tasks[0].spec.notes = "two\nlines <&>".into();
    let text = written(&plan, Dialect::Graphml, Form::AsRead);
    for part in [
        "<key id=\"task.priority\" for=\"node\" attr.name=\"priority\" attr.type=\"int\"/>",
        "<data key=\"task.priority\">5</data>",
        "<data key=\"task.skip\">true</data>",
        "<data key=\"task.notes\">two&#10;lines &lt;&amp;&gt;</data>",
        "<data key=\"plan.title\">Rig the &lt;boat&gt; &amp; &quot;sail&quot;</data>",
    ] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn broken_plans_still_have_a_picture() {
    let mut twice = plan_of([new_task("a", &["b"]), new_task("b", &["a"]), new_task("a", &["a", "ghost"])]);
    twice.tasks[0].spec.parent = Some(id("b"));
    twice.tasks[1].spec.parent = Some(id("a"));
    for dialect in PICTURES {
        let text = written(&twice, dialect, Form::AsRead);
        assert!(!text.contains("NaN") && !text.contains("inf"), "{dialect}: {text}");
        written(&plan_of([]), dialect, Form::AsRead);
    }
    assert!(written(&twice, Dialect::Svg, Form::AsRead).contains("order back"));
}

#[test]
fn a_plan_of_a_thousand_tasks_is_drawn_task_by_task_and_a_larger_one_by_levels() {
    let boxes = |plan: &Draft| written(plan, Dialect::Svg, Form::AsRead).matches("class=\"task ").count();
    assert_eq!(boxes(&layered(1_000, 3, 60, 1)), 1_000);
    assert_eq!(boxes(&chain(2_000)), 2_000, "at the limit");
    assert!(boxes(&chain(2_001)) <= 60, "one past it");
    assert_eq!(boxes(&fan_out(5_000)), 3, "one band for each level");
}

#[test]
fn large_plans_take_no_more_than_their_share() {
    // A square of the size would take hours.
    let plans = [
        ("a chain", chain(100_000), &[Dialect::Svg][..]),
        ("a fan", fan_out(100_000), &[Dialect::Svg]),
        ("layers", layered(100_000, 4, 2_000, 3), &[Dialect::Svg]),
        ("a shorter chain", chain(10_000), &PICTURES),
        ("one that is drawn", layered(2_000, 2, 100, 5), &PICTURES),
        ("one with too many arrows", layered(2_000, 10, 2_000, 5), &PICTURES),
        ("a drawn fan", fan_out(1_998), &PICTURES),
    ];
    for (name, plan, dialects) in plans {
        for &dialect in dialects {
            let text = written(&plan, dialect, Form::AsRead);
            let bytes_max = 4_000_000 + plan.tasks.len() * 2_000;
            assert!(text.len() < bytes_max, "{name} as {dialect} has {} bytes", text.len());
        }
    }
}

#[test]
fn no_picture_brings_characters_that_a_terminal_obeys() {
    let wicked = "a\u{202e}b\u{200b}c\u{9b}31m";
    let mut task = waypost_core::Task::new(waypost_core::TaskSpec::new(
        waypost_core::TaskId::new("x\u{202e}\u{feff}y").unwrap(),
        format!("{wicked}\u{1b}]52;c;AAAA\u{7}"),
    ));
    task.spec.notes = wicked.to_owned();
    let mut plan = Draft::new(wicked);
    plan.tasks.push(task);
    for dialect in [Dialect::Dot, Dialect::Graphml, Dialect::Svg] {
        let text = written(&plan, dialect, Form::AsRead);
        let unsafe_characters =
            |character: char| character != '\n' && waypost_text::is_unsafe_char(character);
        assert!(!text.contains(unsafe_characters), "{dialect}: {text:?}");
    }
    let graphml = written(&plan, Dialect::Graphml, Form::AsRead);
    assert!(graphml.contains("<node id=\"x&#x202e;&#xfeff;y\">"), "a parser reads the same id: {graphml}");
    assert!(graphml.contains("a&#x202e;b&#x200b;c&#x9b;31m</data>"), "{graphml}");
    let dot = written(&plan, Dialect::Dot, Form::AsRead);
    assert!(dot.contains(r#""x\\u{202e}\\u{feff}y" ["#), "{dot}");
}
