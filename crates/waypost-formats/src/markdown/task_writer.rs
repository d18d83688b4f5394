//! Writes tasks as the lines that `task_parser` reads, in the most readable form that is read back as the same task.
//!
//! Knows lines and marks, not the document around them.

use std::fmt::Write;

use serde::Serialize;
use waypost_core::{Dependency, DependencyRule, LockMode, Status, Task, TaskId};

use crate::markdown::task_parser::{self, Style, first_places, is_plain_id, mark_of};

/// Maximum number of levels shown by indentation. Deeper tasks name their parent, so that a deep chain stays small.
const INDENTED_LEVELS_MAX: usize = 24;
/// Maximum number of dependencies at the end of a task's line.
const INLINE_DEPENDENCIES_MAX: usize = 6;
/// Maximum bytes of the dependencies at the end of a task's line.
const INLINE_BYTES_MAX: usize = 80;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    /// All texts verbatim.
    Open,
    /// The description as JSON, the others verbatim.
    QuotedDescription,
    /// All texts as JSON.
    Quoted,
}

/// One task in the order of the tree.
pub(crate) struct Place {
    /// Its index in the list of tasks.
    pub(crate) index: usize,
    /// Levels of indentation.
    pub(crate) level: usize,
    /// Whether indentation alone would give the wrong parent.
    pub(crate) names_parent: bool,
}

/// Returns the tasks as a tree, parents before their children, siblings in order. Every task occurs once, including those in a
/// cycle of parents.
pub(crate) fn tree(tasks: &[Task]) -> Vec<Place> {
    let places = first_places(tasks);
    let parent_of = |n: usize| tasks[n].spec.parent.as_ref().and_then(|parent| places.get(parent)).copied();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); tasks.len()];
    for n in 0..tasks.len() {
        // Children go below the first task with the parent's id; a task is not its own child.
        if let Some(parent) = parent_of(n).filter(|&parent| parent != n) {
            children[parent].push(n);
        }
    }
    let mut seen = vec![false; tasks.len()];
    let mut order = Vec::with_capacity(tasks.len());
    let roots = (0..tasks.len()).filter(|&n| parent_of(n).is_none());
    let mut walk = |root: usize, order: &mut Vec<Place>| {
        let mut stack = vec![(root, 0)];
        while let Some((n, depth)) = stack.pop() {
            if std::mem::replace(&mut seen[n], true) {
                continue;
            }
            let orphan = depth == 0 && tasks[n].spec.parent.is_some();
            let level = depth.min(INDENTED_LEVELS_MAX);
            order.push(Place { index: n, level, names_parent: orphan || depth > INDENTED_LEVELS_MAX });
            stack.extend(
                children[n].iter().rev().filter(|&&child| !seen[child]).map(|&child| (child, depth + 1)),
            );
        }
    };
    for root in roots {
        walk(root, &mut order);
    }
    // The remaining tasks are in cycles of parents.
    for n in 0..tasks.len() {
        walk(n, &mut order);
    }
    order
}

/// Writes the tasks, one item each.
pub(crate) fn write(tasks: &[Task]) -> String {
    let mut text = String::new();
    for Place { index, level, names_parent } in tree(tasks) {
        let task = &tasks[index];
        let mut expected = task.clone();
        if !names_parent {
            expected.spec.parent = None;
        }
        let readable = [Quoting::Open, Quoting::QuotedDescription]
            .into_iter()
            .map(|quoting| item(&expected, level, quoting))
            .find(|lines| reads_back(lines, &expected));
        text.push_str(&readable.unwrap_or_else(|| item(&expected, level, Quoting::Quoted)));
    }
    text
}

fn reads_back(lines: &str, expected: &Task) -> bool {
    let back = task_parser::read(lines.split_inclusive('\n').map(|line| (1, line)), Style::Full);
    back.problems.is_empty() && back.notes.is_empty() && back.tasks.len() == 1 && back.tasks[0] == *expected
}

