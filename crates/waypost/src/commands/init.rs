//! `waypost init`: registers Waypost with agent hosts and writes the instructions for agents.

mod file_change;
mod git;
mod git_hook;
mod hosts;
mod merge;
mod report;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use toml::de::DeTable;
use waypost_config::{Layer, Origin};
use waypost_core::ActorKind;

use self::file_change::{FileChange, What};
use self::hosts::{ConfigFile, HOSTS, Host};
use self::merge::{Entry, Launcher, Merged, Unmergeable};
use self::report::{ChangeResult, Report};
use crate::instructions;
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::files;
use waypost_cli::load_config::{self, Folders};
use waypost_cli::prompt;
use waypost_cli::repository;
use waypost_cli::runner::{NAME, runner_of};
use waypost_cli::store_location::IGNORED;
use waypost_cli::trust_prompt;
use waypost_cli::workspace_config::FILE as CONFIG_FILE;

/// The instruction file that most hosts read.
const AGENTS: &str = "AGENTS.md";
/// The text of a file that some hosts read instead of it.
const IMPORT: &str = "@AGENTS.md\n";
/// The text of a new configuration.
const CONFIG: &str = include_str!("init/config.toml");
/// What `--example` adds to it.
const EXAMPLE_CONFIG: &str = include_str!("init/example.toml");
/// The plan that `--example` writes, and its name.
const EXAMPLE_PLAN: &str = include_str!("init/example-plan.json");
const EXAMPLE_PLAN_FILE: &str = "example-plan.json";
/// The setting that shows that the executor is there already.
const EXAMPLE_EXECUTOR: &str = "executors.echo.";

const EXAMPLES: &str = "\
Creates missing files. Changes existing files only after a person confirms, or with --yes, and keeps \
their other content. Files: .waypost/, AGENTS.md (CLAUDE.md and GEMINI.md import it), and for
  claude, copilot  .mcp.json               amp       .amp/settings.json
  codex            .codex/config.toml      kiro      .kiro/settings/mcp.json
  cursor           .cursor/mcp.json        junie     .junie/mcp/mcp.json
  vscode           .vscode/mcp.json        roo       .roo/mcp.json
  gemini           .gemini/settings.json   continue  .continue/mcpServers/waypost.json
  opencode         opencode.json           zed       .zed/settings.json
For cline, windsurf and goose, which read only files of the user's own, it prints what to add.

The files start `waypost` on PATH, or, when this runs from npx or uvx, the same runner. With --command npx or \
--command uvx they work for everyone who has the runner, and nothing of Waypost has to be installed.

--example sets up no host unless one is named: it adds an executor to .waypost/config.toml and writes \
example-plan.json, which runs with it.

--git-hooks writes a prepare-commit-msg hook, and nothing else. A hook that is there already is kept and runs first.

Examples:
  waypost init --print
  waypost init --example
  waypost init --client claude --client codex
  waypost init --client cursor --command npx --yes
  waypost init --git
  waypost init --git-hooks";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Init {
    /// Agent host to set up [default: those found in the workspace or on PATH]
    #[arg(
        long = "client",
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(Host::names())
    )]
    clients: Vec<String>,
    /// Print what would be written, and write nothing
    #[arg(long)]
    print: bool,
    /// Change existing files without asking
    #[arg(long)]
    yes: bool,
    /// What hosts start: npx, uvx or a program [default: waypost, or the runner of this command]
    #[arg(long, value_name = "npx|uvx|PROGRAM", value_parser = NonEmptyStringValueParser::new())]
    command: Option<String>,
    /// Write an executor and a plan that runs with it, to try out
    #[arg(long)]
    example: bool,
    /// Share plans with the other clones of this repository: create the branch, or take up the remote's
    #[arg(long, conflicts_with_all = ["print", "example", "clients", "git_hooks"])]
    git: bool,
    /// Write only a git hook that names the claimed task in each commit (Waypost-Task: PLAN/TASK)
    #[arg(long, conflicts_with_all = ["clients", "example", "command"])]
    git_hooks: bool,
}

