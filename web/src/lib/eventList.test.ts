import { expect, test } from "vitest";

import { eventKey, joined } from "./eventList";
import type { PlanEvent } from "./types";

const event = (sequence: number, index = 0): PlanEvent => ({ sequence, index, at: "", actor: "person:ada", plan: "p", version: 1, kind: "task_done", event: {} });
const keys = (events: PlanEvent[]): string[] => events.map(eventKey);

test("an event that a read and the live stream both bring is listed once", () => {
  const live = [event(7), event(6, 1)];
  const read = [event(7), event(6, 1), event(6, 0), event(2)];
  expect(keys(joined(live, read, 10))).toEqual(["7.0", "6.1", "6.0", "2.0"]);
  expect(keys(joined(read, live, 10))).toEqual(keys(joined(live, read, 10)));
});

test("an event that came while the list was read stays, newest first, within the limit", () => {
  expect(keys(joined([event(8)], [event(7), event(1)], 2))).toEqual(["8.0", "7.0"]);
  expect(keys(joined([event(7), event(1)], [event(8)], 2))).toEqual(["8.0", "7.0"]);
});
