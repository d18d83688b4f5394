//! `/metrics`, as a scraper sees it; judged by a parser that others wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use prometheus_parse::{Sample, Scrape, Value};
use tokio::sync::oneshot;
use waypost_config::{Config, Queue};
use waypost_core::{Actor, Draft, TaskId, Timestamp};
use waypost_http::{HostOriginGuard, METRICS_PATH, Mount, Mounted, NewToken, Role, Site, metrics, serve};
use waypost_service::{Caller, ClaimOptions, CreateOptions, Guard, Service};
use waypost_store::{MemoryStore, PlanStore, Store, Worker, WorkerKind, meters};

use super::{Folder, ada, for_agent, tokens_in};

/// Asks once, with this token, and gives the status and what came.
fn get(at: SocketAddr, path: &str, token: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(at).unwrap();
    let authorization =
        if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {at}\r\n{authorization}Connection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}

fn filled() -> Arc<dyn Store> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let service = Service::new(Arc::new(PlanStore::new(Arc::clone(&store))), Arc::new(Config::default()));
    let by = Caller::new(Actor::person("ada"));
    let draft: Draft =
        serde_json::from_str(r#"{"title":"T","tasks":[{"id":"a"},{"id":"b","depends_on":["a"]}]}"#).unwrap();
    let plan = service.create(&by, draft, CreateOptions::default()).unwrap().plan;
    let task = TaskId::new("a").unwrap();
    service.claim(&by, &plan, &task, ClaimOptions::default(), Guard::NONE).unwrap();
    for (name, lease_seconds) in [("mill:1", 3_600), ("mill:2", 0)] {
        let mut row = Worker::new(name, "mill", WorkerKind::Worker, vec!["default".to_owned()]);
        service.register_worker(&mut row, lease_seconds).unwrap();
    }
    store
}

fn find<'a>(scrape: &'a Scrape, name: &str, label: Option<(&str, &str)>) -> &'a Sample {
    let fits = |sample: &&Sample| {
        sample.metric == name && label.is_none_or(|(key, value)| sample.labels.get(key) == Some(value))
    };
    scrape.samples.iter().find(fits).unwrap_or_else(|| panic!("no {name} {label:?}"))
}

#[test]
fn a_scraper_reads_what_is_there_and_needs_a_token() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let folder = Folder::new();
    let tokens = tokens_in(folder.path());
    let at = Timestamp::from_micros(0);
    let (_, agent) = tokens.make(for_agent("planner"), &ada(), at).unwrap();
    let only = NewToken { role: Role::Reader, only: Some(METRICS_PATH), ..for_agent("prometheus") };
    let (kept, scraper) = tokens.make(only, &ada(), at).unwrap();
    assert_eq!(kept.only.as_deref(), Some(METRICS_PATH));
    let other = Mount {
        path: "/other",
        make: Box::new(|_| Mounted::new(axum::Router::new().fallback(async || "other"), || {})),
    };
    let mut config = Config::default();
    config.queues.insert("gpu".to_owned(), Queue { concurrency: 8 });
    let site = Site::new(HostOriginGuard::local(), tokens, vec![metrics(filled(), &config), other]);
    let (stop, stopped) = oneshot::channel::<()>();
    let (at, served) = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        (at, tokio::spawn(serve(listener, site, async { drop(stopped.await) })))
    });
    assert_eq!(get(at, METRICS_PATH, "").0, 401);
    assert_eq!(get(at, METRICS_PATH, "waypost_wrong").0, 401);
    assert_eq!(get(at, "/other", &agent).0, 200);
    assert_eq!(get(at, "/other", &scraper).0, 403, "it is good for the metrics and for nothing else");
    assert_eq!(get(at, METRICS_PATH, &agent).0, 200);
    meters().attempts_ended.with(["odd \"name\"\\\n", "done"], |ended| ended.add(3));
    let (status, answer) = get(at, METRICS_PATH, &scraper);
    assert_eq!(status, 200);
    assert!(answer.contains("content-type: text/plain; version=0.0.4"), "{answer}");
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    let scrape = Scrape::parse(body.lines().map(|line| Ok(line.to_owned()))).unwrap();
    let gauge = |name, label| match &find(&scrape, name, label).value {
        Value::Gauge(value) => *value,
        other => panic!("{name} is no gauge: {other:?}"),
    };
    assert_eq!(gauge("waypost_store_up", None), 1.0);
    assert_eq!(gauge("waypost_plans", Some(("phase", "active"))), 1.0);
    assert_eq!(gauge("waypost_tasks", Some(("status", "running"))), 1.0);
    assert_eq!(gauge("waypost_tasks", Some(("status", "blocked"))), 1.0);
    assert_eq!(gauge("waypost_leases", None), 1.0);
    assert_eq!(gauge("waypost_queue_tasks", Some(("queue", "default"))), 0.0, "nothing is ready");
    assert_eq!(gauge("waypost_queue_tasks", Some(("status", "running"))), 1.0);
    assert_eq!(gauge("waypost_workers", Some(("state", "alive"))), 1.0);
    assert_eq!(gauge("waypost_workers", Some(("state", "dead"))), 1.0);
    assert_eq!(gauge("waypost_queue_slots", Some(("queue", "gpu"))), 8.0);
    assert!(matches!(
        &find(&scrape, "waypost_store_wait_seconds", None).value,
        Value::Histogram(buckets) if buckets.last().unwrap().count >= 2.0
    ));
    assert!(gauge("process_resident_memory_bytes", None) > 1e6);
    assert!(matches!(find(&scrape, "waypost_versions_total", None).value, Value::Counter(2.0)));
    match &find(&scrape, "waypost_commit_seconds", None).value {
        Value::Histogram(buckets) => {
            assert!(
                buckets.is_sorted_by(|a, b| a.less_than < b.less_than && a.count <= b.count),
                "{buckets:?}"
            );
            let last = buckets.last().unwrap();
            assert!(last.less_than.is_infinite() && last.count >= 2.0, "two commits were made: {last:?}");
        }
        other => panic!("no histogram: {other:?}"),
    }
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for line in body.lines().filter(|line| line.starts_with("# TYPE ")) {
        *kinds.entry(line.split(' ').nth(2).unwrap()).or_default() += 1;
    }
    assert!(kinds.values().all(|count| *count == 1), "each family is told once: {kinds:?}");
    stop.send(()).unwrap();
    runtime.block_on(served).unwrap().unwrap();
}

#[test]
fn the_alert_rules_and_the_grafana_dashboard_name_metrics_that_exist() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let page = waypost_http::metrics_page(&*store, &Config::default());
    let families: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter_map(|line| line.split(' ').next())
        .collect();
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    for file in ["prometheus/alerts.yaml", "grafana/waypost.json"] {
        let text = std::fs::read_to_string(deploy.join(file)).unwrap();
        let words = text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
        let named: BTreeSet<&str> =
            words.filter(|word| word.starts_with("waypost_") || word.starts_with("process_")).collect();
        assert!(named.len() > 5, "{file}: {named:?}");
        for name in named {
            assert!(families.contains(name.trim_end_matches("_bucket")), "{file} names {name}");
        }
    }
    let documented = std::fs::read_to_string(deploy.join("../docs/operations.md")).unwrap();
    for family in families {
        assert!(documented.contains(&format!("`{family}")), "docs/operations.md does not explain {family}");
    }
}
