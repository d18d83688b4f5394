// Written by a test from the core's table: WAYPOST_UPDATE=1 cargo test -p waypost-core states

import type { TaskAction } from "./actions";
import type { Standing } from "./types";

/** What a person can do with a task of each status, the most likely act first. */
export const TASK_ACTS: Record<Exclude<Standing, "person">, TaskAction[]> = {
  blocked: ["hold", "skip", "cancel"],
  ready: ["done", "fail", "skip", "hold", "cancel"],
  reported: ["retry", "skip", "cancel"],
  asking: ["answer", "skip", "cancel"],
  held: ["unhold", "skip", "cancel"],
  disputed: ["skip", "cancel"],
  queued: ["done", "fail", "release", "cancel"],
  running: ["done", "fail", "release", "cancel"],
  done: ["retry"],
  failed: ["retry"],
  skipped: ["retry"],
  cancelled: ["retry"],
};

/** The same for a parent: nobody works on it, and it ends when its children end. */
export const PARENT_ACTS: Record<Exclude<Standing, "person">, TaskAction[]> = {
  blocked: ["hold", "cancel"],
  ready: ["hold", "cancel"],
  reported: ["hold", "cancel"],
  asking: ["hold", "cancel"],
  held: ["unhold", "cancel"],
  disputed: ["cancel"],
  queued: ["hold", "cancel"],
  running: ["hold", "cancel"],
  done: ["retry"],
  failed: ["retry"],
  skipped: ["retry"],
  cancelled: ["retry"],
};
