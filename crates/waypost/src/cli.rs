//! The command line: its commands, their help, and the type that runs each.

use clap::{Parser, Subcommand};

use crate::commands as command;
use waypost_cli::context::Context;
use waypost_cli::error::Outcome;
use waypost_cli::links::{Keeping, Telling};
use waypost_cli::options::Global;

/// The help of the program itself: the commands by what people want to do, those that are used most with a line of
/// their own. Each command's own help says the rest.
const HELP: &str = "\
Plans that agents write, people approve and machines run.

Usage: waypost [OPTIONS] [COMMAND]     Without a command: what waits for you, runs and has failed

Start
  demo     Take a tour in a temporary folder: approve, run, fail, fix, resume
  init     Set up agent hosts: MCP configuration, AGENTS.md, .waypost/
  new      Create a plan; import, link and unlink take those of other programs
  plan     Have a model write a plan, or break one down
Work
  next     Show the tasks that are ready, or claim one; also start, release
  done     Mark a task done; also progress, fail, skip, ask
  answer   List what waits for a person, or answer it
  approve  Approve a plan, so that it may run; also preview, reject, revoke, request-approval
Run
  run      Run a plan; also submit, pause, resume, cancel, retry, hold, unhold, finish-plan
  worker   Run the active plans of queues until stopped; also workers
  serve    Serve the dashboard, the HTTP API and MCP, and run active plans; also token
  mcp      Serve plans to an agent over the Model Context Protocol; also instructions
Look
  status   Show what waits for you, runs and has failed; also list, watch, tui
  show     Show a plan or one of its tasks; also find, graph, export, log
  why      Explain why a task has not started, and who holds it
  history  List a plan's versions; also diff, restore, events
Change
  task     Add, change, move and remove tasks; also add
  edit     Edit a plan in your editor; also update, note, comment
  archive  Archive a plan; also unarchive, delete
Share
  share    Share plans through git; also unshare, sync, conflicts, resolve
Administer
  trust    Trust a folder's configuration on this account; also untrust, signers, model
  doctor   Check the store, or repair it; also verify, migrate, copy, prune
  schema   List the formats, or print a schema; also validate, completions, help

Options: --store URL, --global, -C DIR, --as WHO, --json, --color WHEN, --version; any prefix names a command, plan or task
Exit codes: 0 success, 1 failure, 2 usage, 3 version conflict, 4 invalid plan, 5 not found, 6 newer store, 130 interrupted
`waypost help COMMAND` explains a command, with its options and examples.
";

const EXIT_CODES: &str = "\
Exit codes: 0 success, 1 failure, 2 usage, 3 version conflict, 4 invalid plan, 5 not found, 6 newer store, 130 interrupted";

/// Plans that agents write, people approve and machines run.
#[derive(Debug, Parser)]
#[command(
    name = "waypost",
    version,
    about,
    override_help = HELP,
    // For the manual page.
    after_help = EXIT_CODES,
    infer_subcommands = true,
    infer_long_args = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    /// Without a command, the overview of `waypost status` is shown.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Defines the commands of one level, each with its help, its aliases and the type that runs it.
