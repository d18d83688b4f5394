//! The few requests to a cluster's API that Jobs need: read, create, delete, watch, and follow a log.

use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::timeout;
use waypost_net::http_client::{Incomplete, Request, begin};
use waypost_net::{Route, TlsOptions};

use super::kubeconfig::{ClusterAddress, Credentials, Plugin};

/// Seconds in which an answer begins, and in which a program prints credentials.
const ANSWER_SECONDS_MAX: u64 = 60;
/// Seconds after which the cluster ends a watch, and the time that we give it.
const WATCH_SECONDS: u64 = 290;
const WATCH_SECONDS_MAX: u64 = WATCH_SECONDS + 10;
/// Bytes of an answer that is read as a whole.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of one event of a watch. A cluster stores objects of at most 1.5 MiB.
const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What stands for itself in a query.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Why a request failed.
pub(super) enum ApiError {
    /// The cluster's own answer.
    Refused { code: u16, reason: String, message: String },
    /// There was none, or it cannot be read.
    Lost(String),
}

/// The error that a cluster answers with.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ApiStatus {
    reason: String,
    message: String,
}

/// What a plugin prints.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ExecCredential {
    status: PluginStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PluginStatus {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// A client of one cluster.
pub(super) struct Client {
    server: String,
    tls: TlsOptions,
    credentials: Credentials,
    session: Mutex<Option<Arc<Session>>>,
}

/// The connections to a cluster, and how requests over them are proved.
struct Session {
    route: Route,
    header: Option<String>,
}

impl Client {
    pub(super) fn new(address: ClusterAddress) -> Self {
        let ClusterAddress { server, tls, credentials, namespace: _ } = address;
        Self { server, tls, credentials, session: Mutex::default() }
    }

    /// Connects, anew if the credentials have expired.
    async fn session(&self, refused: Option<&Arc<Session>>) -> Result<Arc<Session>, ApiError> {
        let mut known = self.session.lock().await;
        match &*known {
            Some(session) if refused.is_none_or(|refused| !Arc::ptr_eq(refused, session)) => {
                return Ok(Arc::clone(session));
            }
            Some(_) | None => {}
        }
        let mut tls = self.tls.clone();
        let header = match &self.credentials {
            Credentials::None | Credentials::TokenFile(_) => None,
            Credentials::Header(value) => Some(value.clone()),
            Credentials::Plugin(plugin) => {
                let found = run(plugin).await.map_err(ApiError::Lost)?;
                if let Some(identity) = found.client_certificate_data.zip(found.client_key_data) {
                    tls.identity = Some((identity.0.into_bytes(), identity.1.into_bytes()));
                }
                found.token.map(|token| format!("Bearer {token}"))
            }
        };
        let route = Route::private(&tls).map_err(ApiError::Lost)?;
        let session = Arc::new(Session { route, header });
        *known = Some(Arc::clone(&session));
        Ok(session)
    }

    /// Sends a request and returns when the answer begins.
    async fn send(
        &self,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Incomplete, ApiError> {
        let session = self.session(None).await?;
        match self.send_by(&session, method, path, body).await {
            // A token that a plugin printed has expired.
            Err(ApiError::Refused { code: 401, .. })
                if matches!(self.credentials, Credentials::Plugin(_)) =>
            {
                let session = self.session(Some(&session)).await?;
                self.send_by(&session, method, path, body).await
            }
            answer => answer,
        }
    }

    async fn send_by(
        &self,
        session: &Session,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Incomplete, ApiError> {
        let mut headers = vec![("accept".to_owned(), "application/json".to_owned())];
        if body.is_some() {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        let header = match &self.credentials {
            Credentials::TokenFile(file) => {
                let token = std::fs::read_to_string(file);
                let token = token.map_err(|error| ApiError::Lost(format!("{}: {error}", file.display())))?;
                Some(format!("Bearer {}", token.trim()))
            }
            Credentials::None | Credentials::Header(_) | Credentials::Plugin(_) => session.header.clone(),
        };
        headers.extend(header.map(|value| ("authorization".to_owned(), value)));
        let request = Request {
            method,
            url: format!("{}{path}", self.server),
            headers,
            body: body.map(Value::to_string).unwrap_or_default(),
            bytes_max: ANSWER_BYTES_MAX,
        };
        let answer = in_time(begin(&request, &session.route)).await?;
        if answer.status < 400 {
            return Ok(answer);
        }
        let code = answer.status;
        let text =
            in_time(answer.whole(ANSWER_BYTES_MAX)).await.map(|answer| answer.body).unwrap_or_default();
        let ApiStatus { reason, message } = serde_json::from_str(&text).unwrap_or_default();
        let message = if message.is_empty() { text } else { message };
        Err(ApiError::Refused { code, reason, message })
    }

    async fn read<T: DeserializeOwned>(&self, answer: Incomplete) -> Result<T, ApiError> {
        let answer = in_time(answer.whole(ANSWER_BYTES_MAX)).await?;
        if answer.too_much {
            return Err(ApiError::Lost(format!("the answer has more than {ANSWER_BYTES_MAX} bytes")));
        }
        serde_json::from_str(&answer.body)
            .map_err(|error| ApiError::Lost(format!("the answer cannot be read: {error}")))
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        let answer = self.send("GET", path, None).await?;
        self.read(answer).await
    }

    pub(super) async fn create(&self, path: &str, object: &Value) -> Result<(), ApiError> {
        let answer = self.send("POST", path, Some(object)).await?;
        // Whether it was made is known only once the answer has arrived.
        self.read::<Value>(answer).await.map(drop)
    }

    pub(super) async fn delete(&self, path: &str, options: &Value) -> Result<(), ApiError> {
        self.send("DELETE", path, Some(options)).await.map(drop)
    }

    pub(super) async fn text(&self, path: &str) -> Result<String, ApiError> {
        let answer = self.send("GET", path, None).await?;
        Ok(in_time(answer.whole(ANSWER_BYTES_MAX)).await?.body)
    }

    /// Begins an answer without an end of its own, such as a log that is being written.
    pub(super) async fn follow(&self, path: &str) -> Result<Incomplete, ApiError> {
        self.send("GET", path, None).await
    }

    /// Watches objects from a version on. Version 0 means: the current state, followed by all changes.
    pub(super) async fn watch(&self, path: &str, selector: &str, version: &str) -> Result<Watch, ApiError> {
        let query = format!(
            "watch=true&{selector}&resourceVersion={version}&timeoutSeconds={WATCH_SECONDS}&allowWatchBookmarks=true"
        );
        let answer = self.send("GET", &format!("{path}?{query}"), None).await?;
        Ok(Watch { answer, buffer: Vec::new() })
    }
}

/// Returns a part of a query.
pub(super) fn query(name: &str, value: &str) -> String {
    format!("{name}={}", utf8_percent_encode(value, ENCODED))
}

async fn in_time<T>(answer: impl Future<Output = Result<T, String>>) -> Result<T, ApiError> {
    match timeout(Duration::from_secs(ANSWER_SECONDS_MAX), answer).await {
        Ok(answer) => answer.map_err(ApiError::Lost),
        Err(_) => Err(ApiError::Lost(format!("no answer within {ANSWER_SECONDS_MAX} seconds"))),
    }
}

/// Runs the program that prints credentials.
async fn run(plugin: &Plugin) -> Result<PluginStatus, String> {
    let mut command = Command::new(&plugin.command);
    command.args(&plugin.args).envs(plugin.variables()).stdin(std::process::Stdio::null()).kill_on_drop(true);
    let bad = |why: String| format!("{}: {why}", plugin.command);
    let output = timeout(Duration::from_secs(ANSWER_SECONDS_MAX), command.output());
    let output =
        output.await.map_err(|_| bad(format!("no credentials within {ANSWER_SECONDS_MAX} seconds")))?;
    let output = output.map_err(|error| bad(error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(bad(format!("{} ({})", output.status, said.trim())));
    }
    let found: ExecCredential =
        serde_json::from_slice(&output.stdout).map_err(|error| bad(format!("no credentials: {error}")))?;
    Ok(found.status)
}

/// A change of a watched object.
pub(super) enum Change<T> {
    /// It is there, as it is now.
    Is(T),
    /// It was deleted, and was last like this.
    Gone(T),
}

/// Changes of watched objects.
pub(super) struct Watch {
    answer: Incomplete,
    buffer: Vec<u8>,
}

#[derive(Deserialize)]
struct WatchEvent {
    #[serde(rename = "type")]
    kind: String,
    object: Value,
}

impl Watch {
    /// Returns the next change; `None` if the watch has ended, by the cluster or on the way.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> Option<Change<T>> {
        loop {
            let line = self.line().await?;
            let WatchEvent { kind, object } = serde_json::from_slice(&line).ok()?;
            let object = || serde_json::from_value(object).ok();
            return match kind.as_str() {
                "ADDED" | "MODIFIED" => Some(Change::Is(object()?)),
                "DELETED" => Some(Change::Gone(object()?)),
                "BOOKMARK" => continue,
                _ => None,
            };
        }
    }

    async fn line(&mut self) -> Option<Vec<u8>> {
        let mut known = 0;
        loop {
            if let Some(end) = self.buffer[known..].iter().position(|&byte| byte == b'\n') {
                let rest = self.buffer.split_off(known + end + 1);
                return Some(std::mem::replace(&mut self.buffer, rest));
            }
            known = self.buffer.len();
            if known > EVENT_BYTES_MAX {
                return None;
            }
            let more = timeout(Duration::from_secs(WATCH_SECONDS_MAX), self.answer.more());
            self.buffer.extend_from_slice(&more.await.ok()?.ok()??);
        }
    }
}
