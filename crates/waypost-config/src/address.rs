//! URLs and host names: which are usable, and which refer to this machine.

use std::net::IpAddr;

/// Whether a text is an absolute `http` or `https` URL without credentials and without a fragment.
pub fn is_address(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else { return false };
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    is_web && uri.authority().is_some_and(|authority| !authority.as_str().contains('@')) && !url.contains('#')
}

/// Whether a host name or an IP address refers to this machine (`localhost`, `*.localhost`, loopback).
pub fn is_this_machine(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    let named = host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost");
    named || ip_address(host).is_some_and(|address| address.is_loopback())
}

/// Parses a host as an IP address, with or without brackets.
pub fn ip_address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}
