//! `waypost answer`: lists what waits for a person's answer, or answers it.

use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use waypost_config::Config;
use waypost_core::{Phase, Plan, PlanId};
use waypost_service::{HumanExecutors, TaskRef, question_digest};
use waypost_store::{PlanStore, PlanSummary, Query, Sort};
use waypost_text::reveal;

use waypost_cli::context::{Context, PlanHandle};
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::options::{Guard, within};
use waypost_cli::question_prompt::OpenQuestion;
use waypost_cli::runner::command;
use waypost_cli::signing::SigningKey;
use waypost_cli::view::text;

/// Rows on a page by default.
const ROWS_DEFAULT: usize = 20;
/// Maximum number of rows on a page.
const ROWS_MAX: usize = 1_000;
/// Plans fetched at a time.
const PLANS_PAGE: usize = 100;

const EXAMPLES: &str = "\
Only people can answer, at a terminal, which shows the question and asks. The answer counts for that \
question only: another one needs another answer. --seen names the question that you have read, by \
the digest that `answer --json` lists, and skips the question, not the terminal. \
A question with choices takes one of them, or an unambiguous prefix. \
A task for a person (an executor of kind human) is completed by yes or \"yes, RESULT\", and failed by no \
or \"no, REASON\". Anything else is refused.

Examples:
  waypost answer
  waypost answer kq3
  waypost answer kq3 deploy
  waypost answer kq3 deploy yes
  waypost answer kq3 deploy yes --seen DIGEST --sign --key ~/.ssh/id_ed25519
  waypost answer kq3 release 'use the second candidate'";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Answer {
    /// Plan id or prefix [default: list everything that waits for a person]
    plan: Option<String>,
    /// Task id or prefix [default: list everything of the plan]
    task: Option<String>,
    /// Answer text [default: read it from the terminal]
    answer: Vec<String>,
    /// Digest of the question that you have read, as `answer --json` lists it; do not ask
    #[arg(long, value_name = "DIGEST", requires = "answer")]
    seen: Option<String>,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value_t = ROWS_DEFAULT)]
    limit: usize,
    /// Continue after the cursor that the previous page printed
    #[arg(long, alias = "after", value_name = "PLAN/TASK")]
    cursor: Option<String>,
    /// Sign the answer to a task for a person with `ssh-keygen`; with --seen no terminal is needed
    #[arg(long, requires = "task")]
    sign: bool,
    #[command(flatten)]
    key: SigningKey,
    #[command(flatten)]
    guard: Guard,
}

struct Row {
    plan: PlanId,
    task: String,
    value: Value,
    line: String,
}

