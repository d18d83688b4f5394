// What is shown in the boxes of a plan's picture, and how one moves between them. Pure.

import { count as number, several } from "./labels";
import type { Counts, Graph, Layout, LayoutBox, LayoutEdge, Standing } from "./types";

/** The radius of the bends of an edge. */
const BEND = 6;
/** The length of an arrow's head, before which its line ends. */
const HEAD = 5;

/** The statuses by how much they want to be seen: a folded group shows the first that one of its tasks has. */
export const URGENCY: Standing[] = ["asking", "person", "disputed", "failed", "running", "reported", "queued", "ready", "held", "blocked", "cancelled", "skipped", "done"];

/** The group keys of an address. */
export const keysOf = (text: string | null): string[] | null => (text === null ? null : text.split(",").filter(Boolean).map(decodeURIComponent));

/** The text of group keys in an address. A plan with nothing open has one, too. */
export const keysText = (keys: string[]): string => keys.map((key) => key.replace(/[,%]/g, encodeURIComponent)).join(",") || ",";

const noCounts = (): Counts => ({ total: 0, ready: 0, blocked: 0, queued: 0, running: 0, done: 0, failed: 0, skipped: 0, cancelled: 0 });

/** Counts the tasks in each box by status. A frame counts everything inside, without parents: nobody works on those. */
export function boxCounts(layout: Layout, standing: Standing[], parents: ReadonlySet<number>): Counts[] {
  const counts = layout.boxes.map(noCounts);
  const add = (to: Counts | undefined, status: Standing, count: number): void => {
    if (!to) return;
    to.total += count;
    to[status] = (to[status] ?? 0) + count;
  };
  layout.of.forEach((box, task) => {
    if (box < 0 || parents.has(task) || layout.boxes[box]?.task === task) return;
    add(counts[box], standing[task] ?? "blocked", 1);
  });
  // What is inside comes after what is around it.
  for (let box = layout.boxes.length - 1; box >= 0; box--) {
    const { outer, task, kind } = layout.boxes[box] ?? {};
    if (outer === undefined) continue;
    if (task !== undefined && kind === "task" && !parents.has(task)) add(counts[outer], standing[task] ?? "blocked", 1);
    for (const status of URGENCY) add(counts[outer], status, counts[box]?.[status] ?? 0);
  }
  return counts;
}

/** The status that a folded group shows. */
export const worst = (counts: Counts): Standing => URGENCY.find((status) => (counts[status] ?? 0) > 0) ?? "blocked";

/** `8 tasks, 1 failed`: what stands out in a group. */
export function summary(counts: Counts): string {
  const tasks = several(counts.total, "task");
  if (counts.total > 0 && counts.done === counts.total) return `${tasks}, all done`;
  const seen = (["failed", "asking", "person", "running", "skipped", "cancelled"] as const).filter((status) => (counts[status] ?? 0) > 0).slice(0, 2);
  const rest = counts.done > 0 && seen.length < 2 ? [`${number(counts.done)} done`] : [];
  return [tasks, ...seen.map((status) => `${number(counts[status] ?? 0)} ${status === "person" ? "for you" : status}`), ...rest].join(", ");
}

/** The path of an edge, with rounded bends. */
export function edgePath({ points }: LayoutEdge): string {
  const at = (corner: number): [number, number] => [points[2 * corner] ?? 0, points[2 * corner + 1] ?? 0];
  const last = points.length / 2 - 1;
  if (last < 1) return "";
  const [x, y] = at(0);
  let path = `M${x} ${y}`;
  for (let corner = 1; corner < last; corner++) {
    const [before, own, after] = [at(corner - 1), at(corner), at(corner + 1)];
    const towards = (to: [number, number]): string => {
      const [dx, dy] = [to[0] - own[0], to[1] - own[1]];
      const length = Math.hypot(dx, dy) || 1;
      const radius = Math.min(BEND, length / 2) / length;
      return `${round(own[0] + dx * radius)} ${round(own[1] + dy * radius)}`;
    };
    path += `L${towards(before)}Q${own[0]} ${own[1]} ${towards(after)}`;
  }
  return `${path}H${at(last)[0] - HEAD}`;
}

