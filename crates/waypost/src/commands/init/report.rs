//! Reports the result for each file, to people and programs.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::file_change::{FileChange, What};
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::runner;
use waypost_cli::view::{text, unified_diff};

/// The result for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum ChangeResult {
    /// It is up to date.
    #[strum(serialize = "unchanged")]
    Same,
    /// It has a different entry on purpose and was left alone.
    Kept,
    Created,
    /// Our entry was merged into it.
    Changed,
    /// It would be created.
    WouldCreate,
    /// Our entry would be merged into it.
    WouldChange,
    /// A person declined the change.
    Declined,
    /// There was no terminal to ask for confirmation.
    NeedsYes,
    /// The caller is not a person, and only a person may change existing files.
    NeedsPerson,
    /// It cannot be merged.
    Refused,
    /// It is a file of the user's own: the text to add was printed.
    Shown,
}

impl ChangeResult {
    /// The name in JSON.
    fn as_str(self) -> &'static str {
        self.into()
    }

    fn is_written(self) -> bool {
        matches!(self, Self::Created | Self::Changed)
    }

    /// Whether required content is missing from the file.
    fn is_missing(self) -> bool {
        match self {
            Self::NeedsYes | Self::NeedsPerson | Self::Refused => true,
            Self::Same
            | Self::Kept
            | Self::Created
            | Self::Changed
            | Self::WouldCreate
            | Self::WouldChange
            | Self::Declined
            | Self::Shown => false,
        }
    }
}

/// The results for all files.
pub(super) struct Report {
    workspace: String,
    clients: Vec<&'static str>,
    files: Vec<(FileChange, ChangeResult)>,
    /// Commands to type next.
    pub(super) next: Vec<String>,
}

impl Report {
    pub(super) fn new(workspace: &Path, clients: Vec<&'static str>) -> Self {
        Self { workspace: workspace.display().to_string(), clients, files: Vec::new(), next: Vec::new() }
    }

    pub(super) fn add(&mut self, step: FileChange, fate: ChangeResult) {
        self.files.push((step, fate));
    }

    pub(super) fn has_written(&self, name: &str) -> bool {
        self.files.iter().any(|(step, fate)| step.name == name && fate.is_written())
    }

    /// Whether a person declined this file, or it lacks required content.
    pub(super) fn lacks(&self, name: &str) -> bool {
        let lacks = |fate: &ChangeResult| *fate == ChangeResult::Declined || fate.is_missing();
        self.files.iter().any(|(step, fate)| step.name == name && lacks(fate))
    }

    /// Whether this is the result for this file.
    pub(super) fn has(&self, name: &str, result: ChangeResult) -> bool {
        self.files.iter().any(|(step, fate)| step.name == name && *fate == result)
    }

    /// Whether all required content is written.
    pub(super) fn is_complete(&self) -> bool {
        !self.files.iter().any(|(_, fate)| fate.is_missing())
    }

    /// Prints the report. Returns an error if required content was not written.
    pub(super) fn end(self, context: &mut Context, only_print: bool) -> Outcome {
        let missing: Vec<&(FileChange, ChangeResult)> =
            self.files.iter().filter(|(_, fate)| fate.is_missing()).collect();
        if context.out.json {
            let mut answer = json!({
                "workspace": self.workspace,
                "clients": self.clients,
                "changed": self.files.iter().any(|(_, fate)| fate.is_written()),
                "files": self.files.iter().map(|(step, fate)| file_json(step, *fate)).collect::<Vec<_>>(),
            });
            if !self.next.is_empty() {
                let next: Vec<_> = self.next.iter().map(|line| runner::command(line)).collect();
                answer["next"] = json!(next);
            }
            let (Value::Object(facts), false) = (&answer, missing.is_empty()) else {
                return context.out.value(&answer);
            };
            let mut failure = failure(&missing);
            failure.facts.extend(facts.clone());
            return Err(failure);
        }
        for (step, fate) in &self.files {
            say(context, step, *fate);
        }
        if !missing.is_empty() {
            return Err(failure(&missing));
        }
        let is_as_it_was = self
            .files
            .iter()
            .all(|(_, fate)| matches!(fate, ChangeResult::Same | ChangeResult::Kept | ChangeResult::Shown));
        let is_kept = self.files.iter().any(|(_, fate)| *fate == ChangeResult::Kept);
        if is_as_it_was && is_kept {
            context.out.say("nothing was changed");
        } else if is_as_it_was {
            context.out.say("nothing to change: everything is set up");
        } else if only_print {
            context.out.say("nothing was written");
        }
        if !self.next.is_empty() {
            context.out.line("next:");
            self.next.iter().for_each(|command| context.out.line(format!("  {}", runner::command(command))));
        }
        Ok(())
    }
}

