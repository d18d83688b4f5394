//! `waypost status`, and `waypost` alone: what is going on here, and what to type next.

use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use waypost_config::Config;
use waypost_core::{Phase, Plan, PlanId, Task};
use waypost_store::{ArchiveFilter, PlanStore, PlanSummary, Query, Sort};
use waypost_text::{count, pad, shell_word, width};

use crate::commands::answer::waiting_in;
use crate::commands::list::other_folders;
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::foreign_folders::ForeignFolder;
use waypost_cli::runner::command;
use waypost_cli::style::Look;
use waypost_cli::view::text;

/// Plans that are looked at, those that need a person first.
const PLANS_MAX: usize = 100;
/// Rows that are shown of each part.
const ROWS_MAX: usize = 8;
/// Tasks of a plan that is read for tasks that people do.
const TASKS_READ_MAX: u32 = 10_000;

const EXAMPLES: &str = "\
Examples:
  waypost
  waypost status --json
  waypost status --line    # for the status bar of an editor or an agent";

/// The parts of the overview, in the order in which they are shown. A plan is in the first one that fits, with what else is to be said of it.
const PARTS: [(&str, &str); 6] = [
    ("waiting", "waiting for you"),
    ("failed", "failed"),
    ("running", "running"),
    ("ready", "ready for the next one who asks"),
    ("paused", "paused"),
    ("rejected", "rejected: whoever wrote it changes it"),
];
const PAUSED: usize = REJECTED - 1;
/// The last part, in which nothing happens before somebody changes the plan.
const REJECTED: usize = PARTS.len() - 1;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Status {
    /// Print one short line for a status bar, or nothing if no plan is open
    #[arg(long)]
    line: bool,
    /// A plan, which has commands of its own
    #[arg(hide = true)]
    one: Option<String>,
    #[command(subcommand)]
    act: Option<super::note::OldSpelling>,
}

impl Status {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        if let Some(plan) = &self.one {
            let plan = shell_word(plan);
            let hint = format!("`waypost show {plan}` shows a plan, `waypost note {plan}` its note");
            return Err(Failure::usage("the overview is of all plans", hint));
        }
        match self.act {
            Some(act) => act.run(context),
            None if self.line && !context.out.json => line(context),
            None => run(context),
        }
    }
}

/// Prints the open plan that needs attention first, why, and how many more there are.
fn line(context: &mut Context) -> Outcome {
    let plans = context.plans()?;
    let folders = context.folders()?;
    let config = context.load_config(&folders, None)?;
    let page = plans.heads(&query())?;
    let unreadable = context.unreadable_plans(&plans, &page.warnings)?.len();
    let damaged =
        if unreadable > 0 { format!(" · {} damaged", count(unreadable, "plan")) } else { String::new() };
    let mut rows = rows(&plans, &config, page.items)?;
    rows.retain(|row| row.part != REJECTED);
    let Some(first) = rows.iter().min_by_key(|row| row.part) else {
        if !damaged.is_empty() {
            context.out.line(format!("waypost{damaged}"));
        }
        return Ok(());
    };
    let PlanSummary { id, counts, .. } = &first.head;
    let (state, _) = PARTS[first.part];
    let mut line = format!("waypost {id} {} {}/{} · {state}", named(&first.head), counts.done, counts.total);
    if rows.len() > 1 {
        line.push_str(&format!(" · {}", count(rows.len() - 1, "more plan")));
    }
    line.push_str(&damaged);
    context.out.line(line);
    Ok(())
}

/// The plans that the overview looks at.
fn query() -> Query {
    Query {
        phases: Phase::OPEN.into_iter().chain([Phase::Failed]).collect(),
        sort: Sort::Attention,
        limit: PLANS_MAX,
        ..Query::default()
    }
}

fn rows(plans: &PlanStore, config: &Config, heads: Vec<PlanSummary>) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for head in heads {
        rows.extend(row(plans, config, head)?);
    }
    Ok(rows)
}

/// Plans that clones disagree about, in every phase.
fn disagreements(context: &Context, plans: &Arc<PlanStore>) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for (id, questions) in context.service(plans).open_question_counts()? {
        let head = plans.view(&id, |plan, _| PlanSummary::detailed(plan))?;
        if !head.archived {
            let what = format!("clones disagree about {}", count(questions, "thing"));
            rows.push(Row { part: 0, head, what, command: format!("waypost conflicts {id}") });
        }
    }
    Ok(rows)
}

/// A plan in the overview.
struct Row {
    part: usize,
    head: PlanSummary,
    what: String,
    command: String,
}

