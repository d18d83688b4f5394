//! Models over the network, against a server that plays every fault. Nothing that anybody is told has a key in it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use waypost_config::Structured;
use waypost_config::{Config, ExecutionEnv, Layer, Origin};
use waypost_llm::{
    ByRole, CallEvent, CancelToken, Client, Cost, Lost, Model, ModelError, Progress, Quiet, Reply, Stop,
    Verdict,
};
use waypost_llm::{Ended, ModelRequest, Purpose, Schema, Speaker, Turn};
use waypost_testkit::fake_llm::{ModelServer, ScriptedReply};

pub(crate) const KEY: &str = "very-secret-key-0123456789";
const PLAN: &str = r#"{"tasks": [{"id": "a", "description": "Lies die Änderungen ✓"}]}"#;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn ask() -> ModelRequest {
    ModelRequest {
        purpose: Purpose::Generate,
        task: None,
        slot: "generate/1".to_owned(),
        prompt: "generate/1".to_owned(),
        system: "You plan.".to_owned(),
        turns: vec![Turn { by: Speaker::User, text: "Move to JWT".to_owned() }],
        schema: Some(Schema { name: "plan".to_owned(), schema: json!({ "type": "object" }) }),
        tokens_max: 500,
        temperature: 20,
    }
}

pub(crate) fn around(variables: &[(&str, &str)]) -> ExecutionEnv {
    let folder = std::env::temp_dir();
    let all = variables.iter().chain(&[("MODEL_KEY", KEY)]);
    let variables: BTreeMap<String, String> =
        all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ExecutionEnv {
        workspace: folder.clone(),
        logs: folder.join("logs"),
        remote_notes: folder.join("notes"),
        variables,
        worker: "w".to_owned(),
    }
}

fn config(text: &str) -> Config {
    let layer = Layer { origin: Origin::User, name: "config.toml".to_owned(), text: text.to_owned() };
    Config::load(&[layer], []).unwrap_or_else(|bad| panic!("{:?}", bad.problems))
}

fn described(name: &str, api: &str, base_url: &str, keys: &str) -> String {
    format!(
        "[models.{name}]\napi = \"{api}\"\nbase_url = \"{base_url}\"\nmodel = \"m-1\"\nkey = {{ variable = \"MODEL_KEY\" }}\nsilence_seconds = 20\n{keys}\n"
    )
}

fn client(api: &str, server: &ModelServer, keys: &str) -> Client {
    let base_url = if api == "openai" { server.openai() } else { server.anthropic() };
    let config = config(&described("it", api, &base_url, keys));
    Client::new("it", &config.models["it"], &around(&[])).unwrap()
}

/// Writes down what it is told.
#[derive(Default)]
pub(crate) struct Told(Mutex<Vec<String>>);

impl Progress for Told {
    fn on_event(&self, ask: &ModelRequest, moment: &CallEvent<'_>) {
        self.0.lock().unwrap().push(format!("{} {moment:?}", ask.slot));
    }
}

impl Told {
    fn all(&self) -> String {
        self.0.lock().unwrap().join("\n")
    }

    fn count(&self, word: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|line| line.contains(word)).count()
    }
}

/// Asks, and looks that nobody was told the key.
#[track_caller]
fn asked(model: &dyn Model) -> (Result<Reply, ModelError>, Told) {
    let told = Told::default();
    let begun = Instant::now();
    let answer = model.ask(&ask(), &told, &Stop::new());
    assert!(begun.elapsed() < PATIENCE, "it is bounded");
    let all = format!(
        "{}\n{answer:?}\n{}",
        told.all(),
        answer.as_ref().err().map(|error| error.hint()).unwrap_or_default()
    );
    assert!(!all.contains(KEY), "{all}");
    (answer, told)
}

