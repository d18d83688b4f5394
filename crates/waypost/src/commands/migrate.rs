//! `waypost migrate`: migrates the store to this build's schema. Opening a store does the same; this command reports it.
//! `waypost migrate approvals`: asks a person anew about every approval by which nothing starts any more.

use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::json;
use waypost_service::{Guard, PersonAct, PersonVerb, Presence, Preview};
use waypost_store::{Durability, PostgresStore, SqliteStore, StoreError, open};
use waypost_text::count;

use waypost_cli::approval_prompt;
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::prompt::ask_at;
use waypost_cli::runner::typeable;

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show each plan whose approval is from an earlier version or void, and ask for a new one (people only)
    Approvals,
}

/// The current schema version of a store; `None` for stores without a schema.
fn schema_of(location: &str) -> Option<Result<Option<u32>, StoreError>> {
    match location.split_once(':') {
        Some(("sqlite", path)) => Some(SqliteStore::schema_of(Path::new(path))),
        Some(("postgres" | "postgresql", _)) => Some(PostgresStore::schema_of(location)),
        Some(_) | None => None,
    }
}

impl Migrate {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        match self.what {
            None => migrate_schema(context),
            Some(What::Approvals) => migrate_approvals(context),
        }
    }
}

fn migrate_schema(context: &mut Context) -> Outcome {
    let place = context.store_location()?;
    let shown = place.shown();
    let Some(from) = schema_of(&place.location) else {
        open(&place.location, Durability::default())?;
        if context.out.json {
            return context.out.value(&json!({ "store": shown, "changed": false }));
        }
        context.out.line(format!("{shown} has no schema to bring up to date"));
        return Ok(());
    };
    let from = from?;
    place.prepare()?;
    // Opening migrates the store. It is closed again before its schema is read.
    drop(open(&place.location, Durability::default())?);
    let to = schema_of(&place.location).transpose()?.flatten();
    if context.out.json {
        return context.out.value(&json!({ "store": shown, "from": from, "to": to, "changed": from != to }));
    }
    let to = to.unwrap_or_default();
    context.out.line(match from {
        Some(from) if from == to => format!("{shown} is at schema {to} already"),
        Some(from) => format!("{shown}: schema {from} → {to}"),
        None => format!("{shown}: created, schema {to}"),
    });
    Ok(())
}

fn migrate_approvals(context: &mut Context) -> Outcome {
    const COMMAND: &str = "waypost migrate approvals";
    let plans = context.plans()?;
    let service = context.service(&plans);
    let act = PersonAct { verb: PersonVerb::Approve, plan: String::new(), task: None };
    let in_terminal =
        |failure: Failure| Failure { hint: format!("a person runs `{COMMAND}` in a terminal"), ..failure };
    let by = approval_prompt::person(context, act).map_err(in_terminal)?;
    if context.out.json {
        let failure = Failure::failed("nobody was asked", "leave out --json");
        return Err(Failure { code: "seen_missing".to_owned(), ..failure });
    }
    let mut terminal = approval_prompt::terminal("approving", format!("run `{COMMAND}` in a terminal"))?;
    let by = by.present(Presence::new("terminal"));
    let mut previews = Vec::new();
    for plan in service.lapsed_approvals()? {
        let preview = service.preview(&plan)?;
        if preview.unresolved.is_empty() {
            previews.push(preview);
        } else {
            let names = preview.unresolved.join(", ");
            context.out.note(format!("plan {plan} is left out: nobody defines {names}"));
        }
    }
    let (total, mut approved, mut skipped): (usize, usize, Vec<&Preview>) = (previews.len(), 0, Vec::new());
    for (preview, place) in previews.iter().zip(1..) {
        let word = approval_prompt::show(&mut terminal, preview)?;
        // Before that the person has not seen all of them.
        let is_last = place == total;
        let all = if is_last { ", or all to approve it and those that you skipped" } else { "" };
        let question =
            format!("Approve plan {} ({place} of {total})? Type {word}, or skip{all}: ", preview.plan);
        let typed = ask_at(&mut terminal, &question)?;
        let chosen = match typed.trim() {
            "all" if is_last => std::iter::once(preview).chain(skipped.drain(..)).collect(),
            typed if typed == word => vec![preview],
            _ => {
                skipped.push(preview);
                Vec::new()
            }
        };
        for preview in chosen {
            service.approve(&by, &preview.plan, preview.seen(), "", Guard::NONE)?;
            approved += 1;
        }
    }
    context.out.line(format!("approved {approved} of {}", count(total, "plan")));
    for preview in skipped {
        let plan = &preview.plan;
        context.out.line(typeable(&format!("not approved: plan {plan} (`waypost approve {plan}`)")));
    }
    Ok(())
}
