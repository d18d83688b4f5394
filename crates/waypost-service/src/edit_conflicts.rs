//! What the author of a file and the plan that it belongs to have both changed since the file was last read.

use std::collections::BTreeMap;

use waypost_core::{Difference, Draft, Status, TaskId, differences};

/// Returns the places that differ in the file and in the plan, each from what the file said before. All three are as the format
/// of the file has them.
pub fn edit_conflicts(said: &Draft, file: &Draft, plan: &Draft) -> Vec<String> {
    let [said, file, plan] = [said, file, plan].map(without_running);
    let (of_file, of_plan) = (changes(&said, &file), changes(&said, &plan));
    let is_conflict =
        |(place, value): &(String, String)| of_plan.get(place).is_some_and(|other| other != value);
    let mut conflicts: Vec<String> =
        of_file.clone().into_iter().filter(is_conflict).map(|(place, _)| place).collect();
    // A task that is gone in one of them, and was changed in the other.
    for (gone, changed) in [(&of_file, &of_plan), (&of_plan, &of_file)] {
        let removed = gone.keys().filter_map(|place| place.strip_suffix(REMOVED));
        let is_changed = |task: &&str| changed.keys().any(|place| place.starts_with(&format!("{task}: ")));
        conflicts.extend(removed.filter(is_changed).map(|task| format!("{task}{REMOVED}")));
    }
    conflicts.sort();
    conflicts.dedup();
    conflicts
}

/// What runs elsewhere is pending here, which is nobody's change.
fn without_running(draft: &Draft) -> Draft {
    let mut draft = draft.clone();
    for task in &mut draft.tasks {
        if task.state.status == Status::Running {
            task.state.status = Status::Pending;
        }
    }
    draft
}

/// Returns how a task is named that one side has removed and the other one changed.
pub fn removed_task(task: &TaskId) -> String {
    format!("{task}{REMOVED}")
}

/// Stands behind the id of a task that is gone.
const REMOVED: &str = " (removed)";

/// Returns what was changed, by its place. Hints about how a file was written are no changes.
fn changes(from: &Draft, to: &Draft) -> BTreeMap<String, String> {
    let place = |difference: Difference| match difference {
        Difference::Plan { field: "foreign" | "phase" | "approval" | "archived", .. } => None,
        Difference::Task { field: "foreign", .. } | Difference::Reordered {} => None,
        Difference::Plan { field, after, .. } => Some((format!("the plan's {field}"), after)),
        Difference::Added { task, description } => Some((format!("{task}: description"), description)),
        Difference::Removed { task, .. } => Some((removed_task(&task), String::new())),
        Difference::Task { task, field, after, .. } => Some((format!("{task}: {field}"), after)),
    };
    differences(from, to).into_iter().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use waypost_core::{Draft, Task, TaskId, TaskSpec};

    use super::edit_conflicts;

    fn draft(tasks: &[(&str, &str)]) -> Draft {
        let task = |(id, words): &(&str, &str)| Task::new(TaskSpec::new(TaskId::new(*id).unwrap(), *words));
        Draft { tasks: tasks.iter().map(task).collect(), ..Draft::new("p") }
    }

    #[test]
    fn only_what_both_have_changed_to_something_else_is_a_conflict() {
        let said = draft(&[("a", "one"), ("b", "two"), ("c", "three")]);
        let check = |file: &[(&str, &str)], plan: &[(&str, &str)], expected: &[&str]| {
            assert_eq!(edit_conflicts(&said, &draft(file), &draft(plan)), expected, "{file:?} {plan:?}");
        };
        let same = [("a", "one"), ("b", "two"), ("c", "three")];
        check(&[("a", "1"), ("b", "two"), ("c", "three")], &same, &[]);
        check(&same, &[("a", "1"), ("b", "two"), ("c", "three")], &[]);
        check(&[("a", "1"), ("b", "two"), ("c", "three")], &[("a", "one"), ("b", "2"), ("c", "three")], &[]);
        check(
            &[("a", "1"), ("b", "2"), ("c", "three")],
            &[("a", "1"), ("b", "zwei"), ("c", "three")],
            &["b: description"],
        );
        check(&[("a", "one"), ("b", "two")], &[("a", "one"), ("b", "two"), ("c", "3")], &["c (removed)"]);
        check(&[("a", "one"), ("b", "2"), ("c", "three")], &[("a", "one"), ("c", "three")], &["b (removed)"]);
        check(&[("a", "one"), ("b", "two")], &[("a", "one"), ("b", "two")], &[]);
    }
}
