//! The contract of the backends, and what happens when processes, files and rows come to grief.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod contract;
mod copying;
mod damaged_files;
mod damaged_rows;
mod faults;
mod interrupted_commits;
mod kit;
mod merged_files;
mod place;
mod postgres;
mod processes;
mod removed_store;
mod repaired_files;
mod wrapped;