fn say(context: &mut Context, step: &FileChange, fate: ChangeResult) {
    let name = &step.name;
    match (fate, &step.what) {
        (ChangeResult::Same, _) => context.out.line(format!("as it was  {name}")),
        (ChangeResult::Created, _) => context.out.line(format!("made       {name}")),
        (ChangeResult::Changed, _) => context.out.line(format!("changed    {name}")),
        (ChangeResult::Declined, _) => context.out.line(format!("left       {name}")),
        (_, What::Kept(why)) => {
            context.out.line(format!("left       {name}"));
            context.out.note_fact(format!("{name}: {why}"));
        }
        (_, What::ForUser(text)) => {
            context.out.line(format!("add to {name}, a file of your own:"));
            context.out.line(text.trim_end());
        }
        (_, What::Refused(unmergeable)) => {
            context.out.line(format!("not written: {name}: {}", unmergeable.why));
            context.out.line(unmergeable.paste.trim_end());
        }
        (
            ChangeResult::WouldCreate
            | ChangeResult::WouldChange
            | ChangeResult::NeedsYes
            | ChangeResult::NeedsPerson
            | ChangeResult::Kept
            | ChangeResult::Refused
            | ChangeResult::Shown,
            _,
        ) => {
            for line in shown(step) {
                context.out.line(line);
            }
        }
    }
}

/// Shows the change to make: a diff, or the whole text of a new file.
pub(super) fn shown(step: &FileChange) -> Vec<String> {
    match &step.what {
        What::Same | What::Kept(_) | What::Refused(_) | What::ForUser(_) => Vec::new(),
        What::New(text) => {
            let mut lines = vec![format!("new file {}:", step.name)];
            lines.extend(text.lines().map(str::to_owned));
            lines
        }
        What::Change { old, new } => unified_diff::lines(&step.name, old, new),
    }
}

fn file_json(step: &FileChange, fate: ChangeResult) -> Value {
    let mut file = Map::new();
    file.insert("file".to_owned(), step.name.clone().into());
    file.insert("action".to_owned(), fate.as_str().into());
    let is_done = fate.is_written();
    match &step.what {
        What::New(text) if !is_done => {
            file.insert("text".to_owned(), text.clone().into());
        }
        What::Change { .. } if !is_done => {
            file.insert("diff".to_owned(), (shown(step).join("\n") + "\n").into());
        }
        What::Kept(why) => {
            file.insert("why".to_owned(), why.clone().into());
        }
        What::Refused(unmergeable) => {
            file.insert("why".to_owned(), unmergeable.why.clone().into());
            file.insert("paste".to_owned(), unmergeable.paste.clone().into());
        }
        What::ForUser(text) => {
            file.insert("paste".to_owned(), text.clone().into());
        }
        What::Same | What::New(_) | What::Change { .. } => {}
    }
    Value::Object(file)
}

fn failure(missing: &[&(FileChange, ChangeResult)]) -> Failure {
    let names: Vec<&str> = missing.iter().map(|(step, _)| step.name.as_str()).collect();
    let has = |wanted: ChangeResult| missing.iter().any(|(_, fate)| *fate == wanted);
    let count = text::count(names.len(), "file");
    let message = format!("{count} not written: {}", names.join(", "));
    let hint = if has(ChangeResult::NeedsPerson) {
        "agents cannot change existing files: a person can run this with --yes in their own terminal"
    } else if has(ChangeResult::NeedsYes) {
        "review what would be written, then use --yes"
    } else {
        "add the shown content yourself"
    };
    Failure { code: "not_written".to_owned(), ..Failure::failed(message, hint) }
}
