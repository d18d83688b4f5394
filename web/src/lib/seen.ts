// Which parts of a long text were on screen, as fractions of its height: they stay right when the window gets another width.

/** Parts from 0 to 1, in order, none touching the next. */
export type Parts = [number, number][];

/** Adds a part. */
export function cover(parts: Parts, from: number, to: number): Parts {
  if (to <= from) return parts;
  const apart = parts.filter(([begin, end]) => end < from || begin > to);
  const touched = parts.filter(([begin, end]) => end >= from && begin <= to);
  const whole: [number, number] = [Math.min(from, ...touched.map(([begin]) => begin)), Math.max(to, ...touched.map(([, end]) => end))];
  return [...apart, whole].sort(([one], [other]) => one - other);
}

/** Whether the parts leave out at most `slack` at each edge, and nothing in the middle. */
export function isWhole(parts: Parts, slack: number): boolean {
  const [first] = parts;
  return parts.length === 1 && first !== undefined && first[0] <= slack && first[1] >= 1 - slack;
}

const EDGE_PX = 3;

/** Watches elements and reports each once all of it was on screen, in one look or in several. */
export class Watcher {
  #parts = new Map<string, Parts>();
  #keys = new Map<Element, string>();
  #near = new Set<Element>();
  #whole = new Set<string>();
  #frame: () => DOMRect | null;
  #told: (key: string) => void;
  #observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting) this.#near.add(entry.target);
        else this.#near.delete(entry.target);
      }
      this.look();
    },
    { threshold: [0, 0.25, 0.5, 0.75, 1] },
  );

  /** `frame` returns the visible part of the page, or null while nothing counts. */
  constructor(frame: () => DOMRect | null, told: (key: string) => void) {
    this.#frame = frame;
    this.#told = told;
  }

  add(element: Element, key: string): void {
    this.#keys.set(element, key);
    this.#observer.observe(element);
  }

  remove(element: Element): void {
    this.#keys.delete(element);
    this.#near.delete(element);
    this.#observer.unobserve(element);
  }

  /** Forgets what was seen. */
  clear(): void {
    this.#parts.clear();
    this.#whole.clear();
    for (const element of this.#keys.keys()) {
      this.#observer.unobserve(element);
      this.#observer.observe(element);
    }
  }

  /** Notes what is on screen now. */
  look = (): void => {
    const frame = this.#frame();
    if (!frame) return;
    for (const element of this.#near) {
      const key = this.#keys.get(element);
      const { top, height } = element.getBoundingClientRect();
      if (key === undefined || height === 0 || this.#whole.has(key)) continue;
      const parts = cover(this.#parts.get(key) ?? [], Math.max(0, (frame.top - top) / height), Math.min(1, (frame.bottom - top) / height));
      this.#parts.set(key, parts);
      if (!isWhole(parts, EDGE_PX / height)) continue;
      this.#whole.add(key);
      this.#told(key);
    }
  };

  end(): void {
    this.#observer.disconnect();
  }
}
