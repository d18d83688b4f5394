//! Shared plans on a branch, through the real git.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod branch;
mod changed_files;
mod kit;
mod remote;
mod task_commits;
