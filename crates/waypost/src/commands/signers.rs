//! `waypost signers`: imports the keys that may sign approvals. Only a person does, after they have seen them.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;
use waypost_account::{AllowedSigners, NAMESPACE};
use waypost_text::{count, reveal};

use waypost_cli::actor::account;
use waypost_cli::approval_prompt::terminal;
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::files;
use waypost_cli::git_config;
use waypost_cli::prompt::{ask_at, unusable};
use waypost_cli::trust_prompt::is_present;
use waypost_cli::workspace_config::account_file;

const EXAMPLES: &str = "\
Shows the lines that are new, asks, and adds them to your allowed signers. Lines with another \
namespace than waypost, as git's often have, let nobody approve.

Examples:
  waypost signers import
  waypost signers import ~/.ssh/allowed_signers";

#[derive(Debug, Subcommand)]
pub(crate) enum Signers {
    /// Add the keys of an `allowed_signers` file to those that may sign approvals (people only)
    Import(Import),
}

impl Signers {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        match self {
            Self::Import(import) => import.run(context),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Import {
    /// File in the format of `ssh-keygen` [default: gpg.ssh.allowedSignersFile of git's global configuration]
    file: Option<PathBuf>,
}

impl Import {
    fn run(self, context: &mut Context) -> Outcome {
        let file = self.file.or_else(|| git_config::global_file("gpg.ssh.allowedSignersFile"));
        let Some(file) = file else {
            let hint = "name one: `waypost signers import FILE`";
            return Err(Failure::usage("git's global configuration names no file of signers", hint));
        };
        let named = context.load_config(&context.folders()?, None)?.approval.allowed_signers;
        let Some(target) = named.or_else(|| account().signer_files().into_iter().nth(1)) else {
            let hint = "name a file with approval.allowed_signers";
            return Err(Failure::failed("this account has no home to keep the signers in", hint));
        };
        let text = files::read(&file.to_string_lossy())?;
        let wrong = |error: waypost_account::SignerFileError| {
            Failure::failed(error.to_string(), "correct the line; nothing was imported")
        };
        AllowedSigners::parse(&file, text.as_bytes()).map_err(wrong)?;
        let known = account().read(&target).map_err(|error| account_file(&error))?.unwrap_or_default();
        let mut signers = String::from_utf8_lossy(&known).into_owned();
        let is_new = |line: &&str| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#') && !signers.lines().any(|known| known.trim() == line)
        };
        let new: Vec<&str> = text.lines().filter(is_new).collect();
        if !new.is_empty() {
            confirm(context, &new)?;
            if !signers.is_empty() && !signers.ends_with('\n') {
                signers.push('\n');
            }
            new.iter().for_each(|line| signers.extend([*line, "\n"]));
            AllowedSigners::parse(&target, signers.as_bytes()).map_err(wrong)?;
            account().write(&target, signers.as_bytes()).map_err(|error| account_file(&error))?;
        }
        if context.out.json {
            return context.out.value(&json!({ "file": target, "added": new }));
        }
        let is_foreign = |line: &&&str| line.contains("namespaces=") && !line.contains(NAMESPACE);
        let foreign = new.iter().filter(is_foreign).count();
        if foreign > 0 {
            context.out.note(format!("{} not for the namespace {NAMESPACE}", count(foreign, "line")));
        }
        context.out.line(format!("added {} to {}", count(new.len(), "signer"), target.display()));
        Ok(())
    }
}

/// Shows the lines to the person at the terminal, and asks.
fn confirm(context: &Context, lines: &[&str]) -> Outcome {
    if !is_present(context)? || context.out.json {
        let message = "importing signers needs a person at a terminal";
        let failure =
            Failure::failed(message, "run `waypost signers import` in a terminal, without --as and --json");
        return Err(Failure { code: "needs_terminal".to_owned(), ..failure });
    }
    let mut terminal = terminal("naming signers", "run `waypost signers import` in a terminal".to_owned())?;
    terminal.write_line("these may sign approvals:").map_err(unusable)?;
    for line in lines {
        terminal.write_line(&format!("  {}", reveal(line))).map_err(unusable)?;
    }
    let typed = ask_at(&mut terminal, "add them? [y/N] ")?;
    match typed.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::failed("no signer was added", "")),
    }
}
