import { expect, test } from "vitest";

import { BOX, boxAt, Neighbours, step } from "./picture";
import type { Graph } from "./types";

/** Two in a row above one that needs both. */
const graph: Graph = {
  version: 1,
  count: 3,
  ids: ["a", "b", "c"],
  labels: ["A", "B", "C"],
  standing: "rrb",
  from: [0, 1],
  to: [2, 2],
  parent: [-1, -1, -1],
  x: [0, 300, 150],
  y: [0, 0, 120],
  width: 500,
  height: 176,
  level: [0, 0, 1],
  critical: [],
};

test("the box under the pointer is found, and nothing between boxes", () => {
  expect(boxAt(graph, 10, 10)).toBe(0);
  expect(boxAt(graph, 300 + BOX.width, BOX.height)).toBe(1);
  expect(boxAt(graph, 250, 10)).toBeNull();
});

test("arrow keys follow the arrows and the rows", () => {
  const neighbours = new Neighbours(graph);
  expect(step(graph, neighbours, 0, "ArrowRight")).toBe(1);
  expect(step(graph, neighbours, 1, "ArrowLeft")).toBe(0);
  expect(step(graph, neighbours, 0, "ArrowDown")).toBe(2);
  expect([0, 1]).toContain(step(graph, neighbours, 2, "ArrowUp"));
  expect(step(graph, neighbours, 0, "ArrowUp")).toBeNull();
  expect(step(graph, neighbours, 0, "ArrowLeft")).toBeNull();
});
