//! A proxy on loopback that behaves like a bad network: it turns a request away, loses a reply, and cuts streams. What it does
//! follows from the requests alone, so that a test knows what it has to survive.
//!
//! - The first `GET /api/v1/me` is turned away with 503 and `Retry-After: 1`.
//! - The reply to the first `POST /api/v1/plans` is lost: the server has created the plan.
//! - The first `POST /api/v1/next` never reaches the server.
//! - A stream of events is cut after its first event that has an id.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use anyhow::{Context, Result};

const TURNED_AWAY: &str =
    "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

pub(super) struct LossyProxy {
    url: String,
}

/// How often each kind of request has come.
#[derive(Default)]
struct Counts {
    me: AtomicU32,
    plans: AtomicU32,
    next: AtomicU32,
}

impl LossyProxy {
    /// Starts a proxy before the server at this address. It ends with the process.
    pub(super) fn start(site: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot bind a loopback port")?;
        let url = format!("http://{}", listener.local_addr()?);
        let server = site.strip_prefix("http://").context("the server's address")?.to_owned();
        let counts = Arc::new(Counts::default());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (server, counts) = (server.clone(), Arc::clone(&counts));
                // A client may close its connection at any time.
                thread::spawn(move || pass_on(&client, &server, &counts).unwrap_or_default());
            }
        });
        Ok(Self { url })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

/// Passes on one request, and its reply as far as this network carries it.
fn pass_on(client: &TcpStream, server: &str, counts: &Counts) -> io::Result<()> {
    let mut reader = BufReader::new(client);
    let (head, body) = read_request(&mut reader, server)?;
    let is_first = |count: &AtomicU32| count.fetch_add(1, Ordering::Relaxed) == 0;
    let line = head.lines().next().unwrap_or_default();
    let asks = |start: &str| line.starts_with(start);
    if asks("GET /api/v1/me ") && is_first(&counts.me) {
        return (&mut &*client).write_all(TURNED_AWAY.as_bytes());
    }
    if asks("POST /api/v1/next ") && is_first(&counts.next) {
        return client.shutdown(Shutdown::Both);
    }
    let mut upstream = TcpStream::connect(server)?;
    upstream.write_all(head.as_bytes())?;
    upstream.write_all(&body)?;
    if asks("POST /api/v1/plans ") && is_first(&counts.plans) {
        upstream.read_to_end(&mut Vec::new())?;
        return client.shutdown(Shutdown::Both);
    }
    let is_stream = asks("GET /api/v1/events") && head.to_lowercase().contains("accept: text/event-stream");
    send_on(&upstream, client, is_stream)?;
    client.shutdown(Shutdown::Both)
}

/// Reads a request, and makes it the only one of its connection.
fn read_request(reader: &mut impl BufRead, server: &str) -> io::Result<(String, Vec<u8>)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        match name.to_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            // The server answers only to its own name.
            "host" => line = format!("host: {server}\r\n"),
            "connection" | "accept-encoding" => continue,
            _ => {}
        }
        if line.trim().is_empty() {
            head.push_str("connection: close\r\n\r\n");
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((head, body))
}

/// Sends a reply on; of a stream, only the first event that has an id.
fn send_on(mut from: &TcpStream, mut to: &TcpStream, is_stream: bool) -> io::Result<()> {
    let (mut piece, mut sent) = ([0; 4096], Vec::new());
    loop {
        let length = from.read(&mut piece)?;
        if length == 0 {
            return Ok(());
        }
        to.write_all(&piece[..length])?;
        sent.extend_from_slice(&piece[..length]);
        if is_stream && has_event(&sent) {
            return Ok(());
        }
    }
}

/// Whether a whole event with an id was sent.
fn has_event(sent: &[u8]) -> bool {
    let text = String::from_utf8_lossy(sent);
    text.split_once("\nid:").is_some_and(|(_, rest)| rest.contains("\n\n"))
}
