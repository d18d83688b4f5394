//! The socket: takes connections, as many as there may be, and ends them in good order.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use waypost_store::watch_file;

use crate::site::Site;

/// Connections at the same time; further ones wait.
pub const CONNECTIONS_MAX: usize = 512;
/// Seconds that the head of a request may take to come in.
pub const HEADER_SECONDS_MAX: u64 = 30;
/// Seconds that answers may take after the server was told to stop.
pub const STOP_SECONDS_MAX: u64 = 5;
/// Between two looks whether the server still runs, and after a connection that could not be taken.
const LOOK: Duration = Duration::from_secs(1);

/// Serves until `stop`, then lets answers that were begun be finished.
pub async fn serve(listener: TcpListener, site: Site, stop: impl Future<Output = ()>) -> io::Result<()> {
    let site = Arc::new(site);
    let ended = Arc::new(AtomicBool::new(false));
    watch_tokens(&site, Arc::downgrade(&ended));
    let router = site.router();
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(HEADER_SECONDS_MAX));
    tokio::pin!(stop);
    loop {
        let taken = tokio::select! {
            () = &mut stop => break,
            taken = take(&listener, &connections) => taken?,
        };
        let Some((stream, permit)) = taken else { continue };
        let service = TowerToHyperService::new(router.clone());
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // What goes wrong with one connection is that caller's matter.
            let _broken = connection.await;
            drop(permit);
        });
    }
    drop(listener);
    ended.store(true, Ordering::Release);
    // Streams that would go on for ever end now, and with them their connections.
    site.close();
    let _late = tokio::time::timeout(Duration::from_secs(STOP_SECONDS_MAX), graceful.shutdown()).await;
    Ok(())
}

type Taken = Option<(tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit)>;

/// The next connection, once there is room for it; nothing if it was gone before it was taken.
async fn take(listener: &TcpListener, connections: &Arc<Semaphore>) -> io::Result<Taken> {
    let permit = Arc::clone(connections).acquire_owned().await.map_err(io::Error::other)?;
    match listener.accept().await {
        Ok((stream, _)) => Ok(Some((stream, permit))),
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

/// A token that is revoked ends what goes on under it.
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
