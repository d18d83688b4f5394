//! The tools as models are told of them, and as `docs/jaato.md` has them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;
use waypost_testkit::observed_data;

use super::agent;
use crate::session::World;

fn names(list: &Value) -> BTreeSet<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn all_tools_take_what_the_plugin_takes() {
    let Some(root) = observed_data() else {
        eprintln!("no observed data beside this checkout: only the page was compared");
        return;
    };
    let text = std::fs::read_to_string(root.join("jaato/tool_schemas.json")).unwrap();
    let theirs: Value = serde_json::from_str(&text).unwrap();
    let ours = agent(&World::new(), "main").tools();
    let theirs = theirs["tools"].as_array().unwrap();
    assert_eq!((ours.len(), theirs.len()), (13, 13));
    for theirs in theirs {
        let tool = ours.iter().find(|tool| theirs["name"] == *tool.name).unwrap();
        let schema = Value::Object((*tool.input_schema).clone());
        for (name, parameter) in theirs["parameters"]["properties"].as_object().unwrap() {
            let ours = &schema["properties"][name];
            assert_eq!(ours["type"], parameter["type"], "{} {name}", tool.name);
            assert_eq!(names(&ours["enum"]), names(&parameter["enum"]), "{} {name}", tool.name);
        }
        // What they need and we do not is the second form of one tool.
        let needed = names(&theirs["parameters"]["required"]);
        let more: Vec<_> = needed.difference(&names(&schema["required"])).cloned().collect();
        let second: &[&str] = if tool.name == "addDependentStep" { &["step_id"] } else { &[] };
        assert_eq!(more, second, "{}", tool.name);
    }
}

/// The reference of the tools, as the page has it between its two marks.
fn reference() -> String {
    let mut text = String::new();
    for tool in agent(&World::new(), "main").tools() {
        let schema = Value::Object((*tool.input_schema).clone());
        let needed = names(&schema["required"]);
        text.push_str(&format!(
            "\n### {}\n\n{}\n",
            tool.name,
            tool.description.as_deref().unwrap_or_default()
        ));
        let parameters = schema["properties"].as_object().unwrap();
        if !parameters.is_empty() {
            text.push_str("\n| parameter | type | required |\n|---|---|---|\n");
        }
        for (name, parameter) in parameters {
            let mut kind = parameter["type"].as_str().unwrap_or_default().to_owned();
            if let Some(words) = parameter["enum"].as_array() {
                kind = words
                    .iter()
                    .map(|word| format!("`{}`", word.as_str().unwrap()))
                    .collect::<Vec<_>>()
                    .join(", ");
            }
            if kind == "array" {
                kind = format!("{}[]", parameter["items"]["type"].as_str().unwrap_or_default());
            }
            let required = if needed.contains(name) { "yes" } else { "no" };
            text.push_str(&format!("| `{name}` | {kind} | {required} |\n"));
        }
    }
    text + "\n"
}

#[test]
fn the_page_has_the_tools_as_they_are() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/jaato.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("<!-- tools -->\n").unwrap();
    let (there, after) = rest.split_once("<!-- end of tools -->\n").unwrap();
    let wanted = reference();
    if std::env::var_os("WAYPOST_UPDATE").is_some() {
        std::fs::write(&path, format!("{before}<!-- tools -->\n{wanted}<!-- end of tools -->\n{after}"))
            .unwrap();
        return;
    }
    assert_eq!(
        there, wanted,
        "WAYPOST_UPDATE=1 cargo test -p waypost-mcp the_page_has_the_tools rewrites the page"
    );
}
