import { expect, test } from "vitest";

import { bars, lanes, longest, losses, ticks } from "./timeline";
import type { TimelineRow } from "./types";

const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 14, minute)).toISOString();
const ms = (minute: number): number => Date.parse(at(minute));

const rows: TimelineRow[] = [
  { task: "build", label: "Build", attempts: [{ attempt: 1, worker: "one", started_at: at(0), finished_at: at(4), outcome: "failed" }, { attempt: 2, worker: "two", started_at: at(5), finished_at: at(8), outcome: "done" }] },
  { task: "ask", label: "Ask", attempts: [{ attempt: 1, worker: "one", started_at: at(2), finished_at: at(3), outcome: "asked" }] },
  { task: "run", label: "Run", attempts: [{ attempt: 1, worker: "two", started_at: at(6) }] },
];
const all = bars(rows, (task) => task === "ask", ms(10));

test("an attempt without an end lasts until now, and so does an open question", () => {
  expect(all.map((bar) => [bar.task, bar.outcome, (bar.to - bar.from) / 60_000, bar.waits])).toEqual([
    ["build", "failed", 4, false],
    ["ask", "asking", 1, false],
    ["ask", "asking", 7, true],
    ["build", "done", 3, false],
    ["run", "running", 4, false],
  ]);
});

test("bars that overlap stand below each other in their lane", () => {
  const found = lanes(all, (bar) => bar.worker);
  expect(found.map((lane) => [lane.name, lane.rows.length, lane.busy])).toEqual([
    ["one", 2, 0],
    ["two", 2, 1],
  ]);
});

test("bars that are too short to be seen stand below each other, too", () => {
  const short = bars([{ task: "a", label: "A", attempts: [{ attempt: 1, worker: "one", started_at: at(0), finished_at: at(0), outcome: "done" }] }, { task: "b", label: "B", attempts: [{ attempt: 1, worker: "one", started_at: at(1), finished_at: at(1), outcome: "failed" }] }], () => false, ms(9));
  expect(lanes(short, (bar) => bar.worker)[0]?.rows.length).toBe(1);
  expect(lanes(short, (bar) => bar.worker, 120_000)[0]?.rows.length).toBe(2);
});

test("ticks are round times of the day", () => {
  expect(ticks(ms(1), ms(31), 4, 0).map((tick) => tick.text)).toEqual(["14:10", "14:20", "14:30"]);
  expect(ticks(ms(1), ms(31), 4, 90)[0]?.text).toBe("15:40");
  expect(ticks(ms(0), ms(0) + 3_000, 8, 0).map((tick) => tick.text)).toEqual(["14:00:00", "14:00:01", "14:00:02", "14:00:03"]);
});

test("the longest tasks are compared with their attempt before", () => {
  expect(longest(all, 2)).toMatchObject([
    { task: "run", took: 240_000, before: null, open: true },
    { task: "build", took: 180_000, before: 240_000 },
  ]);
  expect(losses(all)).toEqual([
    { reason: "Failed attempts", tasks: 1, took: 240_000 },
    { reason: "Waits for an answer", tasks: 1, took: 420_000 },
  ]);
});
