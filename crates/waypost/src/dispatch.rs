//! Which code runs for which command of the command line.

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
