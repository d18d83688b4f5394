//! A plan's tasks in levels: the tasks of a level depend only on earlier levels.

use waypost_core::{Plan, Task, TaskId, critical_path, levels};

use super::tree::{self, Frame};
use super::{Shown, text};
use crate::error::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::style::Look;

/// Maximum number of names shown of the longest chain.
const CHAIN_MAX: usize = 12;

pub struct Levels {
    /// The tasks of each level.
    pub levels: Vec<Vec<TaskId>>,
    /// The longest chain of dependent tasks.
    pub chain: Vec<TaskId>,
}

pub fn levels_of(plan: &Plan) -> Outcome<Levels> {
    let draft = plan.outline();
    let stuck =
        |problem: waypost_core::Problem| Failure::new(Exit::Invalid, problem.to_string(), problem.hint());
    Ok(Levels { levels: levels(&draft).map_err(stuck)?, chain: critical_path(&draft).map_err(stuck)? })
}

/// Prints the levels, up to `limit` tasks. Returns how many were omitted.
pub fn print(of: &Shown<'_>, found: &Levels, limit: usize, out: &mut Output) -> usize {
    let mut left = limit;
    for (number, level) in found.levels.iter().enumerate() {
        if left == 0 {
            break;
        }
        let heading = format!("level {} · {}", number + 1, text::count(level.len(), "task"));
        let heading = out.paint(&heading, Look::Bold);
        out.line(heading);
        let shown: Vec<&Task> = level.iter().take(left).filter_map(|id| of.plan.task(id.as_str())).collect();
        let columns = tree::name_columns(shown.iter().map(|task| text::width(task.spec.id.as_str())));
        for task in shown {
            tree::print_row(of, task, &Frame { guides: "", margin: "", columns }, out);
        }
        left = left.saturating_sub(level.len());
    }
    if found.chain.len() > 1 {
        out.line("");
        let words =
            format!("longest chain ({}): {}", text::count(found.chain.len(), "task"), chain(&found.chain));
        for line in text::wrap(&words, out.columns, usize::MAX) {
            out.line(line);
        }
    }
    let total: usize = found.levels.iter().map(Vec::len).sum();
    total.saturating_sub(limit)
}

/// Formats the chain. If it is long, all but its beginning and its last task is omitted.
fn chain(tasks: &[TaskId]) -> String {
    let names: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
    if names.len() <= CHAIN_MAX {
        return names.join(" → ");
    }
    let (first, last) = (&names[..CHAIN_MAX - 1], names[names.len() - 1]);
    format!("{} → … → {last}", first.join(" → "))
}