fn item(task: &Task, level: usize, quoting: Quoting) -> String {
    let (spec, state) = (&task.spec, &task.state);
    let margin = "  ".repeat(level);
    let mut text = format!("{margin}- [{}] {}:", mark_of(state.status), id(&spec.id));
    let mut lines = Lines { margin: &margin, text: String::new() };

    let mut description = spec.description.split('\n');
    let first = match quoting {
        Quoting::Open => description.next().unwrap_or_default().to_owned(),
        Quoting::QuotedDescription | Quoting::Quoted => json(&spec.description),
    };
    if !first.is_empty() {
        text.push(' ');
        text.push_str(&first);
    }
    let quoting = match quoting {
        Quoting::Open => {
            description.for_each(|more| lines.marked('|', more));
            Quoting::Open
        }
        Quoting::QuotedDescription => Quoting::Open,
        Quoting::Quoted => Quoting::Quoted,
    };

    let after_inline = quoting == Quoting::Open && after_fits(&spec.depends_on);
    let group = group(task, after_inline);
    if !group.is_empty() {
        text.push_str("  (");
        text.push_str(&group.join("; "));
        text.push(')');
    }
    text.push('\n');

    if let Some(parent) = &spec.parent {
        lines.attribute("parent", &text_value(parent.as_str(), quoting));
    }
    if !spec.depends_on.is_empty() && !after_inline {
        let plain = quoting == Quoting::Open && spec.depends_on.iter().all(is_plain_dependency);
        lines.attribute("after", &list(&spec.depends_on, plain));
    }
    if quoting == Quoting::Quoted && !spec.notes.is_empty() {
        lines.attribute("notes", &json(&spec.notes));
    } else if !spec.notes.is_empty() {
        spec.notes.split('\n').for_each(|note| lines.marked('>', note));
    }
    if let Some(tools) = &spec.tools {
        let plain =
            quoting == Quoting::Open && !tools.is_empty() && tools.iter().all(|tool| is_plain_word(tool));
        lines.attribute("tools", &if plain { tools.join(", ") } else { json(tools) });
    }
    if !spec.locks.is_empty() {
        let plain = quoting == Quoting::Open
            && spec.locks.iter().all(|lock| lock.mode == LockMode::Exclusive && is_plain_word(&lock.key));
        let keys = || spec.locks.iter().map(|lock| lock.key.as_str()).collect::<Vec<_>>().join(", ");
        lines.attribute("locks", &if plain { keys() } else { json(&spec.locks) });
    }
    lines.json("work", spec.work.as_ref());
    lines.json("check", spec.check.as_ref());
    lines.json("retry", spec.retry.as_ref());
    if let Some(seconds) = spec.timeout_seconds {
        lines.attribute("timeout_seconds", &seconds.to_string());
    }
    let texts = [
        ("provides", &spec.provides),
        ("result", &state.result),
        ("error", &state.error),
        ("reason", &state.reason),
    ];
    for (key, value) in texts {
        if let Some(value) = value {
            lines.attribute(key, &text_value(value, quoting));
        }
    }
    lines.json("thinking", spec.thinking.as_ref());
    lines.json("foreign", (!spec.foreign.is_empty()).then_some(&spec.foreign));
    let mut rest = state.clone();
    rest.status = Status::default();
    (rest.result, rest.error, rest.reason) = (None, None, None);
    if rest != waypost_core::TaskState::default() {
        lines.json("state", Some(&without_status(&rest)));
    }
    text.push_str(&lines.text);
    text
}

/// Returns the parts of the parentheses at the end of a task's line.
pub(crate) fn group(task: &Task, with_dependencies: bool) -> Vec<String> {
    let spec = &task.spec;
    let mut parts = Vec::new();
    if with_dependencies && !spec.depends_on.is_empty() {
        parts.push(format!("after: {}", list(&spec.depends_on, true)));
    }
    match spec.when {
        DependencyRule::AllDone => {}
        DependencyRule::AllFinished => parts.push("when: all_finished".to_owned()),
        DependencyRule::AnyDone => parts.push("when: any_done".to_owned()),
    }
    if let Some(complexity) = spec.complexity {
        parts.push(format!("complexity: {}", complexity.as_str()));
    }
    if spec.priority != 0 {
        parts.push(format!("priority: {}", spec.priority));
    }
    if spec.skip {
        parts.push("skip".to_owned());
    }
    parts
}

/// Formats an id as it is written before the colon.
pub(crate) fn id(id: &TaskId) -> String {
    if is_plain_id(id.as_str()) { id.to_string() } else { json(id) }
}

/// Whether a dependency can be written as a plain word.
pub(crate) fn is_plain_dependency(dependency: &Dependency) -> bool {
    dependency.here().is_some_and(|id| is_plain_id(id.as_str()))
}

fn after_fits(depends_on: &[Dependency]) -> bool {
    depends_on.len() <= INLINE_DEPENDENCIES_MAX
        && depends_on.iter().all(is_plain_dependency)
        && list(depends_on, true).len() <= INLINE_BYTES_MAX
}

fn list(depends_on: &[Dependency], plain: bool) -> String {
    if plain {
        depends_on.iter().map(Dependency::to_string).collect::<Vec<_>>().join(", ")
    } else {
        json(&depends_on)
    }
}

fn is_plain_word(word: &str) -> bool {
    !word.is_empty()
        && word.trim() == word
        && !word.starts_with(['[', '"'])
        && !word.contains([',', '\n', '\r'])
}

fn text_value(text: &str, quoting: Quoting) -> String {
    let plain = quoting == Quoting::Open
        && !text.is_empty()
        && text.trim() == text
        && !text.starts_with('"')
        && !text.chars().any(char::is_control);
    if plain { text.to_owned() } else { json(&text) }
}

fn without_status(state: &waypost_core::TaskState) -> serde_json::Value {
    let mut value = serde_json::to_value(state).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.shift_remove("status");
    }
    value
}

fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// The lines below an item.
struct Lines<'a> {
    margin: &'a str,
    text: String,
}

impl Lines<'_> {
    fn marked(&mut self, mark: char, line: &str) {
        let gap = if line.is_empty() { "" } else { " " };
        // Writing into a String cannot fail.
        let _ = writeln!(self.text, "{}  {mark}{gap}{line}", self.margin);
    }

    fn attribute(&mut self, key: &str, value: &str) {
        let _ = writeln!(self.text, "{}  {key}: {value}", self.margin);
    }

    fn json(&mut self, key: &str, value: Option<&impl Serialize>) {
        if let Some(value) = value {
            self.attribute(key, &json(value));
        }
    }
}
