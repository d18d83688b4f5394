//! `waypost list`: lists plans on one bounded page. Reads summaries, and whole plans only to say why a worker refused them.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;
use waypost_core::{Phase, PlanId};
use waypost_service::{ListedPlan, PlanStatus, Service};
use waypost_store::{ArchiveFilter, Page, PlanStore, Query, Sort};
use waypost_text::StatusSign;

use waypost_cli::context::Context;
use waypost_cli::error::Outcome;
use waypost_cli::foreign_folders::{ForeignFolder, not_imported};
use waypost_cli::links::Link;
use waypost_cli::load_config::Folders;
use waypost_cli::options::within;
use waypost_cli::runner::command;
use waypost_cli::style::Look;
use waypost_cli::view::plan::refusal_words;
use waypost_cli::view::table::{self, Cell};
use waypost_cli::view::{sign_look, text};

/// Plans on a page by default.
const PLANS_DEFAULT: usize = 20;
/// Maximum number of refused starts that are explained below the table.
const REFUSALS_SHOWN_MAX: usize = 5;
/// Maximum number of plans on a page.
const PLANS_MAX: usize = 1_000;

const EXAMPLES: &str = "\
Examples:
  waypost list
  waypost list --phase active,paused --owner planner
  waypost list --state rejected
  waypost list --search jwt --sort title
  waypost list --archived";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct List {
    /// Only plans in one of these phases
    #[arg(long, value_delimiter = ',', value_parser = phase)]
    phase: Vec<Phase>,
    /// Only plans in one of these states
    #[arg(long, value_delimiter = ',', value_parser = state(), conflicts_with = "cursor")]
    state: Vec<StatusSign>,
    /// Only plans with exactly this note
    #[arg(long, alias = "status")]
    note: Option<String>,
    /// Only plans of this agent
    #[arg(long)]
    owner: Option<String>,
    /// Only plans of this queue
    #[arg(long)]
    queue: Option<String>,
    /// Only plans with this text in their id or title
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Sort order
    #[arg(long, value_parser = sort(), default_value = "updated")]
    sort: Sort,
    /// Only archived plans
    #[arg(long, conflicts_with = "all")]
    archived: bool,
    /// Include archived plans
    #[arg(long)]
    all: bool,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value_t = PLANS_DEFAULT)]
    limit: usize,
    /// Continue after the cursor that the previous page printed
    #[arg(long, alias = "after", value_name = "CURSOR")]
    cursor: Option<String>,
}

fn phase(text: &str) -> Result<Phase, String> {
    let unknown = |_| format!("write one of {}", Phase::ALL.map(Phase::as_str).join(", "));
    text.replace('-', "_").parse().map_err(unknown)
}

/// Parses the name of a state that a plan can be in.
fn state() -> impl TypedValueParser<Value = StatusSign> {
    let names = PlanStatus::SIGNS.iter().map(|sign| sign.name());
    PossibleValuesParser::new(names).try_map(|name| {
        let found = PlanStatus::SIGNS.iter().find(|sign| sign.name() == name);
        found.copied().ok_or("no such state")
    })
}

fn sort() -> impl TypedValueParser<Value = Sort> {
    PossibleValuesParser::new(["updated", "attention", "created", "title", "id"]).try_map(|word| word.parse())
}

