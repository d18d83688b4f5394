import { expect, test } from "vitest";

import { PLAN_GROUPS, STATUS_SIGNS } from "./statusSigns";
import { doneOfAll, exact, forPeople, grouped, needYouFirst, ofAll, progress, SIGN, STANDINGS, span, tasksAndParents, titled, visible, wordOf } from "./labels";

const NONE = { total: 0, ready: 0, blocked: 0, queued: 0, running: 0, done: 0, failed: 0, skipped: 0, cancelled: 0 };

test("signs come from the table of all front ends", () => {
  for (const standing of STANDINGS) expect(SIGN[standing]).toBe(STATUS_SIGNS[standing].glyph);
});

test("what is ready and a person does waits for that person", () => {
  expect(forPeople(["ready", "ready", "blocked", "done"], [1, 2, 3])).toEqual(["ready", "person", "blocked", "done"]);
});

test("a task that waits for a person is your task", () => {
  expect(wordOf("person")).toBe("your task");
});

test("an exact time is the same in every browser", () => {
  expect(exact("2026-11-19T14:06:14")).toBe("19 Nov 2026, 14:06:14");
});

test("parents are no tasks, and a plan without tasks has none done", () => {
  expect([tasksAndParents(18, 1), tasksAndParents(1, 0)]).toEqual(["17 tasks, 1 parent", "1 task"]);
  expect([ofAll({ ...NONE, total: 3, done: 1 }), ofAll(NONE), doneOfAll(NONE)]).toEqual(["1 of 3", "no tasks", "no tasks"]);
});

test("a duration has no minute of 60 seconds", () => {
  expect([9_940, 9_960, 59_400, 59_600, 539_700, 3_599_900].map(span)).toEqual(["9.9 s", "10 s", "59 s", "1 min 0 s", "9 min 0 s", "1 h 0 min"]);
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

test("what needs a person comes first, then what failed, then what runs", () => {
  const plans = (["done", "failed", "running", "person", "idle", "asking", "running", "approval"] as const).map((name, at) => ({ at, state: { name } }));
  const order = grouped(plans).flatMap((group) => group.plans.map((plan) => plan.state.name));
  expect(order).toEqual(["approval", "asking", "person", "failed", "running", "running", "idle", "done"]);
  expect(grouped(plans)[1]).toEqual({ name: "Running", plans: [plans[2], plans[6]] });
});

test("no plan that needs a person is left out for room", () => {
  const plans = (["failed", "running", "failed", "done", "person"] as const).map((name) => ({ state: { name } }));
  expect(needYouFirst(plans, 2).map((plan) => plan.state.name)).toEqual(["person", "failed", "failed"]);
  expect(needYouFirst(plans, 4).map((plan) => plan.state.name)).toEqual(["person", "failed", "failed", "running"]);
});

test("titles cannot hide or reorder what stands beside them", () => {
  expect(titled("safe \u202Egnp.exe", "p")).toBe("safe \ufffdgnp.exe");
  expect(titled("a\u200bb\u2066c\ufeff", "p")).toBe("a\ufffdb\ufffdc\ufffd");
  expect(titled("\u200b \u2060", "plan-7")).toBe("plan-7");
  expect(titled("", "plan-7")).toBe("plan-7");
  // Hebrew, a joined emoji and a non-joiner are words, not tricks.
  for (const text of ["שלום", "👩‍💻", "می‌خواهم"]) expect(visible(text)).toBe(text);
});
