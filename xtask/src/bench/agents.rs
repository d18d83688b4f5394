//! The cost for agents: tokens for the same work next to other servers, and the duration of calls in a large plan.

mod competitors;
mod session;
mod work;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use waypost_formats::{Dialect, Form};
use waypost_testkit::layered;

use self::session::{Session, Transcript};
use self::work::{RETITLE, RETITLED, REWRITE, REWRITTEN, pieces};
use super::measure::{median, peak_megabytes, timed};
use super::report::Report;
use crate::exec::binary;
use crate::exec::{DISTRIBUTED, cache_dir, output};
use crate::npm::Packages;

/// The package of the tokenizer includes its vocabulary.
const PACKAGES: &[(&str, &str)] = &[("gpt-tokenizer", "4.0.0"), ("task-master-ai", "0.43.1")];
const TOKENS: &str = include_str!("agents/tokens.mjs");
/// Tasks in the large plan.
const TASKS: usize = 10_000;
/// Calls of each kind in it.
const CALLS: usize = 300;
const STARTS: usize = 20;

pub(super) fn run(report: &mut Report) -> Result<()> {
    let scratch = cache_dir().join("bench-agents");
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch)?;
    }
    std::fs::create_dir_all(&scratch)?;
    starts(report, &scratch)?;
    calls(report, &scratch)?;
    tokens(report, &scratch)
}

/// A Waypost server for a workspace of this name.
fn server(scratch: &Path, name: &str) -> Result<Command> {
    let workspace = scratch.join(name);
    std::fs::create_dir_all(workspace.join(".waypost"))?;
    let mut command = Command::new(binary(DISTRIBUTED));
    command.current_dir(&workspace).env_clear().env("HOME", scratch).args(["mcp", "--agent", "bench"]);
    Ok(command)
}

/// Measures the time from the start of the process to the response to `initialize`.
fn starts(report: &mut Report, scratch: &Path) -> Result<()> {
    let mut samples = Vec::new();
    for _ in 0..STARTS {
        let mut command = server(scratch, "starts")?;
        let (session, took) = timed(|| Session::start(&mut command, &scratch.join("starts.log")));
        drop(session?);
        samples.push(took.as_secs_f64() * 1e3);
    }
    report.at_most("mcp, process start to initialize response, median", median(samples), 20.0, "ms");
    Ok(())
}

/// Measures calls in a large plan on SQLite, as a client sees them.
fn calls(report: &mut Report, scratch: &Path) -> Result<()> {
    let mut command = server(scratch, "calls")?;
    let draft = layered(TASKS, 3, 1_000, 7);
    let file = scratch.join("calls/large.json");
    std::fs::write(&file, waypost_formats::write(&draft, Dialect::Native, Form::AsRead)?.text)?;
    let mut session = Session::start(&mut command, &scratch.join("calls.log"))?;
    let made = session.call("plan_create", &json!({ "file": "large.json" }))?;
    let plan = field(&made, "plan")?;
    let (mut next, mut report_done, mut get) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let (taken, took) = timed(|| session.call("task_next", &json!({ "plan": plan })));
        next.push(took.as_secs_f64() * 1e3);
        let done = json!({ "plan": plan, "task": field(&taken?, "task")?, "status": "done" });
        let (reported, took) = timed(|| session.call("task_report", &done));
        reported?;
        report_done.push(took.as_secs_f64() * 1e3);
        let (got, took) = timed(|| session.call("plan_get", &json!({ "plan": plan })));
        got?;
        get.push(took.as_secs_f64() * 1e3);
    }
    for (name, samples) in [("task_next", next), ("task_report", report_done), ("plan_get", get)] {
        report.at_most(&format!("mcp, {name} in a plan of 10,000 tasks, median"), median(samples), 5.0, "ms");
    }
    report.at_most("mcp, peak memory of that server", peak_megabytes(session.process())?, 60.0, "MB");
    Ok(())
}

/// Returns a text field of a structured reply.
fn field(answer: &Value, name: &str) -> Result<String> {
    let found = answer["structuredContent"][name].as_str();
    Ok(found.with_context(|| format!("no {name} in {answer}"))?.to_owned())
}

/// Counts the tokens of the same work with three servers: definitions, requests and replies.
fn tokens(report: &mut Report, scratch: &Path) -> Result<()> {
    let packages = Packages::install("node-agents", PACKAGES)?;
    let counter = Counter::new(&packages)?;
    let ours = counter.bill(&ours(scratch)?)?;
    report.at_most("mcp, tokens of the native tool definitions", ours.definitions as f64, 1_500.0, "");
    report.note("create 50 tasks, next, done, next, status, change 5, export–update", String::new());
    report.note("  waypost", ours.describe());
    let task_master = counter.bill(&competitors::task_master(&packages, scratch)?)?;
    report.note("  task-master 0.43 (standard tools; no text changed, no file)", task_master.describe());
    let beads = counter.bill(&competitors::beads(scratch)?)?;
    report.note("  beads-mcp 1.3 (measured with a stub for bd; no file)", beads.describe());
    for (name, other) in [("task-master", &task_master), ("beads", &beads)] {
        let share = ours.total() as f64 / other.total() as f64;
        report.at_most(&format!("  tokens relative to {name}"), share, 0.33, "×");
        let share = ours.lean_total() as f64 / other.lean_total() as f64;
        report.note("    without annotations and output schemas", format!("{share:.2} ×"));
    }
    Ok(())
}

