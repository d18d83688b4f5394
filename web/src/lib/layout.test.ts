import { expect, test } from "vitest";

import { boxCounts, cellAt, cellPaths, dependenciesOf, edgePath, edgesAt, edgesOf, keysOf, keysText, middleOf, search, share, step, summary, worst } from "./layout";
import type { Graph, Layout, LayoutBox, Standing } from "./types";

const box = (own: Partial<LayoutBox>): LayoutBox => ({ kind: "task", x: 0, y: 0, width: 100, height: 40, ...own });

/** A frame of parent 0 with tasks 1 and 2, and a folded group of 3 and 4. */
const layout: Layout = {
  version: 1,
  width: 500,
  height: 200,
  head: 34,
  boxes: [
    box({ kind: "frame", task: 0, key: "in a", height: 140 }),
    box({ task: 1, outer: 0, y: 40, x: 10 }),
    box({ task: 2, outer: 0, y: 90, x: 10 }),
    box({ kind: "group", key: "b*", x: 300, y: 80 }),
  ],
  of: [0, 1, 2, 3, 3],
  edges: [{ from: 1, to: 3, count: 2, points: [110, 60, 200, 60, 200, 100, 300, 100] }],
  open: ["in a"],
  groups: 2,
  grouping: "parent",
};
const standing: Standing[] = ["running", "done", "failed", "ready", "done"];

test("a frame counts what is inside, and a group its tasks", () => {
  const counts = boxCounts(layout, standing, new Set([0]));
  expect(counts[0]).toMatchObject({ total: 2, done: 1, failed: 1, running: 0 });
  expect(counts[3]).toMatchObject({ total: 2, ready: 1, done: 1 });
  expect(counts.map(worst)).toEqual(["failed", "blocked", "blocked", "ready"]);
  expect(summary(counts[0]!)).toBe("2 tasks, 1 failed, 1 done");
});

test("parents inside others do not count", () => {
  const nested: Layout = { ...layout, of: [0, 1, 2, 3, 3], boxes: layout.boxes.map((one, at) => (at === 1 ? { ...one, kind: "frame" } : one)) };
  expect(boxCounts(nested, standing, new Set([0, 1, 3])).map((one) => one.total)).toEqual([1, 0, 0, 1]);
});

test("an edge has rounded bends and ends before its head", () => {
  expect(edgePath(layout.edges[0]!)).toBe("M110 60L194 60Q200 60 200 66L200 94Q200 100 206 100H295");
  expect(edgePath({ from: 0, to: 1, count: 1, points: [] })).toBe("");
});

test("arrow keys follow the edges, and go to the nearest box above and below", () => {
  expect(step(layout, 1, "ArrowRight")).toBe(3);
  expect(step(layout, 3, "ArrowLeft")).toBe(1);
  expect(step(layout, 1, "ArrowDown")).toBe(2);
  expect(step(layout, 2, "ArrowUp")).toBe(1);
  expect(step(layout, 2, "ArrowRight")).toBeNull();
});

test("an edge is found near its line, with those that share it there", () => {
  const shared: Layout = { ...layout, edges: [...layout.edges, { from: 2, to: 3, count: 1, points: [110, 110, 200, 110, 200, 100, 300, 100] }] };
  expect(edgesAt(shared, 150, 63, 6)).toEqual([0]);
  expect(edgesAt(shared, 250, 97, 6)).toEqual([0, 1]);
  expect(edgesAt(shared, 150, 80, 6)).toEqual([]);
  expect(edgesAt({ ...layout, edges: [] }, 1, 1, 6)).toEqual([]);
});

test("an edge between groups stands for all dependencies between their tasks", () => {
  const graph = { from: [1, 1, 2, 3], to: [3, 4, 3, 4] } as Graph;
  expect(dependenciesOf(graph, layout, layout.edges[0]!)).toEqual([{ from: 1, to: 3 }, { from: 1, to: 4 }]);
  expect(dependenciesOf(graph, layout, { from: 3, to: 3, count: 1, points: [] })).toEqual([{ from: 3, to: 4 }]);
});

test("the edges of a box come one after the other, those that lead to it first", () => {
  const all: Layout = { ...layout, edges: [{ from: 3, to: 1, count: 1, points: [] }, { from: 2, to: 3, count: 1, points: [] }, { from: 1, to: 3, count: 1, points: [] }] };
  expect(edgesOf(all, 3)).toEqual([2, 1, 0]);
  expect(middleOf(layout.edges[0]!)).toEqual({ x: 200, y: 85 });
});

test("an address names the open groups, also none", () => {
  const keys = ["test-*", "in a,b", "50% x"];
  expect(keysOf(keysText(keys))).toEqual(keys);
  expect(keysOf(keysText([]))).toEqual([]);
  expect(keysOf(null)).toBeNull();
});

test("a cell is found where it is drawn", () => {
  const paths = cellPaths([3, 4, 1], 2, 34, standing);
  expect(paths.map(([status]) => status)).toEqual(["ready", "done"]);
  expect(paths[1]![1]).toContain("M24 34");
  expect(paths[1]![1]).toContain("M12 46");
  expect(cellAt(25, 35, 2, 34, 3)).toBe(1);
  expect(cellAt(13, 47, 2, 34, 3)).toBe(2);
  expect(cellAt(25, 47, 2, 34, 3)).toBeNull();
});

test("a task is found by words of its id or label", () => {
  const graph = { ids: ["deploy-a", "build"], labels: ["To staging", "Deploy notes"] } as unknown as Graph;
  expect(search(graph, "deploy")).toEqual([0, 1]);
  expect(search(graph, "staging DEP")).toEqual([0]);
  expect(search(graph, " ")).toEqual([]);
});

test("a share is read from a progress report", () => {
  expect(share("71 %")).toBe(0.71);
  expect(share("step 2 of 8")).toBe(0.25);
  expect(share("copying")).toBeNull();
});
