//! The part of a configuration file that describes workers on other machines.

use toml::de::DeValue;

use super::reader::{Reader, Table};
use crate::address::is_address;
use crate::executor::{Header, Http, Method};
use crate::parse::values::one_of;
use crate::settings::SECONDS_MAX;

/// How often a request is sent, unless the configuration says otherwise.
const TRIES_DEFAULT: u32 = 3;
/// How often a request may be sent.
const TRIES_MAX: u64 = 20;
/// Seconds between two questions whether the work is done.
const POLL_SECONDS_DEFAULT: u32 = 5;
/// Headers that we set ourselves.
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

impl Reader<'_> {
    pub(super) fn http(&mut self, path: &str, at: usize, table: &mut Table<'_>) -> Option<Http> {
        let url = table.text(self, "url");
        let method = self.method(path, table);
        let headers = self.headers(path, table);
        let hmac_at = table.place("hmac").unwrap_or(at);
        let hmac = table.inner(self, "hmac");
        let hmac = hmac.and_then(|secret| self.secret(&format!("{path}.hmac"), hmac_at, secret));
        let tries = table.number(self, "tries", 1, TRIES_MAX);
        let poll = table.number(self, "poll_seconds", 1, SECONDS_MAX.into());
        let timeout_seconds = self.timeout(table);
        let Some((url_at, url)) = url else {
            if table.is_without("url") {
                let hint = "for example url = \"https://work.example.org/jobs\"";
                self.wrong(at, format!("{path} has no `url`"), hint);
            }
            return None;
        };
        if !is_address(&url) {
            // Not repeated: there may be a password in it.
            let what = format!("{path} has a `url` that cannot be used");
            let hint = "it begins with http:// or https:// and names a host; a password goes into `headers`";
            self.wrong(url_at, what, hint);
            return None;
        }
        Some(Http {
            url,
            method,
            headers,
            hmac,
            tries: tries.map_or(TRIES_DEFAULT, |tries| tries as u32),
            poll_seconds: poll.map_or(POLL_SECONDS_DEFAULT, |seconds| seconds as u32),
            timeout_seconds,
        })
    }

    fn method(&mut self, path: &str, table: &mut Table<'_>) -> Method {
        match table.text(self, "method") {
            None => Method::Post,
            Some((_, word)) if word == "POST" => Method::Post,
            Some((_, word)) if word == "PUT" => Method::Put,
            Some((at, word)) => {
                let hint = one_of(&word, &["POST", "PUT"]);
                self.wrong(at, format!("{path} has the method {word:?}"), hint);
                Method::Post
            }
        }
    }

    pub(super) fn headers(&mut self, path: &str, table: &mut Table<'_>) -> Vec<(String, Header)> {
        let mut headers = Vec::new();
        let Some(outer) = table.inner(self, "headers") else { return headers };
        for (name, at, value) in outer.entries() {
            let path = format!("{path}.headers.{name}");
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
                    let secret = self.table(&path, secret);
                    if let Some(secret) = self.secret(&path, at, secret) {
                        headers.push((name, Header::Secret(secret)));
                    }
                }
                _ => {
                    let hint = "write a text, or where a secret is read: { variable = \"NAME\" } or { file = \"PATH\" }";
                    self.wrong(at, format!("{path} has an invalid header value"), hint);
                }
            }
        }
        headers
    }
}