const round = (value: number): number => Math.round(value * 10) / 10;

/** The tasks of each box of a kind, in plan order. */
export function tasksOf(layout: Layout, box: number): number[] {
  const found: number[] = [];
  layout.of.forEach((own, task) => {
    if (own === box) found.push(task);
  });
  return found;
}

/** The side of a cell with the gap to the next, and the room around the cells of a group. */
export const CELL = 12;
const CELL_AIR = 12;
const SIDE = 10;

/** A shape for each status, so that cells are told apart without colour. */
const SHAPES: Record<Standing, string> = {
  done: "h10v10h-10z",
  running: "m0 5a5 5 0 0 1 10 0a5 5 0 0 1 -10 0z",
  reported: "m0 5a5 5 0 0 1 10 0z",
  queued: "m5 0a5 5 0 0 1 5 5h-5z",
  ready: "h10v10h-10zm2 2v6h6v-6z",
  blocked: "m3 3h4v4h-4z",
  held: "h10v10h-10zm2 2v6h6v-6zm2 2h2v2h-2z",
  asking: "m5 0l5 5l-5 5l-5 -5z",
  person: "m2.5 2.5a2.5 2.5 0 0 1 5 0a2.5 2.5 0 0 1 -5 0zm-2.5 7.5q0 -4 5 -4t5 4z",
  disputed: "m0 1h10v3h-10zm0 5h10v3h-10z",
  failed: "m2 0l3 3l3 -3l2 2l-3 3l3 3l-2 2l-3 -3l-3 3l-2 -2l3 -3l-3 -3z",
  skipped: "m0 10l10 -10v10z",
  cancelled: "m0 3h10v4h-10z",
};

/** One path for each status with all cells that have it, in the coordinates of the box. */
export function cellPaths(tasks: number[], columns: number, head: number, standing: Standing[]): [Standing, string][] {
  const paths = new Map<Standing, string[]>();
  tasks.forEach((task, place) => {
    const status = standing[task] ?? "blocked";
    const path = paths.get(status) ?? [];
    path.push(`M${CELL_AIR + (place % columns) * CELL} ${head + Math.floor(place / columns) * CELL}${SHAPES[status]}`);
    paths.set(status, path);
  });
  return [...paths].map(([status, path]) => [status, path.join("")]);
}

/** The place of the cell at a point of the box. */
export function cellAt(x: number, y: number, columns: number, head: number, count: number): number | null {
  const [column, row] = [Math.floor((x - CELL_AIR) / CELL), Math.floor((y - head) / CELL)];
  const place = row * columns + column;
  return column >= 0 && column < columns && row >= 0 && place < count ? place : null;
}

/** The frame around a cell. */
export const cellFrame = (place: number, columns: number, head: number): { x: number; y: number; side: number } => ({
  x: CELL_AIR + (place % columns) * CELL - 1,
  y: head + Math.floor(place / columns) * CELL - 1,
  side: SIDE + 2,
});

/** The tasks that a text is found in: all of its words, in the id or the label. */
export function search(graph: Graph, text: string): number[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const found: number[] = [];
  graph.ids.forEach((id, task) => {
    const own = `${id} ${graph.labels[task] ?? ""}`.toLowerCase();
    if (words.every((word) => own.includes(word))) found.push(task);
  });
  return found;
}

/** Returns the box that an arrow key goes to: left and right along the edges, up and down to the nearest box. */
export function step(layout: Layout, from: number, key: string): number | null {
  const own = layout.boxes[from];
  if (!own) return null;
  const middle = (box: LayoutBox): number => box.y + (box.kind === "frame" ? layout.head : box.height) / 2;
  const nearest = (among: number[], distance: (box: LayoutBox) => number): number | null => {
    let best: [number, number] | null = null;
    for (const one of among) {
      const box = layout.boxes[one];
      if (!box) continue;
      const far = distance(box);
      if (best === null || far < best[1]) best = [one, far];
    }
    return best?.[0] ?? null;
  };
  const high = (box: LayoutBox): number => Math.abs(middle(box) - middle(own));
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const right = key === "ArrowRight";
    const next = layout.edges.filter((edge) => (right ? edge.from : edge.to) === from).map((edge) => (right ? edge.to : edge.from));
    return nearest(next, high);
  }
  const down = key === "ArrowDown";
  const among = layout.boxes.map((_, place) => place).filter((place) => place !== from && layout.boxes[place] !== undefined && (middle(layout.boxes[place]) > middle(own)) === down && middle(layout.boxes[place]) !== middle(own));
  return nearest(among, (box) => high(box) + 3 * Math.max(0, Math.abs(box.x + box.width / 2 - own.x - own.width / 2) - own.width / 2));
}

