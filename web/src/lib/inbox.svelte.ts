// What waits for the person, on every page: the number in the title and in the icon, and desktop notifications.

import { get } from "./api";
import { live, seldom } from "./live.svelte";
import { page } from "./page.svelte";
import type { Inbox, InboxItem } from "./types";
import { mayAct, several, visible } from "./labels";

/** The list is read at most this often while plans change. */
const READ_AGAIN_MS = 1_500;
/** How often it is read while nothing changes: what a sync asks need not change any plan. */
const READ_ANYWAY_MS = 60_000;
const STORED_CHOICE = "waypost-notify";

/** Names an item over time: a plan that asks for approval of another version is another item, and so is another question. */
export const keyOf = (item: InboxItem): string =>
  [item.kind, item.plan, item.tasks?.join(" ") ?? item.version, item.attempt ?? "", item.digest ?? "", item.text, ...(item.choices ?? [])].join("|");

class Waiting {
  inbox = $state.raw<Inbox | null>(null);
  /** Whether the person asked for desktop notifications in this browser. */
  notifies = $state(chosen());
  #known: Set<string> | null = null;
  #started = false;

  /** The number of things that this user can act on, also of those that are not listed. */
  get total(): number {
    return Object.entries(this.inbox?.totals ?? {}).reduce((sum, [kind, number]) => (mayAct(kind as InboxItem["kind"], page.me?.role) ? sum + number : sum), 0);
  }

  /** The listed things that this user can act on. */
  get items(): InboxItem[] {
    return this.inbox?.items.filter((item) => mayAct(item.kind, page.me?.role)) ?? [];
  }

  /** Whether this browser can show notifications at all. */
  get canNotify(): boolean {
    return "Notification" in globalThis;
  }

  /** Reads the list now and after every change. */
  start(): void {
    if (this.#started) return;
    this.#started = true;
    const again = seldom(() => void this.read(), READ_AGAIN_MS);
    live.hear(again, again);
    setInterval(() => {
      if (!document.hidden) again();
    }, READ_ANYWAY_MS);
    void this.read();
  }

  async read(): Promise<void> {
    try {
      const found = await get<Inbox>("/inbox");
      this.inbox = found;
      this.#announce(this.items);
    } catch (error) {
      // The number is an extra: a page that is not connected says so itself.
      if (this.inbox === null) page.failed(error);
    }
  }

  async turn(on: boolean): Promise<void> {
    const allowed = on && (await Notification.requestPermission()) === "granted";
    if (on && !allowed) page.say("This browser does not allow notifications for this page. Allow them in its settings for the site.");
    this.notifies = allowed;
    try {
      localStorage.setItem(STORED_CHOICE, allowed ? "yes" : "no");
    } catch {
      // Without storage the choice lasts until the page is closed.
    }
  }

  #announce(items: InboxItem[]): void {
    const keys = new Set(items.map(keyOf));
    const fresh = this.#known === null ? [] : items.filter((item) => !this.#known?.has(keyOf(item)));
    this.#known = keys;
    const first = fresh[0];
    if (!this.notifies || !first || !document.hidden) return;
    const title = fresh.length > 1 ? `${several(fresh.length, "thing")} wait for you` : TITLES[first.kind];
    // One notification a server: the next replaces it.
    const note = new Notification(title, { body: visible(`${first.plan_title}: ${first.text}`), tag: `waypost ${location.host}`, icon: "/icon.svg" });
    note.onclick = () => {
      window.focus();
      note.close();
    };
  }
}

const TITLES: Record<InboxItem["kind"], string> = {
  approval: "A plan needs your approval",
  question: "A task asks you a question",
  conflict: "Clones of a plan disagree",
  task: "A task waits for you",
  failure: "A task failed",
};

function chosen(): boolean {
  try {
    return localStorage.getItem(STORED_CHOICE) === "yes" && Notification.permission === "granted";
  } catch {
    return false;
  }
}

export const waiting = new Waiting();

const ICON_SIDE = 64;

/** Draws the icon of the tab with a number. */
export async function drawIcon(count: number): Promise<void> {
  const link = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (!link) return;
  if (count === 0) {
    link.href = "/icon.svg";
    link.type = "image/svg+xml";
    return;
  }
  const image = new Image();
  image.src = "/icon.svg";
  await image.decode().catch(() => null);
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = ICON_SIDE;
  const context = canvas.getContext("2d");
  if (!context) return;
  context.drawImage(image, 0, 0, ICON_SIDE, ICON_SIDE);
  context.fillStyle = "#92145f";
  context.beginPath();
  context.arc(44, 44, 20, 0, 2 * Math.PI);
  context.fill();
  context.fillStyle = "#ffffff";
  context.font = "bold 26px sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(count > 9 ? "9+" : String(count), 44, 46);
  link.type = "image/png";
  link.href = canvas.toDataURL("image/png");
}
