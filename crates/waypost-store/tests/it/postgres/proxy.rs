//! A proxy between a store and its server that cuts connections at the moment of a commit.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// When the next connection that commits is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Cut {
    /// Never.
    Never,
    /// Before the server hears of it.
    BeforeCommit,
    /// When the server has answered, before anybody hears the answer.
    AfterCommit,
}

pub(crate) struct Proxy {
    pub(crate) port: u16,
    cut: Arc<AtomicU8>,
}

impl Proxy {
    /// Stands in front of the server at this port of the loopback. It stays as long as the process does.
    pub(crate) fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cut = Arc::new(AtomicU8::new(Cut::Never as u8));
        let order = Arc::clone(&cut);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(upstream) = TcpStream::connect(("localhost", server)) else { continue };
                join(client, upstream, &order);
            }
        });
        Self { port, cut }
    }

    pub(crate) fn cut(&self, when: Cut) {
        self.cut.store(when as u8, Ordering::SeqCst);
    }

    /// Whether the order was carried out.
    pub(crate) fn has_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst) == Cut::Never as u8
    }
}

fn join(client: TcpStream, upstream: TcpStream, order: &Arc<AtomicU8>) {
    let (mut from_client, mut to_client) = (client.try_clone().unwrap(), client);
    let (mut from_server, mut to_server) = (upstream.try_clone().unwrap(), upstream);
    let is_mute = Arc::new(AtomicU8::new(0));
    let (order, mute) = (Arc::clone(order), Arc::clone(&is_mute));
    std::thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok(count @ 1..) = from_client.read(&mut buffer) {
            let commits = buffer[..count].windows(6).any(|bytes| bytes == b"COMMIT");
            let cut = |when: Cut| {
                let (when, never) = (when as u8, Cut::Never as u8);
                commits && order.compare_exchange(when, never, Ordering::SeqCst, Ordering::SeqCst).is_ok()
            };
            if cut(Cut::BeforeCommit) {
                break;
            }
            if cut(Cut::AfterCommit) {
                mute.store(1, Ordering::SeqCst);
            }
            if to_server.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _closed = (to_server.shutdown(Shutdown::Both), from_client.shutdown(Shutdown::Both));
    });
    std::thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok(count @ 1..) = from_server.read(&mut buffer) {
            if is_mute.load(Ordering::SeqCst) == 1 || to_client.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _closed = (to_client.shutdown(Shutdown::Both), from_server.shutdown(Shutdown::Both));
    });
}
