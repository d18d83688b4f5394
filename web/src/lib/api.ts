// The only module that sends requests to the server.

import type { Me, Problem } from "./types";

/** An error response, with the server's message. */
export class ApiError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail ?? problem.title);
  }

  get status(): number {
    return this.problem.status;
  }
}

let csrf: string | null = null;

/** Encodes a part of a path. */
export const part = (text: string): string => encodeURIComponent(text);

async function problemOf(response: Response): Promise<Problem> {
  const fallback: Problem = { title: response.statusText || `answer ${response.status}`, status: response.status };
  try {
    const said = (await response.json()) as Partial<Problem>;
    return { ...fallback, ...said, status: response.status };
  } catch {
    return fallback;
  }
}

async function request(method: string, path: string, headers: Record<string, string>, body?: string): Promise<Response> {
  let response: Response;
  try {
    const init: RequestInit = { method, headers, credentials: "same-origin", cache: "no-store" };
    if (body !== undefined) init.body = body;
    response = await fetch(`/api/v1${path}`, init);
  } catch {
    throw new ApiError({
      title: "The server does not respond",
      status: 0,
      hint: "Check that the server is running. This page reconnects by itself.",
    });
  }
  if (!response.ok) throw new ApiError(await problemOf(response));
  return response;
}

export async function get<T>(path: string): Promise<T> {
  return (await request("GET", path, { accept: "application/json" })).json() as Promise<T>;
}

export async function getText(path: string): Promise<string> {
  return (await request("GET", path, { accept: "text/plain, */*" })).text();
}

export interface Guard {
  /** The version on screen: nothing is written if the plan has changed since. */
  version?: number;
  /** Makes a repeated create harmless. */
  idempotencyKey?: string;
}

export async function send<T>(method: "POST" | "PATCH" | "PUT" | "DELETE", path: string, body: unknown, guard: Guard = {}): Promise<T> {
  const headers: Record<string, string> = { accept: "application/json", "content-type": "application/json" };
  if (csrf) headers["x-waypost-csrf"] = csrf;
  if (guard.version !== undefined) headers["if-match"] = `"${guard.version}"`;
  if (guard.idempotencyKey) headers["idempotency-key"] = guard.idempotencyKey;
  const response = await request(method, path, headers, JSON.stringify(body ?? {}));
  return (response.status === 204 ? {} : await response.json()) as T;
}

/** Returns the identity of this page, and stores its CSRF token for later writes. */
export async function me(): Promise<Me> {
  const found = await get<Me>("/me");
  csrf = found.csrf;
  return found;
}

/** Builds a query string. Empty parameters are left out. */
export function query(parameters: Record<string, string | number | boolean | null | undefined>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== "" && value !== false) search.set(name, String(value));
  }
  const text = search.toString();
  return text ? `?${text}` : "";
}
