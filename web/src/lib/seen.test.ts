import { describe, expect, it } from "vitest";

import { cover, isWhole } from "./seen";

describe("what was on screen", () => {
  it("is whole only without a gap", () => {
    const ends = cover(cover([], 0, 0.3), 0.7, 1);
    expect(ends).toEqual([[0, 0.3], [0.7, 1]]);
    expect(isWhole(ends, 0.01)).toBe(false);
    expect(isWhole(cover(ends, 0.2, 0.8), 0.01)).toBe(true);
  });

  it("does not count what is beside the screen", () => {
    expect(cover([], 0.4, 0.4)).toEqual([]);
    expect(cover([], 1.2, 1)).toEqual([]);
    expect(isWhole([], 0.01)).toBe(false);
    expect(isWhole(cover([], 0, 0.9), 0.01)).toBe(false);
  });
});
