//! Reads plans from a file, from standard input or from the store.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use waypost_core::{Draft, Problem, TaskId, nearest};
use waypost_formats::{Dialect, Reading, read};
use waypost_service::ApprovalBundle;
use waypost_text::shell_word;

use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::files;

/// Files of a folder whose names are compared with one that is not there.
const FILES_COMPARED_MAX: usize = 10_000;

/// The plans from one source.
pub struct Source {
    /// Its name in messages.
    pub name: String,
    pub reading: Reading,
}

impl Source {
    /// Reads a file; `-` is standard input.
    pub fn file(path: &str, dialect: Option<Dialect>) -> Outcome<Self> {
        let text = files::read(path)?;
        Self::text(path, &text, dialect)
    }

    /// Reads a text that came from `path`.
    pub fn text(path: &str, text: &str, dialect: Option<Dialect>) -> Outcome<Self> {
        let file_name = (path != "-").then_some(path);
        let name = files::name_of(path).to_owned();
        // Of a plan with its approval, the plan.
        let plan = ApprovalBundle::read(text).and_then(Result::ok).map(|bundle| bundle.plan.to_string());
        let reading = read(plan.as_deref().unwrap_or(text), dialect, file_name)
            .map_err(|error| Failure::unreadable(&name, error))?;
        Ok(Self { name, reading })
    }

    /// All problems: of the text in its format, and of the plans in it.
    pub fn problems(&self) -> Vec<(Option<String>, Problem)> {
        let problems = self.reading.all_problems();
        problems.into_iter().map(|problem| (Some(self.name.clone()), problem)).collect()
    }
}

/// Reads a file that `waypost export --approval` wrote.
pub fn bundle(path: &str) -> Outcome<ApprovalBundle> {
    let read = ApprovalBundle::read(&files::read(path)?);
    let why = match read {
        Some(Ok(bundle)) => return Ok(bundle),
        Some(Err(error)) => error.to_string(),
        None => "it has another format".to_owned(),
    };
    let message = format!("{} is not a plan with its approval: {why}", files::name_of(path));
    Err(Failure::failed(message, "`waypost export PLAN --approval` writes such a file"))
}

/// Whether an argument names a file rather than a plan of the store.
pub fn is_file(word: &str) -> bool {
    word == "-" || Path::new(word).is_file()
}

/// Refuses a word that names both a plan of the store and a file: whoever writes files here would choose what is run.
pub fn names_one_thing(context: &Context, word: &str) -> Outcome {
    let is_bare_name = word != "-" && !word.contains('/') && is_file(word);
    match is_bare_name.then(|| context.find(word)) {
        Some(Ok(found)) => {
            let message = format!("{word} is a file, and plan {} of the store is called so too", found.id);
            let hint = format!("write ./{word} for the file; to run the plan, rename the file");
            Err(Failure::usage(message, hint))
        }
        // More plans than one begin with the word, which is no reason to take the file.
        Some(Err(failure)) if failure.code == "ambiguous" => {
            let message =
                format!("{word} is a file, and plans of the store begin with it: {}", failure.message);
            let hint = format!("write ./{word} for the file, or the whole id of the plan");
            Err(Failure::usage(message, hint))
        }
        Some(Err(_)) | None => Ok(()),
    }
}

/// Reads the single plan that an argument names, from a file or from the store.
pub fn one_plan(context: &mut Context, word: &str, dialect: Option<Dialect>) -> Outcome<Draft> {
    names_one_thing(context, word)?;
    if !is_file(word) {
        let found = context.find(word).map_err(|failure| or_file(word, failure))?;
        return found.view(context, |plan, _| plan.to_draft());
    }
    Ok(file_plan(context, word, dialect)?.draft)
}

/// The single plan of a file, and its source.
pub struct FilePlan {
    pub draft: Draft,
    /// The ids that were assigned to tasks because the text does not name them.
    pub assigned_ids: HashSet<TaskId>,
    /// Whether the id follows from the content, because the text does not name one.
    pub is_id_derived: bool,
    /// The format that it was read as.
    pub dialect: Dialect,
    /// The text of the file.
    pub text: String,
    /// What changes when it is read.
    pub notes: Vec<String>,
}

/// Reads the single plan of a file.
pub fn file_plan(context: &mut Context, path: &str, dialect: Option<Dialect>) -> Outcome<FilePlan> {
    let text = files::read(path)?;
    file_plan_of(context, path, text, dialect)
}

/// Like [`file_plan`], for a text that was read already.
pub fn file_plan_of(
    context: &mut Context,
    path: &str,
    text: String,
    dialect: Option<Dialect>,
) -> Outcome<FilePlan> {
    let source = Source::text(path, &text, dialect)?;
    let problems = source.problems();
    if !problems.is_empty() {
        return Err(Failure::invalid("the plan", &problems));
    }
    for note in &source.reading.notes {
        context.out.note_fact(format!("{}: {note}", source.name));
    }
    let Reading { drafts, dialect, assigned_ids, derived_ids, notes, .. } = source.reading;
    let count = drafts.len();
    let mut drafts = drafts.into_iter();
    match (drafts.next(), drafts.next()) {
        (Some(draft), None) => {
            let is_id_derived = draft.id.as_ref().is_some_and(|id| derived_ids.contains(id));
            Ok(FilePlan { draft, assigned_ids, is_id_derived, dialect, text, notes })
        }
        (_, _) => {
            let message = format!("{} holds {count} plans, and one is needed", source.name);
            Err(Failure::usage(message, "import it, then name the plan"))
        }
    }
}

/// Adapts the error for an argument that is neither a plan nor a file, and may be a mistyped path.
pub fn or_file(word: &str, mut failure: Failure) -> Failure {
    if word.contains(['/', '.']) && failure.code == "no_such_plan" {
        failure.message = format!("{word} is neither a file nor a plan");
        let path = match file_near(Path::new(word)) {
            Some(near) => format!("did you mean {}?", shell_word(&near.display().to_string())),
            None => "check the path;".to_owned(),
        };
        failure.hint = format!("{path} `waypost list` shows the plans");
    }
    failure
}

/// Returns the file of the same folder whose name is spelled alike.
fn file_near(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let there = fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?.take(FILES_COMPARED_MAX);
    let is_file = |entry: &fs::DirEntry| entry.path().is_file();
    let names: Vec<String> =
        there.flatten().filter(is_file).filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let near = nearest(path.file_name()?.to_str()?, names.iter().map(String::as_str))?;
    Some(path.with_file_name(near))
}
