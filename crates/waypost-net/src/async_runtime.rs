//! The one small asynchronous runtime of this process. Started by the first caller that needs the network.

use std::future::Future;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};

/// Returns the runtime; the first call creates it.
pub fn runtime() -> Result<&'static Runtime, String> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("remote").enable_all().build();
        runtime.map_err(|error| format!("no connection to other machines can be made: {error}"))
    });
    made.as_ref().map_err(Clone::clone)
}

/// Blocks until work on the network is done. Panics if called from asynchronous code.
pub fn wait_for<W: Future>(work: W) -> Result<W::Output, String> {
    Ok(runtime()?.block_on(work))
}
