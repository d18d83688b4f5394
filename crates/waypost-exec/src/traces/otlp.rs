//! Spans in the JSON encoding of OTLP. Knows nothing of plans or of the collector.

use serde_json::{Value, json};
use waypost_core::Timestamp;

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u8 = 1;
/// `STATUS_CODE_ERROR`.
const ERROR: u8 = 2;

#[derive(Clone, Debug)]
pub struct Span {
    pub(super) trace: [u8; 16],
    pub(super) id: [u8; 8],
    pub(super) parent: Option<[u8; 8]>,
    pub(super) name: String,
    pub(super) begun: Timestamp,
    pub(super) ended: Timestamp,
    pub(super) attributes: Vec<(&'static str, Text)>,
    /// Related spans of the same trace.
    pub(super) links: Vec<[u8; 8]>,
    pub(super) status: Status,
}

#[derive(Clone, Debug)]
pub(super) enum Text {
    Words(String),
    Number(i64),
}

#[derive(Clone, Debug)]
pub(super) enum Status {
    Good,
    Bad(String),
}

fn nanoseconds(at: Timestamp) -> String {
    format!("{}", i128::from(at.as_micros().max(0)) * 1_000)
}

fn attribute((name, value): &(&'static str, Text)) -> Value {
    match value {
        Text::Words(words) => json!({ "key": name, "value": { "stringValue": words } }),
        Text::Number(number) => json!({ "key": name, "value": { "intValue": number.to_string() } }),
    }
}

fn span(span: &Span) -> Value {
    let trace = waypost_text::hex(&span.trace);
    let links: Vec<Value> =
        span.links.iter().map(|id| json!({ "traceId": trace, "spanId": waypost_text::hex(id) })).collect();
    let mut told = json!({
        "traceId": trace,
        "spanId": waypost_text::hex(&span.id),
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": nanoseconds(span.begun),
        "endTimeUnixNano": nanoseconds(span.ended.max(span.begun)),
        "attributes": span.attributes.iter().map(attribute).collect::<Vec<_>>(),
        "links": links,
        "status": {},
    });
    if let Some(parent) = &span.parent {
        told["parentSpanId"] = waypost_text::hex(parent).into();
    }
    if let Status::Bad(message) = &span.status {
        told["status"] = json!({ "code": ERROR, "message": message });
    }
    told
}

/// Returns the body of a request with these spans.
pub(super) fn request(service: &str, spans: &[Span]) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let resource = [
        ("service.name", service),
        ("service.version", version),
        ("telemetry.sdk.name", "waypost"),
        ("telemetry.sdk.language", "rust"),
    ];
    let resource = resource.map(|(name, words)| attribute(&(name, Text::Words(words.to_owned()))));
    json!({
        "resourceSpans": [{
            "resource": { "attributes": resource },
            "scopeSpans": [{
                "scope": { "name": "waypost", "version": version },
                "spans": spans.iter().map(span).collect::<Vec<_>>(),
            }],
        }],
    })
    .to_string()
}
