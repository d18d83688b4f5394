//! What was asked to be thought about, kept beside the journal so that another process can go on with it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::{Bounds, Limits, Refining};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use waypost_core::{PlanId, TaskId};

/// Orders that are looked at.
const ORDERS_MAX: usize = 100_000;
/// Bytes of an order that are read.
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
        /// Texts to read.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        context: Vec<Text>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        map: String,
        /// What the plan must heed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        constraints: Vec<String>,
        /// Tasks that it may have.
        tasks_max: usize,
        /// Whether its tasks are broken down afterwards.
        #[serde(default)]
        decompose: bool,
        /// Whether a plan in prose is taken.
        #[serde(default)]
        prose: bool,
    },
    /// Goals that are small enough.
    Decompose {
        /// The goal; none: all of the plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
    },
    /// Digests of finished work.
    Digest {
        /// The task; none: all of the plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
        /// Whether it is measured how faithful they are.
        #[serde(default)]
        examined: bool,
    },
}

impl PlanningGoal {
    /// Whether nothing of the other is left when this is done.
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
    /// Goals with so many goals above them are not broken down any more.
    pub depth_max: usize,
    /// Children that a goal has at the most.
    pub children_max: usize,
    /// Tasks that the plan has at the most.
    pub goals_max: usize,
    /// Questions that are under way at once.
    pub parallel_max: usize,
    /// Whether the rest is looked at again when a part has been thought through.
    pub refine: bool,
    /// What may be spent. The budget of tokens stands on the plan as well, as soon as there is one.
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
    /// The bounds of a session.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            depth_max: self.depth_max,
            children_max: self.children_max,
            goals_max: self.goals_max,
            parallel_max: self.parallel_max,
            ..Bounds::default()
        }
    }

    /// Whether the rest is refined.
    pub fn refining(&self) -> Refining {
        if self.refine { Refining::Rest } else { Refining::Nothing }
    }
}

/// How far an order has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestProgress {
    /// Something is left to ask.
    Open,
    /// Nothing is left to ask but of goals that a bound keeps from being broken down.
    Bounded,
    /// A plan was shown and not saved.
    Shown,
    /// It was done, or given up for good.
    Closed,
}

impl RequestProgress {
    /// Whether somebody may go on with it.
    pub fn is_unfinished(self) -> bool {
        match self {
            Self::Open | Self::Bounded => true,
            Self::Shown | Self::Closed => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanningRequest {
    /// The plan, which may have to be made yet.
    pub plan: PlanId,
    #[serde(flatten)]
    pub want: PlanningGoal,
    pub extent: RequestLimits,
    /// The model that is asked instead of the configured ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Calls that the plan was charged with before its journal was begun.
    #[serde(default)]
    pub calls_before: u64,
    /// How far it has come.
    pub stand: RequestProgress,
    /// What was wanted of the same plan before and is unfinished, the latest last. It is gone on with when this order is closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Unfinished>,
}

/// What an order was, while another one stands in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    #[serde(flatten)]
    pub want: PlanningGoal,
    pub extent: RequestLimits,
    /// The model that is asked instead of the configured ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How far it has come.
    pub stand: RequestProgress,
}

impl PlanningRequest {
    /// An order that nobody has begun with.
    pub fn new(plan: PlanId, want: PlanningGoal, extent: RequestLimits, model: Option<String>) -> Self {
        Self { plan, want, extent, model, calls_before: 0, stand: RequestProgress::Open, earlier: Vec::new() }
    }

    /// Takes the place of the order that the plan has had, and keeps what of that is unfinished and not a part of this.
    pub fn replace(&mut self, known: Self) {
        let Self { want, extent, model, stand, earlier, .. } = known;
        self.earlier = earlier;
        if stand.is_unfinished() {
            self.earlier.push(Unfinished { want, extent, model, stand });
        }
        let whole = &self.want;
        self.earlier.retain(|one| !whole.covers(&one.want));
    }

    /// Is done with. What was unfinished before it is the order of the plan again.
    pub fn close(&mut self) {
        match self.earlier.pop() {
            Some(Unfinished { want, extent, model, stand }) => {
                (self.want, self.extent, self.model, self.stand) = (want, extent, model, stand);
            }
            None => self.stand = RequestProgress::Closed,
        }
    }

    /// Has nothing left to ask within its bounds. What was unfinished before it and has comes first again.
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

    /// A fingerprint of what is wanted, and of whom.
    pub fn fingerprint(&self) -> String {
        let said = serde_json::to_string(&(&self.want, &self.model)).unwrap_or_default();
        digest(&SHA256, said.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Why an order cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The disk, or the rights to it.
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    /// It is no order.
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

/// The folder of orders and journals.
#[derive(Clone, Debug)]
pub struct RequestStore {
    folder: PathBuf,
}

impl RequestStore {
    /// In this folder, which need not be there.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where the journal of a plan is.
    pub fn journal(&self, plan: &PlanId) -> PathBuf {
        self.folder.join(format!("{plan}.jsonl"))
    }

    fn path(&self, plan: &PlanId) -> PathBuf {
        self.folder.join(format!("{plan}.json"))
    }

    /// The order of a plan, if there is one.
    pub fn find(&self, plan: &PlanId) -> Result<Option<PlanningRequest>, RequestError> {
        read(&self.path(plan))
    }

    /// All orders that can be read, the latest first, and why the others cannot: one bad file keeps nobody from the rest.
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

    /// Keeps an order in the place of the one before it. It is on the disk when this returns.
    pub fn keep(&self, order: &PlanningRequest) -> Result<(), RequestError> {
        let path = self.path(&order.plan);
        let failed = |error| RequestError::File { path: path.clone(), error };
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let mut text = serde_json::to_string_pretty(order).map_err(|error| failed(error.into()))?;
        text.push('\n');
        let beside = path.with_extension("json.new");
        let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&beside);
        let mut file = file.map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
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
