//! How much differs between two states of a plan, in a few numbers: for those who must not be sent the plan itself.

use serde::Serialize;

use crate::{Difference, LineChange, line_changes};

/// How much changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stat {
    /// Fields of the plan itself, and `order` where siblings stand in another order.
    pub fields: Vec<&'static str>,
    /// Tasks that were not there.
    pub tasks_added: usize,
    /// Tasks that are no longer there.
    pub tasks_removed: usize,
    /// Tasks that say or are something else.
    pub tasks_changed: usize,
    /// Lines of the body that were not there.
    pub body_lines_added: usize,
    /// Lines of the body that are no longer there.
    pub body_lines_removed: usize,
}

impl Stat {
    /// How much these differences are, as [`crate::differences`] lists them: those of one task follow each other.
    pub fn of(differences: &[Difference]) -> Self {
        let mut stat = Self::default();
        let mut last = None;
        for difference in differences {
            match difference {
                Difference::Plan { field, before, after } => {
                    stat.fields.push(field);
                    if *field == "body" {
                        stat.count_lines(before, after);
                    }
                }
                Difference::Added { .. } => stat.tasks_added += 1,
                Difference::Removed { .. } => stat.tasks_removed += 1,
                Difference::Task { task, .. } => {
                    stat.tasks_changed += usize::from(last != Some(task));
                    last = Some(task);
                }
                Difference::Reordered {} => stat.fields.push("order"),
            }
        }
        stat
    }

    fn count_lines(&mut self, before: &str, after: &str) {
        for change in line_changes(before, after) {
            match change {
                LineChange::New(_) => self.body_lines_added += 1,
                LineChange::Old(_) => self.body_lines_removed += 1,
                LineChange::Same(_) | LineChange::Gap(_) => {}
            }
        }
    }

    /// The same in words.
    pub fn words(&self) -> String {
        let counts =
            [(self.tasks_added, "added"), (self.tasks_removed, "removed"), (self.tasks_changed, "changed")];
        let mut parts: Vec<String> = Vec::new();
        for (count, word) in counts.into_iter().filter(|(count, _)| *count > 0) {
            parts.push(format!("{count} task{} {word}", if count == 1 { "" } else { "s" }));
        }
        for field in &self.fields {
            parts.push(match *field {
                "body" => format!("body +{} -{} lines", self.body_lines_added, self.body_lines_removed),
                field => field.to_owned(),
            });
        }
        if parts.is_empty() { "nothing differs".to_owned() } else { parts.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TaskId;

    #[test]
    fn differences_are_told_in_a_few_words() {
        let task = |id: &str| TaskId::new(id).unwrap();
        let field = |id: &str, field| Difference::Task {
            task: task(id),
            field,
            before: String::new(),
            after: "x".into(),
        };
        let differences = [
            Difference::Plan { field: "body", before: "a\nb".into(), after: "a\nc\nd".into() },
            Difference::Added { task: task("t9"), description: "new".into() },
            field("t1", "notes"),
            field("t1", "status"),
            field("t2", "status"),
        ];
        assert_eq!(Stat::of(&differences).words(), "1 task added, 2 tasks changed, body +2 -1 lines");
        assert_eq!(Stat::of(&[]).words(), "nothing differs");
    }
}