impl Init {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        if self.git {
            return git::run(context);
        }
        if self.git_hooks {
            return git_hook::install(context, self.print, self.yes);
        }
        let folders = context.folders()?;
        let by = context.actor()?.kind;
        let hosts = self.wanted(&folders.workspace);
        let entry = self.entry(context);
        let mut report = Report::new(&folders.workspace, hosts.iter().map(|host| host.word).collect());
        // What the file said before has to be trusted by somebody who has read it.
        let is_trusted = || load_config::not_trusted(&folders, by).is_ok_and(|why| why.is_none());
        let was_trusted = is_trusted();
        let was_there = folders.own.join(CONFIG_FILE).symlink_metadata().is_ok();
        let steps = self.steps(&folders, &hosts, &entry);
        if !self.print {
            must_be_writable(&steps, &folders)?;
        }
        let consents = self.consents(context, &steps, by == ActorKind::Person)?;
        for (step, consent) in steps.into_iter().zip(consents) {
            // A file that imports what was not written would say nothing.
            if step.is_text(IMPORT) && report.has(AGENTS, ChangeResult::Refused) {
                let why = format!("{AGENTS}, which it imports, could not be written");
                report.add(step.refused(why), ChangeResult::Refused);
                continue;
            }
            if step.is_text(IMPORT) && report.lacks(AGENTS) {
                report.add(step, ChangeResult::Declined);
                continue;
            }
            match self.apply(&step, consent) {
                Ok(fate) => report.add(step, fate),
                // One file that cannot be written keeps no other from being set up.
                Err(failure) => report.add(step.refused(failure.message), ChangeResult::Refused),
            }
        }
        let has_written = report.has_written(&name_of(&folders, CONFIG_FILE));
        if has_written && was_trusted && trust_prompt::is_present(context)? {
            folders.workspace_config()?.trust("init")?;
        }
        if self.example
            && !self.print
            && report.is_complete()
            && !report.has(EXAMPLE_PLAN_FILE, ChangeResult::Kept)
        {
            let here = std::env::current_dir().unwrap_or_default();
            let plan = seen_from(&here, &folders.workspace, &folders.workspace.join(EXAMPLE_PLAN_FILE));
            let config = seen_from(&here, &folders.workspace, &folders.own.join(CONFIG_FILE));
            let is_present = trust_prompt::is_present(context)?;
            report.next = match (is_trusted(), was_there && is_present) {
                (true, _) => example_commands(&plan, ""),
                // To name a file is to trust it, and this one may be somebody else's.
                (false, true) => [vec!["waypost trust".to_owned()], example_commands(&plan, "")].concat(),
                (false, false) => example_commands(&plan, &format!(" --config {config}")),
            };
            if was_there && !is_present && !is_trusted() {
                let words = "was here before: read it before you name it, which is consent to what it runs";
                context.out.note(format!("{config} {words}"));
            }
        }
        if !self.is_only_example() {
            self.note(context, &folders.workspace, &hosts, &entry, &report);
        }
        if !self.print
            && let Some(exposed) = repository::not_ignored(&folders.own)
        {
            context.out.note(exposed);
        }
        for host in hosts {
            let is_new = match host.file_in(&folders.workspace) {
                ConfigFile::Workspace(file) => report.has_written(file),
                ConfigFile::User(_) => !self.print,
            };
            if is_new {
                context.out.say(host.next);
            }
        }
        report.end(context, self.print)
    }

    /// Whether no host is to be set up.
    fn is_only_example(&self) -> bool {
        self.example && self.clients.is_empty()
    }

    fn wanted(&self, workspace: &Path) -> Vec<&'static Host> {
        let is_wanted = |host: &&Host| match self.clients.as_slice() {
            [] => !self.example && host.is_used(workspace, &is_program),
            named => named.iter().any(|word| word == host.word),
        };
        HOSTS.iter().filter(is_wanted).collect()
    }

    fn entry(&self, context: &Context) -> Entry {
        let mut arguments = vec!["mcp".to_owned()];
        arguments.extend(context.store_arguments());
        let launcher = self.command.as_deref().unwrap_or_else(|| {
            std::env::current_exe().ok().and_then(|program| runner_of(&program)).unwrap_or(NAME)
        });
        Entry {
            launcher: Launcher::new(launcher),
            launcher_said: self.command.is_some(),
            arguments,
            fields: hosts::FIELDS,
        }
    }

    /// Asks about every existing file before anything is written, so that a person who leaves at a question has changed nothing.
    /// Returns for each change why it is not made, if it is not.
    fn consents(
        &self,
        context: &Context,
        steps: &[FileChange],
        is_person: bool,
    ) -> Outcome<Vec<Option<ChangeResult>>> {
        let consent = |step: &FileChange| {
            let What::Change { .. } = step.what else { return Ok(None) };
            if self.print {
                return Ok(None);
            }
            if !is_person {
                return Ok(Some(ChangeResult::NeedsPerson));
            }
            if self.yes {
                return Ok(None);
            }
            if !prompt::can_ask() || context.out.json {
                return Ok(Some(ChangeResult::NeedsYes));
            }
            for line in report::shown(step) {
                context.out.say(line);
            }
            let agreed = prompt::confirm(&format!("change {}? [y/N]", step.name));
            let agreed = agreed.map_err(|failure| {
                let message = format!("{}, and nothing was written", failure.message);
                Failure { message, ..failure }
            })?;
            Ok((!agreed).then_some(ChangeResult::Declined))
        };
        steps.iter().map(consent).collect()
    }

    /// Makes one change, unless a reason says why not.
    fn apply(&self, step: &FileChange, why_not: Option<ChangeResult>) -> Outcome<ChangeResult> {
        let is_new = match &step.what {
            What::Same => return Ok(ChangeResult::Same),
            What::Kept(_) => return Ok(ChangeResult::Kept),
            What::Refused(_) => return Ok(ChangeResult::Refused),
            What::ForUser(_) => return Ok(ChangeResult::Shown),
            What::New(_) => true,
            What::Change { .. } => false,
        };
        if self.print {
            return Ok(if is_new { ChangeResult::WouldCreate } else { ChangeResult::WouldChange });
        }
        if let Some(why_not) = why_not {
            return Ok(why_not);
        }
        step.write()?;
        Ok(if is_new { ChangeResult::Created } else { ChangeResult::Changed })
    }

    /// The changes to all files, each file once.
    fn steps(&self, folders: &Folders, hosts: &[&Host], entry: &Entry) -> Vec<FileChange> {
        let mut steps = Vec::new();
        let root = folders.own.parent().unwrap_or(&folders.own);
        let own = folders.own.file_name().unwrap_or_default().to_string_lossy();
        let mut add_own = |file: &str, merge: &dyn Fn(Option<&str>) -> Result<Merged, Unmergeable>| {
            let relative = format!("{own}/{file}");
            steps.push(FileChange::new(root, &relative, name_of(folders, file), merge));
        };
        let is_exposed = repository::not_ignored(&folders.own).is_some();
        add_own(".gitignore", &|old| match old {
            Some(old) if is_exposed => Ok(Merged::Text(format!("{IGNORED}{old}"))),
            old => unless_there(old, IGNORED),
        });
        add_own(CONFIG_FILE, &|old| match self.example {
            true => with_example(old.unwrap_or(CONFIG)),
            false => unless_there(old, CONFIG),
        });
        let mut add = |file: &str, merge: &dyn Fn(Option<&str>) -> Result<Merged, Unmergeable>| {
            let step = FileChange::new(&folders.workspace, file, file.to_owned(), merge);
            // One name may be a link to another.
            if steps.iter().all(|other| other.path != step.path) {
                steps.push(step);
            }
        };
        if self.example {
            add(EXAMPLE_PLAN_FILE, &|old| match old {
                Some(old) if old != EXAMPLE_PLAN => {
                    Ok(Merged::Kept("it is not the example's plan".to_owned()))
                }
                old => unless_there(old, EXAMPLE_PLAN),
            });
        }
        if self.is_only_example() {
            return steps;
        }
        for host in hosts {
            match host.file_in(&folders.workspace) {
                ConfigFile::Workspace(file) => add(file, &|old| host.merged(old, entry)),
                ConfigFile::User(_) => {}
            }
        }
        let section = |old: Option<&str>| merge::section(old, &instructions::section());
        add(AGENTS, &section);
        let has_agents = !folders.workspace.join(AGENTS).is_dir();
        let import = |_: Option<&str>| Ok(Merged::Text(IMPORT.to_owned()));
        for host in HOSTS {
            let Some(file) = host.instead_of_agents else { continue };
            let path = folders.workspace.join(file);
            if is_text_of_its_own(&path) {
                add(file, &section);
            } else if has_agents
                && path.symlink_metadata().is_err()
                && hosts.iter().any(|wanted| wanted.word == host.word)
            {
                add(file, &import);
            }
        }
        for host in hosts {
            if let (ConfigFile::User(file), Ok(Merged::Text(text))) =
                (host.file_in(&folders.workspace), host.merged(None, entry))
            {
                steps.push(FileChange::for_user(file, text));
            }
        }
        steps
    }

    /// Prints notes about missing hosts and programs, and about entries that work only here.
    fn note(&self, context: &mut Context, workspace: &Path, hosts: &[&Host], entry: &Entry, report: &Report) {
        let command = &entry.launcher.command;
        if hosts.is_empty() {
            let words = Host::names().join(", ");
            context.out.note(format!("no agent host found here; set one up with --client: {words}"));
        } else if !is_program(command) {
            let hint = match &self.command {
                Some(_) => "install it before you start a host",
                None => "hosts will not find it; install it there, or use --command npx",
            };
            context.out.note(format!("{command} is not on PATH: {hint}"));
        }
        let is_shared = |host: &&Host| matches!(host.file_in(workspace), ConfigFile::Workspace(_));
        if context.has_password() && !hosts.is_empty() {
            context.out.note(
                "the password of the store is in none of the files, which can be committed: set PGPASSWORD or a \
                 password file where the hosts start",
            );
        }
        if hosts.iter().any(is_shared) && Path::new(command).is_absolute() {
            context.out.note(format!(
                "{command} is a path of this machine: do not commit it; --command npx works for everyone"
            ));
        }
        let is_written = |host: &&Host| match host.file_in(workspace) {
            ConfigFile::Workspace(file) => report.has_written(file),
            ConfigFile::User(_) => false,
        };
        if self.command.is_none() && command == NAME && hosts.iter().any(is_written) {
            context.out.note(
                "colleagues who use these files need waypost on PATH; with --command npx or --command uvx they need \
                 only that runner",
            );
        }
    }
}

