//! Groups of tasks that can be folded in a picture: by parent, otherwise by the prefix of ids, by executor, or by runs of levels.
//!
//! A plan that has few enough tasks at the top needs no groups but those of its parents.

use std::collections::{BTreeMap, HashMap};

/// Maximum nesting of groups. Deeper tasks go into the deepest group.
const NESTING_MAX: usize = 8;
/// Maximum number of words of a prefix.
const PREFIX_WORDS_MAX: usize = 4;
/// The share of the boxes at the top that runs of levels may take, so that there is room to open some.
const RUNS_MAX: f64 = 0.7;

/// Tasks of a level beyond which it is split into parts.
const PART_MIN: usize = 200;

/// What the tasks of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    Parent,
    Prefix,
    Executor,
    Levels,
}

impl Grouping {
    pub const ALL: [Self; 4] = [Self::Parent, Self::Prefix, Self::Executor, Self::Levels];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parent => "parent",
            Self::Prefix => "prefix",
            Self::Executor => "executor",
            Self::Levels => "levels",
        }
    }
}

/// A task, as far as grouping needs it.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    pub id: &'a str,
    /// The index of the parent.
    pub parent: Option<usize>,
    pub executor: &'a str,
    pub level: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Names the group in an address, as long as the tasks stay: `test-*`.
    pub key: String,
    /// The title, unless there is a parent task.
    pub name: String,
    pub by: Grouping,
    /// The parent task, if that is what the tasks have in common.
    pub head: Option<usize>,
    /// The group around it, which has a lower index.
    pub outer: Option<usize>,
    /// What it consists of, in plan order.
    pub units: Vec<Unit>,
    /// The number of tasks in it at all depths, with the parent task.
    pub tasks: usize,
}

/// A task, or a group of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Task(usize),
    Group(usize),
}

/// The groups of a plan, and what is outside of all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Groups {
    pub groups: Vec<Group>,
    pub top: Vec<Unit>,
}

/// A group while its place among the others is not known.
struct Tree {
    key: String,
    name: String,
    by: Grouping,
    head: Option<usize>,
    units: Vec<Branch>,
}

enum Branch {
    Task(usize),
    Group(Tree),
}

impl Branch {
    /// The task that stands for it: its first.
    fn first(&self) -> usize {
        match self {
            Self::Task(task) => *task,
            Self::Group(tree) => tree.head.or_else(|| tree.units.first().map(Self::first)).unwrap_or(0),
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::Task(_) => 1,
            Self::Group(tree) => {
                usize::from(tree.head.is_some()) + tree.units.iter().map(Self::count).sum::<usize>()
            }
        }
    }
}

