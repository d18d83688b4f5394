import { describe, expect, it } from "vitest";

import { marks, stillSeen } from "./review";
import type { Preview, PreviewGroup } from "./types";

const group = (number: number, program: string, tasks: Record<string, string>, warnings: string[] = []): PreviewGroup => ({
  group: number,
  program,
  role: "machine",
  settings: [["attempts", "1"]],
  pattern: [],
  warnings,
  tasks: Object.entries(tasks).map(([id, inputs]) => ({ id, particulars: [["inputs", inputs]] })),
  tasks_total: Object.keys(tasks).length,
  next_offset: null,
});
const preview = (version: number, groups: PreviewGroup[], about: Preview["about"] = []): Preview => ({ version, digest: `sha256:${version}`, about, total: 0, groups });

describe("what was read", () => {
  const before = preview(1, [group(0, "make", { a: "1", b: "2" }), group(1, "rm", { c: "3" }, ["used once"])]);

  it("stays read where it says the same, also in another place", () => {
    const after = preview(2, [group(0, "rm", { c: "3" }, ["used once"]), group(1, "make", { a: "1", b: "other", d: "4" })]);
    expect(stillSeen(before, after, new Set(["0", "0/a", "0/b", "1", "1/c"]))).toEqual(["0", "0/c", "1", "1/a"]);
  });

  it("is to be read again where another program runs it, or the program is warned of", () => {
    const after = preview(2, [group(0, "sh", { a: "1" }), group(1, "rm", { c: "3" }, ["deletes"])]);
    expect(stillSeen(before, after, new Set(["0", "0/a", "1", "1/c"]))).toEqual(["1/c"]);
  });

  it("has the words of the plan, each by itself", () => {
    const [one, other] = [preview(1, [], [["title", "T"], ["goal", "G"], ["queue", "q"]]), preview(2, [], [["title", "T"], ["goal", "H"], ["queue", "q"]])];
    expect(stillSeen(one, other, new Set(["about title", "about goal"]))).toEqual(["about title"]);
  });

  it("was not read if it was not seen", () => {
    expect(stillSeen(before, before, new Set(["0/b"]))).toEqual(["0/b"]);
  });
});

describe("marks", () => {
  it("say of each task whether it is new or changed", () => {
    const found = marks([
      { change: "plan", field: "goal", before: "", after: "x" },
      { change: "added", task: "a", description: "A" },
      { change: "task", task: "a", field: "work", before: "", after: "{}" },
      { change: "task", task: "b", field: "notes", before: "", after: "x" },
      { change: "removed", task: "c", description: "C" },
    ]);
    expect([...found]).toEqual([["a", "new"], ["b", "changed"]]);
  });
});
