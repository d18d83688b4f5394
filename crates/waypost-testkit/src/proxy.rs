//! A proxy between programs and a server that drops, delays, half-closes and swallows. Knows no protocol.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::SeededRng;

/// Of a hundred pieces, so many are lost once on a lossy way.
const LOST_PERCENT: u64 = 5;
/// A lost piece takes this many times as long: it is sent again when no answer came.
const LOST_FACTOR: u32 = 5;

/// How bytes pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Open,
    /// Each piece waits for so long.
    Slow(Duration),
    /// Each piece waits for so long, and some for several times as long.
    Lossy(Duration),
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
    /// Decides which pieces are lost.
    dice: SeededRng,
    lost: usize,
    closed: bool,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// A port that leads to another port.
#[derive(Debug)]
pub struct Proxy {
    /// The port on the loopback interface.
    pub port: u16,
    shared: Arc<Shared>,
}

/// Which of the two ends a piece comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Client,
    Server,
}

impl Proxy {
    /// Leads to this port of the loopback interface.
    pub fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback interface has a free port");
        let port = listener.local_addr().expect("the listener has an address").port();
        let state = State {
            way: Way::Open,
            connections: Vec::new(),
            swallowed: 0,
            dice: SeededRng::new(u64::from(port)),
            lost: 0,
            closed: false,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if accepting.state().closed {
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
        self.shared.state().way = way;
        self.shared.changed.notify_all();
    }

    /// Everything passes as it should.
    pub fn open(&self) {
        self.set(Way::Open);
    }

    /// Every piece takes so long.
    pub fn slow(&self, pause: Duration) {
        self.set(Way::Slow(pause));
    }

    /// Every piece takes so long, and 5 % of them five times as long, as on a line that loses packets.
    pub fn lossy(&self, pause: Duration) {
        self.set(Way::Lossy(pause));
    }

    /// How many pieces were lost so far.
    pub fn lost(&self) -> usize {
        self.shared.state().lost
    }

    /// Nothing passes, and nobody is told.
    pub fn hole(&self) {
        self.set(Way::Hole);
    }

    /// Loses the next answer with its connection.
    pub fn swallow(&self) {
        self.set(Way::Swallowing);
    }

    /// How many answers were swallowed so far.
    pub fn swallowed(&self) -> usize {
        self.shared.state().swallowed
    }

    /// Hangs up on everybody. Returns how many connections that were.
    pub fn drop_all(&self) -> usize {
        let connections = std::mem::take(&mut self.shared.state().connections);
        for (client, server) in &connections {
            hang_up(client, server);
        }
        connections.len()
    }

    /// Closes one direction of every connection. Returns how many that were.
    pub fn half_close(&self, dice: &mut SeededRng) -> usize {
        let state = self.shared.state();
        for (client, server) in &state.connections {
            let end = if dice.chance(50) { client } else { server };
            let _gone = end.shutdown(Shutdown::Write);
        }
        state.connections.len()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state().closed = true;
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
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(self: &Arc<Self>, client: TcpStream, server: TcpStream) {
        let (Ok(to_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else { return };
        let (Ok(one), Ok(other)) = (client.try_clone(), server.try_clone()) else { return };
        // Small answers must not wait for more of them.
        let _slower = client.set_nodelay(true);
        let _slower = server.set_nodelay(true);
        let mut state = self.state();
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

    /// Waits for so long, or until the way is another one.
    fn wait(&self, state: MutexGuard<'_, State>, pause: Duration) {
        let way = state.way;
        drop(self.changed.wait_timeout_while(state, pause, |state| state.way == way));
    }

    /// Waits for as long as the way asks for. Returns whether the piece may go on.
    fn passes(&self, whose: From) -> bool {
        let mut state = self.state();
        match state.way {
            Way::Open => true,
            Way::Slow(pause) => {
                self.wait(state, pause);
                true
            }
            Way::Lossy(pause) => {
                let is_lost = state.dice.chance(LOST_PERCENT);
                state.lost += usize::from(is_lost);
                self.wait(state, if is_lost { pause * LOST_FACTOR } else { pause });
                true
            }
            Way::Hole => {
                drop(self.changed.wait_while(state, |state| state.way == Way::Hole));
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
