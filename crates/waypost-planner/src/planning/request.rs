//! Planning requests, stored next to the journal so that another process can resume them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::{Bounds, Limits, Refining};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use waypost_core::{PlanId, TaskId};
use waypost_store::{make_state_folder, open_state_file};

/// Maximum number of directory entries read.
const ORDERS_MAX: usize = 100_000;
/// Maximum size of a stored request in bytes.
const ORDER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A text that the model was given to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    pub name: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "want", rename_all = "snake_case")]
pub enum PlanningGoal {
    /// A plan for a goal.
    Plan {
        goal: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        context: Vec<Text>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        map: String,
        /// Constraints on the plan.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        constraints: Vec<String>,
        /// Maximum number of tasks.
        tasks_max: usize,
        /// Whether its tasks are decomposed afterwards.
        #[serde(default)]
        decompose: bool,
        /// Whether a plan in prose is accepted.
        #[serde(default)]
        prose: bool,
    },
    /// Decomposition of goals.
    Decompose {
        /// The goal; `None` for the whole plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
    },
    /// Digests of finished work.
    Digest {
        /// The task; `None` for the whole plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
        /// Whether their fidelity is measured.
        #[serde(default)]
        examined: bool,
    },
}

impl PlanningGoal {
    /// Whether completing this goal also completes the other.
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Decompose { task: None }, Self::Decompose { task: Some(_) }) => true,
            (
                Self::Digest { task: None, examined },
                Self::Digest { task: Some(_), examined: other_examined },
            ) => examined == other_examined,
            (
                Self::Plan { .. } | Self::Decompose { .. } | Self::Digest { .. },
                Self::Plan { .. } | Self::Decompose { .. } | Self::Digest { .. },
            ) => self == other,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestLimits {
    /// Goals with this many ancestors are not decomposed.
    pub depth_max: usize,
    /// Maximum number of subtasks of a goal.
    pub children_max: usize,
    /// Maximum number of tasks in the plan.
    pub goals_max: usize,
    /// Maximum number of pending requests.
    pub parallel_max: usize,
    /// Whether remaining goals are refined after a part was decomposed.
    pub refine: bool,
    /// Limits on the total spent. The plan also stores the token budget, once it exists.
    #[serde(default)]
    pub limits: Limits,
}

impl Default for RequestLimits {
    fn default() -> Self {
        let bounds = Bounds::default();
        Self {
            depth_max: bounds.depth_max,
            children_max: bounds.children_max,
            goals_max: bounds.goals_max,
            parallel_max: bounds.parallel_max,
            refine: true,
            limits: Limits::default(),
        }
    }
}

impl RequestLimits {
    pub fn bounds(&self) -> Bounds {
        Bounds {
            depth_max: self.depth_max,
            children_max: self.children_max,
            goals_max: self.goals_max,
            parallel_max: self.parallel_max,
            ..Bounds::default()
        }
    }

    pub fn refining(&self) -> Refining {
        if self.refine { Refining::Rest } else { Refining::Nothing }
    }
}

/// The progress of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestProgress {
    /// Something is left to ask.
    Open,
    /// Nothing is left to ask within the limits, but limits prevented some goals from being decomposed.
    Bounded,
    /// A plan was shown and not saved.
    Shown,
    /// Completed, or given up for good.
    Closed,
}

