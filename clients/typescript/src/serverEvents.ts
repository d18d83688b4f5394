// Server-sent events that survive lost connections: what `EventSource` does, for requests that need a header.

import { WaypostError, errorOf } from "./errors.js";
import { type Retries, pause } from "./retries.js";

/** The server sends a comment after 15 seconds without an event: three times that is a dead connection. */
const SILENCE_MS_MAX = 45_000;

/** One event of a stream. `id` is that of the last event that had one. */
export interface ServerEvent {
  id: string;
  name: string;
  data: string;
}

/** Splits the text of a stream into events, however it is cut into pieces. */
export class EventParser {
  #rest = "";
  #name = "";
  #data: string[] = [];
  #id: string;

  constructor(lastId = "") {
    this.#id = lastId;
  }

  /** Takes the next piece and returns the events that it completes. */
  take(piece: string): ServerEvent[] {
    // A piece that ends in CR may be continued by LF, which together end one line.
    const lines = (this.#rest + piece).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    return lines.map((line) => this.#line(line)).filter((event) => event !== null);
  }

  #line(line: string): ServerEvent | null {
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
    if (field === "id" && !value.includes("\0")) this.#id = value;
    else if (field === "event") this.#name = value;
    else if (field === "data") this.#data.push(value);
    return null;
  }
}

/** Opens a stream after the event with this id. */
export type OpenStream = (lastId: string, signal: AbortSignal) => Promise<Response>;

/**
 * Yields the events of a stream. Connects again after the last event whenever the connection ends; ends only when the caller stops,
 * `signal` is aborted, or the server refuses.
 */
export async function* follow(
  open: OpenStream,
  retries: Retries,
  { lastId = "", signal }: { lastId?: string; signal?: AbortSignal } = {},
): AsyncGenerator<ServerEvent, void, undefined> {
  for (let lost = 1; !signal?.aborted; lost++) {
    const connection = new AbortController();
    const stop = () => connection.abort();
    signal?.addEventListener("abort", stop);
    try {
      const response = await open(lastId, connection.signal);
      const isRefused = response.status >= 400 && response.status < 500 && ![408, 429].includes(response.status);
      if (isRefused) throw errorOf(response.status, await response.json().catch(() => null));
      if (response.ok && response.body) {
        const parser = new EventParser(lastId);
        for await (const piece of pieces(response.body, stop)) {
          for (const event of parser.take(piece)) {
            lost = 0;
            lastId = event.id;
            yield event;
          }
        }
      }
    } catch (error) {
      if (signal?.aborted) return;
      // Everything else is a connection that was lost.
      if (error instanceof WaypostError) throw error;
    } finally {
      signal?.removeEventListener("abort", stop);
      stop();
    }
    if (!signal?.aborted) await retries.sleep(pause(retries, Math.max(lost, 1)));
  }
}

/** The text of a body. Ends a connection that is silent for too long. */
async function* pieces(body: ReadableStream<Uint8Array>, stop: () => void): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const silence = setTimeout(stop, SILENCE_MS_MAX);
      const { done, value } = await reader.read().finally(() => clearTimeout(silence));
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    reader.releaseLock();
  }
}
