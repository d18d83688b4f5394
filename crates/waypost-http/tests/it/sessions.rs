//! The dashboard's sessions. Other ports of the host get the cookie, and can do nothing with it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use waypost_core::Actor;
use waypost_http::SESSIONS_PER_TOKEN_MAX;

use super::api::{Answer, BOUND, Desk};
use super::tokens_in;

/// A page that is signed in: what the browser and the page remember.
struct Page<'a> {
    desk: &'a Desk,
    origin: String,
    cookie: String,
    secret: String,
}

fn login(desk: &Desk, credential: &Value) -> Answer {
    let own = format!("http://{}", desk.at);
    let headers = [("origin", own.as_str()), ("content-type", "application/json")];
    desk.send("POST", "/login", &headers, credential.to_string().into_bytes())
}

impl<'a> Page<'a> {
    #[track_caller]
    fn sign_in(desk: &'a Desk, credential: &Value) -> Self {
        let reply = login(desk, credential);
        let secret = reply.ok()["session"].as_str().unwrap().to_owned();
        let cookie = reply.head("set-cookie").split(';').next().unwrap().to_owned();
        assert_eq!((secret.len(), cookie.split('=').nth(1).unwrap().len()), (64, 64));
        Self { desk, origin: format!("http://{}", desk.at), cookie, secret }
    }

    fn new(desk: &'a Desk) -> Self {
        Self::sign_in(desk, &json!({ "token": desk.person }))
    }

    /// Asks as the page does, with these cookies.
    fn with_cookies(&self, cookies: &str, method: &str, path: &str, body: &str) -> Answer {
        let mut headers = vec![("cookie", cookies), ("x-waypost-session", self.secret.as_str())];
        if method != "GET" {
            headers.extend([("origin", self.origin.as_str()), ("content-type", "application/json")]);
            headers.push(("sec-fetch-site", "same-origin"));
        }
        self.desk.send(method, path, &headers, body.as_bytes().to_vec())
    }

    fn get(&self, path: &str) -> Answer {
        self.with_cookies(&self.cookie, "GET", path, "")
    }

    fn is_live(&self) -> bool {
        self.get("/api/v1/me").status == 200
    }
}

const RENAME: &str = r#"{"goal":"by the page"}"#;

#[test]
fn a_page_signs_in_reads_writes_and_signs_out() {
    let desk = Desk::new();
    desk.plan("p", &["a"]);
    let page = Page::new(&desk);
    let me = page.get("/api/v1/me");
    assert_eq!((&me.ok()["actor"], &me.ok()["role"]), (&json!("person:ada"), &json!("person")));
    let (_, name) = page.cookie.split_once('=').unwrap();
    assert!(!me.text.contains(&page.secret) && !me.text.contains(name), "{me:?}");
    page.with_cookies(&page.cookie, "PATCH", "/api/v1/plans/p", RENAME).ok();
    let out = page.with_cookies(&page.cookie, "POST", "/logout", "");
    assert_eq!(out.status, 204);
    assert!(out.head("set-cookie").starts_with(&format!("waypost_session_{}=;", desk.at.port())), "{out:?}");
    page.get("/api/v1/me").problem(401);
}

#[test]
fn signing_out_ends_the_streams_of_the_session() {
    let desk = Desk::new();
    let page = Page::new(&desk);
    let mut stream = TcpStream::connect(desk.at).unwrap();
    stream.set_read_timeout(Some(BOUND)).unwrap();
    let (host, cookie, secret) = (desk.at, &page.cookie, &page.secret);
    write!(
        stream,
        "GET /api/v1/events HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nX-Waypost-Session: {secret}\r\n\
         Connection: close\r\n\r\n"
    )
    .unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    assert_eq!(page.with_cookies(&page.cookie, "POST", "/logout", "").status, 204);
    stream.read_to_end(&mut Vec::new()).expect("it ends");
}

#[test]
fn another_port_gets_the_cookie_and_can_do_nothing_with_it() {
    let desk = Desk::new();
    desk.plan("p", &["a"]);
    let page = Page::new(&desk);
    let own = format!("http://{}", desk.at);
    let replay = |method: &str, path: &str| {
        let headers =
            [("cookie", page.cookie.as_str()), ("origin", &own), ("content-type", "application/json")];
        desk.send(method, path, &headers, RENAME.as_bytes().to_vec())
    };
    for path in ["/me", "/plans", "/events", "/plans/p/export", "/plans/p/tasks/a/log?follow=true"] {
        replay("GET", &format!("/api/v1{path}")).problem(401);
    }
    replay("PATCH", "/api/v1/plans/p").problem(401);
    replay("POST", "/api/v1/plans/p/actions/approve").problem(401);
    assert_eq!(replay("POST", "/logout").status, 401);
    assert!(page.is_live());
}

