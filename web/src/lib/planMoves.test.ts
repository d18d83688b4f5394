import { expect, test } from "vitest";

import { columnOf, PLAN_COLUMNS, planMove } from "./planMoves";
import { STATUS_SIGNS, type StatusSign } from "./statusSigns";
import type { Counts, Phase } from "./types";

const COUNTS: Counts = { total: 1, ready: 0, blocked: 0, queued: 0, running: 0, done: 0, failed: 0, skipped: 0, cancelled: 0 };
const plan = (phase: Phase, name: StatusSign, more: { failed?: number; awaits?: boolean } = {}) => ({
  phase,
  awaits_approval: more.awaits ?? false,
  counts: { ...COUNTS, failed: more.failed ?? 0 },
  state: { name, label: name, detail: "", needs_you: false },
});

test("every status of a plan has exactly one column", () => {
  for (const name of Object.keys(STATUS_SIGNS) as StatusSign[]) {
    expect(PLAN_COLUMNS.filter((one) => one.statuses.includes(name)), name).toHaveLength(1);
  }
});

test("a move is the command of the button, and an approval is only ever reviewed", () => {
  expect(planMove(plan("draft", "draft"), "running")?.does).toBe("start");
  expect(planMove(plan("draft", "draft", { awaits: true }), "running")).toBeNull();
  expect(planMove(plan("draft", "draft", { awaits: true }), "approval")?.does).toBe("request-approval");
  expect(planMove(plan("awaiting_approval", "approval"), "running")?.does).toBe("review");
  expect(planMove(plan("active", "running"), "waiting")?.does).toBe("pause");
  expect(planMove(plan("active", "failed", { failed: 1 }), "running")?.does).toBe("retry");
  expect(planMove(plan("paused", "paused"), "running")?.does).toBe("resume");
  expect(planMove(plan("paused", "paused"), "ended")?.does).toBe("cancel");
  expect(planMove(plan("completed", "done"), "running")).toBeNull();
  expect(columnOf(plan("paused", "paused"))).toBe("waiting");
});
