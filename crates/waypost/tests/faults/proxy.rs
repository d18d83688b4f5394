//! A proxy between programs and a server that drops, delays, half-closes and swallows. Knows no protocol.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use waypost_testkit::SeededRng;

/// How bytes pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Open,
    /// Each piece waits for so long.
    Slow(Duration),
    /// Nothing passes, and nobody is told.
    Hole,
    /// The next answer is lost with its connection: whoever asked does not know what became of it.
    Swallowing,
}

#[derive(Debug)]
struct State {
    way: Way,
    /// Both ends of each connection: the client's, the server's.
    connections: Vec<(TcpStream, TcpStream)>,
    swallowed: usize,
    closed: bool,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// A port that leads to another port.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

/// Which of the two ends a piece comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Client,
    Server,
}

impl Proxy {
    pub(crate) fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = State { way: Way::Open, connections: Vec::new(), swallowed: 0, closed: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if accepting.state.lock().unwrap().closed {
                    return;
                }
                // A server that is down looks like one that hangs up.
                if let Ok(server) = TcpStream::connect(("127.0.0.1", server)) {
                    accepting.connect(client, server);
                }
            }
        });
        Self { port, shared }
    }

    fn set(&self, way: Way) {
        self.shared.state.lock().unwrap().way = way;
        self.shared.changed.notify_all();
    }

    /// Everything passes as it should.
    pub(crate) fn open(&self) {
        self.set(Way::Open);
    }

    pub(crate) fn slow(&self, pause: Duration) {
        self.set(Way::Slow(pause));
    }

    pub(crate) fn hole(&self) {
        self.set(Way::Hole);
    }

    pub(crate) fn swallow(&self) {
        self.set(Way::Swallowing);
    }

    /// How many answers were swallowed so far.
    pub(crate) fn swallowed(&self) -> usize {
        self.shared.state.lock().unwrap().swallowed
    }

    /// Hangs up on everybody. Returns how many connections that were.
    pub(crate) fn drop_all(&self) -> usize {
        let connections = std::mem::take(&mut self.shared.state.lock().unwrap().connections);
        for (client, server) in &connections {
            hang_up(client, server);
        }
        connections.len()
    }

    /// Closes one direction of every connection. Returns how many that were.
    pub(crate) fn half_close(&self, dice: &mut SeededRng) -> usize {
        let state = self.shared.state.lock().unwrap();
        for (client, server) in &state.connections {
            let end = if dice.chance(50) { client } else { server };
            let _gone = end.shutdown(Shutdown::Write);
        }
        state.connections.len()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap().closed = true;
        self.open();
        self.drop_all();
        // Wakes the one who accepts.
        let _woken = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn hang_up(client: &TcpStream, server: &TcpStream) {
    let _gone = client.shutdown(Shutdown::Both);
    let _gone = server.shutdown(Shutdown::Both);
}

impl Shared {
    fn connect(self: &Arc<Self>, client: TcpStream, server: TcpStream) {
        let (Ok(to_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else { return };
        let (Ok(one), Ok(other)) = (client.try_clone(), server.try_clone()) else { return };
        // Small answers must not wait for more of them.
        let _slower = client.set_nodelay(true);
        let _slower = server.set_nodelay(true);
        let mut state = self.state.lock().unwrap();
        state.connections.retain(|(client, _)| client.peer_addr().is_ok());
        state.connections.push((one, other));
        drop(state);
        let shared = Arc::clone(self);
        std::thread::spawn(move || shared.pump(client, to_server, From::Client));
        let shared = Arc::clone(self);
        std::thread::spawn(move || shared.pump(server, to_client, From::Server));
    }

    fn pump(&self, mut from: TcpStream, mut to: TcpStream, whose: From) {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if !self.passes(whose) {
                hang_up(&from, &to);
                return;
            }
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _gone = to.shutdown(Shutdown::Write);
    }

    /// Waits for as long as the way asks for. Returns whether the piece may go on.
    fn passes(&self, whose: From) -> bool {
        let mut state = self.state.lock().unwrap();
        match state.way {
            Way::Open => true,
            Way::Slow(pause) => {
                let still = |state: &mut State| matches!(state.way, Way::Slow(_));
                drop(self.changed.wait_timeout_while(state, pause, still).unwrap());
                true
            }
            Way::Hole => {
                drop(self.changed.wait_while(state, |state| state.way == Way::Hole).unwrap());
                true
            }
            Way::Swallowing if whose == From::Server => {
                state.swallowed += 1;
                state.way = Way::Open;
                false
            }
            Way::Swallowing => true,
        }
    }
}
