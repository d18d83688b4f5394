//! The next step of the scripted model, given its steps so far. Knows no model API.

use serde_json::{Value, json};

/// The tools that every host must offer its model.
pub(crate) const TOOLS: [&str; 10] = [
    "plan_create",
    "plan_get",
    "plan_list",
    "plan_edit",
    "plan_export",
    "plan_update",
    "plan_start",
    "task_next",
    "task_report",
    "events",
];
/// The title of the plan that the model creates.
pub(crate) const TITLE: &str = "Tidy the kitchen";
/// The tasks of that plan.
pub(crate) const TASKS: [&str; 3] = ["wash", "dry", "put-away"];
/// The plan that is there before a model that stops too early.
pub(crate) const CLAIMED: &str = "dishes";
/// What a Stop hook says of a task that is still claimed.
const REMINDER: &str = "is still yours";
/// The final message of the model.
pub(crate) const FINISHED: &str = "The plan is completed.";
/// Maximum number of calls, so that the script ends even if the plan is never approved.
const CALLS_MAX: usize = 60;

/// A completed tool call.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    /// The name of the tool.
    pub(crate) tool: String,
    /// The text of the reply.
    pub(crate) answer: String,
}

/// A step of the model.
#[derive(Debug, PartialEq)]
pub(crate) enum Move {
    /// A tool call.
    Call(&'static str, Value),
    /// A message, which ends the turn.
    Say(String),
}

/// What a model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    /// Creates a plan, has it approved, and works through it.
    Work,
    /// Stops at once, with a task still claimed, and reports it when it is reminded of it.
    Stop,
}

impl Script {
    /// Returns the next step of a model that was offered these of our tools, has made these calls, and was sent this.
    pub(crate) fn next(self, offered: &[String], made: &[Made], request: &str) -> Move {
        match self {
            Self::Work => work(offered, made),
            Self::Stop if !made.is_empty() => Move::Say(FINISHED.to_owned()),
            Self::Stop if request.contains(REMINDER) => {
                let report =
                    json!({ "plan": CLAIMED, "task": TASKS[0], "status": "done", "take_over": true });
                Move::Call("task_report", report)
            }
            Self::Stop => Move::Say("I stop here.".to_owned()),
        }
    }
}

fn work(offered: &[String], made: &[Made]) -> Move {
    let missing: Vec<&str> =
        TOOLS.into_iter().filter(|tool| !offered.iter().any(|name| name == tool)).collect();
    if !missing.is_empty() {
        return Move::Say(format!("tools are missing: {}", missing.join(", ")));
    }
    let Some(last) = made.last() else { return Move::Call("plan_create", plan()) };
    if made.len() >= CALLS_MAX {
        return Move::Say(format!("gave up after {CALLS_MAX} calls"));
    }
    let Some(plan) =
        made.first().and_then(|first| named(&first.answer, "plan").or_else(|| named(&first.answer, "id")))
    else {
        return Move::Say(format!("plan_create returned no plan id: {}", last.answer));
    };
    match last.tool.as_str() {
        "plan_create" => Move::Call("plan_start", json!({ "plan": plan, "wait": 20 })),
        "plan_start" if last.answer.contains("awaiting") => {
            Move::Call("plan_start", json!({ "plan": plan, "wait": 20 }))
        }
        "plan_start" | "task_report" => Move::Call("task_next", json!({ "plan": plan })),
        "task_next" => match named(&last.answer, "task") {
            Some(task) => {
                let report =
                    json!({ "plan": plan, "task": task, "status": "done", "output": { "by": "script" } });
                Move::Call("task_report", report)
            }
            None if reported(made) == TASKS.len() => Move::Say(FINISHED.to_owned()),
            None => {
                Move::Say(format!("no task was returned after {} tasks: {}", reported(made), last.answer))
            }
        },
        other => Move::Say(format!("called {other}, which is not in the script")),
    }
}

fn plan() -> Value {
    let task = |(place, id): (usize, &&str)| {
        let before: Vec<&str> = TASKS[..place].iter().rev().take(1).copied().collect();
        json!({ "id": id, "description": format!("To {id} the dishes"), "depends_on": before })
    };
    json!({ "title": TITLE, "tasks": TASKS.iter().enumerate().map(task).collect::<Vec<_>>() })
}

fn reported(made: &[Made]) -> usize {
    made.iter().filter(|one| one.tool == "task_report").count()
}

/// Returns a field of a reply: a text, or the id of an object. Some hosts show only the text of a reply, which names a
/// plan as `plan ID v1` and a claimed task as `TASK (plan ID, …`.
fn named(answer: &str, name: &str) -> Option<String> {
    let Ok(value) = serde_json::from_str::<Value>(answer) else {
        let (before, behind) = match name {
            "task" => answer.split_once(" (plan ")?,
            _ => answer.split_once("plan ")?,
        };
        let word = if name == "task" {
            before.split_whitespace().next_back()
        } else {
            behind.split_whitespace().next()
        };
        return word.map(str::to_owned);
    };
    let said = &value[name];
    said.as_str().or_else(|| said["id"].as_str()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(tool: &str, answer: &str) -> Made {
        Made { tool: tool.to_owned(), answer: answer.to_owned() }
    }

    #[test]
    fn replies_are_understood_as_text_too() {
        let check = |answer: &str, name: &str, expected: Option<&str>| {
            assert_eq!(named(answer, name).as_deref(), expected, "{answer}");
        };
        check("plan k3m v1: 3 tasks; needs approval", "plan", Some("k3m"));
        check("<context>\nwash (plan k3m, attempt 1): \"To wash\"", "task", Some("wash"));
        check("nothing: every task is done", "task", None);
        check("{\"task\":null}", "task", None);
    }

    #[test]
    fn the_script_works_through_its_plan() {
        let tools = TOOLS.map(str::to_owned);
        let mut calls = Vec::new();
        for answer in [
            ("plan_create", r#"{"id":"k3m","version":1}"#),
            ("plan_start", r#"{"phase":"awaiting_approval"}"#),
            ("plan_start", r#"{"phase":"active"}"#),
            ("task_next", r#"{"task":"wash"}"#),
            ("task_report", "{}"),
            ("task_next", r#"{"task":{"id":"dry"}}"#),
            ("task_report", "{}"),
            ("task_next", r#"{"task":"put-away"}"#),
            ("task_report", "{}"),
            ("task_next", "{}"),
        ] {
            let Move::Call(tool, arguments) = work(&tools, &calls) else { panic!("{calls:?}") };
            assert_eq!(tool, answer.0, "{arguments}");
            calls.push(made(answer.0, answer.1));
        }
        assert_eq!(work(&tools, &calls), Move::Say(FINISHED.to_owned()));
        assert_eq!(work(&tools[1..], &[]), Move::Say("tools are missing: plan_create".to_owned()));
    }
}
