//! One file for each thing that can be asked. Each reads its options, asks the store, and says what came of it.

pub(crate) mod answer;
pub(crate) mod archive;
pub(crate) mod ask_release;
pub(crate) mod completions;
pub(crate) mod continue_planning;
pub(crate) mod copy;
pub(crate) mod cost;
pub(crate) mod decompose;
pub(crate) mod diff;
pub(crate) mod digest;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod graph;
pub(crate) mod history;
pub(crate) mod http_listener;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod instructions;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod mcp;
pub(crate) mod migrate;
pub(crate) mod model;
pub(crate) mod new;
pub(crate) mod next;
pub(crate) mod plan;
pub(crate) mod plan_lifecycle;
pub(crate) mod prune;
pub(crate) mod restore;
pub(crate) mod review;
pub(crate) mod rollback;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod submit;
pub(crate) mod task_add;
pub(crate) mod task_lifecycle;
pub(crate) mod task_move;
pub(crate) mod task_options;
pub(crate) mod task_revise;
pub(crate) mod token;
pub(crate) mod tui;
pub(crate) mod update;
pub(crate) mod validate;
pub(crate) mod watch;
pub(crate) mod why;
pub(crate) mod worker;
pub(crate) mod workers;

use clap::CommandFactory;

use crate::cli::{Cli, Command, Task};
use crate::context::Context;
use crate::error::Outcome;

/// Does what was asked.
pub(crate) fn run(command: Command, context: &mut Context) -> Outcome {
    match command {
        Command::New(asked) => asked.run(context),
        Command::Plan(asked) => asked.run(context),
        Command::Decompose(asked) => asked.run(context),
        Command::Continue(asked) => asked.run(context),
        Command::Rollback(asked) => asked.run(context),
        Command::Review(asked) => asked.run(context),
        Command::Digest(asked) => asked.run(context),
        Command::Cost(asked) => asked.run(context),
        Command::Import(asked) => asked.run(context),
        Command::Run(asked) => asked.run(context),
        Command::Submit(asked) => asked.run(context),
        Command::Worker(asked) => asked.run(context),
        Command::Workers(asked) => asked.run(context),
        Command::Mcp(asked) => asked.run(context),
        Command::Serve(asked) => asked.run(context),
        Command::Token(asked) => asked.run(context),
        Command::Model(asked) => asked.run(context),
        Command::Watch(asked) => asked.run(context),
        Command::Tui(asked) => asked.run(context),
        Command::List(asked) => asked.run(context),
        Command::Show(asked) => asked.run(context),
        Command::Next(asked) => asked.run(context),
        Command::Task(task) => run_task(task, context),
        Command::Add(asked) => asked.run(context),
        Command::Start(asked) => asked.run(context),
        Command::Progress(asked) => asked.run(context),
        Command::Done(asked) => asked.run(context),
        Command::Fail(asked) => asked.run(context),
        Command::Skip(asked) => asked.run(context),
        Command::Ask(asked) => asked.run(context),
        Command::Answer(asked) => asked.run(context),
        Command::Release(asked) => asked.run(context),
        Command::Retry(asked) => asked.run(context),
        Command::Cancel(asked) => asked.run(context),
        Command::Approve(asked) => asked.run(context),
        Command::Reject(asked) => asked.run(context),
        Command::RequestApproval(asked) => asked.run(context),
        Command::Pause(asked) => asked.run(context),
        Command::Resume(asked) => asked.run(context),
        Command::FinishPlan(asked) => asked.run(context),
        Command::Status(asked) => asked.run(context),
        Command::Edit(asked) => asked.run(context),
        Command::Update(asked) => asked.run(context),
        Command::Export(asked) => asked.run(context),
        Command::Graph(asked) => asked.run(context),
        Command::History(asked) => asked.run(context),
        Command::Log(asked) => asked.run(context),
        Command::Why(asked) => asked.run(context),
        Command::Events(asked) => asked.run(context),
        Command::Diff(asked) => asked.run(context),
        Command::Restore(asked) => asked.run(context),
        Command::Archive(asked) => asked.run(context),
        Command::Unarchive(asked) => asked.run(context),
        Command::Delete(asked) => asked.run(context),
        Command::Validate(asked) => asked.run(context),
        Command::Schema(asked) => asked.run(context),
        Command::Migrate(asked) => asked.run(context),
        Command::Copy(asked) => asked.run(context),
        Command::Prune(asked) => asked.run(context),
        Command::Doctor(asked) => asked.run(context),
        Command::Init(asked) => asked.run(context),
        Command::Instructions(asked) => asked.run(context),
        Command::Completions(asked) => asked.run(context, &mut Cli::command()),
    }
}

fn run_task(task: Task, context: &mut Context) -> Outcome {
    match task {
        Task::Add(asked) => asked.run(context),
        Task::Revise(asked) => asked.run(context),
        Task::Remove(asked) => asked.run(context),
        Task::Move(asked) => asked.run(context),
        Task::Skip(asked) => asked.run(context),
        Task::Show(asked) => asked.run(context),
        Task::Done(asked) => asked.run(context),
        Task::Fail(asked) => asked.run(context),
        Task::Start(asked) => asked.run(context),
    }
}
