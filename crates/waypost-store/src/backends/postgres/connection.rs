//! One connection, and how a blocking thread uses it: several calls are sent and answered together in one round trip.
//! Does not know what the calls do.

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Connection, Error, Row, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::connection_config::{Address, CONNECT_SECONDS_MAX};
use crate::backends::sqlite::Durability;
use crate::error::{Result, StoreError};

/// Seconds for which the server lets one call wait for a row that another writer holds; then the call is retried.
pub(super) const LOCK_SECONDS_MAX: u64 = 5;
/// Seconds after which the server cancels one call.
const CALL_SECONDS_MAX: u64 = 30;
/// Seconds until a round trip counts as lost, and with it the connection.
pub(super) const ROUND_TRIP_SECONDS_MAX: u64 = CALL_SECONDS_MAX + 5;
/// Seconds for which a writer may be idle between two round trips. Then the server rolls back its transaction: a
/// stopped process, or a machine that is gone, delays other writers no longer than that.
pub(super) const WRITER_IDLE_SECONDS_MAX: u64 = 10;

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

    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.runtime().spawn(work);
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

/// How much a process has sent to a server.
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
            "40001" | "40P01" => Self::Again(text),
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
}

/// The side of a connection that reads from and writes to the socket.
pub(super) type Line = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// Opens a connection without configuring it.
pub(super) async fn connect(
    address: &Address,
    tls: &MakeRustlsConnect,
    counters: &Counters,
) -> Result<(Client, Line), Failure> {
    counters.connections.fetch_add(1, Ordering::Relaxed);
    // The timeout of the configuration covers only the TCP connect.
    let within = Duration::from_secs(CONNECT_SECONDS_MAX);
    match tokio::time::timeout(within, address.config.connect(tls.clone())).await {
        Ok(made) => made.map_err(|error| Failure::of(&error)),
        Err(_) => Err(Failure::Lost(format!("no answer within {CONNECT_SECONDS_MAX} seconds"))),
    }
}

impl Link {
    /// Connects, and sets the timeouts of the server.
    pub(super) fn open(
        address: &Address,
        tls: &MakeRustlsConnect,
        driver: &Arc<Driver>,
        counters: &Arc<Counters>,
        durability: Durability,
    ) -> Result<Self, Failure> {
        let (client, connection) = driver.wait(connect(address, tls, counters))?;
        driver.spawn(async move { drop(connection.await) });
        let (driver, counters) = (Arc::clone(driver), Arc::clone(counters));
        let link = Self { client, driver, counters, known: HashMap::new() };
        let seconds = |seconds: u64| format!("{seconds}s");
        let bounds = [
            ("lock_timeout", seconds(LOCK_SECONDS_MAX)),
            ("statement_timeout", seconds(CALL_SECONDS_MAX)),
            ("idle_in_transaction_session_timeout", seconds(WRITER_IDLE_SECONDS_MAX)),
            // The planner's statistics may date from when a table was empty: rows of these tables come and go.
            ("enable_seqscan", "off".to_owned()),
            ("enable_hashjoin", "off".to_owned()),
            ("enable_mergejoin", "off".to_owned()),
            // With those the estimated costs are so high that the server would compile every such statement.
            ("jit", "off".to_owned()),
        ];
        let set = |(name, value): (&'static str, String)| {
            Call::new("SELECT set_config($1, $2, false)").with(name.to_owned()).with(value)
        };
        let mut calls: Vec<Call> = bounds.into_iter().map(set).collect();
        calls.push(match durability {
            Durability::Relaxed => set(("synchronous_commit", "off".to_owned())),
            // A server setting that is as strong or stronger is left as it is.
            Durability::Full => Call::new(
                "SELECT set_config('synchronous_commit', 'on', false)
                 WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')",
            ),
        });
        for answer in link.exchange(&calls, ROUND_TRIP_SECONDS_MAX)? {
            match answer {
                Ok(_) => {}
                Err(lost @ Failure::Lost(_)) => return Err(lost),
                // Databases that only resemble PostgreSQL do not support all of these settings.
                Err(Failure::Refused { .. } | Failure::Again(_) | Failure::Locked | Failure::Store(_)) => {}
            }
        }
        Ok(link)
    }

    /// Returns whether the connection is known to be closed.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Sends all calls and waits for all answers. Returns the first failure: within a transaction the others follow
    /// from it.
    pub(super) fn run(&mut self, calls: &[Call]) -> Result<Answers, Failure> {
        self.prepare(calls)?;
        self.exchange(calls, ROUND_TRIP_SECONDS_MAX)?.into_iter().collect()
    }

    /// Sends a call without waiting for its answer.
    pub(super) fn send(&mut self, call: &'static str) {
        self.counters.statements.fetch_add(1, Ordering::Relaxed);
        let _answered_later = self.client.batch_execute(call).now_or_never();
    }

    /// Runs several statements without values.
    pub(super) fn script(&mut self, sql: &str) -> Result<(), Failure> {
        self.counters.statements.fetch_add(1, Ordering::Relaxed);
        self.counters.round_trips.fetch_add(1, Ordering::Relaxed);
        self.driver.wait(self.client.batch_execute(sql)).map_err(|error| Failure::of(&error))
    }

    /// Prepares statements that are used for the second time, so that they are parsed once.
    fn prepare(&mut self, calls: &[Call]) -> Result<(), Failure> {
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
        self.counters.statements.fetch_add(work.len() as u64, Ordering::Relaxed);
        self.counters.round_trips.fetch_add(1, Ordering::Relaxed);
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
