//! Shows the progress of a run: redrawn in place on a terminal, a line for each event elsewhere, JSON lines for programs.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use waypost_config::Config;
use waypost_config::{Report, Reporter};
use waypost_core::{Evidence, Plan, PlanId, Status, TaskId};
use waypost_run::{Control, RunEvent, RunObserver, RunWarning, View, reports};

use waypost_cli::context::Context;
use waypost_cli::error::hint_text;
use waypost_cli::output::{json_line, painted};
use waypost_cli::runner::{command, on_task, typeable};
use waypost_cli::style::Look;
use waypost_cli::view::plan::refusal_words;
use waypost_cli::view::{self, text};

/// Maximum number of running tasks drawn.
const RUNNING_DRAWN_MAX: usize = 8;
/// Maximum number of plans whose progress is drawn.
const PLANS_DRAWN_MAX: usize = 5;
/// The interval between two redraws.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Characters of a digest that are shown.
const DIGEST_CHARACTERS: usize = 19;

/// The plans that are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// One plan; the output ends with it.
    One(PlanId),
    /// One plan that may continue after its end.
    Staying(PlanId),
    /// Any number of plans.
    Many,
}

impl Scope {
    /// A task's name in the output.
    fn name(&self, plan: &PlanId, task: &TaskId) -> String {
        match self {
            Self::One(_) | Self::Staying(_) => task.to_string(),
            Self::Many => format!("{plan}/{task}"),
        }
    }

    /// Whether phase changes are printed, because nothing else reports them.
    fn tells_phases(&self) -> bool {
        match self {
            Self::One(_) => false,
            Self::Staying(_) | Self::Many => true,
        }
    }
}

/// Returns the observer that suits the destination of the output.
pub(crate) fn watcher(context: &Context, scope: Scope, config: &Config) -> Box<dyn RunObserver> {
    if context.out.json {
        return Box::<Programs>::default();
    }
    let console = Console(
        config.reporters.values().filter(|reporter| reporter.report == Report::Console).cloned().collect(),
    );
    if io::stderr().is_terminal() {
        let (columns, color) = (context.out.columns, context.out.color_talk);
        return Box::new(Terminal { scope, columns, drawn: 0, color, console });
    }
    Box::new(Lines { scope, waited: false, console, voice: Voice::default() })
}

/// Wraps another observer and adds callbacks.
pub(crate) struct Hooked<'a> {
    pub(crate) inner: Box<dyn RunObserver>,
    pub(crate) on_event: &'a mut dyn FnMut(&RunEvent),
    pub(crate) on_tick: &'a mut dyn FnMut(&View<'_>),
}

impl RunObserver for Hooked<'_> {
    fn on_event(&mut self, notice: &RunEvent) {
        (self.on_event)(notice);
        self.inner.on_event(notice);
    }
    fn pause(&mut self) {
        self.inner.pause();
    }
    fn asked_to_end(&mut self, control: Control) {
        self.inner.asked_to_end(control);
    }
    fn on_warning(&mut self, remark: &RunWarning) {
        self.inner.on_warning(remark);
    }
    fn on_tick(&mut self, view: &View<'_>) {
        self.inner.on_tick(view);
        (self.on_tick)(view);
    }
    fn interval(&self) -> Duration {
        self.inner.interval()
    }
}

/// The message after Ctrl-C.
fn ending_words(control: Control) -> &'static str {
    match control {
        Control::Drain => "no further tasks start; waiting for running ones (Ctrl-C again stops them)",
        Control::Stop => "stopping what runs",
    }
}

/// The command with which a person answers.
fn answer_words(plan: &PlanId, task: &TaskId) -> String {
    format!("answer with: {}", command(&on_task("answer", plan, task, " ANSWER", "")))
}

/// Summarizes the result of a check.
pub(super) fn evidence_words(evidence: &Evidence) -> String {
    let word = if evidence.passed { "passed" } else { "failed" };
    // A prefix that is long enough to tell digests apart.
    let digest = evidence.digest.get(..DIGEST_CHARACTERS).unwrap_or(&evidence.digest);
    format!("check {} {word} ({digest}…)", evidence.check)
}

