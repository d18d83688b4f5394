//! The tests of operations: records, the set of them, the merge, and what clones do with them.

#![expect(clippy::unwrap_used, reason = "a test that finds nothing where something must be has failed")]

mod clones;
mod commands;
#[path = "../../../waypost-core/tests/it/committed.rs"]
mod committed;
#[expect(dead_code, reason = "these tests need a part of it")]
#[path = "../../../waypost-core/tests/it/kit.rs"]
mod kit;
mod meetings;
#[path = "../../../waypost-core/tests/it/oracle.rs"]
mod oracle;
mod records;
#[expect(dead_code, reason = "these tests need the commands alone")]
#[path = "../../../waypost-core/tests/it/simulation/mod.rs"]
mod simulation;
mod texts;
