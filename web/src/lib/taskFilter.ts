// The filter of a plan's tasks, as the address keeps it: words, status, label, assignee.

import type { Annotation, Standing } from "./types";

export interface TaskFilter {
  words: string[];
  standing: string;
  label: string;
  assignee: string;
}

/** Reads the filter from a query string. */
export function taskFilter(search: URLSearchParams): TaskFilter {
  return {
    words: (search.get("text") ?? "").toLowerCase().split(/\s+/).filter(Boolean),
    standing: search.get("standing") ?? "",
    label: search.get("label") ?? "",
    assignee: search.get("assignee") ?? "",
  };
}

export const isFiltered = ({ words, standing, label, assignee }: TaskFilter): boolean => words.length > 0 || standing !== "" || label !== "" || assignee !== "";

interface Filtered {
  id: string;
  label: string;
  standing: Standing;
  annotation: Annotation | undefined;
}

/** Whether a task fits all of the filter. */
export function matches(filter: TaskFilter, { id, label, standing, annotation }: Filtered): boolean {
  if (filter.standing !== "" && standing !== filter.standing) return false;
  if (filter.label !== "" && !annotation?.labels?.includes(filter.label)) return false;
  if (filter.assignee !== "" && annotation?.assignee !== filter.assignee) return false;
  if (filter.words.length === 0) return true;
  const text = [id, label, annotation?.assignee ?? "", ...(annotation?.labels ?? [])].join("\n").toLowerCase();
  return filter.words.every((word) => text.includes(word));
}
