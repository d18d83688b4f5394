//! Reports the result of planning, to people and programs.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use waypost_config::Config;
use waypost_core::{Plan, PlanId};
use waypost_llm::{Journal, Spent};
use waypost_planner::planning::{PlanningResult, StopReason};
use waypost_planner::{Bound, Broken, Repair};

use waypost_cli::error::{Exit, Failure};
use waypost_cli::output::Output;
use waypost_cli::view::tree::Page;
use waypost_cli::view::{Shown, plan, text};

/// Maximum number of tasks shown of a tree.
const TASKS_SHOWN_MAX: usize = 200;
/// Maximum number of stopped goals named to people.
const STOPPED_SHOWN_MAX: usize = 10;

/// The hint if there is a cost limit but the model has no price.
pub(crate) const PRICES: &str = "give the model price_in and price_out in the configuration";

/// The calls, tokens and cost, for people.
pub(crate) fn spent_words(spent: &Spent) -> String {
    let mut words = format!("{}, {}", text::count(spent.calls as usize, "call"), tokens_words(spent));
    if spent.cost.0 > 0 || spent.calls > 0 && spent.unpriced == 0 {
        words.push_str(&format!(", cost {}", spent.cost));
    }
    if spent.unpriced > 0 && spent.unpriced < spent.calls {
        words.push_str(&format!(" ({} without a price)", text::count(spent.unpriced as usize, "call")));
    }
    words
}

fn tokens_words(spent: &Spent) -> String {
    let about = if spent.estimated > 0 { "about " } else { "" };
    format!("{about}{}", text::count(spent.tokens() as usize, "token"))
}

/// The calls, tokens and cost, for programs.
pub(crate) fn spent_json(spent: &Spent) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("calls".to_owned(), spent.calls.into());
    fields.insert("tokens".to_owned(), spent.tokens().into());
    fields.insert("tokens_in".to_owned(), spent.tokens_in.into());
    fields.insert("tokens_out".to_owned(), spent.tokens_out.into());
    fields.insert("cost".to_owned(), spent.cost.to_string().into());
    fields.insert("unpriced_calls".to_owned(), spent.unpriced.into());
    fields.insert("estimated_calls".to_owned(), spent.estimated.into());
    fields
}

/// The repairs to the format of answers, with their counts.
pub(crate) fn repairs_json(repairs: &[Repair]) -> Value {
    let mut counts: BTreeMap<Repair, u64> = BTreeMap::new();
    for &repair in repairs {
        *counts.entry(repair).or_default() += 1;
    }
    json!(counts)
}

/// The same for people.
fn repairs_words(counts: Option<&Value>) -> Vec<String> {
    let counts = counts.and_then(Value::as_object).into_iter().flatten();
    let words = counts.filter_map(|(name, count)| {
        let repair: Repair = serde_json::from_value(name.as_str().into()).ok()?;
        Some(match count.as_u64() {
            Some(2..) => format!("{} ({count} times)", repair.describe()),
            Some(_) | None => repair.describe().to_owned(),
        })
    });
    words.collect()
}

/// The result of planning, for programs.
pub(crate) fn thought_json(thought: &PlanningResult, journal: &Journal) -> Map<String, Value> {
    let mut fields = spent_json(&journal.totals().all);
    fields.insert("ending".to_owned(), ending_word(&thought.ending).into());
    fields.insert("asked".to_owned(), thought.asked.into());
    fields.insert("recalled".to_owned(), thought.recalled.into());
    fields.insert("returned".to_owned(), thought.returned.into());
    fields.insert("repairs".to_owned(), repairs_json(&thought.repairs));
    fields.insert("journal".to_owned(), journal.path().display().to_string().into());
    fields
}

/// Adds the plan's id, version, phase, token use and budget.
pub(crate) fn plan_fields(plan: &Plan, fields: &mut Map<String, Value>) {
    fields.insert("id".to_owned(), plan.id().as_str().into());
    fields.insert("version".to_owned(), plan.version().into());
    fields.insert("phase".to_owned(), plan.state().phase.as_str().into());
    fields.insert("tokens_used".to_owned(), plan.state().tokens_used.into());
    if let Some(budget) = plan.spec().token_budget {
        fields.insert("token_budget".to_owned(), budget.into());
    }
}

fn ending_word(ending: &StopReason) -> &'static str {
    match ending {
        StopReason::Over => "over",
        StopReason::Stepped => "stepped",
        StopReason::Halted => "halted",
        StopReason::Paused => "paused",
        StopReason::Gone => "gone",
        StopReason::Bound(_) => "bound",
        StopReason::Trouble(_) => "trouble",
        StopReason::Circles { .. } => "circles",
    }
}

/// Prints the head of a plan and its tree.
pub(crate) fn print_tree(of: &Plan, out: &mut Output) {
    // What is planned waits for nobody yet.
    let config = Config::default();
    let shown = Shown::of(of, &config);
    plan::print_head(&shown, false, out);
    print_tasks(&shown, out);
}

