//! A real PostgreSQL for tests: a private cluster in a private directory, removed when the process that started it
//! ends in any way. Never uses the system's cluster. Knows nothing of Waypost's tables.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::supervisor::{Supervisor, retried};

/// Holds the URL of a server started by the test command. Without it, a test process starts its own.
pub const POSTGRES: &str = "WAYPOST_TEST_POSTGRES";
/// The value of [`POSTGRES`] on a machine that counts as one without PostgreSQL.
pub const NO_POSTGRES: &str = "none";

/// The error if PostgreSQL is not installed.
const MISSING: &str = "these tests need PostgreSQL 14 or later, and neither /usr/lib/postgresql/*/bin nor PATH has \
     `initdb`: run `cargo xtask test`, which installs it, or install Debian's package postgresql";

/// Runs as a user who may run a server. Stops and removes the cluster at the end of its standard input, which is
/// also reached when the process that holds the other end is killed.
const SUPERVISOR: &str = r#"
set -eu
folder=$1 port=$2 settings=$3 tls=$4
mkdir -m 700 "$folder"
cd "$folder"
trap 'pg_ctl -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT
initdb -D data -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync >initdb.log 2>&1 || { cat initdb.log; exit 1; }
if [ "$tls" = tls ]; then
    key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    openssl req -x509 $key -keyout ca.key -out ca.pem -days 30 -subj "/CN=tests of Waypost" >openssl.log 2>&1
    openssl req $key -keyout server.key -out server.csr -subj /CN=localhost >>openssl.log 2>&1
    printf 'subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n' >server.ext
    openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 30 \
        -extfile server.ext >>openssl.log 2>&1
    printf "ssl = on\nssl_cert_file = '%s/server.pem'\nssl_key_file = '%s/server.key'\n" "$folder" "$folder" \
        >>data/postgresql.conf
fi
printf "%s\n" "listen_addresses = 'localhost'" "port = $port" "unix_socket_directories = '$folder'" \
    "max_connections = 300" "$settings" >>data/postgresql.conf
pg_ctl -D "$folder/data" -l "$folder/server.log" -w -t 60 start >/dev/null 2>&1 || { cat server.log; exit 1; }
echo ready
cat >/dev/null
"#;

/// A private server.
pub struct PostgresServer {
    folder: PathBuf,
    port: u16,
    _supervisor: Supervisor,
}

/// Whether a server offers TLS, with a certificate for `localhost` signed by `ca.pem` in its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// With TLS; connections without it are accepted as well.
    Offered,
    /// Without TLS.
    Absent,
}

impl PostgresServer {
    /// Starts a server with its defaults: a committed transaction is on disk.
    pub fn start() -> Result<Self, String> {
        Self::start_with("", Tls::Absent)
    }

    /// Starts a server with these lines in its `postgresql.conf`.
    pub fn start_with(settings: &str, tls: Tls) -> Result<Self, String> {
        retried(|| Self::try_start(settings, tls))
    }

    fn try_start(settings: &str, tls: Tls) -> Result<Self, String> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("waypost-postgres-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        drop(listener);
        let mut command = as_server_user("sh")?;
        let tls = if tls == Tls::Offered { "tls" } else { "" };
        command.args(["-c", SUPERVISOR, "sh"]).arg(&folder).args([&port.to_string(), settings, tls]);
        let supervisor = Supervisor::start(&mut command)
            .map_err(|why| format!("PostgreSQL did not start in {}:\n{why}", folder.display()))?;
        Ok(Self { folder, port, _supervisor: supervisor })
    }

    /// The URL of one of its databases, over TCP and without TLS.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@localhost:{}/{database}?sslmode=disable", self.port)
    }

    /// The port on the loopback interface.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The directory with its cluster, its socket, its log and, with TLS, `ca.pem`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs `pg_ctl` on the server, for example with `["-m", "immediate", "restart"]`. Returns when that is done.
    pub fn control(&self, arguments: &[&str]) -> Result<(), String> {
        let mut command = as_server_user("pg_ctl")?;
        command.current_dir("/").arg("-D").arg(self.folder.join("data"));
        command.arg("-l").arg(self.folder.join("server.log")).args(["-w", "-t", "60"]).args(arguments);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            other => Err(format!("pg_ctl {arguments:?}: {other:?}")),
        }
    }

    /// Creates a user with a required password (SCRAM-SHA-256). Other users still need none.
    pub fn ask_for_password(&self, user: &str, password: &str) -> Result<(), String> {
        let role = format!("CREATE ROLE {user} LOGIN SUPERUSER PASSWORD '{password}'");
        run_psql(&self.url("postgres"), &role)?;
        let path = self.folder.join("data/pg_hba.conf");
        let rules = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        // The first rule that matches decides.
        let rules = format!("host all {user} all scram-sha-256\n{rules}");
        std::fs::write(&path, rules).map_err(|error| error.to_string())?;
        run_psql(&self.url("postgres"), "SELECT pg_reload_conf()").map(drop)
    }

    /// Creates an empty database on the server.
    pub fn database(&self) -> PostgresDatabase {
        PostgresDatabase::on(&self.url("postgres"))
    }
}

