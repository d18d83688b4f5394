// What clones disagree about: read when it is shown, by plan, and answered by people.

import { get, part, query, send } from "./api";
import type { ConflictVersion, MergeConflict } from "./types";

/** Questions that are read of a plan. */
const CONFLICTS_MAX = 100;

export interface ConflictPage {
  questions: MergeConflict[];
  total: number;
  next: string | null;
}

export type Answer = { answer: "take"; version: string } | { answer: "text"; text: string } | { answer: "keep" | "remove" | "dismiss" };

export const conflictsOf = (plan: string): Promise<ConflictPage> => get<ConflictPage>(`/plans/${part(plan)}/conflicts${query({ limit: CONFLICTS_MAX })}`);

/** Answers a question, as long as it is the one that was read. */
export const resolve = (question: MergeConflict, answer: Answer): Promise<{ version: number; conflicts: number }> => send("POST", `/plans/${part(question.plan)}/conflicts`, { digest: question.digest, ...answer });

/** What a button for an answer that needs no choice says. */
export function label(question: MergeConflict, answer: "keep" | "remove" | "dismiss"): string {
  if (answer === "keep") return "Keep";
  if (answer === "remove") return "Remove";
  return question.kind === "outcome" ? "Neither: do the task again" : "Drop what was set aside";
}

/** The name of who wrote a version, without the kind of actor. */
export const writer = (version: ConflictVersion): string => version.by.slice(version.by.indexOf(":") + 1);

/** The questions of a plan, read again after each of its versions. */
export class OpenConflicts {
  page = $state.raw<ConflictPage | null>(null);
  #plan: string;

  constructor(plan: string) {
    this.#plan = plan;
  }

  async read(): Promise<void> {
    this.page = await conflictsOf(this.#plan);
  }
}
