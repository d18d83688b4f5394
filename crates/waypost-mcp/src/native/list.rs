//! `plan_list`: plans, the latest first, by page.

use serde_json::json;
use waypost_core::Phase;
use waypost_store::{PlanSummary, Query};
use waypost_text::quote;

use super::arguments::{ArgumentForm, Arguments, Problems};
use crate::reply_text;
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Maximum number of plans in a reply.
pub(super) const PLANS_PAGE: usize = 20;
/// Maximum bytes of each title and owner.
const TITLE_BYTES: usize = 60;

const KNOWN: [(&str, ArgumentForm); 4] = [
    ("all", ArgumentForm::Flag),
    ("phase", ArgumentForm::Word),
    ("text", ArgumentForm::Text),
    ("cursor", ArgumentForm::Text),
];

pub(super) fn run(call: &Call) -> Result<Answer, ToolError> {
    let mut wrong = Problems::default();
    let arguments = Arguments::noting_wrong(&call.arguments, &KNOWN, &mut wrong);
    let phase = wrong.take_or_default(arguments.one_of("phase", Phase::ALL));
    let phase = wrong.or(phase)?;
    let all = arguments.flag("all")?;
    let query = Query {
        owner: (!all).then(|| call.by().name.clone()),
        phases: phase.into_iter().collect(),
        text: arguments.name("text")?.map(str::to_owned),
        after: arguments.name("cursor")?.map(str::to_owned),
        limit: PLANS_PAGE,
        ..Query::default()
    };
    let first_page_of_own = !all && query.after.is_none();
    let page = call.workspace.page(&query)?;
    let plans: Vec<_> = page
        .items
        .iter()
        .map(|head| {
            let PlanSummary { id, phase, counts, .. } = head;
            let mut plan = json!({
                "id": id,
                "title": reply_text::cut(&head.title, TITLE_BYTES),
                "phase": phase.as_str(),
                "done": counts.done,
                "total": counts.total,
            });
            if head.is_document() {
                plan["document"] = json!(true);
            }
            if all && !head.owner.is_empty() {
                plan["owner"] = json!(reply_text::cut(&head.owner, TITLE_BYTES));
            }
            plan
        })
        .collect();
    let mut lines: Vec<String> = page.items.iter().map(|head| line(head, all)).collect();
    let mut value = json!({ "plans": plans, "total": page.total });
    if lines.is_empty() {
        lines.push(if all {
            "no plans".to_owned()
        } else {
            "no plans of yours; all: true lists others'".to_owned()
        });
    }
    if let Some(archived) = first_page_of_own.then(|| call.archived_plan()).transpose()?.flatten() {
        let (plan, title, by) =
            (&archived.plan, reply_text::cut(&archived.title, TITLE_BYTES), archived.by_whom());
        lines.push(format!("{plan} archived{by} {}", quote(&title)));
        value["archived"] = json!({ "id": plan, "title": title, "by": archived.by });
    }
    if let Some(next) = page.next {
        lines.push(format!("{} in all; more: cursor {next}", page.total));
        value["cursor"] = json!(next);
    }
    let mut answer = Answer { value, text: lines.join("\n") };
    answer.warn(&page.warnings);
    Ok(answer)
}

fn line(head: &PlanSummary, with_owner: bool) -> String {
    let PlanSummary { id, phase, counts, owner, .. } = head;
    let title = quote(&reply_text::cut(&head.title, TITLE_BYTES));
    let owner = match with_owner && !owner.is_empty() {
        true => format!(" ({})", reply_text::cut(owner, TITLE_BYTES)),
        false => String::new(),
    };
    let done = match head.is_document() {
        true => "document".to_owned(),
        false => format!("{}/{}", counts.done, counts.total),
    };
    format!("{id} {} {done}{owner} {title}", phase.as_str())
}
