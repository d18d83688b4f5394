//! The connections of one process to its server, and how long it retries.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connection::{Connector, Driver, Failure, Link, NotificationState, Traffic};
use super::connection_config::Address;
use crate::backends::sqlite::Durability;
use crate::error::{BUSY_SECONDS_MAX, Result, StoreError};
use crate::log::change_watch::pause;

/// Maximum number of connections of one process.
const LINKS_MAX: usize = 6;
/// How long a thread waits for the connection that another one has rather than open a second one.
const NUMBERING_TIME_MAX: Duration = Duration::from_millis(50);
/// How long a connection that is not needed stays open.
const IDLE_TIME_MAX: Duration = Duration::from_secs(10);
/// Seconds for which an unreachable server is retried when a store is opened: it may be starting.
const OPEN_SECONDS_MAX: u64 = 5;
/// The first and the maximum pause between two tries.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// How long an operation is retried, with growing pauses.
pub(super) struct RetryDeadline {
    until: Instant,
    pause: Duration,
}

impl RetryDeadline {
    fn of(seconds: u64) -> Self {
        Self { until: Instant::now() + Duration::from_secs(seconds), pause: PAUSE.0 }
    }

    /// For opening a store: a user is waiting, and the address may be wrong.
    pub(super) fn to_open() -> Self {
        Self::of(OPEN_SECONDS_MAX)
    }

    /// For what is tried again later anyway.
    pub(super) fn at_once() -> Self {
        Self::of(0)
    }

    /// For a server that was reachable before.
    pub(super) fn to_work() -> Self {
        Self::of(BUSY_SECONDS_MAX)
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    fn wait(&mut self) {
        pause(self.pause.min(self.until.saturating_duration_since(Instant::now())));
        self.pause = (self.pause * 2).min(PAUSE.1);
    }
}

#[derive(Default)]
struct Links {
    /// Each with the time when it was returned; the one that listens is last, so that it is lent first.
    idle: Vec<(Link, Instant)>,
    lent: usize,
    /// Whether the connection that listens is lent.
    is_listener_lent: bool,
    /// Whether the thread that numbers versions has one of those that are lent.
    is_numbering: bool,
}

pub(super) struct Pool {
    connector: Connector,
    links: Mutex<Links>,
    returned: Condvar,
}

/// A borrowed connection. It is closed unless it is given back.
pub(super) struct Borrowed<'a> {
    pool: &'a Pool,
    link: Option<Link>,
    listens: bool,
}

impl Pool {
    pub(super) fn new(url: &str, durability: Durability) -> Result<Self> {
        let address = Address::parse(url)?;
        let (tls, driver) = (super::tls::connector(&address)?, Arc::new(Driver::start()?));
        let connector = Connector {
            address,
            tls,
            durability,
            driver,
            counters: Arc::default(),
            pooled: AtomicBool::new(false),
            notified: Arc::default(),
        };
        Ok(Self { connector, links: Mutex::default(), returned: Condvar::new() })
    }

    pub(super) fn location(&self) -> &str {
        &self.connector.address.location
    }

    pub(super) fn traffic(&self) -> Traffic {
        self.connector.counters.read()
    }

    /// Returns what the connections have received besides answers.
    pub(super) fn notification_state(&self) -> &Arc<NotificationState> {
        &self.connector.notified
    }

