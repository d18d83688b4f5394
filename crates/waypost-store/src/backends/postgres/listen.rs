//! Notifications of other processes' writes, for all watchers of a process: one of its ordinary connections listens. If
//! it breaks, another one does. Where no notification can arrive, as behind a pooler, the latest counters are polled.

use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::connection::{Call, Failure, Link};
use super::connection_config::CONNECT_SECONDS_MAX;
use super::pool::{Pool, RetryDeadline};
use super::rows;
use crate::error::Result;
use crate::log::change_watch::{Watch, pause};

/// The time between two checks of whether the listening connection works. A notification gets lost only if a process dies
/// between its commit and the notification.
const LISTEN_CHECK: Duration = Duration::from_secs(45);
/// The first and the maximum pause between two polls: they grow while nothing is written.
const POLL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// The first and the maximum pause between two tries to connect.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// How long a test waits for its own notification.
const ECHO_TIME_MAX: Duration = Duration::from_secs(10);

/// The channel of this schema. 12 characters of its name are enough: a schema that shares them only wakes watchers in
/// vain.
const CHANNEL: &str = "SELECT 'waypost_' || left(current_schema()::text, 12)";
/// Notifies that channel of the end of the log.
pub(super) const NOTIFY: &str =
    "SELECT pg_notify('waypost_' || left(current_schema()::text, 12), sequence::text)
     FROM waypost_control WHERE id = 1";
/// Notifies it of something else than versions.
pub(super) const NOTIFY_OTHER: &str = "SELECT pg_notify('waypost_' || left(current_schema()::text, 12), '')";
/// What changes with every version, every purge and every report of progress, and with nothing else.
const COUNTERS: &str = "SELECT sequence + (SELECT count(*) FROM waypost_inbox), purges,
     (SELECT max(progressed_at) FROM waypost_leases) FROM waypost_control WHERE id = 1";

/// Listens as long as its pool exists.
pub(super) struct Listener {
    pool: Arc<Pool>,
    ready: Arc<(Mutex<bool>, Condvar)>,
}

/// The state of the listening thread.
struct Listening {
    ready: Arc<(Mutex<bool>, Condvar)>,
    seen: Option<Counters>,
    heard: u64,
    /// The next pause between two polls.
    poll: Duration,
    /// The next pause between two tries to connect.
    reconnect: Duration,
    /// Whether the database supports notifications.
    is_supported: bool,
}

type Counters = (i64, i64, Option<i64>);

impl Listener {
    pub(super) fn open(pool: &Arc<Pool>) -> Self {
        let ready: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let mut listening = Listening {
            ready: Arc::clone(&ready),
            seen: None,
            heard: 0,
            poll: POLL.0,
            reconnect: RECONNECT.0,
            is_supported: true,
        };
        let listened: Weak<Pool> = Arc::downgrade(pool);
        let notified = Arc::clone(pool.notification_state());
        let listen = move || {
            while let Some(pool) = listened.upgrade() {
                let time = listening.check(&pool);
                drop(pool);
                notified.wait_until_closed(time);
            }
        };
        // Without a thread, the watch reports nothing until its time is over, and its owner looks then.
        let _thread = std::thread::Builder::new().name("listen".to_owned()).spawn(listen);
        Self { pool: Arc::clone(pool), ready }
    }

    /// Starts to watch: every commit from now on is reported.
    pub(super) fn watch(&self) -> Box<dyn Watch> {
        let (ready, changed) = &*self.ready;
        let ready = ready.lock().unwrap_or_else(PoisonError::into_inner);
        let patience = Duration::from_secs(CONNECT_SECONDS_MAX);
        // If there is no connection in time, the watch is signalled once there is one: commits may have been missed
        // until then.
        drop(changed.wait_timeout_while(ready, patience, |ready| !*ready));
        // Notifications of earlier commits may be on their way. They are no news for this watch, and other watches are
        // told now. If the server cannot be asked, this watch is signalled once too often.
        if let Ok(Some((versions, ..))) = self.pool.on_link(&mut RetryDeadline::at_once(), counters) {
            self.pool.notification_state().report(u64::try_from(versions).unwrap_or(0));
        }
        Box::new(Hearing {
            bell: self.pool.notification_state().signal.watch(),
            _pool: Arc::clone(&self.pool),
        })
    }
}

