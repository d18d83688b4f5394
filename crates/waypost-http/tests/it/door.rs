//! Who is let in, and with what.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use waypost_core::{Actor, Timestamp};
use waypost_http::{BODY_BYTES_MAX, CONNECTIONS_MAX, HostOriginGuard, Mount, Mounted, Site, Token, serve};

use super::{Folder, ada, for_agent, tokens_in};

/// Long enough for everything that has to happen, and reached only by what does not.
const BOUND: Duration = Duration::from_secs(30);

type Answer = (u16, String);
type Body = http_body_util::combinators::BoxBody<Bytes, std::io::Error>;

/// A server whose one service says who called and what came.
struct Door {
    runtime: Runtime,
    folder: Folder,
    at: SocketAddr,
    made: Arc<AtomicU32>,
    closed: Arc<Notify>,
    stop: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<std::io::Result<()>>>,
}

impl Door {
    fn new() -> Self {
        let folder = Folder::new();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (made, closed): (Arc<AtomicU32>, Arc<Notify>) = Default::default();
        let (count, tell) = (Arc::clone(&made), Arc::clone(&closed));
        let make = move |token: &Token| {
            count.fetch_add(1, Ordering::Relaxed);
            let (agent, tell) = (token.agent.clone(), Arc::clone(&tell));
            let answer = async move |request: Request| {
                let secret = request.headers().contains_key("authorization");
                let bytes = request.into_body().collect().await.unwrap().to_bytes().len();
                format!("{agent} {bytes} {secret}")
            };
            Mounted::new(Router::new().fallback(answer), move || tell.notify_one())
        };
        let mount = Mount { path: "/echo", make: Box::new(make) };
        let site = Site::new(HostOriginGuard::local(), tokens_in(folder.path()), vec![mount]);
        let (stop, stopped) = oneshot::channel::<()>();
        let (at, served) = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let at = listener.local_addr().unwrap();
            let served = tokio::spawn(serve(listener, site, async {
                let _dropped = stopped.await;
            }));
            (at, served)
        });
        Self { runtime, folder, at, made, closed, stop: Some(stop), served: Some(served) }
    }

    fn token(&self, agent: &str) -> (Token, String) {
        let at = Timestamp::from_micros(1_767_225_600_000_000);
        tokens_in(self.folder.path()).make(for_agent(agent), &ada(), at).unwrap()
    }

    fn ask(&self, path: &str, headers: &[(&str, &str)], body: Body) -> Answer {
        let mut request = hyper::Request::post(format!("http://{}{path}", self.at));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body).unwrap();
        let asked = async {
            let client = Client::builder(TokioExecutor::new()).build_http();
            let response = client.request(request).await.unwrap();
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            (status, String::from_utf8(body.to_vec()).unwrap())
        };
        self.runtime.block_on(async { tokio::time::timeout(BOUND, asked).await.unwrap() })
    }

    fn call(&self, headers: &[(&str, &str)]) -> Answer {
        self.ask("/echo", headers, bytes(5))
    }
}

fn bytes(count: usize) -> Body {
    Full::new(Bytes::from(vec![b'x'; count])).map_err(|never| match never {}).boxed()
}

/// A body that does not say how long it is.
fn chunked(count: usize) -> Body {
    let chunks = (0..count.div_ceil(65_536)).map(move |number| {
        let size = 65_536.min(count - number * 65_536);
        Ok::<_, std::io::Error>(Frame::data(Bytes::from(vec![b'x'; size])))
    });
    BodyExt::boxed(StreamBody::new(futures_util::stream::iter(chunks)))
}

#[test]
fn a_token_says_who_calls_and_does_not_reach_what_is_behind() {
    let door = Door::new();
    let (planner, worker) = (door.token("planner").1, door.token("worker").1);
    let (planner, worker) = (format!("Bearer {planner}"), format!("bearer {worker}"));
    assert_eq!(door.call(&[("authorization", &planner)]), (200, "planner 5 false".to_owned()));
    assert_eq!(door.call(&[("authorization", &worker)]), (200, "worker 5 false".to_owned()));
    assert_eq!(door.call(&[("authorization", &planner)]), (200, "planner 5 false".to_owned()));
    assert_eq!(door.made.load(Ordering::Relaxed), 2, "one service for each of them");
}

#[test]
fn who_has_no_token_learns_nothing() {
    let door = Door::new();
    let (token, text) = door.token("planner");
    let (right, basic) = (format!("Bearer {text}"), format!("Basic {text}"));
    let nothing = (401, String::new());
    assert_eq!(door.call(&[]), nothing);
    assert_eq!(door.call(&[("authorization", "Bearer waypost_00")]), nothing);
    assert_eq!(door.call(&[("authorization", &text)]), nothing);
    assert_eq!(door.call(&[("authorization", &basic)]), nothing);
    assert_eq!(door.call(&[("authorization", &right), ("authorization", "Bearer other")]), nothing);
    assert_eq!(door.ask("/nowhere", &[], bytes(0)), nothing, "not even what is there");
    assert_eq!(door.ask("/nowhere", &[("authorization", &right)], bytes(0)).0, 404);
    tokens_in(door.folder.path()).revoke(&token.id, &Actor::person("ada")).unwrap();
    assert_eq!(door.call(&[("authorization", &right)]), nothing);
}

