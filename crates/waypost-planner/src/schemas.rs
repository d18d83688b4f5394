//! The JSON Schemas of answers. Strict, so that every server that supports schemas accepts them: every field is
//! required, no others are allowed, and an optional field may be null.

use serde_json::{Value, json};

use crate::{Purpose, Schema};

pub fn schema(purpose: Purpose) -> Schema {
    let schema = match purpose {
        Purpose::Generate => object(json!({
            "goal": text(),
            "tasks": list(object(json!({
                "id": text(),
                "description": text(),
                "depends_on": list(text()),
                "complexity": complexity(),
                "notes": text(),
                "tools": {"type": ["array", "null"], "items": text()},
            }))),
        })),
        Purpose::Atomicity => object(json!({"reasoning": text(), "is_atomic": {"type": "boolean"}})),
        Purpose::Decompose => object(json!({
            "reasoning": text(),
            "sub_goals": list(object(json!({
                "description": text(),
                "complexity": complexity(),
                "notes": text(),
            }))),
        })),
        Purpose::Dependencies => object(json!({
            "reasoning": text(),
            "dependencies": list(object(json!({"goal_id": text(), "depends_on": list(text())}))),
        })),
        Purpose::Refine => object(json!({
            "reasoning": text(),
            "revise": list(object(json!({"id": text(), "description": text()}))),
            "drop": list(text()),
            "add": list(object(json!({"description": text(), "depends_on": list(text())}))),
        })),
        Purpose::Digest => object(json!({
            "summary": text(),
            "key_decisions": list(text()),
            "artifacts": list(text()),
        })),
        Purpose::WriteExam => object(json!({
            "questions": list(object(json!({"question": text(), "answer": text()}))),
        })),
        Purpose::AnswerExam => object(json!({
            "answers": list(object(json!({"question": {"type": "integer"}, "answer": text()}))),
        })),
        Purpose::GradeExam => object(json!({
            "marks": list(object(json!({"question": {"type": "integer"}, "agrees": {"type": "boolean"}}))),
        })),
    };
    Schema { name: purpose.name().to_owned(), schema }
}

fn text() -> Value {
    json!({"type": "string"})
}

fn complexity() -> Value {
    json!({"type": "string", "enum": ["low", "medium", "high"]})
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

/// An object with these properties, all of them required.
fn object(properties: Value) -> Value {
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(|map| map.keys()).collect();
    json!({"type": "object", "required": required, "additionalProperties": false, "properties": properties})
}