impl List {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        within("--limit", self.limit, 1..=PLANS_MAX)?;
        let narrowed = !self.phase.is_empty()
            || !self.state.is_empty()
            || [&self.note, &self.owner, &self.queue, &self.search].iter().any(|filter| filter.is_some());
        let query = Query {
            shelf: match (self.archived, self.all) {
                (true, _) => ArchiveFilter::Archived,
                (false, true) => ArchiveFilter::All,
                (false, false) => ArchiveFilter::Current,
            },
            phases: self.phase,
            status: self.note,
            owner: self.owner,
            queue: self.queue,
            text: self.search,
            sort: self.sort,
            limit: self.limit,
            after: self.cursor,
            ..Query::default()
        };
        let plans = context.plans()?;
        let page = page(&context.service(&plans), &query, &self.state)?;
        let is_first = !narrowed && query.after.is_none();
        let unreadable = match is_first {
            true => context.unreadable_plans(&plans, &page.warnings)?,
            false => Vec::new(),
        };
        // What the failure says is not noted as well.
        let outcome = match page.items.is_empty() && is_first {
            true => context.refuse_if_all_damaged(&page.warnings),
            false => Ok(()),
        };
        if outcome.is_err() && unreadable.is_empty() {
            return outcome;
        }
        if outcome.is_ok() {
            context.note_damage(&page.warnings);
        }
        let foreign = match is_first.then(|| context.folders()) {
            Some(Ok(folders)) => other_folders(&folders, &plans),
            Some(Err(_)) | None => Vec::new(),
        };
        if context.out.json {
            let mut page = page.to_json("plans");
            if !foreign.is_empty() {
                page["other_folders"] = foreign.iter().map(ForeignFolder::to_json).collect();
            }
            if !unreadable.is_empty() {
                let damaged = unreadable.iter().map(|(id, what)| json!({ "id": id, "what": what }));
                page["damaged"] = damaged.collect();
            }
            context.out.value(&page)?;
            return outcome;
        }
        if page.items.is_empty() && unreadable.is_empty() {
            let words = match (narrowed, query.shelf) {
                (true, _) => "no plans match",
                (false, ArchiveFilter::Archived) => "no archived plans",
                (false, ArchiveFilter::Current | ArchiveFilter::All) => {
                    "no plans yet: create one with `waypost new TITLE` or `waypost import FILE`"
                }
            };
            context.out.say(words);
            foreign.iter().for_each(|folder| context.out.say(folder.describe()));
            if is_first {
                context.note_shared_plans();
                let place = context.store_location()?.location;
                context.out.say(format!("plans are kept in {place}"));
            }
            return Ok(());
        }
        let now = text::now();
        let mut rows: Vec<Vec<Cell>> = page.items.iter().map(|plan| row(plan, now)).collect();
        rows.extend(unreadable.iter().map(|(id, _)| unreadable_row(id)));
        table::print(&mut context.out, &["ID", "STATE", "DONE", "VER", "AGE", "TITLE"], &rows);
        let refused = page.items.iter().map(|plan| &plan.summary).filter(|head| head.is_refused());
        for head in refused.take(REFUSALS_SHOWN_MAX) {
            let why = plans.with_plan(&head.id, |plan| {
                let refusal = plan.state().start_refusals.first();
                refusal.map(|refusal| refusal_words(plan, refusal))
            })?;
            context.out.say(why.unwrap_or_default());
        }
        if let Some(next) = page.next {
            let shown = page.items.len();
            context.out.say(format!("{shown} of {} plans; for more, add --cursor '{next}'", page.total));
        } else if !self.state.is_empty() && page.items.len() < page.total as usize {
            context.out.say(format!("{} of {} plans; --limit N shows more", page.items.len(), page.total));
        }
        foreign.iter().for_each(|folder| context.out.say(folder.describe()));
        outcome
    }
}

/// Returns a page of plans, or of those in one of these states.
fn page(service: &Service, query: &Query, states: &[StatusSign]) -> Outcome<Page<ListedPlan>> {
    if states.is_empty() {
        let Page { items, total, next, warnings } = service.plans().heads(query)?;
        return Ok(Page { items: service.summaries_with_status(items)?, total, next, warnings });
    }
    let found = service.plans_by_status(query.clone(), |state| states.contains(&state.sign))?;
    let mut warnings = found.warnings;
    if found.more {
        warnings.push(
            "not all plans were searched; narrow the search with --phase, --owner, --queue or --search"
                .to_owned(),
        );
    }
    Ok(Page { items: found.plans, total: found.total as u64, next: None, warnings })
}

/// Returns the folders of other programs whose plans are neither imported nor linked.
pub(crate) fn other_folders(folders: &Folders, plans: &PlanStore) -> Vec<ForeignFolder> {
    // A link that cannot be read is reported where links are kept.
    let links = Link::all(folders).unwrap_or_default();
    let linked: Vec<_> = links.iter().map(|link| link.folder().to_owned()).collect();
    not_imported(&folders.workspace, plans, &linked)
}

fn row(ListedPlan { summary: head, state, .. }: &ListedPlan, now: waypost_core::Timestamp) -> Vec<Cell> {
    let mut words = format!("{} {}", state.sign.glyph(), state.label);
    if head.archived {
        words.push_str(" (archived)");
    }
    let counts = &head.counts;
    let mut done = match head.is_document() {
        true => "document".to_owned(),
        false => format!("{}/{}", counts.done, counts.total),
    };
    if counts.failed > 0 {
        done.push_str(&format!(" {}{}", StatusSign::Failed.glyph(), counts.failed));
    }
    if head.atomic > 0 {
        done.push_str(&format!(" · {} of {} atomic", head.atomic, head.goals));
    }
    let title = if head.title.is_empty() { "(untitled)" } else { &head.title };
    let status =
        if head.status.is_empty() { String::new() } else { format!("[{}]", text::one_line(&head.status)) };
    vec![
        Cell::plain(head.id.as_str()),
        Cell::looking(words, sign_look(state.sign)),
        Cell::looking(done, if counts.failed > 0 { Look::Red } else { Look::Plain }),
        Cell::plain(format!("v{}", head.version)),
        Cell::plain(text::age(head.updated_at, now)),
        Cell::with_behind(title, status),
    ]
}

/// The row of a plan of which nothing can be read.
fn unreadable_row(id: &PlanId) -> Vec<Cell> {
    let [done, version, age] = ["-"; 3].map(Cell::plain);
    let state = Cell::looking("damaged", Look::Red);
    vec![Cell::plain(id.as_str()), state, done, version, age, Cell::plain(command("waypost doctor"))]
}
