//! Reports what agents and people write to a store to the reporters that otherwise hear of runs only: files, programs, the
//! console. What workers write is left to the runs that they belong to.
//!
//! One process of a store does it at a time. When that process ends, another takes over within a second; events written
//! meanwhile may be missing. Webhooks are not served here: their position is stored.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use waypost_config::{Config, ExecutionEnv, Report, Reporter};
use waypost_core::{ActorKind, Plan, PlanId};
use waypost_store::{LogFilter, NamedLock, PlanStore, StoreError, VersionRecord};

use super::{Reporters, reports};
use crate::scheduler::{RunEvent, notices_of};

/// The name of the lock that the reporting process holds.
const LOCK: &str = "reports";
/// The longest time until it is noticed that the server ends.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The time between two attempts to become the process that reports.
const LOCK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of versions read at a time.
const VERSIONS_MAX: usize = 1_000;
/// Maximum number of plans that are kept in memory between two changes.
const PLANS_KEPT_MAX: usize = 64;

/// Shows an event on the console.
type Console = Box<dyn Fn(&RunEvent) + Send>;

/// The thread that reports. Dropping it ends the reporting.
pub struct StoreReports {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<String>>>,
}

impl StoreReports {
    /// Starts reporting what is written from now on. Also returns a message for each reporter that cannot work; the others do.
    /// `None` if the configuration has no such reporter.
    pub fn start(
        plans: &Arc<PlanStore>,
        config: &Config,
        around: &ExecutionEnv,
        console: Console,
    ) -> Result<Option<(Self, Vec<String>)>, StoreError> {
        let consoles: Vec<Reporter> =
            config.reporters.values().filter(|one| one.report == Report::Console).cloned().collect();
        let reporters = Reporters::begin(config, around);
        if reporters.is_empty() && consoles.is_empty() {
            return Ok(None);
        }
        let unusable = reporters.unusable();
        let ends = Arc::new(AtomicBool::new(false));
        let reporting = Reporting {
            plans: Arc::clone(plans),
            reporters,
            consoles,
            console,
            seen: plans.latest()?,
            followed: HashMap::new(),
            lock: None,
        };
        let asked = Arc::clone(&ends);
        let thread =
            std::thread::Builder::new().name("reports".to_owned()).spawn(move || reporting.run(&asked));
        let thread =
            thread.map_err(|error| StoreError::Database(format!("no thread can be started: {error}")))?;
        Ok(Some((Self { ends, thread: Some(thread) }, unusable)))
    }

    /// Reports what is left and returns what could not be reported, as messages.
    pub fn finish(mut self) -> Vec<String> {
        self.end()
    }

    fn end(&mut self) -> Vec<String> {
        self.ends.store(true, Ordering::Release);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for StoreReports {
    fn drop(&mut self) {
        self.end();
    }
}

struct Reporting {
    plans: Arc<PlanStore>,
    reporters: Reporters,
    consoles: Vec<Reporter>,
    console: Console,
    /// The latest version of the log that was looked at.
    seen: u64,
    /// Plans at the version up to which they were reported.
    followed: HashMap<PlanId, Plan>,
    /// Held while this process reports.
    lock: Option<Box<dyn NamedLock>>,
}

impl Reporting {
    fn run(mut self, ends: &AtomicBool) -> Vec<String> {
        let mut watch = self.plans.watch();
        let (mut has_news, mut next_lock) = (true, Instant::now());
        loop {
            let is_last = ends.load(Ordering::Acquire);
            if Instant::now() >= next_lock {
                self.take_lock();
                next_lock = Instant::now() + LOCK_INTERVAL;
            }
            if has_news || is_last {
                // A store that cannot be read now may be readable later.
                has_news = self.report_new().is_err();
            }
            if is_last {
                return self.reporters.finish();
            }
            match watch.as_mut().map(|watch| watch.wait(POLL_INTERVAL)) {
                Ok(Ok(changed)) => has_news |= changed,
                Ok(Err(_)) | Err(_) => {
                    // Without a watch the log has to be read to learn whether it grew.
                    std::thread::park_timeout(POLL_INTERVAL);
                    (watch, has_news) = (self.plans.watch(), true);
                }
            }
        }
    }

    /// Becomes the process that reports, if there is none.
    fn take_lock(&mut self) {
        if !self.lock.as_ref().is_some_and(|lock| lock.holds()) {
            self.lock = self.plans.store().try_lock(LOCK).ok().flatten();
        }
    }

    /// Reports what was written since the last look, if this process is the one that reports.
    fn report_new(&mut self) -> Result<(), StoreError> {
        loop {
            let entries = self.plans.log(self.seen, &LogFilter::default(), VERSIONS_MAX)?.versions;
            let is_last = entries.len() < VERSIONS_MAX;
            for entry in entries {
                self.seen = entry.sequence;
                if self.lock.is_some() {
                    self.report(&entry);
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Reports a version. A plan that is gone or damaged is left out.
    fn report(&mut self, entry: &VersionRecord) {
        let before = match self.followed.remove(&entry.plan) {
            Some(plan) if plan.version() + 1 == entry.version => Some(plan),
            // The creation of a plan is not an event of a run.
            Some(_) | None if entry.version > 1 => self.plans.at_version(&entry.plan, entry.version - 1).ok(),
            Some(_) | None => None,
        };
        let Some(mut plan) = before else { return };
        plan.advance(&entry.events, entry.at);
        let touched = plan.take_touched();
        match entry.actor.kind {
            ActorKind::Worker => {}
            ActorKind::Agent | ActorKind::Person | ActorKind::System => {
                for notice in notices_of(&plan, &entry.events, &touched) {
                    self.reporters.tell(entry.at, &notice);
                    if self.consoles.iter().any(|reporter| reports(reporter, &notice)) {
                        (self.console)(&notice);
                    }
                }
            }
        }
        if self.followed.len() >= PLANS_KEPT_MAX {
            self.followed.clear();
        }
        self.followed.insert(entry.plan.clone(), plan);
    }
}
