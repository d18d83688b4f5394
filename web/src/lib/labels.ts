// Names and signs. Colour is never the only cue: every status has a sign and a word.

import { PLAN_GROUPS, STATUS_SIGNS, type StatusSign } from "./statusSigns";
import type { Counts, Graph, InboxItem, Phase, Role, Standing } from "./types";
import { UNSAFE } from "./unsafeCharacters";

/** The order of the statuses in lists and filters. */
export const STANDINGS: Standing[] = [
  "running",
  "queued",
  "asking",
  "person",
  "held",
  "disputed",
  "reported",
  "failed",
  "ready",
  "blocked",
  "done",
  "skipped",
  "cancelled",
];

/** The word of a status. */
export const wordOf = (standing: Standing): string => STATUS_SIGNS[standing].word;

export const SIGN = Object.fromEntries(STANDINGS.map((standing) => [standing, STATUS_SIGNS[standing].glyph])) as Record<Standing, string>;

const LETTERS: Record<string, Standing> = {
  r: "ready",
  b: "blocked",
  u: "queued",
  R: "running",
  d: "done",
  f: "failed",
  s: "skipped",
  c: "cancelled",
  q: "asking",
  h: "held",
  x: "disputed",
  p: "reported",
};

/** Returns the status of each task of a graph. */
export function standings(graph: Graph): Standing[] {
  return Array.from(graph.standing, (letter) => LETTERS[letter] ?? "blocked");
}

/** Shows what is ready, and a person does, as waiting for that person. */
export function forPeople(standing: Standing[], people: number[]): Standing[] {
  const theirs = people.filter((task) => standing[task] === "ready");
  if (theirs.length === 0) return standing;
  const shown = [...standing];
  for (const task of theirs) shown[task] = "person";
  return shown;
}

export const PHASE_WORD: Record<Phase, string> = {
  draft: "draft",
  awaiting_approval: "needs approval",
  active: "active",
  paused: "paused",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
};

/** Returns the share of the tasks that are done, from 0 to 1. Failed, skipped and cancelled tasks are not done. */
export const progress = (counts: Counts): number => (counts.total === 0 ? 0 : counts.done / counts.total);

/** `31 of 62`, or that there is nothing to do. */
export const ofAll = (counts: Counts): string => (counts.total === 0 ? "no tasks" : `${count(counts.done)} of ${count(counts.total)}`);

/** `31 of 62 done`. */
export const doneOfAll = (counts: Counts): string => `${ofAll(counts)}${counts.total === 0 ? "" : " done"}`;

/** Whether a role can act on what waits: people on everything, agents on failures, readers on nothing. */
export const mayAct = (kind: InboxItem["kind"], role: Role | undefined): boolean => role === "person" || (role === "agent" && kind === "failure");

/** Puts plans into their groups, and in each group the most urgent first; those that are equal keep their order. */
export function grouped<T extends { state: { name: StatusSign } }>(plans: T[]): { name: string; plans: T[] }[] {
  return PLAN_GROUPS.map(({ name, statuses }) => ({
    name,
    plans: plans.filter((plan) => statuses.includes(plan.state.name)).sort((one, other) => statuses.indexOf(one.state.name) - statuses.indexOf(other.state.name)),
  })).filter((group) => group.plans.length > 0);
}

/** Returns all plans that need a person, and others up to so many, in the order of the list of plans. */
export function needYouFirst<T extends { state: { name: StatusSign } }>(plans: T[], most: number): T[] {
  const needs = PLAN_GROUPS[0]?.statuses ?? [];
  return grouped(plans)
    .flatMap((group) => group.plans)
    .filter((plan, place) => place < most || needs.includes(plan.state.name));
}

/** Shows as a sign what would hide or reorder text. */
export const visible = (text: string): string => text.replace(UNSAFE, "\ufffd");

/** The title of a plan or a task, or its id if the title has nothing to see. */
export const titled = (title: string | undefined, id: string | undefined): string => visible(/[^\s\ufffd]/.test(visible(title ?? "")) ? (title ?? "") : (id ?? ""));

/** Formats a number of bytes: `12.3 MB`. */
export const bytes = (value: number): string => (value < 1e6 ? `${Math.ceil(value / 1e3)} kB` : `${(value / 1e6).toFixed(1)} MB`);

/** Formats a whole number for people. */
export const count = (value: number): string => value.toLocaleString("en");

/** `17 tasks, 1 parent`: nobody works on a parent. */
export const tasksAndParents = (all: number, parents: number): string => `${several(all - parents, "task")}${parents > 0 ? `, ${several(parents, "parent")}` : ""}`;

/** `3 tasks`, `1 task`. */
export const several = (value: number, one: string, many = `${one}s`): string => `${count(value)} ${value === 1 ? one : many}`;

const STEPS: [number, Intl.RelativeTimeFormatUnit][] = [
  [60, "second"],
  [60, "minute"],
  [24, "hour"],
  [7, "day"],
  [4.35, "week"],
  [12, "month"],
  [Number.POSITIVE_INFINITY, "year"],
];

const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" });

/** Formats how long ago a time was. */
export function ago(at: string | null | undefined, now: number): string {
  if (!at) return "";
  let value = (Date.parse(at) - now) / 1000;
  if (Math.abs(value) < 5) return "now";
  for (const [size, unit] of STEPS) {
    if (Math.abs(value) < size) return RELATIVE.format(Math.round(value), unit);
    value /= size;
  }
  return at;
}

/** Formats a duration with at most two units. */
export function span(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  // Rounded first, so that no minute has 60 seconds.
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${whole % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Formats how long something has lasted, with one unit: `12 min`. */
export function lasting(at: string | null | undefined, now: number): string {
  if (!at) return "";
  const seconds = Math.max(0, now - Date.parse(at)) / 1000;
  if (seconds < 60) return "under a minute";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return several(Math.floor(seconds / 86_400), "day");
}

/** Formats the time of day. */
export const clock = (at: string | null | undefined): string => (at ? new Date(at).toLocaleTimeString("en-GB") : "");

/** Formats the exact time: `19 Nov 2026, 14:06:14`. */
export const exact = (at: string | null | undefined): string => (at ? new Date(at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" }) : "");

/** Splits an actor into its kind and its name. */
export function actor(text: string | null | undefined): { kind: string; name: string } {
  const at = (text ?? "").indexOf(":");
  return at < 0 ? { kind: "", name: text ?? "" } : { kind: (text ?? "").slice(0, at), name: (text ?? "").slice(at + 1) };
}

/** Shortens the names in a text: workers to host and process, without the start time of the process, and agents without their session. */
export const briefly = (text: string): string => text.replace(/([\w.-]+:\d+):[0-9a-f]+\.[0-9a-f]+/g, "$1").replace(/^(agent:[^\s#]+)#\w+$/, "$1");

/** Formats a value for people. */
export function shown(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