/// The tokens in a model's context after the work.
struct Bill {
    definitions: usize,
    lean_definitions: usize,
    requests: usize,
    answers: usize,
}

impl Bill {
    fn total(&self) -> usize {
        self.definitions + self.requests + self.answers
    }

    fn lean_total(&self) -> usize {
        self.lean_definitions + self.requests + self.answers
    }

    fn describe(&self) -> String {
        let Self { definitions, requests, answers, .. } = self;
        format!("{definitions} + {requests} + {answers} = {}", self.total())
    }
}

struct Counter<'a> {
    packages: &'a Packages,
    script: PathBuf,
}

impl<'a> Counter<'a> {
    fn new(packages: &'a Packages) -> Result<Self> {
        let script = packages.home().join("tokens.mjs");
        std::fs::write(&script, TOKENS)?;
        Ok(Self { packages, script })
    }

    fn bill(&self, transcript: &Transcript) -> Result<Bill> {
        let Transcript { definitions, lean_definitions, requests, answers } = transcript;
        let texts: Vec<&String> =
            [definitions, lean_definitions].into_iter().chain(requests).chain(answers).collect();
        let mut child = self.packages.node();
        let mut child = child.arg(&self.script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        child.stdin.take().context("no standard input")?.write_all(json!(texts).to_string().as_bytes())?;
        let counted = child.wait_with_output()?;
        if !counted.status.success() {
            bail!("cannot count tokens: {}", counted.status);
        }
        let counts: Vec<usize> = serde_json::from_slice(&counted.stdout)?;
        let (requests, answers) = counts[2..].split_at(requests.len());
        Ok(Bill {
            definitions: counts[0],
            lean_definitions: counts[1],
            requests: requests.iter().sum(),
            answers: answers.iter().sum(),
        })
    }
}

/// Does the work with Waypost's tools.
fn ours(scratch: &Path) -> Result<Transcript> {
    let mut session = Session::start(&mut server(scratch, "work")?, &scratch.join("work.log"))?;
    session.list()?;
    let pieces = pieces();
    let tasks = pieces.iter().map(|piece| {
        let after: Vec<String> = piece.after.iter().map(|place| id(*place)).collect();
        let mut task = json!({ "description": piece.title, "notes": piece.description });
        if !after.is_empty() {
            task["depends_on"] = json!(after);
        }
        task
    });
    let tasks: Vec<Value> = tasks.collect();
    let made = session.call("plan_create", &json!({ "title": "New backend", "tasks": tasks }))?;
    let taken = session.call("task_next", &json!({}))?;
    session.call("task_report", &json!({ "task": field(&taken, "task")?, "status": "done" }))?;
    session.call("task_next", &json!({}))?;
    session.call("plan_get", &json!({}))?;
    let retitled = RETITLED.map(|place| {
        json!({ "op": "revise", "task": id(place), "description": format!("{RETITLE}{}", pieces[place].title) })
    });
    session.call("plan_edit", &json!({ "ops": retitled }))?;
    let (name, file) = ("plan.md", scratch.join("work/plan.md"));
    session.call("plan_export", &json!({ "file": name }))?;
    for place in REWRITTEN {
        rewrite(&mut session, &file, name, &pieces[place].title, &pieces[place].description)?;
    }
    session.call("plan_update", &json!({ "file": name }))?;
    let mut look = Command::new(binary(DISTRIBUTED));
    look.current_dir(scratch.join("work")).env_clear().env("HOME", scratch);
    let now = output(look.args(["export", &field(&made, "plan")?, "--format", "native"]))?;
    if now.matches(REWRITE).count() != REWRITTEN.len() || now.matches(RETITLE).count() != RETITLED.len() {
        bail!("the changes are not in the exported plan: {now}");
    }
    Ok(std::mem::take(&mut session.transcript))
}

/// Returns the id that a task gets from its position.
fn id(place: usize) -> String {
    format!("t{}", place + 1)
}

/// Changes the description below a title in the exported file. The edit quotes just enough text to be unambiguous.
fn rewrite(session: &mut Session, file: &Path, name: &str, title: &str, description: &str) -> Result<()> {
    let text = std::fs::read_to_string(file)?;
    let begin = text.find(title).with_context(|| format!("{name} has no {title:?}"))?;
    let end = text[begin..].find(description).with_context(|| format!("{name} has no {description:?}"))?;
    let old = &text[begin..begin + end + description.len()];
    let new = old.replace(description, REWRITE);
    session.transcript.edit_file(name, old, &new);
    std::fs::write(file, text.replacen(old, &new, 1))?;
    Ok(())
}
