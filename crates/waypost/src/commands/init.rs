//! `waypost init`: registers Waypost with agent hosts and writes the instructions for agents.

mod file_change;
mod hosts;
mod merge;
mod report;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use clap::Args;
use waypost_config::{Layer, Origin};
use waypost_core::ActorKind;

use self::file_change::{FileChange, What};
use self::hosts::Host;
use self::merge::{Entry, Merged, Unmergeable};
use self::report::{ChangeResult, Report};
use crate::context::Context;
use crate::error::Outcome;
use crate::instructions;
use crate::load_config::{self, Folders};
use crate::output;
use crate::store_location::IGNORED;
use crate::trust_prompt;
use crate::workspace_config::{FILE as CONFIG_FILE, WorkspaceConfig};

/// The instruction file that most hosts read.
const AGENTS: &str = "AGENTS.md";
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
Creates missing files. Changes existing files only after a person confirms, or with --yes, and keeps
their other content. Files: .waypost/, AGENTS.md (and CLAUDE.md or GEMINI.md where there is one that does not point to it), and for
  claude  .mcp.json               cursor  .cursor/mcp.json    gemini  .gemini/settings.json
  codex   .codex/config.toml      vscode  .vscode/mcp.json
--example sets up no host unless one is named: it adds an executor to .waypost/config.toml and writes
example-plan.json, which runs with it.

Examples:
  waypost init --print
  waypost init --example
  waypost init --client claude --client codex
  waypost init --client cursor --command /opt/bin/waypost --yes";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Init {
    /// Agent host to set up [default: those found in the workspace or on PATH]
    #[arg(long = "client", value_enum, value_name = "NAME", value_delimiter = ',')]
    clients: Vec<Host>,
    /// Print what would be written, and write nothing
    #[arg(long)]
    print: bool,
    /// Change existing files without asking
    #[arg(long)]
    yes: bool,
    /// Program that hosts start [default: `waypost` on their PATH]
    #[arg(long, value_name = "PATH")]
    command: Option<String>,
    /// Write an executor and a plan that runs with it, to try out
    #[arg(long)]
    example: bool,
}

