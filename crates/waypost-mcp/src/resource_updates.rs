//! Notifications about updated resources, whichever process wrote them: one thread watches the store and notifies the
//! subscribers. Reads nothing while nothing is written.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use waypost_core::{PlanId, TaskId};
use waypost_store::{Query, Sort, StoreError};

use crate::resources::{Address, resolve, task_value};
use crate::tool_error::ToolError;
use crate::workspace::Workspace;

/// Maximum number of resources that one client can subscribe to.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 1_000;
/// Interval at which the thread checks whether there are subscribers.
const LOOK: Duration = Duration::from_secs(1);
/// Number of versions that are read from the log at a time.
const VERSIONS_PAGE: usize = 1_000;

/// A notification to a client.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Update {
    /// Plans were added or removed.
    ListChanged,
    /// The resource with this URI has changed.
    Updated(String),
}

/// A resource with a subscription.
enum WatchedResource {
    Plans,
    Plan(PlanId),
    /// With a fingerprint of the last state: a plan changes more often than one of its tasks.
    Task(PlanId, TaskId, u64),
}

/// A client that receives notifications.
#[derive(Default)]
pub(crate) struct Subscriber {
    watched: Mutex<Watched>,
    updates: Mutex<BTreeSet<Update>>,
    notify: Notify,
}

#[derive(Default)]
struct Watched {
    list: bool,
    resources: BTreeMap<String, WatchedResource>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Subscriber {
    /// Subscribes to changes of the list of plans.
    pub(crate) fn watch_list(&self) {
        lock(&self.watched).list = true;
    }

    /// Subscribes to a resource.
    pub(crate) fn watch(&self, workspace: &Workspace, uri: &str) -> Result<(), ToolError> {
        let address = Address::parse(uri)?;
        let id = address.plan().map(|plan| resolve(workspace, plan)).transpose()?;
        let resource = match (address, id) {
            (Address::Task(_, task), Some(id)) => {
                let no_such =
                    || ToolError::new(format!("plan {id} has no task {task:?}"), "look at the plan");
                let found =
                    workspace.plans().with_plan(&id, |plan| plan.resolve(&task).ok())?.ok_or_else(no_such)?;
                let seen = fingerprint(workspace, &id, &found);
                WatchedResource::Task(id, found, seen)
            }
            (Address::Plan(_) | Address::Markdown(_) | Address::History(_), Some(id)) => {
                WatchedResource::Plan(id)
            }
            (Address::Plans, _) | (_, None) => WatchedResource::Plans,
        };
        let mut watched = lock(&self.watched);
        if watched.resources.len() >= SUBSCRIPTIONS_MAX && !watched.resources.contains_key(uri) {
            let message = format!("this client has {SUBSCRIPTIONS_MAX} subscriptions already");
            return Err(ToolError::new(message, "unsubscribe from some, or subscribe to waypost://plans"));
        }
        watched.resources.insert(uri.to_owned(), resource);
        Ok(())
    }

    /// Unsubscribes from a resource.
    pub(crate) fn forget(&self, uri: &str) {
        lock(&self.watched).resources.remove(uri);
    }

    /// Waits for updates and returns them, each once, however often it occurred.
    pub(crate) async fn next_updates(&self) -> BTreeSet<Update> {
        loop {
            let updates = std::mem::take(&mut *lock(&self.updates));
            if !updates.is_empty() {
                return updates;
            }
            self.notify.notified().await;
        }
    }

    /// Reports every watched resource as updated, once.
    pub(crate) fn push_all(&self) {
        let watched = lock(&self.watched);
        let list = watched.list.then_some(Update::ListChanged);
        self.push(list.into_iter().chain(watched.resources.keys().cloned().map(Update::Updated)).collect());
    }

    fn push(&self, updates: Vec<Update>) {
        if !updates.is_empty() {
            lock(&self.updates).extend(updates);
            self.notify.notify_one();
        }
    }

    /// Returns the updates for this subscriber.
    fn updates_for(
        &self,
        workspace: &Workspace,
        written: &[(PlanId, u64)],
        list_changed: bool,
    ) -> Vec<Update> {
        let mut watched = lock(&self.watched);
        let mut updates = Vec::new();
        if watched.list && list_changed {
            updates.push(Update::ListChanged);
        }
        for (uri, resource) in &mut watched.resources {
            let is_news = match resource {
                WatchedResource::Plans => true,
                WatchedResource::Plan(id) => written.iter().any(|(plan, _)| plan == id),
                WatchedResource::Task(id, task, seen) => {
                    written.iter().any(|(plan, _)| plan == id) && {
                        let now = fingerprint(workspace, id, task);
                        std::mem::replace(seen, now) != now
                    }
                }
            };
            if is_news {
                updates.push(Update::Updated(uri.clone()));
            }
        }
        updates
    }
}

/// Hashes the state of a task; 0 for a task that no longer exists.
fn fingerprint(workspace: &Workspace, plan: &PlanId, task: &TaskId) -> u64 {
    let value = workspace.plans().with_plan(plan, |plan| task_value(plan, task)).ok().flatten();
    value.map_or(0, |value| {
        let mut hasher = DefaultHasher::new();
        value.to_string().hash(&mut hasher);
        hasher.finish()
    })
}

/// The subscribers of one store, and the thread that notifies them.
#[derive(Default)]
pub(crate) struct UpdateHub {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    subscribers: Vec<Weak<Subscriber>>,
    /// The workspace whose store is watched; `None` while there are no subscribers.
    watched_workspace: Option<Arc<Workspace>>,
}

impl UpdateHub {
    /// Notifies `subscriber` from now on.
    pub(crate) fn add(
        self: &Arc<Self>,
        workspace: &Arc<Workspace>,
        subscriber: &Arc<Subscriber>,
    ) -> Result<(), StoreError> {
        let mut inner = lock(&self.inner);
        if !inner.subscribers.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(subscriber))) {
            inner.subscribers.push(Arc::downgrade(subscriber));
        }
        if inner
            .watched_workspace
            .as_ref()
            .is_some_and(|watched_workspace| Arc::ptr_eq(watched_workspace, workspace))
        {
            return Ok(());
        }
        // Begin here, not in the thread, so that every write after this call is noticed.
        let listener = Listener::begin(workspace)?;
        inner.watched_workspace = Some(Arc::clone(workspace));
        let hub = Arc::downgrade(self);
        std::thread::spawn(move || listener.run(&hub));
        Ok(())
    }

    /// Returns the live subscribers of this workspace. If there are none, the watch ends.
    fn subscribers(&self, workspace: &Arc<Workspace>) -> Vec<Arc<Subscriber>> {
        let mut inner = lock(&self.inner);
        if !inner
            .watched_workspace
            .as_ref()
            .is_some_and(|watched_workspace| Arc::ptr_eq(watched_workspace, workspace))
        {
            return Vec::new();
        }
        inner.subscribers.retain(|subscriber| subscriber.strong_count() > 0);
        let subscribers: Vec<Arc<Subscriber>> = inner.subscribers.iter().filter_map(Weak::upgrade).collect();
        if subscribers.is_empty() {
            inner.watched_workspace = None;
        }
        subscribers
    }

    /// Marks the store of this workspace as no longer watched.
    fn leave(&self, workspace: &Arc<Workspace>) {
        let mut inner = lock(&self.inner);
        if inner
            .watched_workspace
            .as_ref()
            .is_some_and(|watched_workspace| Arc::ptr_eq(watched_workspace, workspace))
        {
            inner.watched_workspace = None;
        }
    }
}

