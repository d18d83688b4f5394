import { expect, test } from "vitest";

import { STATUS_SIGNS } from "./statusSigns";
import { phaseSign, SIGN, STANDINGS } from "./labels";

const NONE = { total: 0, ready: 0, blocked: 0, queued: 0, running: 0, done: 0, failed: 0, skipped: 0, cancelled: 0 };

test("signs come from the table of all front ends", () => {
  for (const standing of STANDINGS) expect(SIGN[standing]).toBe(STATUS_SIGNS[standing].glyph);
});

test("an active plan is shown as running only while a task is queued or runs", () => {
  expect(phaseSign("active", { ...NONE, running: 1, ready: 2 })).toBe(STATUS_SIGNS.running.glyph);
  expect(phaseSign("active", { ...NONE, queued: 1 })).toBe(STATUS_SIGNS.running.glyph);
  expect(phaseSign("active", { ...NONE, ready: 2 })).toBe(STATUS_SIGNS.idle.glyph);
  expect(phaseSign("active", { ...NONE, blocked: 1 })).toBe(STATUS_SIGNS.blocked.glyph);
  expect(phaseSign("awaiting_approval", NONE)).toBe(STATUS_SIGNS.approval.glyph);
  expect(phaseSign("completed", NONE)).toBe(STATUS_SIGNS.done.glyph);
});
