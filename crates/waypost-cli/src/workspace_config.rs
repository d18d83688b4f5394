//! The configuration that a workspace brings along, every file that loading it reads, and whether a person has trusted
//! exactly that on this account. Asks nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;
use waypost_account::{AccountFileError, TrustRecord, TrustRecords, trust_digest};
use waypost_config::{Config, Layer, NotTrusted, Origin, path_inside};
use waypost_core::{Actor, ActorKind};
use waypost_planner::Prompts;

use crate::actor::account;
use crate::error::{Failure, Outcome};
use crate::store_location::{TODO, todo_file};
use crate::view::text;

/// The name of the configuration file.
pub const FILE: &str = "config.toml";
/// The variable with the digest that a pipeline trusts.
pub const TRUST_VARIABLE: &str = "WAYPOST_TRUST";
/// Maximum bytes of a file that the configuration is read from.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The digests that a person has trusted in this process. An account without a home keeps no record.
static TRUSTED_NOW: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The content of a file, or why it cannot be read.
type Content = Result<Vec<u8>, (io::ErrorKind, String)>;

/// See the module.
pub struct WorkspaceConfig {
    /// The canonical path of the folder that `.waypost` is in.
    pub root: PathBuf,
    /// `todo.json`, then `config.toml`, as far as they exist.
    pub layers: Vec<Layer>,
    /// The folder that the names of files are relative to.
    base: PathBuf,
    /// Where the work is done, which prompts are relative to.
    workspace: PathBuf,
    /// What was read, so that what counts is what was compared.
    contents: Mutex<BTreeMap<PathBuf, Content>>,
}

impl WorkspaceConfig {
    /// Reads the files in the folder with a workspace's configuration. They are trusted for the folder that our own is in.
    pub fn read(own: &Path, config: &Path, workspace: &Path) -> Outcome<Self> {
        let base = config.parent().unwrap_or(config).to_owned();
        let root = own.parent().unwrap_or(own);
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let mut found = Self {
            root,
            layers: Vec::new(),
            base,
            workspace: workspace.to_owned(),
            contents: Mutex::default(),
        };
        for path in [todo_file(config), config.join(FILE)] {
            match found.text(&path) {
                Ok(text) => {
                    let name = path.display().to_string();
                    found.layers.push(Layer { origin: Origin::Workspace, name, text });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Failure::file(&path, &error)),
            }
        }
        Ok(found)
    }

    /// Whether the files say anything. One that cannot be parsed may.
    pub fn says_something(&self) -> bool {
        self.layers.iter().any(|layer| layer.settings().is_none_or(|settings| !settings.is_empty()))
    }

    /// Returns the name of the file in messages: its whole path unless it is in the workspace. In front of somebody who works
    /// in a linked worktree lies another file of the same name.
    pub fn name(&self) -> String {
        let Some(layer) = self.layers.last() else { return String::new() };
        let path = Path::new(&layer.name);
        path.strip_prefix(&self.workspace).unwrap_or(path).display().to_string()
    }

    /// Reads a file once; later calls return the same content.
    fn once(&self, path: &Path, read: impl FnOnce(&Path) -> io::Result<Vec<u8>>) -> io::Result<String> {
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        let read = || read(path).map_err(|error| (error.kind(), error.to_string()));
        let content = contents.entry(path.to_owned()).or_insert_with(read).clone();
        let bytes = content.map_err(|(kind, text)| io::Error::new(kind, text))?;
        String::from_utf8(bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
    }

    /// Reads a file that the configuration names.
    pub fn text(&self, path: &Path) -> io::Result<String> {
        self.once(path, read_plain)
    }

    /// Reads a file of the workspace. Refuses links that lead out of it.
    pub fn text_inside(&self, file: &str) -> io::Result<String> {
        self.once(&self.workspace.join(file), |_| read_plain(&path_inside(&self.workspace, file)?))
    }

    /// Returns the content of both files and of every file that loading them reads, by name.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let config = Config::of_layers(&self.layers, &|path| self.text(path));
        let own = config.planner.prompts.iter();
        let own = own.flat_map(|folder| Prompts::names().map(move |name| format!("{folder}/{name}.md")));
        for file in config.prompt_files().into_iter().chain(own) {
            let _absent = self.text_inside(&file);
        }
        let contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        let readable = contents.iter().filter_map(|(path, content)| Some((path, content.as_ref().ok()?)));
        readable.map(|(path, bytes)| (self.name_of(path), bytes.clone())).collect()
    }

