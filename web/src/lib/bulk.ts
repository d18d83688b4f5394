// Does the same with many plans or tasks, one after the other, and says what was refused.

import { ApiError } from "./api";
import { several } from "./labels";
import { page } from "./page.svelte";

/** How many may be selected for one action. */
export const BULK_MAX = 200;
/** Refusals that are named. */
const NAMED_MAX = 5;

/** Runs `work` for each, and reports once, with a button that undoes it if `undo` can. `did` is what was done, as in "archived". */
export async function forEach<T>(items: T[], one: string, did: string, name: (item: T) => string, work: (item: T) => Promise<unknown>, undo?: (done: T[]) => void): Promise<void> {
  const refused: string[] = [];
  const done: T[] = [];
  for (const item of items.slice(0, BULK_MAX)) {
    try {
      await work(item);
      done.push(item);
    } catch (error) {
      if (error instanceof ApiError && (error.status === 401 || error.status === 0)) return page.failed(error);
      refused.push(`${name(item)}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  const left = items.length - done.length - refused.length;
  const said = `${several(done.length, one)} ${did}${left > 0 ? `; ${several(left, one)} left, select them again` : ""}`;
  if (refused.length === 0) return page.say(said, undo && done.length > 0 ? { text: "Undo", run: () => undo(done) } : undefined);
  const named = refused.slice(0, NAMED_MAX);
  if (refused.length > named.length) named.push(`and ${refused.length - named.length} more`);
  page.failed(new ApiError({ title: `${said}; ${several(refused.length, one)} refused:\n${named.join("\n")}`, status: 409 }));
}
