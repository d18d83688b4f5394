// The task counts of each group of levels, from the current status of every task. Pure.

import type { Counts, Graph, Group, Standing } from "./types";

/** Counts the tasks of each group. The parts of a level are consecutive, and contain its tasks in plan order. */
export function groupCounts(graph: Graph, groups: Group[], standing: Standing[]): Counts[] {
  const counts = groups.map((): Counts => ({ total: 0, ready: 0, blocked: 0, queued: 0, running: 0, done: 0, failed: 0, skipped: 0, cancelled: 0 }));
  const firstOf = new Map<number, number>();
  groups.forEach((group, place) => {
    for (let level = group.level_from; level <= group.level_to; level++) if (!firstOf.has(level)) firstOf.set(level, place);
  });
  const seen = groups.map(() => 0);
  graph.level.forEach((level, task) => {
    const first = firstOf.get(level);
    if (first === undefined) return;
    const size = groups[first]?.part === undefined ? Infinity : (groups[first]?.count ?? Infinity);
    const number = seen[first] ?? 0;
    seen[first] = number + 1;
    const own = counts[first + Math.floor(number / size)];
    if (!own) return;
    own.total++;
    const status = standing[task] ?? "blocked";
    own[status] = (own[status] ?? 0) + 1;
  });
  return counts;
}
