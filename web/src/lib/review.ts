// What of a preview a person has read already, and what is new in it. Knows no page.

import type { Difference, Preview, PreviewGroup, PreviewTask } from "./types";

/** The names under which a text of the plan itself, the program of a group, and its rows are noted as seen. */
export const aboutKey = (name: string): string => `about ${name}`;
export const headKey = (group: PreviewGroup): string => `${group.group}`;
export const rowKey = (group: PreviewGroup, task: PreviewTask): string => `${group.group}/${task.id}`;

const head = (group: PreviewGroup): string => JSON.stringify([group.program, group.settings, group.warnings]);
/** The warnings of a group depend on its other tasks, too. */
const row = (group: PreviewGroup, task: PreviewTask): string => JSON.stringify([group.program, group.settings, task]);

/** Returns the names of what says in `after` the same as something that was seen in `before`. */
export function stillSeen(before: Preview, after: Preview, seen: ReadonlySet<string>): string[] {
  const known = new Set<string>(before.about.filter(([name]) => seen.has(aboutKey(name))).map((text) => JSON.stringify(text)));
  for (const group of before.groups) {
    if (seen.has(headKey(group))) known.add(head(group));
    for (const task of group.tasks) if (seen.has(rowKey(group, task))) known.add(row(group, task));
  }
  const groups = after.groups.flatMap((group) => [
    ...(known.has(head(group)) ? [headKey(group)] : []),
    ...group.tasks.filter((task) => known.has(row(group, task))).map((task) => rowKey(group, task)),
  ]);
  return [...after.about.filter((text) => known.has(JSON.stringify(text))).map(([name]) => aboutKey(name)), ...groups];
}

/** Returns which tasks differences are about. */
export function marks(differences: Difference[]): Map<string, "new" | "changed"> {
  const found = new Map<string, "new" | "changed">();
  for (const one of differences) {
    if (one.change === "added") found.set(one.task, "new");
    else if (one.change === "task" && !found.has(one.task)) found.set(one.task, "changed");
  }
  return found;
}