macro_rules! commands {
    ($name:ident { $($(#[$help:meta])* $command:ident($runs:ty),)* }) => {
        #[derive(Debug, Subcommand)]
        #[command(defer = true)]
        pub(crate) enum $name {
            $($(#[$help])* $command($runs),)*
        }

        impl $name {
            pub(crate) fn run(self, context: &mut Context) -> Outcome {
                match self {
                    $(Self::$command(asked) => asked.run(context),)*
                }
            }
        }
    };
}

commands!(Command {
    /// Create a plan
    New(command::new::New),
    /// Take a tour in a temporary folder, or see a plan run there
    Demo(command::demo::Demo),
    /// Generate a plan for a goal with a model, or break one down
    Plan(command::plan::Plan),
    /// Break a goal, plan or task down into small enough tasks with a model
    #[command(hide = true)]
    Decompose(command::decompose::Decompose),
    /// Resume unfinished planning
    #[command(hide = true)]
    Continue(command::continue_planning::Continue),
    /// Discard a goal's decomposition and all its subtasks
    #[command(hide = true)]
    Rollback(command::rollback::Rollback),
    /// Show a goal's decomposition, its reasoning and the model calls behind it
    #[command(hide = true)]
    Review(command::review::Review),
    /// Summarize finished work with a model
    #[command(hide = true)]
    Digest(command::digest::Digest),
    /// Show model calls, tokens and cost
    #[command(hide = true)]
    Cost(command::cost::Cost),
    /// Import plans from files of any format
    Import(command::import::Import),
    /// Run a plan
    Run(command::run::Run),
    /// Submit a plan to the workers without waiting for it
    Submit(command::submit::Submit),
    /// Run the active plans of queues until stopped
    Worker(command::worker::Worker),
    /// List workers and their running tasks, or drain one
    Workers(command::workers::Workers),
    /// Serve plans to an agent over the Model Context Protocol (stdio)
    Mcp(command::mcp::Mcp),
    /// Serve the dashboard, the HTTP API and MCP, and run active plans
    Serve(command::serve::Serve),
    /// Create, list and revoke access tokens for `serve`
    #[command(subcommand)]
    Token(command::token::Token),
    /// List configured models, or test what they support
    #[command(subcommand)]
    Model(command::model::Models),
    /// Follow the progress of running plans
    Watch(command::watch::Watch),
    /// Browse, edit and run plans in the terminal UI
    Tui(command::tui::Tui),
    /// List plans
    #[command(visible_alias = "ls", alias = "li")]
    List(command::list::List),
    /// Show a plan or one of its tasks
    #[command(visible_alias = "view")]
    Show(command::show::Show),
    /// Show the tasks that are ready, or claim one
    Next(command::next::Next),
    /// Add, change, move and remove tasks
    #[command(subcommand)]
    Task(Task),
    /// Add a task (the same as `task add`)
    Add(command::task_add::Add),
    /// Claim a task and start it
    #[command(visible_alias = "claim")]
    Start(command::task_lifecycle::Start),
    /// Report progress on a running task
    Progress(command::task_lifecycle::Progress),
    /// Mark a task done
    #[command(visible_aliases = ["close", "complete", "finish"])]
    Done(command::task_lifecycle::Done),
    /// Mark a task failed
    Fail(command::task_lifecycle::Fail),
    /// Skip a task
    Skip(command::task_lifecycle::Skip),
    /// Ask a person about a task, and release it until they answer
    Ask(command::ask_release::AskPerson),
    /// List what waits for a person, or answer it (people only)
    Answer(command::answer::Answer),
    /// Release a task that you hold, undone
    Release(command::ask_release::Release),
    /// Retry a failed task, or everything that failed in the plan
    Retry(command::task_lifecycle::Retry),
    /// Cancel a task or the whole plan
    Cancel(command::task_lifecycle::Cancel),
    /// Hold tasks: they do not start until their hold is lifted
    Hold(command::task_lifecycle::Hold),
    /// Lift the hold of tasks
    Unhold(command::task_lifecycle::Unhold),
    /// Show everything that machines would run for a plan
    Preview(command::preview::Preview),
    /// Approve a plan, so that it may run (people only)
    Approve(command::plan_lifecycle::Approve),
    /// Revoke the approval of a plan (people only)
    Revoke(command::plan_lifecycle::Revoke),
    /// Reject a plan (people only)
    Reject(command::plan_lifecycle::Reject),
    /// Request a person's approval of a plan
    RequestApproval(command::plan_lifecycle::RequestApproval),
    /// Pause a plan: running tasks finish, no task starts
    Pause(command::plan_lifecycle::Pause),
    /// Resume a paused plan
    Resume(command::plan_lifecycle::Resume),
    /// Finish a plan as completed, failed or cancelled
    FinishPlan(command::plan_lifecycle::FinishPlan),
    /// Show what waits for you, runs and has failed, and what to do next
    Status(command::overview::Status),
    /// Print or set a plan's note, free text for where it stands
    Note(command::note::Note),
    /// Edit a plan in your editor
    Edit(command::edit::Edit),
    /// Update a plan from a file
    Update(command::update::Update),
    /// Keep the files of another program's folder and their plans together
    Link(command::link::LinkFolder),
    /// Keep a folder's files and their plans together no longer
    Unlink(command::link::Unlink),
    /// Export a plan in any format
    Export(command::export::Export),
    /// Draw a plan's graph
    Graph(command::graph::Graph),
    /// List a plan's versions with their authors and changes
    History(command::history::History),
    /// Search the tasks of all plans
    #[command(visible_alias = "search")]
    Find(command::find::Find),
    /// Comment on a task, for the agents and people that work on it
    Comment(command::annotate::Comment),
    /// Print the log of a task's attempt
    Log(command::log::Log),
    /// Explain why a task has not started, and who holds it
    Why(command::why::Why),
    /// List the events of all plans, or follow them
    Events(command::events::Events),
    /// Show the differences between two versions
    Diff(command::diff::Diff),
    /// Restore a plan to an earlier version, as a new version
    Restore(command::restore::Restore),
    /// Archive a plan
    Archive(command::archive::Archive),
    /// Restore a plan from the archive
    Unarchive(command::archive::Unarchive),
    /// Archive a plan, or delete it for good with --purge (people only)
    #[command(visible_alias = "rm")]
    Delete(command::archive::Delete),
    /// Validate plans and report every problem
    #[command(visible_alias = "check")]
    Validate(command::validate::Validate),
    /// List the formats, or print the JSON Schema of one
    Schema(command::schema::Schema),
    /// Migrate the store to this version's schema, or approvals of earlier versions
    Migrate(command::migrate::Migrate),
    /// Copy all plans of one store into another, with their history
    Copy(command::copy::Copy),
    /// Delete events and logs of plans that ended long ago (people only)
    Prune(command::prune::Prune),
    /// Check the store against its history, or repair it
    Doctor(command::doctor::Doctor),
    /// Verify that the histories of plans were not changed
    Verify(command::verify::Verify),
    /// Import the keys that may sign approvals (people only)
    #[command(subcommand)]
    Signers(command::signers::Signers),
    /// Share plans with the other clones of this repository, through git (people only)
    Share(command::share::Share),
    /// Share plans no longer (people only)
    Unshare(command::share::Unshare),
    /// Exchange shared plans with the remote
    Sync(command::sync::Sync),
    /// List the questions that a merge of shared plans left open
    Conflicts(command::conflicts::Conflicts),
    /// Answer a question that a merge left open (people only)
    Resolve(command::conflicts::Resolve),
    /// Set up agent hosts: MCP configuration, AGENTS.md, .waypost/
    Init(command::init::Init),
    /// Trust a folder's configuration on this account, or list trusted folders (people only)
    Trust(command::trust::Trust),
    /// Trust a folder's configuration no longer
    Untrust(command::trust::Untrust),
    /// Print instructions for agents that use the command line
    Instructions(command::instructions::Instructions),
    /// Print a shell completion script
    Completions(command::completions::Completions),
    /// Name the claimed task in the message of a commit, as a prepare-commit-msg hook
    #[command(hide = true)]
    CommitTrailer(command::commit_trailer::CommitTrailer),
    /// Write the manual pages to a folder
    #[command(hide = true)]
    Man(command::completions::Man),
});

impl Command {
    /// When the files of linked folders and their plans are kept together.
    pub(crate) fn keeps_links(&self) -> Keeping {
        match self {
            Self::Run(run) if run.keeps_its_file() => Keeping::Around,
            Self::Mcp(_) | Self::Serve(_) => Keeping::Always(Telling::AtOnce),
            Self::Worker(_) | Self::Run(_) => Keeping::Always(Telling::IntoLogs),
            Self::Tui(_) | Self::Watch(_) => Keeping::Always(Telling::Afterwards),
            Self::Link(link) if link.is_list() => Keeping::Around,
            Self::Link(_)
            | Self::Unlink(_)
            | Self::Demo(_)
            | Self::Init(_)
            | Self::Trust(_)
            | Self::Untrust(_)
            | Self::Signers(_)
            | Self::Token(_)
            | Self::Model(_)
            | Self::Schema(_)
            | Self::Validate(_)
            | Self::Migrate(_)
            | Self::Copy(_)
            | Self::Prune(_)
            | Self::Doctor(_)
            | Self::Verify(_)
            | Self::Instructions(_)
            | Self::Completions(_)
            | Self::CommitTrailer(_)
            | Self::Man(_) => Keeping::Never,
            Self::New(_)
            | Self::Plan(_)
            | Self::Decompose(_)
            | Self::Continue(_)
            | Self::Rollback(_)
            | Self::Review(_)
            | Self::Digest(_)
            | Self::Cost(_)
            | Self::Import(_)
            | Self::Submit(_)
            | Self::Workers(_)
            | Self::List(_)
            | Self::Show(_)
            | Self::Next(_)
            | Self::Task(_)
            | Self::Add(_)
            | Self::Start(_)
            | Self::Progress(_)
            | Self::Done(_)
            | Self::Fail(_)
            | Self::Skip(_)
            | Self::Ask(_)
            | Self::Answer(_)
            | Self::Release(_)
            | Self::Retry(_)
            | Self::Cancel(_)
            | Self::Hold(_)
            | Self::Unhold(_)
            | Self::Preview(_)
            | Self::Approve(_)
            | Self::Revoke(_)
            | Self::Reject(_)
            | Self::RequestApproval(_)
            | Self::Pause(_)
            | Self::Resume(_)
            | Self::FinishPlan(_)
            | Self::Status(_)
            | Self::Note(_)
            | Self::Edit(_)
            | Self::Update(_)
            | Self::Export(_)
            | Self::Graph(_)
            | Self::History(_)
            | Self::Find(_)
            | Self::Comment(_)
            | Self::Log(_)
            | Self::Why(_)
            | Self::Events(_)
            | Self::Diff(_)
            | Self::Restore(_)
            | Self::Archive(_)
            | Self::Unarchive(_)
            | Self::Delete(_)
            | Self::Share(_)
            | Self::Unshare(_)
            | Self::Sync(_)
            | Self::Conflicts(_)
            | Self::Resolve(_) => Keeping::Around,
        }
    }
}

commands!(Task {
    /// Add a task
    Add(command::task_add::Add),
    /// Change a task
    #[command(visible_alias = "edit")]
    Revise(command::task_revise::Revise),
    /// Remove a task and its subtasks
    #[command(visible_alias = "rm")]
    Remove(command::task_move::Remove),
    /// Move a task to another position or parent
    #[command(visible_alias = "mv")]
    Move(command::task_move::Move),
    /// Set the labels of a task
    Label(command::annotate::Label),
    /// Set who is to take care of a task
    Assign(command::annotate::Assign),
    /// Skip a task
    Skip(command::task_lifecycle::Skip),
    /// Show all details of a task
    Show(command::show::ShowTask),
    /// Mark a task done
    Done(command::task_lifecycle::Done),
    /// Mark a task failed
    Fail(command::task_lifecycle::Fail),
    /// Claim a task and start it
    Start(command::task_lifecycle::Start),
});

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Lines of the help that fit a terminal.
    const HELP_LINES_MAX: usize = 40;

    #[test]
    fn the_help_names_every_command_and_fits_a_screen() {
        let names: Vec<String> =
            HELP.split(|c: char| !c.is_ascii_lowercase() && c != '-').map(str::to_owned).collect();
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            assert!(names.iter().any(|name| name == command.get_name()), "{}", command.get_name());
        }
        assert!(HELP.lines().count() <= HELP_LINES_MAX && HELP.contains(EXIT_CODES));
    }

    /// Lines that are broken in the text are broken again by a narrower terminal.
    #[test]
    fn paragraphs_of_help_are_one_line_each() {
        fn check(command: &clap::Command) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
            for (line, next) in text.lines().zip(text.lines().skip(1)) {
                let is_broken = is_prose(line) && is_prose(next);
                assert!(!is_broken, "{}: {line:?} goes on with {next:?}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        let mut command = Cli::command();
        command.build();
        check(&command);
    }
}
