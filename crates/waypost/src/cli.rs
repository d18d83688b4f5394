//! The command line: what can be asked, and how it is written. Does nothing.

use clap::{Parser, Subcommand};

use crate::commands as command;
use crate::options::Global;

const AFTER_HELP: &str = "\
Plans and tasks can be named by any unambiguous beginning of their id.

Exit codes:
  0    it was done
  1    it could not be done
  2    the command line makes no sense
  3    version conflict: the plan has moved on since --expect-version
  4    the plan is not valid, or would not be; every problem is listed
  5    there is no such plan, task, version or file
  130  interrupted

Examples:
  waypost new 'Move to JWT' --task 'Read the auth module' --task 'Add the crate'
  waypost import plan.json
  waypost run plan.json
  waypost submit plan.json
  waypost list
  waypost show kq3
  waypost next kq3 --claim
  waypost done kq3 t1 --result 'three files found'";

/// Plans that agents write, people approve and machines run.
#[derive(Debug, Parser)]
#[command(
    name = "waypost",
    version,
    about,
    after_help = AFTER_HELP,
    infer_subcommands = true,
    infer_long_args = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

// What can be asked.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Make a plan
    New(command::new::New),
    /// Have a model write a plan for a goal
    Plan(command::plan::Plan),
    /// Break a goal, a plan or a task down until every part is small enough
    Decompose(command::decompose::Decompose),
    /// Go on with thinking that has not come to its end
    Continue(command::continue_planning::Continue),
    /// Take back the thinking about a goal, with everything below it
    Rollback(command::rollback::Rollback),
    /// Show everything that was thought about a goal, and what models were asked
    Review(command::review::Review),
    /// Have a model compress finished work
    Digest(command::digest::Digest),
    /// Show what models were asked, and what it cost
    Cost(command::cost::Cost),
    /// Read plans from files of any format
    Import(command::import::Import),
    /// Run a plan
    Run(command::run::Run),
    /// Give a plan to the workers, and do not wait for it
    Submit(command::submit::Submit),
    /// Run the plans of queues, whoever submits them
    Worker(command::worker::Worker),
    /// List the workers with what they run, or let one end
    Workers(command::workers::Workers),
    /// Serve plans to an agent over the Model Context Protocol
    Mcp(command::mcp::Mcp),
    /// Serve plans to agents over HTTP
    Serve(command::serve::Serve),
    /// Make, list and revoke the tokens that agents call `serve` with
    #[command(subcommand)]
    Token(command::token::Token),
    /// List the models that can be asked, and say what works with them
    #[command(subcommand)]
    Model(command::model::Models),
    /// Show how work goes on that others do
    Watch(command::watch::Watch),
    /// Look at plans, edit and run them in the terminal
    Tui(command::tui::Tui),
    /// List plans
    #[command(visible_alias = "ls")]
    List(command::list::List),
    /// Show a plan, or one task of it
    #[command(visible_alias = "view")]
    Show(command::show::Show),
    /// Show what can be worked on now, or take it
    Next(command::next::Next),
    /// Add, change, move and remove tasks
    #[command(subcommand)]
    Task(Task),
    /// Add a task (the same as `task add`)
    Add(command::task_add::Add),
    /// Begin to work on a task
    #[command(visible_alias = "claim")]
    Start(command::task_lifecycle::Start),
    /// Say how far a running task is
    Progress(command::task_lifecycle::Progress),
    /// Say that a task is done
    #[command(visible_aliases = ["close", "complete", "finish"])]
    Done(command::task_lifecycle::Done),
    /// Say that a task failed
    Fail(command::task_lifecycle::Fail),
    /// Pass over a task
    Skip(command::task_lifecycle::Skip),
    /// Ask a person about a task you work on, and leave it until there is an answer
    Ask(command::ask_release::AskPerson),
    /// Show what waits for a person's word, or give it (only a person can)
    Answer(command::answer::Answer),
    /// Give back a task you work on, undone
    Release(command::ask_release::Release),
    /// Do again what failed: one task, or all of the plan
    Retry(command::task_lifecycle::Retry),
    /// Stop a task, or the whole plan
    Cancel(command::task_lifecycle::Cancel),
    /// Allow a plan to run (only a person can)
    Approve(command::plan_lifecycle::Approve),
    /// Do not allow a plan to run (only a person can)
    Reject(command::plan_lifecycle::Reject),
    /// Ask a person to approve a plan
    RequestApproval(command::plan_lifecycle::RequestApproval),
    /// Start nothing new in a plan
    Pause(command::plan_lifecycle::Pause),
    /// Go on with a paused plan
    Resume(command::plan_lifecycle::Resume),
    /// End a plan
    FinishPlan(command::plan_lifecycle::FinishPlan),
    /// Read or write a plan's free words for where it stands
    #[command(subcommand)]
    Status(command::status::Status),
    /// Edit a plan in your editor
    Edit(command::edit::Edit),
    /// Write a file's content into a plan
    Update(command::update::Update),
    /// Write a plan in any format
    Export(command::export::Export),
    /// Draw a plan's graph
    Graph(command::graph::Graph),
    /// List a plan's versions: who did what, when
    History(command::history::History),
    /// Show what the worker of a task wrote
    Log(command::log::Log),
    /// Show what a task waits for, and who holds it
    Why(command::why::Why),
    /// Show what happened in all plans, or follow it
    Events(command::events::Events),
    /// Show what differs between two versions
    Diff(command::diff::Diff),
    /// Make a plan what it was at a version, as a new version
    Restore(command::restore::Restore),
    /// Put a plan away
    Archive(command::archive::Archive),
    /// Take a plan out of the archive
    Unarchive(command::archive::Unarchive),
    /// Put a plan away (the same as `archive`, unless a person says --purge)
    #[command(visible_alias = "rm")]
    Delete(command::archive::Delete),
    /// Check plans and report everything that is wrong
    #[command(visible_alias = "check")]
    Validate(command::validate::Validate),
    /// List the formats, or print the JSON Schema of one
    Schema(command::schema::Schema),
    /// Bring the store to the schema of this build
    Migrate(command::migrate::Migrate),
    /// Copy all plans of one store into another, with their history
    Copy(command::copy::Copy),
    /// Forget the events and logs of plans that ended long ago (only a person can)
    Prune(command::prune::Prune),
    /// Check the whole store against its history
    Doctor(command::doctor::Doctor),
    /// Set up hosts of agents: MCP configuration, AGENTS.md, .waypost/
    Init(command::init::Init),
    /// Print how an agent works with plans from a shell
    Instructions(command::instructions::Instructions),
    /// Print the completions of a shell
    Completions(command::completions::Completions),
}

// What can be asked of a plan's tasks.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Task {
    /// Add a task
    Add(command::task_add::Add),
    /// Change a task
    #[command(visible_alias = "edit")]
    Revise(command::task_revise::Revise),
    /// Take a task out, with its children
    #[command(visible_alias = "rm")]
    Remove(command::task_move::Remove),
    /// Give a task another place or parent
    #[command(visible_alias = "mv")]
    Move(command::task_move::Move),
    /// Pass over a task
    Skip(command::task_lifecycle::Skip),
    /// Show everything about a task
    Show(command::show::ShowTask),
    /// Say that a task is done
    Done(command::task_lifecycle::Done),
    /// Say that a task failed
    Fail(command::task_lifecycle::Fail),
    /// Begin to work on a task
    Start(command::task_lifecycle::Start),
}
