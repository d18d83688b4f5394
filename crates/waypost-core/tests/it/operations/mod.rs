//! Operations: records, the set of them, the merge, and what clones do with them.

mod clones;
mod meetings;
mod records;
mod texts;
