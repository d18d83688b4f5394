//! Encrypted connections: the project's one TLS implementation, with libpq's modes of checking a server's certificate.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::connection_config::{Address, Check};
use crate::error::{Result, StoreError};

/// Returns the TLS configuration for this address.
pub(super) fn connector(address: &Address) -> Result<MakeRustlsConnect> {
    let wrong = |what: String| StoreError::Unreachable(format!("{}: {what}", address.location));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?;
    let is_disabled = address.config.get_ssl_mode() == SslMode::Disable;
    let check = if is_disabled { Check::Nothing } else { address.check };
    let verifier: Arc<dyn ServerCertVerifier> = match check {
        Check::Nothing => Arc::new(Lenient { provider, authorities: None }),
        Check::Authority | Check::AuthorityAndHost => {
            let roots = roots(address.roots.as_deref()).map_err(wrong)?;
            let full = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            let full = full.build().map_err(|error| wrong(error.to_string()))?;
            match check {
                Check::Authority => Arc::new(Lenient { provider, authorities: Some(full) }),
                Check::Nothing | Check::AuthorityAndHost => full,
            }
        }
    };
    let config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Loads the authorities from a file, or those of the system.
fn roots(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            let named = |what: String| format!("sslrootcert {}: {what}", file.display());
            let found = CertificateDer::pem_file_iter(file).map_err(|error| named(error.to_string()))?;
            for certificate in found {
                let certificate = certificate.map_err(|error| named(error.to_string()))?;
                roots.add(certificate).map_err(|error| named(error.to_string()))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(
            "there are no certificates of authorities to check the server's against: name a file with \
                    sslrootcert"
                .to_owned(),
        );
    }
    Ok(roots)
}

/// Checks less than `verify-full`: the weaker modes of libpq.
#[derive(Debug)]
struct Lenient {
    provider: Arc<CryptoProvider>,
    /// Checks that an authority signed the certificate, for any host: `verify-ca`. `None` accepts every certificate:
    /// the connection is encrypted, but the server is not authenticated.
    authorities: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authorities) = &self.authorities else { return Ok(ServerCertVerified::assertion()) };
        match authorities.verify_server_cert(certificate, between, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
