//! One connection, and how a blocking thread uses it: several calls are sent and answered together in one round trip.
//! Does not know what the calls do.

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Connection, Error, Row, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::connection_config::{Address, CONNECT_SECONDS_MAX};
use crate::backends::sqlite::Durability;
use crate::error::{Result, StoreError};
use crate::log::change_watch::MemorySignal;

/// How long the server lets one call wait for a row that another writer holds; then the call is retried.
const LOCK_TIMEOUT: &str = "5s";
/// After this time the server cancels one call.
const STATEMENT_TIMEOUT: &str = "30s";
const CALL_SECONDS_MAX: u64 = 30;
/// A connection is not used again after a larger row, which is a large plan: most processes read it once.
const ROW_BYTES_KEPT_MAX: usize = 4 << 20;
/// How long a writer may be idle between two round trips. Then the server rolls back its transaction: a stopped
/// process, or a machine that is gone, delays other writers no longer than that.
const IDLE_TIMEOUT: &str = "10s";
/// How long the end of a connection may take.
const CLOSE_TIME_MAX: Duration = Duration::from_millis(500);
/// Seconds until a round trip counts as lost, and with it the connection.
pub(super) const ROUND_TRIP_SECONDS_MAX: u64 = CALL_SECONDS_MAX + 5;

/// The thread that reads from and writes to the connections of a store.
pub(super) struct Driver(Option<Runtime>);

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Driver {
    pub(super) fn start() -> Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("postgres").enable_all().build();
        let runtime =
            runtime.map_err(|error| StoreError::Database(format!("no thread can be started: {error}")))?;
        Ok(Self(Some(runtime)))
    }

    fn runtime(&self) -> &Runtime {
        self.0.as_ref().expect("it is taken away only when it is dropped")
    }

    /// Waits for `work` on this thread. Unlike the runtime's `block_on` it may also be used on threads of other
    /// runtimes.
    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        let _entered = self.runtime().enter();
        let waker = Arc::new(Unpark(std::thread::current())).into();
        let mut context = Context::from_waker(&waker);
        let mut work = pin!(work);
        loop {
            match work.as_mut().poll(&mut context) {
                Poll::Ready(answer) => return answer,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Does not wait: the caller that drops the store may be asynchronous.
            runtime.shutdown_background();
        }
    }
}

/// How much a process has sent to a server, without the thread that numbers versions after their commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The number of statements.
    pub statements: u64,
    /// The number of waits for an answer; statements that were sent together count once.
    pub round_trips: u64,
    /// The number of connections that were opened, failed tries included.
    pub connections: u64,
}

#[derive(Default)]
pub(super) struct Counters {
    statements: AtomicU64,
    round_trips: AtomicU64,
    connections: AtomicU64,
}

impl Counters {
    pub(super) fn read(&self) -> Traffic {
        Traffic {
            statements: self.statements.load(Ordering::Relaxed),
            round_trips: self.round_trips.load(Ordering::Relaxed),
            connections: self.connections.load(Ordering::Relaxed),
        }
    }
}

/// The reason why a round trip returned no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection is gone, or its state is unknown. The calls may have been executed.
    Lost(String),
    /// The server rolled the transaction back in favour of another: it can be retried.
    Again(String),
    /// Another writer did not finish in time.
    Locked,
    /// The work must be the only writer of the store.
    Exclusive,
    /// Versions that the work must see have no number yet.
    Unnumbered,
    /// This build cannot interpret the answer.
    Store(StoreError),
    /// The server returned an error.
    Refused {
        /// The SQLSTATE code; empty for an error of the driver.
        code: String,
        /// The message of the error.
        text: String,
    },
}

/// Parts of driver messages about permanent errors.
const LASTING: [&str; 6] = [
    "error serializing",
    "error encoding",
    "invalid configuration",
    "authentication error",
    "certificate",
    "does not support TLS",
];

