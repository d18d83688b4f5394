//! The route to a server, directly or through the proxy that the environment variables name.
//!
//! `https` goes through a tunnel (CONNECT), so that the proxy cannot read it; `http` requests are sent to the proxy
//! itself. This machine is never reached through a proxy.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, PROXY_AUTHORIZATION};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::{Request, Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioIo};
use percent_encoding::percent_decode_str;
use tokio::net::TcpStream;
use tower_service::Service;

use waypost_config::{ip_address as address, is_this_machine};

use crate::tls::{TlsOptions, WebClient, client_with, plain, tls};

#[derive(Clone)]
pub enum Route {
    Direct,
    Proxy(Arc<Proxy>),
    /// Directly, with certificates of its own.
    Private(Arc<WebClient>),
}

/// A proxy. `shown` contains no password.
pub struct Proxy {
    shown: String,
    speaks: Speaks,
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct => f.write_str("Direct"),
            Self::Proxy(proxy) => write!(f, "Proxy({})", proxy.shown),
            Self::Private(_) => f.write_str("Private"),
        }
    }
}

enum Speaks {
    Tunnel(Client<HttpsConnector<Tunnel<HttpConnector>>, Full<Bytes>>),
    Plain(Client<ToProxy, Full<Bytes>>, Option<HeaderValue>),
}

impl Route {
    /// Goes directly to servers with certificates of their own.
    pub fn private(options: &TlsOptions) -> Result<Self, String> {
        Ok(Self::Private(Arc::new(client_with(options)?)))
    }

    /// Selects the route to this URL by the variables of an environment.
    pub fn to(url: &str, variables: &BTreeMap<String, String>) -> Result<Self, String> {
        let target: Uri = url.parse().map_err(|_| "it is not a valid address".to_owned())?;
        let said = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| variables.get(*name).map(|value| value.trim()))
                .filter(|value| !value.is_empty())
        };
        let is_secure = target.scheme_str() == Some("https");
        let proxy = match is_secure {
            true => said(&["HTTPS_PROXY", "https_proxy"]),
            false => said(&["http_proxy", "HTTP_PROXY"]),
        };
        let Some(proxy) = proxy.or_else(|| said(&["ALL_PROXY", "all_proxy"])) else {
            return Ok(Self::Direct);
        };
        let host = target.host().unwrap_or("");
        if is_this_machine(host) || is_excepted(host, said(&["NO_PROXY", "no_proxy"]).unwrap_or("")) {
            return Ok(Self::Direct);
        }
        let (proxy, credentials) = parse(proxy)?;
        let shown = proxy.to_string();
        let speaks = if is_secure {
            let tunnel = Tunnel::new(proxy, plain());
            let tunnel = match credentials {
                Some(credentials) => tunnel.with_auth(credentials),
                None => tunnel,
            };
            let builder = HttpsConnectorBuilder::new().with_tls_config(tls()?).https_only().enable_http1();
            Speaks::Tunnel(Client::builder(TokioExecutor::new()).build(builder.wrap_connector(tunnel)))
        } else {
            let connector = ToProxy { proxy, inner: plain() };
            Speaks::Plain(Client::builder(TokioExecutor::new()).build(connector), credentials)
        };
        Ok(Self::Proxy(Arc::new(Proxy { shown, speaks })))
    }

    /// The URL of the proxy, without its password.
    pub fn proxy(&self) -> Option<&str> {
        match self {
            Self::Direct | Self::Private(_) => None,
            Self::Proxy(proxy) => Some(&proxy.shown),
        }
    }
}

