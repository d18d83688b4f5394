import { expect, test } from "vitest";

import { STANDINGS } from "./labels";
import { moveMeans, TASK_COLUMNS } from "./taskActions";

const column = (name: string) => {
  const found = TASK_COLUMNS.find((one) => one.name === name);
  if (!found) throw new Error(name);
  return found;
};

test("every status has exactly one column", () => {
  for (const standing of STANDINGS) {
    expect(TASK_COLUMNS.filter((one) => one.standings.includes(standing)).map((one) => one.name)).toHaveLength(1);
  }
});

test("a move means the command that its button gives, or nothing", () => {
  const meant = (standing: (typeof STANDINGS)[number], to: string) => moveMeans(standing, column(to))?.[0] ?? null;
  expect(meant("ready", "done")).toBe("done");
  expect(meant("ready", "failed")).toBe("fail");
  expect(meant("ready", "blocked")).toBe("hold");
  expect(meant("ready", "dropped")).toBe("skip");
  expect(meant("running", "dropped")).toBe("cancel");
  expect(meant("held", "ready")).toBe("unhold");
  expect(meant("failed", "ready")).toBe("retry");
  expect(meant("blocked", "done")).toBeNull();
  expect(meant("asking", "done")).toBeNull();
  expect(meant("person", "done")).toBe("done");
  expect(meant("ready", "running")).toBeNull();
  expect(meant("held", "blocked")).toBeNull();
});
