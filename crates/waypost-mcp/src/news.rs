//! Telling clients that what they read has changed, whoever changed it and in whichever process: one thread hears the
//! store's bell and tells those who subscribed. Looks at nothing while nothing is written.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use waypost_core::{PlanId, TaskId};
use waypost_store::{Query, Sort, StoreError};

use crate::refused::Refused;
use crate::resources::{Address, resolve, task_value};
use crate::workspace::Workspace;

/// Resources that one client subscribes to.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 1_000;
/// How long the thread waits before it looks whether anybody still listens.
const LOOK: Duration = Duration::from_secs(1);
/// Versions of the log that are gone through in one go.
const VERSIONS_PAGE: usize = 1_000;

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Told {
    /// There are other plans than before.
    ListChanged,
    /// The resource with this address is another one.
    Updated(String),
}

/// A resource that somebody subscribed to.
enum Wanted {
    Plans,
    Plan(PlanId),
    /// With what was last seen of it: a plan changes more often than one of its tasks.
    Task(PlanId, TaskId, u64),
}

/// One who listens.
#[derive(Default)]
pub(crate) struct Ear {
    wants: Mutex<Wants>,
    news: Mutex<BTreeSet<Told>>,
    rung: Notify,
}

#[derive(Default)]
struct Wants {
    list: bool,
    resources: BTreeMap<String, Wanted>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ear {
    /// Wants to hear when there are other plans.
    pub(crate) fn want_list(&self) {
        lock(&self.wants).list = true;
    }

    /// Wants to hear of this resource.
    pub(crate) fn want(&self, workspace: &Workspace, uri: &str) -> Result<(), Refused> {
        let address = Address::parse(uri)?;
        let id = address.plan().map(|plan| resolve(workspace, plan)).transpose()?;
        let wanted = match (address, id) {
            (Address::Task(_, task), Some(id)) => {
                let no_such = || Refused::new(format!("plan {id} has no task {task:?}"), "look at the plan");
                let found =
                    workspace.plans.look(&id, |plan| plan.resolve(&task).ok())?.ok_or_else(no_such)?;
                let seen = fingerprint(workspace, &id, &found);
                Wanted::Task(id, found, seen)
            }
            (Address::Plan(_) | Address::Markdown(_) | Address::History(_), Some(id)) => Wanted::Plan(id),
            (Address::Plans, _) | (_, None) => Wanted::Plans,
        };
        let mut wants = lock(&self.wants);
        if wants.resources.len() >= SUBSCRIPTIONS_MAX && !wants.resources.contains_key(uri) {
            let message = format!("this client has {SUBSCRIPTIONS_MAX} subscriptions already");
            return Err(Refused::new(message, "unsubscribe from some, or subscribe to waypost://plans"));
        }
        wants.resources.insert(uri.to_owned(), wanted);
        Ok(())
    }

    /// Does not want to hear of it any more.
    pub(crate) fn forget(&self, uri: &str) {
        lock(&self.wants).resources.remove(uri);
    }

    /// Waits for news and takes them: each once, however often it came.
    pub(crate) async fn hear(&self) -> BTreeSet<Told> {
        loop {
            let news = std::mem::take(&mut *lock(&self.news));
            if !news.is_empty() {
                return news;
            }
            self.rung.notified().await;
        }
    }

    /// Tells everything that is wanted, once.
    pub(crate) fn tell_all(&self) {
        let wants = lock(&self.wants);
        let list = wants.list.then_some(Told::ListChanged);
        self.tell(list.into_iter().chain(wants.resources.keys().cloned().map(Told::Updated)).collect());
    }

    fn tell(&self, told: Vec<Told>) {
        if !told.is_empty() {
            lock(&self.news).extend(told);
            self.rung.notify_one();
        }
    }

    /// What of this is news for it.
    fn sift(&self, workspace: &Workspace, written: &[(PlanId, u64)], list_changed: bool) -> Vec<Told> {
        let mut wants = lock(&self.wants);
        let mut told = Vec::new();
        if wants.list && list_changed {
            told.push(Told::ListChanged);
        }
        for (uri, wanted) in &mut wants.resources {
            let is_news = match wanted {
                Wanted::Plans => true,
                Wanted::Plan(id) => written.iter().any(|(plan, _)| plan == id),
                Wanted::Task(id, task, seen) => {
                    written.iter().any(|(plan, _)| plan == id) && {
                        let now = fingerprint(workspace, id, task);
                        std::mem::replace(seen, now) != now
                    }
                }
            };
            if is_news {
                told.push(Told::Updated(uri.clone()));
            }
        }
        told
    }
}

/// Tells two states of a task apart; of a task that is gone, it is 0.
fn fingerprint(workspace: &Workspace, plan: &PlanId, task: &TaskId) -> u64 {
    let value = workspace.plans.look(plan, |plan| task_value(plan, task)).ok().flatten();
    value.map_or(0, |value| {
        let mut hasher = DefaultHasher::new();
        value.to_string().hash(&mut hasher);
        hasher.finish()
    })
}

/// Those who listen to one store, and the thread that tells them.
#[derive(Default)]
pub(crate) struct Board {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    ears: Vec<Weak<Ear>>,
    /// The workspace whose store is heard; nothing while nobody listens.
    heard: Option<Arc<Workspace>>,
}

impl Board {
    /// Tells `ear` from now on.
    pub(crate) fn add(
        self: &Arc<Self>,
        workspace: &Arc<Workspace>,
        ear: &Arc<Ear>,
    ) -> Result<(), StoreError> {
        let mut inner = lock(&self.inner);
        if !inner.ears.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(ear))) {
            inner.ears.push(Arc::downgrade(ear));
        }
        if inner.heard.as_ref().is_some_and(|heard| Arc::ptr_eq(heard, workspace)) {
            return Ok(());
        }
        // Begun here and not in the thread: what is written after this call is heard.
        let listener = Listener::begin(workspace)?;
        inner.heard = Some(Arc::clone(workspace));
        let board = Arc::downgrade(self);
        std::thread::spawn(move || listener.run(&board));
        Ok(())
    }

    /// Those who still listen to this workspace; nobody ends it.
    fn ears(&self, workspace: &Arc<Workspace>) -> Vec<Arc<Ear>> {
        let mut inner = lock(&self.inner);
        if !inner.heard.as_ref().is_some_and(|heard| Arc::ptr_eq(heard, workspace)) {
            return Vec::new();
        }
        inner.ears.retain(|ear| ear.strong_count() > 0);
        let ears: Vec<Arc<Ear>> = inner.ears.iter().filter_map(Weak::upgrade).collect();
        if ears.is_empty() {
            inner.heard = None;
        }
        ears
    }

    /// Nobody hears this store any more.
    fn leave(&self, workspace: &Arc<Workspace>) {
        let mut inner = lock(&self.inner);
        if inner.heard.as_ref().is_some_and(|heard| Arc::ptr_eq(heard, workspace)) {
            inner.heard = None;
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
        let watch = workspace.plans.watch()?;
        let seen = workspace.plans.latest()?;
        let newest = newest(workspace)?;
        Ok(Self { workspace: Arc::clone(workspace), watch, seen, newest })
    }

    fn run(mut self, board: &Weak<Board>) {
        while let Ok(heard) = self.watch.wait(LOOK) {
            let Some(board) = board.upgrade() else { return };
            let ears = board.ears(&self.workspace);
            if ears.is_empty() {
                return;
            }
            if heard && self.tell(&ears).is_err() {
                break;
            }
        }
        // The store cannot be read: whoever subscribes next begins anew.
        if let Some(board) = board.upgrade() {
            board.leave(&self.workspace);
        }
    }

    fn tell(&mut self, ears: &[Arc<Ear>]) -> Result<(), StoreError> {
        loop {
            let written = self.workspace.plans.written_since(self.seen, VERSIONS_PAGE)?;
            self.seen = written.up_to.max(self.seen);
            if !written.plans.is_empty() {
                let newest = newest(&self.workspace)?;
                let list_changed = std::mem::replace(&mut self.newest, newest.clone()) != newest;
                for ear in ears {
                    ear.tell(ear.sift(&self.workspace, &written.plans, list_changed));
                }
            }
            if !written.more {
                return Ok(());
            }
        }
    }
}

/// What differs when plans come or go: the newest, and how many there are.
fn newest(workspace: &Workspace) -> Result<(Option<PlanId>, u64), StoreError> {
    let page = workspace.plans.heads(&Query { sort: Sort::Created, limit: 1, ..Query::default() })?;
    Ok((page.items.into_iter().next().map(|head| head.id), page.total))
}
