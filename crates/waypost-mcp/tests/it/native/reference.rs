//! The reference of the tools in the documentation is what the definitions say.

use std::fmt::Write;

use rmcp::model::Tool;
use serde_json::{Map, Value};
use waypost_mcp::Toolset;

use crate::committed;
use crate::session::session;

/// What a schema asks for, in words.
fn kind(schema: &Value) -> String {
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> =
            words.iter().map(|word| format!("`{}`", word.as_str().unwrap_or("?"))).collect();
        return words.join(", ");
    }
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", plural(&kind(&schema["items"]))),
        Some("string") => "text".to_owned(),
        Some("integer") => "whole number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some(other) => other.to_owned(),
        None => "any value".to_owned(),
    }
}

fn plural(kind: &str) -> String {
    format!("{kind}s")
}

fn rows(fields: &Map<String, Value>, within: &str, required: &Value, written: &mut String) {
    for (name, schema) in fields {
        let is_needed = required.as_array().is_some_and(|names| names.contains(&Value::String(name.clone())));
        let needed = if is_needed { ", required" } else { "" };
        let about =
            schema["description"].as_str().or_else(|| schema["items"]["description"].as_str()).unwrap_or("");
        writeln!(written, "| `{within}{name}` | {}{needed} | {about} |", kind(schema)).unwrap();
        if let Some(inner) = schema["items"]["properties"].as_object() {
            rows(inner, &format!("{name}[]."), &schema["items"]["required"], written);
        }
    }
}

/// All tools of a set as Markdown.
pub(crate) fn reference(tools: &[Tool]) -> String {
    let mut written = String::new();
    for tool in tools {
        let hints = tool.annotations.as_ref().unwrap();
        let effect = match (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint) {
            (Some(true), _, _) => "Read-only.",
            (_, Some(true), _) => "Writes; may overwrite.",
            (_, _, Some(true)) => "Writes; idempotent.",
            (_, _, _) => "Writes.",
        };
        let about = tool.description.as_deref().unwrap_or("");
        writeln!(written, "### {}\n\n{about} *{effect}*\n", tool.name).unwrap();
        if let Some(fields) = tool.input_schema.get("properties").and_then(Value::as_object) {
            writeln!(written, "| argument | | |\n|---|---|---|").unwrap();
            let required = tool.input_schema.get("required").cloned().unwrap_or_default();
            rows(fields, "", &required, &mut written);
            written.push('\n');
        }
    }
    written
}

#[test]
fn the_reference_of_the_native_tools_is_fresh() {
    let tools = session(Toolset::Native, "main").tools();
    committed::check_part("docs/mcp.md", "native tools", &format!("\n{}", reference(&tools)));
}
