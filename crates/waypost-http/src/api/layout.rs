//! The picture of a plan for the dashboard: its groups, folded or open, as boxes with places, and the routes of the edges between them.
//!
//! The layout does not depend on the status of any task; only which groups are open at first does.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use waypost_core::{Dependency, EffectiveStatus, ExternalTaskRef, Plan, Task};
use waypost_formats::{
    BOXES_MAX, BoxKind, CELLS_MIN, CONTAINER_HEAD, Group, Grouping, Groups, Item, Member, Shown, draw,
    grouped, open_at_first, open_path, shown,
};
use waypost_service::ServiceError;

use super::extract::{Parameters, PlanPath};
use super::graph::placed;
use super::plans::unknown_word;
use super::response::{Problem, Reply, Versioned};
use super::state::Api;

/// Maximum number of boxes in one picture. Groups that a request opens beyond it stay folded, the first of them first.
const SHOWN_MAX: usize = 600;
/// The least number of boxes that a request may ask for.
const BOXES_MIN: usize = 4;
/// Maximum number of boxes for tasks of other plans. With more, those of one plan share a box.
const OUTSIDE_MAX: usize = 20;
/// How far from a task its neighbourhood reaches, in dependencies.
const NEAR_STEPS: usize = 2;
/// The sides of the window that a picture is laid out for.
const SIDE_MIN: f64 = 200.0;
const SIDE_MAX: f64 = 10_000.0;
const WINDOW: (f64, f64) = (1_440.0, 800.0);

const TASK_SIZE: (f64, f64) = (172.0, 44.0);
const GROUP_SIZE: (f64, f64) = (172.0, 62.0);
const OUTSIDE_SIZE: (f64, f64) = (172.0, 58.0);
/// The side of a cell, with the gap to the next.
const CELL: f64 = 12.0;
const CELLS_AIR: f64 = 12.0;
/// The ratio of columns to rows of a grid of cells.
const CELLS_RATIO: f64 = 1.6;

/// Selects what is shown, and how.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LayoutQuery {
    /// The keys of the open groups, as a JSON array. By default those in which something happens.
    open: Option<String>,
    /// A task: the groups around it are open as well.
    show: Option<String>,
    /// What groups consist of: parent, prefix, executor or levels. By default what fits the plan.
    group: Option<String>,
    /// A task: only it and what it is connected with is shown.
    focus: Option<String>,
    /// What of it: near, up or down.
    direction: Option<String>,
    /// Maximum number of boxes at first.
    boxes: Option<usize>,
    /// The size of the window, in pixels.
    width: Option<f64>,
    height: Option<f64>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Direction {
    #[default]
    Near,
    Up,
    Down,
}

/// `GET /plans/{plan}/layout`
pub(crate) fn layout(
    api: &Api,
    (PlanPath(id), Parameters(wanted)): (PlanPath, Parameters<LayoutQuery>),
) -> Reply {
    let open = wanted.open.as_deref().map(serde_json::from_str::<Vec<String>>).transpose();
    let open =
        open.map_err(|_| Problem::bad("`open` is not a JSON array of keys", "send open=[\"test-*\"]"))?;
    let grouping = wanted.group.as_deref().filter(|name| !name.is_empty()).map(grouping_of).transpose()?;
    let direction = wanted.direction.as_deref().map_or(Ok(Direction::Near), direction_of)?;
    let (mut value, outside, version, warnings) = api.service.view(&id, |plan, warnings| {
        let picture = Picture::of(plan, &wanted, grouping, direction)?;
        let (value, outside) = picture.drawn(open.as_deref());
        Ok::<_, Problem>((value, outside, plan.version(), warnings.to_vec()))
    })??;
    // The tasks of other plans have their status there.
    for (at, there) in outside {
        let Some(other) = &there.plan else { continue };
        let found = api.service.view(other, |plan, _| {
            let status = plan.as_started().effective_status(there.task.as_str()).map(EffectiveStatus::as_str);
            (plan.spec().title.clone(), status)
        });
        match found {
            Ok((title, status)) => {
                value["boxes"][at]["plan_title"] = json!(title);
                value["boxes"][at]["status"] = json!(status);
                value["boxes"][at]["missing"] = json!(status.is_none());
            }
            Err(ServiceError::NoSuchPlan(_)) => value["boxes"][at]["missing"] = json!(true),
            // A plan that cannot be read now is not said to be missing.
            Err(_) => {}
        }
    }
    Ok(Versioned::at(value, version).warned(&warnings))
}