impl Failure {
    /// Returns the text of the failure.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Lost(text) | Self::Again(text) => text.clone(),
            Self::Locked => "another writer was not done in time".to_owned(),
            Self::Exclusive => "the work needs to be the only writer".to_owned(),
            Self::Unnumbered => "versions have no number yet".to_owned(),
            Self::Store(error) => error.to_string(),
            Self::Refused { code, text } if code.is_empty() => text.clone(),
            Self::Refused { code, text } => format!("{text} ({code})"),
        }
    }

    pub(super) fn of(error: &Error) -> Self {
        let Some(said) = error.as_db_error() else {
            let text = match std::error::Error::source(error) {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            };
            let lasts = LASTING.iter().any(|words| text.contains(words));
            return if lasts { Self::Refused { code: String::new(), text } } else { Self::Lost(text) };
        };
        let (code, text) = (said.code().code(), said.message().to_owned());
        match code {
            // A unique value, such as the id of a plan, was taken at the same moment.
            "40001" | "40P01" | "23505" => Self::Again(text),
            "55P03" => Self::Locked,
            // Shutdown, crash, startup; idle timeouts; too many connections. Class 08 below: connection errors.
            "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "25P04" | "53300" => Self::Lost(text),
            code if code.starts_with("08") => Self::Lost(text),
            code => Self::Refused { code: code.to_owned(), text },
        }
    }
}

/// A value that can be a parameter.
pub(super) trait Value: ToSql + Sync + Send + 'static {
    const TYPE: Type;
}

macro_rules! values {
    ($($type:ty: $sql:ident,)*) => { $(impl Value for $type { const TYPE: Type = Type::$sql; })* };
}

values! {
    i64: INT8, Option<i64>: INT8, i32: INT4, bool: BOOL, String: TEXT, Option<String>: TEXT, Vec<u8>: BYTEA,
    Option<Vec<u8>>: BYTEA, Vec<i64>: INT8_ARRAY, Vec<Option<i64>>: INT8_ARRAY, Vec<i32>: INT4_ARRAY,
    Vec<bool>: BOOL_ARRAY, Vec<String>: TEXT_ARRAY, Vec<Option<String>>: TEXT_ARRAY,
    Vec<Option<Vec<u8>>>: BYTEA_ARRAY,
}

/// One statement with its values.
pub(super) struct Call {
    sql: Cow<'static, str>,
    values: Vec<(Box<dyn ToSql + Sync + Send>, Type)>,
}

impl Call {
    pub(super) fn new(sql: &'static str) -> Self {
        Self { sql: Cow::Borrowed(sql), values: Vec::new() }
    }

    /// Builds a statement that is used once and never prepared.
    pub(super) fn once(sql: String) -> Self {
        Self { sql: Cow::Owned(sql), values: Vec::new() }
    }

    pub(super) fn with<V: Value>(mut self, value: V) -> Self {
        self.values.push((Box::new(value), V::TYPE));
        self
    }

    /// Adds an array with one value of each row.
    pub(super) fn column<T, V>(self, rows: &[T], of: impl Fn(&T) -> V) -> Self
    where
        Vec<V>: Value,
    {
        self.with(rows.iter().map(of).collect::<Vec<V>>())
    }

    fn types(&self) -> Vec<Type> {
        self.values.iter().map(|(_, of)| of.clone()).collect()
    }
}

enum CachedStatement {
    /// It was used once: the next use prepares it.
    Once,
    Prepared(Statement),
}

/// The rows of each call, in the order of the calls.
pub(super) type Answers = Vec<Vec<Row>>;

/// A connection.
pub(super) struct Link {
    client: Client,
    driver: Arc<Driver>,
    counters: Arc<Counters>,
    known: HashMap<&'static str, CachedStatement>,
    route: Route,
    /// The statement that sets up a transaction behind a pooler.
    local_settings: String,
    /// Whether this connection receives notifications.
    pub(super) listens: bool,
    /// Whether what it sends is not counted.
    pub(super) is_background: bool,
    /// Whether it has received a large row: its buffer keeps that size for as long as it is open.
    pub(super) has_large_buffer: bool,
    /// Ends when the socket is closed.
    line: JoinHandle<()>,
}

/// The side of a connection that reads from and writes to the socket.
type Line = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// Whether statements of one connection always reach the same session of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// They do: settings, prepared statements and `LISTEN` last.
    Direct,
    /// A pooler gives each transaction any session: nothing outlasts a transaction.
    Pooled,
}

/// What every connection of a process has in common.
pub(super) struct Connector {
    pub(super) address: Address,
    pub(super) tls: MakeRustlsConnect,
    pub(super) durability: Durability,
    pub(super) driver: Arc<Driver>,
    pub(super) counters: Arc<Counters>,
    /// Whether a pooler was found on the way to the server.
    pub(super) pooled: AtomicBool,
    pub(super) notified: Arc<NotificationState>,
}

