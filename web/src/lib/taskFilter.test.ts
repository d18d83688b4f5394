import { expect, test } from "vitest";

import { matches, taskFilter } from "./taskFilter";

const task = { id: "deploy", label: "Deploy to staging", standing: "ready" as const, annotation: { labels: ["risky"], assignee: "person:ada" } };
const fits = (search: string): boolean => matches(taskFilter(new URLSearchParams(search)), task);

test("all words and all conditions must fit", () => {
  expect(fits("")).toBe(true);
  expect(fits("text=staging deploy")).toBe(true);
  expect(fits("text=risky")).toBe(true);
  expect(fits("text=staging production")).toBe(false);
  expect(fits("standing=ready&label=risky&assignee=person:ada")).toBe(true);
  expect(fits("standing=done")).toBe(false);
  expect(fits("label=safe")).toBe(false);
  expect(fits("assignee=person:bob")).toBe(false);
});
