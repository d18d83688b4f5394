//! `waypost link` and `unlink`: folders whose files and plans are kept together.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use waypost_cli::context::Context;
use waypost_cli::error::{Exit, Failure, Outcome};
use waypost_cli::links::{FileChange, Link, LinkedFile, Reporting, Synced, sync};
use waypost_cli::view::text;
use waypost_text::shell_word;

const LINK_EXAMPLES: &str = "\
The files of a linked folder stay files of the program that they belong to. Before and after every command, files that were \
added or edited are written into their plans, and plans that have changed into their files; `mcp`, `serve`, `worker`, `run` \
and `tui` also do so meanwhile. What a file and its plan have both changed counts as the file says, and is named. A file is \
taken in with the rights of an agent, and brings no approval. Without a folder, the links are listed.

Examples:
  waypost link .clido/plans
  waypost link .frctl/plans
  waypost link";

const UNLINK_EXAMPLES: &str = "\
Examples:
  waypost unlink .clido/plans";

#[derive(Debug, Args)]
#[command(after_help = LINK_EXAMPLES)]
pub(crate) struct LinkFolder {
    /// Folder in which another program keeps plans, one in a file
    folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = UNLINK_EXAMPLES)]
pub(crate) struct Unlink {
    /// Folder whose files and plans are no longer kept together
    folder: PathBuf,
}

impl LinkFolder {
    /// Whether it only lists the links.
    pub(crate) fn is_list(&self) -> bool {
        self.folder.is_none()
    }

    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let Some(folder) = &self.folder else { return list(context) };
        context.caller()?.may_edit()?;
        let plans = context.plans_to_add_to()?;
        let mut link = Link::of(&context.folders()?, folder, &context.store_location()?)?;
        let Synced { changes, notes } = sync(context, &plans, &mut link, Reporting::Now)?;
        let shown = link.shown();
        notes.iter().for_each(|note| context.out.note(note));
        if context.out.json {
            let files: Vec<_> = changes.iter().map(to_json).collect();
            return context.out.value(&json!({ "folder": shown, "files": files }));
        }
        let linked = changes.iter().filter(|change| change.plan.is_some());
        let linked: Vec<String> = linked
            .filter_map(|change| Some(format!("{} is plan {}", change.file, change.plan.as_ref()?)))
            .collect();
        for line in &linked {
            context.out.line(line);
        }
        let count = text::count(linked.len(), "plan");
        context.out.say(format!(
            "{shown} is linked with {count}; `waypost unlink {}` ends it",
            shell_word(&shown.to_string())
        ));
        Ok(())
    }
}

fn to_json(change: &FileChange) -> serde_json::Value {
    json!({ "file": change.file, "plan": change.plan, "change": change.what, "note": change.note })
}

fn list(context: &mut Context) -> Outcome {
    let links = Link::all(&context.folders()?)?;
    let present = |link: &Link| -> BTreeMap<String, LinkedFile> {
        let files = link.files().iter().filter(|(_, file)| !file.gone);
        files.map(|(name, file)| (name.clone(), file.clone())).collect()
    };
    if context.out.json {
        let to_json = |link: &Link| json!({ "folder": link.shown(), "files": present(link) });
        return context.out.value(&json!({ "links": links.iter().map(to_json).collect::<Vec<_>>() }));
    }
    if links.is_empty() {
        context.out.say("no folder is linked: `waypost link FOLDER` links one");
    }
    for link in &links {
        context.out.line(format!("{}  {}", link.shown(), text::count(present(link).len(), "plan")));
    }
    Ok(())
}

impl Unlink {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        context.caller()?.may_edit()?;
        let folders = context.folders()?;
        let Some(link) = Link::find(&folders, &self.folder)? else {
            let message = format!("{} is not linked", self.folder.display());
            return Err(Failure::new(Exit::NotFound, message, "`waypost link` lists the linked folders"));
        };
        let shown = link.shown();
        link.remove(&folders)?;
        if context.out.json {
            return context.out.value(&json!({ "folder": shown, "linked": false }));
        }
        context.out.line(format!("{shown} is no longer linked; its files and their plans stay"));
        Ok(())
    }
}