/// Prints the first tasks of a plan.
pub(crate) fn print_tasks(shown: &Shown<'_>, out: &mut Output) {
    out.line("");
    let page = Page::of(shown.plan, None, TASKS_SHOWN_MAX);
    page.print(shown, out);
    if page.remaining() > 0 {
        out.line(format!("… and {} more", text::count(page.remaining(), "task")));
    }
}

/// The result of planning, for people: cost, repairs, and what is left.
pub(crate) fn lines(fields: &Map<String, Value>) -> Vec<String> {
    let number = |name: &str| fields.get(name).and_then(Value::as_u64).unwrap_or(0) as usize;
    let mut spent =
        format!("{}, {}", text::count(number("calls"), "call"), text::count(number("tokens"), "token"));
    match (number("unpriced_calls"), fields.get("cost").and_then(Value::as_str)) {
        (0, Some(cost)) if number("calls") > 0 => spent.push_str(&format!(", cost {cost}")),
        (_, _) => {}
    }
    if number("recalled") > 0 {
        spent.push_str(&format!("; {} replies reused", number("recalled")));
    }
    if number("returned") > 0 {
        spent.push_str(&format!("; {} returned to the model", text::count(number("returned"), "answer")));
    }
    let mut lines = vec![spent];
    let goals = fields.get("goals");
    let goal = |name: &str| goals.and_then(|goals| goals.get(name)).and_then(Value::as_u64).unwrap_or(0);
    if goals.is_some() {
        let words = format!(
            "{}: {} small enough, {} broken down, {} open",
            text::count(goal("total") as usize, "goal"),
            goal("atomic"),
            goal("decomposed"),
            goal("open")
        );
        lines.insert(0, words);
    } else {
        // When goals are broken down, the repairs were already reported for each of them.
        lines.extend(repairs_words(fields.get("repairs")));
    }
    let stopped = goals.and_then(|goals| goals.get("stopped")).and_then(Value::as_array);
    let stopped: Vec<&Value> = stopped.into_iter().flatten().collect();
    for one in stopped.iter().take(STOPPED_SHOWN_MAX) {
        let word = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default();
        lines.push(format!("left: {} {} ({})", word("task"), word("why"), word("hint")));
    }
    if stopped.len() > STOPPED_SHOWN_MAX {
        lines.push(format!("left: {} more", stopped.len() - STOPPED_SHOWN_MAX));
    }
    lines
}

/// Returns a failure if planning stopped before its end.
pub(crate) fn outcome(plan: &PlanId, ending: &StopReason) -> Option<Failure> {
    let on = format!("`waypost plan continue {plan}` resumes it");
    let code = |code: &str, failure: Failure| Some(Failure { code: code.to_owned(), ..failure });
    match ending {
        StopReason::Over | StopReason::Stepped => None,
        StopReason::Halted => {
            Some(Failure::new(Exit::Interrupted, "interrupted; everything so far is saved", on))
        }
        StopReason::Paused => {
            code("paused", Failure::failed(format!("plan {plan} was paused; everything so far is saved"), on))
        }
        StopReason::Gone => {
            let message = format!("plan {plan} was archived or deleted; planning stopped");
            code("gone", Failure::failed(message, "`waypost unarchive` restores an archived plan"))
        }
        StopReason::Bound(broken) => {
            let hint = match broken {
                Broken::Over { bound, .. } => more(plan, *bound),
                // The stored request keeps its cost limit, so only a new one is without it.
                Broken::Unpriced {} => format!(
                    "{PRICES}, then `waypost plan continue {plan}`; or run `waypost plan decompose {plan}` or `waypost plan digest {plan}` without --cost and cost_budget"
                ),
            };
            let failure = Failure::failed(format!("{broken}; everything so far is saved"), hint);
            code("bound", failure.with_fact("bound", broken.bound().name()))
        }
        StopReason::Trouble(error) => {
            let failure = Failure::failed(
                format!("{error}; everything so far is saved"),
                format!("{}; {on}", error.hint()),
            );
            code(error.code(), failure)
        }
        StopReason::Circles { slot } => {
            let message = format!("the replies to {slot} repeat without progress");
            code("circles", Failure::failed(message, "roll the goal back, then continue"))
        }
    }
}

/// The hint that names the command to continue beyond a limit.
pub(crate) fn more(plan: &PlanId, bound: Bound) -> String {
    format!("`waypost plan continue {plan} {}` continues with a higher limit", option_of(bound))
}

/// The option that raises a limit.
pub(crate) fn option_of(bound: Bound) -> &'static str {
    match bound {
        Bound::Depth => "--max-depth N",
        Bound::Goals => "--max-goals N",
        Bound::Calls => "--max-calls N",
        Bound::Tokens => "--budget TOKENS",
        Bound::Cost => "--cost AMOUNT",
        Bound::Seconds => "--time SPAN",
    }
}
