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

/** The words of a problem, each once. */
export function sentence(problem: Problem): string {
  const first = problem.detail ?? problem.title;
  // One problem is the detail already; most name their task themselves.
  const more = (problem.problems ?? []).filter(({ message }) => !first.includes(message));
  return [first, ...more.map(({ task, message }) => (task && !message.includes(task) ? `${task}: ${message}` : message))].join("\n");
}

/** The name of the session's second secret in the browser's storage, which belongs to this origin, port included. */
const STORED_SECRET = "waypost-session";
/** Used where the browser stores nothing: the page stays signed in until it is reloaded. */
let unstoredSecret: string | null = null;

/** Returns the session's second secret. Read for each request, because another tab may have signed in since. */
function secret(): string | null {
  try {
    return localStorage.getItem(STORED_SECRET) ?? unstoredSecret;
  } catch {
    return unstoredSecret;
  }
}

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

async function fetched(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, credentials: "same-origin", cache: "no-store" });
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

async function request(method: string, path: string, headers: Record<string, string>, more: RequestInit = {}): Promise<Response> {
  const known = secret();
  const all = known === null ? headers : { ...headers, "x-waypost-session": known };
  return fetched(`/api/v1${path}`, { method, headers: all, ...more });
}

/** Signs in with the code of a sign-in link, or with a token. */
export async function signIn(credential: { code: string } | { token: string }): Promise<void> {
  const headers = { accept: "application/json", "content-type": "application/json" };
  const response = await fetched("/login", { method: "POST", headers, body: JSON.stringify(credential) });
  const { session } = (await response.json()) as { session: string };
  unstoredSecret = session;
  try {
    localStorage.setItem(STORED_SECRET, session);
  } catch {
    // The browser stores nothing.
  }
}

/** Opens a stream of events that resumes after `last`. `EventSource` cannot send the session's second secret. */
export async function openStream(path: string, last: string | null, signal: AbortSignal): Promise<ReadableStream<string> | undefined> {
  const headers: Record<string, string> = { accept: "text/event-stream" };
  if (last !== null) headers["last-event-id"] = last;
  const { body } = await request("GET", path, headers, { signal });
  return body?.pipeThrough(new TextDecoderStream());
}

/** Downloads a file. A plain link cannot send the session's second secret. */
export async function download(path: string, name: string): Promise<void> {
  const response = await request("GET", path, { accept: "*/*" });
  const named = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1];
  save(await response.blob(), named ?? name);
}

/** Saves a file that is in memory. */
export function save(blob: Blob, name: string): void {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(blob);
  anchor.download = name;
  anchor.click();
  URL.revokeObjectURL(anchor.href);
}

export async function get<T>(path: string): Promise<T> {
  return (await request("GET", path, { accept: "application/json" })).json() as Promise<T>;
}

/** Reads the end of a log, the number of bytes that all of it has, and the number of its first line, 0 if nobody knows. */
export async function getLog(path: string): Promise<{ text: string; total: number; line: number }> {
  const response = await request("GET", path, { accept: "text/plain, */*" });
  const head = (name: string): number => Number(response.headers.get(`x-waypost-log-${name}`)) || 0;
  return { text: await response.text(), total: head("bytes"), line: head("line") };
}

export interface Guard {
  /** The version on screen: nothing is written if the plan has changed since. */
  version?: number;
  /** Makes a repeated create harmless. */
  idempotencyKey?: string;
}

export async function send<T>(method: "POST" | "PATCH" | "PUT" | "DELETE", path: string, body: unknown, guard: Guard = {}): Promise<T> {
  const headers: Record<string, string> = { accept: "application/json", "content-type": "application/json" };
  if (guard.version !== undefined) headers["if-match"] = `"${guard.version}"`;
  if (guard.idempotencyKey) headers["idempotency-key"] = guard.idempotencyKey;
  const response = await request(method, path, headers, { body: JSON.stringify(body ?? {}) });
  return (response.status === 204 ? {} : await response.json()) as T;
}

/** Returns the identity of this page. */
export const me = (): Promise<Me> => get<Me>("/me");

/** Builds a query string. Empty parameters are left out. */
export function query(parameters: Record<string, string | number | boolean | null | undefined>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== "" && value !== false) search.set(name, String(value));
  }
  const text = search.toString();
  return text ? `?${text}` : "";
}
