import { expect, test } from "vitest";

import { children, isInside, mayGo, sibling, treeRows } from "./tree";
import type { Graph } from "./types";

const graph = { parent: [-1, 0, 0, 1, -1] } as unknown as Graph;

test("rows stand in the order of the tree, each below its parent", () => {
  const rows = treeRows(children(graph), new Set());
  expect(rows.map((row) => [row.place, row.depth, row.children])).toEqual([
    [0, 0, 2],
    [1, 1, 1],
    [3, 2, 0],
    [2, 1, 0],
    [4, 0, 0],
  ]);
});

test("what is inside a closed task is not shown", () => {
  expect(treeRows(children(graph), new Set([0])).map((row) => row.place)).toEqual([0, 4]);
});

test("a chain of a hundred thousand does not overflow", () => {
  const deep = { parent: Array.from({ length: 100_000 }, (_, place) => place - 1) } as unknown as Graph;
  expect(treeRows(children(deep), new Set()).length).toBe(100_000);
});

test("the tasks beside a task are those under the same parent", () => {
  const graph = { parent: [-1, 0, 0, -1] } as Graph;
  expect(sibling(graph, 0, 1)).toBe(3);
  expect(sibling(graph, 3, -1)).toBe(0);
  expect(sibling(graph, 1, 1)).toBe(2);
  expect(sibling(graph, 2, 1)).toBeNull();
  expect(sibling(graph, 0, -1)).toBeNull();
});

test("a task is inside itself and all tasks above it", () => {
  expect(isInside(graph, 3, 3)).toBe(true);
  expect(isInside(graph, 3, 1)).toBe(true);
  expect(isInside(graph, 3, 0)).toBe(true);
  expect(isInside(graph, 3, 2)).toBe(false);
  expect(isInside(graph, 0, 3)).toBe(false);
});

test("a task goes neither into itself, nor into one with work, nor into what it waits for", () => {
  // 1 and 2 are inside 0; 3 has work; 4 waits for 0, and 5 for 1.
  const graph = { parent: [-1, 0, 0, -1, -1, -1], work: "---w--", from: [0, 1], to: [4, 5] };
  const into = (task: number, onto: number): boolean => mayGo(graph, task, onto, true);
  expect([into(0, 1), into(2, 3), into(4, 0), into(5, 1)]).toEqual([false, false, false, false]);
  expect([into(5, 0), into(2, 4), mayGo(graph, 2, 3, false)]).toEqual([true, true, true]);
  expect(mayGo(graph, 4, 1, false), "beside a task inside of what it waits for").toBe(false);
});
