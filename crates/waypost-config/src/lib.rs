//! The configuration of the operator: queues, executors, retries, leases, limits, the approval policy.
//!
//! Loading is pure: the caller reads files and the environment and passes text in. Only [`ExecutionEnv`] reads files,
//! for secrets, and [`PinnedFiles`]. Every key is described in `docs/configuration.md`; an unknown key is an error with its file, its line
//! and the nearest known name.

#![warn(clippy::wildcard_enum_match_arm)]

mod address;
mod definition;
mod env_overrides;
mod execution_env;
mod executor;
mod flat_settings;
mod input_schema;
mod layer;
mod load;
mod models;
mod only_tightens;
mod parse;
mod pinned_files;
mod problem;
mod resolve;
mod secret_files;
mod settings;
mod template;

pub use address::{ip_address, is_address, is_this_machine};
pub use definition::{Definition, DefinitionRole, Definitions};
pub use execution_env::{ExecutionEnv, path_inside};
pub use executor::*;
pub use input_schema::{Shape, VIOLATIONS_MAX};
pub use layer::{Layer, Origin, ReadFile};
pub use models::*;
pub use parse::{PROMPT_MARK, todo_store};
pub use pinned_files::{PINNED_BYTES_MAX, PINNED_FILES_MAX, PinnedFiles};
pub use problem::{BadConfig, ConfigProblem};
pub use resolve::{ResolvedWork, UnknownTarget, inputs, resolve, resolve_check, worker_name, worker_named};
pub use settings::*;
pub use template::Template;
