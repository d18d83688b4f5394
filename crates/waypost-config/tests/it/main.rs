//! Configuration files: what they mean, and what is wrong with them.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod config;
mod deploy;
mod model_config;
mod pinned_files;
