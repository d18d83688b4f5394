//! `waypost plan cost`: model calls, tokens and cost of one plan or of all. Reads journals, and for a single plan also its budget.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};
use waypost_core::PlanId;
use waypost_llm::{Spent, Totals, read_journal};

use crate::planning::{self, report};
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::load_config::Folders;
use waypost_cli::output::Output;
use waypost_cli::view::table::{self, Cell};

/// Maximum number of folder entries that are read.
const JOURNALS_MAX: usize = 10_000;

const EXAMPLES: &str = "\
Prices stand in the configuration of models; calls of models without a price are counted, and cost \
nothing here.

Examples:
  waypost plan cost
  waypost plan cost kq3
  waypost plan cost --json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cost {
    /// Plan id or prefix [default: all plans]
    plan: Option<String>,
}

impl Cost {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let folders = context.folders()?;
        match &self.plan {
            Some(plan) => of_plan(context, &folders, plan),
            None => of_all(context, &folders),
        }
    }
}

fn totals(path: &Path, plan: Option<&PlanId>) -> Outcome<Totals> {
    if !path.is_file() {
        return Ok(Totals::default());
    }
    let lines = read_journal(path).map_err(|error| planning::of_journal(&error, plan))?;
    Ok(Totals::of(&lines))
}

fn of_plan(context: &mut Context, folders: &Folders, word: &str) -> Outcome {
    let found = context.find(word)?;
    let totals = totals(&planning::orders(folders).journal(&found.id), Some(&found.id))?;
    let (used, budget) = found.read(|plan| (plan.state().tokens_used, plan.spec().token_budget))?;
    if context.out.json {
        let mut value = totals_json(&totals);
        value.insert("id".to_owned(), found.id.as_str().into());
        value.insert("tokens_used".to_owned(), used.into());
        value.insert("token_budget".to_owned(), json!(budget));
        return context.out.value(&value);
    }
    let of = budget.map(|budget| format!(" of {budget}")).unwrap_or_default();
    context.out.line(format!("plan {}: {used}{of} tokens charged", found.id));
    context.out.line(report::spent_words(&totals.all));
    if totals.failed > 0 {
        context.out.line(format!(
            "{} without a reply",
            waypost_cli::view::text::count(totals.failed as usize, "call")
        ));
    }
    let purposes = totals.by_purpose.iter().map(|(purpose, spent)| (purpose.name().to_owned(), *spent));
    print("PURPOSE", purposes, &mut context.out);
    print("MODEL", totals.by_model.iter().map(|(model, spent)| (model.clone(), *spent)), &mut context.out);
    let name = |task: &Option<waypost_core::TaskId>| {
        task.as_ref().map_or_else(|| "(the plan)".to_owned(), ToString::to_string)
    };
    print("TASK", totals.by_task.iter().map(|(task, spent)| (name(task), *spent)), &mut context.out);
    Ok(())
}

/// What models have cost for a plan, by purpose, model and task.
pub(crate) fn plan_json(folders: &Folders, plan: &PlanId) -> Outcome<Value> {
    Ok(Value::Object(totals_json(&totals(&planning::orders(folders).journal(plan), Some(plan))?)))
}

/// What models have cost for each plan, and in all.
pub(crate) fn all_json(folders: &Folders) -> Outcome<Value> {
    Ok(AllSpent::read(folders)?.json())
}

/// What was spent on each plan. Journals that cannot be read are left out, and named.
struct AllSpent {
    rows: Vec<(String, Spent)>,
    by_model: BTreeMap<String, Spent>,
    all: Spent,
    bad: Vec<Failure>,
}

impl AllSpent {
    fn read(folders: &Folders) -> Outcome<Self> {
        let mut found =
            Self { rows: Vec::new(), by_model: BTreeMap::new(), all: Spent::default(), bad: Vec::new() };
        for path in journals(&folders.own.join("planning"))? {
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            match totals(&path, None) {
                Err(failure) => found.bad.push(failure),
                // The journal was created, but no call was made.
                Ok(totals) if totals.all.calls == 0 && totals.failed == 0 => {}
                Ok(totals) => {
                    found.all = sum(found.all, totals.all);
                    for (model, spent) in totals.by_model {
                        let known = found.by_model.entry(model).or_default();
                        *known = sum(*known, spent);
                    }
                    found.rows.push((name, totals.all));
                }
            }
        }
        Ok(found)
    }

