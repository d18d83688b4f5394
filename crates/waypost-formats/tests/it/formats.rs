//! What holds for all formats: names, sniffing, schemas, and the same plan in each of them.

use waypost_formats::{Dialect, Form, Unreadable, read, schema, sniff, write, write_many};
use waypost_testkit::plan_of;

use crate::{draft, fixture, golden, json, losses};

#[test]
fn a_format_is_called_what_it_is_called() {
    for dialect in Dialect::all() {
        assert_eq!(dialect.to_string().parse(), Ok(dialect));
        assert_eq!(serde_json::to_value(dialect).unwrap(), dialect.to_string());
    }
    assert_eq!("yaml".parse::<Dialect>().unwrap_err().to_string(), r#"no format is called "yaml""#);
}

#[test]
fn a_text_is_known_by_its_looks() {
    for (name, dialect) in [
        ("native/plan.json", Dialect::Native),
        ("clido/saved.json", Dialect::Clido),
        ("clido/document.json", Dialect::Clido),
        ("clido/flat.json", Dialect::Clido),
        ("clido/answer.txt", Dialect::Clido),
        ("jaato/store.json", Dialect::Jaato),
        ("jaato/status.json", Dialect::Jaato),
        ("frctl/saved.json", Dialect::Frctl),
        ("frctl/document.json", Dialect::Frctl),
        ("frctl/index-saved.json", Dialect::Frctl),
        ("frctl/index-document.json", Dialect::Frctl),
        ("agora/run.json", Dialect::Agora),
        ("agora/state.json", Dialect::Agora),
    ] {
        assert_eq!(sniff(&fixture(name), None), Some(dialect), "{name}");
        let reading = read(&format!("\u{feff}{}", fixture(name)), None, None).unwrap();
        assert_eq!((reading.dialect, reading.problems.len()), (dialect, 0), "{name}");
    }
}

#[test]
fn a_text_of_no_format_is_refused() {
    for text in ["", "hello", "{}", "[]", "[1, 2]", "null", "7", r#"{"colour": "blue"}"#] {
        assert_eq!(read(text, None, None).unwrap_err(), Unreadable::UnknownFormat, "{text}");
    }
}

#[test]
fn pictures_are_written_only_and_movers_are_read_only() {
    assert_eq!(
        read("graph TD", Some(Dialect::Mermaid), None).unwrap_err().to_string(),
        "mermaid can be written but not read"
    );
    assert_eq!(
        write(&plan_of([]), Dialect::Beads, Form::AsRead).unwrap_err().to_string(),
        "beads can be read but not written"
    );
}

#[test]
fn only_a_store_holds_several_plans() {
    let plans = [plan_of([]), plan_of([])];
    let error = write_many(&plans, Dialect::Clido, Form::AsRead).unwrap_err();
    assert_eq!(error.to_string(), "clido holds one plan in a text, and there are 2");
    assert!(write_many(&plans[..1], Dialect::Clido, Form::AsRead).is_ok());
}

#[test]
fn every_json_format_has_a_schema() {
    for dialect in [
        Dialect::Native,
        Dialect::Clido,
        Dialect::Jaato,
        Dialect::Frctl,
        Dialect::Agora,
        Dialect::PlanDocument,
    ] {
        let schema = json(schema(dialect).unwrap());
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{dialect}");
    }
    assert_eq!(schema(Dialect::Mermaid), None);
}

#[test]
fn one_plan_in_every_format() {
    let plan = draft(&fixture("native/plan.json"), Dialect::Native);
    for (dialect, form, name) in [
        (Dialect::Clido, Form::Document, "clido/golden-document.json"),
        (Dialect::Clido, Form::Program, "clido/golden-program.json"),
        (Dialect::Jaato, Form::Document, "jaato/golden-document.json"),
        (Dialect::Jaato, Form::Program, "jaato/golden-program.json"),
        (Dialect::Frctl, Form::Document, "frctl/golden-document.json"),
        (Dialect::Frctl, Form::Program, "frctl/golden-program.json"),
        (Dialect::Agora, Form::Document, "agora/golden-document.json"),
        (Dialect::Agora, Form::Program, "agora/golden-program.json"),
    ] {
        let writing = write(&plan, dialect, form).unwrap();
        golden(name, &writing.text);
        let told = losses(&plan, dialect, form).join("\n") + "\n";
        golden(&name.replace(".json", ".losses.txt"), &told);
        let reading = read(&writing.text, Some(dialect), None).unwrap();
        assert_eq!(reading.problems, [], "{dialect}");
        assert_eq!(reading.drafts[0].tasks.len() - usize::from(dialect == Dialect::Frctl), plan.tasks.len());
    }
}

#[test]
fn the_examples_in_the_documentation_are_read_without_a_problem() {
    for dialect in [Dialect::Native, Dialect::Clido, Dialect::Jaato, Dialect::Frctl, Dialect::Agora] {
        let path = format!("{}/../../docs/formats/{dialect}.md", env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(path).unwrap();
        let examples: Vec<&str> =
            page.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
        assert!(!examples.is_empty(), "{dialect}");
        for example in examples {
            assert_eq!(sniff(example, None), Some(dialect), "{example}");
            assert_eq!(waypost_core::validate(&draft(example, dialect)), [], "{example}");
        }
    }
}

#[test]
fn a_plan_of_many_tasks_takes_every_form_quickly() {
    let mut plan = waypost_testkit::fan_out(20_000);
    let root = waypost_testkit::id("root");
    for task in plan.tasks.iter_mut().skip(1) {
        task.spec.parent = Some(root.clone());
    }
    for dialect in [Dialect::Native, Dialect::Clido, Dialect::Jaato, Dialect::Frctl, Dialect::Agora] {
        let writing = write(&plan, dialect, Form::AsRead).unwrap();
        assert_eq!(draft(&writing.text, dialect).tasks.len(), plan.tasks.len(), "{dialect}");
    }
}

#[test]
fn several_objects_in_a_file_are_several_plans_in_every_format() {
    let plans = [
        (
            Dialect::Native,
            r#"{"format":"waypost/1","id":"ID","title":"t","goal":"g","tasks":[{"id":"a","description":"d"}]}"#,
        ),
        (Dialect::Clido, r#"{"meta":{"id":"ID","goal":"g"},"tasks":[{"id":"a","description":"d"}]}"#),
        (Dialect::Jaato, r#"{"plan_id":"ID","title":"t","steps":["a"]}"#),
        (
            Dialect::Agora,
            r#"{"id":"ID","queue":"q","items":[{"id":"a","executor":"x","inputs":{},"depends_on":[],"resourceLocks":[]}]}"#,
        ),
        (
            Dialect::Frctl,
            r#"{"id":"ID","root_goal_id":"r","goals":{"r":{"id":"r","description":"d","child_ids":[]}}}"#,
        ),
    ];
    for (dialect, plan) in plans {
        let [one, two] = ["p1", "p2"].map(|id| plan.replace("ID", id));
        for named in [None, Some(dialect)] {
            let reading = read(&format!("{one}\n{two}\n"), named, Some("x.json")).unwrap();
            assert_eq!((reading.dialect, reading.problems), (dialect, Vec::new()));
            let ids: Vec<&str> =
                reading.drafts.iter().map(|draft| draft.id.as_ref().unwrap().as_str()).collect();
            assert_eq!(ids, ["p1", "p2"], "{dialect}");
        }
        // A second plan that was cut off is refused, or at least named.
        let cut = format!("{one}\n{}", &two[..two.len() - 9]);
        match read(&cut, None, Some("x.json")) {
            Ok(reading) => {
                let wanted = "line 2: the object there is not valid JSON and was left out";
                assert!(reading.notes.iter().any(|note| note.starts_with(wanted)), "{dialect}: {reading:?}");
            }
            Err(error) => assert!(error.to_string().starts_with("line 2"), "{dialect}: {error}"),
        }
    }
}

#[test]
fn a_number_with_too_many_digits_is_named_in_every_format() {
    const LONG: &str = "123456789012345678901234567890";
    let clido = format!(
        r#"{{"meta": {{"id": "p", "goal": "g"}}, "tasks": [{{"id": "a", "description": "d", "n": {LONG}}}]}}"#
    );
    let work = format!(r#"{{"executor": "x", "inputs": {{"n": {LONG}}}}}"#);
    let texts = [
        (format!("Here it is, for 1{LONG} people:\n\n```json\n{clido}\n```\n"), "line 4: the number"),
        (clido, "line 1: the number"),
        (
            format!(
                "---\nid: p\ntitle: t\nversion: 1\nforeign: {{\"x\":{{\"n\":{LONG}}}}}\n---\n\n## Tasks\n\n- [ ] a: d\n"
            ),
            "`foreign`: the number",
        ),
        (
            format!("---\nid: p\ntitle: t\nversion: 1\n---\n\n## Tasks\n\n- [ ] a: d\n  work: {work}\n"),
            "task a: `work`: the number",
        ),
        (
            format!(r#"{{"format": "waypost/1", "title": "t", "tasks": [{{"id": "a", "work": {work}}}]}}"#),
            "line 1: the number",
        ),
        (
            format!(
                r#"{{"plan_id": "p", "title": "t", "steps": [{{"step_id": "s", "sequence": 1, "description": "d", "output": {{"n": {LONG}}}}}]}}"#
            ),
            "line 1: the number",
        ),
        (
            format!(
                r#"{{"id": "p", "root_goal_id": "r", "goals": {{"r": {{"id": "r", "description": "d", "status": "pending", "n": {LONG}}}}}}}"#
            ),
            "line 1: the number",
        ),
        (
            format!(
                r#"{{"id": "p", "items": [{{"id": "a", "executor": "x", "inputs": {{"n": {LONG}}}, "depends_on": [], "resourceLocks": []}}]}}"#
            ),
            "line 1: the number",
        ),
        (
            format!(
                r#"{{"master": {{"tasks": [{{"id": 1, "title": "t", "status": "pending", "n": {LONG}}}]}}}}"#
            ),
            "line 1: the number",
        ),
        (
            format!(r#"{{"id": "bd-1", "title": "t", "status": "open", "issue_type": "task", "n": {LONG}}}"#),
            "line 1: the number",
        ),
    ];
    let mut dialects = Vec::new();
    for (text, place) in texts {
        let reading = read(&text, None, Some("p")).unwrap();
        let named: Vec<&String> =
            reading.notes.iter().filter(|note| note.contains("too many digits")).collect();
        assert_eq!(named.len(), 1, "{}: {:?}", reading.dialect, reading.notes);
        assert!(named[0].contains(&format!("{place} {LONG} has too many digits")), "{}", named[0]);
        dialects.push(reading.dialect.name());
    }
    dialects.dedup();
    assert_eq!(dialects, ["clido", "markdown", "native", "jaato", "frctl", "agora", "task-master", "beads"]);
    // What stays text keeps its digits.
    let text = format!("---\ntitle: t\nweight: {LONG}\n---\n# Body of {{\"n\": {LONG}}}\n");
    assert_eq!(read(&text, None, Some("p.md")).unwrap().notes, [""; 0]);
}
