//! The tests of the planner, in one binary.

#![expect(clippy::unwrap_used, reason = "a test that finds nothing where something must be has failed")]
