import { unfold } from "./camera";
import { describe, expect, test } from "vitest";

import { fit, pan, planPoint, reveal, SCALE_MAX, SCALE_MIN, zoom } from "./camera";

const screen = { width: 800, height: 600 };

describe("the camera", () => {
  test("shows all of a plan that is larger than the screen", () => {
    const camera = fit({ width: 8_000, height: 1_000 }, screen);
    const corner = planPoint(camera, { x: 0, y: 0 });
    const other = planPoint(camera, { x: 800, y: 600 });
    expect(corner.x).toBeLessThanOrEqual(0);
    expect(corner.y).toBeLessThanOrEqual(0);
    expect(other.x).toBeGreaterThanOrEqual(8_000);
    expect(other.y).toBeGreaterThanOrEqual(1_000);
  });

  test("keeps the point under the pointer where it is", () => {
    const camera = { x: 13, y: -7, scale: 0.5 };
    const at = { x: 321, y: 123 };
    const before = planPoint(camera, at);
    const after = planPoint(zoom(camera, 1.7, at), at);
    expect(after.x).toBeCloseTo(before.x);
    expect(after.y).toBeCloseTo(before.y);
  });

  test("goes neither nearer nor farther than its bounds", () => {
    const camera = { x: 0, y: 0, scale: 1 };
    expect(zoom(camera, 1e9, { x: 0, y: 0 }).scale).toBe(SCALE_MAX);
    expect(zoom(camera, 1e-9, { x: 0, y: 0 }).scale).toBe(SCALE_MIN);
  });

  test("follows the hand", () => {
    expect(pan({ x: 0, y: 0, scale: 2 }, 10, -20)).toEqual({ x: -5, y: 10, scale: 2 });
  });

  test("moves only when a box cannot be seen", () => {
    const camera = { x: 0, y: 0, scale: 1 };
    expect(reveal(camera, { x: 300, y: 300, width: 200, height: 56 }, screen)).toEqual(camera);
    const moved = reveal(camera, { x: 2_000, y: 300, width: 200, height: 56 }, screen);
    expect(moved.x).toBe(2_000 + 200 + 40 - 800);
    expect(moved.y).toBe(0);
  });
});

test("what was opened is in view, from its beginning if it is too large", () => {
  const screen = { width: 1000, height: 800 };
  const camera = { x: 0, y: 0, scale: 1 };
  expect(unfold(camera, { x: 100, y: 100, width: 300, height: 200 }, screen)).toEqual(camera);
  const moved = unfold(camera, { x: 900, y: 100, width: 300, height: 200 }, screen);
  expect([moved.x, moved.y, moved.scale]).toEqual([224, 0, 1]);
  const tall = unfold(camera, { x: 500, y: 600, width: 400, height: 8000 }, screen);
  expect([tall.scale, tall.y]).toEqual([0.5, 552]);
  expect(tall.x).toBeLessThan(500);
});
