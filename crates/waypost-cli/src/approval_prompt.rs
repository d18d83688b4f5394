//! Shows a person everything that a plan would run, and takes the decision at the terminal. An answer counts only if it
//! is typed after everything was shown.

use waypost_account::Terminal;
use waypost_core::ActorKind;
use waypost_service::{
    Caller, Hint, PersonAct, PersonVerb, Presence, Preview, PreviewGroup, Service, ServiceError, names_digest,
};
use waypost_text::{count, reveal};

use crate::context::Context;
use crate::error::{Exit, Failure, Outcome, hint_text};
use crate::prompt::{ask_at, unusable};

/// Lines of the terminal that the question needs below the preview.
const QUESTION_ROWS: usize = 4;
/// What to type after a preview that fits on one screen.
const YES: &str = "yes";
/// Characters to type after a preview that did not fit on one screen.
const CODE_CHARACTERS: usize = 6;

/// What a person said on the command line.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Whether they skip the question.
    pub yes: bool,
    /// The digest that they have seen.
    pub seen: Option<&'a str>,
}

/// Returns everything that a plan would run, a line each.
pub fn lines(preview: &Preview) -> Vec<String> {
    let Preview { plan, version, total, digest, resolved_by, .. } = preview;
    let mut lines = vec![format!("plan {plan}, version {version}: {} for machines", count(*total, "task"))];
    if let Some((approved, changes)) = &preview.changes {
        lines.push(format!("changed since version {approved} was approved (everything is shown below):"));
        lines.extend(changes.iter().chain(&preview.since_approval).map(|line| format!("  {}", reveal(line))));
        lines.push(String::new());
    }
    add_texts(2, &preview.about, &mut lines);
    if let Some(worker) = resolved_by {
        lines.push(format!("as worker {} would run it", reveal(worker)));
    }
    for worker in &preview.disagreeing {
        lines.push(format!("worker {} would run something else, and will refuse", reveal(worker)));
    }
    for name in &preview.unresolved {
        lines.push(format!("nobody defines {}", reveal(name)));
    }
    for group in &preview.groups {
        add_group(group, &mut lines);
    }
    lines.push(String::new());
    lines.push(format!("digest {digest}"));
    lines
}

fn add_group(group: &PreviewGroup, lines: &mut Vec<String>) {
    lines.push(String::new());
    let warnings: Vec<&str> = group.risks.iter().map(|risk| risk.describe()).collect();
    if !warnings.is_empty() {
        lines.push(format!("! {}", warnings.join(", ")));
    }
    lines.push(format!("{} ({})", reveal(&group.program), count(group.tasks.len(), "task")));
    add_texts(4, &group.settings, lines);
    for task in &group.tasks {
        lines.push(format!("  {}", reveal(&task.id)));
        // Deeper than any task, so that no text of the author can look like one.
        add_texts(6, &task.particulars, lines);
    }
}

