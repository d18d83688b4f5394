// State that all views share: the user, the current time, and errors.

import { ApiError, download, me, sentence, signIn } from "./api";
import type { Conflict, Me, Problem } from "./types";

export interface Note {
  id: number;
  tone: "good" | "bad";
  text: string;
  hint?: string;
  /** Whether it says that the server does not respond. */
  isLost?: boolean;
  /** A button beside the text. */
  action?: { text: string; run: () => void };
}

/** A write that failed because the plan had changed. */
export interface Clash {
  what: string;
  conflict: Conflict;
  mine: string;
  again: (version: number) => Promise<void>;
}

const NOTE_MS = 6_000;
/** Notes with a button stay longer. */
const ACTION_MS = 15_000;

class Page {
  me = $state<Me | null>(null);
  signedOut = $state(false);
  /** Why the last sign-in failed. */
  refusal = $state<Problem | null>(null);
  now = $state(Date.now());
  notes = $state<Note[]>([]);
  clash = $state<Clash | null>(null);
  help = $state(false);
  /** The number of open modal dialogs: they cover what is not in the topmost. */
  dialogs = $state(0);
  /** How often something failed because the session has ended. */
  refusals = $state(0);
  #next = 0;

  constructor() {
    setInterval(() => (this.now = Date.now()), 1_000);
  }

  /** Whether the user may write. */
  get mayWrite(): boolean {
    return this.me !== null && this.me.role !== "reader";
  }

  /** Whether the user may decide what only people may decide. */
  get isPerson(): boolean {
    return this.me?.role === "person";
  }

  /** Loads the identity. If the address is a sign-in link, its code is used first, and removed from the address. */
  async begin(): Promise<void> {
    const code = /^#login=(.+)$/.exec(location.hash)?.[1];
    if (code === undefined) return this.#load();
    history.replaceState(history.state, "", location.pathname + location.search);
    await this.signIn({ code });
  }

  /** Signs in with the code of a sign-in link, or with a token. */
  async signIn(credential: Parameters<typeof signIn>[0]): Promise<void> {
    this.refusal = null;
    try {
      await signIn(credential);
    } catch (error) {
      if (!(error instanceof ApiError)) return this.failed(error);
      this.refusal = error.problem;
    }
    // Also after a refusal: a link that was used already changes nothing for who is signed in.
    await this.#load();
  }

  async #load(): Promise<void> {
    try {
      this.me = await me();
      this.signedOut = false;
      this.refusal = null;
    } catch (error) {
      this.failed(error);
    }
  }

  /** Checks whether the session is still valid, or valid again. Other errors are ignored until the next check. */
  async look(): Promise<void> {
    try {
      this.me = await me();
      this.signedOut = false;
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) this.signedOut = true;
    }
  }

  /** Downloads a file of the API. */
  download(path: string, name: string): void {
    download(path, name).catch((error: unknown) => this.failed(error));
  }

  say(text: string, action?: Note["action"]): void {
    this.#add({ id: 0, tone: "good", text, ...(action ? { action } : {}) });
  }

  /** Takes back what was said. */
  unsay(text: string): void {
    this.notes = this.notes.filter((note) => note.text !== text);
  }

  /** Puts a text on the clipboard. */
  async copy(text: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      this.say("Copied");
    } catch {
      this.say("This browser does not allow copying here. Select the command and copy it by hand.");
    }
  }

  /** Shows an error with the server's message. */
  failed(error: unknown): void {
    if (error instanceof ApiError) {
      if (error.status === 401) {
        this.signedOut = true;
        this.refusals++;
        return;
      }
      const note: Note = { id: 0, tone: "bad", text: sentence(error.problem), isLost: error.status === 0 };
      // One is enough.
      if (note.isLost && this.notes.some((known) => known.isLost)) return;
      // Hints about requests are for programs.
      if (error.problem.hint && !error.problem.hint.includes("/api/v1/")) note.hint = error.problem.hint;
      this.#add(note);
    } else {
      this.#add({ id: 0, tone: "bad", text: String(error) });
    }
  }

  #add(note: Note): void {
    const id = ++this.#next;
    this.notes = [...this.notes.slice(-3), { ...note, id }];
    // Errors do not time out.
    if (note.tone === "good") setTimeout(() => this.dismiss(id), note.action ? ACTION_MS : NOTE_MS);
  }

  /** The server responds again. */
  recovered(): void {
    this.notes = this.notes.filter((note) => !note.isLost);
  }

  dismiss(id: number): void {
    this.notes = this.notes.filter((note) => note.id !== id);
  }

  /**
   * Writes with the version on screen. A conflict is shown with what was typed, and can then be written on top of the
   * newer version. Returns whether the write succeeded at once.
   */
  async write(what: string, mine: string, version: number, work: (version: number) => Promise<void>): Promise<boolean> {
    try {
      await work(version);
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.status === 412 && error.problem.conflict) {
        this.clash = { what, mine, conflict: error.problem.conflict, again: work };
      } else {
        this.failed(error);
      }
      return false;
    }
  }
}

export const page = new Page();
