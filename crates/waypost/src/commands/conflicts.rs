//! `waypost conflicts` and `resolve`: what a person decides after a merge.

use clap::{ArgGroup, Args};
use waypost_service::{AnswerChoice, AnswerKind, Conflict, QuestionRef};

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::files;
use waypost_cli::runner;
use waypost_cli::view::text;
use waypost_text::shell_word;

/// Columns of a version that stands on the line of its author.
const VALUE_COLUMNS_MAX: usize = 60;
/// Columns of what happened.
const TEXT_COLUMNS_MAX: usize = 300;
/// Maximum number of questions, of versions of one, and of lines of a version.
const QUESTIONS_MAX: usize = 100;
const VERSIONS_MAX: usize = 20;
const LINES_MAX: usize = 40;

const CONFLICTS_EXAMPLES: &str = "\
Two clones can change the same thing without knowing of each other. Nothing of it is lost: one version is shown, and a \
person decides. Each question comes with the commands that answer it.

Examples:
  waypost conflicts
  waypost conflicts tokens --json";

const RESOLVE_EXAMPLES: &str = "\
WHAT is the field or the act, as `waypost conflicts` names it: notes, title, removal, outcome, depends_on, archive, … \
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
    /// Take the version of this author, clone (its tag) or record (its first characters)
    #[arg(long, value_name = "WHO", group = "answer")]
    take: Option<String>,
    /// Write another text; @FILE reads it from a file
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
        let all = open.iter().flat_map(|open| open.questions.iter().map(|question| (&open.plan, question)));
        for (plan, question) in all.clone().take(QUESTIONS_MAX) {
            show(context, plan.as_str(), &question.conflict);
        }
        let more = all.count().saturating_sub(QUESTIONS_MAX);
        if more > 0 {
            context.out.line(format!("and {}: --json lists all", text::count(more, "more question")));
        }
        Ok(())
    }
}

/// Shows a question: what happened, and the lines of each version that differ from the others.
fn show(context: &mut Context, plan: &str, conflict: &Conflict) {
    let place = conflict.task.as_ref().map_or_else(|| plan.to_owned(), |task| format!("{plan}/{task}"));
    let happened = text::excerpt(&text::one_line(&conflict.text), TEXT_COLUMNS_MAX).into_owned();
    context.out.line(format!("{place}  {}: {happened}", conflict.subject));
    let alike = AlikeLines::of(conflict);
    for (at, version) in conflict.versions.iter().enumerate().take(VERSIONS_MAX) {
        let mark = if conflict.shown == Some(at) { "shown" } else { "" };
        let when = version.at.to_the_second();
        let record = version.record.prefix(8);
        let who = format!("  {mark:<5}  {} ({when}, {}, {record})", version.by, version.from);
        match alike.differing(&version.value).as_slice() {
            [] => context.out.line(who),
            [line] if text::width(line) <= VALUE_COLUMNS_MAX => context.out.line(format!("{who}: {line}")),
            lines => {
                context.out.line(format!("{who}:"));
                for line in lines {
                    context.out.line(format!("           {line}"));
                }
            }
        }
    }
    if conflict.versions.len() > VERSIONS_MAX {
        let more = text::count(conflict.versions.len() - VERSIONS_MAX, "more version");
        context.out.line(format!("         and {more}: --json lists all"));
    }
    let options = conflict.answers.iter().map(|answer| match answer {
        AnswerKind::Take => "--take WHO",
        AnswerKind::Text => "--text TEXT",
        AnswerKind::Keep => "--keep",
        AnswerKind::Remove => "--remove",
        AnswerKind::Dismiss => "--dismiss",
    });
    let options = options.collect::<Vec<_>>().join(" | ");
    let (place, subject) = (shell_word(&place), shell_word(&conflict.subject));
    let answer = format!("waypost resolve {place} {subject} {options}");
    context.out.line(format!("  answer: {}", runner::command(&answer)));
}

/// How many lines all versions of a text begin and end with. Nobody has to look for what differs.
#[derive(Default)]
struct AlikeLines {
    first: usize,
    last: usize,
}

impl AlikeLines {
    fn of(conflict: &Conflict) -> Self {
        let texts: Vec<Vec<&str>> =
            conflict.versions.iter().map(|version| version.value.lines().collect()).collect();
        let [one, others @ ..] = texts.as_slice() else { return Self::default() };
        let shortest = texts.iter().map(Vec::len).min().unwrap_or(0);
        let is_alike = |at: &usize| others.iter().all(|other| other[*at] == one[*at]);
        let first = (0..shortest).take_while(is_alike).count();
        let is_alike =
            |at: &usize| others.iter().all(|other| other[other.len() - 1 - at] == one[one.len() - 1 - at]);
        let last = (0..shortest - first).take_while(is_alike).count();
        match others.is_empty() {
            true => Self::default(),
            false => Self { first, last },
        }
    }

    /// The lines of a version between those, with how many there are before and after them.
    fn differing(&self, value: &str) -> Vec<String> {
        let lines: Vec<&str> = value.lines().collect();
        let own = &lines[self.first..lines.len() - self.last];
        let alike = |count: usize| match count {
            0 => None,
            count => Some(format!("… {} that all versions have", text::count(count, "line"))),
        };
        let mut shown: Vec<String> = alike(self.first).into_iter().collect();
        shown.extend(own.iter().take(LINES_MAX).map(|line| text::one_line(line).into_owned()));
        if own.len() > LINES_MAX {
            shown
                .push(format!("… {}: --json has all of it", text::count(own.len() - LINES_MAX, "more line")));
        }
        shown.extend(alike(self.last));
        shown
    }
}

impl Resolve {
    fn choice(&self) -> Outcome<AnswerChoice> {
        match (&self.take, &self.text) {
            (Some(who), _) => Ok(AnswerChoice::Take(who.clone())),
            (None, Some(text)) => Ok(AnswerChoice::Text(files::text_argument(text)?)),
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
        let shared = context.shared_branch()?.shared;
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
