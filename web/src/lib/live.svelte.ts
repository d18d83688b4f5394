// What happens, as it happens. The browser connects again by itself and says which event it saw last.

import { query } from "./api";
import { page } from "./page.svelte";
import type { PlanEvent, ProgressReport } from "./types";

export type Listener = (events: PlanEvent[]) => void;
export type ProgressListener = (report: ProgressReport) => void;

/** Events that are handed over together: what comes within one picture is drawn once. */
const BATCH_MS = 50;
/** Between two attempts to connect after the browser has given up. */
const RETRY_MS = 2_000;

class Live {
  /** Whether events come in. */
  connected = $state(false);
  #source: EventSource | null = null;
  #listeners = new Set<Listener>();
  #waiting: PlanEvent[] = [];
  #timer: ReturnType<typeof setTimeout> | null = null;
  #cursor = "latest";
  #opened = false;
  #missed = new Set<() => void>();
  #progress = new Set<ProgressListener>();

  /** Begins to listen. */
  start(): void {
    if (this.#source) return;
    const source = new EventSource(`/api/v1/events${query({ after: this.#cursor })}`);
    this.#source = source;
    source.onopen = () => {
      this.connected = true;
      // The server goes on after the last event that came; whoever has heard none yet may have missed some, and what
      // stands on the screen may be an error.
      if (this.#opened) for (const tell of this.#missed) tell();
      this.#opened = true;
    };
    source.onmessage = (message) => {
      this.#cursor = message.lastEventId || this.#cursor;
      this.#waiting.push(JSON.parse(message.data as string) as PlanEvent);
      this.#timer ??= setTimeout(() => this.#deliver(), BATCH_MS);
    };
    // Progress has no place in the log, and so no id: what was missed is read with the plan.
    source.addEventListener("progress", (message: MessageEvent<string>) => {
      const report = JSON.parse(message.data) as ProgressReport;
      for (const listener of this.#progress) listener(report);
    });
    source.onerror = () => {
      this.connected = false;
      if (source.readyState === EventSource.CLOSED) {
        this.#source = null;
        // It answered, and not with events: a server that began anew knows nobody.
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

  /** Hears of progress until the returned function is called. */
  hearProgress(listener: ProgressListener): () => void {
    this.#progress.add(listener);
    return () => void this.#progress.delete(listener);
  }

  /** Hears everything until the returned function is called. */
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

/** Calls `work` at most once in so many milliseconds, the last call always. */
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
