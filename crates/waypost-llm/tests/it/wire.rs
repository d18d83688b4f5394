//! The bodies of requests, and what answers and streams of answers mean: bytes in, bytes out.

use serde_json::{Value, json};
use waypost_config::{Api, Structured};
use waypost_llm::wire::*;
use waypost_llm::{Answer, Ended, ModelRequest, Purpose, Schema, Speaker, Turn};
use waypost_testkit::SeededRng;

const APIS: [Api; 2] = [Api::OpenAi, Api::Anthropic];

fn ask() -> ModelRequest {
    let turn = |by, text: &str| Turn { by, text: text.to_owned() };
    ModelRequest {
        purpose: Purpose::Generate,
        task: None,
        slot: "generate/2".to_owned(),
        prompt: "generate/1".to_owned(),
        system: "You plan.".to_owned(),
        turns: vec![
            turn(Speaker::User, "Move to JWT"),
            turn(Speaker::Assistant, "no"),
            turn(Speaker::User, "Mend it"),
        ],
        schema: Some(Schema { name: "plan".to_owned(), schema: json!({ "type": "object" }) }),
        tokens_max: 500,
        temperature: 120,
    }
}

/// The stream of an answer as a server of this kind sends it, with everything that a stream may contain.
fn stream(api: Api) -> String {
    match api {
        Api::OpenAi => [
            ": keep-alive\n\n",
            "data: {\"model\":\"m-1\",\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\r\n\r\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"{\\\"a\\\": \\\"grün\"}}]}\n\n",
            "event: chunk\rdata:{\"choices\":[{\"delta\":\rdata:{\"content\":\"✓🙂\\\"}\"}}]}\r\r",
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n",
            "data: [DONE]\n\n",
        ]
        .concat(),
        Api::Anthropic => [
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m-1\",\"usage\":{\"input_tokens\":4,\"cache_read_input_tokens\":3,\"output_tokens\":1}}}\n\n",
            "event: ping\ndata: {\"type\":\"ping\"}\n\n",
            "event: content_block_start\r\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"name\":\"plan\",\"input\":{}}}\r\n\r\n",
            "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\": \\\"grün\"}}\n\n",
            ": a comment\n",
            "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"✓🙂\\\"}\"}}\r\r",
            "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":3}}\n\n",
            "data: {\"type\":\"message_stop\"}\n\n",
        ]
        .concat(),
    }
}

fn listen<'a>(api: Api, chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Answer, WireError> {
    let mut listener = StreamReader::new(api);
    for chunk in chunks {
        listener.push(chunk)?;
    }
    listener.end(&ask(), "asked")
}

fn expected() -> Answer {
    Answer {
        text: "{\"a\": \"grün✓🙂\"}".to_owned(),
        ended: Ended::Whole,
        model: "m-1".to_owned(),
        tokens_in: 7,
        tokens_out: 3,
        estimated: false,
    }
}

#[test]
fn however_a_stream_is_cut_the_answer_is_the_same() {
    for api in APIS {
        let bytes = stream(api).into_bytes();
        assert_eq!(listen(api, [bytes.as_slice()]), Ok(expected()), "{api:?} in one piece");
        assert_eq!(listen(api, bytes.chunks(1)), Ok(expected()), "{api:?} byte by byte");
        for seed in 0..500 {
            let mut dice = SeededRng::new(seed);
            let mut rest = bytes.as_slice();
            let mut chunks = Vec::new();
            while !rest.is_empty() {
                let (chunk, more) = rest.split_at((1 + dice.below(40)).min(rest.len()));
                chunks.push(chunk);
                rest = more;
            }
            assert_eq!(listen(api, chunks), Ok(expected()), "{api:?}, seed {seed}");
        }
    }
}

