//! Listen addresses, the host and origin checks, and the metrics endpoint of a worker.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::sync::oneshot;
use waypost_config::Config;
use waypost_http::{HostOriginGuard, METRICS_PATH, Site, TokenFiles, Tokens, metrics, serve};
use waypost_store::Store;

use waypost_cli::actor::account;
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};

/// Parses ADDR:PORT, or a port on the loopback address.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse::<u16>().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    port.or_else(|_| text.parse())
        .map_err(|_| "write ADDR:PORT, such as 127.0.0.1:8021, or a port".to_owned())
}

/// The tokens of the store that is used in the current folder.
pub(crate) fn tokens(context: &Context) -> Outcome<Tokens> {
    let store = context.store_location()?;
    Ok(Tokens::new(TokenFiles::of(account(), &store.location, &context.folders()?.own)))
}

/// Serves a worker's metrics until it is dropped.
pub(crate) struct Metrics {
    stop: Option<oneshot::Sender<()>>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Metrics {
    /// Binds the address and starts serving.
    pub(crate) fn begin(
        context: &Context,
        listen: SocketAddr,
        store: Arc<dyn Store>,
        config: &Config,
    ) -> Outcome<Self> {
        let site =
            Site::new(host_origin_guard(listen, &[], &[])?, tokens(context)?, vec![metrics(store, config)]);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| Failure::failed(format!("no runtime: {error}"), ""))?;
        let listener = runtime.block_on(tokio::net::TcpListener::bind(listen));
        let listener = listener.and_then(|listener| listener.local_addr().map(|at| (listener, at)));
        let (listener, at) = listener
            .map_err(|error| Failure::failed(format!("{listen}: {error}"), "choose another --metrics"))?;
        context.out.say(format!("metrics at http://{at}{METRICS_PATH}"));
        let (stop, stopped) = oneshot::channel();
        runtime.spawn(serve(listener, site, async {
            let _worker_is_gone = stopped.await;
        }));
        Ok(Self { stop: Some(stop), runtime: Some(runtime) })
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ended_already = stop.send(());
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Builds the guard that decides which host names and origins are answered.
pub(crate) fn host_origin_guard(
    listen: SocketAddr,
    hosts: &[String],
    origins: &[String],
) -> Outcome<HostOriginGuard> {
    let mut guard = HostOriginGuard::local();
    if !listen.ip().is_unspecified() {
        // A bound address is always a valid host name.
        let _is_a_name = guard.allow_host(&listen.ip().to_string());
    }
    for host in hosts {
        if !guard.allow_host(host) {
            return Err(Failure::usage(
                format!("--allow-host {host:?} is not a host name"),
                "write HOST or HOST:PORT",
            ));
        }
    }
    for origin in origins {
        if !guard.allow_origin(origin) {
            let message = format!("--allow-origin {origin:?} is not an origin");
            return Err(Failure::usage(message, "write it with its scheme, such as https://example.org"));
        }
    }
    Ok(guard)
}