#[test]
fn both_kinds_of_server_answer_by_a_stream_that_keeps_to_a_schema() {
    for (api, header, value) in
        [("openai", "authorization", format!("Bearer {KEY}")), ("anthropic", "x-api-key", KEY.to_owned())]
    {
        let server = ModelServer::playing([ScriptedReply::Say(PLAN.to_owned())]);
        let client = client(api, &server, "price_in = 2.5\nprice_out = 10\nmax_tokens = 300\n");
        let (answer, told) = asked(&client);
        let Reply { answer, from, cost, recalled } = answer.unwrap();
        assert_eq!(
            (answer.text.as_str(), answer.ended, answer.estimated),
            (PLAN, Ended::Whole, false),
            "{api}"
        );
        assert_eq!((answer.model.as_str(), from.as_str(), recalled), ("m-1", "it", false));
        let expected = (answer.tokens_in * 25).div_ceil(10) + answer.tokens_out * 10;
        assert_eq!(cost, Some(Cost(expected)), "millionths for tokens at their price");
        assert!(told.count("Received") > 0 && told.count("Answered") == 1, "{}", told.all());
        let seen = &server.seen()[0];
        assert_eq!(seen.header(header), Some(value.as_str()));
        assert_eq!((&seen.json()["stream"], &seen.json()["max_tokens"]), (&json!(true), &json!(300)));
        let shape = if api == "openai" {
            &seen.json()["response_format"]["type"]
        } else {
            &seen.json()["tool_choice"]["type"]
        };
        assert_eq!(shape, if api == "openai" { "json_schema" } else { "tool" });
        assert!(!format!("{client:?}").contains(KEY));
    }
}

#[test]
fn a_server_that_asks_for_patience_is_asked_again_when_it_says() {
    let busy = |after: &str| {
        ScriptedReply::status(429, "rate_limit_error", "slow down").with_header("retry-after", after)
    };
    let server = ModelServer::playing([busy("0"), busy("0.01"), ScriptedReply::Say("yes".to_owned())]);
    let (answer, told) = asked(&client("openai", &server, ""));
    assert_eq!(answer.unwrap().answer.text, "yes");
    assert_eq!((server.asked(), told.count("Waits")), (3, 2), "{}", told.all());
    // Whoever wants to be left alone for an hour is not waited for.
    let server = ModelServer::playing([busy("3600")]);
    let (answer, _) = asked(&client("openai", &server, ""));
    let Err(ModelError::Busy { status: 429, wait_milliseconds: Some(3_600_000), .. }) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(server.asked(), 1);
}

#[test]
fn troubles_of_a_server_are_waited_out_so_often_and_then_told() {
    let trouble = || ScriptedReply::status(500, "api_error", "oops").with_header("retry-after-ms", "1");
    let server = ModelServer::directed(move |_| trouble());
    let (answer, told) = asked(&client("anthropic", &server, "retries = 3\n"));
    let error = answer.unwrap_err();
    assert_eq!(error.to_string(), "it: temporarily unavailable (500): oops (api_error)");
    assert_eq!((server.asked(), told.count("Waits")), (4, 3));
    // A quota that is used up is no matter of patience.
    let server = ModelServer::playing([ScriptedReply::status(
        429,
        "insufficient_quota",
        "You exceeded your current quota",
    )]);
    assert!(matches!(asked(&client("openai", &server, "")).0, Err(ModelError::Refused { status: 429, .. })));
    assert_eq!(server.asked(), 1);
}