#[test]
fn a_stream_that_closes_early_is_no_answer() {
    for (api, end) in [(Api::OpenAi, "\"finish_reason\""), (Api::Anthropic, "\"stop_reason\"")] {
        let text = stream(api);
        let end = text.find(end).unwrap();
        let whole_at = end + text[end..].find('}').unwrap();
        for at in 0..whole_at {
            assert_eq!(
                listen(api, [&text.as_bytes()[..at]]),
                Err(WireError::BrokeOff),
                "{api:?} cut at {at}"
            );
        }
        // After the stop reason, only the token usage is missing.
        let marked = text[whole_at..].find("\n\n").unwrap() + whole_at;
        let answer = listen(api, [&text.as_bytes()[..marked]]).unwrap();
        assert_eq!(answer.text, expected().text);
    }
}

#[test]
fn garbage_is_an_error_and_never_a_panic() {
    let pieces: Vec<&[u8]> = vec![
        b"data: ",
        b"{",
        b"}",
        b"[",
        b"]",
        b"\"choices\":",
        b"\"delta\":",
        b"\"type\":\"content_block_delta\"",
        b"null",
        b"\n",
        b"\n\n",
        b"\r",
        b",",
        b"\"usage\":",
        b"9e999",
        b"-1",
        b"\xff\xfe",
        b"\xf0\x9f",
        b"[DONE]",
        b":",
        b"event",
        b"\"error\":",
        b"\"content\":",
        b"\"message\":",
        b"\"finish_reason\":\"stop\"",
        b"\0",
    ];
    let (mut answers, mut errors) = (0, 0);
    for seed in 0..20_000 {
        let mut dice = SeededRng::new(seed);
        let chunks: Vec<&[u8]> = (0..dice.below(30)).map(|_| *dice.pick(&pieces)).collect();
        let body = String::from_utf8_lossy(&chunks.concat()).into_owned();
        for api in APIS {
            match listen(api, chunks.iter().copied()) {
                Ok(_) => answers += 1,
                Err(_) => errors += 1,
            }
            let _any = whole(api, &ask(), "m", &body);
            let _any = listed(&body);
        }
        let _any = ServerError::of(&body);
    }
    assert!(answers > 0 && errors > 0, "both happen: {answers} and {errors}");
    for (api, valid) in APIS.map(|api| (api, stream(api).into_bytes())) {
        for seed in 0..2_000 {
            let mut dice = SeededRng::new(seed);
            let mut bytes = valid.clone();
            for _ in 0..=dice.below(4) {
                let at = dice.below(bytes.len());
                bytes[at] = dice.bits() as u8;
            }
            let _any = listen(api, bytes.chunks(7));
        }
    }
}

