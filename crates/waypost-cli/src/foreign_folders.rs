//! Folders of the workspace in which other programs keep plans: whether there are plans that were not imported, and frctl's index
//! of the plans beside it. Imports nothing.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use waypost_core::Draft;
use waypost_formats::frctl::{is_index_line, remove_from_index, update_index};
use waypost_formats::{Dialect, Unreadable, read};
use waypost_store::{ArchiveFilter, PlanStore, Query};

use crate::error::{Failure, Outcome};
use crate::files;
use crate::plan_folder::{INNER, plan_files};
use crate::runner::command;
use crate::view::text;
use waypost_text::shell_word;

/// The folders, and what `import` is to read of each.
const FOLDERS: [&str; 4] = [".clido/plans", ".frctl/plans", ".taskmaster", ".jaato"];
/// The formats that these programs keep plans in.
const DIALECTS: [Dialect; 4] = [Dialect::Clido, Dialect::Frctl, Dialect::TaskMaster, Dialect::Jaato];
/// Maximum number of files of a folder that are looked at.
const FILES_MAX: usize = 100;
/// Maximum bytes of a file that is looked at.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// frctl's index, beside its plans.
const INDEX: &str = "index.json";
/// How often a changed index is read again.
const INDEX_TRIES: usize = 3;

/// A folder with plans that were not imported.
pub struct ForeignFolder {
    path: String,
    /// The number of plans that are not in the store.
    plans: usize,
}

impl ForeignFolder {
    fn command(&self) -> String {
        format!("waypost import {}", shell_word(&self.path))
    }

    pub fn describe(&self) -> String {
        let plans = text::count(self.plans, "plan");
        format!("{} holds {plans} of another program; to import: `{}`", self.path, self.command())
    }

    pub fn to_json(&self) -> Value {
        json!({ "folder": self.path, "plans": self.plans, "import": command(&self.command()) })
    }
}

/// Returns the folders of a workspace whose plans are not all in the store, but for those that are linked: their files are taken in
/// by themselves. What cannot be read is left to `import`.
pub fn not_imported(workspace: &Path, plans: &PlanStore, linked: &[PathBuf]) -> Vec<ForeignFolder> {
    let here = std::env::current_dir().unwrap_or_default();
    let is_linked = |folder: &Path| fs::canonicalize(folder).is_ok_and(|folder| linked.contains(&folder));
    let folders = FOLDERS.iter().filter_map(|name| {
        let folder = workspace.join(name);
        if is_linked(&folder) {
            return None;
        }
        let missing =
            plans_in(&folder, &is_linked).into_iter().filter(|draft| !is_stored(plans, draft)).count();
        let path = folder.strip_prefix(&here).unwrap_or(&folder).display().to_string();
        (missing > 0).then_some(ForeignFolder { path, plans: missing })
    });
    folders.collect()
}

fn plans_in(folder: &Path, is_linked: &impl Fn(&Path) -> bool) -> Vec<Draft> {
    let inner = INNER.iter().map(|name| folder.join(name));
    let folders = [folder.to_owned()].into_iter().chain(inner);
    let folders = folders.filter(|folder| folder.is_dir() && !is_linked(folder));
    let paths = folders.flat_map(|folder| plan_files(&folder).unwrap_or_default()).take(FILES_MAX);
    let is_small = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.len() <= FILE_BYTES_MAX);
    let texts = paths.filter(is_small).filter_map(|path| Some((fs::read_to_string(&path).ok()?, path)));
    let drafts = texts.flat_map(|(text, path)| match read(&text, None, path.to_str()) {
        Ok(reading) if DIALECTS.contains(&reading.dialect) => reading.drafts,
        // Notes beside the plans.
        Ok(_) | Err(_) => Vec::new(),
    });
    drafts.filter(|draft| !is_index_line(draft)).collect()
}

/// Whether the store has the plan: by its id, or for a plan without one by its title.
fn is_stored(plans: &PlanStore, draft: &Draft) -> bool {
    match &draft.id {
        Some(id) => plans.store().query(|read| read.head(id)).is_ok_and(|head| head.is_some()),
        None => {
            let title = Some(draft.spec.title.clone()).filter(|title| !title.is_empty());
            let query = Query { text: title, shelf: ArchiveFilter::All, limit: 1, ..Query::default() };
            plans.heads(&query).is_ok_and(|page| page.total > 0)
        }
    }
}

/// Updates the index beside a file of frctl's that was written, if there is one or frctl expects one.
pub fn keep_index(written: &Path, dialect: Dialect, draft: &Draft) -> Outcome {
    let folder = written.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let path = folder.join(INDEX);
    let is_frctls = || fs::canonicalize(folder).is_ok_and(|folder| folder.ends_with(".frctl/plans"));
    if dialect != Dialect::Frctl || written == path || !(path.is_file() || is_frctls()) {
        return Ok(());
    }
    change_index(&path, |known| update_index(known, draft).map(Some))
}

/// Removes a plan whose file is gone from the index of its folder, if there is one.
pub fn drop_from_index(folder: &Path, draft: &Draft) -> Outcome {
    change_index(&folder.join(INDEX), |known| match known {
        Some(known) => remove_from_index(known, draft),
        None => Ok(None),
    })
}

/// Writes what `change` makes of an index, unless that is nothing. Another program may write it at the same time.
fn change_index(path: &Path, change: impl Fn(Option<&str>) -> Result<Option<String>, Unreadable>) -> Outcome {
    for _ in 0..INDEX_TRIES {
        let known = path.is_file().then(|| files::read(&path.display().to_string())).transpose()?;
        let index = change(known.as_deref());
        let index = index.map_err(|error| Failure::unreadable(&path.display().to_string(), error))?;
        let Some(index) = index else { return Ok(()) };
        let is_written = match &known {
            Some(known) if *known == index => true,
            Some(known) => files::replace(path, known, &index)?,
            None => files::write(path, &index, false).is_ok(),
        };
        if is_written {
            return Ok(());
        }
    }
    let message = format!("{} is changed all the time; the plan was not entered", path.display());
    Err(Failure::failed(message, "write the plan again"))
}