/// An empty database, dropped at the end of the test.
pub struct PostgresDatabase {
    server: String,
    name: String,
    url: String,
}

impl PostgresDatabase {
    /// Creates a database on the server started by the test command, or on one that lives as long as this
    /// process.
    pub fn new() -> Self {
        Self::on(shared())
    }

    fn on(server: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("t{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        // Not from the default template: a connection to that would make the copy fail.
        psql(server, &format!("CREATE DATABASE {name} TEMPLATE template0"));
        let (before, after) = server.split_once("/postgres?").expect("the URL names the database postgres");
        Self { server: server.to_owned(), url: format!("{before}/{name}?{after}"), name }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs SQL with `psql` and returns the rows, with columns separated by `|`.
    pub fn sql(&self, sql: &str) -> Vec<String> {
        psql(&self.url, sql)
    }
}

impl Default for PostgresDatabase {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        // If the server is gone, so is the database.
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let _dropped = run_psql(&self.server, &drop);
    }
}

/// Returns the URL of the server that all tests share.
fn shared() -> &'static str {
    static URL: OnceLock<(String, Option<PostgresServer>)> = OnceLock::new();
    let (url, _server) = URL.get_or_init(|| match std::env::var(POSTGRES) {
        Ok(url) if !url.is_empty() && url != NO_POSTGRES => (url, None),
        _ => {
            let server = PostgresServer::start().expect("a PostgreSQL of our own starts");
            (server.url("postgres"), Some(server))
        }
    });
    url
}

fn psql(url: &str, sql: &str) -> Vec<String> {
    match run_psql(url, sql) {
        Ok(rows) => rows,
        Err(why) => panic!("{sql}: {why}"),
    }
}

fn run_psql(url: &str, sql: &str) -> Result<Vec<String>, String> {
    let mut command = Command::new(folder_of_programs().ok_or(MISSING)?.join("psql"));
    command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql]);
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// Returns the directory of the server's programs. Debian keeps them outside of PATH, in one directory per version.
pub fn folder_of_programs() -> Option<PathBuf> {
    if std::env::var_os(POSTGRES).is_some_and(|value| value == NO_POSTGRES) {
        return None;
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok().into_iter().flatten().flatten();
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.path()).max_by_key(number).map(|path| path.join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    newest.into_iter().chain(std::env::split_paths(&path)).find(|folder| folder.join("initdb").is_file())
}

/// Returns a command for a server program, run as a user who may run it: PostgreSQL refuses to run as root.
pub(crate) fn as_server_user(program: &str) -> Result<Command, String> {
    let folder = folder_of_programs().ok_or(MISSING)?;
    let mut folders = vec![folder];
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let path = std::env::join_paths(folders).map_err(|error| error.to_string())?;
    let id = Command::new("id").arg("-u").output().map_err(|error| format!("cannot run id: {error}"))?;
    let mut command = if id.stdout.trim_ascii() == b"0" {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--", program]);
        command
    } else {
        Command::new(program)
    };
    command.env("PATH", path);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs PostgreSQL"]
    fn a_private_server_runs_is_restarted_and_leaves_nothing() {
        let server = PostgresServer::start().unwrap();
        let folder = server.folder().to_owned();
        let database = server.database();
        database.sql("CREATE TABLE t (n int); INSERT INTO t VALUES (1), (2)");
        server.control(&["-m", "immediate", "restart"]).unwrap();
        assert_eq!(database.sql("SELECT n, n + 1 FROM t ORDER BY n"), ["1|2", "2|3"]);
        assert_eq!(database.sql("SHOW fsync"), ["on"]);
        let url = server.url("postgres");
        drop(database);
        drop(server);
        assert!(!folder.exists() && run_psql(&url, "SELECT 1").is_err());
    }
}
