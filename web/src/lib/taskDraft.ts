// What the form of a task holds, and the operations that make the plan say so. Pure.

import { fill, inputsOf, readJson, schemaFields } from "./schemaFields";
import type { Operation } from "./actions";
import type { Executors, Task } from "./types";
import type { WorkDraft } from "../parts/WorkFields.svelte";

type Work = NonNullable<Task["work"]>;

export interface TaskDraft {
  id: string;
  description: string;
  notes: string;
  parent: string[];
  depends_on: string[];
  when: string;
  complexity: string;
  tools: string;
  priority: number;
  skip: boolean;
  locks: string;
  attempts: number | null;
  backoff: number | null;
  timeout: number | null;
  provides: string;
  work: WorkDraft;
  check: WorkDraft;
}

export function workDraft(work: Work | undefined, known: Executors | null): WorkDraft {
  const fields = schemaFields(known?.shape_schemas?.[work?.shape ?? ""]?.input_schema);
  const inputs = work?.inputs ?? {};
  const isEmpty = typeof inputs === "object" && inputs !== null && Object.keys(inputs).length === 0;
  return {
    executor: work?.executor ?? "",
    shape: work?.shape ?? "",
    filled: fields ? fill(fields, inputs) : { texts: {}, others: "" },
    json: isEmpty ? "" : JSON.stringify(inputs, null, 2),
  };
}

/** Reads the work back; null for none. Throws an error with the name of a field that cannot be read. */
export function workOf(draft: WorkDraft, known: Executors | null, name: string): Work | null {
  if (draft.executor === "") return null;
  const fields = schemaFields(known?.shape_schemas?.[draft.shape]?.input_schema);
  const inputs = fields ? inputsOf(fields, draft.filled) : (readJson(draft.json, `${name} inputs`) ?? {});
  return { executor: draft.executor, inputs, ...(draft.shape ? { shape: draft.shape } : {}) };
}

/** Another shape: what was filled in before is put into its fields. */
export function reshaped(draft: WorkDraft, shape: string, known: Executors | null, name: string): WorkDraft {
  const work = workOf(draft, known, name);
  return work ? workDraft({ ...work, shape }, known) : { ...draft, shape };
}

const external = (one: string | Record<string, string>): one is Record<string, string> => typeof one !== "string";

export function taskDraft(task: Task | null, known: Executors | null): TaskDraft {
  return {
    id: task?.id ?? "",
    description: task?.description ?? "",
    notes: task?.notes ?? "",
    parent: task?.parent ? [task.parent] : [],
    depends_on: (task?.depends_on ?? []).filter((one) => !external(one)) as string[],
    when: task?.when ?? "",
    complexity: task?.complexity ?? "",
    tools: (task?.tools ?? []).join(", "),
    priority: task?.priority ?? 0,
    skip: task?.skip ?? false,
    locks: (task?.locks ?? []).map((one) => (typeof one === "string" ? one : one.mode === "shared" ? `${one.key}:shared` : one.key)).join(", "),
    attempts: task?.retry?.attempts ?? null,
    backoff: task?.retry?.backoff_seconds ?? null,
    timeout: task?.timeout_seconds ?? null,
    provides: task?.provides ?? "",
    work: workDraft(task?.work, known),
    check: workDraft(task?.check, known),
  };
}

const words = (text: string): string[] => text.split(",").map((one) => one.trim()).filter(Boolean);
const lock = (text: string): string | { key: string; mode: string } => (text.endsWith(":shared") ? { key: text.slice(0, -":shared".length), mode: "shared" } : text);

/** Returns the author's part of the task, as the API takes it. Throws an error with the name of a field that cannot be read. */
function fieldsOf(draft: TaskDraft, task: Task | null, known: Executors | null): Record<string, unknown> {
  const elsewhere = (task?.depends_on ?? []).filter(external);
  return {
    description: draft.description,
    notes: draft.notes,
    depends_on: [...draft.depends_on, ...elsewhere],
    when: draft.when || null,
    complexity: draft.complexity || null,
    tools: draft.tools.trim() === "" && !task?.tools?.length ? (task?.tools ?? null) : words(draft.tools),
    skip: draft.skip,
    locks: words(draft.locks).map(lock),
    work: workOf(draft.work, known, "work"),
    check: workOf(draft.check, known, "check"),
    retry: draft.attempts ? { attempts: draft.attempts, backoff_seconds: draft.backoff ?? 0, ...(task?.retry?.backoff_seconds_max === undefined ? {} : { backoff_seconds_max: task.retry.backoff_seconds_max }) } : null,
    timeout_seconds: draft.timeout || null,
    priority: draft.priority || 0,
    provides: draft.provides.trim() || null,
  };
}

const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** Returns the operations that turn what the form began with into what it holds now; none if nothing changed. */
export function operationsOf(draft: TaskDraft, first: TaskDraft, task: Task | null, known: Executors | null): Operation[] {
  const now = fieldsOf(draft, task, known);
  if (!task) {
    const set = Object.fromEntries(Object.entries(now).filter(([, value]) => value !== null && value !== "" && value !== false && value !== 0 && !(Array.isArray(value) && value.length === 0)));
    return [{ op: "add", task: { ...(draft.id.trim() ? { id: draft.id.trim() } : {}), ...set, ...(draft.parent[0] ? { parent: draft.parent[0] } : {}) } }];
  }
  const before = fieldsOf(first, task, known);
  const set = Object.fromEntries(Object.entries(now).filter(([name, value]) => !same(value, before[name])));
  const operations: Operation[] = Object.keys(set).length ? [{ op: "revise", task: task.id, set }] : [];
  if (!same(draft.parent, first.parent)) operations.push({ op: "move", task: task.id, parent: draft.parent[0] ?? null });
  return operations;
}