#[test]
fn a_cookie_that_another_port_planted_fits_no_second_secret() {
    let desk = Desk::new();
    let (page, other) = (Page::new(&desk), Page::sign_in(&desk, &json!({ "token": desk.reader })));
    page.with_cookies(&other.cookie, "GET", "/api/v1/me", "").problem(401);
    page.with_cookies(&other.cookie, "PATCH", "/api/v1/plans/p", RENAME).problem(401);
    let both = format!("{}; {}", other.cookie, page.cookie);
    assert_eq!(page.with_cookies(&both, "GET", "/api/v1/me", "").ok()["role"], "person");
    assert_eq!(other.with_cookies(&both, "GET", "/api/v1/me", "").ok()["role"], "reader");
}

#[test]
fn two_servers_live_side_by_side_in_one_browser() {
    let (one, two) = (Desk::new(), Desk::new());
    let (first, second) = (Page::new(&one), Page::new(&two));
    assert!(first.cookie.starts_with(&format!("waypost_session_{}=", one.at.port())), "{}", first.cookie);
    // The browser sends both cookies to both servers.
    let cookies = format!("{}; {}", first.cookie, second.cookie);
    first.with_cookies(&cookies, "GET", "/api/v1/me", "").ok();
    second.with_cookies(&cookies, "GET", "/api/v1/me", "").ok();
    let stranger =
        Page { desk: &two, secret: first.secret.clone(), origin: second.origin.clone(), cookie: cookies };
    stranger.get("/api/v1/me").problem(401);
}

#[test]
fn a_sign_in_link_works_once() {
    let desk = Desk::new();
    let code = json!({ "code": desk.code });
    login(&desk, &json!({ "code": "guess" })).problem(401);
    login(&desk, &json!({ "token": desk.code })).problem(401);
    let page = Page::sign_in(&desk, &code);
    assert_eq!(page.get("/api/v1/me").ok()["actor"], "person:ada");
    let again = login(&desk, &code).problem(401);
    assert!(again["detail"].as_str().unwrap().contains("was used already"), "{again}");
    assert!(page.is_live());
    let bearer = format!("Bearer {}", desk.code);
    desk.send("GET", "/api/v1/me", &[("authorization", &bearer)], Vec::new()).problem(401);
}

#[test]
fn only_a_page_of_this_server_signs_in_and_nobody_by_address() {
    let desk = Desk::new();
    let own = format!("http://{}", desk.at);
    let body = json!({ "token": desk.person }).to_string();
    let try_with = |headers: &[(&str, &str)]| desk.send("POST", "/login", headers, body.clone().into_bytes());
    try_with(&[]).problem(403);
    try_with(&[("origin", &own), ("sec-fetch-site", "same-site")]).problem(403);
    assert_eq!(try_with(&[("origin", "http://127.0.0.1:1")]).status, 403);
    login(&desk, &json!({ "token": "waypost_none" })).problem(401);
    login(&desk, &json!({})).problem(400);
    login(&desk, &json!({ "token": desk.person, "code": desk.code })).problem(400);
    let only = login(&desk, &json!({ "token": desk.scraper })).problem(403);
    assert!(only["detail"].as_str().unwrap().contains("/metrics only"), "{only}");
    let query = format!("token={}", desk.person);
    let page = desk.send("GET", &format!("/login?{query}"), &[("accept", "text/html")], Vec::new());
    assert_eq!((page.status, page.head("set-cookie")), (200, ""), "the page has a form for it");
    desk.send("GET", &format!("/api/v1/me?{query}&access_{query}"), &[], Vec::new()).problem(401);
    assert_eq!(desk.send("POST", &format!("/login?{query}"), &[("origin", &own)], Vec::new()).status, 400);
}

#[test]
fn a_token_has_ten_sessions_and_the_oldest_goes() {
    let desk = Desk::new();
    let guest = Page::sign_in(&desk, &json!({ "token": desk.reader }));
    let pages: Vec<Page<'_>> = (0..SESSIONS_PER_TOKEN_MAX).map(|_| Page::new(&desk)).collect();
    assert!(pages.iter().all(Page::is_live));
    let last = Page::new(&desk);
    let live: Vec<bool> = pages.iter().chain([&last, &guest]).map(Page::is_live).collect();
    assert!(!live[0] && live[1..].iter().all(|live| *live), "{live:?}");
}

#[test]
fn a_restart_signs_nobody_out_and_every_server_of_the_store_knows_who_left() {
    let first = Desk::new();
    let by_token = Page::new(&first);
    let by_link = Page::sign_in(&first, &json!({ "code": first.code }));
    let left = Page::new(&first);
    let next = first.again();
    let at_next = |page: &Page<'_>| Page {
        desk: &next,
        origin: page.origin.clone(),
        cookie: page.cookie.clone(),
        secret: page.secret.clone(),
    };
    for page in [&by_token, &by_link] {
        assert_eq!(at_next(page).get("/api/v1/me").ok()["actor"], "person:ada");
    }
    assert_eq!(left.with_cookies(&left.cookie, "POST", "/logout", "").status, 204);
    assert!(!at_next(&left).is_live() && !left.is_live());
    let only_the_cookie = Page { secret: by_link.secret.clone(), ..at_next(&by_token) };
    assert!(!only_the_cookie.is_live(), "both secrets are of one session");

    let folder = first.folder.path().join("home/.local/state/waypost/sessions");
    let mut files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let file = files.find(|file| file.extension().is_some_and(|end| end == "json")).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let cookie = by_token.cookie.split_once('=').unwrap().1;
    assert!(!text.contains(&by_token.secret) && !text.contains(cookie), "only digests are stored");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(!at_next(&by_token).is_live(), "others could have written it");
}