/// Prints the overview.
pub(crate) fn run(context: &mut Context) -> Outcome {
    let plans = context.plans()?;
    let folders = context.folders()?;
    let config = context.load_config(&folders, None)?;
    let page = plans.heads(&query())?;
    let total_of = |shelf| plans.heads(&Query { shelf, limit: 1, ..Query::default() }).map(|page| page.total);
    let total = total_of(ArchiveFilter::Current)?;
    let unreadable = context.unreadable_plans(&plans, &page.warnings)?;
    // What the failure says is not noted as well.
    let outcome = match total == 0 {
        true => context.refuse_if_all_damaged(&page.warnings),
        false => Ok(()),
    };
    if outcome.is_err() && unreadable.is_empty() {
        return outcome;
    }
    if outcome.is_ok() {
        context.note_damage(&page.warnings);
    }
    let backlog = context.service(&plans).sharing_backlog()?;
    if let Some(problem) = &backlog.problem {
        let since =
            backlog.since.map(|since| format!(" since {}", since.to_the_second())).unwrap_or_default();
        let waiting = match backlog.waiting {
            0 => String::new(),
            1 => " (1 record waits)".to_owned(),
            records => format!(" ({} wait)", count(records, "record")),
        };
        let words = format!("shared plans do not reach {}{since}{waiting}: {problem}", config.git.remote);
        context.out.say(text::one_line(&words));
    }
    let mut rows = rows(&plans, &config, page.items)?;
    rows.extend(disagreements(context, &plans)?);
    let foreign = other_folders(&folders, &plans);
    let place = context.store_location()?.location;
    if context.out.json {
        let of = |part: usize| -> Vec<Value> {
            let rows = rows.iter().filter(|row| row.part == part);
            rows.map(|row| json!({ "plan": row.head, "what": row.what, "command": command(&row.command) }))
                .collect()
        };
        let mut value = json!({ "store": place, "plans": total, "more": page.next.is_some() });
        if backlog.problem.is_some() {
            value["shared"] = json!(backlog);
        }
        if !unreadable.is_empty() {
            let damaged = unreadable.iter().map(|(id, what)| json!({ "id": id, "what": what }));
            value["damaged"] = damaged.collect();
        }
        for (part, (name, _)) in PARTS.iter().enumerate() {
            value[name] = of(part).into();
        }
        if !foreign.is_empty() {
            value["other_folders"] = foreign.iter().map(ForeignFolder::to_json).collect();
        }
        context.out.value(&value)?;
        return outcome;
    }
    print_unreadable(context, &unreadable);
    for (part, (_, title)) in PARTS.iter().enumerate() {
        print(context, title, rows.iter().filter(|row| row.part == part));
    }
    let archived = if total == 0 { total_of(ArchiveFilter::Archived)? } else { 0 };
    if archived > 0 {
        let archived = count(usize::try_from(archived).unwrap_or(usize::MAX), "plan");
        context.out.line(format!("{archived}, archived: {}", command("waypost list --archived")));
    } else if total == 0 && unreadable.is_empty() {
        context.out.line("no plans yet");
        let rows = [
            ("waypost demo", "see a plan run, in a temporary folder"),
            ("waypost new 'Move to JWT'", "create a plan"),
            ("waypost import FILE", "import a plan of any format"),
            ("waypost init", "connect your agents"),
        ]
        .map(|(line, does)| (command(line), does));
        let widest = rows.iter().map(|(line, _)| width(line)).max().unwrap_or(0);
        for (line, does) in rows {
            context.out.line(format!("  {}  {does}", pad(&line, widest)));
        }
    } else if total > 0 {
        let quiet = if rows.is_empty() { "nothing waits, runs or has failed; " } else { "" };
        context.out.line(format!(
            "{quiet}{} in all: {}",
            count(usize::try_from(total).unwrap_or(usize::MAX), "plan"),
            command("waypost list")
        ));
    }
    foreign.iter().for_each(|folder| context.out.say(folder.describe()));
    if total == 0 {
        context.note_shared_plans();
    }
    context.out.say(format!("plans are kept in {place}; `waypost help` lists the commands"));
    outcome
}

/// Prints the plans of which nothing can be read.
fn print_unreadable(context: &mut Context, plans: &[(PlanId, String)]) {
    if plans.is_empty() {
        return;
    }
    let title = context.out.paint("damaged", Look::Bold);
    context.out.line(title);
    let shown = &plans[..plans.len().min(ROWS_MAX)];
    let widest = shown.iter().map(|(id, _)| width(id.as_str())).max().unwrap_or(0);
    for (id, what) in shown {
        context.out.line(format!("  {}  {}", pad(id.as_str(), widest), text::one_line(what)));
    }
    if plans.len() > ROWS_MAX {
        context.out.line(format!("  and {} more: {}", plans.len() - ROWS_MAX, command("waypost doctor")));
    }
}

