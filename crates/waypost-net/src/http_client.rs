//! Sends HTTP requests and reads the response, as a whole with a size limit or in parts. One TLS stack (rustls with
//! ring), with the certificates of the system's store.

use std::error::Error;
use std::sync::OnceLock;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::{Uri, header};

use crate::proxy::Route;
use crate::tls::{TlsOptions, WebClient, client_with};

/// Redirects that are followed for one request.
const REDIRECTS_MAX: usize = 5;

pub struct Request {
    pub method: &'static str,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// Bytes of the response that are read.
    pub bytes_max: u64,
}

pub struct Answer {
    pub status: u16,
    headers: header::HeaderMap,
    pub body: String,
    /// Whether the response is larger than the limit; then `body` is empty.
    pub too_much: bool,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

fn client() -> Result<&'static WebClient, String> {
    static CLIENT: OnceLock<Result<WebClient, String>> = OnceLock::new();
    CLIENT.get_or_init(|| client_with(&TlsOptions::default())).as_ref().map_err(Clone::clone)
}

/// Sends a request and reads the response. Redirects on the same host are followed; others are errors.
pub async fn send(mut request: Request) -> Result<Answer, String> {
    for _ in 0..=REDIRECTS_MAX {
        let answer = send_once(&request).await?;
        let keeps_method = matches!(answer.status, 307 | 308);
        let is_redirect = keeps_method || matches!(answer.status, 301..=303) && request.method == "GET";
        match answer.header(header::LOCATION.as_str()) {
            Some(target) if is_redirect => request.url = on_the_same_host(&request.url, target)?,
            Some(_) | None => return Ok(answer),
        }
    }
    Err(format!("{}: too many redirects (limit {REDIRECTS_MAX})", request.url))
}

async fn send_once(request: &Request) -> Result<Answer, String> {
    begin(request, &Route::Direct).await?.whole(request.bytes_max).await
}

/// A response that is read in parts.
pub struct Incomplete {
    pub status: u16,
    url: String,
    headers: header::HeaderMap,
    body: Incoming,
}

/// Sends a request and returns when the response begins. Does not follow redirects.
pub async fn begin(request: &Request, route: &Route) -> Result<Incomplete, String> {
    let mut builder = hyper::Request::builder().method(request.method).uri(&request.url);
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    let agent = concat!("waypost/", env!("CARGO_PKG_VERSION"));
    let body = Full::new(Bytes::from(request.body.clone()));
    let sent = builder.header(header::USER_AGENT, agent).body(body);
    let sent = sent.map_err(|_| format!("a header for {} cannot be sent: look at its value", request.url))?;
    let response = match route {
        Route::Direct => client()?.request(sent).await,
        Route::Proxy(proxy) => proxy.request(sent).await,
        Route::Private(client) => client.request(sent).await,
    };
    let response = response.map_err(|error| cannot_reach(&request.url, &error))?;
    let (head, body) = response.into_parts();
    Ok(Incomplete { status: head.status.as_u16(), url: request.url.clone(), headers: head.headers, body })
}

impl Incomplete {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the next bytes; `None` at the end.
    pub async fn more(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(reasons(&error)),
                // A frame without data is a trailer.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) if bytes.is_empty() => {}
                    Ok(bytes) => return Ok(Some(bytes)),
                    Err(_) => {}
                },
            }
        }
    }

    pub async fn whole(self, bytes_max: u64) -> Result<Answer, String> {
        let limit = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let (body, too_much) = match Limited::new(self.body, limit).collect().await {
            Ok(body) => (String::from_utf8_lossy(&body.to_bytes()).into_owned(), false),
            Err(error) if error.is::<LengthLimitError>() => (String::new(), true),
            Err(error) => return Err(cannot_reach(&self.url, &*error)),
        };
        Ok(Answer { status: self.status, headers: self.headers, body, too_much })
    }
}

fn cannot_reach(url: &str, error: &dyn Error) -> String {
    format!("{url} cannot be reached: {}", reasons(error))
}

/// Returns an error with its causes: the outermost error rarely explains what happened.
fn reasons(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let reason = error.to_string();
        if !text.contains(&reason) {
            text = format!("{text}: {reason}");
        }
        next = error.source();
    }
    text
}

/// Resolves a URL in a response from `from`; an error if it leads to another host.
pub fn on_the_same_host(from: &str, target: &str) -> Result<String, String> {
    let base: Uri = from.parse().map_err(|_| format!("{from} is not an address"))?;
    let (Some(scheme), Some(authority)) = (base.scheme_str(), base.authority()) else {
        return Err(format!("{from} is not a full address"));
    };
    let origin = format!("{scheme}://{authority}");
    let elsewhere = || format!("{from}: redirect to {target:?} refused; only {origin} is allowed");
    if let Some(path) = target.strip_prefix('/').filter(|path| !path.starts_with('/')) {
        return Ok(format!("{origin}/{path}"));
    }
    let target_uri: Uri = target.parse().map_err(|_| elsewhere())?;
    let same = target_uri.scheme_str() == Some(scheme)
        && target_uri
            .authority()
            .is_some_and(|other| other.as_str().eq_ignore_ascii_case(authority.as_str()));
    if same { Ok(target.to_owned()) } else { Err(elsewhere()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_leads_nowhere_else() {
        let from = "https://work.example.org/jobs?x=1";
        let leads = |target: &str| on_the_same_host(from, target).ok();
        assert_eq!(leads("/jobs/7").as_deref(), Some("https://work.example.org/jobs/7"));
        assert_eq!(leads("https://WORK.example.org/j").as_deref(), Some("https://WORK.example.org/j"));
        for elsewhere in [
            "https://evil.example.org/",
            "http://work.example.org/",
            "https://work.example.org:8443/",
            "https://work.example.org@evil.example.org/",
            "//evil.example.org/",
            "file:///etc/passwd",
            "jobs/7",
        ] {
            assert_eq!(leads(elsewhere), None, "{elsewhere}");
        }
    }
}
