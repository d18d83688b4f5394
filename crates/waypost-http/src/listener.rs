//! The listening socket: accepts connections up to a limit, and shuts down gracefully.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::IntoResponse;
use axum::routing::any;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use waypost_store::watch_file;

use crate::router::Site;

/// Maximum number of concurrent connections.
pub const CONNECTIONS_MAX: usize = 640;
/// Connections beyond that limit, which get only `/health` and 503. Further connections wait.
pub const SPARE_CONNECTIONS_MAX: usize = 64;
/// Maximum duration of such a connection, in seconds.
pub const SPARE_SECONDS_MAX: u64 = 2;
/// Maximum time to receive the head of a request, in seconds.
pub const HEADER_SECONDS_MAX: u64 = 30;
/// Maximum time for responses after shutdown began, in seconds.
pub const STOP_SECONDS_MAX: u64 = 5;
/// Time between two checks whether the server still runs, and the pause after a failed accept.
const LOOK: Duration = Duration::from_secs(1);

/// Serves until `stop`, then lets responses in progress finish.
pub async fn serve(listener: TcpListener, site: Site, stop: impl Future<Output = ()>) -> io::Result<()> {
    let site = Arc::new(site);
    let ended = Arc::new(AtomicBool::new(false));
    watch_tokens(&site, Arc::downgrade(&ended));
    let (router, spare_router) = (site.router(), site.spare_router(any(at_capacity)));
    let seats = ConnectionPermits::new();
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(HEADER_SECONDS_MAX));
    let mut once = http1::Builder::new();
    once.keep_alive(false);
    tokio::pin!(stop);
    loop {
        let taken = tokio::select! {
            () = &mut stop => break,
            taken = seats.take(&listener) => taken?,
        };
        let Some((stream, seat)) = taken else { continue };
        let stream = TokioIo::new(stream);
        // The error of one connection concerns only its client.
        match seat {
            ConnectionPermit::Whole(permit) => {
                let service = TowerToHyperService::new(router.clone());
                let connection = graceful.watch(http.serve_connection(stream, service));
                tokio::spawn(async move {
                    let _broken = connection.await;
                    drop(permit);
                });
            }
            ConnectionPermit::Spare(permit) => {
                let service = TowerToHyperService::new(spare_router.clone());
                let connection = once.serve_connection(stream, service);
                tokio::spawn(async move {
                    let bound = Duration::from_secs(SPARE_SECONDS_MAX);
                    let _broken_or_late = tokio::time::timeout(bound, connection).await;
                    drop(permit);
                });
            }
        }
    }
    drop(listener);
    ended.store(true, Ordering::Release);
    // Endless streams end now, and with them their connections.
    site.close();
    let _late = tokio::time::timeout(Duration::from_secs(STOP_SECONDS_MAX), graceful.shutdown()).await;
    Ok(())
}

async fn at_capacity() -> impl IntoResponse {
    let text = format!("{CONNECTIONS_MAX} connections are open already; close one of them, or retry\n");
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, SPARE_SECONDS_MAX.to_string())], text)
}

/// A permit for a connection.
enum ConnectionPermit {
    /// For a connection without a time limit.
    Whole(OwnedSemaphorePermit),
    /// For one short response.
    Spare(OwnedSemaphorePermit),
}

/// The permits that are available.
struct ConnectionPermits {
    whole: Arc<Semaphore>,
    spare: Arc<Semaphore>,
}

impl ConnectionPermits {
    fn new() -> Self {
        let whole = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        Self { whole, spare: Arc::new(Semaphore::new(SPARE_CONNECTIONS_MAX)) }
    }

    /// Accepts the next connection once any permit is free. Returns `None` if the accept failed.
    async fn take(&self, listener: &TcpListener) -> io::Result<Option<(TcpStream, ConnectionPermit)>> {
        let spare = Arc::clone(&self.spare).acquire_owned().await.map_err(io::Error::other)?;
        match listener.accept().await {
            Ok((stream, _)) => {
                // Acquired only now: a permit may have become free during the wait.
                let whole = Arc::clone(&self.whole).try_acquire_owned();
                Ok(Some((stream, whole.map_or(ConnectionPermit::Spare(spare), ConnectionPermit::Whole))))
            }
            Err(error) => {
                let of_the_caller = matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionAborted
                        | io::ErrorKind::ConnectionReset
                        | io::ErrorKind::ConnectionRefused
                );
                if !of_the_caller {
                    // Most likely too many files are open: others have to be closed first.
                    tokio::time::sleep(LOOK).await;
                }
                Ok(None)
            }
        }
    }
}

/// Watches the token files: revoking a token ends the sessions and streams that use it.
fn watch_tokens(site: &Arc<Site>, ended: Weak<AtomicBool>) {
    let site = Arc::clone(site);
    let mut watch = watch_file(site.tokens().watched());
    let mut known = site.tokens().changes();
    std::thread::spawn(move || {
        loop {
            let _looks_anyway = watch.wait(LOOK);
            if ended.upgrade().is_none_or(|ended| ended.load(Ordering::Acquire)) {
                return;
            }
            let found = site.tokens().changes();
            if found != known {
                known = found;
                site.sweep();
            }
        }
    });
}
