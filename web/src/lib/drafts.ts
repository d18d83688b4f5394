// What was typed and not sent yet, by what it is about. It stays while the page is open, whatever else is shown meanwhile.

const kept = new Map<string, unknown>();

/** Returns what was typed about something. */
export const draftOf = <T>(about: string): T | null => (kept.get(about) as T | undefined) ?? null;

/** Keeps what is typed; an empty text or nothing at all is forgotten. */
export function keepDraft(about: string, words: unknown): void {
  if (words === null || words === "") kept.delete(about);
  else kept.set(about, words);
}