#[test]
fn what_a_server_does_not_offer_is_done_without_and_not_asked_for_again() {
    let server = ModelServer::directed(|seen| match seen.json()["response_format"]["type"].as_str() {
        Some(kind) => ScriptedReply::status(
            400,
            "invalid_request_error",
            &format!("response_format {kind} is not supported"),
        ),
        None if !seen.json()["temperature"].is_null() => {
            ScriptedReply::status(400, "invalid_request_error", "temperature is fixed")
        }
        None => ScriptedReply::Say("yes".to_owned()),
    });
    let client = client("openai", &server, "");
    let (answer, told) = asked(&client);
    assert_eq!(answer.unwrap().answer.text, "yes");
    assert_eq!((server.asked(), told.count("TurnedDown")), (4, 3), "{}", told.all());
    assert_eq!(client.capabilities().structured, Structured::None);
    assert!(asked(&client).0.is_ok());
    assert_eq!(server.asked(), 5, "the second time it is asked as it wants to be");
    // A question that is too long is refused in any form, and nothing is learnt from that.
    let server = ModelServer::directed(|_| {
        ScriptedReply::status(400, "invalid_request_error", "maximum context length is 10")
    });
    let client = self::client("openai", &server, "");
    assert!(matches!(asked(&client).0, Err(ModelError::Refused { status: 400, .. })));
    assert_eq!((server.asked(), client.capabilities().structured), (1, Structured::Schema));
}

#[test]
fn a_stream_that_closes_half_way_is_no_answer_and_is_asked_for_again() {
    for api in ["openai", "anthropic"] {
        let server = ModelServer::playing([
            ScriptedReply::HalfClose(PLAN.to_owned()),
            ScriptedReply::Say(PLAN.to_owned()),
        ]);
        let (answer, told) = asked(&client(api, &server, ""));
        assert_eq!(answer.unwrap().answer.text, PLAN);
        assert_eq!((told.count("Failed { why: BrokeOff"), told.count("Waits")), (1, 1), "{}", told.all());
        let server = ModelServer::playing([ScriptedReply::HalfClose(PLAN.to_owned())]);
        let answer = asked(&client(api, &server, "retries = 0\n")).0;
        assert_eq!(answer, Err(ModelError::BrokeOff { model: "it".to_owned() }));
    }
}

#[test]
fn silence_before_an_answer_and_within_one_is_borne_for_so_long() {
    for play in [ScriptedReply::Hang, ScriptedReply::FallSilent(PLAN.to_owned())] {
        let server = ModelServer::playing([play]);
        let keys = "retries = 0\n";
        let text = described("it", "openai", &server.openai(), keys)
            .replace("silence_seconds = 20", "silence_seconds = 1");
        let client = Client::new("it", &config(&text).models["it"], &around(&[])).unwrap();
        assert_eq!(asked(&client).0, Err(ModelError::Silent { model: "it".to_owned(), seconds: 1 }));
    }
    let server = ModelServer::playing([ScriptedReply::FallSilent(PLAN.to_owned())]);
    let slow = client("anthropic", &server, "timeout_seconds = 1\n");
    assert_eq!(asked(&slow).0, Err(ModelError::TooSlow { model: "it".to_owned(), seconds: 1 }));
    assert_eq!(server.asked(), 1, "whoever was too slow would be too slow again");
}

#[test]
fn a_model_that_never_stops_is_stopped() {
    for api in ["openai", "anthropic"] {
        let server = ModelServer::playing([ScriptedReply::Endless]);
        let answer = asked(&client(api, &server, "")).0;
        assert!(matches!(answer, Err(ModelError::TooMuch { .. })), "{answer:?}");
        assert_eq!(server.asked(), 1);
    }
}

#[test]
fn garbage_is_told_as_what_it_is() {
    let server = ModelServer::playing([ScriptedReply::Garbage]);
    let answer = asked(&client("openai", &server, "retries = 0\n")).0;
    assert!(matches!(answer, Err(ModelError::NotReached { .. })), "{answer:?}");
    let server = ModelServer::playing([ScriptedReply::Nonsense("<html>Welcome</html>".to_owned())]);
    let answer = asked(&client("openai", &server, "retries = 0\n")).0.unwrap_err();
    assert_eq!(answer.to_string(), "it returned a malformed response: no JSON: <html>Welcome</html>");
    let server = ModelServer::playing([ScriptedReply::Stream(vec![
        b"data: {\"choi".to_vec(),
        b"ces\": nonsense}\n\n".to_vec(),
    ])]);
    assert!(matches!(asked(&client("openai", &server, "retries = 0\n")).0, Err(ModelError::Garbled { .. })));
}

