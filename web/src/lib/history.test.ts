import { expect, test } from "vitest";

import { entries } from "./history";

const version = (version: number, command: string, actor: string) => ({ version, command, actor, at: "", summary: "" });

test("runs are folded between decisions, and what a person reports is a decision", () => {
  const versions = [
    version(6, "finish_task", "worker:w1"),
    version(5, "several", "worker:w1"),
    version(4, "finish_task", "person:ada"),
    version(3, "start_task", "agent:robin"),
    version(2, "approve", "person:ada"),
    version(1, "create", "agent:robin"),
  ];
  const found = entries(versions).map((one) => (one.kind === "run" ? one.versions.map((own) => own.version) : one.version.version));
  expect(found).toEqual([[6, 5], 4, [3], 2, 1]);
});
