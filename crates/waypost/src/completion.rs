//! Completions of what only the store and the configuration know: ids of plans and tasks, executors, queues.
//!
//! A shell runs this at every Tab: it prints candidates and nothing else, writes nothing, asks nobody to trust anything,
//! reads a bounded part, and offers nothing where something fails.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use clap::{ArgMatches, CommandFactory, FromArgMatches};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::CompleteEnv;
use waypost_config::Config;
use waypost_core::{Plan, PlanId};
use waypost_store::{PlanStore, Query, Sort, SqliteStore};

use crate::cli::Cli;
use crate::commands::completions::VARIABLE;
use waypost_cli::context::{Context, Program};
use waypost_cli::load_config;
use waypost_cli::options::Global;
use waypost_cli::view::text;

/// Candidates of each kind.
const CANDIDATES_MAX: usize = 200;
/// Tasks of a plan that is read for their ids.
const TASKS_READ_MAX: u32 = 20_000;
/// Columns of the text beside a candidate.
const HELP_WIDTH_MAX: usize = 50;

/// What a word can be.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Plan,
    PlanOrFile,
    File,
    Task,
    Version,
    Executor,
    Queue,
}

impl Kind {
    /// What an argument takes, by its name, which all commands spell alike.
    fn of(argument: &str, has_plan: bool) -> Option<Self> {
        match argument {
            "plan" | "plans" => Some(Self::Plan),
            "what" => Some(Self::PlanOrFile),
            "paths" | "files" | "from_file" | "bundle" => Some(Self::File),
            "task" | "task_option" | "tasks" | "depends_on" | "no_depends_on" | "hold" if has_plan => {
                Some(Self::Task)
            }
            "version" | "old" | "new" if has_plan => Some(Self::Version),
            "executor" | "check_executor" => Some(Self::Executor),
            "queue" | "queues" => Some(Self::Queue),
            _ => None,
        }
    }
}

/// Answers a shell that asks for completions. Returns whether one did.
pub(crate) fn answer(program: Program) -> bool {
    let definition = move || with_completers((program.definition)(), program);
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(definition).var(VARIABLE);
    // An error on the screen would be worse than no candidates.
    asked.try_complete(std::env::args_os(), here.as_deref()).unwrap_or(true)
}

fn with_completers(mut command: clap::Command, program: Program) -> clap::Command {
    // The arguments of commands are defined when they are built.
    command.build();
    with_completers_below(command, program)
}

fn with_completers_below(command: clap::Command, program: Program) -> clap::Command {
    let has_plan = command.get_arguments().any(|argument| argument.get_id() == "plan");
    let with_completer = |argument: clap::Arg| match Kind::of(argument.get_id().as_str(), has_plan) {
        Some(kind) => argument.add(ArgValueCompleter::new(Candidates { kind, program })),
        None => argument,
    };
    let command = command.mut_args(with_completer);
    command.mut_subcommands(|command| {
        with_completers_below(without_old_spellings(with_hidden_aliases(command)), program)
    })
}

/// Where all that a command could offer is hidden, a shell is offered that: so it has nothing.
fn without_old_spellings(command: clap::Command) -> clap::Command {
    let are_old = command.get_subcommands().all(clap::Command::is_hide_set);
    match command.has_subcommands() && are_old {
        true => {
            let name: &'static str = command.get_name().to_owned().leak();
            // `--help` is among the arguments.
            clap::Command::new(name).disable_help_flag(true).args(command.get_arguments().cloned())
        }
        false => command,
    }
}

/// Of the names of a command a shell is offered the first by the alphabet, which is often not the one that the help teaches.
fn with_hidden_aliases(command: clap::Command) -> clap::Command {
    // This process ends with its answer.
    let aliases = command.get_all_aliases().map(|alias| &*alias.to_owned().leak());
    let aliases: Vec<&'static str> = aliases.collect();
    command.visible_alias(None::<&str>).aliases(aliases)
}

struct Candidates {
    kind: Kind,
    program: Program,
}

impl ValueCompleter for Candidates {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let words: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
        let files = match self.kind {
            Kind::PlanOrFile => PathCompleter::file().complete(current),
            Kind::File => return PathCompleter::any().complete(current),
            Kind::Plan | Kind::Task | Kind::Version | Kind::Executor | Kind::Queue => Vec::new(),
        };
        let begun = current.to_string_lossy();
        let known = Workspace::of(&words, self.program).and_then(|known| match self.kind {
            Kind::Plan | Kind::PlanOrFile => known.plans(&begun),
            Kind::File => None,
            Kind::Task => known.tasks(),
            Kind::Version => known.versions(),
            Kind::Executor => Some(names(known.config()?.executors)),
            Kind::Queue => Some(names(known.config()?.queues)),
        });
        let fits = |(name, _): &(String, String)| name.starts_with(&*begun) && is_plain(name);
        let candidate = |(name, help): (String, String)| {
            let help = waypost_text::truncate(&text::one_line(&help), HELP_WIDTH_MAX).into_owned();
            let help = (!help.is_empty()).then(|| help.into());
            CompletionCandidate::new(name).help(help)
        };
        let known = known.unwrap_or_default().into_iter().filter(fits).take(CANDIDATES_MAX);
        known.map(candidate).chain(files).collect()
    }
}

