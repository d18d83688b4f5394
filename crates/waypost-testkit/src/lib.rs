//! For tests only: seeded dice, plan shapes, a scripted server of models, a real PostgreSQL, a real Slurm cluster, and where
//! the observed data of other programs lies.

pub mod fake_llm;
mod plan_fixtures;
pub mod postgres;
mod rng;
pub mod slurm;
mod supervisor;

pub use plan_fixtures::{chain, fan_out, id, layered, plan_of, task};
pub use rng::SeededRng;

use std::path::PathBuf;

/// The folder with observed inputs and outputs of other programs, when this checkout has it beside it.
/// Tests that read it say so when it is not there; the project's own fixtures cover the same shapes.
pub fn observed_data() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/compat/data");
    root.is_dir().then_some(root)
}

/// The folder with the documents that the formats come from, when this checkout has it beside it.
pub fn seed_documents() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/seeds");
    root.is_dir().then_some(root)
}