/// A watch that keeps the connections. It may outlive the store that it came from.
struct Hearing {
    bell: Box<dyn Watch>,
    _pool: Arc<Pool>,
}

impl Watch for Hearing {
    fn wait(&mut self, at_most: Duration) -> Result<bool> {
        self.bell.wait(at_most)
    }
}

impl Listening {
    /// Makes sure that a connection listens, and reports what no notification has reported. Returns the time until the
    /// next look.
    fn check(&mut self, pool: &Pool) -> Duration {
        pool.close_unneeded();
        if pool.is_listener_lent() {
            return LISTEN_CHECK;
        }
        let Ok(mut borrowed) = pool.take(&RetryDeadline::at_once()) else { return self.later() };
        let link = borrowed.link();
        let looked = self.listen(link).and_then(|is_new| Ok((is_new, counters(link)?)));
        let (listens, is_lost) = (link.listens, matches!(looked, Err(Failure::Lost(_))));
        if !is_lost {
            borrowed.give_back();
        }
        let Ok((is_new, now)) = looked else { return self.later() };
        self.reconnect = RECONNECT.0;
        let heard = pool.notification_state().notifications();
        let is_unreported = self.seen != now && heard == self.heard;
        // Signal what may have been written while no connection listened.
        if is_new || self.seen.is_none() || is_unreported {
            pool.notification_state().signal.ring();
        }
        self.poll = if self.seen == now { (self.poll * 2).min(POLL.1) } else { POLL.0 };
        (self.seen, self.heard) = (now, heard);
        let (ready, changed) = &*self.ready;
        *ready.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
        if listens { LISTEN_CHECK } else { self.poll }
    }

    fn later(&mut self) -> Duration {
        let time = self.reconnect;
        self.reconnect = (time * 2).min(RECONNECT.1);
        time
    }

    /// Makes this connection listen. Returns whether it has only begun to.
    fn listen(&mut self, link: &mut Link) -> Result<bool, Failure> {
        if link.listens || !link.is_direct() || !self.is_supported {
            return Ok(false);
        }
        let answers = link.run(&[Call::new(CHANNEL)])?;
        let channel = answers.first().and_then(|rows| rows.first());
        let channel: String = channel.and_then(|row| row.try_get(0).ok()).unwrap_or_default();
        match link.script(&format!("LISTEN \"{}\"", channel.replace('"', "\"\""))) {
            Ok(()) => {
                link.listens = true;
                Ok(true)
            }
            Err(Failure::Refused { .. }) => {
                self.is_supported = false;
                Ok(false)
            }
            Err(failure) => Err(failure),
        }
    }
}

fn counters(link: &mut Link) -> Result<Option<Counters>, Failure> {
    let answers = link.run(&[Call::new(COUNTERS)])?;
    let Some(row) = answers.first().and_then(|rows| rows.first()) else { return Ok(None) };
    let read = || Ok((rows::get(row, 0)?, rows::get(row, 1)?, rows::get(row, 2)?));
    read().map(Some).map_err(Failure::Store)
}

/// Listens on one connection, notifies on another, and measures how long the notification takes; `None` when it does
/// not arrive.
pub(super) fn round_trip(pool: &Pool) -> Option<Duration> {
    // A channel of its own, so that other processes are not woken and their notifications are not counted.
    let mut random = [0; 8];
    getrandom::fill(&mut random).ok()?;
    let channel = format!("waypost_{:016x}", u64::from_le_bytes(random));
    let (mut listener, mut speaker) = (pool.open().ok()?, pool.open().ok()?);
    // Through a pooler, an answer would only prove that both got the same session.
    let is_direct = listener.is_direct();
    let told = listener.script(&format!("LISTEN {channel}")).and_then(|()| {
        let (heard, began) = (pool.notification_state().notifications(), Instant::now());
        speaker.script(&format!("NOTIFY {channel}"))?;
        while pool.notification_state().notifications() == heard && began.elapsed() < ECHO_TIME_MAX {
            pause(Duration::from_millis(1));
        }
        Ok(Some(began.elapsed()).filter(|_| pool.notification_state().notifications() > heard))
    });
    listener.close();
    speaker.close();
    told.ok()?.filter(|_| is_direct)
}