/// Whether a name means only itself to every shell. Other people write ids, and a shell puts a candidate on the line that
/// is run next.
fn is_plain(name: &str) -> bool {
    let plain =
        |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '.' | '_' | '-' | '/' | '@' | '+');
    !name.starts_with('-') && name.chars().all(plain)
}

fn names<T>(values: BTreeMap<String, T>) -> Vec<(String, String)> {
    values.into_keys().map(|name| (name, String::new())).collect()
}

/// What can be read where the command would run.
struct Workspace {
    context: Context,
    /// What the line says so far.
    line: ArgMatches,
}

impl Workspace {
    /// The workspace of a command line that is not finished.
    fn of(words: &[OsString], program: Program) -> Option<Self> {
        let line = Cli::command().ignore_errors(true).try_get_matches_from(words).ok()?;
        let context = Context::new(Global::from_arg_matches(&line).ok()?, program);
        context.enter().ok()?;
        Some(Self { context, line })
    }

    fn config(&self) -> Option<Config> {
        let by = self.context.actor().ok()?.kind;
        load_config::load(&self.context.folders().ok()?, None, by).ok()
    }

    /// Opens the store to read it, if it is a file that is there. Asking a server may take long.
    fn open(&self) -> Option<PlanStore> {
        let location = self.context.store_location().ok()?.location;
        let path = Path::new(location.strip_prefix("sqlite:")?);
        let store = path.is_file().then(|| SqliteStore::open_to_read(path))?.ok()?;
        Some(PlanStore::for_one_command(Arc::new(store)))
    }

    /// The plans that changed last, then others whose ids begin so.
    fn plans(&self, begun: &str) -> Option<Vec<(String, String)>> {
        let plans = self.open()?;
        let latest = Query { sort: Sort::Updated, limit: CANDIDATES_MAX, ..Query::default() };
        let latest = plans.heads(&latest).ok()?.items;
        let mut found: Vec<(String, String)> =
            latest.into_iter().map(|head| (head.id.to_string(), head.title)).collect();
        if !begun.is_empty() {
            let others = plans.store().query(|read| read.ids(begun, CANDIDATES_MAX)).ok()?;
            let others = others.iter().map(ToString::to_string);
            let is_new = |id: &String| found.iter().all(|(found, _)| found != id);
            let others: Vec<String> = others.filter(is_new).collect();
            found.extend(others.into_iter().map(|id| (id, String::new())));
        }
        Some(found)
    }

    /// The plan that the line names.
    fn plan(&self, plans: &PlanStore) -> Option<PlanId> {
        let mut command = &self.line;
        while let Some((_, below)) = command.subcommand() {
            command = below;
        }
        plans.resolve(command.try_get_one::<String>("plan").ok()??).ok()
    }

    /// The versions of that plan, the latest first.
    fn versions(&self) -> Option<Vec<(String, String)>> {
        let plans = self.open()?;
        let plan = self.plan(&plans)?;
        let head = plans.store().query(|read| read.head(&plan)).ok()??;
        Some((1..=head.version).rev().map(|version| (version.to_string(), String::new())).collect())
    }

    /// The tasks of that plan.
    fn tasks(&self) -> Option<Vec<(String, String)>> {
        let plans = self.open()?;
        let plan = self.plan(&plans)?;
        let total = plans.store().query(|read| read.head(&plan)).ok()??.counts.total;
        let tasks = |plan: &Plan| {
            let task = |spec: &waypost_core::TaskSpec| (spec.id.to_string(), spec.description.clone());
            plan.tasks().map(|(found, _)| task(&found.spec)).collect()
        };
        (total <= TASKS_READ_MAX).then(|| plans.with_plan(&plan, tasks).ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_run_is_not_offered() {
        for name in ["t1", "auth-jwt", "parser.ts", "a/b", "x_1@2+3"] {
            assert!(is_plain(name), "{name}");
        }
        for name in ["$(id)", "`id`", "a;b", "a b", "*", "~", "-x", "a:b", "a\u{b}b", "ü", "a\\b", "{a,b}"] {
            assert!(!is_plain(name), "{name}");
        }
    }
}
