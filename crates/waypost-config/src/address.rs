//! URLs and host names: which can be used, and which mean this machine.

use std::net::IpAddr;

/// Whether a text is a full address without a password in it.
pub fn is_address(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else { return false };
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    is_web && uri.authority().is_some_and(|authority| !authority.as_str().contains('@')) && !url.contains('#')
}

/// Whether a name or an address is this machine's own.
pub fn is_this_machine(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    let named = host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost");
    named || ip_address(host).is_some_and(|address| address.is_loopback())
}

/// The IP address that a host is written as, in brackets or without.
pub fn ip_address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}
