//! Probes a model in small steps and reports the result of each.

use std::time::{Duration, Instant};

use crate::{Ended, ModelRequest, Purpose, Schema, Speaker, Turn};
use serde_json::json;
use waypost_config::Structured;

use super::{CallEvent, Client, ModelError, Progress, Stop};

/// Tokens that a probe's answer may have: enough for a model that reasons before it answers.
const TRIAL_TOKENS: u32 = 1_024;
/// Retries of a probe: few, because a person waits for it.
const TRIAL_RETRIES: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It works.
    Good,
    /// It works in part, or the result is not certain.
    Fair,
    /// It does not work.
    Bad,
    /// Not tried, because an earlier step failed.
    Untried,
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "yes",
            Self::Fair => "partly",
            Self::Bad => "no",
            Self::Untried => "untried",
        }
    }
}

/// The result of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub what: &'static str,
    pub verdict: Verdict,
    pub seen: String,
    /// What to do about it; may be empty.
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
    heard: std::sync::atomic::AtomicBool,
}

impl Progress for Watch {
    fn on_event(&self, _ask: &ModelRequest, moment: &CallEvent<'_>) {
        if let CallEvent::Received { .. } = moment {
            self.heard.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }
}

impl Client {
    /// Tries what a planner needs of the model. Costs two small answers.
    pub fn probe(&self, stop: &Stop) -> Probed {
        let mut findings = Vec::new();
        let mut say =
            |what, verdict, seen: String, hint: String| findings.push(Finding { what, verdict, seen, hint });
        let watch = Watch::default();
        let begun = Instant::now();
        let plain = self.ask_with_retries(&trial(None), &watch, stop, TRIAL_RETRIES);
        let took = begun.elapsed();
        let untried = |say: &mut dyn FnMut(&'static str, Verdict, String, String), steps: &[&'static str]| {
            steps.iter().for_each(|step| say(step, Verdict::Untried, String::new(), String::new()));
        };
        let reply = match plain {
            Ok(reply) => reply,
            Err(error) => {
                let (seen, hint) = (error.to_string(), error.hint());
                let steps =
                    ["reached", "key accepted", "answers", "streams", "keeps to a schema", "tells tokens"];
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
                steps[..failed_at]
                    .iter()
                    .for_each(|step| say(step, Verdict::Good, String::new(), String::new()));
                say(steps[failed_at], Verdict::Bad, seen, hint);
                untried(&mut say, &steps[failed_at + 1..]);
                return Probed { findings, model: None, took: None };
            }
        };
        let way = self.proxy().map_or_else(|| "directly".to_owned(), |proxy| format!("through {proxy}"));
        say("reached", Verdict::Good, way, String::new());
        match &self.server().key {
            Some(_) if is_overheard(&self.server().base_url) => {
                let hint = "use https://, or a server of this machine".to_owned();
                say("key accepted", Verdict::Fair, "the key travels unencrypted".to_owned(), hint);
            }
            Some(_) => say("key accepted", Verdict::Good, String::new(), String::new()),
            None => say("key accepted", Verdict::Good, "none is needed".to_owned(), String::new()),
        }
        match (reply.answer.ended, reply.answer.text.trim().is_empty()) {
            (Ended::Whole, false) => {
                say("answers", Verdict::Good, format!("in {:.1} s", took.as_secs_f64()), String::new())
            }
            (Ended::Cut, _) | (Ended::Whole, true) => {
                let seen = format!("nothing whole within {TRIAL_TOKENS} tokens");
                say(
                    "answers",
                    Verdict::Fair,
                    seen,
                    "a model that thinks for long needs a larger `max_tokens`".to_owned(),
                );
            }
            (Ended::Refused, _) => {
                say("answers", Verdict::Bad, "it refused".to_owned(), "take another model".to_owned())
            }
        }
        let streams = self.capabilities().streams && watch.heard.load(std::sync::atomic::Ordering::Relaxed);
        match streams {
            true => say("streams", Verdict::Good, String::new(), String::new()),
            false => say(
                "streams",
                Verdict::Fair,
                "answers come in one piece: no progress is seen".to_owned(),
                String::new(),
            ),
        }
        let (verdict, seen, hint) = self.keeps_to_schema(stop);
        say("keeps to a schema", verdict, seen, hint);
        match reply.answer.estimated {
            false => {
                let seen = format!("{} in, {} out", reply.answer.tokens_in, reply.answer.tokens_out);
                say("tells tokens", Verdict::Good, seen, String::new());
            }
            true => say("tells tokens", Verdict::Fair, "they are estimated".to_owned(), String::new()),
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
                    "its answers are checked and given back to be mended; a stronger model needs that less"
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
