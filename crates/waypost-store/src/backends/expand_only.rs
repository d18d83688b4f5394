//! The rule for migrations that processes of older builds survive, which have the store open: they only add what such a
//! process can ignore. A step that does more raises `READABLE_BY`, and then the processes of older builds end.

/// Returns the first line of a step that a process of an older build might not survive.
pub(super) fn contraction(step: &str) -> Option<&str> {
    let is_statement = |line: &&str| !line.trim_start().starts_with("--");
    step.lines().filter(is_statement).find(|line| {
        let words = line.to_uppercase();
        let takes_away = ["DROP ", "RENAME ", "TRIGGER ", "UNIQUE ", "CONSTRAINT "]
            .iter()
            .any(|word| words.contains(word));
        let demands =
            words.contains("ADD COLUMN") && words.contains("NOT NULL") && !words.contains("DEFAULT");
        takes_away || demands
    })
}

#[test]
fn a_step_that_takes_away_or_demands_something_is_a_contraction() {
    for (step, is_contraction) in [
        ("ALTER TABLE plans ADD COLUMN asking INTEGER NOT NULL DEFAULT 0;", false),
        ("-- Nothing is dropped: DROP TABLE ready;\nCREATE TABLE pruned (plan INTEGER PRIMARY KEY);", false),
        ("CREATE INDEX waits_by_plan ON waits (on_plan);", false),
        ("ALTER TABLE plans ADD COLUMN asking INTEGER NOT NULL;", true),
        ("CREATE TABLE x (a INTEGER);\nDROP TABLE ready;", true),
        ("ALTER TABLE plans RENAME COLUMN a TO b;", true),
        ("CREATE TRIGGER log_has_hashes BEFORE INSERT ON log", true),
        ("CREATE UNIQUE INDEX log_by_plan ON log (plan, version);", true),
    ] {
        assert_eq!(contraction(step).is_some(), is_contraction, "{step}");
    }
}