impl RequestProgress {
    /// Whether the request can be resumed.
    pub fn is_unfinished(self) -> bool {
        match self {
            Self::Open | Self::Bounded => true,
            Self::Shown | Self::Closed => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanningRequest {
    /// The plan, which may not exist yet.
    pub plan: PlanId,
    #[serde(flatten)]
    pub want: PlanningGoal,
    pub extent: RequestLimits,
    /// A model to use instead of the configured ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Calls that the plan was charged for before its journal was started.
    #[serde(default)]
    pub calls_before: u64,
    pub stand: RequestProgress,
    /// Earlier unfinished requests for the same plan, the latest last. They are resumed when this request is closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Unfinished>,
}

/// An earlier request that another one has displaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    #[serde(flatten)]
    pub want: PlanningGoal,
    pub extent: RequestLimits,
    /// A model to use instead of the configured ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub stand: RequestProgress,
}

impl PlanningRequest {
    /// A request that has not been started.
    pub fn new(plan: PlanId, want: PlanningGoal, extent: RequestLimits, model: Option<String>) -> Self {
        Self { plan, want, extent, model, calls_before: 0, stand: RequestProgress::Open, earlier: Vec::new() }
    }

    /// Displaces the plan's current request. Keeps its unfinished parts, unless this request covers them.
    pub fn replace(&mut self, known: Self) {
        let Self { want, extent, model, stand, earlier, .. } = known;
        self.earlier = earlier;
        if stand.is_unfinished() {
            self.earlier.push(Unfinished { want, extent, model, stand });
        }
        let whole = &self.want;
        self.earlier.retain(|one| !whole.covers(&one.want));
    }

    /// Closes the request. The latest earlier unfinished one, if any, becomes the plan's request again.
    pub fn close(&mut self) {
        match self.earlier.pop() {
            Some(Unfinished { want, extent, model, stand }) => {
                (self.want, self.extent, self.model, self.stand) = (want, extent, model, stand);
            }
            None => self.stand = RequestProgress::Closed,
        }
    }

    /// Marks the request as bounded. The latest earlier request that is still open, if any, takes its place.
    pub fn bound(&mut self) {
        self.stand = RequestProgress::Bounded;
        let Some(place) = self.earlier.iter().rposition(|one| one.stand == RequestProgress::Open) else {
            return;
        };
        let open = self.earlier.remove(place);
        let bounded = Unfinished {
            want: std::mem::replace(&mut self.want, open.want),
            extent: std::mem::replace(&mut self.extent, open.extent),
            model: std::mem::replace(&mut self.model, open.model),
            stand: std::mem::replace(&mut self.stand, open.stand),
        };
        self.earlier.push(bounded);
    }

    /// A fingerprint of the goal and the model.
    pub fn fingerprint(&self) -> String {
        let said = serde_json::to_string(&(&self.want, &self.model)).unwrap_or_default();
        waypost_text::hex(digest(&SHA256, said.as_bytes()).as_ref())
    }
}

/// Why a stored request cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// An I/O error.
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    /// The file is not a stored request.
    #[error("{}: not a saved planning request: {why}", path.display())]
    Corrupt { path: PathBuf, why: String },
}

impl RequestError {
    pub fn path(&self) -> &Path {
        match self {
            Self::File { path, .. } | Self::Corrupt { path, .. } => path,
        }
    }
}

/// The directory of requests and journals.
#[derive(Clone, Debug)]
pub struct RequestStore {
    folder: PathBuf,
}

impl RequestStore {
    /// The directory need not exist.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The path of a plan's journal.
    pub fn journal(&self, plan: &PlanId) -> PathBuf {
        self.folder.join(format!("{plan}.jsonl"))
    }

    fn path(&self, plan: &PlanId) -> PathBuf {
        self.folder.join(format!("{plan}.json"))
    }

    /// The request of a plan, if there is one.
    pub fn find(&self, plan: &PlanId) -> Result<Option<PlanningRequest>, RequestError> {
        read(&self.path(plan))
    }

    /// All readable requests, the latest first, and errors for the others: one corrupt file does not hide the rest.
    pub fn all(&self) -> Result<(Vec<PlanningRequest>, Vec<RequestError>), RequestError> {
        let failed = |error| RequestError::File { path: self.folder.clone(), error };
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), Vec::new())),
            Err(error) => return Err(failed(error)),
        };
        let (mut found, mut bad) = (Vec::new(), Vec::new());
        for entry in entries.take(ORDERS_MAX) {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|ending| ending == "json") {
                let changed = fs::metadata(&path).and_then(|metadata| metadata.modified());
                let changed = changed.map_err(|error| RequestError::File { path: path.clone(), error });
                match changed.and_then(|changed| Ok((changed, read(&path)?))) {
                    Ok((changed, order)) => found.extend(order.map(|order| (changed, order))),
                    Err(error) => bad.push(error),
                }
            }
        }
        found.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.plan.cmp(&other.plan)));
        bad.sort_by(|one, other| one.path().cmp(other.path()));
        Ok((found.into_iter().map(|(_, order)| order).collect(), bad))
    }

    /// Stores a request in place of the previous one. It is synced to disk when this returns.
    pub fn keep(&self, order: &PlanningRequest) -> Result<(), RequestError> {
        let path = self.path(&order.plan);
        let failed = |error| RequestError::File { path: path.clone(), error };
        make_state_folder(&self.folder, 1).map_err(failed)?;
        let mut text = serde_json::to_string_pretty(order).map_err(|error| failed(error.into()))?;
        text.push('\n');
        let beside = path.with_extension("json.new");
        let mut file = open_state_file(&beside).map_err(failed)?;
        let written = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
        written.and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&beside, &path).map_err(failed)?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

fn read(path: &Path) -> Result<Option<PlanningRequest>, RequestError> {
    let failed = |error| RequestError::File { path: path.to_owned(), error };
    match fs::metadata(path) {
        Ok(metadata) if metadata.len() > ORDER_BYTES_MAX => {
            let why = format!("it has more than {ORDER_BYTES_MAX} bytes");
            return Err(RequestError::Corrupt { path: path.to_owned(), why });
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    let order = serde_json::from_str(&text);
    order.map(Some).map_err(|error| RequestError::Corrupt { path: path.to_owned(), why: error.to_string() })
}
