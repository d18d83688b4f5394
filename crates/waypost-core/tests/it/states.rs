//! Tries every command in every state and writes the results to `docs/states.md`.

use std::fmt::Write;

use waypost_core::{
    Actor, Command, Digest, EffectiveStatus, Event, ExternalTaskRef, Json, Outcome, Phase, PlanChanges,
    PlanId, Position, Refinement, Refusal, StartRefusal, StartRefusalReason, Status, TaskAct, TaskChanges,
    TaskSpec, UpstreamResult,
};
use waypost_testkit::{id, plan_of, task};

use crate::committed;
use crate::kit::{Desk, ada, agent, ask, at, done, failed, skipped, system, work, worker};

#[test]
fn the_page_about_states_says_what_every_command_does_in_every_state() {
    let page = page();
    committed::check(
        "../../docs/states.md",
        &page,
        "WAYPOST_UPDATE=1 cargo test -p waypost-core states writes it anew",
    );
}

#[test]
fn every_command_stands_in_one_of_the_tables() {
    let desk = Stage::Draft.desk();
    let commands = task_commands(0).into_iter().chain(plan_commands(&desk));
    let mut names: Vec<&str> = commands.map(|(_, _, command)| command.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 41, "{names:?}");
}

#[test]
fn what_screens_offer_for_a_task_is_never_refused() {
    for stand in Stand::ALL {
        let desk = stand.desk();
        let standing = desk.plan.effective_status("x").unwrap();
        for act in standing.acts() {
            // It follows from another task, which is the one to retry.
            if stand == Stand::SkippedAlong {
                continue;
            }
            let found = desk.plan.decide(&ada(), at(99), &of_act(*act));
            assert!(
                found.as_ref().is_ok_and(|events| !events.is_empty()),
                "{standing:?}, {act:?}: {found:?}"
            );
        }
    }
    let mut desk = Desk::with(plan_of([task("x", &[]), task("y", &[])]));
    desk.does(ask::hold("x"));
    for act in EffectiveStatus::Held.acts() {
        assert!(desk.plan.decide(&ada(), at(99), &of_act(*act)).is_ok(), "held, {act:?}");
    }
}

#[test]
fn what_screens_offer_for_a_parent_is_never_refused() {
    let child = |name, depends_on| TaskSpec { parent: Some(id("x")), ..task(name, depends_on) };
    let family = || Desk::with(plan_of([task("x", &[]), child("y", &[]), child("z", &["y"])]));
    let commands: [(&str, &[Command]); 8] = [
        ("ready", &[]),
        ("queued", &[ask::queue("y")]),
        ("running", &[ask::start("y")]),
        ("asking", &[ask::start("y"), ask::question("y", &[])]),
        ("held", &[ask::hold("x")]),
        ("blocked", &[ask::hold("y")]),
        ("failed", &[ask::finish("y", failed())]),
        ("done", &[ask::finish("y", done()), ask::finish("z", done())]),
    ];
    for (wanted, before) in commands {
        let mut desk = family();
        for command in before {
            desk.does(command.clone());
        }
        let standing = desk.plan.effective_status("x").unwrap();
        assert_eq!(standing.as_str(), wanted);
        for act in standing.acts_of_parent() {
            let found = desk.plan.decide(&ada(), at(99), &of_act(*act));
            assert!(found.as_ref().is_ok_and(|events| !events.is_empty()), "{wanted}, {act:?}: {found:?}");
        }
    }
}

fn of_act(act: TaskAct) -> Command {
    match act {
        TaskAct::Answer => ask::answer("x", "yes"),
        TaskAct::Done => ask::finish("x", done()),
        TaskAct::Fail => ask::finish("x", failed()),
        TaskAct::Release => Command::ReleaseTask { task: id("x"), attempt: None, reason: String::new() },
        TaskAct::Hold => ask::hold("x"),
        TaskAct::Unhold => Command::UnholdTask { task: id("x") },
        TaskAct::Retry => ask::retry("x"),
        TaskAct::Skip => ask::finish("x", skipped()),
        TaskAct::Cancel => ask::cancel("x"),
    }
}

