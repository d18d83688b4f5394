//! The native toolset: few tools for everything, made for small contexts. Replies are small whatever the size of the plan.

mod arguments;
mod create;
mod draft;
mod edit;
mod events;
mod get;
mod import_export;
mod list;
mod merge_questions;
mod plan_facts;
mod plan_ref;
mod start;
mod task_args;
mod task_tools;
mod tools;

pub(crate) use draft::NAME as PLAN_DRAFT;
pub(crate) use tools::{HINTS, tools};
