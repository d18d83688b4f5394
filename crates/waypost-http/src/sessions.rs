//! Sessions of the dashboard: browsers that signed in with a token. They are in memory only; a restart ends all of
//! them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use subtle::ConstantTimeEq;

use crate::tokens::{TokenError, random};

/// Maximum number of concurrent sessions; a further one ends the oldest.
pub const SESSIONS_MAX: usize = 1_000;
/// Maximum duration of a session.
pub const SESSION_SECONDS_MAX: u64 = 12 * 60 * 60;
/// Random bytes of a session's name, and of its CSRF token.
const SECRET_BYTES: usize = 32;
/// The cookie with the session's name.
const COOKIE: &str = "waypost_session";

/// A signed-in browser.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// The id of the token that it began with.
    pub(crate) token: String,
    /// The CSRF token: the session's own pages send it with every write, and no other page can know it.
    pub(crate) csrf: String,
    began: Instant,
}

/// All sessions, by name.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<String, Session>>);

impl Sessions {
    /// Begins a session; returns the cookie to set.
    pub(crate) fn begin(&self, token: &str, secure: bool) -> Result<String, TokenError> {
        let name = random::<SECRET_BYTES>()?;
        let session =
            Session { token: token.to_owned(), csrf: random::<SECRET_BYTES>()?, began: Instant::now() };
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, session| !session.is_over());
        if sessions.len() >= SESSIONS_MAX {
            let oldest =
                sessions.iter().min_by_key(|(_, session)| session.began).map(|(name, _)| name.clone());
            oldest.and_then(|oldest| sessions.remove(&oldest));
        }
        sessions.insert(name.clone(), session);
        let secure = if secure { "; Secure" } else { "" };
        Ok(format!(
            "{COOKIE}={name}; HttpOnly; SameSite=Strict; Path=/; Max-Age={SESSION_SECONDS_MAX}{secure}"
        ))
    }

    /// Returns the session named by a request's cookies.
    pub(crate) fn of(&self, cookies: Option<&str>) -> Option<Session> {
        let name = named(cookies?)?;
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(name).filter(|session| !session.is_over()).cloned()
    }

    /// Ends the session named by a request's cookies; returns the cookie that removes its name.
    pub(crate) fn end(&self, cookies: Option<&str>) -> String {
        if let Some(name) = cookies.and_then(named) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        }
        format!("{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0")
    }
}

impl Session {
    fn is_over(&self) -> bool {
        self.began.elapsed() > Duration::from_secs(SESSION_SECONDS_MAX)
    }

    /// Whether this is the session's CSRF token, so that one of its pages sent the request.
    pub(crate) fn proves(&self, said: Option<&str>) -> bool {
        said.is_some_and(|said| bool::from(said.as_bytes().ct_eq(self.csrf.as_bytes())))
    }
}

fn named(cookies: &str) -> Option<&str> {
    cookies.split(';').find_map(|one| one.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_known_by_its_cookie_until_it_ends() {
        let sessions = Sessions::default();
        let set = sessions.begin("t1", false).expect("random numbers");
        let cookie = set.split(';').next().expect("a pair").to_owned();
        let sent = format!("other=1; {cookie}");
        let session = sessions.of(Some(&sent)).expect("signed in");
        assert_eq!(session.token, "t1");
        assert!(session.proves(Some(&session.csrf)));
        assert!(!session.proves(Some("")) && !session.proves(None));
        assert!(set.contains("HttpOnly") && set.contains("SameSite=Strict"));
        sessions.end(Some(&sent));
        assert!(sessions.of(Some(&sent)).is_none());
        assert!(sessions.of(Some("waypost_session=")).is_none() && sessions.of(None).is_none());
    }
}
