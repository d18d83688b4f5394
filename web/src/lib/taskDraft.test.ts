import { expect, test } from "vitest";

import { operationsOf, reshaped, taskDraft } from "./taskDraft";
import type { Executors, Task } from "./types";

const KNOWN: Executors = {
  executors: [{ name: "shell", kind: "process" }],
  shapes: ["patch"],
  checks: [],
  shape_schemas: { patch: { description: "", input_schema: { type: "object", required: ["file"], properties: { file: { type: "string" } } } } },
};
const TASK = {
  id: "a",
  description: "A",
  depends_on: ["b", { plan: "other", task: "far" }],
  locks: ["db", { key: "disk", mode: "shared" }],
  work: { executor: "shell", inputs: { file: "x", more: 1 }, shape: "patch" },
  retry: { attempts: 3, backoff_seconds: 5, backoff_seconds_max: 60 },
  parent: "group",
} as unknown as Task;

const changed = (change: (draft: ReturnType<typeof taskDraft>) => void, task: Task | null = TASK) => {
  const [first, draft] = [taskDraft(task, KNOWN), taskDraft(task, KNOWN)];
  change(draft);
  return operationsOf(draft, first, task, KNOWN);
};

test("a form that was not touched changes nothing", () => {
  expect(changed(() => {})).toEqual([]);
});

test("only what was changed is sent, and dependencies on other plans stay", () => {
  expect(changed((draft) => (draft.notes = "mind the gap"))).toEqual([{ op: "revise", task: "a", set: { notes: "mind the gap" } }]);
  expect(changed((draft) => (draft.depends_on = ["b", "c"]))).toEqual([{ op: "revise", task: "a", set: { depends_on: ["b", "c", { plan: "other", task: "far" }] } }]);
  expect(changed((draft) => (draft.locks = "db"))).toEqual([{ op: "revise", task: "a", set: { locks: ["db"] } }]);
  expect(changed((draft) => (draft.attempts = null))).toEqual([{ op: "revise", task: "a", set: { retry: null } }]);
  expect(changed((draft) => (draft.work.filled.texts["file"] = "y"))).toEqual([{ op: "revise", task: "a", set: { work: { executor: "shell", inputs: { file: "y", more: 1 }, shape: "patch" } } }]);
  expect(changed((draft) => (draft.work.executor = ""))).toEqual([{ op: "revise", task: "a", set: { work: null } }]);
});

test("another parent is a move in the same version", () => {
  expect(changed((draft) => (draft.parent = []))).toEqual([{ op: "move", task: "a", parent: null }]);
  expect(changed((draft) => ([draft.parent, draft.skip] = [["other"], true]))).toEqual([
    { op: "revise", task: "a", set: { skip: true } },
    { op: "move", task: "a", parent: "other" },
  ]);
});

test("a new task has only what was filled in", () => {
  expect(changed((draft) => (draft.description = "New"), null)).toEqual([{ op: "add", task: { description: "New" } }]);
  const full = changed((draft) => {
    draft.id = "n";
    draft.description = "New";
    draft.parent = ["group"];
    draft.work = { ...draft.work, executor: "shell", json: '{"command": "make"}' };
  }, null);
  expect(full).toEqual([{ op: "add", task: { id: "n", description: "New", work: { executor: "shell", inputs: { command: "make" } }, parent: "group" } }]);
});

test("what was filled in goes into the fields of another shape", () => {
  const draft = taskDraft(null, KNOWN).work;
  const next = reshaped({ ...draft, executor: "shell", json: '{"file": "z", "n": 1}' }, "patch", KNOWN, "work");
  expect(next.filled).toEqual({ texts: { file: "z" }, others: '{\n  "n": 1\n}' });
  expect(() => reshaped({ ...draft, executor: "shell", json: "{" }, "patch", KNOWN, "work")).toThrow(/^work inputs: /);
});
