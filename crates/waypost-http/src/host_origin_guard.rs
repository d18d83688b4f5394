//! Checks the Host and Origin headers and the target of a request. Without these checks, any web page could reach a
//! server on the reader's own machine (DNS rebinding).

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri};

/// The names of a server on this machine.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The accepted hosts and origins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostOriginGuard {
    hosts: Vec<(String, Option<u16>)>,
    origins: Vec<String>,
}

impl HostOriginGuard {
    /// Accepts requests for this machine only.
    pub fn local() -> Self {
        Self { hosts: LOCAL.map(|name| (name.to_owned(), None)).into(), origins: Vec::new() }
    }

    /// Also accepts requests for `host`: a name, or a name and a port. Returns `false` if `host` is neither.
    #[must_use]
    pub fn allow_host(&mut self, host: &str) -> bool {
        let named = host_of(host);
        let is_name = named.is_some();
        self.hosts.extend(named);
        is_name
    }

    /// Also accepts pages from this origin (`https://example.org`). Returns `false` if it is not an origin.
    #[must_use]
    pub fn allow_origin(&mut self, origin: &str) -> bool {
        let origin = origin.trim_end_matches('/').to_ascii_lowercase();
        let rest = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        let is_origin = rest.is_some_and(|host| host_of(host).is_some());
        if is_origin {
            self.origins.push(origin);
        }
        is_origin
    }

    /// Accepts a request with this target and these headers, or returns the status to refuse it with.
    pub(crate) fn admits(&self, target: &Uri, headers: &HeaderMap) -> Result<(), StatusCode> {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err(StatusCode::BAD_REQUEST) };
        let host = host.to_str().map_err(|_| StatusCode::BAD_REQUEST)?;
        let (name, port) = host_of(host).ok_or(StatusCode::BAD_REQUEST)?;
        let known = |(known, only): &(String, Option<u16>)| {
            *known == name && only.is_none_or(|only| Some(only) == port)
        };
        if !self.hosts.iter().any(known) {
            return Err(StatusCode::FORBIDDEN);
        }
        // A target in absolute form counts more than `Host` (RFC 9112, 3.2.2), so both must name the same server.
        if target.authority().is_some_and(|named| host_of(named.as_str()) != Some((name, port))) {
            return Err(StatusCode::BAD_REQUEST);
        }
        for origin in headers.get_all(ORIGIN) {
            let origin = origin.to_str().map_err(|_| StatusCode::FORBIDDEN)?.to_ascii_lowercase();
            let own = ["http", "https"]
                .iter()
                .any(|scheme| origin == format!("{scheme}://{}", host.to_ascii_lowercase()));
            if !own && !self.origins.contains(&origin) {
                return Err(StatusCode::FORBIDDEN);
            }
        }
        Ok(())
    }
}

/// Returns the origin of the page of this server that sent a request; `None` if the browser names no origin, several, or
/// another site. [`HostOriginGuard::admits`] has checked that the origin is one of this server.
pub(crate) fn page_origin(headers: &HeaderMap) -> Option<String> {
    let mut origins = headers.get_all(ORIGIN).iter();
    let (Some(origin), None) = (origins.next(), origins.next()) else { return None };
    let is_own = headers.get_all("sec-fetch-site").iter().all(|site| site == "same-origin");
    origin.to_str().ok().filter(|_| is_own).map(str::to_ascii_lowercase)
}

