// A person's actions on a plan or one of its tasks, guarded by the version on screen where that matters.

import { ApiError, part, send } from "./api";
import { page } from "./page.svelte";
import type { PlanOnScreen } from "./plan.svelte";
import { sibling } from "./tree";
import { shown } from "./labels";

export type PlanAction =
  | "request-approval"
  | "approve"
  | "reject"
  | "start"
  | "pause"
  | "resume"
  | "cancel"
  | "retry"
  | "archive"
  | "unarchive"
  | "finish";

export type TaskAction = "claim" | "progress" | "done" | "fail" | "skip" | "retry" | "cancel" | "hold" | "unhold" | "answer" | "release";

const spoken = (words: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(words).filter(([, value]) => value !== "" && value !== undefined));

/** Runs an action on a plan. Returns whether it succeeded. */
export async function act(screen: PlanOnScreen, action: PlanAction, words: Record<string, unknown> = {}, version?: number): Promise<boolean> {
  const body = spoken(words);
  const write = async (known?: number): Promise<void> => {
    await send("POST", `/plans/${part(screen.id)}/actions/${action}`, body, known === undefined ? {} : { version: known });
  };
  if (version !== undefined) {
    return page.write(`${action.replaceAll("-", " ")} the plan`, Object.values(body).map(shown).join("\n") || action, version, write);
  }
  try {
    await write();
    return true;
  } catch (error) {
    page.failed(error);
    return false;
  }
}

/** Runs an action on a task. Returns whether it succeeded. */
export async function actOnTask(screen: PlanOnScreen, task: string, action: TaskAction, words: Record<string, unknown> = {}): Promise<boolean> {
  try {
    await send("POST", `/plans/${part(screen.id)}/tasks/${part(task)}/actions/${action}`, spoken(words));
    return true;
  } catch (error) {
    page.failed(error);
    return false;
  }
}

/** The operations that a restore undoes; comments, labels and assignees are not part of what the author wrote. */
const UNDOABLE = new Set(["add", "revise", "remove", "move", "connect", "disconnect"]);

/** One operation of an edit, as the API takes it. */
export type Operation = { op: string } & Record<string, unknown>;

/** The edits of a plan that can be undone until it changes otherwise, the last at the end. */
let done: { plan: string; before: number; after: number; what: string; said: string }[] = [];
const UNDO_MAX = 50;

/** The edits and undos in progress: an undo is about the edit before it. */
let undoing: Promise<void> = Promise.resolve();

/** Whether there is an edit of this plan to undo. */
export const mayUndo = (screen: PlanOnScreen): boolean => done.at(-1)?.plan === screen.id;

/** Edits the plan's tasks: all operations or none. Calls `then` after the write, even if that happens after a conflict. Says
 *  what was done, with a button that undoes it. */
export async function edit(screen: PlanOnScreen, what: string, mine: string, operations: Operation[], version: number, then: () => void, said?: string): Promise<void> {
  // The page reads the plan again a moment after an edit; what this page wrote itself is no conflict.
  const own = done.at(-1);
  const base = own?.plan === screen.id ? Math.max(version, own.after) : version;
  const written = page.write(what, mine, base, async (known) => {
    const { version: after, changed } = await send<{ version: number; changed?: boolean }>("POST", `/plans/${part(screen.id)}/edits`, { operations }, { version: known });
    const can = changed !== false && operations.some(({ op }) => UNDOABLE.has(op));
    if (can) done = [...done.filter((one) => one.plan === screen.id), { plan: screen.id, before: known, after, what, said: said ?? "" }].slice(-UNDO_MAX);
    if (said) page.say(said, can ? { text: "Undo", run: () => void undo(screen) } : undefined);
    then();
  });
  // An undo that is asked for meanwhile is about this edit.
  undoing = undoing.then(() => written.then(() => undefined, () => undefined));
  await written;
}

/** Restores the version before the last edit, if nothing has changed since. */
export function undo(screen: PlanOnScreen): Promise<void> {
  undoing = undoing.then(() => undoLast(screen));
  return undoing;
}

async function undoLast(screen: PlanOnScreen): Promise<void> {
  const last = done.at(-1);
  if (last?.plan !== screen.id) return page.say("There is no edit to undo here. History restores any version.");
  const { before, after, what, said } = last;
  try {
    const { version: now } = await send<{ version: number }>("POST", `/plans/${part(screen.id)}/restore`, { version: before }, { version: after });
    // The plan says again what it said after the edit before, which can be undone next.
    done = done.slice(0, -1).map((one) => (one.after === before ? { ...one, after: now } : one));
    await screen.reload();
    page.unsay(said);
    page.say(`Undone: ${what}`);
  } catch (error) {
    if (error instanceof ApiError && error.status === 412) {
      done = [];
      return page.say("The plan has changed since, so this is not undone by itself. History shows the versions and restores one.");
    }
    page.failed(error);
  }
}

/** Moves a task before its previous sibling, or after its next one. */
export async function move(screen: PlanOnScreen, task: string, step: -1 | 1): Promise<void> {
  const [graph, place] = [screen.graph, screen.placeOf(task)];
  if (!graph || place === undefined) return;
  const other = graph.ids[sibling(graph, place, step) ?? -1];
  if (other === undefined) return page.say(`${task} is ${step < 0 ? "the first" : "the last"} already`);
  const [where, words] = step < 0 ? [{ before: other }, `before ${other}`] : [{ after: other }, `after ${other}`];
  await relocate(screen, task, where, words);
}

/** Where a task goes: beside another one, or into it. */
export type Target = { before: string } | { after: string } | { parent: string | null };

/** Moves a task with everything inside it. */
export async function relocate(screen: PlanOnScreen, task: string, where: Target, words: string): Promise<void> {
  const version = screen.graph?.version;
  if (version === undefined) return;
  await edit(screen, `move ${task} ${words}`, `${task} ${words}`, [{ op: "move", task, ...where }], version, () => {}, `${task} stands ${words} now`);
}

/** Moves a task into the one above it, or out of the one that it is in. */
export async function indent(screen: PlanOnScreen, task: string, step: -1 | 1): Promise<void> {
  const [graph, place] = [screen.graph, screen.placeOf(task)];
  if (!graph || place === undefined) return;
  if (step > 0) {
    const above = graph.ids[sibling(graph, place, -1) ?? -1];
    if (above === undefined) return page.say(`No task stands above ${task} that it could go into`);
    return relocate(screen, task, { parent: above }, `inside ${above}`);
  }
  const parent = graph.ids[graph.parent[place] ?? -1];
  if (parent === undefined) return page.say(`${task} is not inside another task`);
  return relocate(screen, task, { after: parent }, `after ${parent}`);
}
