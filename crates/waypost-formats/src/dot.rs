//! Writes a plan as a Graphviz graph, for `dot` and other programs that read its language.
//!
//! Write only. Nodes are named by the ids of their tasks; parents are clusters around their children.

use waypost_core::{Draft, EffectiveStatus};
use waypost_text::{excerpt, one_line, reveal, wrap};

use crate::graph::{Graph, Step};
use crate::mermaid::{GROUP_COLUMNS_MAX, picture_losses};
use crate::{Dialect, Form, Unreadable, Writing};

/// Maximum columns of a line in a label.
const COLUMNS: usize = 28;
/// Maximum lines of a description in a label; the tooltip has all of it.
const LINES_MAX: usize = 5;

pub(crate) fn write(draft: &Draft, _form: Form) -> Result<Writing, Unreadable> {
    let graph = Graph::of(draft);
    let names = graph.names();
    let mut text = String::from("digraph plan {\n");
    let title = one_line(&draft.spec.title);
    if !title.is_empty() {
        text.push_str(&format!("  label={}; labelloc=t; fontsize=16;\n", quoted(&title)));
    }
    text.push_str(
        "  fontname=\"Helvetica,sans-serif\";\n  \
         node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica,sans-serif\", fontsize=11, \
         margin=\"0.15,0.08\"];\n  \
         edge [color=\"#57606a\", arrowsize=0.7];\n",
    );
    for step in graph.grouped() {
        match step {
            Step::Open { node, level } => {
                let label = quoted(&id_shown(graph.tasks[node].spec.id.as_str()));
                let margin = margin(level);
                text.push_str(&format!("{margin}subgraph cluster_{node} {{\n"));
                text.push_str(&format!(
                    "{margin}  label={label}; labeljust=l; fontsize=11; style=\"rounded\"; color=\"#8c959f\";\n"
                ));
            }
            Step::Task { node, level } => {
                let (task, status) = (&graph.tasks[node], graph.statuses[node]);
                let mut lines =
                    vec![format!("{} {}", status.sign().glyph(), id_shown(task.spec.id.as_str()))];
                lines.extend(wrap(&one_line(&task.spec.description), COLUMNS, LINES_MAX));
                text.push_str(&format!(
                    "{}{} [label={}, tooltip={}, {}];\n",
                    margin(level),
                    name(&names[node]),
                    label(&lines),
                    quoted(&tooltip(&graph, node)),
                    style_of(status)
                ));
            }
            Step::Close { level } => text.push_str(&format!("{}}}\n", margin(level))),
        }
    }
    for (n, (_, dependency)) in graph.outside.iter().enumerate() {
        let label = quoted(&one_line(&dependency.to_string()));
        // A task may have the same name, so the node gets a name that no task can have.
        text.push_str(&format!(
            "  \"\\n{n}\" [label={label}, shape=cds, style=filled, fillcolor=\"#fbefff\", color=\"#8250df\"];\n"
        ));
    }
    for (first, waiting) in &graph.edges {
        text.push_str(&format!("  {} -> {};\n", name(&names[*first]), name(&names[*waiting])));
    }
    for (n, (waiting, _)) in graph.outside.iter().enumerate() {
        text.push_str(&format!("  \"\\n{n}\" -> {} [style=dashed];\n", name(&names[*waiting])));
    }
    text.push_str("}\n");
    Ok(Writing { text, losses: picture_losses(draft, Dialect::Dot) })
}

fn id_shown(id: &str) -> String {
    excerpt(id, GROUP_COLUMNS_MAX).into_owned()
}

fn tooltip(graph: &Graph<'_>, node: usize) -> String {
    let status = graph.statuses[node].as_str();
    match one_line(&graph.tasks[node].spec.description) {
        description if description.is_empty() => status.to_owned(),
        description => format!("{status}: {description}"),
    }
}

fn style_of(status: EffectiveStatus) -> &'static str {
    match status {
        EffectiveStatus::Ready | EffectiveStatus::Queued => "fillcolor=\"#f6f8fa\", color=\"#57606a\"",
        EffectiveStatus::Blocked => {
            "fillcolor=\"#f6f8fa\", color=\"#8c959f\", style=\"rounded,filled,dashed\""
        }
        EffectiveStatus::Held => "fillcolor=\"#eaeef2\", color=\"#57606a\", penwidth=2",
        EffectiveStatus::Asking | EffectiveStatus::Disputed => {
            "fillcolor=\"#fbefff\", color=\"#bf3989\", penwidth=2"
        }
        EffectiveStatus::Reported => "fillcolor=\"#ddf4ff\", color=\"#1b7c83\"",
        EffectiveStatus::Running => "fillcolor=\"#ddf4ff\", color=\"#0969da\", penwidth=2",
        EffectiveStatus::Done => "fillcolor=\"#dafbe1\", color=\"#1a7f37\"",
        EffectiveStatus::Failed => {
            "fillcolor=\"#ffebe9\", color=\"#cf222e\", penwidth=2, shape=octagon, style=filled"
        }
        EffectiveStatus::Skipped => {
            "fillcolor=\"#fff8c5\", color=\"#9a6700\", style=\"rounded,filled,dashed\""
        }
        EffectiveStatus::Cancelled => {
            "fillcolor=\"#eaeef2\", color=\"#6e7781\", style=\"rounded,filled,dotted\""
        }
    }
}

fn margin(level: usize) -> String {
    "  ".repeat(level + 1)
}

/// Quotes the name of a node: in it only the quote and the backslash have a meaning. Characters that a terminal would
/// obey are written as codes.
fn name(text: &str) -> String {
    format!("\"{}\"", reveal(text).replace('\\', "\\\\").replace('"', "\\\""))
}

/// Quotes a displayed text.
fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// Quotes lines, each aligned left.
fn label(lines: &[String]) -> String {
    let body: String = lines.iter().map(|line| format!("{}\\l", escaped(line))).collect();
    format!("\"{body}\"")
}

/// Escapes a displayed text, in which a backslash starts an escape and `&` an entity.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
}