#[test]
fn errors_inside_a_stream_are_heard() {
    let overloaded = b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let server = ModelServer::playing([
        ScriptedReply::Stream(vec![overloaded.to_vec()]),
        ScriptedReply::Say("yes".to_owned()),
    ]);
    let (answer, told) = asked(&client("anthropic", &server, ""));
    assert_eq!(answer.unwrap().answer.text, "yes");
    assert_eq!(told.count("Failed { why: Busy"), 1, "{}", told.all());
}

#[test]
fn cut_and_refused_answers_say_so_and_uncounted_ones_are_estimated() {
    for api in ["openai", "anthropic"] {
        let plays = [
            ScriptedReply::SayCut("half".to_owned()),
            ScriptedReply::Refuse("I will not".to_owned()),
            ScriptedReply::SayUncounted("yes".to_owned()),
        ];
        let server = ModelServer::playing(plays);
        let client = client(api, &server, "");
        assert_eq!(asked(&client).0.unwrap().answer.ended, Ended::Cut);
        let refused = asked(&client).0.unwrap().answer;
        assert_eq!((refused.ended, refused.text.as_str()), (Ended::Refused, "I will not"), "{api}");
        let estimated = asked(&client).0.unwrap().answer;
        assert!(estimated.estimated && estimated.tokens_in > 0 && estimated.tokens_out > 0, "{estimated:?}");
    }
}

#[test]
fn a_server_that_repeats_the_key_does_not_make_us_repeat_it() {
    let said = format!("Incorrect API key provided: {KEY}");
    for (status, code) in [(401, "not_allowed"), (404, "not_there"), (402, "refused"), (400, "refused")] {
        let said = said.clone();
        let server = ModelServer::directed(move |_| ScriptedReply::status(status, "invalid_api_key", &said));
        let error = asked(&client("openai", &server, "structured = \"none\"\n")).0.unwrap_err();
        assert_eq!(error.code(), code);
        assert!(error.to_string().contains("[secret]"), "{error}");
    }
}

#[test]
fn the_key_goes_to_no_other_address() {
    let elsewhere = ModelServer::playing([ScriptedReply::Say("yes".to_owned())]);
    for status in [301, 302, 307, 308] {
        let target = format!("{}/chat/completions", elsewhere.openai());
        let play = ScriptedReply::Status {
            status,
            headers: vec![("location".to_owned(), target)],
            body: String::new(),
        };
        let server = ModelServer::playing([play]);
        assert!(matches!(asked(&client("openai", &server, "")).0, Err(ModelError::Refused { .. })));
    }
    assert_eq!(elsewhere.seen().len(), 0);
}

#[test]
fn whoever_asks_can_be_stopped_at_once() {
    for play in [
        ScriptedReply::Hang,
        ScriptedReply::FallSilent(PLAN.to_owned()),
        ScriptedReply::status(429, "busy", "later").with_header("retry-after", "100"),
    ] {
        let server = Arc::new(ModelServer::playing([play]));
        let client = client("openai", &server, "");
        let stop = Stop::new();
        let begun = Instant::now();
        let answer = std::thread::scope(|scope| {
            let asking = scope.spawn(|| client.ask(&ask(), &Quiet, &stop));
            while server.asked() == 0 {
                assert!(begun.elapsed() < PATIENCE);
                std::thread::yield_now();
            }
            stop.now();
            asking.join().unwrap()
        });
        assert_eq!(answer, Err(ModelError::Stopped));
    }
}

