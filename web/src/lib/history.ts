// The history of a plan as people read it: what people and agents decided, and between that, how the plan ran.

import type { Version } from "./types";
import { actor } from "./labels";

/** Commands by which a plan runs. */
const RUNS = new Set([
  "start_task",
  "queue_task",
  "record_start",
  "finish_task",
  "lose_task",
  "release_task",
  "ask_question",
  "record_gate",
  "refuse_start",
  "attach_digest",
  "charge_tokens",
  "receive_output",
  "withdraw_output",
]);

/** Whether a version is about how the plan ran. What a person reports is a decision. A worker writes several commands as one version. */
export function isRun(one: Version): boolean {
  const { kind } = actor(one.actor);
  return kind === "worker" || (kind !== "person" && RUNS.has(one.command));
}

export type Entry = { kind: "decision"; version: Version } | { kind: "run"; versions: Version[] };

/** Folds runs of versions in which the plan ran, the latest first. */
export function entries(versions: Version[]): Entry[] {
  const found: Entry[] = [];
  for (const version of versions) {
    const last = found.at(-1);
    if (!isRun(version)) found.push({ kind: "decision", version });
    else if (last?.kind === "run") last.versions.push(version);
    else found.push({ kind: "run", versions: [version] });
  }
  return found;
}