impl Init {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let folders = context.folders()?;
        let by = context.actor()?.kind;
        let clients = self.wanted(&folders.workspace);
        let entry = self.entry(context);
        let mut report =
            Report::new(&folders.workspace, clients.iter().map(|client| client.known().word).collect());
        // What the file said before has to be trusted by somebody who has read it.
        let is_trusted = || load_config::not_trusted(&folders, by).is_ok_and(|why| why.is_none());
        let was_trusted = is_trusted();
        for step in self.steps(&folders, &clients, &entry) {
            let fate = self.apply(context, &step, by == ActorKind::Person)?;
            report.add(step, fate);
        }
        let has_written = report.has_written(&name_of(&folders, CONFIG_FILE));
        if has_written && was_trusted && trust_prompt::is_present(context)? {
            WorkspaceConfig::read(&folders.own, &folders.workspace)?.trust("init")?;
        }
        if self.example && !self.print {
            report.next = example_commands(if is_trusted() { "" } else { " --config .waypost/config.toml" });
        }
        if !self.is_only_example() {
            self.note(context, &folders.workspace, &clients, &entry);
        }
        for client in clients.iter().filter(|client| report.has_written(client.known().file)) {
            context.out.say(client.known().next);
        }
        report.end(context, self.print)
    }

    /// Whether no host is to be set up.
    fn is_only_example(&self) -> bool {
        self.example && self.clients.is_empty()
    }

    fn wanted(&self, workspace: &Path) -> Vec<Host> {
        let mut clients = self.clients.clone();
        if clients.is_empty() && !self.example {
            clients = Host::ALL.to_vec();
            clients.retain(|client| client.is_used(workspace, &is_program));
        }
        clients.sort_unstable();
        clients.dedup();
        clients
    }

    fn entry(&self, context: &Context) -> Entry {
        let mut arguments = vec!["mcp".to_owned()];
        arguments.extend(context.store_arguments());
        Entry {
            command: self.command.clone().unwrap_or_else(|| merge::NAME.to_owned()),
            command_said: self.command.is_some(),
            arguments,
            more: &[],
        }
    }

    /// Applies one change, as far as it is permitted.
    fn apply(&self, context: &Context, step: &FileChange, is_person: bool) -> Outcome<ChangeResult> {
        let is_new = match &step.what {
            What::Same => return Ok(ChangeResult::Same),
            What::Kept(_) => return Ok(ChangeResult::Kept),
            What::Refused(_) => return Ok(ChangeResult::Refused),
            What::New(_) => true,
            What::Change { .. } => false,
        };
        if self.print {
            return Ok(if is_new { ChangeResult::WouldCreate } else { ChangeResult::WouldChange });
        }
        if is_new {
            step.write()?;
            return Ok(ChangeResult::Created);
        }
        if !is_person {
            return Ok(ChangeResult::NeedsPerson);
        }
        if !self.yes {
            if !output::can_ask() || context.out.json {
                return Ok(ChangeResult::NeedsYes);
            }
            for line in report::shown(step) {
                context.out.say(line);
            }
            if !output::says_yes(&format!("change {}? [y/N]", step.name)) {
                return Ok(ChangeResult::Declined);
            }
        }
        step.write()?;
        Ok(ChangeResult::Changed)
    }

    /// The changes to all files, each file once.
    fn steps(&self, folders: &Folders, clients: &[Host], entry: &Entry) -> Vec<FileChange> {
        let mut steps = Vec::new();
        let root = folders.own.parent().unwrap_or(&folders.own);
        let own = folders.own.file_name().unwrap_or_default().to_string_lossy();
        let mut add_own = |file: &str, merge: &dyn Fn(Option<&str>) -> Result<Merged, Unmergeable>| {
            let relative = format!("{own}/{file}");
            steps.push(FileChange::new(root, &relative, name_of(folders, file), merge));
        };
        add_own(".gitignore", &|old| unless_there(old, IGNORED));
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
            add(EXAMPLE_PLAN_FILE, &|old| unless_there(old, EXAMPLE_PLAN));
        }
        if self.is_only_example() {
            return steps;
        }
        for client in clients {
            add(client.known().file, &|old| client.merged(old, entry));
        }
        let section = |old: Option<&str>| merge::section(old, &instructions::section());
        add(AGENTS, &section);
        for file in Host::ALL.into_iter().filter_map(|host| host.known().instead_of_agents) {
            if is_text_of_its_own(&folders.workspace.join(file)) {
                add(file, &section);
            }
        }
        steps
    }

    /// Prints notes about missing hosts, programs and instruction files.
    fn note(&self, context: &mut Context, workspace: &Path, clients: &[Host], entry: &Entry) {
        if clients.is_empty() {
            let words: Vec<&str> = Host::ALL.iter().map(|client| client.known().word).collect();
            context
                .out
                .note(format!("no agent host found here; set one up with --client: {}", words.join(", ")));
        } else if !is_program(&entry.command) {
            let hint = match &self.command {
                Some(_) => "install it before you start a host",
                None => "hosts will not find it; install it there, or name it with --command PATH",
            };
            context.out.note(format!("{} is not on PATH: {hint}", entry.command));
        }
        for client in clients {
            if let Some(file) = client.known().instead_of_agents.filter(|file| !workspace.join(file).exists())
            {
                context.out.note(format!(
                    "{} does not read {AGENTS}: a {file} with the line @{AGENTS} lets it",
                    client.known().word
                ));
            }
        }
    }
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
fn example_commands(more: &str) -> Vec<String> {
    vec![
        format!("waypost run {EXAMPLE_PLAN_FILE} --dry-run{more}"),
        format!("waypost run {EXAMPLE_PLAN_FILE}{more}"),
    ]
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
    let new = format!("{}\n\n{EXAMPLE_CONFIG}", old.trim_end());
    match settings(&new) {
        Some(_) => Ok(Merged::Text(new)),
        None => Err(Unmergeable {
            why: "its executors are not written as tables; add this one yourself".to_owned(),
            paste: EXAMPLE_CONFIG.to_owned(),
        }),
    }
}

/// Whether an instruction file exists, is not a link to AGENTS.md, and does not refer to it instead of having its own section.
fn is_text_of_its_own(path: &Path) -> bool {
    let leads_there = fs::read_link(path).is_ok_and(|to| to.file_name().is_some_and(|name| name == AGENTS));
    let names_it = || {
        fs::read_to_string(path)
            .is_ok_and(|text| text.contains(AGENTS) && !text.contains(instructions::BEGIN))
    };
    path.symlink_metadata().is_ok() && !leads_there && !names_it()
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
