import { expect, test } from "vitest";

import { STATUS_SIGNS } from "./statusSigns";
import { doneOfAll, PLAN_GROUPS, progress, SIGN, STANDINGS } from "./labels";

const NONE = { total: 0, ready: 0, blocked: 0, queued: 0, running: 0, done: 0, failed: 0, skipped: 0, cancelled: 0 };

test("signs come from the table of all front ends", () => {
  for (const standing of STANDINGS) expect(SIGN[standing]).toBe(STATUS_SIGNS[standing].glyph);
});

test("what failed or was skipped is not done", () => {
  const counts = { ...NONE, total: 4, done: 1, failed: 1, skipped: 2 };
  expect(progress(counts)).toBe(0.25);
  expect(doneOfAll(counts)).toBe("1 of 4 done");
});

test("every status of a plan belongs to one group of the list", () => {
  const grouped = PLAN_GROUPS.flatMap((group) => group.statuses);
  expect([...grouped].sort()).toEqual(Object.keys(STATUS_SIGNS).sort());
});