fn print<'a>(context: &mut Context, title: &str, rows: impl Iterator<Item = &'a Row>) {
    let rows: Vec<&Row> = rows.collect();
    if rows.is_empty() {
        return;
    }
    let title = context.out.paint(title, Look::Bold);
    context.out.line(title);
    let shown = &rows[..rows.len().min(ROWS_MAX)];
    let what = |row: &Row| format!("{}: {}", named(&row.head), row.what);
    let widest = |text: &dyn Fn(&Row) -> String| shown.iter().map(|row| width(&text(row))).max().unwrap_or(0);
    let columns = (widest(&|row| row.head.id.to_string()), widest(&what));
    for row in shown {
        let (id, what) = (pad(row.head.id.as_str(), columns.0), pad(&what(row), columns.1));
        context.out.line(format!("  {id}  {what}  {}", command(&row.command)));
    }
    if rows.len() > ROWS_MAX {
        let list = command("waypost list --sort attention");
        context.out.line(format!("  and {} more: {list}", rows.len() - ROWS_MAX));
    }
}

fn named(head: &PlanSummary) -> String {
    const TITLE_WIDTH_MAX: usize = 40;
    let title = if head.title.is_empty() { "(untitled)" } else { &head.title };
    waypost_text::truncate(&text::one_line(title), TITLE_WIDTH_MAX).into_owned()
}

/// The command that takes up what is ready: machines run what names an executor.
fn verb_for_ready(plan: &Plan) -> &'static str {
    let ready: Vec<&Task> = plan.ready().collect();
    if !ready.is_empty() && ready.iter().all(|task| task.spec.work.is_some()) { "run" } else { "next" }
}

/// Returns where a plan stands, if anything is to be said about it.
fn row(plans: &PlanStore, config: &Config, head: PlanSummary) -> Outcome<Option<Row>> {
    let (id, counts) = (head.id.clone(), head.counts);
    let command = |verb: &str| format!("waypost {verb} {id}");
    let is_open = !head.phase.is_finished();
    let (waits, rejection, take_up) = match head.phase {
        Phase::Active if head.goals <= TASKS_READ_MAX || head.asking > 0 => {
            plans.view(&head.id, |plan, _| (waiting_in(plan, config), None, verb_for_ready(plan)))?
        }
        Phase::Paused | Phase::Draft if head.asking > 0 => (head.asking as usize, None, "next"),
        Phase::Draft if head.goals <= TASKS_READ_MAX && (counts.ready > 0 || head.awaits_approval) => {
            let rejection = |plan: &Plan| Some(plan.rejection()).filter(|said| !said.is_empty());
            plans.view(&head.id, |plan, _| (0, rejection(plan), verb_for_ready(plan)))?
        }
        Phase::Draft
        | Phase::AwaitingApproval
        | Phase::Active
        | Phase::Paused
        | Phase::Completed
        | Phase::Failed
        | Phase::Cancelled => (0, None, "next"),
    };
    let (part, what, command) = if head.phase == Phase::AwaitingApproval {
        (0, "awaits approval".to_owned(), command("approve"))
    } else if head.is_refused() {
        (0, "a worker refused to start it; it has to be approved again".to_owned(), command("approve"))
    } else if waits > 0 {
        let verb = if waits == 1 { "waits" } else { "wait" };
        (0, format!("{} {verb} for you", count(waits, "task")), command("answer"))
    } else if counts.failed > 0 {
        (1, format!("{} failed", count(counts.failed as usize, "task")), command("show"))
    } else if head.phase == Phase::Failed {
        (1, "failed".to_owned(), command("show"))
    } else if counts.in_progress() > 0 {
        let (running, done, total) = (counts.in_progress(), counts.done, counts.total);
        (2, format!("{running} in progress, {done} of {total} done"), command("watch"))
    } else if head.phase == Phase::Paused {
        (PAUSED, "paused".to_owned(), command("resume"))
    } else if let Some(rejection) = rejection {
        (REJECTED, rejection, command("show"))
    } else if is_open && counts.ready > 0 {
        (3, format!("{} ready", count(counts.ready as usize, "task")), command(take_up))
    } else {
        return Ok(None);
    };
    let mut what = what;
    if part == 0 && counts.failed > 0 {
        what.push_str(&format!(", {} failed", counts.failed));
    }
    if part < 2 && counts.in_progress() > 0 {
        what.push_str(&format!(", {} in progress", counts.in_progress()));
    }
    Ok(Some(Row { part, head, what, command }))
}
