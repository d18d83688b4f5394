import { expect, test } from "vitest";

import { groupCounts } from "./levels";
import type { Counts, Graph, Group } from "./types";

const none: Counts = { total: 0, ready: 0, blocked: 0, queued: 0, running: 0, done: 0, failed: 0, skipped: 0, cancelled: 0 };
const group = (from: number, to: number, count: number, part?: number): Group => ({
  name: `${from} ${part}`,
  level_from: from,
  level_to: to,
  count,
  counts: none,
  ...(part === undefined ? {} : { part }),
});

test("tasks are counted in their group, and in the part of a level that is too wide", () => {
  const level = [0, 1, 1, 0, 1, 2, 3];
  const graph = { level } as Graph;
  const groups = [group(0, 0, 2), group(1, 1, 2, 0), group(1, 1, 1, 1), group(2, 3, 2)];
  const counts = groupCounts(graph, groups, ["done", "failed", "ready", "running", "asking", "blocked", "done"]);
  expect(counts).toEqual([
    { ...none, total: 2, done: 1, running: 1 },
    { ...none, total: 2, failed: 1, ready: 1 },
    { ...none, total: 1, asking: 1 },
    { ...none, total: 2, blocked: 1, done: 1 },
  ]);
});
