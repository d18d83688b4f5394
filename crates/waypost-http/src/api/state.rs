//! The state that the API's handlers share: the service, the broadcast of events, and the end of streams. Knows no
//! route.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use axum::http::StatusCode;
use tokio::sync::{oneshot, watch};
use waypost_service::{FindBranch, Repository, Service};
use waypost_store::PlanStore;

use super::approval_state::ApprovalStates;
use super::event_broadcast::EventBroadcast;
use super::response::Problem;
use crate::models::{Models, PlanJobs};

type LargeWork = Box<dyn FnOnce() + Send>;

/// The state of the API.
pub struct Api {
    pub(super) service: Service,
    /// The folder with the logs of attempts.
    pub(super) logs: PathBuf,
    /// The name of the workspace.
    pub(super) workspace: String,
    /// Whether this server currently runs plans, too.
    pub(super) runs: Arc<AtomicBool>,
    /// Whether this server ends as soon as what it runs has ended.
    pub(super) ends_soon: AtomicBool,
    pub(super) events: EventBroadcast,
    pub(super) approvals: ApprovalStates,
    /// The repository around the workspace. One request at a time searches it.
    pub(super) repository: Option<Mutex<Repository>>,
    /// The models of the configuration, and the plans that they write.
    pub(super) models: Option<Arc<dyn Models>>,
    pub(super) jobs: PlanJobs,
    /// Finds the branch on which shared plans travel.
    pub(super) shared_branch: Option<FindBranch>,
    /// The thread for large plans, once there is one.
    large: Mutex<Option<mpsc::Sender<LargeWork>>>,
    /// How often all streams were ended.
    ends: watch::Sender<u64>,
}

impl Api {
    /// Creates the state. Reads and runs nothing before the first request.
    pub fn new(service: Service, logs: PathBuf, workspace: String) -> Self {
        let events = EventBroadcast::new(Arc::clone(service.plans()));
        Self {
            service,
            logs,
            workspace,
            runs: Arc::default(),
            ends_soon: AtomicBool::default(),
            events,
            approvals: ApprovalStates::default(),
            repository: None,
            models: None,
            jobs: PlanJobs::default(),
            shared_branch: None,
            large: Mutex::default(),
            ends: watch::Sender::default(),
        }
    }

    /// Serves the commits of tasks, too.
    pub fn with_repository(self, repository: Option<Repository>) -> Self {
        Self { repository: repository.map(Mutex::new), ..self }
    }

    /// Has models write plans, too.
    pub fn with_models(self, models: Arc<dyn Models>) -> Self {
        Self { models: Some(models), ..self }
    }

    /// Lets people answer what clones disagree about.
    pub fn with_shared_branch(self, find: FindBranch) -> Self {
        Self { shared_branch: Some(find), ..self }
    }

    /// Returns the flag that the embedded worker sets while it runs plans.
    pub fn runs(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.runs)
    }

    /// Tells the pages that this server starts no new task, because it ends as soon as what it runs has ended.
    pub fn end_soon(&self) {
        self.ends_soon.store(true, Ordering::Release);
        // Pages ask who they talk to when they are connected again.
        self.end_streams();
    }

    /// Returns the plans, for reading.
    pub(crate) fn plans(&self) -> &Arc<PlanStore> {
        self.service.plans()
    }

    /// Ends all streams. Clients that may still read reconnect and resume where they were.
    pub(crate) fn end_streams(&self) {
        self.events.end_all();
        self.ends.send_modify(|times| *times += 1);
    }

    /// Is notified at the next [`Self::end_streams`].
    pub(super) fn stream_ends(&self) -> watch::Receiver<u64> {
        self.ends.subscribe()
    }
}

/// Runs work that may block on the store on a separate thread, so that it delays no other request.
pub(super) async fn run_blocking<T: Send + 'static>(
    api: Arc<Api>,
    work: impl FnOnce(&Api) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(move || work(&api)).await;
    done.unwrap_or_else(|error| {
        Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string(), "retry"))
    })
}

/// Runs work on a large plan, one at a time on a thread of its own: the allocator keeps the memory that a thread has used, so
/// that many threads would keep it many times.
pub(super) async fn run_large<T: Send + 'static>(
    api: Arc<Api>,
    work: impl FnOnce(&Api) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let (tell, told) = oneshot::channel();
    let large = Arc::clone(&api);
    large.send_large(Box::new(move || {
        let _gone = tell.send(work(&api));
    }))?;
    told.await.unwrap_or_else(|error| {
        Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string(), "retry"))
    })
}

impl Api {
    fn send_large(&self, mut work: LargeWork) -> Result<(), Problem> {
        let mut thread = self.large.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = &*thread {
            match sender.send(work) {
                Ok(()) => return Ok(()),
                // The thread panicked in its last work.
                Err(unsent) => work = unsent.0,
            }
        }
        let (sender, receiver) = mpsc::channel::<LargeWork>();
        let run = move || receiver.into_iter().for_each(|work| work());
        let begun = std::thread::Builder::new().name("large".to_owned()).spawn(run);
        begun.map_err(|error| Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string(), "retry"))?;
        // Its receiver is there until the thread ends.
        let _sent = sender.send(work);
        *thread = Some(sender);
        Ok(())
    }
}
