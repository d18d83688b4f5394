//! Notifications of other processes' writes: one listening connection for all watchers. If it breaks, it reconnects;
//! where the server has no notifications, the latest counters are polled.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_postgres::{AsyncMessage, Client};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::connection::{Counters, Driver, Failure, Line, connect};
use super::connection_config::{Address, CONNECT_SECONDS_MAX};
use crate::error::Result;
use crate::log::change_watch::{MemorySignal, WATCH_SLOWLY, Watch};

/// The time between two checks of whether the listening connection works.
const LISTEN_CHECK: Duration = Duration::from_secs(5);
/// Seconds after which a check counts as failed.
const LOOK_SECONDS_MAX: u64 = 10;
/// Maximum pause between two tries to connect.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The first of these pauses.
const PAUSE_MIN: Duration = Duration::from_millis(50);

/// Notifies the channel of this schema. 12 characters of its name are enough: a schema that shares them only wakes
/// watchers in vain.
pub(super) const NOTIFY: &str = "SELECT pg_notify('waypost_' || left(current_schema()::text, 12), '')";

/// Listens as long as its driver runs.
pub(super) struct Listener {
    driver: Arc<Driver>,
    bell: MemorySignal,
    ready: Arc<(Mutex<bool>, Condvar)>,
}

/// The state of the listening task.
struct Listening {
    address: Address,
    tls: MakeRustlsConnect,
    counters: Arc<Counters>,
    bell: MemorySignal,
    ready: Arc<(Mutex<bool>, Condvar)>,
    /// The number of notifications received.
    heard: Arc<AtomicU64>,
}

impl Listener {
    pub(super) fn open(
        driver: &Arc<Driver>,
        address: &Address,
        tls: &MakeRustlsConnect,
        counters: &Arc<Counters>,
    ) -> Self {
        let ears = Self { driver: Arc::clone(driver), bell: MemorySignal::default(), ready: Arc::default() };
        let listening = Listening {
            address: address.clone(),
            tls: tls.clone(),
            counters: Arc::clone(counters),
            bell: ears.bell.clone(),
            ready: Arc::clone(&ears.ready),
            heard: Arc::default(),
        };
        driver.spawn(listening.run());
        ears
    }

    /// Starts to watch: every commit from now on is reported.
    pub(super) fn watch(&self) -> Box<dyn Watch> {
        let (ready, changed) = &*self.ready;
        let ready = ready.lock().unwrap_or_else(PoisonError::into_inner);
        let patience = Duration::from_secs(CONNECT_SECONDS_MAX);
        // If there is no connection in time, the watch is signalled once there is one: commits may have been missed
        // until then.
        drop(changed.wait_timeout_while(ready, patience, |ready| !*ready));
        Box::new(Hearing { bell: self.bell.watch(), _driver: Arc::clone(&self.driver) })
    }
}

/// A watch that keeps the driver alive. It may outlive the store that it came from.
struct Hearing {
    bell: Box<dyn Watch>,
    _driver: Arc<Driver>,
}

impl Watch for Hearing {
    fn wait(&mut self, at_most: Duration) -> Result<bool> {
        self.bell.wait(at_most)
    }
}

impl Listening {
    async fn run(self) {
        let mut pause = PAUSE_MIN;
        loop {
            if let Ok((client, line)) = connect(&self.address, &self.tls, &self.counters).await
                && self.attend(&client, line).await
            {
                pause = PAUSE_MIN;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Listens until the connection breaks. Returns whether it ever listened.
    async fn attend(&self, client: &Client, line: Line) -> bool {
        let (bell, heard) = (self.bell.clone(), Arc::clone(&self.heard));
        let mut hearing = tokio::spawn(forward_notifications(line, bell, heard));
        let Some(listens) = listen(client).await else { return false };
        let Some(mut seen) = read_counters(client).await else { return false };
        // Signal what may have been written while there was no connection.
        self.bell.ring();
        let (ready, changed) = &*self.ready;
        *ready.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
        let every = if listens { LISTEN_CHECK } else { WATCH_SLOWLY };
        let mut heard = self.heard.load(Ordering::Relaxed);
        loop {
            tokio::select! {
                _ = &mut hearing => return true,
                () = tokio::time::sleep(every) => {}
            }
            let Some(now) = read_counters(client).await else { return true };
            let heard_now = self.heard.load(Ordering::Relaxed);
            if now != seen && heard_now == heard {
                self.bell.ring();
            }
            (seen, heard) = (now, heard_now);
        }
    }
}

/// Signals every notification.
async fn forward_notifications(mut line: Line, bell: MemorySignal, heard: Arc<AtomicU64>) {
    while let Some(Ok(message)) = poll_fn(|context| line.poll_message(context)).await {
        if let AsyncMessage::Notification(_) = message {
            heard.fetch_add(1, Ordering::Relaxed);
            bell.ring();
        }
    }
}

/// Starts to listen. Returns whether the database supports it, or `None` if the connection broke.
async fn listen(client: &Client) -> Option<bool> {
    let found =
        within(client.query_typed("SELECT 'waypost_' || left(current_schema()::text, 12)", &[])).await?;
    let channel: String = match found {
        Ok(rows) => rows.first()?.try_get(0).ok()?,
        Err(_) => return None,
    };
    let listen = format!("LISTEN \"{}\"", channel.replace('"', "\"\""));
    match within(client.batch_execute(&listen)).await? {
        Ok(()) => Some(true),
        Err(error) => match Failure::of(&error) {
            Failure::Refused { .. } => Some(false),
            Failure::Lost(_) | Failure::Again(_) | Failure::Locked | Failure::Store(_) => None,
        },
    }
}

/// Reads what changes with every version, every purge and every report of progress.
async fn read_counters(client: &Client) -> Option<(i64, i64, Option<i64>)> {
    const COUNTERS: &str = "SELECT sequence, purges, (SELECT max(progressed_at) FROM waypost_leases)
         FROM waypost_control WHERE id = 1";
    let rows = within(client.query_typed(COUNTERS, &[])).await?.ok()?;
    let row = rows.first()?;
    Some((row.try_get(0).ok()?, row.try_get(1).ok()?, row.try_get(2).ok()?))
}

async fn within<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::from_secs(LOOK_SECONDS_MAX), work).await.ok()
}

/// Listens on one connection, notifies on another, and measures how long the notification takes.
pub(super) async fn round_trip(
    address: &Address,
    tls: &MakeRustlsConnect,
    counters: &Counters,
) -> Option<Duration> {
    let (listener, mut line) = connect(address, tls, counters).await.ok()?;
    let (speaker, speaking) = connect(address, tls, counters).await.ok()?;
    tokio::spawn(async move { drop(speaking.await) });
    // A channel of its own, so that other processes are not woken and their notifications are not counted.
    let mut random = [0; 8];
    getrandom::fill(&mut random).ok()?;
    let channel = format!("waypost_{:016x}", u64::from_le_bytes(random));
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| line.poll_message(context)).await {
            if let AsyncMessage::Notification(_) = message {
                let _nobody_waits = tell.send(());
            }
        }
    });
    within(listener.batch_execute(&format!("LISTEN {channel}"))).await?.ok()?;
    let began = Instant::now();
    within(speaker.batch_execute(&format!("NOTIFY {channel}"))).await?.ok()?;
    within(told.recv()).await??;
    Some(began.elapsed())
}
