import { expect, test } from "vitest";

import { children, isInside, sibling, treeRows } from "./tree";
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
