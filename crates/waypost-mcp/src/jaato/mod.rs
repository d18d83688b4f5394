//! The tools of the jaato todo plugin, with its names and replies: one plan for each agent, steps that wait for steps of other
//! agents, and events about them.
//!
//! The JSON form of plans, steps and references is defined by the format (`waypost_formats::jaato`).

mod active_plan;
mod arguments;
mod cross_agent_steps;
mod event_mapping;
mod events;
mod piggyback_events;
mod plan;
mod reply;
mod status;
mod step;
mod tools;

pub(crate) use tools::{HINTS, tools};