/// Adds named texts. Further lines of a text are deeper than its name, so that they cannot look like another.
pub fn add_texts(indent: usize, texts: &[(&'static str, String)], lines: &mut Vec<String>) {
    for (name, text) in texts {
        let mut parts = text.lines();
        lines.push(format!("{:indent$}{name}: {}", "", reveal(parts.next().unwrap_or_default())));
        lines.extend(parts.map(|part| format!("{:indent$}  {}", "", reveal(part))));
    }
}

/// Returns the caller if it is a person under their own name.
pub fn person(context: &Context, act: PersonAct) -> Outcome<Caller> {
    let caller = context.caller()?;
    if caller.actor.kind != ActorKind::Person {
        return Err(ServiceError::NeedsPerson { what: "approve a plan", by: caller.actor, act }.into());
    }
    if caller.presence.is_none() {
        let actor = caller.actor;
        return Err(ServiceError::NotThatActor { actor, what: "approving", act }.into());
    }
    Ok(caller)
}

/// Opens the terminal of the person for an act that needs one; `run` says what to type there.
pub fn terminal(what: &str, run: String) -> Outcome<Terminal> {
    Terminal::open().map_err(|why| {
        let failure = Failure::failed(format!("{what} needs a person at a terminal, and {why}"), run);
        Failure { code: "needs_terminal".to_owned(), ..failure }
    })
}

/// Returns the caller with the proof that they are at a terminal and have seen this preview.
pub fn confirm(
    context: &Context,
    service: &Service,
    preview: &Preview,
    answer: Answer<'_>,
    question: &str,
) -> Outcome<Caller> {
    let plan = &preview.plan;
    let act = PersonAct::on_plan(PersonVerb::Approve, plan);
    let caller = person(context, act.clone())?;
    if !preview.unresolved.is_empty() {
        let names = preview.unresolved.clone();
        return Err(ServiceError::UnresolvedExecutor { plan: plan.clone(), names }.into());
    }
    let mut terminal = terminal("approving", hint_text(&Hint::ProvePresence(act)))?;
    match (answer.yes, answer.seen) {
        (true, None) => {
            let hint = format!("`waypost preview {plan}` prints it");
            let missing = Failure::failed("say what you have seen: --seen DIGEST", hint);
            return Err(Failure { code: "seen_missing".to_owned(), ..missing });
        }
        (_, Some(seen)) if !names_digest(seen, &preview.digest) => {
            return Err(service.not_as_seen(preview, seen).into());
        }
        (true, Some(_)) => {}
        (false, _) if context.out.json => {
            let hint = "add --yes --seen DIGEST: with --json nobody is asked";
            return Err(Failure {
                code: "seen_missing".to_owned(),
                ..Failure::failed("nobody was asked", hint)
            });
        }
        (false, _) => ask(&mut terminal, preview, question)?,
    }
    Ok(caller.present(Presence::new("terminal")))
}

/// Checks that a person without a terminal, who signs instead, names what they have seen.
pub fn confirm_seen(service: &Service, preview: &Preview, answer: Answer<'_>) -> Outcome {
    match (answer.yes, answer.seen) {
        (true, Some(seen)) if names_digest(seen, &preview.digest) => Ok(()),
        (true, Some(seen)) => Err(service.not_as_seen(preview, seen).into()),
        (_, None) | (false, Some(_)) => {
            let hint = format!("`waypost preview {}` prints it; add --yes --seen DIGEST", preview.plan);
            let missing = Failure::failed("without a terminal, say what you have seen: --seen DIGEST", hint);
            Err(Failure { code: "seen_missing".to_owned(), ..missing })
        }
    }
}

/// Shows a preview, and returns what a person types who has read it: `yes`, or characters printed after its end if it
/// does not fit on one screen.
pub fn show(terminal: &mut Terminal, preview: &Preview) -> Outcome<String> {
    let lines = lines(preview);
    for line in &lines {
        terminal.write_line(line).map_err(unusable)?;
    }
    let rows: usize = lines.iter().map(|line| terminal.rows_of(line)).sum();
    match rows + QUESTION_ROWS <= terminal.rows() {
        true => Ok(YES.to_owned()),
        false => code().map_err(unusable),
    }
}

fn ask(terminal: &mut Terminal, preview: &Preview, question: &str) -> Outcome {
    let word = show(terminal, preview)?;
    let not_approved = || format!("plan {} was not approved; nothing ran", preview.plan);
    // A code proves that its end was seen; nothing else would say why it is not `yes`.
    let why = if word == YES { "" } else { " (it is longer than the screen)" };
    let typed = ask_at(terminal, &format!("{question} Type {word} to approve{why}: "));
    let typed = typed.map_err(|failure| match failure.exit == Exit::Interrupted {
        true => Failure { message: not_approved(), ..failure },
        false => failure,
    })?;
    if typed.trim() == word { Ok(()) } else { Err(Failure::failed(not_approved(), "")) }
}

/// Returns random characters that nobody can have typed before they were shown.
fn code() -> std::io::Result<String> {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut bytes = [0; CODE_CHARACTERS];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect())
}