/// What the connections of a process have received besides answers.
#[derive(Default)]
pub(super) struct NotificationState {
    /// Rings when another process may have written.
    pub(super) signal: MemorySignal,
    /// The number of notifications.
    notifications: AtomicU64,
    /// The latest number of the log that was reported. A notification of an earlier one is no news.
    reported: AtomicU64,
    /// Whether a connection was closed since somebody last waited for that.
    is_closed: Mutex<bool>,
    changed: Condvar,
}

impl NotificationState {
    /// Returns the number of notifications so far.
    pub(super) fn notifications(&self) -> u64 {
        self.notifications.load(Ordering::Relaxed)
    }

    fn notify(&self, payload: &str) {
        self.notifications.fetch_add(1, Ordering::Relaxed);
        match payload.parse() {
            Ok(number) => self.report(number),
            // It is about something else than versions.
            Err(_) => self.signal.ring(),
        }
    }

    /// Rings if the log has not been reported up to this number.
    pub(super) fn report(&self, number: u64) {
        if self.reported.fetch_max(number, Ordering::Relaxed) < number {
            self.signal.ring();
        }
    }

    fn close(&self) {
        *self.is_closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits until a connection has been closed since the last call, or until the time is over.
    pub(super) fn wait_until_closed(&self, at_most: Duration) {
        let since = self.is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(since, at_most, |since| !*since);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

/// The settings of every transaction.
const SETTINGS: [(&str, &str); 4] = [
    ("lock_timeout", LOCK_TIMEOUT),
    ("statement_timeout", STATEMENT_TIMEOUT),
    ("idle_in_transaction_session_timeout", IDLE_TIMEOUT),
    // All statements are short: compiling one takes longer than running it.
    ("jit", "off"),
];
/// A setting of our own that a session has if nothing stands between it and this process.
const MARKER: &str = "waypost.connection";
/// A server setting that is as strong or stronger is left as it is.
const DURABLE: &str = "CASE WHEN current_setting('synchronous_commit') IN ('on', 'remote_apply')
     THEN current_setting('synchronous_commit') ELSE 'on' END";

/// Returns whether a pooler, or a server that only resembles PostgreSQL, refused the settings of a new connection.
fn refuses_settings(failure: &Failure) -> bool {
    match failure {
        Failure::Refused { code, text } => {
            matches!(code.as_str(), "08P01" | "42704" | "0A000") || text.contains("startup parameter")
        }
        Failure::Lost(text) => text.contains("startup parameter"),
        Failure::Again(_)
        | Failure::Locked
        | Failure::Exclusive
        | Failure::Unnumbered
        | Failure::Store(_) => false,
    }
}

impl Connector {
    /// Opens a connection. The settings that last for the session are part of the request.
    async fn connect(&self, settings: Option<&str>) -> Result<(Client, Line), Failure> {
        self.counters.connections.fetch_add(1, Ordering::Relaxed);
        let mut config = self.address.config.clone();
        if let Some(settings) = settings {
            let own = config.get_options().unwrap_or_default();
            config.options(format!("{own} {settings}").trim());
        }
        // The timeout of the configuration covers only the TCP connect.
        let within = Duration::from_secs(CONNECT_SECONDS_MAX);
        match tokio::time::timeout(within, config.connect(self.tls.clone())).await {
            Ok(made) => made.map_err(|error| Failure::of(&error)),
            Err(_) => Err(Failure::Lost(format!("no answer within {CONNECT_SECONDS_MAX} seconds"))),
        }
    }

    /// Connects with the settings of the session if possible, and otherwise without.
    fn dial(&self, marker: &str) -> Result<(Client, Line, Route), Failure> {
        let direct = || {
            let all = SETTINGS.iter().copied().chain([(MARKER, marker)]);
            let settings: Vec<String> = all.map(|(name, value)| format!("-c {name}={value}")).collect();
            self.driver.wait(self.connect(Some(&settings.join(" "))))
        };
        if !self.pooled.load(Ordering::Relaxed) {
            match direct() {
                Ok((client, line)) => return Ok((client, line, Route::Direct)),
                Err(failure) if refuses_settings(&failure) => {
                    if self.address.config.get_options().is_some() {
                        let text = format!(
                            "{}; what stands between this process and the server refuses options: remove `options` \
                             from the URL and PGOPTIONS, and set what they say on the role",
                            failure.describe()
                        );
                        return Err(Failure::Refused { code: String::new(), text });
                    }
                }
                Err(failure) => return Err(failure),
            }
        }
        let (client, line) = self.driver.wait(self.connect(None))?;
        Ok((client, line, Route::Pooled))
    }

    /// Returns the statement that sets up a transaction behind a pooler.
    fn local_settings(&self) -> String {
        let set = |(name, value): &(&str, &str)| format!("set_config('{name}', '{value}', true)");
        let mut all: Vec<String> = SETTINGS.iter().map(set).collect();
        all.push(match self.durability {
            Durability::Relaxed => "set_config('synchronous_commit', 'off', true)".to_owned(),
            Durability::Full => format!("set_config('synchronous_commit', {DURABLE}, true)"),
        });
        format!("SELECT {}", all.join(", "))
    }
}

/// Reads from and writes to the socket until it is closed. Rings for every notification that is news.
async fn drive(mut line: Line, notified: Arc<NotificationState>) {
    while let Some(Ok(message)) = poll_fn(|context| line.poll_message(context)).await {
        if let AsyncMessage::Notification(notification) = message {
            notified.notify(notification.payload());
        }
    }
    notified.close();
}

impl Link {
    /// Connects, and finds out whether settings last.
    pub(super) fn open(connector: &Connector) -> Result<Self, Failure> {
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| Failure::Store(StoreError::Database(format!("no randomness: {error}"))))?;
        let marker = format!("{:016x}", u64::from_le_bytes(random));
        let (client, line, route) = connector.dial(&marker)?;
        let line = drive(line, Arc::clone(&connector.notified));
        let line = connector.driver.runtime().spawn(line);
        let (driver, counters) = (Arc::clone(&connector.driver), Arc::clone(&connector.counters));
        let (known, local_settings) = (HashMap::new(), connector.local_settings());
        let (listens, is_background, has_large_buffer) = (false, false, false);
        let mut link = Self {
            client,
            driver,
            counters,
            known,
            route,
            local_settings,
            listens,
            is_background,
            has_large_buffer,
            line,
        };
        if route == Route::Direct {
            let mut calls = vec![Call::new("SELECT current_setting($1, true)").with(MARKER.to_owned())];
            calls.push(match connector.durability {
                Durability::Relaxed => Call::new("SELECT set_config('synchronous_commit', 'off', false)"),
                Durability::Full => {
                    Call::once(format!("SELECT set_config('synchronous_commit', {DURABLE}, false)"))
                }
            });
            let mut answers = link.exchange(&calls, ROUND_TRIP_SECONDS_MAX)?.into_iter();
            let found = match answers.next() {
                Some(Ok(rows)) => rows.first().and_then(|row| row.try_get::<_, Option<String>>(0).ok()?),
                Some(Err(lost @ Failure::Lost(_))) => return Err(lost),
                Some(Err(_)) | None => None,
            };
            if found.as_deref() != Some(&marker) {
                link.route = Route::Pooled;
            }
        }
        connector.pooled.store(link.route == Route::Pooled, Ordering::Relaxed);
        Ok(link)
    }

    /// Returns the statements that begin a transaction of this kind.
    pub(super) fn begin(&self, sql: &'static str) -> Vec<Call> {
        let mut calls = vec![Call::new(sql)];
        if self.route == Route::Pooled {
            calls.push(Call::once(self.local_settings.clone()));
        }
        calls
    }

    fn count(&self, statements: u64, round_trips: u64) {
        if !self.is_background {
            self.counters.statements.fetch_add(statements, Ordering::Relaxed);
            self.counters.round_trips.fetch_add(round_trips, Ordering::Relaxed);
        }
    }

    /// Returns whether settings, prepared statements and `LISTEN` outlast a transaction.
    pub(super) fn is_direct(&self) -> bool {
        self.route == Route::Direct
    }

    /// Ends the session of the server, and waits a moment until it has been told.
    pub(super) fn close(self) {
        let Self { client, driver, line, .. } = self;
        drop(client);
        let _closed = driver.wait(async { tokio::time::timeout(CLOSE_TIME_MAX, line).await });
    }

    /// Returns whether the connection is known to be closed.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Sends all calls and waits for all answers. Returns the first failure: within a transaction the others follow
    /// from it.
    pub(super) fn run(&mut self, calls: &[Call]) -> Result<Answers, Failure> {
        self.prepare(calls)?;
        let answers: Answers =
            self.exchange(calls, ROUND_TRIP_SECONDS_MAX)?.into_iter().collect::<Result<_, _>>()?;
        self.has_large_buffer |=
            answers.iter().flatten().any(|row| row.raw_size_bytes() > ROW_BYTES_KEPT_MAX);
        Ok(answers)
    }

    /// Sends a call without waiting for its answer.
    pub(super) fn send(&mut self, call: &'static str) {
        self.count(1, 0);
        let _answered_later = self.client.batch_execute(call).now_or_never();
    }

    /// Runs several statements without values.
    pub(super) fn script(&mut self, sql: &str) -> Result<(), Failure> {
        self.count(1, 1);
        self.driver.wait(self.client.batch_execute(sql)).map_err(|error| Failure::of(&error))
    }

    /// Prepares statements that are used for the second time, so that they are parsed once.
    fn prepare(&mut self, calls: &[Call]) -> Result<(), Failure> {
        if self.route == Route::Pooled {
            return Ok(());
        }
        let mut wanted: Vec<(&'static str, Vec<Type>)> = Vec::new();
        for call in calls {
            let Cow::Borrowed(sql) = call.sql else { continue };
            match self.known.get(sql) {
                None => drop(self.known.insert(sql, CachedStatement::Once)),
                Some(CachedStatement::Once) if wanted.iter().all(|(other, _)| *other != sql) => {
                    wanted.push((sql, call.types()));
                }
                Some(CachedStatement::Once | CachedStatement::Prepared(_)) => {}
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let client = &self.client;
        let work = wanted.iter().map(|(sql, types)| client.prepare_typed(sql, types));
        let made = self.together(work.map(FutureExt::boxed_local).collect(), ROUND_TRIP_SECONDS_MAX)?;
        for ((sql, _), made) in wanted.into_iter().zip(made) {
            self.known.insert(sql, CachedStatement::Prepared(made?));
        }
        Ok(())
    }

    fn exchange(&self, calls: &[Call], seconds: u64) -> Result<Vec<Result<Vec<Row>, Failure>>, Failure> {
        let work = calls.iter().map(|call| self.ask(call).boxed_local()).collect();
        self.together(work, seconds)
    }

    async fn ask(&self, call: &Call) -> Result<Vec<Row>, Error> {
        let prepared = match &call.sql {
            Cow::Borrowed(sql) => self.known.get(sql),
            Cow::Owned(_) => None,
        };
        match prepared {
            Some(CachedStatement::Prepared(statement)) => {
                let values: Vec<&(dyn ToSql + Sync)> =
                    call.values.iter().map(|(value, _)| &**value as &(dyn ToSql + Sync)).collect();
                self.client.query(statement, &values).await
            }
            Some(CachedStatement::Once) | None => {
                let values: Vec<(&(dyn ToSql + Sync), Type)> = call
                    .values
                    .iter()
                    .map(|(value, of)| (&**value as &(dyn ToSql + Sync), of.clone()))
                    .collect();
                self.client.query_typed(&call.sql, &values).await
            }
        }
    }

    /// Polls all futures in their order, so that they are sent in it, until each has its answer.
    fn together<T>(
        &self,
        mut work: Vec<LocalBoxFuture<'_, Result<T, Error>>>,
        seconds: u64,
    ) -> Result<Vec<Result<T, Failure>>, Failure> {
        self.count(work.len() as u64, 1);
        let mut answers: Vec<Option<Result<T, Failure>>> = work.iter().map(|_| None).collect();
        let all = poll_fn(|context| {
            let mut waiting = false;
            for (work, answer) in work.iter_mut().zip(&mut answers).filter(|(_, answer)| answer.is_none()) {
                match work.as_mut().poll(context) {
                    Poll::Ready(found) => *answer = Some(found.map_err(|error| Failure::of(&error))),
                    Poll::Pending => waiting = true,
                }
            }
            if waiting { Poll::Pending } else { Poll::Ready(()) }
        });
        let bounded = async { tokio::time::timeout(Duration::from_secs(seconds), all).await };
        if self.driver.wait(bounded).is_err() {
            return Err(Failure::Lost(format!("no answer for {seconds} seconds")));
        }
        Ok(answers.into_iter().flatten().collect())
    }
}
