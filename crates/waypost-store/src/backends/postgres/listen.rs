//! Notifications of other processes' writes: one listening connection for all watchers. If it breaks, it reconnects; where
//! the server has no notifications, the latest numbers are polled.

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

/// Between two looks whether the connection that listens still hears.
const LISTEN_CHECK: Duration = Duration::from_secs(5);
/// Until a look counts as failed.
const LOOK_SECONDS_MAX: u64 = 10;
/// Between two tries to connect, at the most.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The first of them.
const PAUSE_MIN: Duration = Duration::from_millis(50);

/// The channel of this schema. A few characters of its name are enough: a schema that shares them only wakes watchers in vain.
pub(super) const NOTIFY: &str = "SELECT pg_notify('waypost_' || left(current_schema()::text, 12), '')";

/// Listens as long as its driver runs.
pub(super) struct Listener {
    driver: Arc<Driver>,
    bell: MemorySignal,
    ready: Arc<(Mutex<bool>, Condvar)>,
}

/// What the task that listens needs.
struct Listening {
    address: Address,
    tls: MakeRustlsConnect,
    counters: Arc<Counters>,
    bell: MemorySignal,
    ready: Arc<(Mutex<bool>, Condvar)>,
    /// How often something was heard.
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

    /// Begins to watch: everything that is committed from now on is heard.
    pub(super) fn watch(&self) -> Box<dyn Watch> {
        let (ready, changed) = &*self.ready;
        let ready = ready.lock().unwrap_or_else(PoisonError::into_inner);
        let patience = Duration::from_secs(CONNECT_SECONDS_MAX);
        // Who cannot wait longer is told when there is a connection: something may have been missed until then.
        drop(changed.wait_timeout_while(ready, patience, |ready| !*ready));
        Box::new(Hearing { bell: self.bell.watch(), _driver: Arc::clone(&self.driver) })
    }
}

/// A watch. It outlives the store that it came from.
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

    /// Listens until the connection breaks. Says whether it ever heard.
    async fn attend(&self, client: &Client, line: Line) -> bool {
        let (bell, heard) = (self.bell.clone(), Arc::clone(&self.heard));
        let mut hearing = tokio::spawn(forward_notifications(line, bell, heard));
        let Some(listens) = listen(client).await else { return false };
        let Some(mut seen) = read_counters(client).await else { return false };
        // Report what may have been written while nobody listened.
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

/// Rings for every word that comes.
async fn forward_notifications(mut line: Line, bell: MemorySignal, heard: Arc<AtomicU64>) {
    while let Some(Ok(message)) = poll_fn(|context| line.poll_message(context)).await {
        if let AsyncMessage::Notification(_) = message {
            heard.fetch_add(1, Ordering::Relaxed);
            bell.ring();
        }
    }
}

/// Whether the database lets anybody listen; nothing when the connection broke.
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

/// The numbers that change with every write that anybody should hear of.
async fn read_counters(client: &Client) -> Option<(i64, i64)> {
    let found =
        within(client.query_typed("SELECT sequence, purges FROM waypost_control WHERE id = 1", &[])).await?;
    let rows = found.ok()?;
    let row = rows.first()?;
    Some((row.try_get(0).ok()?, row.try_get(1).ok()?))
}

async fn within<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::from_secs(LOOK_SECONDS_MAX), work).await.ok()
}

/// Listens on one connection, speaks on another, and measures how long it takes to be heard.
pub(super) async fn round_trip(
    address: &Address,
    tls: &MakeRustlsConnect,
    counters: &Counters,
) -> Option<Duration> {
    let (listener, mut line) = connect(address, tls, counters).await.ok()?;
    let (speaker, speaking) = connect(address, tls, counters).await.ok()?;
    tokio::spawn(async move { drop(speaking.await) });
    // A channel of its own, so that nobody else is woken and nobody else is heard.
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
