//! Probes a model in small steps and reports the result of each.

use std::cmp::Ordering;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::{Ended, ModelRequest, Purpose, Schema, Speaker, Turn};
use serde_json::json;
use waypost_config::Structured;

use super::{CallEvent, Client, ModelError, Progress, Stop};

/// Maximum tokens of a probe's answer: enough for a model that reasons before it answers.
const TRIAL_TOKENS: u32 = 1_024;
/// Retries of a probe: few, because a user is waiting.
const TRIAL_RETRIES: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
pub enum Verdict {
    /// It works.
    #[strum(serialize = "yes")]
    Good,
    /// It works with restrictions, or could not be determined.
    #[strum(serialize = "partly")]
    Fair,
    /// It does not work.
    #[strum(serialize = "no")]
    Bad,
    /// Not tried, because an earlier step failed.
    #[strum(serialize = "untried")]
    Untried,
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The result of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub what: &'static str,
    pub verdict: Verdict,
    pub seen: String,
    /// How to fix it; may be empty.
    pub hint: String,
}

/// The results of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    /// The steps, in order.
    pub findings: Vec<Finding>,
    /// The server's name for the model that answered.
    pub model: Option<String>,
    /// How long the first answer took.
    pub took: Option<Duration>,
}

impl Probed {
    /// Whether a planner can use the model.
    pub fn is_usable(&self) -> bool {
        self.findings.iter().all(|finding| matches!(finding.verdict, Verdict::Good | Verdict::Fair))
    }
}

/// Records whether an answer arrived in parts.
#[derive(Default)]
struct Watch {
    heard: AtomicBool,
}

impl Progress for Watch {
    fn on_event(&self, _ask: &ModelRequest, moment: &CallEvent<'_>) {
        if let CallEvent::Received { .. } = moment {
            self.heard.store(true, Relaxed);
        }
    }
}

impl Client {
    /// Tests everything that a planner needs of the model, with two small requests.
    pub fn probe(&self, stop: &Stop) -> Probed {
        let mut findings = Vec::new();
        let mut say = |what, verdict, seen: &str, hint: &str| {
            findings.push(Finding { what, verdict, seen: seen.to_owned(), hint: hint.to_owned() });
        };
        let watch = Watch::default();
        let begun = Instant::now();
        let plain = self.ask_with_retries(&trial(None), &watch, stop, TRIAL_RETRIES);
        let took = begun.elapsed();
        let reply = match plain {
            Ok(reply) => reply,
            Err(error) => {
                let steps =
                    ["reached", "key accepted", "answers", "streams", "keeps to a schema", "reports tokens"];
                let failed_at = match &error {
                    ModelError::NotReached { .. }
                    | ModelError::TooSlow { .. }
                    | ModelError::Silent { .. }
                    | ModelError::OutOfTime { .. }
                    | ModelError::Stopped
                    | ModelError::NotConfigured { .. }
                    | ModelError::NotRecorded { .. }
                    | ModelError::Departed { .. }
                    | ModelError::Journal(_) => 0,
                    ModelError::NotAllowed { .. } => 1,
                    ModelError::NotThere { .. }
                    | ModelError::Busy { .. }
                    | ModelError::Refused { .. }
                    | ModelError::BrokeOff { .. }
                    | ModelError::Garbled { .. }
                    | ModelError::TooMuch { .. } => 2,
                };
                for (at, step) in steps.into_iter().enumerate() {
                    match at.cmp(&failed_at) {
                        Ordering::Less => say(step, Verdict::Good, "", ""),
                        Ordering::Equal => say(step, Verdict::Bad, &error.to_string(), &error.hint()),
                        Ordering::Greater => say(step, Verdict::Untried, "", ""),
                    }
                }
                return Probed { findings, model: None, took: None };
            }
        };
        let way = self.proxy().map_or_else(|| "directly".to_owned(), |proxy| format!("through {proxy}"));
        say("reached", Verdict::Good, &way, "");
        match &self.server().key {
            Some(_) if is_overheard(&self.server().base_url) => {
                let hint = "use https://, or a server of this machine";
                say("key accepted", Verdict::Fair, "the key travels unencrypted", hint);
            }
            Some(_) => say("key accepted", Verdict::Good, "", ""),
            None => say("key accepted", Verdict::Good, "none is needed", ""),
        }
        match (reply.answer.ended, reply.answer.text.trim().is_empty()) {
            (Ended::Whole, false) => {
                say("answers", Verdict::Good, &format!("in {:.1} s", took.as_secs_f64()), "");
            }
            (Ended::Cut, _) | (Ended::Whole, true) => {
                let seen = format!("nothing whole within {TRIAL_TOKENS} tokens");
                let hint = "a model that thinks for long needs a larger `max_tokens`";
                say("answers", Verdict::Fair, &seen, hint);
            }
            (Ended::Refused, _) => say("answers", Verdict::Bad, "it refused", "take another model"),
        }
        match self.capabilities().streams && watch.heard.load(Relaxed) {
            true => say("streams", Verdict::Good, "", ""),
            false => say("streams", Verdict::Fair, "answers come in one piece: no progress is seen", ""),
        }
        let (verdict, seen, hint) = self.keeps_to_schema(stop);
        say("keeps to a schema", verdict, &seen, &hint);
        match reply.answer.estimated {
            false => {
                let seen = format!("{} in, {} out", reply.answer.tokens_in, reply.answer.tokens_out);
                say("reports tokens", Verdict::Good, &seen, "");
            }
            true => say("reports tokens", Verdict::Fair, "they are estimated", ""),
        }
        Probed { findings, model: Some(reply.answer.model), took: Some(took) }
    }

