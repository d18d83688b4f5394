// The current route. Every view has an address of its own.

export const TABS = ["graph", "tree", "list", "board", "timeline", "document", "approval", "history", "events"] as const;
/** The log of a task is a view of the plan that has no tab of its own. */
export type Tab = (typeof TABS)[number] | "log";

export type Route =
  | { name: "plans" }
  | { name: "plan"; id: string; tab: Tab; task: string | null }
  | { name: "inbox" }
  | { name: "events" }
  | { name: "workers" }
  | { name: "tasks" }
  | { name: "unknown"; path: string; plan?: string };

/** The words of addresses that differ from the names of the views here. The names are understood, too. */
const WORDS: Partial<Record<string, string>> = { list: "tasks", events: "activity", workers: "agents" };
const NAMES: Partial<Record<string, string>> = Object.fromEntries(Object.entries(WORDS).map(([name, word]) => [word, name]));
const named = (word: string | undefined): string | undefined => (word === undefined ? undefined : (NAMES[word] ?? word));

/** Parses a path into a route. */
export function routeOf(path: string): Route {
  const parts = path.split("/").filter(Boolean).map(decode);
  const [word, id, view, task] = parts;
  const [first, tab] = [word === "tasks" ? word : named(word), named(view)];
  if (first === undefined || (first === "plans" && id === undefined)) return { name: "plans" };
  if (first === "plans" && id !== undefined) {
    const known = tab === "log" && task !== undefined ? tab : TABS.find((name) => name === tab);
    if (tab !== undefined && known === undefined) return { name: "unknown", path, plan: id };
    return { name: "plan", id, tab: known ?? "graph", task: task ?? null };
  }
  if (first === "inbox" || first === "events" || first === "workers" || first === "tasks") return { name: first };
  return { name: "unknown", path };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the address of a plan, one of its views, and optionally a task. */
export function planPath(id: string, tab: Tab = "graph", task: string | null = null): string {
  const base = `/plans/${encodeURIComponent(id)}/${WORDS[tab] ?? tab}`;
  return task === null ? base : `${base}/${encodeURIComponent(task)}`;
}

/** The path with the words of the page, for one with the names of the views. */
function canonical(route: Route, path: string): string {
  if (route.name === "events" || route.name === "workers") return `/${WORDS[route.name]}`;
  const view = path.split("/").filter(Boolean)[2];
  return route.name === "plan" && view !== undefined && WORDS[view] !== undefined ? planPath(route.id, route.tab, route.task) : path;
}

class Place {
  route = $state<Route>(routeOf(location.pathname));
  search = $state(new URLSearchParams(location.search));

  constructor() {
    addEventListener("popstate", () => this.#look());
    this.#look();
  }

  #look(): void {
    this.route = routeOf(location.pathname);
    const path = canonical(this.route, location.pathname);
    if (path !== location.pathname) history.replaceState(history.state, "", path + location.search + location.hash);
    this.search = new URLSearchParams(location.search);
  }

  /** Navigates to a path; with `replace`, the current history entry is replaced. */
  go(path: string, replace = false): void {
    if (path === location.pathname + location.search) return;
    if (replace) history.replaceState(null, "", path);
    else history.pushState(null, "", path);
    this.#look();
  }

  /** Sets query parameters; an empty value removes one. */
  say(name: string, value: string | number | null, more: Record<string, string | number> = {}): void {
    const search = new URLSearchParams(this.search);
    for (const [own, text] of Object.entries({ ...more, [name]: value })) {
      if (text === null || text === "") search.delete(own);
      else search.set(own, String(text));
    }
    this.go(location.pathname + words(search), true);
  }
}

/** Returns the query string, including the question mark. */
export function words(search: URLSearchParams): string {
  const text = search.toString();
  return text ? `?${text}` : "";
}

export const place = new Place();

/** Makes an ordinary link navigate without reloading the page. */
export function link(event: MouseEvent): void {
  const anchor = event.currentTarget as HTMLAnchorElement;
  if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  place.go(anchor.pathname + anchor.search);
}
