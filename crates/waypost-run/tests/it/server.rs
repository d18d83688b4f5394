//! A small HTTP server on loopback for workers that are elsewhere: a test says what each request is answered.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What came in.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// With its query.
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// How an answer goes out.
pub(crate) struct Reply<'a>(&'a mut TcpStream);

impl Reply<'_> {
    /// A whole answer.
    pub(crate) fn send(self, status: u16, headers: &[(&str, &str)], body: &str) {
        let mut text =
            format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        // Whoever asked may have gone.
        let _gone = self.0.write_all(format!("{text}\r\n{body}").as_bytes());
    }

    /// A JSON answer.
    pub(crate) fn json(self, status: u16, body: &serde_json::Value) {
        self.send(status, &[("content-type", "application/json")], &body.to_string());
    }

    /// An answer that breaks off after these words.
    pub(crate) fn broken(self, text: &str) {
        let head =
            format!("HTTP/1.1 200 x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", text.len() + 1);
        let _gone = self.0.write_all(format!("{head}{text}").as_bytes());
    }

    /// The beginning of an answer whose end is that of the connection.
    pub(crate) fn begin(self) -> Flow {
        let head = "HTTP/1.1 200 x\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
        let _gone = self.0.write_all(head.as_bytes());
        Flow(self.0.try_clone().unwrap())
    }
}

/// An answer that goes on.
pub(crate) struct Flow(TcpStream);

impl Flow {
    /// Sends some of it.
    pub(crate) fn line(&mut self, text: &str) {
        // Whoever asked may have gone.
        let _gone = self.0.write_all(format!("{text}\n").as_bytes());
    }
}

/// The server; it ends with the process.
pub(crate) struct Server {
    pub(crate) address: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers every request by `handler`, which is told how many came before it.
    pub(crate) fn start(handler: impl Fn(usize, &Request, Reply<'_>) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (handler, kept) = (Arc::new(handler), Arc::clone(&seen));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (handler, kept) = (Arc::clone(&handler), Arc::clone(&kept));
                std::thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    let Some(request) = read(&stream) else { return };
                    let before = {
                        let mut requests = kept.lock().unwrap();
                        requests.push(request.clone());
                        requests.len() - 1
                    };
                    handler(before, &request, Reply(&mut stream));
                });
            }
        });
        Self { address, seen }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.requests().iter().map(Request::line).collect()
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|&count| count > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path, headers, body: String::from_utf8(body).ok()? })
}
