//! The stdio transport: one JSON-RPC message per line, with a size limit. A line that is not a message is answered with an error,
//! and the next one is read. Knows no method.

use std::io;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};

use crate::partial_json::PartialObject;

/// Maximum bytes of one line.
pub const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum number of received messages that wait to be handled; further ones stay in the pipe.
const WAITING_MAX: usize = 16;
/// The bytes with which some editors begin a file.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A line to write, and the channel that reports the result.
type Outgoing = (Vec<u8>, oneshot::Sender<io::Result<()>>);

/// A transport with one message per line. Two tasks read and write, so that cancelling a wait for a message never leaves one
/// half read or half written.
pub struct StdioTransport {
    incoming: mpsc::Receiver<ClientJsonRpcMessage>,
    outgoing: Option<mpsc::Sender<Outgoing>>,
}

impl StdioTransport {
    /// Creates a transport over a reader and a writer, and spawns its two tasks.
    pub fn new(
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let (deliver, incoming) = mpsc::channel(WAITING_MAX);
        let (outgoing, lines) = mpsc::channel(WAITING_MAX);
        tokio::spawn(write_all(write, lines));
        let answers = outgoing.clone().downgrade();
        tokio::spawn(read_all(BufReader::new(read), deliver, answers));
        Self { incoming, outgoing: Some(outgoing) }
    }
}

impl Transport<RoleServer> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move { put(outgoing.as_ref().ok_or_else(closed)?, serde_json::to_vec(&message)?).await }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.outgoing = None;
        Ok(())
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the client is gone")
}

async fn put(outgoing: &mpsc::Sender<Outgoing>, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    let (tell, told) = oneshot::channel();
    outgoing.send((line, tell)).await.map_err(|_| closed())?;
    told.await.map_err(|_| closed())?
}

async fn write_all(mut write: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Outgoing>) {
    while let Some((line, tell)) = lines.recv().await {
        let written = match write.write_all(&line).await {
            Ok(()) => write.flush().await,
            Err(error) => Err(error),
        };
        let _nobody_waits = tell.send(written);
    }
}

