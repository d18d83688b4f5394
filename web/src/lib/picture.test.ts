import { expect, test } from "vitest";

import { PICTURE_AIR, PICTURE_PIXELS_MAX, PICTURE_SIDE_MAX, pictureScale } from "./picture";

test("a picture is sharp, unless it would be larger than browsers can export", () => {
  expect(pictureScale({ width: 800, height: 600 })).toBe(2);
  for (const plan of [
    { width: 90_000, height: 300 },
    { width: 300, height: 90_000 },
    { width: 30_000, height: 30_000 },
  ]) {
    const scale = pictureScale(plan);
    const [wide, high] = [(plan.width + 2 * PICTURE_AIR) * scale, (plan.height + 2 * PICTURE_AIR) * scale];
    expect(Math.max(wide, high)).toBeLessThanOrEqual(PICTURE_SIDE_MAX + 1);
    expect(wide * high).toBeLessThanOrEqual(PICTURE_PIXELS_MAX * 1.001);
  }
});
