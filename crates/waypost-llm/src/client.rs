//! The client of one model server: sends requests, reads responses, retries for a while and reports the reason of a
//! failure.
//!
//! The key is only in the headers of a request and is only sent to the configured address: redirects are not followed.
//! Everything that a server returns passes the redactor before anything else uses it.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::wire::{ANSWER_BYTES_MAX, Capabilities, ServerError, StreamReader, Usage, WireError};
use crate::{Answer, ModelRequest, Price};
use ring::rand::{SecureRandom, SystemRandom};
use waypost_config::Api;

use super::backoff::{ASKED_WAIT_MAX, asked_wait, chosen_wait};
use super::{CallEvent, Cost, Lost, Model, ModelError, Progress, Redactor, Reply, Stop};
use waypost_config::ExecutionEnv;
use waypost_config::{Header, ModelServer, Secret, is_address};
use waypost_net::Route;
use waypost_net::http_client::{self as web, Incomplete, Request};
use waypost_net::wait_for;

/// The version of Anthropic's protocol that this client uses.
const ANTHROPIC_VERSION: &str = "2023-06-01";
/// Bytes of an error response.
const ERROR_BYTES_MAX: u64 = 64 * 1024;
/// Bytes of a list of models.
const LIST_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How often a server may refuse an optional feature during one request.
const CONCESSIONS_MAX: u32 = 6;
/// The shortest time between two reports of received text.
const TOLD_EVERY: Duration = Duration::from_millis(100);
/// Models of a server that an error names when one has to be chosen.
const NAMED_MAX: usize = 20;

pub struct Client {
    name: String,
    server: ModelServer,
    headers: Vec<(String, String)>,
    redactor: Redactor,
    route: Route,
    /// The capabilities that the server turned out to have.
    capabilities: Mutex<Capabilities>,
    /// The server's name for the model, once it is known.
    model: OnceLock<String>,
}

/// Without the headers: the key is among them.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({} at {})", self.name, self.server.base_url)
    }
}

/// Returns the secrets of a model that can be read.
pub(super) fn secrets<'a>(
    name: &'a str,
    server: &'a ModelServer,
    around: &'a ExecutionEnv,
) -> impl Iterator<Item = String> + 'a {
    let headers = server.headers.iter().filter_map(move |(header, value)| match value {
        Header::Secret(secret) => Some((format!("models.{name}.headers.{header}"), secret)),
        Header::Text(_) => None,
    });
    let key = server.key.iter().map(move |key| (format!("models.{name}.key"), key));
    let found = headers.chain(key).filter_map(move |(path, secret)| around.secret(&path, secret).ok());
    found.map(|secret| secret.trim().to_owned())
}

