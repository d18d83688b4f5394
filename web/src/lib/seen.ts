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
/** Time between two looks. */
const LOOK_MS = 40;
/** How long something has to be on screen. At a normal pace of scrolling a line stays longer; in an animated jump to the end it does
 * not. */
const DWELL_MS = 120;

/** What was on screen at a time: the visible part of each element. */
interface Look {
  at: number;
  visible: Map<Element, [number, number]>;
}

/** Watches elements and reports each once all of it was on screen for a moment, in one look or in several. */
export class Watcher {
  #parts = new Map<string, Parts>();
  #whole = new Set<string>();
  #keys = new Map<Element, string>();
  #near = new Set<Element>();
  /** The latest looks; the first is as old as something has to stay, or older. */
  #looks: Look[] = [];
  #timer = 0;
  #frame: () => DOMRect | null;
  #told: (key: string) => void;
  #observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) this.#near.add(entry.target);
      else this.#near.delete(entry.target);
    }
  });

  /** `frame` returns the visible part of the page, or null while nothing counts. */
  constructor(frame: () => DOMRect | null, told: (key: string) => void) {
    this.#frame = frame;
    this.#told = told;
  }

  /** Looks until the returned function is called. */
  start(): () => void {
    const again = (): void => {
      this.#look();
      this.#timer = window.setTimeout(again, LOOK_MS);
    };
    again();
    return () => {
      window.clearTimeout(this.#timer);
      this.#observer.disconnect();
    };
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

  /** Forgets what was seen, except for these. */
  reset(seen: Iterable<string>): void {
    this.#parts.clear();
    this.#whole = new Set(seen);
    this.#looks = [];
  }

  /** Notes what is on screen now and was before. */
  #look(): void {
    const [frame, at] = [this.#frame(), performance.now()];
    if (!frame) {
      this.#looks = [];
      return;
    }
    const visible: Look["visible"] = new Map();
    for (const element of this.#near) {
      const key = this.#keys.get(element);
      const { top, height } = element.getBoundingClientRect();
      if (key === undefined || height === 0 || this.#whole.has(key)) continue;
      visible.set(element, [Math.max(0, (frame.top - top) / height), Math.min(1, (frame.bottom - top) / height)]);
    }
    this.#looks.push({ at, visible });
    while (this.#looks[1] && this.#looks[1].at <= at - DWELL_MS) this.#looks.shift();
    const before = this.#looks[0];
    if (!before || before.at > at - DWELL_MS) return;
    for (const [element, [from, to]] of visible) {
      const [key, since] = [this.#keys.get(element), before.visible.get(element)];
      if (key === undefined || !since) continue;
      const parts = cover(this.#parts.get(key) ?? [], Math.max(from, since[0]), Math.min(to, since[1]));
      this.#parts.set(key, parts);
      if (!isWhole(parts, EDGE_PX / element.getBoundingClientRect().height)) continue;
      this.#whole.add(key);
      this.#told(key);
    }
  }
}
