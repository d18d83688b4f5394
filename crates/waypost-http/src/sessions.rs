//! Sessions of the dashboard: browsers that signed in, with a token or with the one-time code of a sign-in link. They are
//! in a file of the account, so that a restart signs nobody out and all servers of a store know them. Without such a file
//! they are in memory and end with the process.
//!
//! A session has two secrets, of which only the SHA-256 is kept. The cookie alone proves nothing: browsers send it to
//! every port of the host. The second secret is stored by the page for its own origin, port included, and sent as a header.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use axum::http::uri::Authority;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use waypost_account::{Account, AccountFileError, FileStamp};
use waypost_core::Timestamp;

use crate::tokens::{TokenError, TokenFiles, random, sha256_hex};

/// Maximum number of concurrent sessions; a further one ends the oldest.
pub const SESSIONS_MAX: usize = 1_000;
/// Maximum number of concurrent sessions of one token; a further one ends its oldest.
pub const SESSIONS_PER_TOKEN_MAX: usize = 10;
/// Maximum duration of a session.
pub const SESSION_SECONDS_MAX: u64 = 12 * 60 * 60;
/// Maximum age of the code of a sign-in link.
pub const LOGIN_CODE_SECONDS_MAX: u64 = 10 * 60;
/// Random bytes of each secret.
const SECRET_BYTES: usize = 32;
/// The request header with the second secret.
pub(crate) const SESSION_HEADER: &str = "x-waypost-session";

/// A signed-in browser.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Session {
    /// The id of the token that it began with.
    pub(crate) token: String,
    /// The origin of the page that signed in.
    pub(crate) origin: String,
    /// The SHA-256 of the value of the cookie, in hexadecimal.
    cookie_sha256: String,
    /// The SHA-256 of the second secret, in hexadecimal.
    secret_sha256: String,
    began: Timestamp,
}

/// The sessions of a store, oldest first, as they are in the file.
#[derive(Default, Serialize, Deserialize)]
struct SessionFile {
    sessions: Vec<Session>,
}

/// The sessions, and the state of the file that they were read from.
#[derive(Default)]
struct Open {
    stamp: Option<FileStamp>,
    sessions: Vec<Session>,
}

/// The secrets of a new session.
#[derive(Debug)]
pub(crate) struct NewSession {
    /// The second secret, for the page.
    pub(crate) secret: String,
    /// The cookie to set.
    pub(crate) set_cookie: String,
}

/// The code of a sign-in link.
struct LoginCode {
    code: String,
    /// The id of the token that the session will use.
    token: String,
    made: Instant,
}

/// All sessions, and the sign-in link that is not used yet.
pub(crate) struct Sessions {
    account: Account,
    /// `None` for an account without a home.
    file: Option<PathBuf>,
    open: Mutex<Open>,
    login: Mutex<Option<LoginCode>>,
}

/// Returns the time. The age of a session is no fact of the store, and outlasts the process.
#[expect(clippy::disallowed_methods, reason = "a session is of a browser, and no store knows of it")]
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

impl Sessions {
    /// The sessions that began with the tokens in these files.
    pub(crate) fn new(files: &TokenFiles) -> Self {
        let (account, file) = (files.account.clone(), files.sessions.clone());
        Self { account, file, open: Mutex::default(), login: Mutex::default() }
    }

    /// Creates the code of a sign-in link for a token. Replaces the previous one.
    pub(crate) fn make_code(&self, token: &str, now: Instant) -> Result<String, TokenError> {
        let code = random::<SECRET_BYTES>()?;
        let made = LoginCode { code: code.clone(), token: token.to_owned(), made: now };
        *self.login.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        Ok(code)
    }

    /// Uses up the code of a sign-in link; returns the id of its token. A wrong code leaves the link usable.
    pub(crate) fn redeem(&self, code: &str, now: Instant) -> Option<String> {
        let mut login = self.login.lock().unwrap_or_else(PoisonError::into_inner);
        login.take_if(|login| login.code.as_bytes().ct_eq(code.as_bytes()).into()).and_then(|login| {
            (now.saturating_duration_since(login.made) <= Duration::from_secs(LOGIN_CODE_SECONDS_MAX))
                .then_some(login.token)
        })
    }

    /// Begins a session for a page of this origin.
    pub(crate) fn begin(&self, token: &str, origin: &str, now: Timestamp) -> Result<NewSession, TokenError> {
        let (cookie, secret) = (random::<SECRET_BYTES>()?, random::<SECRET_BYTES>()?);
        let session = Session {
            token: token.to_owned(),
            origin: origin.to_owned(),
            cookie_sha256: sha256_hex(cookie.as_bytes()),
            secret_sha256: sha256_hex(secret.as_bytes()),
            began: now,
        };
        self.change(|sessions| {
            sessions.retain(|session| !session.is_over(now));
            let of_token = |session: &Session| session.token == token;
            if sessions.iter().filter(|session| of_token(session)).count() >= SESSIONS_PER_TOKEN_MAX {
                let oldest = sessions.iter().position(of_token);
                oldest.map(|oldest| sessions.remove(oldest));
            }
            if sessions.len() >= SESSIONS_MAX {
                sessions.remove(0);
            }
            sessions.push(session.clone());
        });
        Ok(NewSession { secret, set_cookie: session.set_cookie(&cookie, SESSION_SECONDS_MAX) })
    }