/// Refuses to begin in a workspace in which this account can create nothing. A single file that it cannot write keeps no other
/// from being set up.
fn must_be_writable(steps: &[FileChange], folders: &Folders) -> Outcome {
    let root = folders.own.parent().unwrap_or(&folders.own);
    for folder in [folders.workspace.as_path(), root] {
        let real = folder.canonicalize();
        let real = real.map_err(|error| Failure::file(folder, &error))?;
        let is_written_there = |step: &FileChange| {
            let nearest = step.path.ancestors().skip(1).find(|above| above.is_dir());
            matches!(step.what, What::New(_) | What::Change { .. }) && nearest == Some(&real)
        };
        if steps.iter().any(is_written_there)
            && let Err(error) = files::may_create_in(&real)
        {
            let message = format!("{} cannot be written: {error}", real.display());
            let hint =
                "nothing was changed; let this account write there, or name another folder with -C DIR";
            return Err(Failure::failed(message, hint));
        }
    }
    Ok(())
}

/// The name in messages of a file in Waypost's own folder.
fn name_of(folders: &Folders, file: &str) -> String {
    let path = folders.own.join(file);
    path.strip_prefix(&folders.workspace).unwrap_or(&path).display().to_string()
}

/// Existing files belong to the operator.
fn unless_there(old: Option<&str>, text: &str) -> Result<Merged, Unmergeable> {
    Ok(if old.is_some() { Merged::Same } else { Merged::Text(text.to_owned()) })
}

