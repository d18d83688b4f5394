// A typed client of Waypost's HTTP API. `Waypost` is the short way; `Waypost.api` calls every path of the API, with its types.

import createClient, { type Client } from "openapi-fetch";

import { errorOf } from "./errors.js";
import { DEFAULT_RETRIES, type Retries, retrying } from "./retries.js";
import type { components, paths } from "./schema.js";
import { type ServerEvent, follow } from "./serverEvents.js";

export { type Problem, VersionConflict, WaypostError } from "./errors.js";
export type { Retries } from "./retries.js";
export type { components, operations, paths } from "./schema.js";
export type { ServerEvent } from "./serverEvents.js";

type Schemas = components["schemas"];
export type Plan = Schemas["Plan"];
export type PlanHead = Schemas["Head"];
export type Task = Schemas["Task"];
export type TaskRow = Schemas["TaskRow"];
export type PlanEvent = Schemas["PlanEvent"];
export type Written = Schemas["Written"];
export type Operation = Schemas["Operation"];

/** A task of a new plan: its description, or its fields in the native format. */
export type NewTask = string | { id?: string; description: string; depends_on?: unknown[]; [field: string]: unknown };

/** A task that this caller has claimed. Reports name its attempt, so that they are refused if the task was started again since. */
export interface Claim {
  plan: string;
  id: string;
  attempt: number;
  task: Schemas["TaskDetail"];
  leaseSeconds: number;
}

export interface WaypostOptions {
  retries?: Partial<Retries>;
  /** Used instead of the global `fetch`. */
  fetch?: typeof fetch;
}

interface Reply<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Returns the body of a success. */
function body<T>({ data, error, response }: Reply<T>): T {
  if (!response.ok) throw errorOf(response.status, error);
  return data as T;
}

export class Waypost {
  /** Every path of the API: `waypost.api.GET("/api/v1/plans/{plan}", { params: { path: { plan } } })`. */
  readonly api: Client<paths>;
  readonly #retries: Retries;
  readonly #url: string;
  readonly #token: string;
  readonly #fetch: typeof fetch;

  constructor(url: string, token: string, options: WaypostOptions = {}) {
    this.#url = url.replace(/\/+$/, "");
    this.#token = token;
    this.#retries = { ...DEFAULT_RETRIES, ...options.retries };
    this.#fetch = options.fetch ?? ((...request) => fetch(...request));
    this.api = createClient<paths>({
      baseUrl: this.#url,
      fetch: retrying(this.#fetch, this.#retries),
      // Without it, the path of the events would answer with a stream that never ends.
      headers: { authorization: `Bearer ${token}`, accept: "application/json" },
    });
  }

  async me(): Promise<Schemas["Me"]> {
    return body(await this.api.GET("/api/v1/me"));
  }

  /** Creates a plan. The same `key` gives the same plan, so that it can be created again when nobody knows whether it was. */
  async createPlan(
    title: string,
    tasks: NewTask[] = [],
    { goal, key = crypto.randomUUID() }: { goal?: string; key?: string } = {},
  ): Promise<Written> {
    const withId = (task: NewTask, at: number) => ({
      id: `t${at + 1}`,
      ...(typeof task === "string" ? { description: task } : task),
    });
    const plan = { format: "waypost/1", title, goal, tasks: tasks.map(withId) };
    return this.#create({ plan }, key);
  }

  /** Creates a plan from a text in any format that Waypost reads. */
  async importPlan(text: string, { format, key = crypto.randomUUID() }: { format?: string; key?: string } = {}): Promise<Written> {
    return this.#create({ text, format }, key);
  }

  async #create(plan: Schemas["CreateBody"], key: string): Promise<Written> {
    return body(await this.api.POST("/api/v1/plans", { params: { header: { "Idempotency-Key": key } }, body: plan }));
  }

  async plan(plan: string): Promise<Plan> {
    return body(await this.api.GET("/api/v1/plans/{plan}", { params: { path: { plan } } }));
  }

  /** All plans that fit, page by page. */
  async *plans(query: paths["/api/v1/plans"]["get"]["parameters"]["query"] = {}): AsyncGenerator<PlanHead, void, undefined> {
    for (let after = query?.after; ; ) {
      const page = body(await this.api.GET("/api/v1/plans", { params: { query: { ...query, after } } }));
      yield* page.plans;
      if (!page.next) return;
      after = page.next;
    }
  }

  /** All tasks of a plan, page by page. */
  async *tasks(plan: string): AsyncGenerator<TaskRow, void, undefined> {
    for (let after: string | undefined; ; ) {
      const params = { path: { plan }, query: { after } };
      const page = body(await this.api.GET("/api/v1/plans/{plan}/tasks", { params }));
      yield* page.tasks;
      if (!page.next) return;
      after = page.next;
    }
  }

