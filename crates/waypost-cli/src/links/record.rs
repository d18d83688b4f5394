//! What is kept about a linked folder: which file is which plan, and what each file said when it was last read or written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use waypost_account::LinkRecords;
use waypost_core::PlanId;
use waypost_store::make_state_folder;

use crate::actor::account;
use crate::error::{Exit, Failure, Outcome};
use crate::files;
use crate::load_config::Folders;
use crate::store_location::StoreLocation;
use crate::workspace_config::account_file;

/// The folder of all links, in Waypost's own.
const LINKS: &str = "links";
/// The record of one link, in its folder.
const RECORD: &str = "link.json";
/// The folder with the last known texts.
const TEXTS: &str = "texts";
/// The folder with copies of files that have lost something.
const COPIES: &str = "copies";
/// How deep the folders of texts are in Waypost's own.
const TEXTS_LEVELS: usize = 3;
/// Maximum length of the name of a link's folder.
const NAME_MAX: usize = 200;

/// A linked folder.
#[derive(Debug)]
pub struct Link {
    /// Where its record is.
    state: PathBuf,
    record: Record,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Record {
    /// The linked folder.
    folder: PathBuf,
    /// The store whose plans they are.
    store: String,
    /// The files by name.
    files: BTreeMap<String, LinkedFile>,
    /// What a server noticed and nobody has read yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unreported: Vec<String>,
}

/// A file of a linked folder, and its plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkedFile {
    pub plan: PlanId,
    /// The version of the plan that the file has.
    pub version: u64,
    /// Whether the file is gone. What is known about it stays, because it may come back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

impl Link {
    /// Whether there are links here.
    pub fn are_in(folders: &Folders) -> bool {
        folders.own.join(LINKS).is_dir()
    }

    /// Returns all links that this account has made.
    pub fn all(folders: &Folders) -> Outcome<Vec<Self>> {
        Ok(Self::by_origin(folders)?.0)
    }

    /// Returns the links that another account has made, or that came with a clone. They have no effect.
    pub fn of_others(folders: &Folders) -> Outcome<Vec<Self>> {
        Ok(Self::by_origin(folders)?.1)
    }

    /// Returns the links that this account has made, and the others.
    fn by_origin(folders: &Folders) -> Outcome<(Vec<Self>, Vec<Self>)> {
        let folder = folders.own.join(LINKS);
        let entries = fs::read_dir(&folder).ok().filter(|_| !folders.is_foreign());
        let Some(entries) = entries else { return Ok(<_>::default()) };
        let mut states: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        states.sort();
        let links = states.into_iter().filter(|state| state.join(RECORD).is_file()).map(Self::read);
        let links = links.filter(|link| link.as_ref().map_or(true, |link| link.is_inside(folders)));
        let links: Vec<Self> = links.collect::<Outcome<_>>()?;
        if links.is_empty() {
            return Ok(<_>::default());
        }
        let noted = LinkRecords::of(account()).folders(&folders.own).map_err(|error| account_file(&error))?;
        Ok(links.into_iter().partition(|link| noted.contains(&link.record.folder)))
    }

    /// Notes that this account has made the link.
    fn adopt(&self, folders: &Folders) -> Outcome {
        let noted = LinkRecords::of(account()).note(&folders.own, &self.record.folder);
        match noted.map_err(|error| account_file(&error))? {
            true => Ok(()),
            false => Err(Failure::failed(
                format!("{} cannot be linked: this account has no home to note it in", self.shown()),
                "use `waypost import` and `waypost export`",
            )),
        }
    }

    fn read(state: PathBuf) -> Outcome<Self> {
        let path = state.join(RECORD);
        let text = files::read(&path.display().to_string())?;
        let record = serde_json::from_str(&text).map_err(|error| {
            let message = format!("{} is damaged: {error}", path.display());
            Failure::new(Exit::Failed, message, "remove the folder that it is in, then link again")
        })?;
        Ok(Self { state, record })
    }

    /// Reads the record again, which another process may have changed. Returns whether it is still there.
    pub fn refresh(&mut self) -> Outcome<bool> {
        let is_there = self.state.join(RECORD).is_file();
        if is_there {
            self.record = Self::read(self.state.clone())?.record;
        }
        Ok(is_there)
    }

    /// Returns the link of a folder, or a new one.
    pub fn of(folders: &Folders, folder: &Path, place: &StoreLocation) -> Outcome<Self> {
        let folder = inside(folders, folder)?;
        let (own, others) = Self::by_origin(folders)?;
        let known = own.into_iter().chain(others).find(|link| link.record.folder == folder);
        if let Some(link) = known {
            if !link.is_of(place) {
                let message = format!("{} is linked with another store", link.shown());
                return Err(Failure::failed(message, "unlink it there first"));
            }
            link.adopt(folders)?;
            return Ok(link);
        }
        let name: String =
            folder.display().to_string().chars().map(|c| if is_plain(c) { c } else { '+' }).collect();
        let state = folders.own.join(LINKS).join(&name[name.len().saturating_sub(NAME_MAX)..]);
        if state.join(RECORD).exists() {
            let message = format!("another folder is linked as {}", state.display());
            return Err(Failure::failed(message, "unlink that one first"));
        }
        let texts = state.join(TEXTS);
        make_state_folder(&texts, TEXTS_LEVELS).map_err(|error| Failure::file(&texts, &error))?;
        let record = Record { folder, store: place.location.clone(), ..Record::default() };
        let link = Self { state, record };
        link.adopt(folders)?;
        link.save()?;
        Ok(link)
    }