#[test]
fn the_states_of_the_dashboard_offer_the_same_acts() {
    let mut text = String::from(
        "// Written by a test from the core's table: WAYPOST_UPDATE=1 cargo test -p waypost-core states\n\n\
         import type { TaskAction } from \"./actions\";\nimport type { Standing } from \"./types\";\n\n\
         /** What a person can do with a task of each status, the most likely act first. */\n\
         export const TASK_ACTS: Record<Exclude<Standing, \"person\">, TaskAction[]> = {\n",
    );
    let rows = |of: fn(EffectiveStatus) -> &'static [TaskAct]| {
        let mut rows = String::new();
        for standing in EffectiveStatus::ALL {
            let acts: Vec<String> = of(standing).iter().map(|act| format!("{:?}", act.as_str())).collect();
            let _ = writeln!(rows, "  {}: [{}],", standing.as_str(), acts.join(", "));
        }
        rows + "};\n"
    };
    text.push_str(&rows(EffectiveStatus::acts));
    text.push_str(
        "\n/** The same for a parent: nobody works on it, and it ends when its children end. */\n\
         export const PARENT_ACTS: Record<Exclude<Standing, \"person\">, TaskAction[]> = {\n",
    );
    text.push_str(&rows(EffectiveStatus::acts_of_parent));
    let advice = "WAYPOST_UPDATE=1 cargo test -p waypost-core states writes it anew";
    committed::check("../../web/src/lib/taskActs.ts", &text, advice);
}

/// Formats the result of a command for a table cell.
fn cell(found: Result<Vec<Event>, Refusal>, before: &'static str, after: &'static str) -> String {
    match found {
        Err(refusal) => {
            let json = serde_json::to_value(&refusal).unwrap();
            format!("`{}`", json["code"].as_str().unwrap())
        }
        Ok(events) if events.is_empty() => "–".to_owned(),
        Ok(_) if before == after => "yes".to_owned(),
        Ok(_) => format!("→ {after}"),
    }
}

fn table(corner: &str, columns: &[&str], rows: &[(String, Vec<String>)]) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "| {corner} | {} |", columns.join(" | "));
    let _ = writeln!(text, "|---|{}", "---|".repeat(columns.len()));
    for (name, cells) in rows {
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    }
    text
}

/// Returns the lines of a Mermaid state diagram for all cells of a table that lead to another state.
fn diagram(columns: &[&str], rows: &[(String, Vec<String>)], without: &[&str]) -> String {
    let name = |title: &str| match title {
        "skipped because of another" => "skipped_along".to_owned(),
        "draft that needs approval" => "draft".to_owned(),
        title => title.to_owned(),
    };
    let mut edges: Vec<(String, String, Vec<&str>)> = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        for (command, cells) in rows {
            let Some(to) = cells[place].strip_prefix("→ ") else { continue };
            let (from, to) = (name(column), name(to));
            let command = command.trim_start_matches('`').split('`').next().unwrap();
            if from == to || without.contains(&to.as_str()) || without.contains(&from.as_str()) {
                continue;
            }
            match edges.iter_mut().find(|(a, b, _)| (a, b) == (&from, &to)) {
                Some((_, _, commands)) if commands.contains(&command) => {}
                Some((_, _, commands)) => commands.push(command),
                None => edges.push((from, to, vec![command])),
            }
        }
    }
    edges
        .iter()
        .map(|(from, to, commands)| format!("    {from} --> {to}: {}\n", commands.join(", ")))
        .collect()
}

/// The states of a task; skipped tasks are distinguished by whether their dependants may proceed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stand {
    Blocked,
    Ready,
    Reported,
    Asking,
    Queued,
    Running,
    Done,
    Failed,
    Skipped,
    SkippedAlong,
    Cancelled,
}

impl Stand {
    const ALL: [Self; 11] = [
        Self::Blocked,
        Self::Ready,
        Self::Reported,
        Self::Asking,
        Self::Queued,
        Self::Running,
        Self::Done,
        Self::Failed,
        Self::Skipped,
        Self::SkippedAlong,
        Self::Cancelled,
    ];

