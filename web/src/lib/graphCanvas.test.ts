import { expect, test } from "vitest";

import { BOX, boxAt, isWhole, mapFrame, Neighbours, PICTURE_PIXELS_MAX, PICTURE_SIDE_MAX, pictureScale, step } from "./graphCanvas";
import type { Graph } from "./types";

/** Two tasks in a row above one that depends on both. */
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

test("a picture of the whole plan is as large as it can be and no larger", () => {
  expect(pictureScale({ width: 500, height: 176 })).toBe(2);
  for (const size of [{ width: 400_000, height: 300 }, { width: 300, height: 90_000 }, { width: 20_000, height: 20_000 }]) {
    const scale = pictureScale(size);
    const [wide, high] = [(size.width + 48) * scale, (size.height + 48) * scale];
    expect(Math.max(wide, high)).toBeLessThanOrEqual(PICTURE_SIDE_MAX + 1);
    expect(wide * high).toBeLessThanOrEqual(PICTURE_PIXELS_MAX + 1);
    expect(Math.max(wide / PICTURE_SIDE_MAX, high / PICTURE_SIDE_MAX, (wide * high) / PICTURE_PIXELS_MAX)).toBeGreaterThan(0.99);
  }
});

test("the overview shows the plan in its middle, and is not needed while all of it is on screen", () => {
  const { scale, left, top } = mapFrame(graph, { width: 180, height: 120 });
  expect(left).toBeCloseTo(6);
  expect(top).toBeCloseTo((120 - 176 * scale) / 2);
  const screen = { width: 600, height: 300 };
  expect(isWhole(graph, { x: -20, y: -20, scale: 1 }, screen)).toBe(true);
  expect(isWhole(graph, { x: 20, y: -20, scale: 1 }, screen)).toBe(false);
  expect(isWhole(graph, { x: -20, y: -20, scale: 2 }, screen)).toBe(false);
});
