//! A few tools for everything, made for small contexts: answers are small whatever the size of the plan.

mod arguments;
mod create;
mod draft;
mod edit;
mod events;
mod exchange;
mod get;
mod hold;
mod list;
mod plan_facts;
mod start;
mod tasks;
mod tools;
mod which;
mod work;

pub(crate) use draft::NAME as PLAN_DRAFT;
pub(crate) use tools::{HINTS, tools};
