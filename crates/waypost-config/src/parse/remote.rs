//! Parses executors that are called over HTTP.

use toml::de::DeValue;

use super::reader::Table;
use crate::address::is_address;
use crate::executor::{Header, Http, Method};

/// How often a request is sent, unless the configuration sets it.
const TRIES_DEFAULT: u32 = 3;
/// The highest number of times that a request may be sent.
const TRIES_MAX: u32 = 20;
/// Seconds between two polls, unless the configuration sets them.
const POLL_SECONDS_DEFAULT: u32 = 5;
/// Headers that Waypost sets itself.
const OWN_HEADERS: [&str; 10] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "idempotency-key",
    "transfer-encoding",
    "user-agent",
    "x-waypost-signature",
    "x-waypost-timestamp",
];

impl Table<'_> {
    pub(super) fn http(&mut self) -> Option<Http> {
        let url = self.text_at("url");
        let method = self.choice("method", &[("POST", Method::Post), ("PUT", Method::Put)]);
        let headers = self.headers();
        let hmac = self.section("hmac", Table::sent_secret).flatten();
        let tries = self.small("tries", 1..=TRIES_MAX);
        let poll_seconds = self.seconds("poll_seconds", 1);
        let idempotent = self.flag("idempotent").unwrap_or(false);
        let timeout_seconds = self.timeout();
        let Some((url_at, url)) = url else {
            self.missing("url", "for example url = \"https://work.example.org/jobs\"");
            return None;
        };
        if !is_address(&url) {
            // The URL is not repeated because it may contain a password.
            let what = format!("{} has a `url` that cannot be used", self.path);
            let hint = "it begins with http:// or https:// and names a host; a password goes into `headers.Authorization = { variable = \"NAME\" }`";
            return self.refuse(url_at, what, hint);
        }
        Some(Http {
            url,
            method: method.unwrap_or(Method::Post),
            headers,
            hmac,
            tries: tries.unwrap_or(TRIES_DEFAULT),
            poll_seconds: poll_seconds.unwrap_or(POLL_SECONDS_DEFAULT),
            idempotent,
            timeout_seconds,
        })
    }

    pub(super) fn headers(&mut self) -> Vec<(String, Header)> {
        let mut headers = Vec::new();
        let Some(outer) = self.inner("headers") else { return headers };
        for (name, at, value) in outer.entries() {
            let path = format!("{}.{name}", outer.path);
            if http::header::HeaderName::from_bytes(name.as_bytes()).is_err() {
                self.wrong(at, format!("{path} is not a valid header name"), "correct the name");
                continue;
            }
            if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                self.wrong(at, format!("{path} is set by Waypost itself"), "take it out");
                continue;
            }
            match value {
                DeValue::String(text) if http::header::HeaderValue::from_str(text).is_ok() => {
                    headers.push((name, Header::Text(text.to_string())));
                }
                DeValue::Table(secret) => {
                    let mut secret = Table::new(self.reader, path, at, secret);
                    headers.extend(secret.sent_secret().map(|secret| (name, Header::Secret(secret))));
                    secret.end();
                }
                DeValue::String(_)
                | DeValue::Integer(_)
                | DeValue::Float(_)
                | DeValue::Boolean(_)
                | DeValue::Datetime(_)
                | DeValue::Array(_) => {
                    let hint = "write a text, or where a secret is read: { variable = \"NAME\" } or { file = \"PATH\" }";
                    self.wrong(at, format!("{path} has an invalid header value"), hint);
                }
            }
        }
        headers
    }
}
