// Refusals of the server, from its problem documents (RFC 9457).

import type { components } from "./schema.js";

export type Problem = components["schemas"]["Problem"];

/** The server refused a request. `code` is stable; `hint` says what to do. */
export class WaypostError extends Error {
  override readonly name: string = "WaypostError";
  readonly code: string;
  readonly detail: string;
  readonly hint: string;

  constructor(
    readonly status: number,
    readonly problem: Partial<Problem>,
  ) {
    const code = problem.code ?? "error";
    const detail = problem.detail ?? problem.title ?? `the server replied ${status}`;
    const hint = problem.hint ?? "";
    super(hint ? `${detail} (${code}); ${hint}` : `${detail} (${code})`);
    this.code = code;
    this.detail = detail;
    this.hint = hint;
  }
}

/** The plan changed since the version that the write named. `problem.conflict` lists the changes. */
export class VersionConflict extends WaypostError {
  override readonly name = "VersionConflict";
}

/** Returns the error for a response that is none of the successes. */
export function errorOf(status: number, problem: unknown): WaypostError {
  const known = typeof problem === "object" && problem !== null ? (problem as Partial<Problem>) : {};
  return status === 412 ? new VersionConflict(status, known) : new WaypostError(status, known);
}
