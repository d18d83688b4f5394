// Written by a test from the core's table: WAYPOST_UPDATE=1 cargo test -p waypost-core states

import type { TaskAction } from "./actions";
import type { Standing } from "./types";

/** What a person can do with a task of each status, the most likely act first. */
export const TASK_ACTS: Record<Standing, TaskAction[]> = {
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
