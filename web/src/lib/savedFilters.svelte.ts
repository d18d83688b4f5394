// Filters that the user has saved in this browser, for each workspace and each list.

import { page } from "./page.svelte";

export interface SavedFilter {
  name: string;
  /** The query string, without the question mark. */
  search: string;
}

/** Saved filters of one list. */
const FILTERS_MAX = 50;

/** Which list of a page is filtered. */
export type FilteredList = "plans" | "tasks";

class SavedFilters {
  #lists = $state<Partial<Record<FilteredList, SavedFilter[]>>>({});

  #key(list: FilteredList): string {
    return `waypost-filters ${list} ${page.me?.workspace ?? ""}`;
  }

  /** Reads the filters of a list. */
  of(list: FilteredList): SavedFilter[] {
    return this.#lists[list] ?? this.#stored(list);
  }

  #stored(list: FilteredList): SavedFilter[] {
    try {
      const found: unknown = JSON.parse(localStorage.getItem(this.#key(list)) ?? "[]");
      return Array.isArray(found) ? found.filter(isFilter).slice(0, FILTERS_MAX) : [];
    } catch {
      return [];
    }
  }

  /** Saves a filter; one of the same name is replaced. Returns whether there was room. */
  save(list: FilteredList, filter: SavedFilter): boolean {
    const others = this.of(list).filter((one) => one.name !== filter.name);
    if (others.length >= FILTERS_MAX) return false;
    this.#write(list, [...others, filter]);
    return true;
  }

  remove(list: FilteredList, name: string): void {
    this.#write(
      list,
      this.of(list).filter((one) => one.name !== name),
    );
  }

  #write(list: FilteredList, filters: SavedFilter[]): void {
    this.#lists[list] = filters;
    try {
      localStorage.setItem(this.#key(list), JSON.stringify(filters));
    } catch {
      // Without storage they last until the page is closed.
    }
  }
}

function isFilter(value: unknown): value is SavedFilter {
  const one = value as Partial<SavedFilter> | null;
  return typeof one?.name === "string" && typeof one.search === "string";
}

export const savedFilters = new SavedFilters();