impl Proxy {
    pub(super) async fn request(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Error> {
        match &self.speaks {
            Speaks::Tunnel(client) => client.request(request).await,
            Speaks::Plain(client, credentials) => {
                if let Some(credentials) = credentials {
                    request.headers_mut().insert(PROXY_AUTHORIZATION, credentials.clone());
                }
                client.request(request).await
            }
        }
    }
}

/// Splits the value into the proxy's URL and its credentials, as a header. Errors do not repeat the value: it may
/// contain a password.
fn parse(value: &str) -> Result<(Uri, Option<HeaderValue>), String> {
    let bad =
        || "the proxy variable is not a valid address; expected http://USER:PASSWORD@HOST:PORT".to_owned();
    let (scheme, rest) = value.split_once("://").unwrap_or(("http", value));
    if !scheme.eq_ignore_ascii_case("http") {
        return Err("only proxies that are spoken to over http:// are known here".to_owned());
    }
    let rest = rest.split('/').next().unwrap_or("");
    let (login, host) = rest.rsplit_once('@').map_or((None, rest), |(login, host)| (Some(login), host));
    let uri: Uri = format!("http://{host}").parse().map_err(|_| bad())?;
    if uri.host().is_none_or(str::is_empty) {
        return Err(bad());
    }
    let Some(login) = login else { return Ok((uri, None)) };
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let plain = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
    let together = [plain(user), b":".to_vec(), plain(password)].concat();
    let mut header =
        HeaderValue::from_str(&format!("Basic {}", BASE64.encode(&together))).map_err(|_| bad())?;
    header.set_sensitive(true);
    Ok((uri, Some(header)))
}

/// Whether `NO_PROXY` names a host: `*`, a domain with all its subdomains, an address or a network.
fn is_excepted(host: &str, list: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let of_host = address(&host);
    list.split([',', ' ']).map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
        if entry == "*" {
            return true;
        }
        if let (Some((network, bits)), Some(of_host)) = (entry.split_once('/'), of_host) {
            return address(network)
                .zip(bits.parse().ok())
                .is_some_and(|(network, bits)| is_within(of_host, network, bits));
        }
        if let (Some(entry), Some(of_host)) = (address(entry), of_host) {
            return entry == of_host;
        }
        let name = entry.trim_start_matches("*.").trim_start_matches('.').to_ascii_lowercase();
        host == name || host.strip_suffix(&name).is_some_and(|before| before.ends_with('.'))
    })
}

fn is_within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    let same = |a: u128, b: u128, width: u32| bits <= width && (bits == 0 || (a ^ b) >> (width - bits) == 0);
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => same(u32::from(a).into(), u32::from(b).into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => same(a.into(), b.into(), 128),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

/// Connects to the proxy, whatever the target is.
#[derive(Clone)]
struct ToProxy {
    proxy: Uri,
    inner: HttpConnector,
}

type Boxed = Box<dyn std::error::Error + Send + Sync>;

impl Service<Uri> for ToProxy {
    type Response = Proxied;
    type Error = Boxed;
    type Future = Pin<Box<dyn Future<Output = Result<Proxied, Boxed>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Boxed>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, _target: Uri) -> Self::Future {
        let connecting = self.inner.call(self.proxy.clone());
        Box::pin(async move { Ok(Proxied(connecting.await?)) })
    }
}

/// A connection to a proxy, on which requests carry the full URL.
struct Proxied(TokioIo<TcpStream>);

impl Connection for Proxied {
    fn connected(&self) -> Connected {
        self.0.connected().proxy(true)
    }
}

impl Read for Proxied {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl Write for Proxied {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_say_which_way_leads_to_a_server() {
        let way = |url: &str, variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let route = Route::to(url, &variables.collect());
            route.map(|route| route.proxy().map(str::to_owned))
        };
        let both = [
            ("HTTPS_PROXY", "http://bob:pw@proxy.example:3128"),
            ("http_proxy", "other:8080"),
            ("NO_PROXY", "example.org, 10.0.0.0/8,.corp,fd00::/8"),
        ];
        let through = |proxy: &str| Ok(Some(proxy.to_owned()));
        assert_eq!(way("https://api.example.com/v1", &both), through("http://proxy.example:3128/"));
        assert_eq!(way("http://api.example.com/v1", &both), through("http://other:8080/"));
        for direct in [
            "https://example.org",
            "https://api.EXAMPLE.org",
            "https://10.1.2.3",
            "http://x.corp",
            "https://localhost:8080",
            "http://127.0.0.1:11434/v1",
            "http://[::1]:80",
            "https://[fd12::1]",
        ] {
            assert_eq!(way(direct, &both), Ok(None), "{direct}");
        }
        for proxied in ["https://notexample.org", "https://11.0.0.1", "https://[fe80::1]"] {
            assert_eq!(way(proxied, &both), through("http://proxy.example:3128/"), "{proxied}");
        }
        assert_eq!(way("https://a.example", &[]), Ok(None));
        assert_eq!(way("https://a.example", &[("ALL_PROXY", "p:1"), ("no_proxy", "*")]), Ok(None));
        for bad in ["socks5://p:1", "http://u:secret@", "https://p:1"] {
            let error = way("https://a.example", &[("HTTPS_PROXY", bad)]).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn names_and_passwords_are_sent_as_basic_credentials() {
        let (uri, header) = parse("http://Aladdin:open%20sesame@p:1/").unwrap();
        assert_eq!(
            (uri.to_string().as_str(), header.unwrap().to_str().unwrap()),
            ("http://p:1/", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        );
        for (text, encoded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(BASE64.encode(text), encoded);
        }
    }
}
