//! Draws a plan as text: the tree of its tasks and their dependencies. Reads a draft, so a file can be drawn as well.

use std::collections::HashMap;

use waypost_core::{Draft, Refinement, Status, Task, TaskId};

use super::text;
use super::tree::dependency_names;

/// Maximum columns of a description.
const DESCRIPTION_COLUMNS: usize = 60;
/// Maximum depth that is indented; deeper tasks are drawn at the last level.
const LEVELS_DRAWN_MAX: usize = 20;

pub fn draw(draft: &Draft) -> String {
    let mut children: HashMap<Option<&TaskId>, Vec<&Task>> = HashMap::new();
    for task in &draft.tasks {
        children.entry(task.spec.parent.as_ref()).or_default().push(task);
    }
    let mut drawn = String::new();
    let title = if draft.spec.title.is_empty() { "(untitled)" } else { &draft.spec.title };
    drawn.push_str(&text::one_line(title));
    drawn.push('\n');
    // The remaining tasks to draw: the task, the guides before it, and whether it is the last of its siblings.
    let mut rest: Vec<(&Task, String, bool)> = Vec::new();
    push(&mut rest, children.remove(&None).unwrap_or_default(), "");
    while let Some((task, guides, is_last)) = rest.pop() {
        let own = if is_last { "└── " } else { "├── " };
        drawn.push_str(&format!("{guides}{own}{}\n", task_line(task)));
        let deep = guides.chars().count() >= 4 * LEVELS_DRAWN_MAX;
        let below = if deep {
            guides.clone()
        } else {
            format!("{guides}{}", if is_last { "    " } else { "│   " })
        };
        push(&mut rest, children.remove(&Some(&task.spec.id)).unwrap_or_default(), &below);
    }
    drawn.push_str("[A] small enough, [D] done, [F] failed, [P] pending, [R] running, [S] skipped, [C] cancelled; ← waits for\n");
    drawn
}

fn push<'a>(rest: &mut Vec<(&'a Task, String, bool)>, tasks: Vec<&'a Task>, guides: &str) {
    let last = tasks.len().saturating_sub(1);
    let tasks = tasks.into_iter().enumerate().rev();
    rest.extend(tasks.map(|(place, task)| (task, guides.to_owned(), place == last)));
}

fn task_line(task: &Task) -> String {
    let spec = &task.spec;
    let description = text::excerpt(&spec.description, DESCRIPTION_COLUMNS);
    let mut words = format!("[{}] {}  {description}", letter(task), text::one_line(spec.id.as_str()));
    if !spec.depends_on.is_empty() {
        words.push_str(&format!("  ← {}", dependency_names(&spec.depends_on)));
    }
    words
}

fn letter(task: &Task) -> char {
    let refinement = task.spec.thinking.as_ref().and_then(|thinking| thinking.refinement);
    match (task.state.status, refinement) {
        (Status::Pending, _) if task.spec.skip => 'S',
        (Status::Pending, Some(Refinement::Atomic)) => 'A',
        (Status::Pending, Some(Refinement::Decomposing | Refinement::Decomposed) | None) => 'P',
        (Status::Running, _) => 'R',
        (Status::Done, _) => 'D',
        (Status::Failed, _) => 'F',
        (Status::Skipped, _) => 'S',
        (Status::Cancelled, _) => 'C',
    }
}

#[cfg(test)]
mod tests {
    use waypost_core::{Dependency, Task, TaskSpec};

    use super::*;

    #[test]
    fn the_tree_and_what_waits_for_what_are_drawn() {
        let mut draft = Draft::new("Build it");
        let id = |id: &str| TaskId::new(id).unwrap();
        for (name, parent, on) in [
            ("a", None, None),
            ("a1", Some("a"), None),
            ("a2", Some("a"), Some("a1")),
            ("b", None, Some("a")),
        ] {
            let mut spec = TaskSpec::new(id(name), format!("do {name}"));
            spec.parent = parent.map(id);
            spec.depends_on = on.map(|on| Dependency::Task(id(on))).into_iter().collect();
            draft.tasks.push(Task::new(spec));
        }
        draft.tasks[1].state.status = Status::Done;
        let drawn = draw(&draft);
        let tree: Vec<&str> = drawn.lines().take(5).collect();
        assert_eq!(
            tree,
            [
                "Build it",
                "├── [P] a  do a",
                "│   ├── [D] a1  do a1",
                "│   └── [P] a2  do a2  ← a1",
                "└── [P] b  do b  ← a"
            ]
        );
    }
}