    fn title(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Ready => "ready",
            Self::Reported => "reported",
            Self::Asking => "asking",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::SkippedAlong => "skipped because of another",
            Self::Cancelled => "cancelled",
        }
    }

    /// A running plan with task `x` in this state. `x` depends on a task of another plan; `y` keeps the plan from
    /// ending.
    fn desk(self) -> Desk {
        let mut x = task("x", &[]);
        x.depends_on = vec![waypost_core::Dependency::External(Box::new(far()))];
        if self == Self::Reported {
            x.check = Some(work());
        }
        let mut desk = Desk::with(plan_of([x, task("y", &[])]));
        let hear = |desk: &mut Desk, status| desk.does(receive(status, None));
        match self {
            Self::Blocked => {}
            Self::SkippedAlong => {
                hear(&mut desk, Status::Failed);
            }
            Self::Ready
            | Self::Reported
            | Self::Asking
            | Self::Queued
            | Self::Running
            | Self::Done
            | Self::Failed
            | Self::Skipped
            | Self::Cancelled => {
                hear(&mut desk, Status::Done);
            }
        }
        match self {
            Self::Blocked | Self::Ready | Self::SkippedAlong => {}
            Self::Queued => {
                desk.does(ask::queue("x"));
            }
            Self::Running => {
                desk.does(ask::start("x"));
            }
            Self::Done | Self::Reported => {
                desk.does(ask::finish("x", done()));
            }
            Self::Asking => {
                desk.does(ask::start("x"));
                desk.does(ask::question("x", &[]));
            }
            Self::Failed => {
                desk.does(ask::finish("x", failed()));
            }
            Self::Skipped => {
                desk.does(ask::finish("x", skipped()));
            }
            Self::Cancelled => {
                desk.does(ask::cancel("x"));
            }
        }
        assert_eq!(Self::of(&desk), self.title(), "the plan is in the state that is to be tried");
        desk
    }

    fn of(desk: &Desk) -> &'static str {
        match desk.plan.effective_status("x") {
            None => "gone",
            Some(EffectiveStatus::Skipped) if desk.because_of("x").is_some() => Self::SkippedAlong.title(),
            Some(standing) => standing.as_str(),
        }
    }
}

fn far() -> ExternalTaskRef {
    ExternalTaskRef { agent: None, plan: Some(PlanId::new("other").unwrap()), task: id("far") }
}

fn receive(status: Status, output: Option<Json>) -> Command {
    Command::ReceiveOutput {
        task: id("x"),
        from: far(),
        received: UpstreamResult { status, output, ..UpstreamResult::default() },
        untrusted: false,
    }
}

fn finish_attempt(attempt: u32, outcome: Outcome) -> Command {
    Command::FinishTask { task: id("x"), attempt: Some(attempt), outcome, retry: None }
}

