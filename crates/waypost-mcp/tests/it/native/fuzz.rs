//! Whatever a model sends, it gets an answer, and the plans stay sound.

use serde_json::{Map, Value, json};
use waypost_testkit::SeededRng;

use super::{begin, plan};

const WORDS: [&str; 24] = [
    "",
    "t1",
    "t2",
    "nope",
    "done",
    "failed",
    "pending",
    "add",
    "revise",
    "remove",
    "move",
    "status",
    "plan",
    "read",
    "subscribe",
    "native",
    "markdown",
    "../x",
    "x.json",
    "🦀",
    "main:t1",
    "progress",
    "a\0b",
    "\u{202e}",
];

fn value(dice: &mut SeededRng, names: &[String], depth: usize) -> Value {
    match dice.below(if depth == 0 { 6 } else { 9 }) {
        0 => Value::Null,
        1 => json!(dice.chance(50)),
        2 => json!(*dice.pick(&[0, 1, 2, -1, i64::MAX, i64::MIN])),
        3 => json!(*dice.pick(&[0.5, -1e300, 3e9])),
        4 | 5 => json!(*dice.pick(&WORDS)),
        6 => (0..dice.below(4)).map(|_| value(dice, names, depth - 1)).collect(),
        _ => Value::Object(object(dice, names, depth - 1)),
    }
}

fn object(dice: &mut SeededRng, names: &[String], depth: usize) -> Map<String, Value> {
    (0..dice.below(5)).map(|_| (dice.pick(names).clone(), value(dice, names, depth))).collect()
}

/// All names that stand in a schema, at any depth.
fn names_in(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for (name, inner) in fields {
                if name == "properties" {
                    names.extend(inner.as_object().into_iter().flatten().map(|(name, _)| name.clone()));
                }
                names_in(inner, names);
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| names_in(inner, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_tool_answers_whatever_it_is_sent() {
    const CALLS: usize = 300;
    let (_world, session) = begin();
    plan(&session, json!(["a", "b", "c"]));
    let mut dice = SeededRng::new(4);
    let (mut good, mut bad) = (0, 0);
    for tool in session.tools() {
        let schema = Value::Object((*tool.input_schema).clone());
        let mut names = vec!["surprise".to_owned(), "op".to_owned()];
        names_in(&schema, &mut names);
        for _ in 0..CALLS {
            let mut arguments = object(&mut dice, &names, 3);
            // Nobody wants to wait here.
            arguments.retain(|name, value| name != "wait" || !value.is_u64());
            arguments.insert("wait".to_owned(), json!(0));
            if tool.name != "events" && tool.name != "plan_start" {
                arguments.shift_remove("wait");
            }
            let told = session.ask(&tool.name, Value::Object(arguments.clone()));
            assert!(!told.text.is_empty(), "{}: {arguments:?}", tool.name);
            *(if told.is_error { &mut bad } else { &mut good }) += 1;
        }
    }
    assert!(good > 100 && bad > 100, "both happen: {good} good, {bad} bad");
    assert!(!session.ask("plan_list", json!({ "all": true })).is_error);
}
