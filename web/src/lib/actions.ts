// A person's actions on a plan or one of its tasks, guarded by the version on screen where that matters.

import { part, send } from "./api";
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

/** Edits the plan's tasks: all operations or none. Calls `then` after the write, even if that happens after a conflict. */
export async function edit(screen: PlanOnScreen, what: string, mine: string, operations: object[], version: number, then: () => void): Promise<void> {
  await page.write(what, mine, version, async (known) => {
    await send("POST", `/plans/${part(screen.id)}/edits`, { operations }, { version: known });
    then();
  });
}

/** Moves a task before its previous sibling, or after its next one. */
export async function move(screen: PlanOnScreen, task: string, step: -1 | 1): Promise<void> {
  const [graph, place] = [screen.graph, screen.placeOf(task)];
  if (!graph || place === undefined) return;
  const other = graph.ids[sibling(graph, place, step) ?? -1];
  if (other === undefined) return page.say(`${task} is ${step < 0 ? "the first" : "the last"} already`);
  const [where, words] = step < 0 ? [{ before: other }, `before ${other}`] : [{ after: other }, `after ${other}`];
  await edit(screen, `move ${task} ${words}`, `${task} ${words}`, [{ op: "move", task, ...where }], graph.version, () => page.say(`${task} stands ${words} now`));
}