/// Every command about a task, issued by a suitable actor; `attempt` is the latest attempt of `x`.
fn task_commands(attempt: u32) -> Vec<(&'static str, Actor, Command)> {
    let notes = TaskChanges { notes: Some("mind the gap".into()), ..TaskChanges::default() };
    let words = TaskChanges { description: Some("do it well".into()), ..TaskChanges::default() };
    let dependencies = TaskChanges { depends_on: Some(Vec::new()), ..TaskChanges::default() };
    let work = TaskChanges { work: Some(Some(*work())), ..TaskChanges::default() };
    let skip = TaskChanges { skip: Some(true), ..TaskChanges::default() };
    let digest = Digest {
        summary: "it went well".into(),
        key_decisions: Vec::new(),
        artifacts: Vec::new(),
        compression_ratio: None,
        fidelity_score: None,
    };
    let reason = "lunch".to_owned();
    let children = vec![task("x1", &[])];
    vec![
        ("`start_task`", worker(), ask::start("x")),
        ("`start_task`, by an agent", agent(), ask::start("x")),
        ("`queue_task`", worker(), ask::queue("x")),
        ("`record_start`", worker(), Command::RecordStart { task: id("x"), attempt, started_at: at(50) }),
        ("`finish_task` done, by whoever runs it", worker(), finish_attempt(attempt, done())),
        ("`finish_task` failed, by whoever runs it", worker(), finish_attempt(attempt, failed())),
        ("`finish_task` skipped, by whoever runs it", worker(), finish_attempt(attempt, skipped())),
        ("`finish_task` done, by a worker that was given up", worker(), finish_attempt(attempt + 7, done())),
        ("`finish_task` done, ticked off", ada(), ask::finish("x", done())),
        ("`finish_task` failed, ticked off", ada(), ask::finish("x", failed())),
        ("`finish_task` skipped, ticked off", ada(), ask::finish("x", skipped())),
        ("`lose_task`", system(), Command::LoseTask { task: id("x"), attempt, retry: None }),
        ("`release_task`", worker(), Command::ReleaseTask { task: id("x"), attempt: Some(attempt), reason }),
        ("`ask_question`", worker(), ask::question("x", &[])),
        ("`answer_question`, by a person", ada(), ask::answer("x", "yes")),
        ("`answer_question`, by an agent", agent(), ask::answer("x", "yes")),
        ("`cancel_task`", ada(), ask::cancel("x")),
        ("`hold_task`", ada(), ask::hold("x")),
        ("`unhold_task`", ada(), Command::UnholdTask { task: id("x") }),
        ("`comment_task`", agent(), ask::comment("x", "mind the gap")),
        ("`label_task`", agent(), Command::LabelTask { task: id("x"), labels: vec!["risky".into()] }),
        ("`assign_task`", agent(), Command::AssignTask { task: id("x"), assignee: "person:ada".into() }),
        ("`retry_task`", ada(), ask::retry("x")),
        ("`revise_task`: notes", agent(), ask::revise("x", notes)),
        ("`revise_task`: description", agent(), ask::revise("x", words)),
        ("`revise_task`: dependencies", ada(), ask::revise("x", dependencies)),
        ("`revise_task`: work", ada(), ask::revise("x", work)),
        ("`revise_task`: skip", ada(), ask::revise("x", skip)),
        (
            "`move_task`",
            ada(),
            Command::MoveTask { task: id("x"), parent: None, place: Position::After(id("y")) },
        ),
        ("`add_tasks` below it", ada(), add_below("x")),
        ("`remove_task`", ada(), ask::remove("x", false)),
        (
            "`decompose_task`",
            agent(),
            Command::DecomposeTask { task: id("x"), children, reasoning: None, tokens: 0 },
        ),
        (
            "`refine_task`",
            agent(),
            Command::RefineTask { task: id("x"), refinement: Refinement::Atomic, reasoning: None, tokens: 5 },
        ),
        ("`attach_digest`", agent(), Command::AttachDigest { task: id("x"), digest, tokens: 5 }),
        ("`charge_tokens`", agent(), Command::ChargeTokens { task: Some(id("x")), tokens: 5, call: 1 }),
        ("`roll_back_task`", agent(), Command::RollBackTask { task: id("x"), detach: false }),
        ("`receive_output`: done", system(), receive(Status::Done, Some(Json::of(&1)))),
        ("`receive_output`: failed", system(), receive(Status::Failed, Some(Json::of(&1)))),
        ("`withdraw_output`", system(), Command::WithdrawOutput { task: id("x"), from: far() }),
    ]
}

fn add_below(parent: &str) -> Command {
    let mut child = task("new", &[]);
    child.parent = Some(id(parent));
    Command::AddTasks { tasks: vec![child], place: Position::Last }
}