    /// Opens a connection that is not part of the pool.
    pub(super) fn open(&self) -> Result<Link, Failure> {
        Link::open(&self.connector)
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the connection that listens is in use: whoever uses it reads from the server anyway.
    pub(super) fn is_listener_lent(&self) -> bool {
        self.links().is_listener_lent
    }

    /// Closes connections that were not needed for a while, except one.
    pub(super) fn close_unneeded(&self) {
        let mut unneeded = Vec::new();
        {
            let mut links = self.links();
            let mut count = links.idle.len();
            while count > 1 && links.idle[0].1.elapsed() >= IDLE_TIME_MAX {
                unneeded.push(links.idle.remove(0).0);
                count -= 1;
            }
        }
        unneeded.into_iter().for_each(Link::close);
    }

    /// Returns an idle connection, or opens a new one.
    pub(super) fn take(&self, patience: &RetryDeadline) -> Result<Borrowed<'_>> {
        let (mut links, mut has_waited) = (self.links(), false);
        loop {
            while let Some((link, _)) = links.idle.pop() {
                if !link.is_closed() {
                    links.lent += 1;
                    links.is_listener_lent |= link.listens;
                    return Ok(Borrowed { pool: self, listens: link.listens, link: Some(link) });
                }
            }
            if links.is_numbering && links.lent == 1 && !has_waited {
                // It is returned sooner than a new one is open.
                has_waited = true;
                let waited =
                    self.returned.wait_timeout_while(links, NUMBERING_TIME_MAX, |links| links.is_numbering);
                links = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            if links.lent < LINKS_MAX {
                break;
            }
            let rest = patience.until.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Err(StoreError::Busy);
            }
            links = self.returned.wait_timeout(links, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
        links.lent += 1;
        drop(links);
        let mut borrowed = Borrowed { pool: self, link: None, listens: false };
        let mut patience = RetryDeadline { until: patience.until, pause: PAUSE.0 };
        loop {
            match self.open() {
                Ok(link) => {
                    borrowed.link = Some(link);
                    return Ok(borrowed);
                }
                Err(failure) => {
                    // Whoever the server does not let in has no connection either.
                    self.wait_after(failure, &mut patience).map_err(|error| {
                        if let StoreError::Database(text) = error {
                            StoreError::Unreachable(text)
                        } else {
                            error
                        }
                    })?;
                }
            }
        }
    }

    /// Runs `work` on a connection that no other thread needs now. Others wait for it rather than open another one.
    pub(super) fn in_background<T>(&self, work: impl FnOnce(&mut Link) -> Result<T, Failure>) -> Option<T> {
        {
            let links = self.links();
            let is_used = |links: &mut Links| links.idle.is_empty() && links.lent > 0;
            let waited = self.returned.wait_timeout_while(links, NUMBERING_TIME_MAX, is_used);
            drop(waited);
        }
        let mut borrowed = self.take(&RetryDeadline::at_once()).ok()?;
        self.links().is_numbering = true;
        borrowed.link().is_background = true;
        let worked = work(borrowed.link());
        borrowed.link().is_background = false;
        self.links().is_numbering = false;
        if !matches!(worked, Err(Failure::Lost(_))) {
            borrowed.give_back();
        }
        worked.ok()
    }

    /// Runs `work` on a connection, and retries it after temporary failures.
    pub(super) fn on_link<T>(
        &self,
        patience: &mut RetryDeadline,
        mut work: impl FnMut(&mut Link) -> Result<T, Failure>,
    ) -> Result<T> {
        loop {
            let mut borrowed = self.take(patience)?;
            match work(borrowed.link()) {
                Ok(answer) => {
                    borrowed.give_back();
                    return Ok(answer);
                }
                Err(failure) => {
                    if !matches!(failure, Failure::Lost(_)) {
                        borrowed.give_back();
                    }
                    self.wait_after(failure, patience)?;
                }
            }
        }
    }

    /// Pauses if a retry may help; otherwise returns the error.
    pub(super) fn wait_after(&self, failure: Failure, patience: &mut RetryDeadline) -> Result<()> {
        match failure {
            Failure::Store(error) => Err(self.named(error)),
            Failure::Refused { .. } => {
                let said = failure.describe();
                let server = self.connector.address.server();
                let way_out = if is_about_password(&failure) { WAY_OUT } else { "" };
                let unread = self.connector.address.unread_pass_file.as_ref().filter(|_| !way_out.is_empty());
                let unread = unread.map(|unread| format!("; {unread}")).unwrap_or_default();
                Err(StoreError::Database(format!("{server}: {said}{unread}{way_out}")))
            }
            Failure::Lost(text) if patience.is_over() || is_hopeless(&text) => Err(StoreError::Unreachable(
                format!("{} does not answer: {text}", self.connector.address.server()),
            )),
            Failure::Again(_) | Failure::Locked if patience.is_over() => Err(StoreError::Busy),
            // The server has already waited; or the caller must do something else first.
            Failure::Locked | Failure::Exclusive | Failure::Unnumbered => Ok(()),
            Failure::Lost(_) | Failure::Again(_) => {
                patience.wait();
                Ok(())
            }
        }
    }

    fn named(&self, error: StoreError) -> StoreError {
        if let StoreError::TooNew { found, known, .. } = error {
            StoreError::TooNew { what: self.connector.address.location.clone(), found, known }
        } else {
            error
        }
    }
}

/// The hint for a failed authentication.
const WAY_OUT: &str = "; give the password of this user by PGPASSWORD, by a line in the file that PGPASSFILE or \
     ?passfile= names, or in the URL";

/// Returns whether the password is wrong or missing.
fn is_about_password(failure: &Failure) -> bool {
    match failure {
        Failure::Refused { code, text } => {
            code == "28P01" || code.is_empty() && text.contains("password missing")
        }
        Failure::Lost(_)
        | Failure::Again(_)
        | Failure::Locked
        | Failure::Exclusive
        | Failure::Unnumbered
        | Failure::Store(_) => false,
    }
}

/// Returns whether the host does not exist: retrying does not help.
fn is_hopeless(text: &str) -> bool {
    text.contains("failed to lookup address")
}

impl Borrowed<'_> {
    pub(super) fn link(&mut self) -> &mut Link {
        self.link.as_mut().expect("it is taken away only when it is given back")
    }

    /// Returns the connection to the pool. It must not be inside a transaction.
    pub(super) fn give_back(mut self) {
        if let Some(link) = self.link.take().filter(|link| !link.is_closed()) {
            if link.has_large_buffer {
                link.close();
                return;
            }
            let mut links = self.pool.links();
            let now = Instant::now();
            // The one that listens is lent first, then the one that was returned last.
            match links.idle.last().is_some_and(|(last, _)| last.listens) {
                true => {
                    let before = links.idle.len() - 1;
                    links.idle.insert(before, (link, now));
                }
                false => links.idle.push((link, now)),
            }
        }
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        let mut links = self.pool.links();
        links.lent -= 1;
        links.is_listener_lent &= !self.listens;
        drop(links);
        self.pool.returned.notify_all();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let links = self.links.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut links.idle).into_iter().for_each(|(link, _)| link.close());
    }
}