    fn keeps_to_schema(&self, stop: &Stop) -> (Verdict, String, String) {
        let schema = json!({
            "type": "object",
            "properties": { "ready": { "type": "boolean" } },
            "required": ["ready"],
            "additionalProperties": false,
        });
        let reply = match self.ask_with_retries(&trial(Some(schema)), &Watch::default(), stop, TRIAL_RETRIES)
        {
            Ok(reply) => reply,
            Err(error) => return (Verdict::Bad, error.to_string(), error.hint()),
        };
        let read = serde_json::from_str::<serde_json::Value>(reply.answer.text.trim());
        let keeps =
            read.as_ref().is_ok_and(|value| value.get("ready").is_some_and(serde_json::Value::is_boolean));
        let level = self.capabilities().structured;
        match (keeps, level) {
            (true, Structured::Schema) => (Verdict::Good, String::new(), String::new()),
            (true, Structured::Json | Structured::None) => {
                let seen = format!("the server offers {:?} at the most; the answer was right", level.name());
                (Verdict::Fair, seen, String::new())
            }
            (false, _) => {
                let hint =
                    "its replies are validated and returned for repair; a stronger model needs fewer repairs"
                        .to_owned();
                (Verdict::Fair, "the answer did not keep to it".to_owned(), hint)
            }
        }
    }
}

/// Whether others on the network could read the traffic.
fn is_overheard(url: &str) -> bool {
    let host =
        url.parse::<http::Uri>().ok().and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default();
    url.starts_with("http://") && !waypost_config::is_this_machine(&host)
}

fn trial(schema: Option<serde_json::Value>) -> ModelRequest {
    let text = match schema {
        Some(_) => {
            "Are you ready? Answer with one JSON object and nothing else: {\"ready\": true} or {\"ready\": false}."
        }
        None => "Answer with the one word: ready",
    };
    ModelRequest {
        purpose: Purpose::Atomicity,
        task: None,
        slot: "probe".to_owned(),
        prompt: "probe/1".to_owned(),
        system: "You are being tested for whether you can be reached. Answer briefly.".to_owned(),
        turns: vec![Turn { by: Speaker::User, text: text.to_owned() }],
        schema: schema.map(|schema| Schema { name: "ready".to_owned(), schema }),
        tokens_max: TRIAL_TOKENS,
        temperature: 0,
    }
}