    /// Returns the link of a folder, which need not exist any more.
    pub fn find(folders: &Folders, folder: &Path) -> Outcome<Option<Self>> {
        let here = std::env::current_dir().map_err(|error| Failure::file(Path::new("."), &error))?;
        let wanted = fs::canonicalize(folder).unwrap_or_else(|_| here.join(folder));
        let (own, others) = Self::by_origin(folders)?;
        Ok(own.into_iter().chain(others).find(|link| link.record.folder == wanted))
    }

    /// Forgets the link. Files and plans stay.
    pub fn remove(self, folders: &Folders) -> Outcome {
        fs::remove_dir_all(&self.state).map_err(|error| Failure::file(&self.state, &error))?;
        let forgotten = LinkRecords::of(account()).forget(&folders.own, &self.record.folder);
        forgotten.map_err(|error| account_file(&error))
    }

    pub fn folder(&self) -> &Path {
        &self.record.folder
    }

    /// The folder as it is shown: from here, if it is below.
    pub fn shown(&self) -> String {
        let here = std::env::current_dir().unwrap_or_default();
        let folder = self.record.folder.strip_prefix(here).unwrap_or(&self.record.folder);
        if folder.as_os_str().is_empty() { ".".to_owned() } else { folder.display().to_string() }
    }

    /// Whether it belongs to this store.
    pub fn is_of(&self, place: &StoreLocation) -> bool {
        self.record.store == place.location
    }

    pub fn files(&self) -> &BTreeMap<String, LinkedFile> {
        &self.record.files
    }

    /// Notes that a file is gone.
    pub fn note_gone(&mut self, name: &str) -> Outcome {
        if let Some(file) = self.record.files.get_mut(name) {
            file.gone = true;
        }
        self.save()
    }

    /// The text of a file when it was last read or written.
    pub fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.state.join(TEXTS).join(name)).ok()
    }

    /// Notes down what a file says, and which version of its plan that is.
    pub fn note(&mut self, name: &str, text: &str, file: LinkedFile) -> Outcome {
        if self.text(name).as_deref() != Some(text) {
            let texts = self.state.join(TEXTS);
            make_state_folder(&texts, TEXTS_LEVELS).map_err(|error| Failure::file(&texts, &error))?;
            files::write(&texts.join(name), text, true)?;
        }
        if self.record.files.get(name) != Some(&file) {
            self.record.files.insert(name.to_owned(), file);
            self.save()?;
        }
        Ok(())
    }

    /// Keeps a copy of a file that is about to lose something. Returns where it is.
    pub fn keep_copy(&self, name: &str, version: u64, text: &str) -> Outcome<PathBuf> {
        let folder = self.state.join(COPIES);
        make_state_folder(&folder, TEXTS_LEVELS).map_err(|error| Failure::file(&folder, &error))?;
        let path = folder.join(format!("{version}-{name}"));
        files::write(&path, text, true)?;
        Ok(path)
    }

    pub fn leave_unreported(&mut self, notes: Vec<String>) -> Outcome {
        if notes.is_empty() {
            return Ok(());
        }
        self.record.unreported.extend(notes);
        self.save()
    }

    pub fn take_unreported(&mut self) -> Outcome<Vec<String>> {
        let notes = std::mem::take(&mut self.record.unreported);
        if !notes.is_empty() {
            self.save()?;
        }
        Ok(notes)
    }

    fn save(&self) -> Outcome {
        let text = serde_json::to_string_pretty(&self.record).unwrap_or_default();
        files::write(&self.state.join(RECORD), &text, true)
    }

    /// Whether the folder is still what was linked: a folder of the workspace, and not a link to somewhere else.
    fn is_inside(&self, folders: &Folders) -> bool {
        inside(folders, &self.record.folder).is_ok_and(|folder| folder == self.record.folder)
            || !self.record.folder.exists()
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')
}

/// Returns the real path of a folder of the workspace.
fn inside(folders: &Folders, folder: &Path) -> Outcome<PathBuf> {
    let found = fs::canonicalize(folder).map_err(|error| Failure::file(folder, &error))?;
    let root = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let main = folders.own.parent().unwrap_or(&folders.own);
    let is_own = found.starts_with(root(&folders.own));
    if !found.is_dir()
        || is_own
        || ![&*folders.workspace, main].iter().any(|path| found.starts_with(root(path)))
    {
        let message = format!("{} is not a folder of this workspace", folder.display());
        return Err(Failure::usage(message, "name a folder in which another program keeps plans"));
    }
    Ok(found)
}
