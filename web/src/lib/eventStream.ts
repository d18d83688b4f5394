// Server-sent events, read from a response: what `EventSource` does, for requests that need a header. Knows no view.

import { ApiError, openStream } from "./api";

/** One event of a stream. */
export interface StreamEvent {
  /** The id of this event, or of the last one that had any. */
  id: string;
  /** The name; `message` if it has none. */
  name: string;
  data: string;
}

/** Time between two attempts to connect. */
const RETRY_MS = 2_000;

/** Splits a stream's text into events, however it is cut into pieces. */
export class EventParser {
  #rest = "";
  #id = "";
  #name = "";
  #data: string[] = [];

  /** Takes the next piece and returns the events that it completes. */
  take(piece: string): StreamEvent[] {
    // A piece that ends in CR may be continued by LF, which together end one line.
    const lines = (this.#rest + piece).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    return lines.map((line) => this.#line(line)).filter((event) => event !== null);
  }

  #line(line: string): StreamEvent | null {
    if (line === "") {
      const event = { id: this.#id, name: this.#name || "message", data: this.#data.join("\n") };
      const isEvent = this.#data.length > 0;
      this.#name = "";
      this.#data = [];
      return isEvent ? event : null;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") this.#id = value;
    else if (field === "event") this.#name = value;
    else if (field === "data") this.#data.push(value);
    return null;
  }
}

export interface StreamOptions {
  /** The id after which the stream starts. */
  last?: string;
  /** Whether only eyes need it: a tab behind another one keeps no connection. */
  onlyShown?: boolean;
  /** Called at each connection. */
  opened?: () => void;
  /** Called when the connection is lost or refused, before the next attempt. */
  lost?: (error: ApiError | null) => void | Promise<void>;
  /** Called for each event. A result of `false` ends the stream. */
  hear: (event: StreamEvent) => boolean | void;
}

/**
 * Follows a stream until the returned function is called. Reconnects by itself, after the last event it received. A page
 * that is put away, to come back to, keeps no connection: a browser has six to a server for all its tabs.
 */
export function follow(path: string, options: StreamOptions): () => void {
  const ends = new AbortController();
  const position = { last: options.last ?? null };
  let turn: AbortController | null = null;
  let away = false;
  const look = (): void => {
    const needed = !ends.signal.aborted && !away && !(options.onlyShown && document.hidden);
    if (needed && !turn) {
      turn = new AbortController();
      void keepReading(path, position, options, turn.signal, () => ends.abort());
    } else if (!needed && turn) {
      turn.abort();
      turn = null;
    }
  };
  const put = (isAway: boolean) => (): void => ((away = isAway), look());
  addEventListener("pagehide", put(true), { signal: ends.signal });
  addEventListener("pageshow", put(false), { signal: ends.signal });
  document.addEventListener("visibilitychange", look, { signal: ends.signal });
  ends.signal.addEventListener("abort", look);
  look();
  return () => ends.abort();
}

async function keepReading(
  path: string,
  position: { last: string | null },
  { opened, lost, hear }: StreamOptions,
  signal: AbortSignal,
  end: () => void,
): Promise<void> {
  while (!signal.aborted) {
    let error: ApiError | null = null;
    try {
      const reader = (await openStream(path, position.last, signal))?.getReader();
      opened?.();
      const parser = new EventParser();
      for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
        for (const event of parser.take(piece.value)) {
          if (signal.aborted) return;
          if (event.id) position.last = event.id;
          if (hear(event) === false) end();
        }
      }
    } catch (thrown) {
      error = thrown instanceof ApiError ? thrown : null;
    }
    if (signal.aborted) return;
    await lost?.(error);
    await new Promise((resume) => setTimeout(resume, RETRY_MS));
  }
}