/// Reads until the input is closed, or the receiver is dropped.
async fn read_all(
    mut read: BufReader<impl AsyncRead + Unpin>,
    deliver: mpsc::Sender<ClientJsonRpcMessage>,
    answers: mpsc::WeakSender<Outgoing>,
) {
    let mut has_begun = false;
    while let Ok(Some(line)) = next_line(&mut read).await {
        match line.read() {
            Read::Message(message) => {
                has_begun |= matches!(*message, ClientJsonRpcMessage::Request(_));
                // Drop messages before the first request: a server that is being initialized can only handle a request.
                if has_begun && deliver.send(*message).await.is_err() {
                    return;
                }
            }
            Read::Nothing => {}
            Read::Wrong { id, error } => {
                let answer = answer(id, &error);
                let Some(answers) = answers.upgrade() else { return };
                if put(&answers, answer.to_string().into_bytes()).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Returns the error response to a text that is not a message.
pub(crate) fn what_is_wrong(text: &[u8]) -> Value {
    let mut line = Line::default();
    line.add(text);
    match line.read() {
        Read::Wrong { id, error } => answer(id, &error),
        Read::Message(_) | Read::Nothing => {
            answer(None, &ErrorData::invalid_request("this is neither a request nor a notification", None))
        }
    }
}

fn answer(id: Option<RequestId>, error: &ErrorData) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

/// A line; of one that is too long, only its top-level fields.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    outline: PartialObject,
    is_too_long: bool,
}

/// The result of parsing a line.
#[derive(Debug)]
enum Read {
    Message(Box<ClientJsonRpcMessage>),
    /// The line needs no answer.
    Nothing,
    Wrong {
        id: Option<RequestId>,
        error: ErrorData,
    },
}

/// Reads the next line; `None` at the end of the input.
async fn next_line(read: &mut BufReader<impl AsyncRead + Unpin>) -> io::Result<Option<Line>> {
    let mut line = Line::default();
    loop {
        let found = read.fill_buf().await?;
        if found.is_empty() {
            let is_empty = line.bytes.is_empty() && !line.is_too_long;
            return Ok((!is_empty).then_some(line));
        }
        let end = found.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(found.len(), |end| end + 1);
        line.add(&found[..end.unwrap_or(taken)]);
        read.consume(taken);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

impl Line {
    fn add(&mut self, bytes: &[u8]) {
        self.outline.add(bytes);
        if self.is_too_long || self.bytes.len() + bytes.len() > LINE_BYTES_MAX {
            (self.bytes, self.is_too_long) = (Vec::new(), true);
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn read(self) -> Read {
        let Self { bytes, outline, is_too_long } = self;
        if is_too_long {
            let words = format!(
                "the message has more than {LINE_BYTES_MAX} bytes and was not read; send less at a time, or name a file instead of its text"
            );
            return Read::Wrong { id: outline.id(), error: ErrorData::parse_error(words, None) };
        }
        let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes).trim_ascii();
        if text.is_empty() {
            return Read::Nothing;
        }
        match serde_json::from_slice(text) {
            Ok(message) => Read::Message(Box::new(message)),
            Err(_) => no_message(text, &outline),
        }
    }
}

/// Describes the error in a line that is not a message.
fn no_message(text: &[u8], outline: &PartialObject) -> Read {
    let read = std::str::from_utf8(text)
        .map_err(|error| format!("it is not UTF-8: byte {} cannot be read", error.valid_up_to()));
    let value =
        match read.and_then(|text| serde_json::from_str::<Value>(text).map_err(|error| error.to_string())) {
            Ok(value) => value,
            Err(why) => {
                let words = format!("the message is not valid JSON: {why}; send one message per line");
                return Read::Wrong { id: outline.id(), error: ErrorData::parse_error(words, None) };
            }
        };
    let error = match &value {
        Value::Object(fields) => {
            let has = |name: &str| fields.contains_key(name);
            let names_method = fields.get("method").is_some_and(Value::is_string);
            if names_method && !has("id") || has("result") || has("error") {
                // Notifications and responses get no answer.
                return Read::Nothing;
            }
            let is_sound =
                names_method && outline.id().is_some() && fields.get("jsonrpc") == Some(&json!("2.0"));
            match is_sound && fields.get("params").is_some_and(|params| !params.is_object()) {
                true => ErrorData::invalid_params("params must be an object", None),
                false => ErrorData::invalid_request(
                    "a request has \"jsonrpc\": \"2.0\", an \"id\" (a whole number or text) and a \"method\" (text)",
                    None,
                ),
            }
        }
        Value::Array(_) => {
            ErrorData::invalid_request("batches are not supported: send each message separately", None)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            ErrorData::invalid_request("a message is an object with \"jsonrpc\", \"id\" and \"method\"", None)
        }
    };
    Read::Wrong { id: outline.id(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> String {
        let mut line = Line::default();
        line.add(text);
        match line.read() {
            Read::Message(message) => format!("message {}", serde_json::to_string(&message).unwrap()),
            Read::Nothing => "nothing".to_owned(),
            Read::Wrong { id, error } => {
                let id = id.map_or(Value::Null, RequestId::into_json_value);
                format!("{} {id} {}", error.code.0, error.message)
            }
        }
    }

    #[track_caller]
    fn check(text: &[u8], begins: &str, tells: &str) {
        let found = read(text);
        assert!(found.starts_with(begins) && found.contains(tells), "{found}");
    }

    #[test]
    fn what_cannot_be_read_is_a_parse_error_with_the_id_that_it_had() {
        check(b"nonsense", "-32700 null ", "is not valid JSON: expected ident at line 1 column 2");
        check(br#"{"id": 1, "method": "ping""#, "-32700 null ", "EOF");
        let request = |params: &[u8]| {
            [br#"{"jsonrpc":"2.0","method":"tools/call","params":"#, params, br#","id":7}"#].concat()
        };
        check(&request(br#"{"name":"\ud800"}"#), "-32700 7 ", "hex escape at line 1 column 64");
        check(&request(b"{\"name\":\"\xff\"}"), "-32700 7 ", "it is not UTF-8: byte 57 ");
        check(&request(br#"{"x":1e999}"#), "-32700 7 ", "number out of range");
        check(&request(&[&[b'['; 500][..], &[b']'; 500]].concat()), "-32700 7 ", "recursion limit");
    }

    #[test]
    fn json_that_is_no_request_is_an_invalid_request() {
        check(b"5", "-32600 null ", "a message is an object");
        check(b"{}", "-32600 null ", "a request has");
        check(br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "-32600 null ", "batches are not supported");
        check(br#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, "-32600 \"a\" ", "\"2.0\"");
        check(br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, "-32600 null ", "a whole number or text");
    }

    #[test]
    fn what_wants_no_answer_gets_none() {
        check(b"", "nothing", "");
        check(b" \r", "nothing", "");
        check(br#"{"jsonrpc":"1.0","method":"notifications/other"}"#, "nothing", "");
        check(br#"{"jsonrpc":"1.0","id":1,"result":{}}"#, "nothing", "");
    }

    #[test]
    fn a_line_has_so_many_bytes_and_not_one_more() {
        let ping = |bytes: usize| {
            let (start, end) =
                (&br#"{"jsonrpc":"2.0","method":"ping","params":{"x":""#[..], &br#""},"id":7}"#[..]);
            [start, &vec![b'x'; bytes - start.len() - end.len()], end].concat()
        };
        check(&ping(LINE_BYTES_MAX), "message ", "\"id\":7");
        check(&ping(LINE_BYTES_MAX + 1), "-32700 7 ", "more than 16777216 bytes");
    }
}
