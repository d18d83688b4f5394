//! Where a storm happens: a private folder, a store with its proxies, and files that record what is seen from outside.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{Mode, mkfifoat};
use serde_json::Value;
use waypost_testkit::Proxy;
use waypost_testkit::postgres::{PostgresDatabase, PostgresServer, Tls};

use crate::workload;

/// How long one command may take before it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Microseconds since 1970, as programs note their times.
#[expect(clippy::disallowed_methods, reason = "an outsider has no other clock, and must not ask the store")]
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64
}

/// A file that gets one line at a time.
#[derive(Debug)]
pub(crate) struct Record(Mutex<File>);

impl Record {
    pub(crate) fn new(path: &Path) -> Self {
        Self(Mutex::new(OpenOptions::new().create(true).append(true).open(path).unwrap()))
    }

    pub(crate) fn line(&self, line: &str) {
        self.0.lock().unwrap().write_all(format!("{}\n", line.trim_end()).as_bytes()).unwrap();
    }
}

/// Something that happens once, and that many wait for.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    given: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    pub(crate) fn give(&self) {
        *self.given.lock().unwrap() = true;
        self.changed.notify_all();
    }

    /// Waits for so long at most. Returns whether it has happened.
    pub(crate) fn within(&self, time: Duration) -> bool {
        let given = self.given.lock().unwrap();
        *self.changed.wait_timeout_while(given, time, |given| !*given).unwrap().0
    }
}

/// The store of a storm.
pub(crate) enum Store {
    /// A file that all processes share.
    Sqlite,
    /// A server of its own, which can be restarted, with a proxy for each worker and one for everybody else.
    Postgres { server: PostgresServer, database: PostgresDatabase, proxies: Vec<Proxy> },
}

/// See the module.
pub(crate) struct Ground {
    pub(crate) root: PathBuf,
    pub(crate) store: Store,
    pub(crate) faults: Record,
}

impl Ground {
    pub(crate) fn sqlite() -> Self {
        Self::with(Store::Sqlite)
    }

    pub(crate) fn postgres(proxies: usize) -> Self {
        // Otherwise the first start after a kill waits until a busy disk has every single file of the cluster.
        let server = PostgresServer::start_with("recovery_init_sync_method = syncfs", Tls::Absent).unwrap();
        let database = server.database();
        let proxies = (0..proxies).map(|_| Proxy::to(server.port())).collect();
        Self::with(Store::Postgres { server, database, proxies })
    }

    fn with(store: Store) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("waypost-storm-{}-{number}", std::process::id()));
        for folder in ["home", "store", "locks", "record/plans", "record/final", "record/readers"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        mkfifoat(rustix::fs::CWD, root.join("empty"), Mode::RUSR | Mode::WUSR).unwrap();
        let faults = Record::new(&root.join("record/faults.jsonl"));
        Self { root, store, faults }
    }

    pub(crate) fn record(&self, name: &str) -> PathBuf {
        self.root.join("record").join(name)
    }

    /// A folder with the configuration that every worker has. On one machine it is the same for all.
    pub(crate) fn workspace(&self, number: usize) -> PathBuf {
        let name = match self.store {
            Store::Sqlite => "machine".to_owned(),
            Store::Postgres { .. } => format!("machine-{number}"),
        };
        let folder = self.root.join(name);
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/program.sh");
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let notes = self.record("programs.jsonl");
        let (locks, empty) = (self.root.join("locks"), self.root.join("empty"));
        let config = workload::configuration(&text(&program), &text(&notes), &text(&locks), &text(&empty));
        fs::create_dir_all(folder.join(".waypost")).unwrap();
        fs::write(folder.join(".waypost/config.toml"), config).unwrap();
        let mut trust = self.command(None, &["trust"]);
        let trusted = trust.current_dir(&folder).env("WAYPOST_INJECTED_TERMINAL", "yes").output().unwrap();
        assert!(trusted.status.success(), "{}", String::from_utf8_lossy(&trusted.stderr));
        folder
    }

    pub(crate) fn proxies(&self) -> &[Proxy] {
        match &self.store {
            Store::Sqlite => &[],
            Store::Postgres { proxies, .. } => proxies,
        }
    }

    /// The address of the store: through a proxy, or with none where nothing is in the way.
    pub(crate) fn url(&self, proxy: Option<usize>) -> String {
        match &self.store {
            Store::Sqlite => format!("sqlite:{}", self.root.join("store/waypost.db").display()),
            Store::Postgres { server, database, proxies } => {
                let port = proxy.map_or(server.port(), |number| proxies[number % proxies.len()].port);
                let there = format!("@localhost:{}/", server.port());
                database.url().replace(&there, &format!("@127.0.0.1:{port}/"))
            }
        }
    }

    /// The program with these words and nothing of this process's environment.
    pub(crate) fn command(&self, proxy: Option<usize>, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waypost"));
        command
            .current_dir(&self.root)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.root.join("home"))
            .env("USER", "ada")
            .envs(waypost_testkit::injected_account(&self.root.join("home")))
            .env("LC_ALL", "C.UTF-8")
            .env("WAYPOST_STORE", self.url(proxy))
            .args(["--json"])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What a command answered that nothing was in the way of.
    pub(crate) fn ask(&self, words: &[&str]) -> Output {
        self.command(None, words).output().unwrap()
    }

    /// The same for a command that must succeed.
    pub(crate) fn must(&self, words: &[&str]) -> String {
        let output = self.ask(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The whole log, as the record keeps it for the judge.
    pub(crate) fn dump(&self) -> Vec<Value> {
        const PAGE: usize = 5_000;
        let mut log: Vec<Value> = Vec::new();
        let mut text = String::new();
        loop {
            let after = log.last().map_or(0, |entry| entry["sequence"].as_u64().unwrap()).to_string();
            let page = self.must(&["events", "--cursor", &after, "--limit", &PAGE.to_string()]);
            let before = log.len();
            log.extend(page.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
            text.push_str(&page);
            if log.len() < before + PAGE {
                break;
            }
        }
        fs::write(self.record("log.jsonl"), text).unwrap();
        log
    }

    /// Lets the judge look at the record. Returns its figures; whatever it has found fails the test.
    pub(crate) fn judge(&self) -> Value {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/history.py");
        let output = Command::new("python3").arg(script).arg(self.root.join("record")).output();
        let output = output.expect("the judge needs Python 3: install python3");
        let said = String::from_utf8_lossy(&output.stdout);
        let answer: Value = serde_json::from_str(&said)
            .unwrap_or_else(|_| panic!("the judge fell: {}", String::from_utf8_lossy(&output.stderr)));
        assert!(output.status.success(), "promises were broken: {answer:#}");
        answer["figures"].clone()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _lost = writeln!(std::io::stderr(), "the record is kept in {}", self.root.display());
            return;
        }
        let _gone = fs::remove_dir_all(&self.root);
    }
}

/// How a process ended, if it does within a bounded time.
pub(crate) fn ends(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let began = Instant::now();
    let never = Signal::default();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if began.elapsed() > patience {
            return None;
        }
        never.within(Duration::from_millis(2));
    }
}

/// Waits until `done` says so, and fails with `what` when it does not.
pub(crate) fn until(patience: Duration, what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    let never = Signal::default();
    while !done() {
        assert!(began.elapsed() < patience, "{what} did not happen within {patience:?}");
        never.within(Duration::from_millis(200));
    }
}

/// Lets time pass: a lease ends by nothing else.
pub(crate) fn pass(time: Duration) {
    Signal::default().within(time);
}

/// The patience with one command.
pub(crate) fn patience() -> Duration {
    PATIENCE
}
