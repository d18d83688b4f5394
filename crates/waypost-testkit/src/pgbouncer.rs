//! A pooler in front of a PostgreSQL server for tests: Debian's PgBouncer, which gives each transaction any of a few
//! sessions. Removed when the process that started it ends in any way.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::postgres::as_server_user;
use crate::supervisor::{Supervisor, retried};

/// The sessions of the server that all clients share.
pub const SESSIONS: usize = 3;

/// Runs as a user who may run a pooler: PgBouncer refuses to run as root.
const SUPERVISOR: &str = r#"
set -eu
folder=$1 port=$2 server=$3 sessions=$4
PATH=$PATH:/usr/sbin
mkdir -m 700 "$folder"
cd "$folder"
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$folder"' EXIT
echo '"postgres" ""' >users
printf "%s\n" "[databases]" "* = host=localhost port=$server" "[pgbouncer]" "listen_addr = 127.0.0.1" \
    "listen_port = $port" "unix_socket_dir =" "auth_type = trust" "auth_file = $folder/users" \
    "pool_mode = transaction" "default_pool_size = $sessions" "max_client_conn = 300" >settings
pgbouncer settings >log 2>&1 &
pid=$!
tries=0
until pg_isready -q -h 127.0.0.1 -p "$port"; do
    tries=$((tries + 1))
    kill -0 "$pid" 2>/dev/null && [ "$tries" -lt 600 ] || { cat log; exit 1; }
    sleep 0.1
done
echo ready
cat >/dev/null
"#;

/// A private pooler.
pub struct PgBouncer {
    port: u16,
    server: u16,
    _supervisor: Supervisor,
}

impl PgBouncer {
    /// Starts a pooler in front of the server at this port of the loopback interface.
    pub fn before(server: u16) -> Result<Self, String> {
        retried(|| Self::try_start(server))
    }

    fn try_start(server: u16) -> Result<Self, String> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("waypost-pgbouncer-{}-{number}", std::process::id());
        let folder: PathBuf = std::env::temp_dir().join(name);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        drop(listener);
        let mut command = as_server_user("sh")?;
        command.args(["-c", SUPERVISOR, "sh"]).arg(&folder);
        command.args([port.to_string(), server.to_string(), SESSIONS.to_string()]);
        let supervisor = Supervisor::start(&mut command).map_err(|why| {
            format!("PgBouncer did not start (run `cargo xtask test`, which installs it):\n{why}")
        })?;
        Ok(Self { port, server, _supervisor: supervisor })
    }

    /// The URL of the same database through the pooler.
    pub fn url(&self, direct: &str) -> String {
        let here = format!("127.0.0.1:{}/", self.port);
        direct.replacen(&format!("localhost:{}/", self.server), &here, 1)
    }
}
