//! What all commands of the `waypost` program share: which workspace, configuration and store a call means, who calls, how
//! output and errors look, and how plan files are read and kept in step.

#![warn(clippy::wildcard_enum_match_arm)]

pub mod actor;
pub mod approval_prompt;
pub mod background_sync;
pub mod context;
pub mod damage;
pub mod error;
pub mod files;
pub mod foreign_folders;
pub mod git_config;
pub mod links;
pub mod load_config;
pub mod options;
pub mod output;
pub mod plan_folder;
pub mod plan_input;
pub mod prompt;
pub mod question_prompt;
pub mod repository;
pub mod runner;
pub mod shared_branch;
pub mod signals;
pub mod signing;
mod store_copy;
pub mod store_location;
pub mod style;
pub mod trust_prompt;
pub mod view;
pub mod workspace_config;