#[test]
fn a_token_that_is_revoked_ends_what_goes_on_under_it() {
    let door = Door::new();
    let (token, text) = door.token("planner");
    let right = format!("Bearer {text}");
    assert_eq!(door.call(&[("authorization", &right)]).0, 200);
    tokens_in(door.folder.path()).revoke(&token.id, &Actor::person("ada")).unwrap();
    let closed = async { tokio::time::timeout(BOUND, door.closed.notified()).await };
    door.runtime.block_on(closed).expect("its service is closed although nobody calls");
}

#[test]
fn tokens_that_cannot_be_read_let_nobody_in() {
    let door = Door::new();
    let right = format!("Bearer {}", door.token("planner").1);
    std::fs::write(tokens_in(door.folder.path()).path().unwrap(), "nonsense").unwrap();
    assert_eq!(door.call(&[("authorization", &right)]), (500, String::new()));
}

#[test]
fn strange_hosts_and_pages_are_not_let_in_whatever_they_bring() {
    let door = Door::new();
    let right = format!("Bearer {}", door.token("planner").1);
    let with = |name: &str, value: &str| door.call(&[("authorization", &right), (name, value)]).0;
    assert_eq!(with("host", "evil.example"), 403);
    assert_eq!(with("origin", "http://evil.example"), 403);
    assert_eq!(with("origin", "null"), 403);
    assert_eq!(with("origin", &format!("http://{}", door.at)), 200);
    assert_eq!(with("host", &format!("localhost:{}", door.at.port())), 200);
    assert_eq!(door.made.load(Ordering::Relaxed), 1);
}

#[test]
fn health_needs_no_token_but_the_right_host() {
    let door = Door::new();
    let get = |host: &str| {
        let request = hyper::Request::get(format!("http://{}/health", door.at)).header("host", host);
        let request = request.body(bytes(0)).unwrap();
        door.runtime.block_on(async {
            let client = Client::builder(TokioExecutor::new()).build_http();
            client.request(request).await.unwrap().status().as_u16()
        })
    };
    assert_eq!((get("localhost"), get("evil.example")), (200, 403));
}

#[test]
fn a_body_has_so_many_bytes_and_not_one_more() {
    let door = Door::new();
    let right = format!("Bearer {}", door.token("planner").1);
    let send = |body: Body| door.ask("/echo", &[("authorization", &right)], body);
    let most = (200, format!("planner {BODY_BYTES_MAX} false"));
    assert_eq!(send(bytes(BODY_BYTES_MAX)), most);
    assert_eq!(send(chunked(BODY_BYTES_MAX)), most);
    assert_eq!(send(bytes(BODY_BYTES_MAX + 1)), (413, String::new()));
    assert_eq!(send(chunked(BODY_BYTES_MAX + 1)), (413, String::new()));
}

#[test]
fn a_server_that_is_stopped_closes_its_services_and_ends() {
    let mut door = Door::new();
    let right = format!("Bearer {}", door.token("planner").1);
    assert_eq!(door.call(&[("authorization", &right)]).0, 200);
    door.stop.take().unwrap().send(()).unwrap();
    let served = door.served.take().unwrap();
    let ended = door.runtime.block_on(async { tokio::time::timeout(BOUND, served).await });
    ended.unwrap().unwrap().unwrap();
    let closed = async { tokio::time::timeout(BOUND, door.closed.notified()).await };
    door.runtime.block_on(closed).unwrap();
}

#[test]
fn a_server_whose_connections_are_all_taken_says_that_it_lives_and_that_it_has_no_room() {
    let door = Door::new();
    let right = format!("Bearer {}", door.token("planner").1);
    let idle = door.runtime.block_on(async {
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            idle.push(TcpStream::connect(door.at).await.unwrap());
        }
        idle
    });
    let get = hyper::Request::get(format!("http://{}/health", door.at)).body(bytes(0)).unwrap();
    let health = async {
        let client = Client::builder(TokioExecutor::new()).build_http();
        client.request(get).await.unwrap().status().as_u16()
    };
    let health = door.runtime.block_on(async { tokio::time::timeout(BOUND, health).await.unwrap() });
    assert_eq!(health, 200);
    let (status, words) = door.call(&[("authorization", &right)]);
    assert_eq!(status, 503);
    assert!(words.contains(&format!("{CONNECTIONS_MAX} connections are open already")), "{words}");
    assert_eq!(door.ask("/echo", &[("host", "evil.example")], bytes(0)).0, 403);
    drop(idle);
    // The server hears of it in its own time.
    let end = Instant::now() + BOUND;
    while door.call(&[("authorization", &right)]).0 != 200 {
        assert!(Instant::now() < end, "there is room again");
    }
}
