// The stream of events. One tab has it and tells the others: a browser opens six connections to a server for all its tabs.

import { follow } from "./eventStream";
import { page } from "./page.svelte";
import type { PlanEvent, ProgressReport } from "./types";

export type Listener = (events: PlanEvent[]) => void;
export type ProgressListener = (report: ProgressReport) => void;

/** Events within this time are delivered together, so that they cause one redraw. */
const BATCH_MS = 50;
/** A connection that is back within this time was not lost: streams end whenever tokens change. */
const LOST_MS = 1_000;
/** Where a stream starts that has received nothing. */
const LATEST = "latest";
/** The name of the stream among the tabs. */
const SHARED = "waypost-events";

/** What tabs tell each other. */
type Told =
  | { what: "asks" }
  | { what: "open" }
  | { what: "lost"; status: number | null }
  | { what: "events"; events: PlanEvent[]; last: string }
  | { what: "progress"; report: ProgressReport };

class Live {
  /** Whether the stream is connected. */
  connected = $state(false);
  /** When the connection was lost, in milliseconds; null while there is one, or never was one. */
  lostAt = $state<number | null>(null);
  #started = false;
  #listeners = new Set<Listener>();
  #waiting: PlanEvent[] = [];
  #timer: ReturnType<typeof setTimeout> | null = null;
  #opened = false;
  #tabs: BroadcastChannel | null = null;
  #leads = false;
  /** Ends this tab's turn, or its wait for one. */
  #waits: AbortController | null = null;
  /** The id of the last event that any tab received. */
  #last = LATEST;
  #piece: PlanEvent[] = [];
  #missed = new Set<() => void>();
  #progress = new Set<ProgressListener>();

  /** Starts the stream. */
  start(): void {
    if (this.#started) return;
    this.#started = true;
    // Browsers offer locks only to pages that came over a safe way. Without them each tab has a stream of its own.
    if (!navigator.locks) return void this.#follow();
    this.#tabs = new BroadcastChannel(SHARED);
    this.#tabs.onmessage = ({ data }: MessageEvent<Told>) => this.#hear(data);
    this.#compete();
    document.addEventListener("visibilitychange", () => !document.hidden && !this.#leads && this.#compete());
    addEventListener("pagehide", () => this.#waits?.abort());
    addEventListener("pageshow", ({ persisted }) => persisted && this.#compete());
  }

  /** Takes the stream if somebody looks at this tab, which browsers slow down least, or waits until no other tab has it. */
  #compete(steal = !document.hidden): void {
    this.#waits?.abort();
    const waits = (this.#waits = new AbortController());
    this.#tabs?.postMessage({ what: "asks" } satisfies Told);
    const lead = (): Promise<void> =>
      new Promise((leave) => {
        this.#leads = true;
        // Nobody knows what came since the tab that had it stopped to listen.
        if (this.#opened && this.#last === LATEST) this.#tell({ what: "lost", status: null });
        const end = this.#follow();
        waits.signal.addEventListener("abort", () => {
          this.#leads = false;
          end();
          leave();
        });
      });
    navigator.locks.request(SHARED, steal ? { steal } : { signal: waits.signal }, lead).catch(() => {
      if (!waits.signal.aborted) this.#compete(false);
    });
  }

  #follow(): () => void {
    return follow("/events", {
      last: this.#last,
      opened: () => this.#tell({ what: "open" }),
      // The server responded, but not with events: the session may have ended.
      lost: (error) => this.#tell({ what: "lost", status: error?.status ?? null }),
      hear: ({ id, name, data }) => {
        // Progress has no position in the log, and so no id: missed reports are read with the plan.
        if (name === "progress") return this.#tell({ what: "progress", report: JSON.parse(data) as ProgressReport });
        this.#last = id || this.#last;
        // What arrives in one piece is told in one.
        if (this.#piece.push(JSON.parse(data) as PlanEvent) === 1) queueMicrotask(() => this.#passOn());
      },
    });
  }

  #passOn(): void {
    const events = this.#piece;
    this.#piece = [];
    this.#tell({ what: "events", events, last: this.#last });
  }

  #deliver(): void {
    const events = this.#waiting;
    this.#waiting = [];
    this.#timer = null;
    for (const listener of this.#listeners) listener(events);
  }

  /** Takes what the stream said, and tells the other tabs. */
  #tell(told: Told): void {
    this.#tabs?.postMessage(told);
    this.#hear(told);
  }

  #hear(told: Told): void {
    switch (told.what) {
      case "asks":
        if (this.#leads && this.connected) this.#tabs?.postMessage({ what: "open" } satisfies Told);
        break;
      case "open":
        if (!this.connected) this.#open();
        break;
      case "lost":
        this.connected = false;
        this.lostAt ??= Date.now();
        if (told.status) void page.look();
        break;
      case "events":
        this.#last = told.last;
        this.#waiting.push(...told.events);
        this.#timer ??= setTimeout(() => this.#deliver(), BATCH_MS);
        break;
      case "progress":
        for (const listener of this.#progress) listener(told.report);
        break;
    }
  }

  #open(): void {
    this.connected = true;
    this.lostAt = null;
    page.recovered();
    // Another tab has signed in, or it is another server, or one that is about to end.
    if (page.signedOut || this.#opened) void page.look();
    // The server resumes after the last received event. A page that has received none may have missed some, and may
    // show an error, so the views reload.
    if (this.#opened) for (const tell of this.#missed) tell();
    this.#opened = true;
  }

  /** Whether the page has been without a connection for so long that the person should know. */
  get isLost(): boolean {
    return this.lostAt !== null && !page.signedOut && page.now - this.lostAt >= LOST_MS;
  }

  /** Subscribes to progress until the returned function is called. */
  hearProgress(listener: ProgressListener): () => void {
    this.#progress.add(listener);
    return () => void this.#progress.delete(listener);
  }

  /** Subscribes to all events until the returned function is called. */
  hear(listener: Listener, reconnected?: () => void): () => void {
    this.#listeners.add(listener);
    if (reconnected) this.#missed.add(reconnected);
    return () => {
      this.#listeners.delete(listener);
      if (reconnected) this.#missed.delete(reconnected);
    };
  }
}

export const live = new Live();

/** Limits `work` to one call per `every` milliseconds. The last call is never lost. */
export function seldom(work: () => void, every: number): () => void {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let last = 0;
  return () => {
    if (timer !== null) return;
    const wait = Math.max(0, last + every - Date.now());
    timer = setTimeout(() => {
      timer = null;
      last = Date.now();
      work();
    }, wait);
  };
}
