// Bars on a clock: lanes, ticks and what took longest. Pure.

import type { Standing, TimelineRow } from "./types";

export interface Bar {
  task: string;
  label: string;
  attempt: number;
  worker: string;
  from: number;
  to: number;
  /** Whether it has not ended. */
  open: boolean;
  outcome: Standing;
  /** Whether nobody works: the task waits for an answer. */
  waits: boolean;
}

export interface Lane {
  name: string;
  /** Bars that do not overlap, in rows below each other. */
  rows: Bar[][];
  /** How many of them are open. */
  busy: number;
}

const OUTCOMES: Record<string, Standing> = { done: "done", failed: "failed", cancelled: "cancelled", skipped: "skipped", lost: "failed", released: "skipped", asked: "asking", reported: "reported" };
const NOBODY = "unknown worker";

/** The bars of all attempts, and of the times in which a task waited for an answer. Attempts that have not ended last until now. */
export function bars(rows: TimelineRow[], isAsking: (task: string) => boolean, now: number): Bar[] {
  const found: Bar[] = [];
  for (const { task, label, attempts } of rows) {
    attempts.forEach((one, at) => {
      const from = Date.parse(one.started_at);
      const own = { task, label, attempt: one.attempt, worker: one.worker ?? NOBODY };
      const end = one.finished_at ? Date.parse(one.finished_at) : null;
      found.push({ ...own, from, to: Math.max(from, end ?? now), open: end === null, outcome: end === null ? "running" : (OUTCOMES[one.outcome ?? ""] ?? "done"), waits: false });
      if (end === null || one.outcome !== "asked") return;
      const next = attempts[at + 1];
      const until = next ? Date.parse(next.started_at) : isAsking(task) ? now : null;
      if (until !== null && until > end) found.push({ ...own, from: end, to: until, open: !next, outcome: "asking", waits: true });
    });
  }
  return found.sort((one, other) => one.from - other.from || one.task.localeCompare(other.task));
}

/** Puts bars into lanes by a name, and in each lane into as few rows as their overlaps allow. A bar is drawn at least so long, in
 *  milliseconds, so that short ones do not hide each other. */
export function lanes(all: Bar[], nameOf: (bar: Bar) => string, least = 0): Lane[] {
  const found = new Map<string, Lane>();
  for (const bar of all) {
    const name = nameOf(bar);
    const lane = found.get(name) ?? { name, rows: [], busy: 0 };
    found.set(name, lane);
    if (bar.open && !bar.waits) lane.busy++;
    const row = lane.rows.find((row) => drawnTo(row.at(-1), least) <= bar.from);
    if (row) row.push(bar);
    else lane.rows.push([bar]);
  }
  return [...found.values()];
}

const drawnTo = (bar: Bar | undefined, least: number): number => (bar ? Math.max(bar.to, bar.from + least) : 0);

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 30 * DAY, 365 * DAY];

/** Round times between two others, at most so many, with their words. Times count from midnight at this offset from UTC, in minutes. */
export function ticks(from: number, to: number, most: number, offset: number): { at: number; text: string }[] {
  const step = STEPS.find((step) => (to - from) / step <= Math.max(1, most)) ?? 365 * DAY;
  const shift = offset * MINUTE;
  const found: { at: number; text: string }[] = [];
  for (let at = Math.ceil((from + shift) / step) * step - shift; at <= to; at += step) {
    const local = new Date(at + shift).toISOString();
    found.push({ at, text: step >= DAY ? local.slice(0, 10) : step < MINUTE ? local.slice(11, 19) : to - from > DAY ? `${local.slice(5, 10)} ${local.slice(11, 16)}` : local.slice(11, 16) });
  }
  return found;
}

export interface Longest {
  task: string;
  label: string;
  /** The time of the latest attempt and of the one before, in milliseconds. */
  took: number;
  before: number | null;
  open: boolean;
}

/** The tasks whose latest attempts took longest. */
export function longest(all: Bar[], most: number): Longest[] {
  const tasks = new Map<string, Bar[]>();
  for (const bar of all) if (!bar.waits) tasks.set(bar.task, [...(tasks.get(bar.task) ?? []), bar]);
  const found = [...tasks.values()].flatMap((own) => {
    const last = own.at(-1);
    const before = own.at(-2);
    return last ? [{ task: last.task, label: last.label, took: last.to - last.from, before: before ? before.to - before.from : null, open: last.open }] : [];
  });
  return found.sort((one, other) => other.took - one.took).slice(0, most);
}

/** Where time went without a result: attempts that failed, and waits for answers. */
export function losses(all: Bar[]): { reason: string; tasks: number; took: number }[] {
  const sum = (reason: string, own: Bar[]): { reason: string; tasks: number; took: number } => ({ reason, tasks: new Set(own.map((bar) => bar.task)).size, took: own.reduce((total, bar) => total + bar.to - bar.from, 0) });
  return [
    sum("Failed attempts", all.filter((bar) => bar.outcome === "failed")),
    sum("Waits for an answer", all.filter((bar) => bar.waits)),
    sum("Released or lost by a worker", all.filter((bar) => bar.outcome === "skipped")),
  ].filter((one) => one.tasks > 0);
}