    /// Returns the session of a request that has both secrets.
    pub(crate) fn of(&self, headers: &HeaderMap, now: Timestamp) -> Option<Session> {
        let secret = sha256_hex(headers.get(SESSION_HEADER)?.as_bytes());
        // Another server of the store may have signed somebody in or out.
        let stamp = self.file.as_deref().and_then(FileStamp::of);
        let mut open = self.open();
        if stamp != open.stamp {
            *open = Open { stamp, sessions: self.read() };
        }
        let session = open.sessions.iter().find(|session| is_equal(&session.secret_sha256, &secret))?;
        (!session.is_over(now) && session.is_cookie_in(headers)).then(|| session.clone())
    }

    /// Ends a session; returns the cookie that removes its own.
    pub(crate) fn end(&self, session: &Session) -> String {
        self.change(|sessions| sessions.retain(|other| other.secret_sha256 != session.secret_sha256));
        session.set_cookie("", 0)
    }

    /// Changes the sessions in the file. If it cannot be written, as in a home that is only read, the change lasts as
    /// long as the process.
    fn change(&self, change: impl Fn(&mut Vec<Session>)) {
        let mut open = self.open();
        if !matches!(self.save(&mut open, &change), Ok(true)) {
            change(&mut open.sessions);
        }
    }

    /// Changes the sessions in the file. Returns whether there is one.
    fn save(&self, open: &mut Open, change: impl Fn(&mut Vec<Session>)) -> Result<bool, AccountFileError> {
        let Some(file) = &self.file else { return Ok(false) };
        let _lock = self.account.lock(file)?;
        let mut sessions = self.read();
        change(&mut sessions);
        let malformed = |error: serde_json::Error| AccountFileError::Malformed {
            file: file.clone(),
            what: error.to_string(),
        };
        let saved = SessionFile { sessions };
        let text = serde_json::to_string_pretty(&saved).map_err(malformed)?;
        self.account.write(file, format!("{text}\n").as_bytes())?;
        *open = Open { stamp: FileStamp::of(file), sessions: saved.sessions };
        Ok(true)
    }

    /// Reads the file. One that others could have written, or that is not ours, signs nobody in.
    fn read(&self) -> Vec<Session> {
        let found = self.file.as_deref().and_then(|file| self.account.read(file).ok().flatten());
        let parsed = found.and_then(|bytes| serde_json::from_slice::<SessionFile>(&bytes).ok());
        parsed.unwrap_or_default().sessions
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn is_over(&self, now: Timestamp) -> bool {
        now.since(self.began) > Duration::from_secs(SESSION_SECONDS_MAX)
    }

    fn is_https(&self) -> bool {
        self.origin.starts_with("https://")
    }

    /// The name contains the port, because browsers keep one set of cookies for all ports of a host.
    fn cookie_name(&self) -> String {
        let authority = self.origin.split_once("://").and_then(|(_, rest)| Authority::try_from(rest).ok());
        let (prefix, default_port) = if self.is_https() { ("__Host-", 443) } else { ("", 80) };
        let port = authority.and_then(|authority| authority.port_u16()).unwrap_or(default_port);
        format!("{prefix}waypost_session_{port}")
    }

    fn set_cookie(&self, value: &str, seconds: u64) -> String {
        let (name, secure) = (self.cookie_name(), if self.is_https() { "; Secure" } else { "" });
        format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}")
    }

    /// Other servers of the host may have set further cookies, also of the same name for another path.
    fn is_cookie_in(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let all = headers.get_all(COOKIE).iter();
        all.flat_map(|cookies| cookies.as_bytes().split(|byte| *byte == b';')).any(|cookie| {
            let value = cookie.trim_ascii().strip_prefix(name.as_bytes());
            value
                .and_then(|value| value.strip_prefix(b"="))
                .is_some_and(|value| is_equal(&self.cookie_sha256, &sha256_hex(value)))
        })
    }
}

