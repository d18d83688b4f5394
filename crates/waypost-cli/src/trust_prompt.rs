//! Shows a person at a terminal what a workspace's configuration runs and where it sends what, and asks whether to trust
//! it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use waypost_account::{Terminal, user_name};
use waypost_config::Config;
use waypost_core::{Actor, ActorKind, Proof, Refusal};
use waypost_text::reveal;

use crate::context::{Context, note_store};
use crate::error::{Failure, Outcome};
use crate::load_config::{self, Folders};
use crate::prompt::{ask_at, unusable};
use crate::workspace_config::{WorkspaceConfig, account_file};

/// Loads the configuration for a command that runs what it defines. A present person is asked to trust the workspace's. The
/// command itself says if it does not count: as a note, or as the reason why it fails.
pub fn load_config(context: &Context, folders: &Folders, named: Option<&Path>) -> Outcome<Config> {
    let by = context.actor()?.kind;
    if named.is_none() && load_config::not_trusted(folders, by)?.is_some() {
        // Nobody should be asked to trust, or told not to have trusted, what could not be used anyway.
        load_config::load_untrusted(folders, by)?;
        ask_if_present(context, folders)?;
    }
    load_config::load(folders, named, by)
}

/// Asks the person at the terminal to trust the workspace's configuration, if it needs trust and there is someone to ask.
pub fn ask_if_present(context: &Context, folders: &Folders) -> Outcome {
    let by = context.actor()?;
    if context.out.json || !is_present(context)? || load_config::not_trusted(folders, by.kind)?.is_none() {
        return Ok(());
    }
    let brought = folders.workspace_config()?;
    if ask(&brought, &mut open(&by)?)? {
        brought.trust("terminal")?;
        note_store(&context.store_location_of(&folders.workspace)?)?;
    }
    Ok(())
}

/// Whether the caller is a person at a terminal.
pub fn is_present(context: &Context) -> Outcome<bool> {
    let presence = context.caller()?.presence;
    Ok(presence.is_some_and(|presence| presence.proof >= Proof::Presence))
}

/// Opens the terminal of a person, who alone can trust a folder.
pub fn open(by: &Actor) -> Outcome<Terminal> {
    if by.kind != ActorKind::Person {
        let refusal = Refusal::OnlyAPerson { what: "trust a folder", by: by.clone() };
        return Err(Failure {
            code: "needs_person".to_owned(),
            hint: "ask a person to read it and run `waypost trust`".to_owned(),
            ..refusal.into()
        });
    }
    Terminal::open().map_err(|why| {
        let message = format!("trusting a folder needs a person at a terminal, and {why}");
        let hint = "run `waypost trust` in a terminal; for CI, set WAYPOST_TRUST to what `waypost trust --digest` prints";
        Failure { code: "needs_terminal".to_owned(), ..Failure::failed(message, hint) }
    })
}

/// Shows everything that the configuration says, or what changed since it was trusted. Returns whether the person
/// agrees.
pub fn ask(brought: &WorkspaceConfig, terminal: &mut Terminal) -> Outcome<bool> {
    for line in lines(brought)? {
        terminal.write_line(&line).map_err(unusable)?;
    }
    let typed = ask_at(terminal, "trust this folder? [y/N] ")?;
    Ok(matches!(typed.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn lines(brought: &WorkspaceConfig) -> Outcome<Vec<String>> {
    let root = &brought.root;
    let owner = fs::metadata(root).map_or_else(|_| "unknown".to_owned(), |found| user_name(found.uid()));
    let origin = clone_origin(root).unwrap_or_else(|| "none".to_owned());
    let mut lines = vec![
        format!("folder: {}", reveal(&root.display().to_string())),
        format!("owner: {}", reveal(&owner)),
        format!("origin of the clone: {}", reveal(&origin)),
    ];
    let files = brought.files();
    let settings = brought.settings();
    let record = brought.record().map_err(|error| account_file(&error))?;
    let before = record.as_ref().filter(|record| !record.settings.is_empty());
    match before {
        Some(record) => lines.push(format!("changed since {}:", record.trusted_at.to_the_second())),
        None => lines.push("what it sets:".to_owned()),
    }
    let old = before.map(|record| record.settings.clone()).unwrap_or_default();
    for (name, value) in settings.iter().filter(|(name, value)| old.get(*name) != Some(value)) {
        lines.push(format!("  {} = {}", reveal(name), reveal(value)));
        if let Some(was) = old.get(name) {
            lines.push(format!("    it was {}", reveal(was)));
        }
    }
    for name in old.keys().filter(|name| !settings.contains_key(*name)) {
        lines.push(format!("  {} is gone", reveal(name)));
    }
    let changed = before.map(|record| record.changes(&files));
    let is_news = |name: &&String| changed.as_ref().is_none_or(|changed| changed.contains(name));
    let others: Vec<&String> = files.keys().filter(is_news).filter(|name| !is_own(name)).collect();
    if !others.is_empty() {
        lines.push("files that it reads:".to_owned());
        lines.extend(others.into_iter().map(|name| format!("  {}", reveal(name))));
    }
    Ok(lines)
}

/// Whether a file's settings are shown one by one.
fn is_own(name: &str) -> bool {
    [".waypost/config.toml", ".waypost/todo.json", ".jaato/todo.json"].contains(&name)
}

/// The address that a repository was cloned from, without a password. Read from the file: git would run what the
/// repository configures.
fn clone_origin(root: &Path) -> Option<String> {
    let config = fs::read_to_string(root.join(".git/config")).ok()?;
    let mut lines = config.lines().map(str::trim).skip_while(|line| *line != "[remote \"origin\"]").skip(1);
    let url = lines.by_ref().take_while(|line| !line.starts_with('[')).find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "url").then(|| value.trim().to_owned())
    })?;
    Some(waypost_store::without_password(&url))
}