/// What to type after `--example`.
fn example_commands(plan: &str, more: &str) -> Vec<String> {
    vec![format!("waypost run {plan} --dry-run{more}"), format!("waypost run {plan}{more}")]
}

/// How a file is named in a command that is typed in this folder.
fn seen_from(here: &Path, workspace: &Path, file: &Path) -> String {
    let above = || {
        let (inside, below) = (here.strip_prefix(workspace).ok()?, file.strip_prefix(workspace).ok()?);
        let up: PathBuf = inside.iter().map(|_| "..").collect();
        Some(up.join(below))
    };
    let path = above().unwrap_or_else(|| file.to_owned());
    waypost_text::shell_word(&path.display().to_string()).into_owned()
}

/// Adds the example's executor to a configuration. An executor of that name is the operator's own.
fn with_example(old: &str) -> Result<Merged, Unmergeable> {
    let settings = |text: &str| {
        let name = CONFIG_FILE.to_owned();
        Layer { origin: Origin::Workspace, name, text: text.to_owned() }.settings()
    };
    let has_executor =
        |settings: BTreeMap<String, String>| settings.keys().any(|name| name.starts_with(EXAMPLE_EXECUTOR));
    if settings(old).is_some_and(has_executor) {
        return Ok(Merged::Same);
    }
    let unmergeable = |why: String| Unmergeable { why, paste: EXAMPLE_CONFIG.to_owned() };
    if let Err(error) = DeTable::parse(old) {
        return Err(unmergeable(merge::not_toml(old, &error)));
    }
    let new = format!("{}\n\n{EXAMPLE_CONFIG}", old.trim_end());
    match settings(&new) {
        Some(_) => Ok(Merged::Text(new)),
        // No table can be added to an inline table.
        None => {
            let why = "its \"executors\" is an inline table; put this into it yourself".to_owned();
            Err(Unmergeable { why, paste: example_in_one_line() })
        }
    }
}