impl Client {
    /// Creates the client of this model, with the secrets and the proxy of the environment.
    pub fn new(name: &str, server: &ModelServer, around: &ExecutionEnv) -> Result<Self, ModelError> {
        let not_configured =
            |what: String, hint: &str| ModelError::NotConfigured { what, hint: hint.to_owned() };
        let no_secret = "set the variable, or write the file, that the configuration names";
        if !is_address(&server.base_url) {
            let hint = "it begins with http:// or https:// and names a host, without a name or a password";
            return Err(not_configured(format!("models.{name}: invalid base_url"), hint));
        }
        let mut headers = Vec::new();
        for (header, value) in &server.headers {
            let value = match value {
                Header::Text(text) => text.clone(),
                Header::Secret(secret) => {
                    let path = format!("models.{name}.headers.{header}");
                    around.secret(&path, secret).map_err(|what| not_configured(what, no_secret))?
                }
            };
            headers.push((header.clone(), value));
        }
        if let Some(secret) = &server.key {
            let key = around.secret(&format!("models.{name}.key"), secret).map(|key| key.trim().to_owned());
            let key = key.ok().filter(|key| !key.is_empty()).ok_or_else(|| {
                let what = format!("models.{name}: no key: {}", where_is(secret));
                not_configured(what, no_secret)
            })?;
            headers.push(match server.api {
                Api::OpenAi => ("authorization".to_owned(), format!("Bearer {key}")),
                Api::Anthropic => ("x-api-key".to_owned(), key),
            });
        }
        if server.api == Api::Anthropic {
            headers.push(("anthropic-version".to_owned(), ANTHROPIC_VERSION.to_owned()));
        }
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        let route = Route::to(&server.base_url, &around.variables).map_err(|why| {
            not_configured(format!("models.{name}: invalid proxy: {why}"), "check the proxy variables")
        })?;
        let model = OnceLock::new();
        if let Some(named) = &server.model {
            let _first = model.set(named.clone());
        }
        Ok(Self {
            name: name.to_owned(),
            headers,
            redactor: Redactor::new(secrets(name, server, around)),
            route,
            capabilities: Mutex::new(Capabilities {
                structured: server.structured,
                ..Capabilities::default()
            }),
            model,
            server: server.clone(),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server as configured.
    pub fn server(&self) -> &ModelServer {
        &self.server
    }

    /// The proxy in use, without its password.
    pub fn proxy(&self) -> Option<&str> {
        self.route.proxy()
    }

    /// The capabilities of the server, as far as they are known.
    pub fn capabilities(&self) -> Capabilities {
        *self.capabilities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the models that the server lists.
    pub fn models(&self, stop: &Stop) -> Result<Vec<String>, ModelError> {
        self.wait(self.or_stopped(stop, self.list()))
    }

    /// Returns the cost of these tokens; `None` unless both prices are known.
    fn cost(&self, tokens_in: u64, tokens_out: u64) -> Option<Cost> {
        let price = Price { micros_in: self.server.price_in?, micros_out: self.server.price_out? };
        Some(Cost(price.cost(tokens_in, tokens_out)))
    }

    /// Returns the cost of a failed call. Servers do not charge for a request that they did not accept. A call that was
    /// accepted and then broke off is charged, whether or not its end has reached us.
    fn lost(&self, ask: &ModelRequest, error: &ModelError, heard: Option<&StreamReader>) -> Option<Lost> {
        let so_far = heard.and_then(|heard| heard.so_far(ask));
        let Usage { tokens_in, tokens_out, estimated } =
            so_far.or_else(|| error.was_taken().then(|| Usage::of_question(ask)))?;
        let cost = self.cost(tokens_in, tokens_out);
        Some(Lost { from: self.name.clone(), tokens_in, tokens_out, estimated, cost })
    }

    /// Sends a request, with up to this many retries.
    pub(super) fn ask_with_retries(
        &self,
        ask: &ModelRequest,
        progress: &dyn Progress,
        stop: &Stop,
        retries: u32,
    ) -> Result<Reply, ModelError> {
        self.wait(self.asked(ask, progress, stop, retries))
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T, ModelError>>) -> Result<T, ModelError> {
        wait_for(work).map_err(|why| self.not_reached(&why))?
    }

    async fn or_stopped<T>(
        &self,
        stop: &Stop,
        work: impl Future<Output = Result<T, ModelError>>,
    ) -> Result<T, ModelError> {
        tokio::select! {
            biased;
            () = stop.cancelled() => Err(ModelError::Stopped),
            () = stop.time_is_up() => Err(ModelError::OutOfTime { model: self.name.clone() }),
            done = work => done,
        }
    }

    async fn asked(
        &self,
        ask: &ModelRequest,
        progress: &dyn Progress,
        stop: &Stop,
        retries: u32,
    ) -> Result<Reply, ModelError> {
        let model = self.or_stopped(stop, self.model()).await?;
        let ask_here = self.within_bounds(ask);
        let mut capabilities = self.capabilities();
        let (mut attempt, mut conceded) = (1, 0);
        loop {
            if stop.asks_nothing_new() {
                return Err(ModelError::Stopped);
            }
            progress.on_event(ask, &CallEvent::Asked { model: &self.name, attempt });
            let heard = RefCell::new(None);
            let once = self.once(&ask_here, (&model, &capabilities), &heard, (ask, progress, stop));
            let error = match once.await {
                Ok(mut answer) => {
                    // A server may return the key that it was sent, and its answers go into plans.
                    answer.text = self.redactor.clean_of_known(&answer.text);
                    answer.model = self.redactor.clean_of_known(&answer.model);
                    *self.capabilities.lock().unwrap_or_else(PoisonError::into_inner) = capabilities;
                    let cost = self.cost(answer.tokens_in, answer.tokens_out);
                    let reply = Reply { answer, from: self.name.clone(), cost, recalled: false };
                    progress.on_event(ask, &CallEvent::Answered { reply: &reply });
                    return Ok(reply);
                }
                Err(CallError::Refused(status, said)) => {
                    if let Some(less) = capabilities.after(&said).filter(|_| conceded < CONCESSIONS_MAX) {
                        let said = self.redactor.clean(&said.to_string());
                        progress.on_event(
                            ask,
                            &CallEvent::TurnedDown { model: &self.name, to: less.to, said: &said },
                        );
                        capabilities = less.capabilities;
                        conceded += 1;
                        continue;
                    }
                    self.refused(status, &said)
                }
                Err(CallError::Plain(error)) => error,
            };
            let lost = self.lost(&ask_here, &error, heard.borrow().as_ref());
            progress.on_event(ask, &CallEvent::Failed { why: &error, lost: lost.as_ref() });
            // A wait beyond the deadline is not started: nothing could come after it.
            let wait = wait_before_next(attempt, retries, &error).filter(|wait| stop.has_time_for(*wait));
            let Some(wait) = wait else { return Err(error) };
            if stop.asks_nothing_new() {
                return Err(ModelError::Stopped);
            }
            let milliseconds = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            progress.on_event(ask, &CallEvent::Waits { model: &self.name, milliseconds, why: &error });
            tokio::select! {
                biased;
                () = stop.nothing_new() => return Err(ModelError::Stopped),
                () = tokio::time::sleep(wait) => {}
            }
            attempt += 1;
        }
    }

    /// Applies the configured limits for answers to a request.
    fn within_bounds(&self, ask: &ModelRequest) -> ModelRequest {
        ModelRequest {
            tokens_max: ask.tokens_max.min(self.server.tokens_max),
            temperature: self.server.temperature.unwrap_or(ask.temperature),
            ..ask.clone()
        }
    }

    /// Sends a request once. The stream reader is kept outside of the call: it knows the cost, even if the call is
    /// aborted.
    async fn once(
        &self,
        ask: &ModelRequest,
        (model, capabilities): (&str, &Capabilities),
        heard: &RefCell<Option<StreamReader>>,
        (original, progress, stop): (&ModelRequest, &dyn Progress, &Stop),
    ) -> Result<Answer, CallError> {
        let seconds = self.server.timeout_seconds;
        let body = crate::wire::request(self.server.api, ask, model, capabilities).to_string();
        let request = self.request("POST", self.server.api.asks_at(), body, capabilities.streams);
        let work = async {
            let answer = self.unless_silent(web::begin(&request, &self.route)).await?;
            let answer = self.checked(answer).await?;
            let streams = answer.header("content-type").is_some_and(|kind| kind.contains("event-stream"));
            match streams {
                true => self.listen(answer, (ask, model), heard, (original, progress)).await,
                false => self.whole(answer, ask, model).await,
            }
        };
        let model = || self.name.clone();
        tokio::select! {
            biased;
            () = stop.cancelled() => Err(CallError::Plain(ModelError::Stopped)),
            done = work => done,
            () = stop.time_is_up() => Err(CallError::Plain(ModelError::OutOfTime { model: model() })),
            () = tokio::time::sleep(Duration::from_secs(seconds.into())) => {
                Err(CallError::Plain(ModelError::TooSlow { model: model(), seconds }))
            }
        }
    }

    fn request(&self, method: &'static str, path: &str, body: String, streams: bool) -> Request {
        let mut headers = self.headers.clone();
        let accept = if streams { "text/event-stream, application/json" } else { "application/json" };
        headers.push(("accept".to_owned(), accept.to_owned()));
        // Anthropic's base URL is often written with the version that its paths contain as well.
        let base = match path.starts_with("/v1/") {
            true => self.server.base_url.strip_suffix("/v1").unwrap_or(&self.server.base_url),
            false => &self.server.base_url,
        };
        Request { method, url: format!("{base}{path}"), headers, body, bytes_max: ERROR_BYTES_MAX }
    }

    /// Returns the response if its status is a success, otherwise the error.
    async fn checked(&self, answer: Incomplete) -> Result<Incomplete, CallError> {
        let status = answer.status;
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let should = answer.header("x-should-retry").map(|word| word == "true");
        let wait = asked_wait(|name| answer.header(name));
        let elsewhere = answer.header("location").is_some() && (300..400).contains(&status);
        let body = self
            .unless_silent(answer.whole(ERROR_BYTES_MAX))
            .await
            .map(|answer| answer.body)
            .unwrap_or_default();
        let said = ServerError::of(&body);
        if elsewhere {
            let message = "it sends us to another address, and the key goes to no other".to_owned();
            return Err(CallError::Plain(
                self.refused(status, &ServerError { kind: String::new(), message }),
            ));
        }
        let model = self.name.clone();
        let words = self.redactor.clean(&said.to_string());
        // An exhausted quota comes back after a payment, not after a wait.
        let is_used_up =
            said.kind.contains("insufficient_quota") || said.message.contains("exceeded your current quota");
        Err(CallError::Plain(match status {
            401 | 403 => ModelError::NotAllowed { model, status, said: words },
            404 | 405 => ModelError::NotThere { model, status, said: words },
            408 | 409 | 425 | 429 | 500..=599 if !is_used_up && should != Some(false) => {
                let wait_milliseconds = wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
                ModelError::Busy { model, status, said: words, wait_milliseconds }
            }
            400 | 422 | 501 => return Err(CallError::Refused(status, said)),
            _ => ModelError::Refused { model, status, said: words },
        }))
    }

    async fn listen(
        &self,
        mut answer: Incomplete,
        (ask, model): (&ModelRequest, &str),
        heard: &RefCell<Option<StreamReader>>,
        (original, progress): (&ModelRequest, &dyn Progress),
    ) -> Result<Answer, CallError> {
        // Only this function uses the reader while the stream is read, so it is never borrowed twice.
        let with = |listen: &mut dyn FnMut(&mut StreamReader) -> Result<(), WireError>| {
            let mut heard = heard.borrow_mut();
            let listener = heard.get_or_insert_with(|| StreamReader::new(self.server.api));
            listen(listener).map_err(|error| self.of_wire(error))?;
            Ok::<_, CallError>((listener.is_over(), listener.characters()))
        };
        let (mut told, mut told_at) = (0, None::<Instant>);
        let mut is_over = false;
        while !is_over {
            let Some(bytes) = self.unless_broken(answer.more()).await? else { break };
            let characters;
            (is_over, characters) = with(&mut |listener| listener.push(&bytes))?;
            if characters > told && told_at.is_none_or(|at| at.elapsed() >= TOLD_EVERY) {
                progress
                    .on_event(original, &CallEvent::Received { characters, tokens: characters.div_ceil(4) });
                (told, told_at) = (characters, Some(Instant::now()));
            }
        }
        let mut whole = None;
        with(&mut |listener| listener.end(ask, model).map(|answer| whole = Some(answer)))?;
        whole.ok_or_else(|| self.of_wire(WireError::BrokeOff))
    }

    async fn whole(&self, answer: Incomplete, ask: &ModelRequest, model: &str) -> Result<Answer, CallError> {
        let whole = self.unless_broken(answer.whole(ANSWER_BYTES_MAX as u64)).await?;
        if whole.too_much {
            return Err(self.of_wire(WireError::TooMuch(ANSWER_BYTES_MAX)));
        }
        crate::wire::whole(self.server.api, ask, model, &whole.body).map_err(|error| self.of_wire(error))
    }

    /// Returns the server's name for the model. If none is configured, the server is asked for its list, and a single
    /// model is used.
    async fn model(&self) -> Result<String, ModelError> {
        if let Some(model) = self.model.get() {
            return Ok(model.clone());
        }
        let listed = self.list().await?;
        if let [only] = listed.as_slice() {
            return Ok(self.model.get_or_init(|| only.clone()).clone());
        }
        let more = if listed.len() > NAMED_MAX {
            format!(" and {} more", listed.len() - NAMED_MAX)
        } else {
            String::new()
        };
        let named: Vec<&str> = listed.iter().take(NAMED_MAX).map(String::as_str).collect();
        let hint = match named.is_empty() {
            true => {
                format!("say --model NAME, set WAYPOST_MODEL, or write `model` into [models.{}]", self.name)
            }
            false => format!(
                "say --model NAME, set WAYPOST_MODEL, or write `model` into [models.{}]; its server has {}{more}",
                self.name,
                named.join(", ")
            ),
        };
        Err(ModelError::NotConfigured { what: format!("no model of {} is configured", self.name), hint })
    }

    async fn list(&self) -> Result<Vec<String>, ModelError> {
        let request = self.request("GET", self.server.api.lists_at(), String::new(), false);
        let plain = |trouble: CallError| match trouble {
            CallError::Plain(error) => error,
            CallError::Refused(status, said) => self.refused(status, &said),
        };
        let work = async {
            let answer = self.unless_silent(web::begin(&request, &self.route)).await?;
            let answer = self.checked(answer).await?;
            self.unless_broken(answer.whole(LIST_BYTES_MAX)).await
        };
        let seconds = self.server.timeout_seconds;
        let done = tokio::time::timeout(Duration::from_secs(seconds.into()), work).await;
        let answer = match done {
            Ok(done) => done.map_err(plain)?,
            Err(_) => return Err(ModelError::TooSlow { model: self.name.clone(), seconds }),
        };
        let garbled =
            || ModelError::Garbled { model: self.name.clone(), why: "no list of models".to_owned() };
        crate::wire::listed(&answer.body).ok_or_else(garbled)
    }

    /// Waits for work, but not longer than the server may be silent.
    async fn unless_silent<T>(&self, work: impl Future<Output = Result<T, String>>) -> Result<T, CallError> {
        let seconds = self.server.silence_seconds;
        match tokio::time::timeout(Duration::from_secs(seconds.into()), work).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(why)) => Err(CallError::Plain(self.not_reached(&why))),
            Err(_) => Err(CallError::Plain(ModelError::Silent { model: self.name.clone(), seconds })),
        }
    }

    /// The same in the middle of an answer, where a failure means that the answer broke off.
    async fn unless_broken<T>(&self, work: impl Future<Output = Result<T, String>>) -> Result<T, CallError> {
        self.unless_silent(work).await.map_err(|trouble| match trouble {
            CallError::Plain(ModelError::NotReached { model, .. }) => {
                CallError::Plain(ModelError::BrokeOff { model })
            }
            other @ (CallError::Refused(..) | CallError::Plain(_)) => other,
        })
    }

    fn not_reached(&self, why: &str) -> ModelError {
        // The error itself already reports that the server is unreachable.
        let why = why.split_once(" cannot be reached: ").map_or(why, |(_, reason)| reason);
        ModelError::NotReached { model: self.name.clone(), why: self.redactor.clean(why) }
    }

    fn refused(&self, status: u16, said: &ServerError) -> ModelError {
        ModelError::Refused { model: self.name.clone(), status, said: self.redactor.clean(&said.to_string()) }
    }

    fn of_wire(&self, error: WireError) -> CallError {
        let model = self.name.clone();
        CallError::Plain(match error {
            WireError::BrokeOff => ModelError::BrokeOff { model },
            WireError::Garbled(why) => ModelError::Garbled { model, why: self.redactor.clean(&why) },
            WireError::TooMuch(bytes_max) => ModelError::TooMuch { model, bytes_max: bytes_max as u64 },
            WireError::Server(said) => {
                // The server began to answer, so it had accepted the request.
                let passing = [
                    "overload",
                    "rate_limit",
                    "server",
                    "api_error",
                    "timeout",
                    "internal",
                    "unavailable",
                    "429",
                    "50",
                ];
                match passing.iter().any(|word| said.kind.contains(word)) {
                    true => ModelError::Busy {
                        model,
                        status: 200,
                        said: self.redactor.clean(&said.to_string()),
                        wait_milliseconds: None,
                    },
                    false => self.refused(200, &said),
                }
            }
        })
    }
}

impl Model for Client {
    fn ask(&self, ask: &ModelRequest, progress: &dyn Progress, stop: &Stop) -> Result<Reply, ModelError> {
        self.ask_with_retries(ask, progress, stop, self.server.retries)
    }
}

/// Why a call failed.
enum CallError {
    /// The server refused a property of the request; perhaps a request without it works.
    Refused(u16, ServerError),
    /// Any other error.
    Plain(ModelError),
}

/// Returns the wait before the next try; `None` if there is none.
fn wait_before_next(attempt: u32, retries: u32, error: &ModelError) -> Option<Duration> {
    if !error.is_passing() || attempt > retries {
        return None;
    }
    if let ModelError::Busy { wait_milliseconds: Some(millis), .. } = error {
        return Some(Duration::from_millis(*millis)).filter(|wait| *wait <= ASKED_WAIT_MAX);
    }
    let mut chance = [0];
    // Without randomness the jitter is zero.
    let _no_dice = SystemRandom::new().fill(&mut chance);
    Some(chosen_wait(attempt, chance[0]))
}

/// Describes why a secret is missing.
fn where_is(secret: &Secret) -> String {
    match secret {
        Secret::Variable(variable) => format!("the variable {variable} is not set"),
        Secret::File(file) => format!("the file {file} cannot be read, or is empty"),
    }
}