#[test]
fn whoever_is_to_ask_nothing_new_neither_waits_nor_asks_again() {
    let busy = ScriptedReply::status(429, "busy", "later").with_header("retry-after", "100");
    let server = ModelServer::directed(move |_| busy.clone());
    let text = [
        described("first", "openai", &server.openai(), ""),
        described("second", "openai", &server.openai(), ""),
        "[planner]\nplanner = \"first\"\nfallback = [\"second\"]\n".to_owned(),
    ];
    let models = ByRole::new(&config(&text.concat()), &around(&[]), None).unwrap();
    let halt = CancelToken::default();
    let begun = Instant::now();
    let stop = Stop::new().or_after(&CancelToken::default()).or_after(&halt);
    let answer = std::thread::scope(|scope| {
        let asking = scope.spawn(|| models.ask(&ask(), &Quiet, &stop));
        while server.asked() == 0 {
            assert!(begun.elapsed() < PATIENCE);
            std::thread::yield_now();
        }
        halt.cancel();
        asking.join().unwrap()
    });
    assert_eq!(answer, Err(ModelError::Stopped));
    assert_eq!(server.asked(), 1, "neither the same nor another model is asked");
    assert_eq!(models.ask(&ask(), &Quiet, &stop), Err(ModelError::Stopped));
    assert_eq!(server.asked(), 1, "and nothing is begun");
}

#[test]
fn the_time_that_there_is_bounds_calls_and_waits() {
    let soon = || Stop::new().or_at(Some(Instant::now() + Duration::from_millis(300)));
    let out_of_time = Err(ModelError::OutOfTime { model: "it".to_owned() });
    for play in [ScriptedReply::Hang, ScriptedReply::FallSilent(PLAN.to_owned())] {
        let server = ModelServer::playing([play]);
        assert_eq!(client("openai", &server, "").ask(&ask(), &Quiet, &soon()), out_of_time);
    }
    let busy = ScriptedReply::status(429, "busy", "later").with_header("retry-after", "100");
    let server = ModelServer::playing([busy]);
    let answer = client("openai", &server, "").ask(&ask(), &Quiet, &soon());
    assert!(matches!(answer, Err(ModelError::Busy { .. })), "{answer:?}");
}

/// Keeps what was lost.
#[derive(Default)]
struct Losses(Mutex<Vec<Option<Lost>>>);

impl Progress for Losses {
    fn on_event(&self, _ask: &ModelRequest, moment: &CallEvent<'_>) {
        if let CallEvent::Failed { lost, .. } = moment {
            self.0.lock().unwrap().push(lost.cloned());
        }
    }
}

#[test]
fn what_a_call_has_cost_that_broke_off_is_told() {
    let lost = |api: &str, play: ScriptedReply| {
        let server = ModelServer::playing([play]);
        let keys = "retries = 0\nprice_in = 1\nprice_out = 2\ntimeout_seconds = 1\n";
        let losses = Losses::default();
        assert!(client(api, &server, keys).ask(&ask(), &losses, &Stop::new()).is_err());
        let mut all = losses.0.into_inner().unwrap();
        assert_eq!(all.len(), 1);
        (all.remove(0), server.seen()[0].body.len() as u64 / 4 + 1)
    };
    let (known, counted) = lost("anthropic", ScriptedReply::HalfClose(PLAN.to_owned()));
    let known = known.unwrap();
    assert_eq!((known.from.as_str(), known.tokens_in), ("it", counted), "the server has said so");
    assert!(known.tokens_out > 1 && known.estimated, "{known:?}");
    assert_eq!(known.cost, Some(Cost(known.tokens_in + 2 * known.tokens_out)));
    for play in [
        ScriptedReply::HalfClose(PLAN.to_owned()),
        ScriptedReply::FallSilent(PLAN.to_owned()),
        ScriptedReply::Hang,
    ] {
        let lost = lost("openai", play).0.unwrap();
        assert!(lost.tokens_in > 0 && lost.estimated, "{lost:?}");
    }
    for status in [401, 429, 500] {
        assert_eq!(
            lost("openai", ScriptedReply::status(status, "no", "no")).0,
            None,
            "nobody pays for {status}"
        );
    }
}