#[test]
fn an_answer_in_one_piece_says_how_it_ended_and_what_it_cost() {
    let openai = |choice: Value, usage: Value| {
        json!({ "model": "m-1", "choices": [choice], "usage": usage }).to_string()
    };
    let message =
        |text: &str, reason: &str| json!({ "message": { "content": text }, "finish_reason": reason });
    let usage = json!({ "prompt_tokens": 7, "completion_tokens": 3 });
    let read = |body: &str| whole(Api::OpenAi, &ask(), "m", body).unwrap();
    assert_eq!(
        read(&openai(message("yes", "stop"), usage.clone())),
        Answer { text: "yes".to_owned(), ..expected() }
    );
    assert_eq!(read(&openai(message("ye", "length"), usage.clone())).ended, Ended::Cut);
    assert_eq!(read(&openai(message("", "content_filter"), usage.clone())).ended, Ended::Refused);
    let refusal = json!({ "message": { "content": null, "refusal": "I will not" }, "finish_reason": "stop" });
    let refused = read(&openai(refusal, usage));
    assert_eq!((refused.ended, refused.text.as_str()), (Ended::Refused, "I will not"));
    let pieces = json!({ "message": { "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] } });
    let estimated = read(&openai(pieces, Value::Null));
    assert_eq!((estimated.text.as_str(), estimated.estimated, estimated.tokens_out), ("ab", true, 1));
    assert!(estimated.tokens_in >= 10, "the question was estimated: {estimated:?}");

    let anthropic = |content: Value, reason: &str| {
        let usage = json!({ "input_tokens": 7, "output_tokens": 3 });
        let body = json!({ "type": "message", "model": "m-1", "content": content, "stop_reason": reason, "usage": usage });
        whole(Api::Anthropic, &ask(), "m", &body.to_string()).unwrap()
    };
    let text = json!([{ "type": "thinking", "thinking": "hm" }, { "type": "text", "text": "yes" }]);
    assert_eq!(anthropic(text.clone(), "end_turn"), Answer { text: "yes".to_owned(), ..expected() });
    assert_eq!(anthropic(text.clone(), "max_tokens").ended, Ended::Cut);
    assert_eq!(anthropic(text, "refusal").ended, Ended::Refused);
    let tool = json!([{ "type": "text", "text": "Here:" }, { "type": "tool_use", "name": "plan", "input": { "a": 1 } }]);
    assert_eq!(anthropic(tool, "tool_use").text, "{\"a\":1}");
}

#[test]
fn what_is_no_answer_is_called_so() {
    for api in APIS {
        for body in ["", "<html>502</html>", "[]", "{}", "{\"choices\":[]}", "{\"content\":3}", "null"] {
            assert!(matches!(whole(api, &ask(), "m", body), Err(WireError::Garbled(_))), "{api:?} {body}");
        }
        let error = r#"{"error":{"message":"too many","type":"rate_limit_error"}}"#;
        let said = ServerError { kind: "rate_limit_error".to_owned(), message: "too many".to_owned() };
        assert_eq!(whole(api, &ask(), "m", error), Err(WireError::Server(said.clone())));
        assert_eq!(
            listen(api, [format!("event: error\ndata: {error}\n\n").as_bytes()]),
            Err(WireError::Server(said))
        );
    }
}

#[test]
fn every_servers_way_to_say_that_something_is_wrong_is_read() {
    for (body, said) in [
        (
            r#"{"error":{"message":"no key","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            "no key (invalid_request_error)",
        ),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            "Overloaded (overloaded_error)",
        ),
        (r#"{"error":"model not found"}"#, "model not found"),
        (
            r#"{"object":"error","message":"too long","type":"BadRequestError","code":400}"#,
            "too long (BadRequestError)",
        ),
        (r#"{"detail":"Not Found"}"#, "Not Found"),
        (r#"[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]"#, "bad (400)"),
        (r#"{"error":{"message":"unsupported","param":"response_format"}}"#, "unsupported (response_format)"),
        ("<h1>Bad\n Gateway</h1>", "<h1>Bad Gateway</h1>"),
        ("", "it said nothing about it"),
    ] {
        assert_eq!(ServerError::of(body).to_string(), said);
    }
    let long = ServerError::of(&"x".repeat(10_000)).message;
    assert_eq!(long.chars().count(), SAID_COLUMNS_MAX);
}

#[test]
fn requests_say_what_each_server_expects() {
    let capabilities = Capabilities::default();
    let openai = request(Api::OpenAi, &ask(), "gpt", &capabilities);
    assert_eq!(
        openai,
        json!({
            "model": "gpt",
            "messages": [
                { "role": "system", "content": "You plan." },
                { "role": "user", "content": "Move to JWT" },
                { "role": "assistant", "content": "no" },
                { "role": "user", "content": "Mend it" },
            ],
            "max_tokens": 500,
            "temperature": 1.2,
            "response_format": {
                "type": "json_schema",
                "json_schema": { "name": "plan", "strict": true, "schema": { "type": "object" } },
            },
            "stream": true,
            "stream_options": { "include_usage": true },
        })
    );
    let anthropic =
        request(Api::Anthropic, &ask(), "claude", &Capabilities { streams: false, ..capabilities });
    assert_eq!(anthropic["system"], "You plan.");
    assert_eq!(anthropic["temperature"], 1.0);
    assert_eq!(anthropic["tool_choice"], json!({ "type": "tool", "name": "plan" }));
    assert_eq!(anthropic["tools"][0]["input_schema"], json!({ "type": "object" }));
    assert_eq!(anthropic.get("stream"), None);
    let bare = Capabilities { structured: Structured::None, temperature: false, ..capabilities };
    let bare_openai = request(Api::OpenAi, &ask(), "gpt", &bare);
    assert_eq!((bare_openai.get("response_format"), bare_openai.get("temperature")), (None, None));
    assert_eq!(request(Api::Anthropic, &ask(), "claude", &bare).get("tools"), None);
}

#[test]
fn a_refusal_that_is_understood_takes_one_thing_away() {
    let said =
        |message: &str| ServerError { kind: "invalid_request_error".to_owned(), message: message.to_owned() };
    let capabilities = Capabilities::default();
    let after = |capabilities: &Capabilities, message: &str| {
        capabilities.after(&said(message)).map(|conceded| conceded.to)
    };
    assert_eq!(after(&capabilities, "'response_format.json_schema' is not supported"), Some("json"));
    let json = Capabilities { structured: Structured::Json, ..capabilities };
    assert_eq!(after(&json, "response_format must be text"), Some("none"));
    assert_eq!(
        after(&capabilities, "Unsupported parameter: use 'max_completion_tokens' instead"),
        Some("max_completion_tokens")
    );
    assert_eq!(
        after(&capabilities, "temperature does not support 0.2 with this model"),
        Some("no temperature")
    );
    assert_eq!(after(&capabilities, "unknown field stream_options"), Some("no usage in streams"));
    assert_eq!(
        after(&capabilities, "your organization must be verified to stream this model"),
        Some("no stream")
    );
    assert_eq!(after(&capabilities, "bad request"), Some("json"));
    for hopeless in [
        "maximum context length is 8192 tokens",
        "Your credit balance is too low",
        "The model does not exist",
    ] {
        assert_eq!(after(&capabilities, hopeless), None, "{hopeless}");
    }
    let bare =
        Capabilities { structured: Structured::None, temperature: false, streams: false, ..capabilities };
    assert_eq!(after(&bare, "response_format temperature stream"), None);
}

#[test]
fn an_answer_at_the_limit_is_read_and_one_past_it_is_not() {
    let event = |bytes: usize| {
        let chunk =
            json!({ "choices": [{ "delta": { "content": "x".repeat(bytes) }, "finish_reason": "stop" }] });
        format!("data: {chunk}\n\n")
    };
    let at = listen(Api::OpenAi, [event(ANSWER_BYTES_MAX).as_bytes()]).unwrap();
    assert_eq!(at.text.len(), ANSWER_BYTES_MAX);
    assert_eq!(
        listen(Api::OpenAi, [event(ANSWER_BYTES_MAX + 1).as_bytes()]),
        Err(WireError::TooMuch(ANSWER_BYTES_MAX))
    );
    // A stream without content is limited, too.
    let mut listener = StreamReader::new(Api::Anthropic);
    let chunk = vec![b'x'; STREAM_BYTES_MAX];
    assert_eq!(listener.push(&chunk), Ok(()));
    assert_eq!(listener.push(b"x"), Err(WireError::TooMuch(STREAM_BYTES_MAX)));
}

#[test]
fn lists_of_models_are_read() {
    assert_eq!(
        listed(r#"{"object":"list","data":[{"id":"a"},{"id":"b"}]}"#),
        Some(vec!["a".to_owned(), "b".to_owned()])
    );
    assert_eq!(listed(r#"{"models":[{"name":"a"}]}"#), Some(vec!["a".to_owned()]));
    assert_eq!(listed("nothing"), None);
}