fn grouping_of(name: &str) -> Result<Grouping, Problem> {
    let found = Grouping::ALL.into_iter().find(|grouping| grouping.as_str() == name);
    found.ok_or_else(|| unknown_word("group", name, Grouping::ALL.map(Grouping::as_str)))
}

fn direction_of(name: &str) -> Result<Direction, Problem> {
    match name {
        "near" => Ok(Direction::Near),
        "up" => Ok(Direction::Up),
        "down" => Ok(Direction::Down),
        other => Err(unknown_word("direction", other, ["near", "up", "down"])),
    }
}

/// What of a plan is shown.
struct Picture<'a> {
    plan: &'a Plan,
    /// The shown tasks with their levels, and the place of each in the plan.
    tasks: Vec<(&'a Task, usize)>,
    places: Vec<usize>,
    /// The number of each shown task, by id.
    numbers: HashMap<&'a str, usize>,
    statuses: Vec<EffectiveStatus>,
    groups: Groups,
    boxes_max: usize,
    show: Option<usize>,
    window: (f64, f64),
}

impl<'a> Picture<'a> {
    fn of(
        plan: &'a Plan,
        wanted: &LayoutQuery,
        grouping: Option<Grouping>,
        direction: Direction,
    ) -> Result<Self, Problem> {
        let all = placed(plan);
        let focus = match &wanted.focus {
            Some(task) => Some(around(&all, task, direction).ok_or_else(|| {
                let hint = format!("GET /api/v1/plans/{}/tasks lists the tasks", plan.id());
                Problem::not_found(format!("no task is called {task:?} in this plan"), hint)
            })?),
            None => None,
        };
        let is_shown = |task: &Task| focus.as_ref().is_none_or(|ids| ids.contains(task.spec.id.as_str()));
        let (places, tasks): (Vec<usize>, Vec<_>) =
            all.into_iter().enumerate().filter(|(_, (task, _))| is_shown(task)).unzip();
        let numbers: HashMap<&str, usize> =
            tasks.iter().enumerate().map(|(number, (task, _))| (task.spec.id.as_str(), number)).collect();
        let started = plan.as_started();
        let statuses = tasks
            .iter()
            .map(|(task, _)| {
                started.effective_status(task.spec.id.as_str()).unwrap_or(EffectiveStatus::Blocked)
            })
            .collect();
        let members: Vec<Member<'_>> = tasks
            .iter()
            .map(|(task, level)| Member {
                id: task.spec.id.as_str(),
                parent: task.spec.parent.as_ref().and_then(|parent| numbers.get(parent.as_str())).copied(),
                executor: task.spec.work.as_ref().map_or("", |work| work.executor.as_str()),
                level: *level,
            })
            .collect();
        let boxes_max = wanted.boxes.unwrap_or(BOXES_MAX).clamp(BOXES_MIN, SHOWN_MAX);
        let side = |side: Option<f64>, usual: f64| {
            side.filter(|side| side.is_finite()).unwrap_or(usual).clamp(SIDE_MIN, SIDE_MAX)
        };
        Ok(Self {
            plan,
            places,
            groups: grouped(&members, grouping, boxes_max),
            statuses,
            boxes_max,
            show: wanted.show.as_ref().and_then(|task| numbers.get(task.as_str())).copied(),
            window: (side(wanted.width, WINDOW.0), side(wanted.height, WINDOW.1)),
            tasks,
            numbers,
        })
    }

    /// The open groups: those that the request names, as far as there is room, the last first.
    fn open(&self, keys: Option<&[String]>) -> HashSet<usize> {
        let mut open = match keys {
            None => open_at_first(&self.groups, &self.statuses, self.boxes_max),
            Some(keys) => {
                let groups = self.groups.groups.iter().enumerate();
                let numbers: HashMap<&str, usize> =
                    groups.map(|(at, group)| (group.key.as_str(), at)).collect();
                let mut boxes = self.groups.top.len();
                let mut open = HashSet::new();
                for group in keys.iter().rev().filter_map(|key| numbers.get(key.as_str()).copied()) {
                    boxes += self.groups.groups[group].units.len().min(CELLS_MIN);
                    if boxes <= SHOWN_MAX {
                        open.insert(group);
                    }
                }
                open
            }
        };
        if let Some(task) = self.show {
            open_path(&self.groups, task, &mut open);
        }
        open
    }

