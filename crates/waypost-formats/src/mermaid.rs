//! Writes a plan as a Mermaid flowchart, which Markdown viewers draw without a further program.
//!
//! Write only. A status is shown by a sign and a shape as well as by a colour.

use waypost_core::{Draft, EffectiveStatus};
use waypost_text::{excerpt, one_line, truncate};

use crate::field_writer::{losses, plan_loss, task_loss};
use crate::graph::{Graph, Step};
use crate::{Dialect, Form, Loss, Unreadable, Writing};

/// Maximum columns of a label.
const LABEL_COLUMNS_MAX: usize = 160;
/// Maximum columns of the label of a group.
pub(crate) const GROUP_COLUMNS_MAX: usize = 40;

pub(crate) fn write(draft: &Draft, _form: Form) -> Result<Writing, Unreadable> {
    let graph = Graph::of(draft);
    let mut text = String::new();
    let title = one_line(&draft.spec.title);
    if !title.is_empty() {
        let title = serde_json::Value::from(shown_title(&title));
        text.push_str(&format!("---\ntitle: {title}\n---\n"));
    }
    text.push_str("flowchart TD\n");
    for step in graph.grouped() {
        match step {
            Step::Open { node, level } => {
                let label = escaped(&excerpt(graph.tasks[node].spec.id.as_str(), GROUP_COLUMNS_MAX));
                text.push_str(&format!("{}subgraph g{node}[\"{label}\"]\n", margin(level)));
            }
            Step::Task { node, level } => {
                let status = graph.statuses[node];
                let (open, close) = brackets(status);
                let label = escaped(&label(&graph, node));
                text.push_str(&format!(
                    "{}n{node}{open}\"{label}\"{close}:::{}\n",
                    margin(level),
                    status.as_str()
                ));
            }
            Step::Close { level } => text.push_str(&format!("{}end\n", margin(level))),
        }
    }
    for (n, (_, dependency)) in graph.outside.iter().enumerate() {
        let label = escaped(&excerpt(&dependency.to_string(), LABEL_COLUMNS_MAX));
        text.push_str(&format!("  o{n}>\"{label}\"]:::elsewhere\n"));
    }
    for (first, waiting) in &graph.edges {
        text.push_str(&format!("  n{first} --> n{waiting}\n"));
    }
    for (n, (waiting, _)) in graph.outside.iter().enumerate() {
        text.push_str(&format!("  o{n} -.-> n{waiting}\n"));
    }
    text.push_str(CLASSES);
    let mut losses = picture_losses(draft, Dialect::Mermaid);
    if shown_title(&title) != draft.spec.title {
        losses.push(plan_loss("title"));
    }
    for (node, task) in graph.tasks.iter().enumerate() {
        if !label(&graph, node).ends_with(&task.spec.description) {
            losses.push(task_loss(&task.spec.id, "description"));
        }
    }
    losses.sort();
    losses.dedup();
    Ok(Writing { text, losses })
}

/// Replaces `<`, `>` and `&` by their full-width forms: Mermaid treats titles as HTML and drops anything that looks like a tag.
fn shown_title(title: &str) -> String {
    truncate(title, LABEL_COLUMNS_MAX).replace('<', "＜").replace('>', "＞").replace('&', "＆")
}

const CLASSES: &str = "  \
  classDef ready fill:#f6f8fa,stroke:#57606a,color:#24292f
  classDef queued fill:#f6f8fa,stroke:#57606a,color:#24292f
  classDef blocked fill:#f6f8fa,stroke:#8c959f,color:#57606a,stroke-dasharray:4 3
  classDef held fill:#eaeef2,stroke:#57606a,color:#24292f,stroke-width:2px
  classDef asking fill:#fbefff,stroke:#bf3989,color:#611347,stroke-width:2px
  classDef reported fill:#ddf4ff,stroke:#1b7c83,color:#0a3069
  classDef running fill:#ddf4ff,stroke:#0969da,color:#0a3069,stroke-width:2px
  classDef done fill:#dafbe1,stroke:#1a7f37,color:#0f5323
  classDef failed fill:#ffebe9,stroke:#cf222e,color:#82071e,stroke-width:2px
  classDef skipped fill:#fff8c5,stroke:#9a6700,color:#4d2d00,stroke-dasharray:4 3
  classDef cancelled fill:#eaeef2,stroke:#6e7781,color:#424a53,stroke-dasharray:2 3
  classDef elsewhere fill:#fbefff,stroke:#8250df,color:#3e1f79
";

/// Returns the label of a task: its sign, its id and its description.
fn label(graph: &Graph<'_>, node: usize) -> String {
    let task = &graph.tasks[node];
    let (id, description) = (one_line(task.spec.id.as_str()), one_line(&task.spec.description));
    let gap = if description.is_empty() { "" } else { ": " };
    let sign = graph.statuses[node].sign().glyph();
    truncate(&format!("{sign} {id}{gap}{description}"), LABEL_COLUMNS_MAX).into_owned()
}

/// Returns the losses of a picture that shows titles, ids, descriptions, parents, dependencies and statuses, each on one line.
pub(crate) fn picture_losses(draft: &Draft, dialect: Dialect) -> Vec<Loss> {
    let mut lost =
        losses(draft, dialect, &["title"], &["id", "description", "parent", "depends_on", "status"]);
    if one_line(&draft.spec.title) != draft.spec.title {
        lost.push(plan_loss("title"));
    }
    for task in &draft.tasks {
        if one_line(&task.spec.description) != task.spec.description {
            lost.push(task_loss(&task.spec.id, "description"));
        }
    }
    lost
}

fn margin(level: usize) -> String {
    "  ".repeat(level + 1)
}

fn brackets(status: EffectiveStatus) -> (&'static str, &'static str) {
    match status {
        EffectiveStatus::Ready
        | EffectiveStatus::Blocked
        | EffectiveStatus::Held
        | EffectiveStatus::Disputed
        | EffectiveStatus::Asking
        | EffectiveStatus::Queued => ("[", "]"),
        EffectiveStatus::Running | EffectiveStatus::Reported => ("([", "])"),
        EffectiveStatus::Done => ("(", ")"),
        EffectiveStatus::Failed => ("{{", "}}"),
        EffectiveStatus::Skipped => ("[/", "/]"),
        EffectiveStatus::Cancelled => ("[\\", "\\]"),
    }
}

/// Escapes text inside the quotes of a label: characters with a meaning in Mermaid, HTML or Markdown are written as numbers.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '#' | '<' | '>' | '&' | '`' | '\\' | ';' | '*' | '_' | '~' | '[' | ']' | '{' | '}'
            | '|' | '$' => {
                safe.push_str(&format!("#{};", u32::from(c)));
            }
            c => safe.push(c),
        }
    }
    safe
}
