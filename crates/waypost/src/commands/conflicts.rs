//! `waypost conflicts` and `resolve`: what a person decides after a merge.

use clap::{ArgGroup, Args};
use waypost_core::operation::{AnswerKind, Conflict};
use waypost_service::{AnswerChoice, QuestionRef};

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::shared_branch;
use waypost_cli::view::text;

/// Columns of a version of a text in the list.
const VALUE_COLUMNS_MAX: usize = 60;

const CONFLICTS_EXAMPLES: &str = "\
Two clones can change the same thing without knowing of each other. Nothing of it is lost: one version is shown, and a
person decides. Each question comes with the commands that answer it.

Examples:
  waypost conflicts
  waypost conflicts tokens --json";

const RESOLVE_EXAMPLES: &str = "\
WHAT is the field or the act, as `waypost conflicts` names it: notes, title, removal, outcome, depends_on, …
The answer travels like every other change, so that the question is answered in all clones.

Examples:
  waypost resolve tokens/t4-k7f notes --take ada
  waypost resolve tokens/t4-k7f notes --text \"Use tokio\"
  waypost resolve tokens/t9-x9d removal --keep";

#[derive(Debug, Args)]
#[command(after_help = CONFLICTS_EXAMPLES)]
pub(crate) struct Conflicts {
    /// Plan id, or an unambiguous prefix [default: all shared plans]
    plan: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = RESOLVE_EXAMPLES, group = ArgGroup::new("answer").required(true))]
pub(crate) struct Resolve {
    /// The plan, or PLAN/TASK
    #[arg(value_name = "PLAN[/TASK]")]
    of: String,
    /// What the question is about [default: the only open one]
    what: Option<String>,
    /// Take the version of this author, clone or record
    #[arg(long, value_name = "WHO", group = "answer")]
    take: Option<String>,
    /// Write another text
    #[arg(long, value_name = "TEXT", group = "answer")]
    text: Option<String>,
    /// Keep what was to be removed
    #[arg(long, group = "answer")]
    keep: bool,
    /// Remove it
    #[arg(long, group = "answer")]
    remove: bool,
    /// Drop what was set aside
    #[arg(long, group = "answer")]
    dismiss: bool,
}

impl Conflicts {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let plans = context.plans()?;
        let service = context.service(&plans);
        let plan = self.plan.as_deref().map(|plan| service.resolve_plan(plan)).transpose()?;
        let open = service.open_questions(plan.as_ref())?;
        if context.out.json {
            return context.out.value(&serde_json::json!({ "plans": open }));
        }
        if open.iter().all(|open| open.questions.is_empty()) {
            context.out.say("no question is open");
        }
        for open in &open {
            for question in &open.questions {
                show(context, open.plan.as_str(), &question.conflict);
            }
        }
        Ok(())
    }
}

fn show(context: &mut Context, plan: &str, conflict: &Conflict) {
    let place = conflict.task.as_ref().map_or_else(|| plan.to_owned(), |task| format!("{plan}/{task}"));
    context.out.line(format!("{place}  {}: {}", conflict.subject, text::one_line(&conflict.text)));
    for (at, version) in conflict.versions.iter().enumerate() {
        let mark = if conflict.shown == Some(at) { "shown" } else { "" };
        let value = text::one_line(&version.value);
        let value = waypost_text::truncate(&value, VALUE_COLUMNS_MAX);
        let when = version.at.to_the_second();
        let record = version.record.prefix(8);
        context
            .out
            .line(format!("  {mark:<5}  {} ({when}, {}, {record}): {value}", version.by, version.from));
    }
    let options = conflict.answers.iter().map(|answer| match answer {
        AnswerKind::Take => "--take WHO",
        AnswerKind::Text => "--text TEXT",
        AnswerKind::Keep => "--keep",
        AnswerKind::Remove => "--remove",
        AnswerKind::Dismiss => "--dismiss",
    });
    let options = options.collect::<Vec<_>>().join(" | ");
    context.out.line(format!("  answer: waypost resolve {place} {} {options}", conflict.subject));
}

impl Resolve {
    fn choice(&self) -> Outcome<AnswerChoice> {
        match (&self.take, &self.text) {
            (Some(who), _) => Ok(AnswerChoice::Take(who.clone())),
            (None, Some(text)) => Ok(AnswerChoice::Text(text.clone())),
            (None, None) if self.keep => Ok(AnswerChoice::Keep),
            (None, None) if self.remove => Ok(AnswerChoice::Remove),
            (None, None) if self.dismiss => Ok(AnswerChoice::Dismiss),
            (None, None) => Err(Failure::usage(
                "no answer was given",
                "use --take, --text, --keep, --remove or --dismiss",
            )),
        }
    }

    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let choice = self.choice()?;
        let (plan, task) = match self.of.split_once('/') {
            Some((plan, task)) => (plan, Some(task)),
            None => (self.of.as_str(), None),
        };
        let found = context.find(plan)?;
        let task = task
            .map(|task| found.read(|plan| waypost_service::resolve_task(plan, task)))
            .transpose()?
            .transpose()?;
        let shared = shared_branch::find(context)?.shared;
        let (by, what) = (context.caller()?, self.what.as_deref());
        let of = QuestionRef { plan: &found.id, task: task.as_ref(), subject: what, seen: None };
        let reply = found.service.resolve_question(&by, &shared, of, &choice)?;
        if context.out.json {
            return context.out.value(&reply);
        }
        let open = match reply.questions {
            0 => "no question is open".to_owned(),
            open => format!("{} left", text::count(open, "question")),
        };
        context.out.line(format!("answered; plan {} is at version {}, {open}", reply.plan, reply.version));
        Ok(())
    }
}
