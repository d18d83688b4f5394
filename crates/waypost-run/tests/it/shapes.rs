//! Shapes: a schema in the configuration, inputs in, everything that does not fit out.

use std::io;
use std::path::Path;

use waypost_config::{Config, Layer, Origin};
use waypost_config::{SCHEMA_BYTES_MAX, VIOLATIONS_MAX};
use waypost_core::{Json, TaskSpec, Work};
use waypost_service::admission as admit;
use waypost_testkit::plan_of;

use crate::world::job;

const PATCH: &str = "[shapes.patch.input_schema]\ntype = \"object\"\nrequired = [\"file\"]\nadditionalProperties = false\n[shapes.patch.input_schema.properties]\nfile = { type = \"string\" }\nlines = { type = [\"integer\", \"null\"], minimum = 1 }\n";

fn load(text: &str, files: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    let layer =
        Layer { origin: Origin::Workspace, name: ".waypost/config.toml".to_owned(), text: text.to_owned() };
    let read = |path: &Path| {
        let found = files.iter().find(|(name, _)| Path::new(name) == path);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    };
    Config::load_with(&[layer], [], &read)
        .map_err(|bad| bad.problems.iter().map(ToString::to_string).collect())
}

fn shaped(name: &str, shape: &str, inputs: serde_json::Value) -> TaskSpec {
    let mut spec = job(name, &[], &[]);
    let (executor, inputs) = ("noop".to_owned(), Json::of(&inputs));
    spec.work = Some(Box::new(Work { executor, inputs, shape: Some(shape.to_owned()) }));
    spec
}

#[track_caller]
fn check(config: &Config, tasks: Vec<TaskSpec>, expected: &[&str]) {
    let found: Vec<String> =
        admit::problems(config, &plan_of(tasks)).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

#[test]
fn every_violation_is_named_with_its_task_its_place_and_what_was_expected() {
    let config = load(PATCH, &[]).unwrap();
    let mut checked = shaped("checked", "patch", serde_json::json!({ "file": "a.ts" }));
    checked.check = shaped("x", "patch", serde_json::json!({ "lines": "many" })).work;
    check(
        &config,
        vec![
            shaped("fits", "patch", serde_json::json!({ "file": "a.ts", "lines": null })),
            shaped("edit", "patch", serde_json::json!({ "file": 7, "lines": 0, "mode": "w" })),
            shaped("list", "patch", serde_json::json!([])),
            shaped("other", "patsch", serde_json::json!({})),
            checked,
        ],
        &[
            "task edit: inputs do not fit shape patch: at /file: expected a text",
            "task edit: inputs do not fit shape patch: at /lines: expected at least 1",
            "task edit: inputs do not fit shape patch: nothing may be called `mode` here",
            "task list: inputs do not fit shape patch: expected an object",
            "task other: no shape is called patsch",
            "task checked: inputs do not fit shape patch: in its check, at /lines: expected null or a whole number",
            "task checked: inputs do not fit shape patch: in its check, `file` is missing",
        ],
    );
}

#[test]
fn violations_are_bounded() {
    let text = "[shapes.numbers]\ninput_schema = { items = { type = \"integer\" } }\n";
    let config = load(text, &[]).unwrap();
    for (count, expected) in [(VIOLATIONS_MAX, VIOLATIONS_MAX), (VIOLATIONS_MAX + 1, VIOLATIONS_MAX + 1)] {
        let inputs = serde_json::json!(vec!["x"; count]);
        let violations = config.shapes["numbers"].violations(&inputs);
        assert_eq!(violations.len(), expected);
        let more = violations.last().unwrap() == "and more than these 20";
        assert_eq!(more, count > VIOLATIONS_MAX, "{violations:?}");
    }
}

#[test]
fn a_schema_may_be_a_file_beside_the_configuration() {
    let text = "[shapes.patch]\ndescription = \"one file\"\ninput_schema = \"../schemas/patch.json\"\n";
    let schema = "{ \"$defs\": { \"name\": { \"type\": \"string\" } }, \"properties\": { \"file\": { \"$ref\": \"#/$defs/name\" } } }";
    let config = load(text, &[(".waypost/../schemas/patch.json", schema)]).unwrap();
    assert_eq!(config.shapes["patch"].description, "one file");
    let tasks = vec![shaped("edit", "patch", serde_json::json!({ "file": true }))];
    check(&config, tasks, &["task edit: inputs do not fit shape patch: at /file: expected a text"]);
    assert_eq!(
        load(text, &[]).unwrap_err(),
        [
            ".waypost/config.toml:3: `shapes.patch.input_schema` is the file \"../schemas/patch.json\", and it cannot be read: entity not found"
        ]
    );
    let broken = load(text, &[(".waypost/../schemas/patch.json", "{\n  no")]).unwrap_err();
    assert!(broken[0].contains("and it is not JSON: key must be a string at line 2"), "{broken:?}");
    for (bytes, fine) in [(SCHEMA_BYTES_MAX, true), (SCHEMA_BYTES_MAX + 1, false)] {
        let padded = format!("{{}}{}", " ".repeat(bytes - 2));
        assert_eq!(load(text, &[(".waypost/../schemas/patch.json", &padded)]).is_ok(), fine);
    }
}

#[test]
fn a_bad_schema_is_named_with_its_line_and_nothing_is_fetched() {
    let wrong = PATCH.replace("\"string\"", "\"strin\"");
    let problems = load(&wrong, &[]).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].starts_with(
            ".waypost/config.toml:6: `shapes.patch.input_schema` is not a JSON Schema at /properties/file/type: "
        ),
        "{problems:?}"
    );
    let far = "[shapes.far]\ninput_schema = { \"$ref\" = \"https://example.com/shape.json\" }\n";
    let problems = load(far, &[]).unwrap_err();
    assert!(
        problems[0].starts_with(".waypost/config.toml:2: ") && problems[0].contains("nothing is fetched"),
        "{problems:?}"
    );
    assert_eq!(
        load("[shapes.odd]\ninput_schema = 7\n", &[]).unwrap_err(),
        [".waypost/config.toml:2: `shapes.odd.input_schema` is 7, and must be a table or the name of a file"]
    );
}