    /// Returns the picture, and the boxes of tasks of other plans.
    fn drawn(&self, keys: Option<&[String]>) -> (Value, Vec<(usize, ExternalTaskRef)>) {
        let open = self.open(keys);
        let shown = shown(&self.groups, self.tasks.len(), &open, CELLS_MIN);
        let mut items: Vec<Item> = shown
            .boxes
            .iter()
            .map(|one| Item {
                size: self.size(one.kind),
                parent: one.outer,
                is_container: matches!(one.kind, BoxKind::Open(_)),
            })
            .collect();
        let mut edges = self.edges(&shown);
        let outside = self.outside(&shown, &mut edges);
        items.extend(outside.iter().map(|_| Item { size: OUTSIDE_SIZE, parent: None, is_container: false }));
        let arrows: Vec<(usize, usize)> = edges.keys().copied().collect();
        let drawing = draw(&items, &arrows, self.window);

        let place = |value: &mut Value, at: usize| {
            let frame = drawing.frames[at];
            for (name, number) in
                [("x", frame.x), ("y", frame.y), ("width", frame.width), ("height", frame.height)]
            {
                value[name] = json!(number.round());
            }
        };
        let mut boxes: Vec<Value> =
            shown.boxes.iter().map(|one| self.box_json(one.kind, one.outer)).collect();
        boxes.extend(outside.iter().map(|(there, count)| outside_json(there, *count)));
        boxes.iter_mut().enumerate().for_each(|(at, value)| place(value, at));
        let lines: Vec<Value> = edges
            .iter()
            .zip(&drawing.routes)
            .map(|(((from, to), count), route)| {
                let points: Vec<i64> =
                    route.iter().flat_map(|(x, y)| [x.round() as i64, y.round() as i64]).collect();
                json!({ "from": from, "to": to, "count": count, "points": points })
            })
            .collect();
        let mut of = vec![-1i64; self.plan.len()];
        for (number, place) in self.places.iter().enumerate() {
            of[*place] = i64::try_from(shown.box_of[number]).unwrap_or(-1);
        }
        let groups = self.groups.groups.iter().enumerate();
        let open: Vec<&str> =
            groups.filter(|(at, _)| open.contains(at)).map(|(_, group)| group.key.as_str()).collect();
        let by = self.groups.groups.first().map(|group| group.by.as_str());
        let first = shown.boxes.len();
        let known = outside.into_iter().enumerate().filter(|(_, (_, count))| *count == 1);
        let known = known.map(|(at, (there, _))| (first + at, there)).collect();
        let value = json!({
            "version": self.plan.version(),
            "width": drawing.width.round(),
            "height": drawing.height.round(),
            "head": CONTAINER_HEAD,
            "boxes": boxes,
            "of": of,
            "edges": lines,
            "open": open,
            "groups": self.groups.groups.len(),
            "grouping": by,
        });
        (value, known)
    }

    fn size(&self, kind: BoxKind) -> (f64, f64) {
        match kind {
            BoxKind::Task(_) | BoxKind::Open(_) => TASK_SIZE,
            BoxKind::Folded(_) => GROUP_SIZE,
            BoxKind::Cells(group) => {
                let columns = cell_columns(&self.groups.groups[group]);
                let rows = self.groups.groups[group].tasks.div_ceil(columns);
                let width = (columns as f64 * CELL + 2.0 * CELLS_AIR).max(GROUP_SIZE.0);
                (width, rows as f64 * CELL + CONTAINER_HEAD + CELLS_AIR)
            }
        }
    }

    /// The edges between different boxes, with the number of dependencies that each stands for.
    fn edges(&self, shown: &Shown) -> BTreeMap<(usize, usize), usize> {
        let mut edges = BTreeMap::new();
        for (number, (task, _)) in self.tasks.iter().enumerate() {
            for on in task.spec.depends_on.iter().filter_map(Dependency::here) {
                let Some(&on) = self.numbers.get(on.as_str()) else { continue };
                let (from, to) = (shown.box_of[on], shown.box_of[number]);
                if from != to {
                    *edges.entry((from, to)).or_default() += 1;
                }
            }
        }
        edges
    }