struct Listener {
    workspace: Arc<Workspace>,
    watch: Box<dyn waypost_store::Watch>,
    seen: u64,
    newest: (Option<PlanId>, u64),
}

impl Listener {
    fn begin(workspace: &Arc<Workspace>) -> Result<Self, StoreError> {
        let watch = workspace.plans().watch()?;
        let seen = workspace.plans().latest()?;
        let newest = newest(workspace)?;
        Ok(Self { workspace: Arc::clone(workspace), watch, seen, newest })
    }

    fn run(mut self, hub: &Weak<UpdateHub>) {
        while let Ok(watched_workspace) = self.watch.wait(LOOK) {
            let Some(hub) = hub.upgrade() else { return };
            let subscribers = hub.subscribers(&self.workspace);
            if subscribers.is_empty() {
                return;
            }
            if watched_workspace && self.tell(&subscribers).is_err() {
                break;
            }
        }
        // The store cannot be read: the next subscriber starts a new listener.
        if let Some(hub) = hub.upgrade() {
            hub.leave(&self.workspace);
        }
    }

    fn tell(&mut self, subscribers: &[Arc<Subscriber>]) -> Result<(), StoreError> {
        loop {
            let written = self.workspace.plans().written_since(self.seen, VERSIONS_PAGE)?;
            self.seen = written.up_to.max(self.seen);
            if !written.plans.is_empty() {
                let newest = newest(&self.workspace)?;
                let list_changed = std::mem::replace(&mut self.newest, newest.clone()) != newest;
                for subscriber in subscribers {
                    subscriber.push(subscriber.updates_for(&self.workspace, &written.plans, list_changed));
                }
            }
            if !written.more {
                return Ok(());
            }
        }
    }
}

/// Returns a value that changes when plans are added or removed: the newest plan and the number of plans.
fn newest(workspace: &Workspace) -> Result<(Option<PlanId>, u64), StoreError> {
    let page = workspace.plans().heads(&Query { sort: Sort::Created, limit: 1, ..Query::default() })?;
    Ok((page.items.into_iter().next().map(|head| head.id), page.total))
}
