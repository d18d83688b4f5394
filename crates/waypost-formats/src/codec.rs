//! Reads, writes and describes a text of any format by the format's name.

use waypost_core::Draft;

use crate::detect::{sniff, why_unknown};
use crate::{
    Dialect, Form, Reading, Unreadable, Writing, agora, backlog, beads, checklist, clido, dot, frctl,
    graphml, jaato, markdown, mermaid, native, plan_document, svg, task_master,
};

/// Reads `text` as `dialect`, or in the detected format.
pub fn read(text: &str, dialect: Option<Dialect>, file_name: Option<&str>) -> Result<Reading, Unreadable> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(dialect) = dialect.or_else(|| sniff(text, file_name)) else {
        return Err(why_unknown(text));
    };
    match dialect {
        Dialect::Native => native::read(text, file_name),
        Dialect::Clido => clido::read(text, file_name),
        Dialect::Jaato => jaato::read(text, file_name),
        Dialect::Frctl => frctl::read(text, file_name),
        Dialect::Agora => agora::read(text, file_name),
        Dialect::PlanDocument => plan_document::read(text, file_name),
        Dialect::Markdown => markdown::read(text, file_name),
        Dialect::Checklist => checklist::read(text, file_name),
        Dialect::TaskMaster => task_master::read(text, file_name),
        Dialect::Beads => beads::read(text, file_name),
        Dialect::Backlog => backlog::read(text, file_name),
        Dialect::Mermaid | Dialect::Dot | Dialect::Graphml | Dialect::Svg => {
            Err(Unreadable::WriteOnly(dialect))
        }
    }
}

/// Writes `draft` as `dialect`.
pub fn write(draft: &Draft, dialect: Dialect, form: Form) -> Result<Writing, Unreadable> {
    match dialect {
        Dialect::Native => native::write(draft, form),
        Dialect::Clido => clido::write(draft, form),
        Dialect::Jaato => jaato::write(draft, form),
        Dialect::Frctl => frctl::write(draft, form),
        Dialect::Agora => agora::write(draft, form),
        Dialect::PlanDocument => plan_document::write(draft, form),
        Dialect::Markdown => markdown::write(draft, form),
        Dialect::Checklist => checklist::write(draft, form),
        Dialect::Mermaid => mermaid::write(draft, form),
        Dialect::Dot => dot::write(draft, form),
        Dialect::Graphml => graphml::write(draft, form),
        Dialect::Svg => svg::write(draft, form),
        Dialect::TaskMaster | Dialect::Beads | Dialect::Backlog => Err(Unreadable::ReadOnly(dialect)),
    }
}

/// Writes several plans into one text. Only jaato's store files hold more than one; any other format takes exactly one.
pub fn write_many(drafts: &[Draft], dialect: Dialect, form: Form) -> Result<Writing, Unreadable> {
    match (dialect, drafts) {
        (Dialect::Jaato, _) => jaato::write_store(drafts, form),
        (_, [draft]) => write(draft, dialect, form),
        (_, _) => Err(Unreadable::NoPlan(format!(
            "{dialect} holds one plan in a text, and there are {}",
            drafts.len()
        ))),
    }
}

/// Returns the JSON Schema (draft 2020-12) of a JSON format.
pub fn schema(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::Native => Some(include_str!("../../../schemas/waypost-1.schema.json")),
        Dialect::Clido => Some(include_str!("../../../schemas/clido-plan.schema.json")),
        Dialect::Jaato => Some(include_str!("../../../schemas/jaato-plan.schema.json")),
        Dialect::Frctl => Some(include_str!("../../../schemas/plan-v1.schema.json")),
        Dialect::Agora => Some(include_str!("../../../schemas/agora-run.schema.json")),
        Dialect::PlanDocument => Some(include_str!("../../../schemas/plan-document.schema.json")),
        Dialect::Markdown
        | Dialect::Checklist
        | Dialect::TaskMaster
        | Dialect::Beads
        | Dialect::Backlog
        | Dialect::Mermaid
        | Dialect::Dot
        | Dialect::Graphml
        | Dialect::Svg => None,
    }
}
