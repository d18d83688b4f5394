//! Connections: TLS with the system's certificates (rustls with ring), and plain TCP, with timeouts and keepalive.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper_rustls::{ConfigBuilderExt, FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Seconds that establishing a connection may take.
const CONNECT_SECONDS_MAX: u64 = 10;
/// Seconds of silence after which keepalive probes are sent.
const KEEPALIVE_SECONDS: u64 = 30;

pub(crate) type WebClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// How a server proves itself, and how this side does.
#[derive(Clone, Default)]
pub struct TlsOptions {
    /// The certificates of the authorities that are trusted, as PEM; otherwise those of the system.
    pub authorities: Option<Vec<u8>>,
    /// The certificate of this side with its chain, and its private key, as PEM.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The name in the server's certificate, if it is not that of the host.
    pub server_name: Option<String>,
    /// Whether any certificate is accepted.
    pub accepts_any: bool,
}

/// Returns the TLS configuration with the system's certificates.
pub(crate) fn tls() -> Result<ClientConfig, String> {
    tls_with(&TlsOptions::default())
}

/// Returns the TLS configuration with these options.
pub(crate) fn tls_with(options: &TlsOptions) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let settings = || {
        ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())
    };
    let builder = match &options.authorities {
        _ if options.accepts_any => settings()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(Arc::clone(&provider)))),
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate =
                    certificate.map_err(|error| format!("a certificate of an authority: {error}"))?;
                roots.add(certificate).map_err(|error| format!("a certificate of an authority: {error}"))?;
            }
            settings()?.with_root_certificates(roots)
        }
        // Without certificates no server can be trusted, but plain HTTP to local services still works.
        None => match settings()?.with_native_roots() {
            Ok(builder) => builder,
            Err(_) => settings()?.with_root_certificates(RootCertStore::empty()),
        },
    };
    let Some((chain, key)) = &options.identity else { return Ok(builder.with_no_client_auth()) };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
    let chain = chain.map_err(|error| format!("the client's certificate: {error}"))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("the client's key: {error}"))?;
    builder.with_client_auth_cert(chain, key).map_err(|error| format!("the client's certificate: {error}"))
}

/// Accepts any certificate, for servers whose operator says so.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Returns a client with connections of its own.
pub(crate) fn client_with(options: &TlsOptions) -> Result<WebClient, String> {
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls_with(options)?).https_or_http();
    let connector = match &options.server_name {
        None => builder.enable_http1().wrap_connector(plain()),
        Some(name) => {
            let name = ServerName::try_from(name.clone())
                .map_err(|_| format!("{name:?} is not the name of a server"))?;
            let builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
            builder.enable_http1().wrap_connector(plain())
        }
    };
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

pub(crate) fn plain() -> HttpConnector {
    let mut plain = HttpConnector::new();
    plain.enforce_http(false);
    plain.set_connect_timeout(Some(Duration::from_secs(CONNECT_SECONDS_MAX)));
    plain.set_keepalive(Some(Duration::from_secs(KEEPALIVE_SECONDS)));
    plain
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use rustls::server::WebPkiClientVerifier;
    use rustls::{ServerConfig, ServerConnection, StreamOwned};

    use super::*;
    use crate::http_client::{Request, begin};
    use crate::proxy::Route;

    // Made for these tests: two authorities, a server called api.example, and a client of each authority.
    const AUTHORITY: &[u8] = include_bytes!("../fixtures/authority.pem");
    const STRANGER: &[u8] = include_bytes!("../fixtures/stranger.pem");
    const SERVER: (&[u8], &[u8]) =
        (include_bytes!("../fixtures/server.pem"), include_bytes!("../fixtures/server.key"));
    const CLIENT: (&[u8], &[u8]) =
        (include_bytes!("../fixtures/client.pem"), include_bytes!("../fixtures/client.key"));
    const STRANGE_CLIENT: (&[u8], &[u8]) =
        (include_bytes!("../fixtures/strange-client.pem"), include_bytes!("../fixtures/strange-client.key"));

    /// Answers every client that the authority knows.
    fn serve() -> u16 {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(AUTHORITY).unwrap()).unwrap();
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .unwrap();
        let (chain, key) = SERVER;
        let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>().unwrap();
        let config =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_client_cert_verifier(clients);
        let config =
            Arc::new(config.with_single_cert(chain, PrivateKeyDer::from_pem_slice(key).unwrap()).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = StreamOwned::new(connection, stream.unwrap());
                let mut read = Vec::new();
                let mut piece = [0; 1024];
                while !read.ends_with(b"\r\n\r\n") {
                    match stream.read(&mut piece) {
                        Ok(0) | Err(_) => break,
                        Ok(count) => read.extend_from_slice(&piece[..count]),
                    }
                }
                // Whoever was refused has gone.
                let _gone =
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
            }
        });
        port
    }

    #[test]
    fn servers_and_clients_prove_themselves_by_an_authority_of_their_own() {
        let port = serve();
        let owned = |(chain, key): (&[u8], &[u8])| Some((chain.to_vec(), key.to_vec()));
        let status = |options: TlsOptions| {
            let request = Request {
                method: "GET",
                url: format!("https://127.0.0.1:{port}/"),
                headers: Vec::new(),
                body: String::new(),
                bytes_max: 100,
            };
            let asked = async {
                let answer = begin(&request, &Route::private(&options)?).await?;
                Ok::<_, String>(answer.whole(100).await?.body)
            };
            crate::wait_for(asked).unwrap()
        };
        let whole = TlsOptions {
            authorities: Some(AUTHORITY.to_vec()),
            identity: owned(CLIENT),
            server_name: Some("api.example".to_owned()),
            accepts_any: false,
        };
        assert_eq!(status(whole.clone()).unwrap(), "ok");
        for (name, options) in [
            ("another authority", TlsOptions { authorities: Some(STRANGER.to_vec()), ..whole.clone() }),
            ("the system's authorities", TlsOptions { authorities: None, ..whole.clone() }),
            ("another name", TlsOptions { server_name: None, ..whole.clone() }),
            ("no identity", TlsOptions { identity: None, ..whole.clone() }),
            ("a stranger's identity", TlsOptions { identity: owned(STRANGE_CLIENT), ..whole.clone() }),
            ("bad PEM", TlsOptions { identity: Some((b"x".to_vec(), b"y".to_vec())), ..whole.clone() }),
        ] {
            assert!(status(options).is_err(), "{name}");
        }
        let any = TlsOptions { authorities: None, server_name: None, accepts_any: true, ..whole };
        assert_eq!(status(any).unwrap(), "ok");
    }
}
