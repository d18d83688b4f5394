// What changed inside a text: everything between what both sides begin and end with, at the ends of words.

export interface Part {
  text: string;
  changed: boolean;
}

/** Splits both sides into what stayed and what changed. A side that is empty has no parts. */
export function changed(before: string, after: string): { before: Part[]; after: Part[] } {
  const [old, fresh] = [words(before), words(after)];
  let first = 0;
  while (first < old.length && first < fresh.length && old[first] === fresh[first]) first++;
  let last = 0;
  while (last < old.length - first && last < fresh.length - first && old.at(-1 - last) === fresh.at(-1 - last)) last++;
  const parts = (all: string[]): Part[] =>
    [
      { text: all.slice(0, first).join(""), changed: false },
      { text: all.slice(first, all.length - last).join(""), changed: true },
      { text: all.slice(all.length - last).join(""), changed: false },
    ].filter((part) => part.text !== "");
  return { before: parts(old), after: parts(fresh) };
}

const words = (text: string): string[] => text.match(/\w+|\s+|[^\w\s]/g) ?? [];