    /// The tasks of other plans that shown tasks depend on, with the number of tasks in each box. Adds their edges.
    fn outside(
        &self,
        shown: &Shown,
        edges: &mut BTreeMap<(usize, usize), usize>,
    ) -> Vec<(ExternalTaskRef, usize)> {
        let mut found: BTreeMap<&ExternalTaskRef, Vec<usize>> = BTreeMap::new();
        for (number, (task, _)) in self.tasks.iter().enumerate() {
            for there in task.spec.depends_on.iter().filter_map(Dependency::external) {
                found.entry(there).or_default().push(shown.box_of[number]);
            }
        }
        let is_shared = found.len() > OUTSIDE_MAX;
        let mut boxes: Vec<(ExternalTaskRef, usize)> = Vec::new();
        let mut known: HashMap<(Option<&str>, Option<&str>), usize> = HashMap::new();
        for (there, waiting) in found {
            let owner = (there.agent.as_deref(), there.plan.as_ref().map(|plan| plan.as_str()));
            let at = match known.get(&owner) {
                Some(&at) if is_shared => at,
                _ => {
                    boxes.push((there.clone(), 0));
                    known.insert(owner, boxes.len() - 1);
                    boxes.len() - 1
                }
            };
            boxes[at].1 += 1;
            for own in waiting {
                *edges.entry((shown.boxes.len() + at, own)).or_default() += 1;
            }
        }
        boxes
    }

    fn box_json(&self, kind: BoxKind, outer: Option<usize>) -> Value {
        let mut value = match kind {
            BoxKind::Task(task) => json!({ "kind": "task", "task": self.places[task] }),
            BoxKind::Folded(group) => self.group_json("group", group),
            BoxKind::Open(group) => self.group_json("frame", group),
            BoxKind::Cells(group) => {
                let mut value = self.group_json("cells", group);
                value["columns"] = json!(cell_columns(&self.groups.groups[group]));
                value
            }
        };
        if let Some(outer) = outer {
            value["outer"] = json!(outer);
        }
        value
    }

    fn group_json(&self, kind: &str, group: usize) -> Value {
        let group = &self.groups.groups[group];
        let mut value = json!({ "kind": kind, "key": group.key, "name": group.name, "tasks": group.tasks });
        if let Some(head) = group.head {
            value["task"] = json!(self.places[head]);
        }
        value
    }
}

fn cell_columns(group: &Group) -> usize {
    ((group.tasks as f64 * CELLS_RATIO).sqrt().ceil() as usize).max(1)
}

fn outside_json(there: &ExternalTaskRef, count: usize) -> Value {
    json!({
        "kind": "outside", "agent": there.agent, "plan": there.plan, "name": there.task, "tasks": count,
    })
}

/// Returns a task with what it is connected with, and the parents of all of these. `None` if there is no such task.
fn around<'a>(all: &[(&'a Task, usize)], task: &str, direction: Direction) -> Option<HashSet<&'a str>> {
    let numbers: HashMap<&str, usize> =
        all.iter().enumerate().map(|(number, (task, _))| (task.spec.id.as_str(), number)).collect();
    let first = *numbers.get(task)?;
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
    for (number, (task, _)) in all.iter().enumerate() {
        for on in task.spec.depends_on.iter().filter_map(Dependency::here) {
            if let Some(&on) = numbers.get(on.as_str()) {
                before[number].push(on);
                after[on].push(number);
            }
        }
    }
    let mut found = HashSet::from([first]);
    let mut walk = |neighbours: &[Vec<usize>], steps: usize| {
        let mut seen = HashSet::from([first]);
        let mut queue = VecDeque::from([(first, 0)]);
        while let Some((at, step)) = queue.pop_front() {
            if step == steps {
                continue;
            }
            for &next in &neighbours[at] {
                if seen.insert(next) {
                    found.insert(next);
                    queue.push_back((next, step + 1));
                }
            }
        }
    };
    match direction {
        Direction::Near => {
            walk(&before, NEAR_STEPS);
            walk(&after, NEAR_STEPS);
        }
        Direction::Up => walk(&before, usize::MAX),
        Direction::Down => walk(&after, usize::MAX),
    }
    let mut ids: HashSet<&str> = found.iter().map(|&number| all[number].0.spec.id.as_str()).collect();
    for number in found {
        let mut at = number;
        while let Some(&parent) =
            all[at].0.spec.parent.as_ref().and_then(|parent| numbers.get(parent.as_str()))
        {
            if !ids.insert(all[parent].0.spec.id.as_str()) {
                break;
            }
            at = parent;
        }
    }
    Some(ids)
}
