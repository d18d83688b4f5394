// The stream of events. The browser reconnects by itself and sends the id of the last event it received.

import { query } from "./api";
import { page } from "./page.svelte";
import type { PlanEvent, ProgressReport } from "./types";

export type Listener = (events: PlanEvent[]) => void;
export type ProgressListener = (report: ProgressReport) => void;

/** Events within this time are delivered together, so that they cause one redraw. */
const BATCH_MS = 50;
/** Time between two attempts to connect after the browser has given up. */
const RETRY_MS = 2_000;

class Live {
  /** Whether the stream is connected. */
  connected = $state(false);
  #source: EventSource | null = null;
  #listeners = new Set<Listener>();
  #waiting: PlanEvent[] = [];
  #timer: ReturnType<typeof setTimeout> | null = null;
  #cursor = "latest";
  #opened = false;
  #missed = new Set<() => void>();
  #progress = new Set<ProgressListener>();

  /** Starts the stream. */
  start(): void {
    if (this.#source) return;
    const source = new EventSource(`/api/v1/events${query({ after: this.#cursor })}`);
    this.#source = source;
    source.onopen = () => {
      this.connected = true;
      // The server resumes after the last received event. A page that has received none may have missed some, and may
      // show an error, so the views reload.
      if (this.#opened) for (const tell of this.#missed) tell();
      this.#opened = true;
    };
    source.onmessage = (message) => {
      this.#cursor = message.lastEventId || this.#cursor;
      this.#waiting.push(JSON.parse(message.data as string) as PlanEvent);
      this.#timer ??= setTimeout(() => this.#deliver(), BATCH_MS);
    };
    // Progress has no position in the log, and so no id: missed reports are read with the plan.
    source.addEventListener("progress", (message: MessageEvent<string>) => {
      const report = JSON.parse(message.data) as ProgressReport;
      for (const listener of this.#progress) listener(report);
    });
    source.onerror = () => {
      this.connected = false;
      if (source.readyState === EventSource.CLOSED) {
        this.#source = null;
        // The server responded, but not with events: a restarted server has no sessions.
        setTimeout(() => void page.look().then(() => this.start()), RETRY_MS);
      }
    };
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
