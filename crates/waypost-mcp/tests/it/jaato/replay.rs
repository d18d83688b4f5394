//! Calls as they were observed, made again: what the plugin answered is in our answers, but for ids, times and the
//! differences that `docs/jaato.md` lists.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use waypost_testkit::observed_data;

use super::{agent, start};
use crate::session::{Session, World};

const FIXTURE: &str = include_str!("../../fixtures/jaato-tool-calls.json");

/// Errors that read otherwise here.
const OTHER_WORDS: [(&str, &str); 1] =
    [("step_id is required", "step_id is required, or description for a new step")];

/// Ids of the plugin, and ours for the same things.
#[derive(Default)]
struct Ids(BTreeMap<String, String>);

impl Ids {
    fn ours(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.0.get(text).map_or_else(|| value.clone(), |ours| json!(ours)),
            Value::Array(list) => list.iter().map(|value| self.ours(value)).collect(),
            Value::Object(map) => {
                Value::Object(map.iter().map(|(name, value)| (name.clone(), self.ours(value))).collect())
            }
            other => other.clone(),
        }
    }

    /// Learns which of our ids stands for which.
    fn learn(&mut self, theirs: &Value, ours: &Value) {
        for name in ["plan_id", "step_id", "subscription_id"] {
            if let (Some(theirs), Some(ours)) = (theirs[name].as_str(), ours[name].as_str()) {
                self.0.insert(theirs.to_owned(), ours.to_owned());
            }
        }
        if let (Some(theirs), Some(ours)) = (theirs["steps"].as_array(), ours["steps"].as_array()) {
            for (theirs, ours) in theirs.iter().zip(ours) {
                self.learn(theirs, ours);
            }
        }
    }
}

/// Whether all that the plugin said is in what we say.
fn agrees(theirs: &Value, ours: &Value) -> Result<(), String> {
    let differ = || Err(format!("{theirs} is not {ours}"));
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => theirs.iter().try_for_each(|(name, theirs)| {
            // What a description reads like does not decide whether its step is believed.
            if name == "validation_required" {
                return Ok(());
            }
            let ours = ours.get(name).ok_or_else(|| format!("{name} is missing"))?;
            match (name.as_str(), theirs.as_str(), ours.as_str()) {
                // The document's words for where a plan stands.
                ("status", Some("active"), Some("pending" | "in_progress")) => Ok(()),
                ("error", Some(theirs), Some(ours)) if OTHER_WORDS.contains(&(theirs, ours)) => Ok(()),
                _ => agrees(theirs, ours).map_err(|why| format!("{name}: {why}")),
            }
        }),
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => {
            theirs.iter().zip(ours).try_for_each(|(theirs, ours)| agrees(theirs, ours))
        }
        (Value::Number(theirs), Value::Number(ours)) if theirs.as_f64() == ours.as_f64() => Ok(()),
        (theirs, ours) if theirs == ours => Ok(()),
        _ => differ(),
    }
}

/// Whether the plugin refused: a step that failed has an error as well.
fn refused(theirs: &Value) -> bool {
    theirs["error"].is_string() && theirs.get("status").is_none()
}

/// Makes the calls again; returns how many were.
fn replay(text: &str) -> usize {
    let world = World::new();
    let mut agents: BTreeMap<String, Session> = BTreeMap::new();
    let mut ids = Ids::default();
    let calls: Vec<Value> = serde_json::from_str(text).unwrap();
    let mut made = 0;
    for call in &calls {
        let (name, tool, theirs) =
            (call["agent"].as_str().unwrap(), call["tool"].as_str().unwrap(), &call["response"]);
        // A command of people is no tool, and no word in a description makes a step one that others must prove.
        if tool == "plan" || theirs["validation_required"] == true {
            continue;
        }
        made += 1;
        let session = agents.entry(name.to_owned()).or_insert_with(|| agent(&world, name));
        let arguments = ids.ours(&call["args"]);
        let told = match (tool, theirs["plan_id"].as_str()) {
            ("startPlan", Some(plan)) => start(&world, session, &ids.0[plan], arguments.clone()),
            _ => session.ask(tool, arguments.clone()),
        };
        assert_eq!(told.is_error, refused(theirs), "{tool} {arguments}: {}", told.text);
        if told.is_error {
            assert_eq!(told.value["error"].as_str(), Some(told.text.as_str()));
        }
        ids.learn(theirs, &told.value);
        if let Err(why) = agrees(&ids.ours(theirs), &told.value) {
            panic!("{tool} {arguments}: {why}\n{}", told.text);
        }
    }
    made
}

#[test]
fn calls_are_answered_as_the_plugin_answers_them() {
    assert_eq!(replay(FIXTURE), 20);
}

#[test]
fn the_observed_calls_are_answered_as_they_were() {
    let Some(root) = observed_data() else {
        eprintln!("no observed data beside this checkout: only the fixture was played");
        return;
    };
    let text = std::fs::read_to_string(root.join("jaato/tool_calls.json")).unwrap();
    assert!(replay(&text) > 20);
}

#[test]
fn an_answer_that_lacks_something_does_not_agree() {
    let theirs = json!({ "status": "active", "steps": [{ "sequence": 1 }] });
    assert_eq!(
        agrees(&theirs, &json!({ "status": "pending", "steps": [{ "sequence": 1, "id": "a" }] })),
        Ok(())
    );
    assert!(agrees(&theirs, &json!({ "status": "failed", "steps": [{ "sequence": 1 }] })).is_err());
    assert!(agrees(&theirs, &json!({ "status": "pending", "steps": [] })).is_err());
    assert!(agrees(&theirs, &Value::Object(Map::new())).is_err());
}