#[test]
fn when_a_model_does_not_answer_the_next_one_is_asked_and_that_is_told() {
    let broken = ModelServer::directed(|_| ScriptedReply::status(401, "authentication_error", "no"));
    let good = ModelServer::playing([ScriptedReply::Say("yes".to_owned())]);
    let text = [
        described("first", "openai", &broken.openai(), ""),
        described("second", "anthropic", &good.anthropic(), ""),
        "[planner]\nplanner = \"first\"\nfallback = [\"second\"]\n".to_owned(),
    ];
    let config = config(&text.concat());
    let models = ByRole::new(&config, &around(&[]), None).unwrap();
    let (answer, told) = asked(&models);
    let reply = answer.unwrap();
    assert_eq!((reply.from.as_str(), reply.answer.text.as_str()), ("second", "yes"));
    assert_eq!(told.count("FellBack"), 1, "{}", told.all());
    // When nobody answers, the first says why.
    let error = asked(&models).0.unwrap_err();
    assert_eq!(error.code(), "not_allowed");
    assert!(!format!("{models:?} {config:?}").contains(KEY));
}

#[test]
fn each_role_has_its_model_and_a_choice_stands_above_all() {
    let server =
        ModelServer::directed(|seen| ScriptedReply::Say(seen.json()["model"].as_str().unwrap().to_owned()));
    let text = [
        described("strong", "openai", &server.openai(), "").replace("m-1", "big"),
        described("cheap", "anthropic", &server.anthropic(), "").replace("m-1", "small"),
        "[planner]\nplanner = \"strong\"\nchecker = \"cheap\"\n".to_owned(),
    ];
    let config = config(&text.concat());
    let say = |choice: Option<&str>, purpose: Purpose| {
        let models = ByRole::new(&config, &around(&[]), choice).unwrap();
        let answer =
            models.ask(&ModelRequest { purpose, schema: None, ..ask() }, &Quiet, &Stop::new()).unwrap();
        (answer.from, answer.answer.text)
    };
    let is = |from: &str, model: &str| (from.to_owned(), model.to_owned());
    assert_eq!(say(None, Purpose::Generate), is("strong", "big"));
    assert_eq!(say(None, Purpose::Atomicity), is("cheap", "small"));
    assert_eq!(say(None, Purpose::Digest), is("cheap", "small"));
    assert_eq!(say(Some("cheap"), Purpose::Generate), is("cheap", "small"));
    assert_eq!(say(Some("cheap/tiny"), Purpose::Generate), is("cheap", "tiny"));
    for purpose in [Purpose::Generate, Purpose::Atomicity, Purpose::Digest] {
        assert_eq!(say(Some("meta/llama"), purpose), is("strong", "meta/llama"));
    }
}

#[test]
fn with_a_key_in_the_environment_nothing_need_be_configured() {
    let server = ModelServer::playing([ScriptedReply::Say("yes".to_owned())]);
    let base = server.openai();
    let variables = [("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", base.as_str())];
    let config = Config::load(&[], variables).unwrap();
    // A server with one model leaves no choice.
    let models = ByRole::new(&config, &around(&variables), None).unwrap();
    assert_eq!(asked(&models).0.unwrap().answer.model, "scripted");
    // One with several is not guessed at.
    let server = ModelServer::playing([]).with_models(&["big", "small"]);
    let base = server.openai();
    let variables = [("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", base.as_str())];
    let config = Config::load(&[], variables).unwrap();
    let error = asked(&ByRole::new(&config, &around(&variables), None).unwrap()).0.unwrap_err();
    assert!(error.hint().ends_with("its server has big, small"), "{}", error.hint());
    assert_eq!(server.asked(), 0);
    // Two keys and no word are one too many; none is one too few.
    let both = Config::load(&[], [("OPENAI_API_KEY", KEY), ("ANTHROPIC_API_KEY", KEY)]).unwrap();
    let error = ByRole::new(&both, &around(&[]), None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "several models are configured (anthropic, openai) and none is chosen as the planner"
    );
    let odd = Config::load(&[], [("OPENAI_BASE_URL", "http://u:hunter2@x")]).unwrap();
    let error = ByRole::new(&odd, &around(&[]), None).unwrap_err();
    assert_eq!(error.to_string(), "models.openai: invalid base_url");
    let error = ByRole::new(&Config::default(), &around(&[]), None).unwrap_err();
    assert_eq!(error.to_string(), "no model is configured for the planner");
}

