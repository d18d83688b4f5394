// Which actions a task takes in its status, and which of them a move on the board means.

import type { TaskAction } from "./actions";
import { PARENT_ACTS, TASK_ACTS } from "./taskActs";
import type { Standing } from "./types";

const BUTTONS: Record<TaskAction, string> = {
  answer: "Answer",
  done: "Mark done",
  fail: "Mark failed",
  release: "Take it back",
  hold: "Hold",
  unhold: "Release the hold",
  retry: "Retry",
  skip: "Skip",
  cancel: "Cancel task…",
  claim: "Claim",
  progress: "Report progress",
};

/** The actions available in a status, with the text of their buttons. */
export function taskActions(standing: Standing, isParent = false): [TaskAction, string][] {
  const acts = isParent ? PARENT_ACTS : TASK_ACTS;
  // What waits for a person to do it is ready.
  return acts[standing === "person" ? "ready" : standing].map((action) => [action, action === "retry" && standing === "done" ? "Run again" : BUTTONS[action]]);
}

/** The text field that goes with an action. */
export const ACTION_FIELDS: Record<TaskAction, { label: string; field: string; needed: boolean } | null> = {
  answer: { label: "Your answer", field: "answer", needed: true },
  done: { label: "What came of it (optional)", field: "result", needed: false },
  fail: { label: "What went wrong", field: "error", needed: true },
  skip: { label: "Why (optional)", field: "reason", needed: false },
  cancel: { label: "Why (optional)", field: "reason", needed: false },
  hold: { label: "Why (optional)", field: "reason", needed: false },
  progress: { label: "How far it is", field: "progress", needed: true },
  retry: null,
  unhold: null,
  claim: null,
  release: null,
};

/** A column of the board of a plan. */
export interface TaskColumn {
  name: string;
  title: string;
  standings: Standing[];
  /** What moving a task here means, the first that the task takes. */
  actions: TaskAction[];
}

export const TASK_COLUMNS: TaskColumn[] = [
  { name: "blocked", title: "Blocked", standings: ["blocked", "held"], actions: ["hold"] },
  { name: "ready", title: "Ready", standings: ["ready", "queued"], actions: ["unhold", "retry"] },
  { name: "running", title: "Running", standings: ["running", "reported"], actions: [] },
  { name: "asking", title: "Waits for a person", standings: ["asking", "person", "disputed"], actions: [] },
  { name: "failed", title: "Failed", standings: ["failed"], actions: ["fail"] },
  { name: "done", title: "Done", standings: ["done"], actions: ["done"] },
  { name: "dropped", title: "Skipped or cancelled", standings: ["skipped", "cancelled"], actions: ["skip", "cancel"] },
];

/** Returns what moving a task of this status to a column means; nothing if it cannot go there. */
export function moveMeans(standing: Standing, to: TaskColumn): [TaskAction, string] | null {
  if (to.standings.includes(standing)) return null;
  const can = taskActions(standing);
  for (const action of to.actions) {
    const found = can.find(([known]) => known === action);
    if (found) return found;
  }
  return null;
}
