//! Which boxes of a grouped plan are shown: open groups as frames, folded ones as a box, large ones as a grid of cells.

use std::collections::HashSet;

use waypost_core::EffectiveStatus;

use super::groups::{Groups, Unit};

/// Boxes shown at first.
pub const BOXES_MAX: usize = 60;
/// Tasks up to which a plan is shown whole.
const WHOLE_MAX: usize = 24;
/// Units of a group beyond which it is shown as a grid of cells.
pub const CELLS_MIN: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxKind {
    Task(usize),
    /// A folded group.
    Folded(usize),
    /// An open group, which contains other boxes.
    Open(usize),
    /// An open group that has too many tasks for boxes.
    Cells(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownBox {
    pub kind: BoxKind,
    /// The open group around it, which has a lower index.
    pub outer: Option<usize>,
}

/// What is shown, and where each task is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    pub boxes: Vec<ShownBox>,
    /// The innermost box of each task.
    pub box_of: Vec<usize>,
}

/// Chooses the groups that are open at first: those with failures, questions or running tasks, as far as there is room; all of them if
/// the plan is small, or if nothing happens in it and there is room.
pub fn open_at_first(groups: &Groups, statuses: &[EffectiveStatus], boxes_max: usize) -> HashSet<usize> {
    let total: usize = statuses.len();
    if total <= WHOLE_MAX.min(boxes_max) {
        return (0..groups.groups.len()).collect();
    }
    let urgency: Vec<u8> = (0..groups.groups.len())
        .map(|group| {
            let mut most = 0;
            groups.each_task(Unit::Group(group), &mut |task| most = most.max(urgency(statuses[task])));
            most
        })
        .collect();
    let is_quiet = urgency.iter().all(|urgency| *urgency == 0);
    if is_quiet {
        return if total <= boxes_max { (0..groups.groups.len()).collect() } else { HashSet::new() };
    }
    let mut open = HashSet::new();
    let mut boxes = groups.top.len();
    for least in [2, 1] {
        for (at, group) in groups.groups.iter().enumerate() {
            let cost = if group.units.len() > CELLS_MIN { 1 } else { group.units.len() };
            let is_reached = group.outer.is_none_or(|outer| open.contains(&outer));
            if urgency[at] >= least && is_reached && !open.contains(&at) && boxes + cost <= boxes_max {
                boxes += cost;
                open.insert(at);
            }
        }
    }
    open
}

/// How much a task wants to be seen: failures and questions most.
fn urgency(status: EffectiveStatus) -> u8 {
    match status {
        EffectiveStatus::Failed | EffectiveStatus::Asking | EffectiveStatus::Disputed => 2,
        EffectiveStatus::Running | EffectiveStatus::Reported => 1,
        EffectiveStatus::Blocked
        | EffectiveStatus::Ready
        | EffectiveStatus::Held
        | EffectiveStatus::Queued
        | EffectiveStatus::Done
        | EffectiveStatus::Skipped
        | EffectiveStatus::Cancelled => 0,
    }
}

/// Adds the groups around a task to the open ones.
pub fn open_path(groups: &Groups, task: usize, open: &mut HashSet<usize>) {
    for (at, group) in groups.groups.iter().enumerate() {
        if group.units.contains(&Unit::Task(task)) {
            let mut next = Some(at);
            while let Some(group) = next {
                open.insert(group);
                next = groups.groups[group].outer;
            }
        }
    }
    for (at, group) in groups.groups.iter().enumerate() {
        if group.head == Some(task) {
            let mut next = groups.groups[at].outer;
            while let Some(group) = next {
                open.insert(group);
                next = groups.groups[group].outer;
            }
        }
    }
}

/// Returns the boxes with these groups open. A group inside a folded one is not shown, and one of more units than `cells_min` is a grid.
pub fn shown(groups: &Groups, tasks: usize, open: &HashSet<usize>, cells_min: usize) -> Shown {
    let mut made = Shown { boxes: Vec::new(), box_of: vec![0; tasks] };
    // Units still to do, with the box around each; the first is the last.
    let mut next: Vec<(Unit, Option<usize>)> = groups.top.iter().rev().map(|&unit| (unit, None)).collect();
    while let Some((unit, outer)) = next.pop() {
        let own = made.boxes.len();
        let kind = match unit {
            Unit::Task(task) => {
                made.box_of[task] = own;
                BoxKind::Task(task)
            }
            Unit::Group(group) if open.contains(&group) && groups.groups[group].units.len() <= cells_min => {
                let group_now = &groups.groups[group];
                group_now.head.iter().for_each(|&head| made.box_of[head] = own);
                next.extend(group_now.units.iter().rev().map(|&unit| (unit, Some(own))));
                BoxKind::Open(group)
            }
            Unit::Group(group) => {
                groups.each_task(unit, &mut |task| made.box_of[task] = own);
                if open.contains(&group) { BoxKind::Cells(group) } else { BoxKind::Folded(group) }
            }
        };
        made.boxes.push(ShownBox { kind, outer });
    }
    made
}

#[cfg(test)]
mod tests {
    use super::super::groups::{Member, grouped};
    use super::*;

    /// Two parents with twenty children each.
    fn plan() -> Groups {
        let ids: Vec<String> = (0..42).map(|n| format!("t{n}")).collect();
        let parent = |at: usize| (at > 1).then_some(at % 2);
        let members: Vec<Member<'_>> = ids
            .iter()
            .enumerate()
            .map(|(at, id)| Member { id, parent: parent(at), executor: "", level: 0 })
            .collect();
        grouped(&members, None, 60)
    }

    #[test]
    fn groups_with_failures_are_open_first_and_the_rest_as_far_as_there_is_room() {
        let groups = plan();
        let mut statuses = vec![EffectiveStatus::Done; 42];
        statuses[2] = EffectiveStatus::Running;
        statuses[3] = EffectiveStatus::Failed;
        assert_eq!(open_at_first(&groups, &statuses, 60), HashSet::from([0, 1]));
        assert_eq!(open_at_first(&groups, &statuses, 30), HashSet::from([1]), "the failure comes first");
        assert_eq!(open_at_first(&groups, &[EffectiveStatus::Done; 42], 60).len(), 2, "it fits");
        assert_eq!(open_at_first(&groups, &[EffectiveStatus::Done; 42], 41).len(), 0, "one past it");
    }

    #[test]
    fn tasks_are_in_their_innermost_box() {
        let groups = plan();
        let found = shown(&groups, 42, &HashSet::from([1]), CELLS_MIN);
        assert_eq!(found.boxes.len(), 22);
        assert_eq!(found.box_of[4], 0, "in the folded group");
        assert_eq!(found.boxes[found.box_of[3]], ShownBox { kind: BoxKind::Task(3), outer: Some(1) });
        assert_eq!(found.box_of[1], 1, "the parent is the frame");
    }

    #[test]
    fn the_way_to_a_task_opens_the_groups_around_it() {
        let mut open = HashSet::new();
        open_path(&plan(), 5, &mut open);
        assert_eq!(open, HashSet::from([1]));
    }

    #[test]
    fn a_group_beyond_the_limit_opens_as_cells() {
        let ids: Vec<String> = (0..=CELLS_MIN + 1).map(|n| format!("t{n}")).collect();
        for count in [CELLS_MIN, CELLS_MIN + 1] {
            let members: Vec<Member<'_>> = ids[..=count]
                .iter()
                .enumerate()
                .map(|(at, id)| Member { id, parent: (at > 0).then_some(0), executor: "", level: 0 })
                .collect();
            let found = shown(&grouped(&members, None, 60), count + 1, &HashSet::from([0]), CELLS_MIN);
            let is_cells = found.boxes[0].kind == BoxKind::Cells(0);
            assert_eq!(is_cells, count > CELLS_MIN);
        }
    }
}