/// Whether a command is about one task; the exhaustive match keeps a new command from being forgotten.
fn is_about_a_task(command: &Command) -> bool {
    match command {
        Command::StartTask { .. }
        | Command::QueueTask { .. }
        | Command::RecordStart { .. }
        | Command::FinishTask { .. }
        | Command::LoseTask { .. }
        | Command::ReleaseTask { .. }
        | Command::AskQuestion { .. }
        | Command::AnswerQuestion { .. }
        | Command::RecordGate { .. }
        | Command::CancelTask { .. }
        | Command::HoldTask { .. }
        | Command::UnholdTask { .. }
        | Command::CommentTask { .. }
        | Command::LabelTask { .. }
        | Command::AssignTask { .. }
        | Command::RetryTask { .. }
        | Command::ReviseTask { .. }
        | Command::RemoveTask { .. }
        | Command::MoveTask { .. }
        | Command::DecomposeTask { .. }
        | Command::RefineTask { .. }
        | Command::AttachDigest { .. }
        | Command::ChargeTokens { .. }
        | Command::RollBackTask { .. }
        | Command::ReceiveOutput { .. }
        | Command::WithdrawOutput { .. }
        | Command::AddTasks { .. } => true,
        Command::Create { .. }
        | Command::RevisePlan(_)
        | Command::Replace(_)
        | Command::Restore { .. }
        | Command::RequestApproval { .. }
        | Command::Approve { .. }
        | Command::Revoke
        | Command::RefuseStart(_)
        | Command::Reject { .. }
        | Command::Activate
        | Command::Pause { .. }
        | Command::Resume
        | Command::RetryPlan
        | Command::FinishPlan { .. }
        | Command::Archive
        | Command::Merge(_)
        | Command::Unarchive => false,
    }
}

fn task_rows() -> Vec<(String, Vec<String>)> {
    let mut rows = Vec::new();
    for (row, (name, _, command)) in task_commands(0).into_iter().enumerate() {
        assert!(is_about_a_task(&command));
        let cells = Stand::ALL.map(|stand| {
            let mut desk = stand.desk();
            let attempt = desk.plan.task("x").unwrap().state.attempt;
            let (_, by, command) = task_commands(attempt).swap_remove(row);
            desk.now = at(60);
            let found = desk.asks(&by, command);
            cell(found, stand.title(), Stand::of(&desk))
        });
        rows.push((name.to_owned(), cells.to_vec()));
    }
    rows
}

/// The states of a plan; a draft is distinguished by whether it needs approval, and any plan by whether it is archived.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Draft,
    DraftToBeApproved,
    AwaitingApproval,
    Active,
    Paused,
    Completed,
    Failed,
    Cancelled,
    Archived,
}

impl Stage {
    const ALL: [Self; 9] = [
        Self::Draft,
        Self::DraftToBeApproved,
        Self::AwaitingApproval,
        Self::Active,
        Self::Paused,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Archived,
    ];

    fn title(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::DraftToBeApproved => "draft that needs approval",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Archived => "archived",
        }
    }

    /// A plan in this state with two tasks, `x` before `y`.
    fn desk(self) -> Desk {
        let draft = || plan_of([task("x", &[]), task("y", &["x"])]);
        // By an agent: an agent cannot undo a person's stop.
        let stop = |desk: &mut Desk, command| drop(desk.asks(&agent(), command).unwrap());
        let mut desk = match self {
            Self::DraftToBeApproved => {
                let mut draft = draft();
                draft.tasks[0].spec.work = Some(work());
                Desk::made_by(&agent(), draft)
            }
            _ => Desk::made_by(&ada(), draft()),
        };
        match self {
            Self::Draft | Self::DraftToBeApproved => {}
            Self::AwaitingApproval => {
                desk.does(Command::RequestApproval { message: "may I?".into() });
            }
            Self::Active => {
                desk.does(Command::Activate);
            }
            Self::Paused => {
                desk.does(Command::Activate);
                stop(&mut desk, Command::Pause { reason: "lunch".into() });
            }
            Self::Completed => {
                desk.does(ask::finish("x", done()));
                desk.does(ask::finish("y", done()));
            }
            Self::Failed => {
                desk.does(ask::finish("x", failed()));
            }
            Self::Cancelled => {
                stop(&mut desk, Command::FinishPlan { phase: Phase::Cancelled, summary: "enough".into() });
            }
            Self::Archived => {
                stop(&mut desk, Command::Archive);
            }
        }
        assert_eq!(Self::of(&desk), self.title(), "the plan is in the state that is to be tried");
        desk
    }

    fn of(desk: &Desk) -> &'static str {
        let state = desk.plan.state();
        match state.phase {
            _ if state.archived => Self::Archived.title(),
            Phase::Draft if state.approval_required => Self::DraftToBeApproved.title(),
            phase => phase.as_str(),
        }
    }
}

