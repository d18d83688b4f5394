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

/// Connections at the same time.
pub const CONNECTIONS_MAX: usize = 640;
/// Connections beyond those, which only get `/health` and 503; more than these wait.
pub const SPARE_CONNECTIONS_MAX: usize = 64;
/// Seconds that one of these may last.
pub const SPARE_SECONDS_MAX: u64 = 2;
/// Seconds that the head of a request may take to come in.
pub const HEADER_SECONDS_MAX: u64 = 30;
/// Seconds that responses may take after shutdown began.
pub const STOP_SECONDS_MAX: u64 = 5;
/// Between two looks whether the server still runs, and after a connection that could not be taken.
const LOOK: Duration = Duration::from_secs(1);

/// Serves until `stop`, then lets answers that were begun be finished.
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
        // What goes wrong with one connection is that caller's matter.
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
    // Streams that would go on for ever end now, and with them their connections.
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
    /// For as long as it wants.
    Whole(OwnedSemaphorePermit),
    /// For one short answer.
    Spare(OwnedSemaphorePermit),
}

/// The places that there are.
struct ConnectionPermits {
    whole: Arc<Semaphore>,
    spare: Arc<Semaphore>,
}

impl ConnectionPermits {
    fn new() -> Self {
        let whole = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        Self { whole, spare: Arc::new(Semaphore::new(SPARE_CONNECTIONS_MAX)) }
    }

    /// The next connection, once there is any place for it; nothing if it was gone before it was taken.
    async fn take(&self, listener: &TcpListener) -> io::Result<Option<(TcpStream, ConnectionPermit)>> {
        let spare = Arc::clone(&self.spare).acquire_owned().await.map_err(io::Error::other)?;
        match listener.accept().await {
            Ok((stream, _)) => {
                // Looked at only now: there may be more room than when the wait began.
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
                    // Too many files are open, most likely: others have to be closed first.
                    tokio::time::sleep(LOOK).await;
                }
                Ok(None)
            }
        }
    }
}

/// Revoking a token ends the sessions and streams that use it.
fn watch_tokens(site: &Arc<Site>, ended: Weak<AtomicBool>) {
    let site = Arc::clone(site);
    let mut watch = watch_file(site.tokens().path());
    std::thread::spawn(move || {
        loop {
            let heard = watch.wait(LOOK).unwrap_or(true);
            if ended.upgrade().is_none_or(|ended| ended.load(Ordering::Acquire)) {
                return;
            }
            if heard {
                site.sweep();
            }
        }
    });
}
