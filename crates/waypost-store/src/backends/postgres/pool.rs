//! The connections of one process to its server, and how long it retries.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_postgres_rustls::MakeRustlsConnect;

use super::connection::{Counters, Driver, Failure, Link, Traffic};
use super::connection_config::Address;
use super::describe;
use super::listen::Listener;
use crate::backends::sqlite::Durability;
use crate::error::{BUSY_SECONDS_MAX, Result, StoreError};
use crate::log::change_watch::pause;

/// Maximum number of connections of one process, besides the one that listens.
const LINKS_MAX: usize = 6;
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
    idle: Vec<Link>,
    lent: usize,
}

pub(super) struct Pool {
    address: Address,
    tls: MakeRustlsConnect,
    durability: Durability,
    driver: Arc<Driver>,
    counters: Arc<Counters>,
    links: Mutex<Links>,
    returned: Condvar,
}

/// A borrowed connection. It is closed unless it is given back.
pub(super) struct Borrowed<'a> {
    pool: &'a Pool,
    link: Option<Link>,
}

impl Pool {
    pub(super) fn new(url: &str, durability: Durability) -> Result<Self> {
        let address = Address::parse(url)?;
        let (tls, driver) = (super::tls::connector(&address)?, Arc::new(Driver::start()?));
        let (counters, links) = (Arc::default(), Mutex::default());
        Ok(Self { address, tls, durability, driver, counters, links, returned: Condvar::new() })
    }

    pub(super) fn location(&self) -> &str {
        &self.address.location
    }

    pub(super) fn traffic(&self) -> Traffic {
        self.counters.read()
    }

    pub(super) fn listen(&self) -> Listener {
        Listener::open(&self.driver, &self.address, &self.tls, &self.counters)
    }

    /// Measures how long a notification takes from one connection to another; `None` when it does not arrive.
    pub(super) fn notify_round_trip(&self) -> Option<Duration> {
        self.driver.wait(super::listen::round_trip(&self.address, &self.tls, &self.counters))
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an idle connection, or opens a new one.
    pub(super) fn take(&self, patience: &RetryDeadline) -> Result<Borrowed<'_>> {
        let mut links = self.links();
        loop {
            while let Some(link) = links.idle.pop() {
                if !link.is_closed() {
                    links.lent += 1;
                    return Ok(Borrowed { pool: self, link: Some(link) });
                }
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
        let mut borrowed = Borrowed { pool: self, link: None };
        let mut patience = RetryDeadline { until: patience.until, pause: PAUSE.0 };
        loop {
            match Link::open(&self.address, &self.tls, &self.driver, &self.counters, self.durability) {
                Ok(link) => {
                    borrowed.link = Some(link);
                    return Ok(borrowed);
                }
                Err(failure) => self.wait_after(failure, &mut patience)?,
            }
        }
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
                let said = describe(&failure);
                let server = self.address.server();
                let way_out = if is_about_password(&failure) { WAY_OUT } else { "" };
                Err(StoreError::Database(format!("{server}: {said}{way_out}")))
            }
            Failure::Lost(text) if patience.is_over() || is_hopeless(&text) => {
                Err(StoreError::Database(format!(
                    "{} does not answer: {text}; see that it runs and can be reached from here",
                    self.address.server()
                )))
            }
            Failure::Again(_) | Failure::Locked if patience.is_over() => Err(StoreError::Busy),
            // The server has already waited.
            Failure::Locked => Ok(()),
            Failure::Lost(_) | Failure::Again(_) => {
                patience.wait();
                Ok(())
            }
        }
    }

    fn named(&self, error: StoreError) -> StoreError {
        if let StoreError::TooNew { found, known, .. } = error {
            StoreError::TooNew { what: self.address.location.clone(), found, known }
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
        Failure::Lost(_) | Failure::Again(_) | Failure::Locked | Failure::Store(_) => false,
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
            self.pool.links().idle.push(link);
        }
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        self.pool.links().lent -= 1;
        self.pool.returned.notify_one();
    }
}