/// Returns the name and the port of an authority, in lower case and without brackets.
fn host_of(text: &str) -> Option<(String, Option<u16>)> {
    let bare = text.parse::<std::net::Ipv6Addr>().ok().map(|address| (address.to_string(), None));
    bare.or_else(|| {
        let authority =
            Authority::try_from(text).ok().filter(|authority| !authority.as_str().contains('@'))?;
        let name = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        (!name.is_empty()).then(|| (name, authority.port_u16()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(guard: &HostOriginGuard, host: &str, origin: Option<&str>, expected: Result<(), u16>) {
        let mut headers = HeaderMap::new();
        if !host.is_empty() {
            headers.insert(HOST, host.parse().unwrap());
        }
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        let admitted = guard.admits(&Uri::from_static("/"), &headers);
        assert_eq!(admitted.map_err(|status| status.as_u16()), expected, "{host} {origin:?}");
    }

    #[test]
    fn only_names_of_this_machine_are_known_unless_others_are_allowed() {
        let mut guard = HostOriginGuard::local();
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]:9"] {
            check(&guard, host, None, Ok(()));
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "192.168.0.1"] {
            check(&guard, host, None, Err(403));
        }
        check(&guard, "", None, Err(400));
        check(&guard, "a@localhost", None, Err(400));
        assert!(guard.allow_host("plans.example") && guard.allow_host("other.example:8443"));
        assert!(!guard.allow_host("a b") && !guard.allow_host(""));
        check(&guard, "plans.example:1", None, Ok(()));
        check(&guard, "other.example:8443", None, Ok(()));
        check(&guard, "other.example", None, Err(403));
    }

    #[test]
    fn only_pages_of_this_server_are_let_in_unless_others_are_allowed() {
        let mut guard = HostOriginGuard::local();
        check(&guard, "localhost:80", Some("http://localhost:80"), Ok(()));
        for origin in
            ["http://localhost:81", "http://evil.example", "null", "http://localhost:80.evil.example"]
        {
            check(&guard, "localhost:80", Some(origin), Err(403));
        }
        assert!(guard.allow_origin("https://app.example/"));
        assert!(!guard.allow_origin("app.example") && !guard.allow_origin("*"));
        check(&guard, "localhost:80", Some("https://app.example"), Ok(()));
        check(&guard, "localhost:80", Some("http://app.example"), Err(403));
    }

    #[test]
    fn two_hosts_are_none() {
        let mut headers = HeaderMap::new();
        headers.append(HOST, "localhost".parse().unwrap());
        headers.append(HOST, "evil.example".parse().unwrap());
        let admitted = HostOriginGuard::local().admits(&Uri::from_static("/"), &headers);
        assert_eq!(admitted, Err(StatusCode::BAD_REQUEST));
    }

    #[test]
    fn a_target_in_absolute_form_names_the_same_host() {
        #[track_caller]
        fn check(target: &'static str, expected: Result<(), StatusCode>) {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "localhost:80".parse().unwrap());
            assert_eq!(
                HostOriginGuard::local().admits(&Uri::from_static(target), &headers),
                expected,
                "{target}"
            );
        }
        check("http://localhost:80/api", Ok(()));
        check("http://LOCALHOST:80/api", Ok(()));
        check("http://evil.example/api", Err(StatusCode::BAD_REQUEST));
        check("http://localhost:81/api", Err(StatusCode::BAD_REQUEST));
        check("http://a@localhost:80/api", Err(StatusCode::BAD_REQUEST));
    }

    #[test]
    fn a_page_names_one_origin_and_is_of_the_same_origin() {
        #[track_caller]
        fn check(said: &[(&'static str, &'static str)], expected: Option<&str>) {
            let mut headers = HeaderMap::new();
            for (name, value) in said {
                headers.append(*name, value.parse().unwrap());
            }
            assert_eq!(page_origin(&headers).as_deref(), expected, "{said:?}");
        }
        let own = ("origin", "http://Localhost:80");
        check(&[own], Some("http://localhost:80"));
        check(&[own, ("sec-fetch-site", "same-origin")], Some("http://localhost:80"));
        check(&[], None);
        check(&[own, own], None);
        for site in ["same-site", "cross-site", "none", ""] {
            check(&[own, ("sec-fetch-site", site)], None);
        }
        check(&[own, ("sec-fetch-site", "same-origin"), ("sec-fetch-site", "none")], None);
    }
}