#[test]
fn a_revoked_token_ends_its_sessions() {
    let desk = Desk::new();
    let page = Page::new(&desk);
    let (tokens, ada) = (tokens_in(desk.folder.path()), Actor::person("ada"));
    let own = tokens.list().unwrap().into_iter().find(|token| token.actor() == ada).unwrap();
    tokens.revoke(&own.id, &ada).unwrap();
    page.get("/api/v1/me").problem(401);
}

#[test]
fn replies_with_plans_or_secrets_are_stored_by_no_cache() {
    let desk = Desk::new();
    let page = Page::new(&desk);
    let stored = |answer: &Answer| answer.head("cache-control").to_owned();
    assert_eq!(stored(&page.get("/api/v1/me")), "no-store");
    assert_eq!(stored(&page.get("/api/v1/plans")), "no-store");
    assert_eq!(stored(&page.get("/api/v1/nowhere")), "no-store");
    assert_eq!(stored(&desk.send("GET", "/api/v1/me", &[], Vec::new())), "no-store");
    assert_eq!(stored(&login(&desk, &json!({ "token": desk.person }))), "no-store");
    assert_eq!(stored(&login(&desk, &json!({ "token": "waypost_none" }))), "no-store");
    assert_eq!(stored(&desk.send("GET", "/assets/app.js", &[], Vec::new())), "no-cache");
}

#[test]
fn a_target_that_names_another_host_is_refused() {
    let desk = Desk::new();
    let status = |target: &str| -> u16 {
        let mut stream = TcpStream::connect(desk.at).unwrap();
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", desk.at).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    };
    assert_eq!(status("/health"), 200);
    assert_eq!(status(&format!("http://{}/health", desk.at)), 200);
    assert_eq!(status("http://evil.example/health"), 400);
    assert_eq!(status(&format!("http://localhost:{}/health", desk.at.port())), 400);
}

/// All lists of one value from each.
fn combinations<'a>(values: &[&[&'a str]]) -> Vec<Vec<&'a str>> {
    values.iter().fold(vec![Vec::new()], |lists, values| {
        let longer = |list: &Vec<&'a str>| {
            values.iter().map(|value| [list.as_slice(), &[*value]].concat()).collect::<Vec<_>>()
        };
        lists.iter().flat_map(longer).collect()
    })
}

/// The first value of each header is the right one; an empty one stands for a header that is absent.
#[test]
fn only_the_full_set_of_cookie_secret_origin_host_and_site_succeeds() {
    let desk = Desk::new();
    desk.plan("p", &["a"]);
    let (page, other) = (Page::new(&desk), Page::new(&desk));
    let other_port = format!("http://127.0.0.1:{}", desk.at.port() ^ 1);
    let renamed = page.cookie.replacen("waypost_session_", "waypost_session_1", 1);
    let host = desk.at.to_string();
    let names = ["cookie", "x-waypost-session", "origin", "host", "sec-fetch-site"];
    let all = combinations(&[
        &[&page.cookie, "", &other.cookie, &renamed],
        &[&page.secret, "", &other.secret, "guess"],
        &[&page.origin, "", &other_port, "null", "http://evil.example"],
        &[&host, "evil.example"],
        &["same-origin", "", "same-site", "none"],
    ]);
    let mut succeeded = Vec::new();
    for (set, method) in all.iter().flat_map(|set| [(set, "GET"), (set, "PATCH")]) {
        let mut headers: Vec<(&str, &str)> = names.into_iter().zip(set.iter().copied()).collect();
        headers.retain(|(_, value)| !value.is_empty());
        headers.push(("content-type", "application/json"));
        let body = if method == "GET" { Vec::new() } else { RENAME.into() };
        let answer = desk.send(method, "/api/v1/plans/p", &headers, body);
        assert!([200, 401, 403].contains(&answer.status), "{method} {headers:?}: {answer:?}");
        let [cookie, secret, origin, sent_to, site] = set[..] else { panic!("{set:?}") };
        let signed_in = [(&page.cookie, &page.secret), (&other.cookie, &other.secret)];
        let is_full = signed_in.iter().any(|(own, second)| (cookie, secret) == (own, second))
            && sent_to == host
            // A browser names no origin when its own page reads.
            && (origin == page.origin || method == "GET" && origin.is_empty())
            && (method == "GET" || ["same-origin", ""].contains(&site));
        assert_eq!(answer.status == 200, is_full, "{method} {headers:?}: {answer:?}");
        succeeded.extend(is_full.then_some(method));
    }
    let writes = succeeded.iter().filter(|method| **method == "PATCH").count();
    assert_eq!((succeeded.len() - writes, writes), (2 * 2 * 4, 2 * 2), "two sessions, sites and origins");
}
