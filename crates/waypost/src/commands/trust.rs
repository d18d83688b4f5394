//! `waypost trust` and `untrust`: which folders' configuration counts on this account.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use waypost_account::{RemoteTrust, Terminal, TrustRecord, TrustRecords, trust_digest};

use waypost_cli::actor::account;
use waypost_cli::context::{Context, note_store};
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::load_config::{self, Folders};
use waypost_cli::prompt::{ask_at, unusable};
use waypost_cli::shared_branch;
use waypost_cli::store_location::{FOLDER, StoreLocation};
use waypost_cli::trust_prompt;
use waypost_cli::view::text;
use waypost_cli::workspace_config::{WorkspaceConfig, account_file};

const TRUST_EXAMPLES: &str = "\
A folder's .waypost/config.toml names programs to run and addresses to send to, and it can come with a clone. Nothing of it \
counts until you have trusted it here; plans can be read and edited before. Trust holds for the content: after an edit you \
are asked again, and only the difference is shown. The files that the configuration names (schemas, prompts) are included.

If the repository shares plans, you are also asked whether to trust those of its remote: until then no agent is offered them.

Without a terminal: `waypost run --config FILE` uses the file that you name; a pipeline sets WAYPOST_TRUST to the digest \
that `waypost trust --digest` prints, and no other content is trusted.

Examples:
  waypost trust
  waypost trust ~/src/project
  waypost trust --digest
  waypost trust --list";

const UNTRUST_EXAMPLES: &str = "\
Examples:
  waypost untrust
  waypost untrust ~/src/project
  waypost untrust --gone";

/// What is said of a folder without a configuration.
const NOTHING: &str = "there is nothing to trust in";

#[derive(Debug, Args)]
#[command(after_help = TRUST_EXAMPLES)]
pub(crate) struct Trust {
    /// Folder to trust [default: the current workspace]
    path: Option<PathBuf>,
    /// Print the digest of the folder's configuration, and trust nothing
    #[arg(long)]
    digest: bool,
    /// List the trusted folders (current, changed, gone, or worktree of a bare repository) and remotes
    #[arg(long, conflicts_with_all = ["path", "digest"])]
    list: bool,
}

#[derive(Debug, Args)]
#[command(after_help = UNTRUST_EXAMPLES)]
pub(crate) struct Untrust {
    /// Folder to trust no longer, with the remote of its shared plans [default: the current workspace]
    path: Option<PathBuf>,
    /// Forget all folders that no longer exist
    #[arg(long, conflicts_with = "path")]
    gone: bool,
}

fn folders(context: &Context, path: Option<&Path>) -> Outcome<Folders> {
    let Some(path) = path else { return context.folders() };
    context.folders_of(&path.canonicalize().map_err(|error| Failure::file(path, &error))?)
}

impl Trust {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        if self.list {
            return list(context);
        }
        let folders = folders(context, self.path.as_deref())?;
        let brought = folders.workspace_config()?;
        let shown = brought.root.display().to_string();
        if self.digest {
            let digest = trust_digest(&brought.files());
            return match context.out.json {
                true => context.out.value(&json!({ "path": shown, "digest": digest })),
                false => {
                    context.out.line(digest);
                    Ok(())
                }
            };
        }
        let actor = context.actor()?;
        let by = actor.kind;
        let mut terminal = trust_prompt::open(&actor)?;
        if !trust_prompt::is_present(context)? {
            let failure = Failure::failed("--as: another name proves nothing", "leave --as out");
            return Err(Failure { code: "needs_person".to_owned(), ..failure });
        }
        let state = match load_config::not_trusted(&folders, by)? {
            None if !brought.says_something() => NOTHING,
            None => "already trusted:",
            Some(_) => {
                load_config::load_untrusted(&folders, by)?;
                if !trust_prompt::ask(&brought, &mut terminal)? {
                    return Err(Failure::failed(format!("{shown} is not trusted; nothing of it counts"), ""));
                }
                if !brought.trust("terminal")? {
                    let message = "this account has no home to keep the record in";
                    let hint = "name the file with --config FILE, or list the folder in [trust] of /etc/waypost/config.toml";
                    return Err(Failure::failed(message, hint));
                }
                "trusted"
            }
        };
        let place = context.store_location_of(&folders.workspace)?;
        let is_other_store = note_store(&place)?;
        let (was_asked, remote) = match trust_plans(context, &folders, &place, &mut terminal)? {
            Some(trusted) => (true, trusted),
            None => (false, None),
        };
        if context.out.json {
            let digest = trust_digest(&brought.files());
            let mut value = json!({ "path": shown, "digest": digest, "trusted": true });
            if let Some(remote) = remote {
                value["plans_from"] = remote.into();
            }
            return context.out.value(&value);
        }
        if let Some(remote) = remote {
            context.out.line(format!("trusted the plans of {remote}"));
        }
        if is_other_store {
            let words = "is trusted in place of the store that was there; approve again what it is to run";
            context.out.line(format!("{} {words}", place.shown()));
        } else if state != NOTHING || !was_asked {
            context.out.line(format!("{state} {shown}"));
        }
        Ok(())
    }
}