/// A verb, its style, and the text after it.
type EventLine = (&'static str, Look, String);

/// Returns the verb and the text for an event; `None` if it is not shown.
fn describe_event(scope: &Scope, notice: &RunEvent) -> Option<EventLine> {
    let said = |why: &Option<String>| {
        why.as_ref().map(|why| format!(": {}", text::one_line(why))).unwrap_or_default()
    };
    match notice {
        RunEvent::TaskStarted { plan, task, attempt, .. } => {
            let task = scope.name(plan, task);
            let attempt = if *attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
            Some(with_verb(Status::Running, format!("{task}{attempt}")))
        }
        RunEvent::TaskWillRetry { plan, task, error, evidence: Some(_), .. } => {
            let task = scope.name(plan, task);
            Some(with_verb(Status::Pending, format!("{task} will be retried: {}", text::one_line(error))))
        }
        RunEvent::TaskWillRetry { plan, task, error, again_at, evidence: None, .. } => {
            let task = scope.name(plan, task);
            let (at, error) = (again_at.to_the_second(), text::one_line(error));
            Some(with_verb(Status::Pending, format!("{task} will be tried again at {at}: {error}")))
        }
        RunEvent::TaskReported { task, by, .. } => {
            let words = format!("{task} is reported as done by {by}, and waits for its check");
            Some(("report", Look::Cyan, words))
        }
        RunEvent::TaskReleased { task, reason, .. } => {
            let why = Some(reason.clone()).filter(|reason| !reason.is_empty());
            Some(("back", Look::Yellow, format!("{task} is released{}", said(&why))))
        }
        RunEvent::StartRefused { message, hint, .. } => {
            let words = format!("{} ({})", text::one_line(message), hint_text(hint));
            Some(("refused", Look::Yellow, words))
        }
        RunEvent::QuestionAsked { task, question, choices, .. } => {
            let choices =
                if choices.is_empty() { String::new() } else { format!(" [{}]", choices.join(" | ")) };
            Some(("asks", Look::Yellow, format!("{task}: {}{choices}", text::one_line(question))))
        }
        RunEvent::QuestionAnswered { task, answer, by, .. } => {
            Some(("answer", Look::Cyan, format!("{task}: {} ({by})", text::one_line(answer))))
        }
        RunEvent::TaskProgressed { plan, task, progress } => {
            let task = scope.name(plan, task);
            Some(with_verb(Status::Running, format!("{task}: {}", text::one_line(progress))))
        }
        RunEvent::TaskEnded { plan, task, status, seconds, why, evidence, .. } => {
            let task = scope.name(plan, task);
            let took = seconds
                .map(|seconds| {
                    format!(" ({})", text::duration(Duration::try_from_secs_f64(seconds).unwrap_or_default()))
                })
                .unwrap_or_default();
            let proof = evidence.as_ref().filter(|evidence| evidence.passed);
            let proof = proof.map(|evidence| format!(", {}", evidence_words(evidence))).unwrap_or_default();
            Some(with_verb(*status, format!("{task}{took}{proof}{}", said(why))))
        }
        RunEvent::PlanPhaseChanged { .. } => None,
    }
}

/// The verb for a task that entered this status.
fn with_verb(status: Status, words: String) -> EventLine {
    let (verb, look) = match status {
        Status::Pending => ("again", Look::Yellow),
        Status::Running => ("start", Look::Cyan),
        Status::Done => ("done", Look::Green),
        Status::Failed => ("failed", Look::Red),
        Status::Skipped => ("skipped", Look::Yellow),
        Status::Cancelled => ("stopped", Look::Yellow),
    };
    (verb, look, words)
}

/// Buffers lines for stdout, so that a reader wakes up once for all events that happened at the same time.
#[derive(Default)]
struct Voice(String);

impl Voice {
    /// Maximum number of buffered bytes.
    const BYTES_MAX: usize = 64 * 1024;

    fn say(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
        if self.0.len() >= Self::BYTES_MAX {
            self.speak();
        }
    }

    fn speak(&mut self) {
        if !self.0.is_empty() {
            // The reader may be gone.
            let _gone = io::stdout().lock().write_all(self.0.as_bytes());
            self.0.clear();
        }
    }
}

impl Drop for Voice {
    fn drop(&mut self) {
        self.speak();
    }
}

/// Writes JSON lines to stdout.
#[derive(Default)]
struct Programs(Voice);

impl RunObserver for Programs {
    fn on_event(&mut self, notice: &RunEvent) {
        self.0.say(&json_line(notice));
    }
    fn pause(&mut self) {
        self.0.speak();
    }
    fn on_warning(&mut self, remark: &RunWarning) {
        let line = serde_json::json!({ "event": remark.as_str(), "message": typeable(&remark.to_string()) });
        self.0.say(&json_line(&line));
    }
}

/// The console reporters of the configuration; without any, everything is shown.
struct Console(Vec<Reporter>);

impl Console {
    fn shows(&self, notice: &RunEvent) -> bool {
        self.0.is_empty() || self.0.iter().any(|reporter| reports(reporter, notice))
    }
}

/// Writes a line to stdout for each event.
struct Lines {
    scope: Scope,
    waited: bool,
    console: Console,
    voice: Voice,
}

/// Returns the line for an event; `None` if it is not shown.
fn line_of(scope: &Scope, notice: &RunEvent) -> Option<String> {
    Some(match (describe_event(scope, notice), notice) {
        (Some((_, _, words)), RunEvent::TaskProgressed { .. }) => format!("{:<8} {words}", "progress"),
        (Some((verb, _, words)), RunEvent::QuestionAsked { plan, task, .. }) => {
            format!("{verb:<8} {words} ({})", answer_words(plan, task))
        }
        (Some((verb, _, words)), _) => format!("{verb:<8} {words}"),
        (None, RunEvent::PlanPhaseChanged { plan, phase }) if scope.tells_phases() => {
            format!("{:<8} {plan} is {}", "plan", phase.as_str())
        }
        (None, _) => return None,
    })
}

/// Shows an event on the console of a server, whose standard output may belong to its client.
pub(crate) fn show_on_console(notice: &RunEvent) {
    if let Some(line) = line_of(&Scope::Many, notice) {
        let _nobody_reads_it = writeln!(io::stderr().lock(), "{line}");
    }
}

impl RunObserver for Lines {
    fn on_event(&mut self, notice: &RunEvent) {
        self.waited = false;
        if !self.console.shows(notice) {
            return;
        }
        if let Some(line) = line_of(&self.scope, notice) {
            self.voice.say(&line);
        }
    }
    fn pause(&mut self) {
        self.voice.speak();
    }
    fn asked_to_end(&mut self, control: Control) {
        self.voice.say(&format!("{:<8} {}", "ending", ending_words(control)));
    }
    fn on_warning(&mut self, remark: &RunWarning) {
        self.voice.say(&format!("{:<8} {}", "note", text::one_line(&typeable(&remark.to_string()))));
    }
    fn on_tick(&mut self, view: &View<'_>) {
        if view.waits
            && !self.waited
            && let Scope::One(plan) | Scope::Staying(plan) = &self.scope
        {
            self.waited = true;
            self.voice.say(&format!("{:<8} plan {plan}: {}", "waiting", typeable(&waits_for(view))));
            self.voice.speak();
        }
    }
}

/// Describes what the run waits for that it cannot do itself.
fn waits_for(view: &View<'_>) -> String {
    let Some(plan) = view.plans.first() else { return String::new() };
    let phase = plan.state().phase;
    if phase != waypost_core::Phase::Active {
        return format!("it is {}", phase.as_str());
    }
    if let Some(task) = plan.in_progress().next() {
        let worker = task.state.worker.as_deref().unwrap_or("somebody");
        return format!("{} is being worked on by {worker}", task.spec.id);
    }
    if let Some(task) = plan.asking().next() {
        return format!("{} asks a person; {}", task.spec.id, answer_words(plan.id(), &task.spec.id));
    }
    // What is ready starts nowhere before this is mended; nobody has to answer for it.
    if let Some(refusal) = plan.state().start_refusals.first() {
        return refusal_words(plan, refusal);
    }
    match plan.ready().find(|task| task.spec.work.is_some()) {
        Some(task) => {
            let (id, answer) = (&task.spec.id, on_task("answer", plan.id(), &task.spec.id, " yes", ""));
            format!("{id} is for a person: `{answer}`, or no")
        }
        None => "others continue".to_owned(),
    }
}

/// Redraws the progress in place on stderr.
struct Terminal {
    scope: Scope,
    columns: usize,
    drawn: usize,
    color: bool,
    console: Console,
}

impl Terminal {
    fn erase(&mut self) -> String {
        let up = if self.drawn > 0 { format!("\u{1b}[{}A", self.drawn) } else { String::new() };
        self.drawn = 0;
        format!("{up}\r\u{1b}[J")
    }

    /// The progress of the plans, a line each.
    fn bars(&self, view: &View<'_>) -> Vec<String> {
        if self.scope != Scope::Many {
            let bars = view.plans.first().map(|plan| view::progress(&plan.counts()));
            return bars.map(|bar| text::truncate(&bar, self.columns - 1).into_owned()).into_iter().collect();
        }
        let active = || view.plans.iter().filter(|plan| plan.state().phase == waypost_core::Phase::Active);
        let bar = |plan: &&Plan| {
            let line = format!("{} {}", plan.id(), view::progress(&plan.counts()));
            text::truncate(&line, self.columns - 1).into_owned()
        };
        let mut lines: Vec<String> = active().take(PLANS_DRAWN_MAX).map(bar).collect();
        match active().count() {
            0 => lines.push("no plan is active".to_owned()),
            count if count > PLANS_DRAWN_MAX => {
                lines.push(format!("and {} more plans", count - PLANS_DRAWN_MAX));
            }
            _ => {}
        }
        lines
    }
}

impl RunObserver for Terminal {
    fn on_event(&mut self, notice: &RunEvent) {
        // Running tasks are redrawn in place; only other events leave a permanent line.
        if !self.console.shows(notice) {
            return;
        }
        let behind = match notice {
            RunEvent::TaskStarted { .. } | RunEvent::TaskProgressed { .. } => return,
            RunEvent::PlanPhaseChanged { .. } if !self.scope.tells_phases() => return,
            RunEvent::QuestionAsked { plan, task, .. } => {
                format!("\n        {}", text::sanitize_line(&answer_words(plan, task)))
            }
            RunEvent::TaskEnded { .. }
            | RunEvent::TaskWillRetry { .. }
            | RunEvent::TaskReported { .. }
            | RunEvent::TaskReleased { .. }
            | RunEvent::StartRefused { .. }
            | RunEvent::QuestionAnswered { .. }
            | RunEvent::PlanPhaseChanged { .. } => String::new(),
        };
        let line = match (notice, describe_event(&self.scope, notice)) {
            (RunEvent::PlanPhaseChanged { plan, phase }, _) => {
                text::truncate(&format!("{:>7} {plan} is {}", "plan", phase.as_str()), self.columns - 1)
                    .into_owned()
            }
            (_, Some((verb, look, words))) => {
                let verb = painted(&format!("{verb:>7}"), look, self.color);
                format!("{verb} {}{behind}", text::excerpt(&words, self.columns.saturating_sub(9)))
            }
            (_, None) => return,
        };
        let erased = self.erase();
        let _gone = writeln!(io::stderr().lock(), "{erased}{line}");
    }

    fn asked_to_end(&mut self, control: Control) {
        let erased = self.erase();
        let _gone = writeln!(io::stderr().lock(), "{erased}{}", ending_words(control));
    }

    fn on_warning(&mut self, remark: &RunWarning) {
        let erased = self.erase();
        let _gone =
            writeln!(io::stderr().lock(), "{erased}{}", text::one_line(&typeable(&remark.to_string())));
    }

    fn on_tick(&mut self, view: &View<'_>) {
        let mut lines = self.bars(view);
        let count = view.running.len();
        for (key, since) in view.running.iter().take(RUNNING_DRAWN_MAX) {
            let took = text::duration(view.now.since(*since));
            let plan = view.plans.iter().find(|plan| *plan.id() == key.plan);
            let task = plan.and_then(|plan| plan.task(key.task.as_str()));
            let progress = task.and_then(|task| task.state.progress.clone());
            let about =
                progress.or_else(|| task.map(|task| task.spec.description.clone())).unwrap_or_default();
            let name = self.scope.name(&key.plan, &key.task);
            let line = format!("  {took:>6} {name} {}", text::one_line(&about));
            lines.push(text::truncate(line.trim_end(), self.columns - 1).into_owned());
        }
        if count > RUNNING_DRAWN_MAX {
            lines.push(format!("         and {} more", count - RUNNING_DRAWN_MAX));
        }
        if view.waits && self.scope != Scope::Many {
            lines.push(
                text::truncate(&format!("  waiting: {}", waits_for(view)), self.columns - 1).into_owned(),
            );
        }
        let erased = self.erase();
        self.drawn = lines.len();
        // The sequences and the text are one write, so that no partial redraw is visible.
        let _gone = writeln!(io::stderr().lock(), "{erased}{}", lines.join("\n"));
    }

    fn interval(&self) -> Duration {
        DRAW_INTERVAL
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let erased = self.erase();
        let _gone = write!(io::stderr().lock(), "{erased}");
    }
}