    fn name_of(&self, path: &Path) -> String {
        let inside = path.strip_prefix(&self.workspace).or_else(|_| path.strip_prefix(&self.base));
        inside.unwrap_or(path).display().to_string()
    }

    /// Returns all settings by name.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let of_layer = |layer: &Layer| {
            let prefix = if layer.name.ends_with(TODO) { "todo.json: " } else { "" };
            let settings = layer.settings().unwrap_or_default().into_iter();
            settings.map(move |(name, value)| (format!("{prefix}{name}"), value))
        };
        self.layers.iter().flat_map(of_layer).collect()
    }

    /// Returns why the files do not count for this caller; `None` if they do, or if there is nothing to trust.
    pub fn not_trusted(
        &self,
        operator: &[PathBuf],
        by: ActorKind,
    ) -> Result<Option<NotTrusted>, AccountFileError> {
        if !self.says_something() || operator.contains(&self.root) {
            return Ok(None);
        }
        let record = self.record()?;
        let given = match by {
            ActorKind::Person => std::env::var(TRUST_VARIABLE).ok().filter(|digest| !digest.is_empty()),
            ActorKind::Agent | ActorKind::Worker | ActorKind::System => None,
        };
        let now = TRUSTED_NOW.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if record.is_none() && given.is_none() && now.is_empty() {
            // Nothing that a stranger's file names has to be read.
            return Ok(Some(NotTrusted { file: self.name(), changed: Vec::new() }));
        }
        let files = self.files();
        let digest = trust_digest(&files);
        let is_trusted = now.contains(&digest)
            || given.as_ref() == Some(&digest)
            || record.as_ref().is_some_and(|record| record.digest == digest);
        if is_trusted {
            return Ok(None);
        }
        let changed = record.map(|record| self.changes(&record, &files)).unwrap_or_default();
        Ok(Some(NotTrusted { file: self.name(), changed }))
    }

    /// Returns the record of what a person trusted here before.
    pub fn record(&self) -> Result<Option<TrustRecord>, AccountFileError> {
        TrustRecords::of(account()).read(&self.root)
    }

    /// Returns the names of the settings that differ from a record, then those of other files.
    fn changes(&self, record: &TrustRecord, files: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
        let settings = self.settings();
        let names: BTreeSet<&String> = settings.keys().chain(record.settings.keys()).collect();
        let differs = |name: &&String| settings.get(*name) != record.settings.get(*name);
        let mut changed: Vec<String> = match record.settings.is_empty() {
            true => Vec::new(),
            false => names.into_iter().filter(differs).cloned().collect(),
        };
        let own: Vec<String> = self.layers.iter().map(|layer| self.name_of(Path::new(&layer.name))).collect();
        let others =
            record.changes(files).into_iter().filter(|file| changed.is_empty() || !own.contains(file));
        let others: Vec<String> = others.collect();
        changed.extend(others);
        changed
    }

    /// Trusts what was read until this process ends: for what it has written itself. Returns its digest.
    pub fn trust_in_process(&self) -> String {
        let digest = trust_digest(&self.files());
        TRUSTED_NOW.lock().unwrap_or_else(PoisonError::into_inner).insert(digest.clone());
        digest
    }

    /// Records that a person trusts what was read. Returns whether the account can keep the record; without one the trust
    /// ends with the process.
    pub fn trust(&self, via: &str) -> Outcome<bool> {
        let by = Actor::person(account().name.as_str());
        let record = TrustRecord::new(&self.root, &self.files(), text::now(), by, via);
        let record = record.with_settings(self.settings());
        self.trust_in_process();
        TrustRecords::of(account()).write(&record).map_err(|error| account_file(&error))
    }
}

/// Converts the error of an account file to a command's failure.
pub fn account_file(error: &AccountFileError) -> Failure {
    Failure { code: error.code().to_owned(), ..Failure::failed(error.to_string(), error.hint()) }
}

/// Reads a plain file of bounded size. A stranger's file can name a pipe or a device.
fn read_plain(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::from(rustix::fs::open(
        path,
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    let mut bytes = Vec::new();
    if file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)? as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}
