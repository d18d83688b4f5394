// The lines of a log: which are errors and warnings, which belong to the protocol between a worker and Waypost, and which
// match a search. Knows no page.

import { visible } from "./labels";
import { SgrReader, type Span } from "./sgr";

export interface Line {
  /** The number in the file, from 1. */
  number: number;
  /** The byte of the file at which it begins. */
  from: number;
  spans: Span[];
  text: string;
  kind: "error" | "warning" | "plain";
}

/** Lines by which a worker talks to Waypost: they are shown elsewhere, as progress, question and output. */
const PROTOCOL = /^waypost:(progress|question|output)\b/;
const ERROR = /(^|[^\w-])(error|fatal|panicked|panic|traceback|exception|FAIL|FAILED|E\d{4}|assertion .*failed)(?![\w-])(?! ?[:=] ?0\b)/i;
const NO_ERROR = /\b(0|no) (errors?|failed|failures)\b/i;
const WARNING = /(^|[^\w-])(warn|warning)\b/i;

export function kindOf(text: string): Line["kind"] {
  if (ERROR.test(text) && !NO_ERROR.test(text)) return "error";
  return WARNING.test(text) ? "warning" : "plain";
}

/** Reads a log that arrives in pieces. */
export class LogReader {
  readonly lines: Line[] = [];
  #reader = new SgrReader();
  #number = 0;
  #from = 0;
  #rest = "";

  /** Says how many bytes of the file were left out before the first piece. */
  skip(bytes: number): void {
    this.#from = bytes;
  }

  /** Says which number the first line has in the file. */
  begin(line: number): void {
    this.#number = line - 1;
  }

  /** How much of the file is kept, and how much was read, in bytes. */
  get bytes(): { kept: number; read: number } {
    return { kept: this.#from - (this.lines[0]?.from ?? this.#from), read: this.#from };
  }

  /** Adds a piece. A line that is not ended yet waits for its end. */
  add(piece: string): void {
    const parts = (this.#rest + piece).split("\n");
    this.#rest = parts.pop() ?? "";
    for (const part of parts) this.#push(part);
  }

  /** Adds what was left without an end of line. */
  finish(): void {
    if (this.#rest !== "") this.#push(this.#rest);
    this.#rest = "";
  }

  #push(raw: string): void {
    const from = this.#from;
    this.#from += size(raw) + 1;
    this.#number++;
    // What overwrites a line of progress stands after the last carriage return.
    const line = raw.replace(/\r+$/, "").split("\r").at(-1) ?? "";
    if (PROTOCOL.test(line)) return;
    const spans = this.#reader.line(line).map((span) => ({ ...span, text: visible(span.text) }));
    const text = spans.map((span) => span.text).join("");
    this.lines.push({ number: this.#number, from, spans, text, kind: kindOf(text) });
  }
}

/** The number of bytes that a text has in a file. */
// eslint-disable-next-line no-control-regex
export const size = (text: string): number => (/^[\u0000-\u007f]*$/.test(text) ? text.length : new TextEncoder().encode(text).length);

/** From which byte of a log on it was written when. */
export interface LogTime {
  from: number;
  at: string;
}

/** When the byte at a place of a log was written. */
export function timeAt(times: LogTime[], place: number): string | null {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle]?.from ?? 0) <= place) low = middle + 1;
    else high = middle;
  }
  return times[low - 1]?.at ?? null;
}

/** The first line of each run of errors. */
export function errors(lines: Line[]): number[] {
  const found: number[] = [];
  lines.forEach((line, at) => {
    if (line.kind === "error" && lines[at - 1]?.kind !== "error") found.push(at);
  });
  return found;
}

/** A piece of a line: its style, and whether it is a match. */
export interface Piece {
  text: string;
  style: string;
  found: boolean;
}

/** Marks the matches of a search, which may reach over several spans. */
export function pieces(line: Line, search: string): Piece[] {
  const wanted = search.toLowerCase();
  const text = line.text.toLowerCase();
  if (wanted === "" || !text.includes(wanted)) return line.spans.map((span) => ({ ...span, found: false }));
  const marked = new Uint8Array(line.text.length);
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) marked.fill(1, at, at + wanted.length);
  const made: Piece[] = [];
  let at = 0;
  for (const span of line.spans) {
    let from = 0;
    for (let place = 1; place <= span.text.length; place++) {
      if (place < span.text.length && marked[at + place] === marked[at + from]) continue;
      made.push({ text: span.text.slice(from, place), style: span.style, found: marked[at + from] === 1 });
      from = place;
    }
    at += span.text.length;
  }
  return made;
}
