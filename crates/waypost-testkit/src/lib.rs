//! For tests only: a seeded random source, plans of common shapes, a scripted model server, a real PostgreSQL, a real
//! Slurm cluster, a proxy with faults, and the paths of data observed from other programs.

#![warn(clippy::wildcard_enum_match_arm)]

pub mod fake_llm;
pub mod pgbouncer;
mod plan_fixtures;
pub mod postgres;
mod proxy;
mod rng;
pub mod slurm;
mod supervisor;

pub use plan_fixtures::{chain, fan_out, id, layered, plan_of, task};
pub use proxy::Proxy;
pub use rng::SeededRng;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variables by which a program that was built with the feature `injected` acts for the account `ada` with this home,
/// without a terminal and not inside the agent host that may run the tests (`waypost-account/src/injected.rs`).
pub fn injected_account(home: &Path) -> [(&'static str, OsString); 4] {
    [
        ("WAYPOST_INJECTED_NAME", "ada".into()),
        ("WAYPOST_INJECTED_HOME", home.into()),
        ("WAYPOST_INJECTED_ANCESTORS", "".into()),
        ("WAYPOST_INJECTED_TERMINAL", "".into()),
    ]
}

/// The variable with the folders of the programs that tests may use.
pub const PROGRAMS: &str = "WAYPOST_TEST_PATH";

/// The PATH of what tests start: the folders of the system, or those of a machine that has fewer programs.
pub fn program_path() -> String {
    std::env::var(PROGRAMS).unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned())
}

/// The directory with observed inputs and outputs of other programs, if it lies beside this checkout. Tests that read
/// it report when it is missing; the project's own fixtures cover the same shapes.
pub fn observed_data() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/compat/data");
    root.is_dir().then_some(root)
}

/// The directory with the documents that define the formats, if it lies beside this checkout.
pub fn seed_documents() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/seeds");
    root.is_dir().then_some(root)
}