/// Whether two digests are equal. Takes the same time for a wrong one.
fn is_equal(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const ORIGIN: &str = "http://127.0.0.1:8021";

    fn in_memory() -> Sessions {
        // Such an account has no home.
        Sessions::new(&TokenFiles::of(&Account::of_process(), "", Path::new("/")))
    }

    /// The headers of a request with these cookies and this second secret.
    fn headers(cookies: &str, secret: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, cookies.parse().expect("a header"));
        headers.insert(SESSION_HEADER, secret.parse().expect("a header"));
        headers
    }

    fn sent(new: &NewSession) -> HeaderMap {
        headers(new.set_cookie.split(';').next().expect("a pair"), &new.secret)
    }

    #[test]
    fn a_session_needs_both_secrets_until_it_ends() {
        let (sessions, now) = (in_memory(), now());
        let new = sessions.begin("t1", ORIGIN, now).expect("random numbers");
        let other = sessions.begin("t1", ORIGIN, now).expect("random numbers");
        let cookie = new.set_cookie.split(';').next().expect("a pair");
        let several = headers(&format!("other=1; waypost_session_8021=planted; {cookie}"), &new.secret);
        let session = sessions.of(&several, now).expect("signed in");
        assert_eq!((session.token.as_str(), session.origin.as_str()), ("t1", ORIGIN));
        assert!(sessions.of(&headers(cookie, &other.secret), now).is_none());
        assert!(sessions.of(&headers(cookie, ""), now).is_none());
        assert!(sessions.of(&headers("waypost_session_8021=", &new.secret), now).is_none());
        assert!(sessions.of(&headers(&cookie.replace("8021", "8022"), &new.secret), now).is_none());
        assert!(sessions.end(&session).starts_with("waypost_session_8021=; "));
        assert!(sessions.of(&several, now).is_none());
        assert!(sessions.of(&sent(&other), now).is_some(), "the other session is still open");
    }

    #[test]
    fn the_cookie_is_of_its_port_and_only_for_https_if_the_page_was() {
        #[track_caller]
        fn check(origin: &str, name: &str, end: &str) {
            let set = in_memory().begin("t", origin, now()).expect("random numbers").set_cookie;
            assert!(set.starts_with(&format!("{name}=")), "{set}");
            assert!(
                set.ends_with(&format!("; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200{end}")),
                "{set}"
            );
        }
        check(ORIGIN, "waypost_session_8021", "");
        check("http://[::1]:9", "waypost_session_9", "");
        check("http://plans.example", "waypost_session_80", "");
        check("https://plans.example", "__Host-waypost_session_443", "; Secure");
        check("https://plans.example:8443", "__Host-waypost_session_8443", "; Secure");
    }

    #[test]
    fn a_session_lasts_its_time_and_not_a_second_more() {
        let (sessions, now) = (in_memory(), now());
        let new = sent(&sessions.begin("t", ORIGIN, now).expect("random numbers"));
        let after = |seconds: u64| Timestamp::from_micros(now.as_micros() + 1_000_000 * seconds as i64);
        assert!(sessions.of(&new, after(SESSION_SECONDS_MAX)).is_some());
        assert!(sessions.of(&new, after(SESSION_SECONDS_MAX + 1)).is_none());
    }

    #[test]
    fn a_session_over_the_limit_ends_the_oldest_of_its_token_or_of_all() {
        let (sessions, now) = (in_memory(), now());
        let begin = |token: &str| sent(&sessions.begin(token, ORIGIN, now).expect("random numbers"));
        let first_of_all = begin("first");
        let own: Vec<HeaderMap> = (0..SESSIONS_PER_TOKEN_MAX).map(|_| begin("t")).collect();
        assert!(own.iter().all(|own| sessions.of(own, now).is_some()));
        begin("t");
        let open: Vec<bool> = own.iter().map(|own| sessions.of(own, now).is_some()).collect();
        assert_eq!(open.iter().position(|open| *open), Some(1), "only the oldest is gone");
        for number in 1 + SESSIONS_PER_TOKEN_MAX..SESSIONS_MAX {
            begin(&number.to_string());
        }
        assert!(sessions.of(&first_of_all, now).is_some());
        begin("one more");
        assert!(sessions.of(&first_of_all, now).is_none());
        assert!(sessions.of(&own[1], now).is_some());
    }

    #[test]
    fn a_code_signs_in_once_and_for_ten_minutes() {
        let (sessions, now) = (in_memory(), Instant::now());
        let code = sessions.make_code("t", now).expect("random numbers");
        let end = now + Duration::from_secs(LOGIN_CODE_SECONDS_MAX);
        assert_eq!((sessions.redeem("", now), sessions.redeem(&code[1..], now)), (None, None));
        assert_eq!(sessions.redeem(&code, end), Some("t".to_owned()));
        assert_eq!(sessions.redeem(&code, now), None, "it was used");
        let late = sessions.make_code("t", now).expect("random numbers");
        assert_eq!(sessions.redeem(&late, end + Duration::from_secs(1)), None);
        assert_eq!(sessions.redeem(&late, now), None, "a late try uses it up, too");
    }
}