/// Groups the tasks so that there are at most `boxes_max` tasks and groups outside of all groups. A given grouping is applied even if
/// there are fewer.
pub fn grouped(members: &[Member<'_>], grouping: Option<Grouping>, boxes_max: usize) -> Groups {
    let top = match grouping {
        None | Some(Grouping::Parent) => by_parent(members),
        Some(_) => (0..members.len()).map(Branch::Task).collect(),
    };
    let top = match grouping {
        None | Some(Grouping::Parent) => reduced(members, top, boxes_max),
        Some(Grouping::Prefix) => match by_prefix(members, top, usize::MAX) {
            Ok(found) | Err(found) => reduced(members, found, boxes_max),
        },
        Some(Grouping::Executor) => match by_executor(members, top, usize::MAX) {
            Ok(found) | Err(found) => reduced(members, found, boxes_max),
        },
        Some(Grouping::Levels) => by_levels(members, top, boxes_max),
    };
    let mut made = Groups::default();
    made.top = top.into_iter().map(|branch| made.add(branch, None)).collect();
    made
}

impl Groups {
    fn add(&mut self, branch: Branch, outer: Option<usize>) -> Unit {
        let tree = match branch {
            Branch::Task(task) => return Unit::Task(task),
            Branch::Group(tree) => tree,
        };
        let own = self.groups.len();
        let Tree { key, name, by, head, units } = tree;
        let tasks = usize::from(head.is_some()) + units.iter().map(Branch::count).sum::<usize>();
        self.groups.push(Group { key, name, by, head, outer, units: Vec::new(), tasks });
        // The nesting is bounded.
        self.groups[own].units = units.into_iter().map(|unit| self.add(unit, Some(own))).collect();
        Unit::Group(own)
    }

    /// Calls `found` for each task of a unit, at all depths.
    pub fn each_task(&self, unit: Unit, found: &mut impl FnMut(usize)) {
        match unit {
            Unit::Task(task) => found(task),
            Unit::Group(group) => {
                let group = &self.groups[group];
                group.head.iter().for_each(|&head| found(head));
                group.units.iter().for_each(|&unit| self.each_task(unit, found));
            }
        }
    }
}

/// Makes a group of each parent with its children.
fn by_parent(members: &[Member<'_>]) -> Vec<Branch> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); members.len()];
    let mut depths: Vec<Option<usize>> = vec![None; members.len()];
    for (task, member) in members.iter().enumerate() {
        match member.parent {
            Some(parent) if parent != task && parent < members.len() => children[parent].push(task),
            _ => depths[task] = Some(0),
        }
    }
    // The depth of each task. Tasks in a cycle of parents are reached by none: they stand at the top.
    let mut order: Vec<usize> = (0..members.len()).filter(|&task| depths[task].is_some()).collect();
    let mut at = 0;
    while let Some(&task) = order.get(at) {
        let depth = depths[task].unwrap_or(0);
        for &child in &children[task] {
            depths[child] = Some(depth + 1);
            order.push(child);
        }
        at += 1;
    }
    let mut branches: Vec<Vec<Branch>> = members.iter().map(|_| Vec::new()).collect();
    let mut top: Vec<Branch> =
        (0..members.len()).filter(|&task| depths[task].is_none()).map(Branch::Task).collect();
    for &task in order.iter().rev() {
        let mut units = std::mem::take(&mut branches[task]);
        let depth = depths[task].unwrap_or(0);
        units.sort_by_key(Branch::first);
        let is_group = !units.is_empty() && depth < NESTING_MAX;
        let (branch, rest) = if is_group {
            let id = members[task].id;
            let (key, name) = (format!("in {id}"), id.to_owned());
            (Branch::Group(Tree { key, name, by: Grouping::Parent, head: Some(task), units }), Vec::new())
        } else {
            // Too deep: the children stand beside their parent.
            (Branch::Task(task), units)
        };
        let outer = match members[task].parent {
            Some(parent) if depth > 0 => &mut branches[parent],
            _ => &mut top,
        };
        outer.push(branch);
        outer.extend(rest);
    }
    top.sort_by_key(Branch::first);
    top
}

/// Groups further until there are few enough at the top.
fn reduced(members: &[Member<'_>], top: Vec<Branch>, boxes_max: usize) -> Vec<Branch> {
    if top.len() <= boxes_max {
        return top;
    }
    let top = match by_prefix(members, top, boxes_max) {
        Ok(found) => return found,
        Err(top) => top,
    };
    match by_executor(members, top, boxes_max) {
        Ok(found) => found,
        Err(top) => by_levels(members, top, boxes_max),
    }
}

/// Groups those whose ids begin with the same words: the fewest words that make more than one group. `Err` returns them as they were.
fn by_prefix(members: &[Member<'_>], top: Vec<Branch>, boxes_max: usize) -> Result<Vec<Branch>, Vec<Branch>> {
    for words in 1..=PREFIX_WORDS_MAX {
        let key = |branch: &Branch| {
            let id = members[branch.first()].id;
            prefix(id, words).map(|prefix| format!("{prefix}*"))
        };
        if is_useful(&top, &key, boxes_max) {
            return Ok(collected(top, Grouping::Prefix, &key));
        }
    }
    Err(top)
}

fn by_executor(
    members: &[Member<'_>],
    top: Vec<Branch>,
    boxes_max: usize,
) -> Result<Vec<Branch>, Vec<Branch>> {
    let key = |branch: &Branch| {
        let executor = members[branch.first()].executor;
        (!executor.is_empty()).then(|| format!("runs {executor}"))
    };
    if is_useful(&top, &key, boxes_max) { Ok(collected(top, Grouping::Executor, &key)) } else { Err(top) }
}

/// Whether a key makes more than one group of them, and few enough boxes at the top.
fn is_useful(top: &[Branch], key: &impl Fn(&Branch) -> Option<String>, boxes_max: usize) -> bool {
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut alone = 0;
    for branch in top {
        match key(branch) {
            Some(key) => *counts.entry(key).or_default() += 1,
            None => alone += 1,
        }
    }
    let groups = counts.values().filter(|count| **count > 1).count();
    alone += counts.values().filter(|count| **count == 1).count();
    groups > 1 && groups + alone <= boxes_max
}

/// Makes a group of each key that several have.
fn collected(top: Vec<Branch>, by: Grouping, key: &impl Fn(&Branch) -> Option<String>) -> Vec<Branch> {
    let mut kept: Vec<Branch> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for branch in top {
        let Some(key) = key(&branch) else {
            kept.push(branch);
            continue;
        };
        match places.get(&key) {
            Some(&place) => {
                if let Branch::Group(tree) = &mut kept[place] {
                    tree.units.push(branch);
                }
            }
            None => {
                let name = key.strip_prefix("runs ").unwrap_or(&key).to_owned();
                places.insert(key.clone(), kept.len());
                kept.push(Branch::Group(Tree { key, name, by, head: None, units: vec![branch] }));
            }
        }
    }
    let single = |branch: Branch| match branch {
        Branch::Group(mut tree) if tree.head.is_none() && tree.units.len() == 1 => tree.units.remove(0),
        other @ (Branch::Task(_) | Branch::Group(_)) => other,
    };
    kept.into_iter().map(single).collect()
}

/// Returns the first words of an id with the separator behind them, unless they are all of it.
fn prefix(id: &str, words: usize) -> Option<&str> {
    let kind = |sign: char| match sign {
        sign if sign.is_ascii_digit() => 1,
        sign if sign.is_alphanumeric() => 0,
        _ => 2,
    };
    let mut seen = 0;
    let mut last: Option<i32> = None;
    for (at, sign) in id.char_indices() {
        let own = kind(sign);
        let begins = own != 2 && last.is_some_and(|last| last != own);
        if begins {
            seen += 1;
            if seen == words {
                return Some(&id[..at]);
            }
        }
        last = Some(own);
    }
    None
}

/// Groups consecutive levels. A level with too many tasks is split into parts.
fn by_levels(members: &[Member<'_>], mut top: Vec<Branch>, boxes_max: usize) -> Vec<Branch> {
    let level = |branch: &Branch| members[branch.first()].level;
    top.sort_by_key(|branch| (level(branch), branch.first()));
    let runs = ((boxes_max as f64 * RUNS_MAX) as usize).max(1);
    let size = top.len().div_ceil(runs).max(2);
    let mut groups: Vec<(usize, usize, Vec<Branch>)> = Vec::new();
    for branch in top {
        let own = level(&branch);
        match groups.last_mut() {
            Some((_, to, branches)) if *to == own || branches.len() * 2 < size => {
                *to = own;
                branches.push(branch);
            }
            _ => groups.push((own, own, vec![branch])),
        }
    }
    let mut groups: Vec<(usize, usize, Vec<Branch>)> = groups
        .into_iter()
        .flat_map(|(from, to, branches)| {
            let parts =
                if branches.len() > PART_MIN { branches.len().div_ceil(size.max(PART_MIN / 2)) } else { 1 };
            let mut rest = branches;
            let length = rest.len().div_ceil(parts);
            let mut split = Vec::with_capacity(parts);
            while rest.len() > length {
                let after = rest.split_off(length);
                split.push((from, to, std::mem::replace(&mut rest, after)));
            }
            split.push((from, to, rest));
            split
        })
        .collect();
    // Small remainders go with what precedes them, until there are few enough.
    while groups.len() > boxes_max {
        let least = (1..groups.len())
            .min_by_key(|&at| (groups[at - 1].2.len() + groups[at].2.len(), at))
            .unwrap_or(1);
        let (_, to, branches) = groups.remove(least);
        groups[least - 1].1 = to;
        groups[least - 1].2.extend(branches);
    }
    let mut parts: HashMap<(usize, usize), usize> = HashMap::new();
    let mut totals: HashMap<(usize, usize), usize> = HashMap::new();
    groups.iter().for_each(|(from, to, _)| *totals.entry((*from, *to)).or_default() += 1);
    let named = groups.into_iter().map(|(from, to, mut units)| {
        if units.len() == 1 {
            return units.remove(0);
        }
        let part = parts.entry((from, to)).or_default();
        *part += 1;
        let mut name = if from == to {
            format!("Level {}", from + 1)
        } else {
            format!("Levels {}–{}", from + 1, to + 1)
        };
        let mut key = format!("levels {}-{}", from + 1, to + 1);
        if totals[&(from, to)] > 1 {
            name = format!("{name}, part {part}");
            key = format!("{key}.{part}");
        }
        Branch::Group(Tree { key, name, by: Grouping::Levels, head: None, units })
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members<'a>(ids: &'a [String], parent: &dyn Fn(usize) -> Option<usize>) -> Vec<Member<'a>> {
        ids.iter()
            .enumerate()
            .map(|(at, id)| Member { id, parent: parent(at), executor: "", level: at / 10 })
            .collect()
    }

    fn names(groups: &Groups) -> Vec<String> {
        let name = |unit: &Unit| match *unit {
            Unit::Task(task) => format!("task {task}"),
            Unit::Group(group) => format!("{} {}", groups.groups[group].name, groups.groups[group].tasks),
        };
        groups.top.iter().map(name).collect()
    }

    fn ids(names: &[&str], each: usize) -> Vec<String> {
        (0..each).flat_map(|n| names.iter().map(move |name| format!("{name}{n}"))).collect()
    }

    #[test]
    fn parents_are_groups_whatever_the_size() {
        let ids = ids(&["a"], 6);
        let found = grouped(&members(&ids, &|at| (1..3).contains(&at).then_some(0)), None, 60);
        assert_eq!(names(&found), ["a0 3", "task 3", "task 4", "task 5"]);
    }

    #[test]
    fn tasks_in_a_cycle_of_parents_are_not_lost() {
        let ids = ids(&["a"], 3);
        let found = grouped(&members(&ids, &|at| Some((at + 1) % 3)), None, 60);
        assert_eq!(names(&found), ["task 0", "task 1", "task 2"]);
    }

    #[test]
    fn a_large_plan_is_grouped_by_the_prefix_of_ids() {
        let ids = ids(&["build-", "test-"], 40);
        assert_eq!(names(&grouped(&members(&ids, &|_| None), None, 60)), ["build-* 40", "test-* 40"]);
        let layers = super::tests::ids(&["l1-n", "l2-n"], 40);
        assert_eq!(names(&grouped(&members(&layers, &|_| None), None, 60)), ["l1-* 40", "l2-* 40"]);
    }

    #[test]
    fn ids_without_a_useful_prefix_are_grouped_by_runs_of_levels() {
        let ids = ids(&["t"], 1_000);
        let found = grouped(&members(&ids, &|_| None), None, 60);
        assert!((20..=60).contains(&found.top.len()), "{}", found.top.len());
        assert_eq!(found.groups.iter().map(|group| group.tasks).sum::<usize>(), 1_000);
        let flat: Vec<String> = super::tests::ids(&["t"], 5_000);
        let same: Vec<Member<'_>> =
            flat.iter().map(|id| Member { id, parent: None, executor: "", level: 0 }).collect();
        let found = grouped(&same, None, 60);
        assert!(
            (20..=60).contains(&found.top.len()) && found.groups[1].key == "levels 1-1.2",
            "{:?}",
            found.groups[1].key
        );
    }

    #[test]
    fn a_plan_that_fits_is_not_grouped_unless_somebody_wants_it() {
        let ids = ids(&["build-", "test-"], 5);
        assert_eq!(grouped(&members(&ids, &|_| None), None, 60).groups, []);
        let found = grouped(&members(&ids, &|_| None), Some(Grouping::Prefix), 60);
        assert_eq!(names(&found), ["build-* 5", "test-* 5"]);
    }
}