/// The example's executor as an item of an inline table.
fn example_in_one_line() -> String {
    let fields = EXAMPLE_CONFIG.lines().filter(|line| !line.starts_with(['#', '[']));
    let fields: Vec<&str> =
        fields.map(|line| line.split_once("  # ").map_or(line, |(field, _)| field)).collect();
    format!("echo = {{ {} }}", fields.join(", "))
}

/// Whether an instruction file exists, is not a link to AGENTS.md, and does not import it instead of having its own section.
fn is_text_of_its_own(path: &Path) -> bool {
    let leads_there = fs::read_link(path).is_ok_and(|to| to.file_name().is_some_and(|name| name == AGENTS));
    let is_import = |word: &str| {
        let file = word.strip_prefix('@').map(|file| file.trim_end_matches(['.', ',', ';', ':', ')', '!']));
        file.is_some_and(|file| file.strip_prefix("./").unwrap_or(file) == AGENTS)
    };
    let imports_it = || {
        fs::read_to_string(path)
            .is_ok_and(|text| text.split_whitespace().any(is_import) && !text.contains(instructions::BEGIN))
    };
    path.symlink_metadata().is_ok() && !leads_there && !imports_it()
}

/// Whether a shell would find this program.
fn is_program(name: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let runs = |path: &Path| {
        fs::metadata(path)
            .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return runs(Path::new(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| runs(&folder.join(name)))
}

#[cfg(test)]
mod tests {
    use waypost_config::Config;

    use super::*;

    #[test]
    fn the_new_configuration_says_nothing_and_what_it_shows_is_right() {
        let load = |text: String| {
            let layer = Layer { origin: Origin::Workspace, name: "config.toml".to_owned(), text };
            Config::load(&[layer], [])
        };
        let mut silent = load(CONFIG.to_owned()).unwrap();
        assert_eq!(std::mem::take(&mut silent.read_from), [Path::new("config.toml")]);
        assert_eq!(format!("{silent:?}"), format!("{:?}", Config::default()));
        let is_key = |line: &&str| line.starts_with('#') && !line.starts_with("# ") && line.len() > 1;
        let shown: Vec<&str> = CONFIG.lines().filter(is_key).map(|line| &line[1..]).collect();
        assert!(shown.len() > 5, "{shown:?}");
        let config = load(shown.join("\n"));
        assert!(config.is_ok(), "{}", config.unwrap_err());
    }
}
