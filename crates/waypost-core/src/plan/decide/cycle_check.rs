//! Checks whether a change would make tasks wait for each other. Visits only what the change can reach.

use std::collections::HashMap;

use super::super::Plan;
use super::super::slot::NONE;
use crate::validate::{Moment, ring_of_tasks};
use crate::{Dependency, ProblemKind, TaskSpec};

/// The graph as it would be after a pending change. New tasks are numbered after all others.
struct WouldBe<'a> {
    plan: &'a Plan,
    added: &'a [TaskSpec],
    added_numbers: HashMap<&'a str, u32>,
    /// Children that each task would gain.
    children: HashMap<u32, Vec<u32>>,
    /// A task that would get another parent.
    moved: Option<(u32, u32)>,
    /// A task that would get other dependencies.
    revised: Option<(u32, &'a [Dependency])>,
    /// How far the search goes among the existing tasks.
    reach: Reach,
}

/// How far a search must go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// No existing task would wait for a new one.
    OnlyAdded,
    /// One existing parent would wait for new children, and it cannot wait for itself.
    NotOverParents,
    Everything,
}

impl Plan {
    fn would_be(&self) -> WouldBe<'_> {
        WouldBe {
            plan: self,
            added: &[],
            added_numbers: HashMap::new(),
            children: HashMap::new(),
            moved: None,
            revised: None,
            reach: Reach::Everything,
        }
    }

    /// Returns the cycle that would close if `task` had `dependencies`.
    pub(super) fn cycle_through(&self, task: u32, dependencies: &[Dependency]) -> Option<ProblemKind> {
        WouldBe { revised: Some((task, dependencies)), ..self.would_be() }.cycle([Moment::Begin(task)])
    }

    /// Returns the cycle that would close if `task` were a child of `parent`.
    pub(super) fn cycle_under(&self, task: u32, parent: u32) -> Option<ProblemKind> {
        let children = HashMap::from([(parent, vec![task])]);
        let would_be = WouldBe { moved: Some((task, parent)), children, ..self.would_be() };
        would_be.cycle([Moment::Begin(task), Moment::End(task)])
    }

    /// Returns the cycle that would close if `added`, which are not in the plan yet, were added.
    pub(super) fn cycle_with(&self, added: &[TaskSpec]) -> Option<ProblemKind> {
        let first = self.slots.len() as u32;
        let mut would_be = WouldBe { added, reach: Reach::OnlyAdded, ..self.would_be() };
        would_be.added_numbers = added.iter().map(|spec| spec.id.as_str()).zip(first..).collect();
        for (spec, number) in added.iter().zip(first..) {
            let parent = spec.parent.as_ref().and_then(|parent| would_be.find(parent.as_str()));
            if let Some(parent) = parent {
                would_be.children.entry(parent).or_default().push(number);
            }
        }
        would_be.reach = match would_be.children.keys().filter(|&&parent| parent < first).count() {
            0 => Reach::OnlyAdded,
            1 => Reach::NotOverParents,
            _ => Reach::Everything,
        };
        would_be.cycle(
            (first..first + added.len() as u32)
                .flat_map(|number| [Moment::Begin(number), Moment::End(number)]),
        )
    }
}

impl<'a> WouldBe<'a> {
    fn find(&self, id: &str) -> Option<u32> {
        self.added_numbers.get(id).copied().or_else(|| self.plan.find(id))
    }

    fn spec(&self, number: u32) -> Option<&'a TaskSpec> {
        (number as usize).checked_sub(self.plan.slots.len()).map(|place| &self.added[place])
    }

    fn name(&self, number: u32) -> String {
        self.spec(number).map_or_else(|| self.plan.name(number), |spec| spec.id.to_string())
    }

    /// Returns the moments that must come before `moment`.
    fn before(&self, moment: Moment) -> Vec<Moment> {
        let mut before = Vec::new();
        let ends_of = |dependencies: &[Dependency], before: &mut Vec<Moment>| {
            let here = dependencies.iter().filter_map(Dependency::here);
            before.extend(here.filter_map(|on| self.find(on.as_str())).map(Moment::End));
        };
        match moment {
            Moment::Begin(number) => {
                let parent = match (self.moved, self.spec(number)) {
                    (Some((moved, parent)), _) if moved == number => Some(parent),
                    (_, Some(spec)) => spec.parent.as_ref().and_then(|parent| self.find(parent.as_str())),
                    (_, None) => Some(self.plan.slot(number).parent),
                };
                before.extend(parent.filter(|&parent| parent != NONE).map(Moment::Begin));
                match (self.revised, self.spec(number)) {
                    (Some((revised, dependencies)), _) if revised == number => {
                        ends_of(dependencies, &mut before)
                    }
                    (_, Some(spec)) => ends_of(&spec.depends_on, &mut before),
                    (_, None) => {
                        before.extend(self.plan.slot(number).before.iter().map(|&on| Moment::End(on)))
                    }
                }
                if self.spec(number).is_some() {
                    let is_old = |earlier: &Moment| match earlier {
                        Moment::Begin(task) | Moment::End(task) => self.spec(*task).is_none(),
                    };
                    before.retain(|earlier| match (self.reach, earlier) {
                        (Reach::OnlyAdded, earlier) => !is_old(earlier),
                        (Reach::NotOverParents, Moment::Begin(_)) => !is_old(earlier),
                        (Reach::NotOverParents, Moment::End(_)) | (Reach::Everything, _) => true,
                    });
                }
            }
            Moment::End(number) => {
                before.push(Moment::Begin(number));
                if self.spec(number).is_none() {
                    let leaves = |child: u32| {
                        self.moved.is_some_and(|(moved, parent)| moved == child && parent != number)
                    };
                    let children = self.plan.slot(number).children.iter().filter(|&&child| !leaves(child));
                    before.extend(children.map(|&child| Moment::End(child)));
                }
                let new = self.children.get(&number).into_iter().flatten();
                before.extend(new.map(|&child| Moment::End(child)));
            }
        }
        before
    }

    /// Returns a cycle reachable from `starts`: each of its tasks waits for the next, and the first is repeated at the
    /// end.
    fn cycle(&self, starts: impl IntoIterator<Item = Moment>) -> Option<ProblemKind> {
        // Whether all predecessors of a moment have been visited; if not, the moment is on the current path.
        let mut seen: HashMap<Moment, bool> = HashMap::new();
        for start in starts {
            if seen.contains_key(&start) {
                continue;
            }
            seen.insert(start, false);
            let mut path = vec![(start, self.before(start))];
            while let Some((moment, left)) = path.last_mut() {
                let Some(next) = left.pop() else {
                    seen.insert(*moment, true);
                    path.pop();
                    continue;
                };
                match seen.get(&next) {
                    Some(true) => {}
                    Some(false) => {
                        let ring =
                            path.iter().map(|(moment, _)| *moment).skip_while(|moment| *moment != next);
                        return Some(self.name_ring(&ring.collect::<Vec<_>>()));
                    }
                    None => {
                        seen.insert(next, false);
                        path.push((next, self.before(next)));
                    }
                }
            }
        }
        None
    }

    fn name_ring(&self, ring: &[Moment]) -> ProblemKind {
        // Only the edge to a parent leads from a beginning to a beginning.
        let only_parents = ring.iter().all(|moment| matches!(moment, Moment::Begin(_)));
        let path = ring_of_tasks(ring.iter().copied()).into_iter().map(|task| self.name(task)).collect();
        if only_parents { ProblemKind::ParentCycle { path } } else { ProblemKind::Cycle { path } }
    }
}