fn plan_commands(desk: &Desk) -> Vec<(&'static str, Actor, Command)> {
    let version = desk.plan.version();
    let title = PlanChanges { title: Some("another".into()), ..PlanChanges::default() };
    let add = |by_machine: bool| {
        let mut new = task("new", &[]);
        new.work = by_machine.then(work);
        Command::AddTasks { tasks: vec![new], place: Position::Last }
    };
    let mut replacement = desk.plan.to_draft();
    replacement.tasks[0].spec.description = "do it otherwise".into();
    let finish = |phase| Command::FinishPlan { phase, summary: "that is all".into() };
    let refusal = StartRefusal {
        worker: "w1".into(),
        reason: StartRefusalReason::DigestMismatch,
        digest: "sha256:81c0".into(),
        differences: vec!["executor deploy: command".into()],
    };
    let approve = || Command::Approve { version, note: String::new(), work: None };
    vec![
        ("`create`", ada(), ask::create(plan_of([]))),
        ("`revise_plan`", agent(), Command::RevisePlan(Box::new(title))),
        ("`add_tasks` for people and agents", agent(), add(false)),
        ("`add_tasks` with work for machines, by an agent", agent(), add(true)),
        ("`add_tasks` with work for machines, by a person", ada(), add(true)),
        ("`replace` with another description of a task", ada(), Command::Replace(Box::new(replacement))),
        ("`request_approval`", agent(), Command::RequestApproval { message: "may I?".into() }),
        ("`approve`, by a person", ada(), approve()),
        ("`approve`, by an agent", agent(), approve()),
        (
            "`approve`, of an earlier version",
            ada(),
            Command::Approve { version: version - 1, note: String::new(), work: None },
        ),
        ("`revoke`", ada(), Command::Revoke),
        ("`refuse_start`", worker(), Command::RefuseStart(Box::new(refusal))),
        ("`reject`, by a person", ada(), Command::Reject { reason: "too bold".into() }),
        ("`reject`, by an agent", agent(), Command::Reject { reason: "too bold".into() }),
        ("`activate`", agent(), Command::Activate),
        ("`pause`", agent(), Command::Pause { reason: "lunch".into() }),
        ("`resume`", agent(), Command::Resume),
        ("`start_task`", worker(), ask::start("x")),
        ("`finish_task` done, ticked off", ada(), ask::finish("x", done())),
        ("`cancel_task`", ada(), ask::cancel("x")),
        ("`retry_task`", ada(), ask::retry("x")),
        ("`retry_plan`", ada(), Command::RetryPlan),
        ("`finish_plan` completed", agent(), finish(Phase::Completed)),
        ("`finish_plan` failed", agent(), finish(Phase::Failed)),
        ("`finish_plan` cancelled", agent(), finish(Phase::Cancelled)),
        ("`archive`", agent(), Command::Archive),
        ("`unarchive`", agent(), Command::Unarchive),
    ]
}

fn plan_rows() -> Vec<(String, Vec<String>)> {
    let mut rows = Vec::new();
    let first = Stage::Draft.desk();
    for (row, (name, _, _)) in plan_commands(&first).into_iter().enumerate() {
        let cells = Stage::ALL.map(|stage| {
            let mut desk = stage.desk();
            let (_, by, command) = plan_commands(&desk).swap_remove(row);
            desk.now = at(60);
            let found = desk.asks(&by, command);
            cell(found, stage.title(), Stage::of(&desk))
        });
        rows.push((name.to_owned(), cells.to_vec()));
    }
    rows
}

fn page() -> String {
    let (stands, stages) = (Stand::ALL.map(Stand::title), Stage::ALL.map(Stage::title));
    let (task_rows, plan_rows) = (task_rows(), plan_rows());
    format!(
        include_str!("states.md.in"),
        tasks = table("task", &stands, &task_rows),
        task_diagram = diagram(&stands, &task_rows, &["gone"]),
        phases = table("plan", &stages, &plan_rows),
        phase_diagram = diagram(&stages, &plan_rows, &["archived"]),
    )
}