  async task(plan: string, task: string): Promise<Task> {
    return body(await this.api.GET("/api/v1/plans/{plan}/tasks/{task}", { params: { path: { plan, task } } }));
  }

  /** Edits a plan: all operations, or none. With `version`, only if the plan has not changed since. */
  async edit(plan: string, operations: Operation[], version?: number): Promise<Written> {
    const params = { path: { plan }, header: guard(version) };
    return body(await this.api.POST("/api/v1/plans/{plan}/edits", { params, body: { operations } }));
  }

  /** Starts a plan, or asks a person to approve it first; `phase` tells which. */
  async start(plan: string): Promise<Written> {
    const params = { path: { plan, action: "start" as const } };
    return body(await this.api.POST("/api/v1/plans/{plan}/actions/{action}", { params, body: {} }));
  }

  async exportPlan(plan: string, format = "native"): Promise<string> {
    const params = { path: { plan }, query: { format } };
    return body(await this.api.GET("/api/v1/plans/{plan}/export", { params, parseAs: "text" }));
  }

  /** Claims the most urgent ready task, of one plan or of all; `undefined` if none is ready. */
  async claim(filter: { plan?: string; queue?: string; lease_seconds?: number } = {}): Promise<Claim | undefined> {
    const { plan, task, lease_seconds } = body(await this.api.POST("/api/v1/next", { body: filter }));
    if (!plan || !task) return undefined;
    return { plan, task, id: task.id, attempt: task.state.attempt ?? 0, leaseSeconds: lease_seconds ?? 0 };
  }

  /** Reports progress, which also renews the lease. */
  async progress(claim: Claim, progress: string): Promise<Written> {
    return this.#report(claim, "progress", { progress });
  }

  async done(claim: Claim, report: { result?: string; output?: unknown } = {}): Promise<Written> {
    return this.#report(claim, "done", report);
  }

  async fail(claim: Claim, error: string): Promise<Written> {
    return this.#report(claim, "fail", { error });
  }

  /** Gives the task back unfinished. */
  async release(claim: Claim, reason = ""): Promise<Written> {
    return this.#report(claim, "release", { reason });
  }

  async #report(claim: Claim, action: "progress" | "done" | "fail" | "release", report: Schemas["ActionBody"]): Promise<Written> {
    const params = { path: { plan: claim.plan, task: claim.id, action } };
    const path = "/api/v1/plans/{plan}/tasks/{task}/actions/{action}";
    return body(await this.api.POST(path, { params, body: { ...report, attempt: claim.attempt } }));
  }

  /**
   * Follows the events from now on, or after a position of the log. Misses none and yields none twice, however often the connection
   * is lost. Ends when the caller leaves the loop, or `signal` is aborted.
   */
  async *events(
    { signal, ...filter }: { plan?: string; kind?: string; agent?: string; task?: string; after?: string; signal?: AbortSignal } = {},
  ): AsyncGenerator<PlanEvent, void, undefined> {
    // A stream without a position would miss what happens before its first event arrives.
    const latest = { query: { after: "latest", limit: 1 } };
    const newest = async () => body(await this.api.GET("/api/v1/events", { params: latest })) as Schemas["EventPage"];
    const after = filter.after ?? (await newest()).cursor;
    const query = { ...filter, after };
    for await (const event of this.#follow("/api/v1/events", query, { signal })) {
      // A progress report is not part of the log.
      if (event.name !== "progress") yield JSON.parse(event.data) as PlanEvent;
    }
  }

  /** Follows the log of an attempt, or of the latest one, until the attempt ends. */
  async *log(
    plan: string,
    task: string,
    { attempt, signal }: { attempt?: number; signal?: AbortSignal } = {},
  ): AsyncGenerator<string, void, undefined> {
    const path = `/api/v1/plans/${encodeURIComponent(plan)}/tasks/${encodeURIComponent(task)}/log`;
    // Named, so that a new connection does not continue in a newer attempt.
    const number = attempt ?? (await this.task(plan, task)).state.attempt;
    const query = { follow: "true", attempt: number?.toString() };
    for await (const event of this.#follow(path, query, { signal })) {
      if (event.name === "end") return;
      if (event.name === "log") yield JSON.parse(event.data) as string;
    }
  }

  #follow(path: string, query: Record<string, string | undefined>, options: { signal?: AbortSignal }): AsyncGenerator<ServerEvent> {
    const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const url = `${this.#url}${path}?${new URLSearchParams(given)}`;
    const open = (lastId: string, signal: AbortSignal) => {
      const headers = new Headers({ authorization: `Bearer ${this.#token}`, accept: "text/event-stream" });
      if (lastId) headers.set("last-event-id", lastId);
      return this.#fetch(new Request(url, { headers, signal, cache: "no-store" }));
    };
    return follow(open, this.#retries, options);
  }
}

function guard(version: number | undefined): { "If-Match"?: string } {
  return version === undefined ? {} : { "If-Match": `"${version}"` };
}
