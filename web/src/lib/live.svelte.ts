// The stream of events.

import { follow } from "./eventStream";
import { page } from "./page.svelte";
import type { PlanEvent, ProgressReport } from "./types";

export type Listener = (events: PlanEvent[]) => void;
export type ProgressListener = (report: ProgressReport) => void;

/** Events within this time are delivered together, so that they cause one redraw. */
const BATCH_MS = 50;
/** A connection that is back within this time was not lost: streams end whenever tokens change. */
const LOST_MS = 1_000;
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
  #missed = new Set<() => void>();
  #progress = new Set<ProgressListener>();

  /** Starts the stream. */
  start(): void {
    if (this.#started) return;
    this.#started = true;
    follow("/events", {
      last: "latest",
      opened: () => {
        this.connected = true;
        this.lostAt = null;
        page.recovered();
        // Another tab has signed in, or it is another server, or one that is about to end.
        if (page.signedOut || this.#opened) void page.look();
        // The server resumes after the last received event. A page that has received none may have missed some, and may
        // show an error, so the views reload.
        if (this.#opened) for (const tell of this.#missed) tell();
        this.#opened = true;
      },
      lost: (error) => {
        this.connected = false;
        this.lostAt ??= Date.now();
        // The server responded, but not with events: the session may have ended.
        if (error?.status) return page.look();
      },
      hear: ({ name, data }) => {
        if (name === "progress") {
          // Progress has no position in the log, and so no id: missed reports are read with the plan.
          for (const listener of this.#progress) listener(JSON.parse(data) as ProgressReport);
          return;
        }
        this.#waiting.push(JSON.parse(data) as PlanEvent);
        this.#timer ??= setTimeout(() => this.#deliver(), BATCH_MS);
      },
    });
  }

  /** Whether the page has been without a connection for so long that the person should know. */
  get isLost(): boolean {
    return this.lostAt !== null && !page.signedOut && page.now - this.lostAt >= LOST_MS;
  }

  #deliver(): void {
    const events = this.#waiting;
    this.#waiting = [];
    this.#timer = null;
    for (const listener of this.#listeners) listener(events);
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
