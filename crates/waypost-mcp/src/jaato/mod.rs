//! The tools of the jaato todo plugin, under their names and with their answers: one plan for each agent, steps that wait
//! for steps of other agents, and events about them.
//!
//! What a plan, a step and a reference look like is known to the format (`waypost_formats::jaato`).

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
