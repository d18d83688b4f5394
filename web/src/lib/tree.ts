// The tree of a plan's tasks as rows, without those inside collapsed ones. Pure; not recursive, because trees may be
// deep.

import type { Graph } from "./types";

export interface TreeRow {
  place: number;
  depth: number;
  children: number;
}

/** Returns the children of each task in order; the roots are under -1. */
export function children(graph: Graph): Map<number, number[]> {
  const found = new Map<number, number[]>();
  graph.parent.forEach((parent, place) => {
    const known = found.get(parent);
    if (known) known.push(place);
    else found.set(parent, [place]);
  });
  return found;
}

/** Returns the visible rows. */
export function treeRows(below: Map<number, number[]>, closed: ReadonlySet<number>): TreeRow[] {
  const rows: TreeRow[] = [];
  const open = (below.get(-1) ?? []).map((place) => ({ place, depth: 0 })).toReversed();
  for (let next = open.pop(); next; next = open.pop()) {
    const inside = below.get(next.place) ?? [];
    rows.push({ ...next, children: inside.length });
    if (closed.has(next.place)) continue;
    const depth = next.depth + 1;
    for (let at = inside.length - 1; at >= 0; at--) open.push({ place: inside[at] ?? 0, depth });
  }
  return rows;
}

/** Returns the previous or next task under the same parent. */
export function sibling(graph: Graph, place: number, step: -1 | 1): number | null {
  const parent = graph.parent[place];
  for (let other = place + step; other >= 0 && other < graph.parent.length; other += step) {
    if (graph.parent[other] === parent) return other;
  }
  return null;
}

/** Whether a task can go into another one, or beside it: not into itself, into one that has work, or into one that it waits for
 *  or that waits for it. */
export function mayGo(graph: Pick<Graph, "parent" | "work" | "from" | "to">, task: number, onto: number, inside: boolean): boolean {
  if (isInside(graph, onto, task)) return false;
  if (inside && graph.work[onto] === "w") return false;
  const around = inside ? onto : (graph.parent[onto] ?? -1);
  const holds = (other: number | undefined): boolean => other !== undefined && isInside(graph, around, other);
  const moves = (other: number | undefined): boolean => other !== undefined && isInside(graph, other, task);
  return graph.from.every((from, edge) => {
    const to = graph.to[edge];
    return !(moves(from) && holds(to)) && !(moves(to) && holds(from));
  });
}

/** Whether a task is another one, or anywhere inside it. */
export function isInside(graph: Pick<Graph, "parent">, place: number, other: number): boolean {
  for (let at: number | undefined = place; at !== undefined && at >= 0; at = graph.parent[at]) {
    if (at === other) return true;
  }
  return false;
}