#[test]
fn a_key_that_is_not_there_is_told_before_anything_is_sent() {
    let server = ModelServer::playing([]);
    let config = config(&described("it", "openai", &server.openai(), "").replace("MODEL_KEY", "NO_SUCH_KEY"));
    let error = Client::new("it", &config.models["it"], &around(&[])).unwrap_err();
    assert_eq!(error.to_string(), "models.it: no key: the variable NO_SUCH_KEY is not set");
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn a_proxy_is_asked_in_its_own_way_and_its_password_is_never_told() {
    let proxy = ModelServer::directed(|seen| match seen.method.as_str() {
        "CONNECT" => ScriptedReply::status(502, "no", "no such host"),
        _ => ScriptedReply::Say("yes".to_owned()),
    });
    let address = format!("http://bob:pass%40word-77@{}", proxy.address());
    let variables = [("http_proxy", address.as_str()), ("HTTPS_PROXY", address.as_str())];
    let ask_at = |base_url: &str| {
        let config = config(&described("it", "openai", base_url, "retries = 0\n"));
        let client = Client::new("it", &config.models["it"], &around(&variables)).unwrap();
        let (answer, told) = asked(&client);
        let all = format!("{client:?} {answer:?} {}", told.all());
        assert!(!all.contains("pass%40word-77") && !all.contains("pass@word-77"), "{all}");
        answer
    };
    assert_eq!(ask_at("http://model.test/v1").unwrap().answer.text, "yes");
    assert!(matches!(ask_at("https://model.test:8443/v1"), Err(ModelError::NotReached { .. })));
    let seen = proxy.seen();
    assert_eq!(
        (seen[0].method.as_str(), seen[0].path.as_str()),
        ("POST", "http://model.test/v1/chat/completions")
    );
    assert_eq!((seen[1].method.as_str(), seen[1].path.as_str()), ("CONNECT", "model.test:8443"));
    for seen in &seen {
        assert_eq!(seen.header("proxy-authorization"), Some("Basic Ym9iOnBhc3NAd29yZC03Nw=="));
    }
    assert_eq!(seen[1].header("authorization"), None, "what is for the server goes through the tunnel only");
}

#[test]
fn a_trial_says_what_works_and_what_does_not() {
    let server = ModelServer::directed(|seen| match seen.json()["response_format"].is_null() {
        true => ScriptedReply::Say("ready".to_owned()),
        false => ScriptedReply::Say("{\"ready\": true}".to_owned()),
    });
    let probed = client("openai", &server, "").probe(&Stop::new());
    assert!(probed.is_usable());
    assert!(probed.findings.iter().all(|finding| finding.verdict == Verdict::Good), "{probed:?}");

    let server = ModelServer::directed(|_| ScriptedReply::status(401, "invalid_api_key", "who are you?"));
    let probed = client("openai", &server, "").probe(&Stop::new());
    let verdicts: Vec<Verdict> = probed.findings.iter().map(|finding| finding.verdict).collect();
    assert_eq!(verdicts[..3], [Verdict::Good, Verdict::Bad, Verdict::Untried]);
    assert!(!probed.is_usable() && !format!("{probed:?}").contains(KEY));

    let server = ModelServer::directed(|seen| match seen.json()["response_format"].is_null() {
        true => ScriptedReply::SayUncounted("I am ready".to_owned()),
        false => ScriptedReply::status(400, "", "response_format is unknown"),
    });
    let probed = client("openai", &server, "").probe(&Stop::new());
    let fair = probed.findings.iter().filter(|finding| finding.verdict == Verdict::Fair).count();
    assert!(probed.is_usable() && fair == 2, "{probed:?}");
}
