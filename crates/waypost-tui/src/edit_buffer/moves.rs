//! Moving tasks with their subtasks: among their siblings, and to another parent.

use std::ops::Range;

use waypost_core::TaskId;

use super::rows::reparented;
use super::{Edit, EditBuffer, Row};

impl EditBuffer {
    /// The row of the previous sibling.
    fn sibling_before(&self, at: usize) -> Option<usize> {
        let depth = self.rows.get(at)?.depth;
        let before = self.rows[..at].iter().rposition(|row| row.depth <= depth)?;
        (self.rows[before].depth == depth).then_some(before)
    }

    /// Moves a task with its subtasks up among its siblings.
    pub fn move_up(&mut self, at: usize) -> bool {
        let Some(before) = self.sibling_before(at) else { return false };
        self.swap(before, at, at);
        true
    }

    /// Moves a task with its subtasks down among its siblings.
    pub fn move_down(&mut self, at: usize) -> bool {
        let Some(depth) = self.rows.get(at).map(|row| row.depth) else { return false };
        let next = self.family(at).end;
        if self.rows.get(next).is_none_or(|row| row.depth != depth) {
            return false;
        }
        self.swap(at, next, at);
        true
    }

    /// Swaps two adjacent families: the one at `second` moves before the one at `first`.
    fn swap(&mut self, first: usize, second: usize, looked: usize) {
        let end = self.family(second).end;
        let removed = self.rows[first..end].to_vec();
        let mut added = removed.clone();
        added.rotate_left(second - first);
        self.make_one("move", looked, Edit { at: first, removed, added });
    }

    /// Makes a task the last subtask of the sibling above it.
    pub fn indent(&mut self, at: usize) -> bool {
        let Some(before) = self.sibling_before(at) else { return false };
        let parent = Some(self.rows[before].id().clone());
        let family = self.family(at);
        let added = reparented(&self.rows[family.clone()], parent, 1);
        self.place_family(family.clone(), family.start, added, "indent");
        true
    }

    /// Moves a task out of its parent, to directly after the parent's family.
    pub fn outdent(&mut self, at: usize) -> bool {
        let Some(parent) = self.rows.get(at).and_then(|row| row.spec().parent.as_ref()) else { return false };
        let Some(parent) = self.place(parent) else { return false };
        let grandparent = self.rows[parent].spec().parent.clone();
        let family = self.family(at);
        let added = reparented(&self.rows[family.clone()], grandparent, -1);
        let to = self.family(parent).end - family.len();
        self.place_family(family, to, added, "outdent");
        true
    }

    /// Makes a task the last subtask of another one, or a root.
    pub fn set_parent(&mut self, at: usize, parent: Option<TaskId>) -> bool {
        let Some(row) = self.rows.get(at).filter(|row| row.spec().parent != parent) else { return false };
        let family = self.family(at);
        let (to, depth) = match parent.as_ref().map(|parent| self.place(parent)) {
            None => (self.rows.len(), 0),
            Some(Some(parent)) if !family.contains(&parent) => {
                (self.family(parent).end, i32::from(self.rows[parent].depth) + 1)
            }
            Some(_) => return false,
        };
        let moved = reparented(&self.rows[family.clone()], parent, depth - i32::from(row.depth));
        let (start, end) = (family.start.min(to), family.end.max(to));
        let added = match to <= family.start {
            true => [&moved, &self.rows[to..family.start]].concat(),
            false => [&self.rows[family.end..to], &moved].concat(),
        };
        let removed = self.rows[start..end].to_vec();
        self.make_one("move", at, Edit { at: start, removed, added });
        true
    }

    /// Removes a family, and inserts these rows at `to`, an index into the remaining rows that is not before the family.
    fn place_family(&mut self, family: Range<usize>, to: usize, added: Vec<Row>, verb: &str) {
        let removed = self.rows[family.start..to + family.len()].to_vec();
        let mut after = removed[family.len()..].to_vec();
        after.extend(added);
        self.make_one(verb, family.start, Edit { at: family.start, removed, added: after });
    }
}