    fn json(&self) -> Value {
        let named = |(name, spent): (&String, &Spent)| {
            let mut fields = report::spent_json(spent);
            fields.insert("id".to_owned(), name.clone().into());
            Value::Object(fields)
        };
        let plans: Vec<Value> = self.rows.iter().map(|(name, spent)| named((name, spent))).collect();
        let models: Map<String, Value> = self
            .by_model
            .iter()
            .map(|(model, spent)| (model.clone(), Value::Object(report::spent_json(spent))))
            .collect();
        let mut value = json!({ "plans": plans, "by_model": models, "all": report::spent_json(&self.all) });
        let left_out: Vec<&str> = self.bad.iter().map(|failure| failure.message.as_str()).collect();
        if !left_out.is_empty() {
            value["left_out"] = json!(left_out);
        }
        value
    }
}

fn of_all(context: &mut Context, folders: &Folders) -> Outcome {
    let found = AllSpent::read(folders)?;
    if context.out.json {
        context.out.value(&found.json())?;
    } else if found.rows.is_empty() {
        context.out.say("no model calls so far");
    } else {
        print("PLAN", found.rows.into_iter(), &mut context.out);
        context.out.line(format!("in all: {}", report::spent_words(&found.all)));
    }
    left_out(found.bad)
}

/// Reports the journals that cannot be read and are not counted.
fn left_out(mut bad: Vec<Failure>) -> Outcome {
    let Some(first) = bad.pop() else { return Ok(()) };
    if bad.is_empty() {
        return Err(Failure { message: format!("not counted: {}", first.message), ..first });
    }
    bad.push(first);
    let message = format!("{} journals cannot be read and are not counted", bad.len());
    let mut failure = Failure::failed(message, "`waypost plan cost PLAN` explains what to do about each");
    failure.details = bad.iter().map(|one| format!("  {}", one.message)).collect();
    failure.code = "journal".to_owned();
    Err(failure)
}

/// The journals of a folder, sorted by name.
fn journals(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let failed = |error: std::io::Error| Failure::file(folder, &error);
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut paths = Vec::new();
    for entry in entries.take(JOURNALS_MAX) {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|ending| ending == "jsonl") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn sum(a: Spent, b: Spent) -> Spent {
    Spent {
        calls: a.calls + b.calls,
        tokens_in: a.tokens_in.saturating_add(b.tokens_in),
        tokens_out: a.tokens_out.saturating_add(b.tokens_out),
        cost: a.cost.plus(b.cost),
        unpriced: a.unpriced + b.unpriced,
        estimated: a.estimated + b.estimated,
    }
}

fn totals_json(totals: &Totals) -> Map<String, Value> {
    let mut fields = report::spent_json(&totals.all);
    let object = |rows: Vec<(String, &Spent)>| -> Value {
        Value::Object(
            rows.into_iter().map(|(name, spent)| (name, Value::Object(report::spent_json(spent)))).collect(),
        )
    };
    let purposes = totals.by_purpose.iter().map(|(purpose, spent)| (purpose.name().to_owned(), spent));
    let tasks = totals.by_task.iter();
    let tasks =
        tasks.map(|(task, spent)| (task.as_ref().map(ToString::to_string).unwrap_or_default(), spent));
    fields.insert("by_purpose".to_owned(), object(purposes.collect()));
    fields
        .insert("by_model".to_owned(), object(totals.by_model.iter().map(|(m, s)| (m.clone(), s)).collect()));
    fields.insert("by_task".to_owned(), object(tasks.collect()));
    fields.insert("failed_calls".to_owned(), totals.failed.into());
    fields
}

fn print(heading: &str, rows: impl Iterator<Item = (String, Spent)>, out: &mut Output) {
    let rows: Vec<Vec<Cell>> = rows
        .map(|(name, spent)| {
            vec![
                Cell::plain(name),
                Cell::plain(spent.calls.to_string()),
                Cell::plain(spent.tokens_in.to_string()),
                Cell::plain(spent.tokens_out.to_string()),
                Cell::plain(if spent.unpriced == spent.calls {
                    "–".to_owned()
                } else {
                    spent.cost.to_string()
                }),
            ]
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    out.line("");
    table::print(out, &[heading, "CALLS", "TOKENS IN", "TOKENS OUT", "COST"], &rows);
}
