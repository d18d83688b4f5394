//! HTTP for connections to other machines: the client, proxies and the asynchronous runtime.

#![warn(clippy::wildcard_enum_match_arm)]

mod async_runtime;
pub mod http_client;
mod proxy;
mod tls;

pub use async_runtime::{runtime, wait_for};
pub use proxy::Route;
pub use tls::TlsOptions;
