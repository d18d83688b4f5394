//! Connections: TLS with the system's certificates (rustls with ring), and plain TCP, with timeouts and keepalive.

use std::sync::Arc;
use std::time::Duration;

use hyper_rustls::ConfigBuilderExt;
use hyper_util::client::legacy::connect::HttpConnector;

/// Seconds that establishing a connection may take.
const CONNECT_SECONDS_MAX: u64 = 10;
/// Seconds of silence after which keepalive probes are sent.
const KEEPALIVE_SECONDS: u64 = 30;

/// Returns the TLS configuration with the system's certificates.
pub(crate) fn tls() -> Result<rustls::ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let settings = || {
        rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())
    };
    Ok(match settings()?.with_native_roots() {
        Ok(builder) => builder.with_no_client_auth(),
        // Without certificates no server can be trusted, but plain HTTP to local services still works.
        Err(_) => settings()?.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth(),
    })
}

pub(crate) fn plain() -> HttpConnector {
    let mut plain = HttpConnector::new();
    plain.enforce_http(false);
    plain.set_connect_timeout(Some(Duration::from_secs(CONNECT_SECONDS_MAX)));
    plain.set_keepalive(Some(Duration::from_secs(KEEPALIVE_SECONDS)));
    plain
}