/** How far a point is from the nearest part of an edge. */
function distanceTo({ points }: LayoutEdge, x: number, y: number): number {
  let nearest = Infinity;
  for (let corner = 0; corner + 3 < points.length; corner += 2) {
    const [x1, y1, x2, y2] = points.slice(corner, corner + 4) as [number, number, number, number];
    const [dx, dy] = [x2 - x1, y2 - y1];
    const along = Math.min(1, Math.max(0, ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy || 1)));
    nearest = Math.min(nearest, Math.hypot(x - x1 - along * dx, y - y1 - along * dy));
  }
  return nearest;
}

/** The edges at a point, at most so far from it. Edges that share a line there are all at the point. */
export function edgesAt(layout: Layout, x: number, y: number, reach: number): number[] {
  const far = layout.edges.map((edge) => distanceTo(edge, x, y));
  const nearest = Math.min(reach, ...far);
  return layout.edges.flatMap((_, at) => ((far[at] ?? Infinity) <= nearest + 1 && (far[at] ?? Infinity) <= reach ? [at] : []));
}

/** A dependency: the place of the task that comes first in the plan, and of the one that waits for it. */
export interface DependencyHere {
  from: number;
  to: number;
}

/** The dependencies that an edge stands for; none for one on another plan. */
export function dependenciesOf(graph: Graph, layout: Layout, edge: LayoutEdge): DependencyHere[] {
  return graph.from.flatMap((from, at) => {
    const to = graph.to[at] ?? -1;
    return layout.of[from] === edge.from && layout.of[to] === edge.to ? [{ from, to }] : [];
  });
}

/** The edges of a box, those that lead to it first, from top to bottom. */
export function edgesOf(layout: Layout, box: number): number[] {
  const height = (at: number): number => {
    const edge = layout.edges[at];
    const other = layout.boxes[edge?.to === box ? edge.from : (edge?.to ?? -1)];
    return other?.y ?? 0;
  };
  const own = (end: "from" | "to"): number[] => layout.edges.flatMap((edge, at) => (edge[end] === box ? [at] : [])).sort((one, other) => height(one) - height(other));
  return [...own("to"), ...own("from")];
}

/** A point in the middle of an edge. */
export function middleOf({ points }: LayoutEdge): { x: number; y: number } {
  const lengths: number[] = [];
  for (let corner = 0; corner + 3 < points.length; corner += 2) lengths.push(Math.hypot((points[corner + 2] ?? 0) - (points[corner] ?? 0), (points[corner + 3] ?? 0) - (points[corner + 1] ?? 0)));
  let rest = lengths.reduce((sum, one) => sum + one, 0) / 2;
  for (const [part, length] of lengths.entries()) {
    const [x1, y1, x2, y2] = points.slice(2 * part, 2 * part + 4) as [number, number, number, number];
    if (rest <= length) return { x: x1 + ((x2 - x1) * rest) / (length || 1), y: y1 + ((y2 - y1) * rest) / (length || 1) };
    rest -= length;
  }
  return { x: points[0] ?? 0, y: points[1] ?? 0 };
}

/** The share in a progress report: `71 %`, `3/8`, `step 3 of 8`. */
export function share(progress: string | undefined): number | null {
  const percent = /(\d+(?:\.\d+)?)\s*%/.exec(progress ?? "");
  if (percent) return Math.min(1, Number(percent[1]) / 100);
  const of = /(\d+)\s*(?:\/|of)\s*(\d+)/.exec(progress ?? "");
  return of && Number(of[2]) > 0 ? Math.min(1, Number(of[1]) / Number(of[2])) : null;
}