/// Asks to trust the plans that travel with the repository, if there are any and nobody has. Returns the remote
/// if it is trusted now; `None` if nobody was asked.
fn trust_plans(
    context: &Context,
    folders: &Folders,
    place: &StoreLocation,
    terminal: &mut Terminal,
) -> Outcome<Option<Option<String>>> {
    let config = load_config::load(folders, None, context.actor()?.kind)?;
    // Most folders share no plans, and some are in no repository.
    let Ok(mut found) = shared_branch::find_with(&folders.workspace, &config, place) else { return Ok(None) };
    let shared = &found.shared;
    let tracking = shared.remote.as_ref().map(|remote| shared.name.tracking(remote));
    let names = std::iter::once(shared.name.as_str()).chain(tracking.as_deref());
    let tips = names.map(|name| shared.repository.tip(name));
    let has_branch =
        tips.collect::<Result<Vec<_>, _>>().map_err(shared_branch::failure)?.iter().any(Option::is_some);
    if !has_branch {
        return Ok(None);
    }
    let plans = context.plans_in(place)?;
    let withheld = context.service(&plans).withheld_here(shared)?;
    if shared.trusted && withheld.is_empty() {
        return Ok(None);
    }
    let (branch, address) = (found.branch_name(), found.shown());
    terminal.write_line(&format!("this repository shares plans: {branch} of {address}")).map_err(unusable)?;
    terminal
        .write_line(
            "whoever may push there writes what your agents read as tasks; nothing of it starts by itself",
        )
        .map_err(unusable)?;
    for withheld in &withheld {
        let plan = &withheld.plan;
        let line = match withheld.is_strange {
            true => format!("plan {plan} has records that neither this clone nor {branch} wrote"),
            false => format!("plan {plan} came from there, and agents are offered none of it yet"),
        };
        terminal.write_line(&line).map_err(unusable)?;
    }
    let typed = ask_at(terminal, "trust these plans? [y/N] ")?;
    if !matches!(typed.trim().to_lowercase().as_str(), "y" | "yes")
        || !found.trust(context.actor()?, "terminal")?
    {
        return Ok(Some(None));
    }
    context.service(&plans).release_withheld(&context.caller()?, &found.shared)?;
    Ok(Some(Some(format!("{branch} ({address})"))))
}

impl Untrust {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let records = TrustRecords::of(account());
        let folders = match self.gone {
            true => {
                let known = records.list().map_err(|error| account_file(&error))?;
                let gone = known.iter().filter(|record| state(record) == "gone");
                gone.map(|record| PathBuf::from(&record.path)).collect()
            }
            false => match &self.path {
                // A folder that no longer exists can be named as the list shows it.
                Some(path) if !path.exists() => vec![path.clone()],
                path => {
                    let found = folders(context, path.as_deref())?;
                    vec![found.workspace_config()?.root]
                }
            },
        };
        let mut removed = Vec::new();
        for folder in folders {
            if records.remove(&folder).map_err(|error| account_file(&error))? {
                removed.push(folder.display().to_string());
            }
        }
        removed.extend(self.untrust_remote(context)?);
        if context.out.json {
            return context.out.value(&json!({ "removed": removed }));
        }
        if removed.is_empty() {
            context.out.line("nothing was trusted there");
        }
        removed.iter().for_each(|folder| context.out.line(format!("no longer trusted: {folder}")));
        Ok(())
    }
}

impl Untrust {
    /// Removes the trust in the remote of the folder's shared plans. Returns what is trusted no longer.
    fn untrust_remote(&self, context: &Context) -> Outcome<Option<String>> {
        if self.gone || self.path.as_ref().is_some_and(|path| !path.exists()) {
            return Ok(None);
        }
        let folders = folders(context, self.path.as_deref())?;
        let config = load_config::load(&folders, None, context.actor()?.kind)?;
        let place = context.store_location_of(&folders.workspace)?;
        // Most folders share no plans, and some are in no repository.
        let Ok(found) = shared_branch::find_with(&folders.workspace, &config, &place) else {
            return Ok(None);
        };
        let name = found.shared.name.as_str();
        let removed = RemoteTrust::remove(account(), &found.shared.address, name);
        let removed = removed.map_err(|error| account_file(&error))?;
        Ok(removed.then(|| format!("{} ({})", found.branch_name(), found.shown())))
    }
}

fn list(context: &mut Context) -> Outcome {
    let remotes = RemoteTrust::list(account()).map_err(|error| account_file(&error))?;
    let address = |remote: &RemoteTrust| waypost_store::without_password(&remote.address);
    let records = TrustRecords::of(account()).list().map_err(|error| account_file(&error))?;
    if context.out.json {
        let shown = records.iter().map(|record| {
            json!({ "path": record.path, "digest": record.digest, "trusted_at": record.trusted_at,
                "by": record.by, "via": record.via, "state": state(record) })
        });
        let shown: Vec<serde_json::Value> = shown.collect();
        let remotes = remotes.iter().map(|remote| {
            json!({ "address": address(remote), "reference": remote.reference,
                "trusted_at": remote.trusted_at, "by": remote.by, "via": remote.via })
        });
        let remotes: Vec<serde_json::Value> = remotes.collect();
        return context.out.value(&json!({ "folders": shown, "remotes": remotes }));
    }
    if records.is_empty() {
        context.out.say("no folder is trusted");
    }
    for record in &records {
        let at = record.trusted_at.to_the_second();
        context.out.line(format!("{:<8} {at}  {}", state(record), text::one_line(&record.path)));
    }
    for remote in &remotes {
        let at = remote.trusted_at.to_the_second();
        let from = format!("{} of {}", remote.reference, address(remote));
        context.out.line(format!("plans    {at}  {}", text::one_line(&from)));
    }
    Ok(())
}

/// Whether a folder still has the content that was trusted.
fn state(record: &TrustRecord) -> &'static str {
    let root = Path::new(&record.path);
    let own = root.join(FOLDER);
    let brought = match root.is_dir() {
        true => WorkspaceConfig::read(&own, &own, root),
        false => return "gone",
    };
    match brought {
        // A bare repository: what was trusted is committed to its worktrees.
        Ok(brought) if brought.layers.is_empty() && !root.join(".git").exists() => "worktree",
        Ok(brought) if trust_digest(&brought.files()) == record.digest => "current",
        Ok(_) | Err(_) => "changed",
    }
}