impl Answer {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        within("--limit", self.limit, 1..=ROWS_MAX)?;
        let config = context.load_config(&context.folders()?, None)?;
        match (&self.plan, &self.task) {
            (Some(plan), Some(task)) => {
                let found = context.find(plan)?;
                self.answer(context, &found, task, &config)
            }
            (plan, _) => self.list(context, plan.as_deref(), &config),
        }
    }

    fn answer(&self, context: &mut Context, found: &PlanHandle, task: &str, config: &Config) -> Outcome {
        let task = found.task(task)?;
        let by = context.caller()?;
        let asked = found
            .read(|plan| plan.task(task.as_str()).and_then(|task| OpenQuestion::of(plan, task, config)))?;
        let asks = asked.as_ref().is_some_and(|asked| asked.is_question);
        let (mut answer, mut seen) = (self.answer.join(" "), self.seen.clone());
        // Whoever is not there to be asked is refused by the service.
        if let Some(asked) = &asked
            && seen.is_none()
            && by.is_present()
            && (self.guard.expect_version.is_none() || answer.is_empty())
        {
            answer = self.ask(context, asked, answer)?;
            seen = Some(asked.digest.clone());
        }
        let guard = (&self.guard).into();
        let reference =
            TaskRef { plan: &found.id, task: &task, attempt: None, take_over: false, seen: seen.as_deref() };
        let service = &found.service;
        let reply = match self.sign {
            false => service.answer(&by, reference, &answer, guard)?,
            true => self
                .key
                .sign(found, |signing| service.answer_signed(&by, reference, &answer, guard, signing))?,
        };
        let said =
            if asks { format!("{task} is answered and can continue") } else { format!("{task} is answered") };
        context.done_task(found, &reply, &task, &said)
    }

    /// Shows what is asked, and returns the answer that the person gives, or confirms.
    fn ask(&self, context: &Context, asked: &OpenQuestion, answer: String) -> Outcome<String> {
        if context.out.json {
            let hint = "add --seen DIGEST, as `waypost answer --json` lists it: with --json nobody is asked";
            let missing = Failure::failed("nobody was asked", hint);
            return Err(Failure { code: "seen_missing".to_owned(), ..missing });
        }
        if answer.is_empty() {
            return asked.ask();
        }
        asked.confirm(&format!("Answer {:?}?", reveal(&answer))).map(|()| answer)
    }

    fn list(&self, context: &mut Context, plan: Option<&str>, config: &Config) -> Outcome {
        let plans = context.plans()?;
        let after = self.cursor.as_deref().map(|after| {
            after.split_once('/').ok_or_else(|| {
                Failure::usage(
                    format!("--cursor {after:?} is not a position in this list"),
                    "write PLAN/TASK",
                )
            })
        });
        let after = after.transpose()?;
        let mut rows = match plan {
            Some(plan) => {
                let found = context.find_in(Arc::clone(&plans), plan)?;
                found.view(context, |plan, _| rows_of(plan, config))?
            }
            None => self.all(context, &plans, after.map(|(plan, _)| plan), config)?,
        };
        if let Some((plan, task)) = after {
            let seen = rows.iter().position(|row| row.plan.as_str() == plan && row.task == task);
            rows.drain(..seen.map_or(0, |seen| seen + 1));
        }
        let more = rows.len() > self.limit;
        rows.truncate(self.limit);
        let next = rows.last().filter(|_| more).map(|row| format!("{}/{}", row.plan, row.task));
        if context.out.json {
            let waiting: Vec<Value> = rows.into_iter().map(|row| row.value).collect();
            return context.out.value(&json!({ "waiting": waiting, "next": next }));
        }
        if rows.is_empty() {
            context.out.say("nothing waits for a person");
            return Ok(());
        }
        for row in &rows {
            context.out.line(&row.line);
        }
        context.out.say(format!("answer with: {}", command("waypost answer PLAN TASK")));
        if let Some(next) = next {
            context.out.say(format!("for more, add --cursor '{next}'"));
        }
        Ok(())
    }

    /// Everything that waits in open plans. If there is more than a page, at
    /// least one row more than fits.
    fn all(
        &self,
        context: &mut Context,
        plans: &PlanStore,
        from: Option<&str>,
        config: &Config,
    ) -> Outcome<Vec<Row>> {
        let mut query = Query {
            phases: vec![Phase::Draft, Phase::Active, Phase::Paused, Phase::AwaitingApproval],
            sort: Sort::Id,
            limit: PLANS_PAGE,
            ..Query::default()
        };
        let mut rows = Vec::new();
        let may_wait = |head: &&PlanSummary| {
            let open = head.counts.ready + head.counts.blocked + head.counts.in_progress();
            // In a draft, only workers of other clones ask.
            let waits = head.phase != Phase::Draft || head.asking > 0;
            open > 0 && waits && from.is_none_or(|from| head.id.as_str() >= from)
        };
        loop {
            let page = plans.heads(&query)?;
            if query.after.is_none() {
                context.note_damage(&page.warnings);
            }
            for head in page.items.iter().filter(may_wait) {
                rows.extend(plans.view(&head.id, |plan, _| rows_of(plan, config))?);
                // Rows of earlier pages may be among them.
                if rows.len() > self.limit && from.is_none_or(|from| head.id.as_str() > from) {
                    return Ok(rows);
                }
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(rows),
            }
        }
    }
}

/// Returns the number of tasks of a plan that wait for a person's answer.
pub(crate) fn waiting_in(plan: &Plan, config: &Config) -> usize {
    rows_of(plan, config).len()
}

/// Everything in one plan that waits for a person: questions first, then tasks.
fn rows_of(plan: &Plan, config: &Config) -> Vec<Row> {
    let id = plan.id();
    let mut rows = Vec::new();
    for task in plan.asking() {
        let Some(question) = task.state.question() else { continue };
        let name = &task.spec.id;
        let choices = match question.choices.as_slice() {
            [] => String::new(),
            choices => format!("  [{}]", choices.join(" | ")),
        };
        rows.push(Row {
            plan: id.clone(),
            task: name.to_string(),
            value: json!({
                "plan": id, "task": name, "kind": "question", "question": question.text,
                "choices": question.choices, "asked_by": question.by, "asked_at": question.asked_at,
                "digest": question_digest(id, task),
            }),
            line: format!("{id} {name}  {}{choices}", text::one_line(&question.text)),
        });
    }
    for task in HumanExecutors::of(config, plan).awaited() {
        let name = &task.spec.id;
        rows.push(Row {
            plan: id.clone(),
            task: name.to_string(),
            value: json!({
                "plan": id, "task": name, "kind": "task", "question": task.spec.description,
                "digest": question_digest(id, task),
            }),
            line: format!("{id} {name}  {}", text::one_line(&task.spec.description)),
        });
    }
    rows
}
