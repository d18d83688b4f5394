//! A proxy between workers and the server that counts statements and round trips. Changes nothing.
//!
//! A round trip is a change of direction: a client sends after it has received a response. Statements are the messages
//! that make the server execute something. The clients' own statistics are not used.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, Result};

#[derive(Default)]
struct Totals {
    trips: AtomicU64,
    statements: AtomicU64,
}

/// A local port that forwards to the server.
pub(super) struct CountingProxy {
    port: u16,
    server: u16,
    totals: Arc<Totals>,
}

/// The traffic so far.
#[derive(Clone, Copy)]
pub(super) struct Count {
    trips: u64,
    statements: u64,
}

/// The traffic for some tasks.
pub(super) struct Counted {
    trips: f64,
    statements: f64,
    tasks: f64,
}

impl Count {
    pub(super) fn since(self, begin: Self, tasks: f64) -> Counted {
        let between = |now: u64, then: u64| (now - then) as f64;
        let (trips, statements) =
            (between(self.trips, begin.trips), between(self.statements, begin.statements));
        Counted { trips, statements, tasks }
    }
}

impl Counted {
    pub(super) fn trips_each(&self) -> f64 {
        self.trips / self.tasks
    }

    pub(super) fn statements_each(&self) -> f64 {
        self.statements / self.tasks
    }
}

impl CountingProxy {
    pub(super) fn to(server: u16) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot bind a port for the proxy")?;
        let port = listener.local_addr()?.port();
        let totals = Arc::new(Totals::default());
        let shared = Arc::clone(&totals);
        // The thread lasts as long as this process, which ends soon after.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if let Ok(server) = TcpStream::connect(("localhost", server)) {
                    let _cut = connect(client, server, &shared);
                }
            }
        });
        Ok(Self { port, server, totals })
    }

    /// Returns the URL of the same database through this proxy.
    pub(super) fn url(&self, direct: &str) -> String {
        let here = format!("127.0.0.1:{}/", self.port);
        direct.replacen(&format!("localhost:{}/", self.server), &here, 1)
    }

    pub(super) fn count(&self) -> Count {
        Count {
            trips: self.totals.trips.load(Ordering::Relaxed),
            statements: self.totals.statements.load(Ordering::Relaxed),
        }
    }
}

/// Forwards bytes in both directions, each in a thread.
fn connect(client: TcpStream, server: TcpStream, totals: &Arc<Totals>) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let answered = Arc::new(AtomicBool::new(false));
    let (to_client, from_server) = (client.try_clone()?, server.try_clone()?);
    let told = Arc::clone(&answered);
    std::thread::spawn(move || {
        carry(from_server, to_client, |_| told.store(true, Ordering::Relaxed));
    });
    let totals = Arc::clone(totals);
    std::thread::spawn(move || {
        let mut messages = Messages::default();
        carry(client, server, |bytes| {
            if answered.swap(false, Ordering::Relaxed) {
                totals.trips.fetch_add(1, Ordering::Relaxed);
            }
            totals.statements.fetch_add(messages.statements_in(bytes), Ordering::Relaxed);
        });
    });
    Ok(())
}

fn carry(mut from: TcpStream, mut to: TcpStream, mut seen: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        seen(&buffer[..length]);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _gone = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// A position in the stream of a client's messages. The first message has no type byte; the others begin with one.
#[derive(Default)]
struct Messages {
    begun: bool,
    header: Vec<u8>,
    /// Remaining bytes of the current message.
    rest: usize,
}

impl Messages {
    /// Counts the messages whose header ends in these bytes and that execute something: a simple query, or the
    /// execution of a prepared statement.
    fn statements_in(&mut self, bytes: &[u8]) -> u64 {
        let (mut bytes, mut found) = (bytes, 0);
        while !bytes.is_empty() {
            let skipped = self.rest.min(bytes.len());
            self.rest -= skipped;
            bytes = &bytes[skipped..];
            let size = if self.begun { 5 } else { 4 };
            while self.header.len() < size
                && let [first, others @ ..] = bytes
            {
                self.header.push(*first);
                bytes = others;
            }
            let (kind, length) = self.header.split_at(self.header.len().saturating_sub(4));
            if self.header.len() == size
                && let Ok(length) = length.try_into()
            {
                self.rest = (u32::from_be_bytes(length) as usize).saturating_sub(4);
                found += u64::from(matches!(kind, b"Q" | b"E"));
                self.begun = true;
                self.header.clear();
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_counted_wherever_the_bytes_are_cut() {
        let mut stream = vec![0, 0, 0, 9, 0, 3, 0, 0, 0];
        for (kind, body) in
            [(b'Q', &b"SELECT 1\0"[..]), (b'P', b"x\0"), (b'B', b""), (b'E', b"\0\0\0\0\0"), (b'S', b"")]
        {
            stream.push(kind);
            stream.extend((body.len() as u32 + 4).to_be_bytes());
            stream.extend(body);
        }
        for size in 1..=stream.len() {
            let mut messages = Messages::default();
            let found: u64 = stream.chunks(size).map(|chunk| messages.statements_in(chunk)).sum();
            assert_eq!(found, 2, "in pieces of {size}");
        }
    }
}
