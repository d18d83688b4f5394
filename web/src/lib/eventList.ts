// Lists of events that are read once and then followed. A read and the live stream overlap: both may bring the same event.

import type { PlanEvent } from "./types";

/** Names an event of a store. */
export const eventKey = (event: PlanEvent): string => `${event.sequence}.${event.index}`;

/** Joins two lists of events, newest first, each event once, and keeps the newest `most`. */
export function joined(one: PlanEvent[], other: PlanEvent[], most: number): PlanEvent[] {
  const all = new Map([...one, ...other].map((event) => [eventKey(event), event]));
  return [...all.values()].sort((a, b) => b.sequence - a.sequence || b.index - a.index).slice(0, most);
}
