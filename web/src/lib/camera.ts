// Converts between plan and screen coordinates. Pure.

export interface Point {
  x: number;
  y: number;
}

export interface Camera {
  /** The plan point in the upper left corner of the screen. */
  x: number;
  y: number;
  /** Screen pixels per plan unit. */
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

export const SCALE_MIN = 0.02;
export const SCALE_MAX = 3;
/** Maximum scale when fitting a small plan. */
const FIT_MAX = 1.1;

const clamp = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));

/** Shows the whole plan with a margin. */
export function fit(plan: Size, screen: Size, air = 24): Camera {
  const wide = (screen.width - 2 * air) / Math.max(1, plan.width);
  const high = (screen.height - 2 * air) / Math.max(1, plan.height);
  const scale = clamp(Math.min(wide, high), SCALE_MIN, FIT_MAX);
  return {
    scale,
    x: (plan.width - screen.width / scale) / 2,
    y: (plan.height - screen.height / scale) / 2,
  };
}

/** Zooms, keeping the point under `at` in place. */
export function zoom(camera: Camera, factor: number, at: Point): Camera {
  const scale = clamp(camera.scale * factor, SCALE_MIN, SCALE_MAX);
  return {
    scale,
    x: camera.x + at.x / camera.scale - at.x / scale,
    y: camera.y + at.y / camera.scale - at.y / scale,
  };
}

/** Moves by a distance in screen pixels. */
export function pan(camera: Camera, dx: number, dy: number): Camera {
  return { ...camera, x: camera.x - dx / camera.scale, y: camera.y - dy / camera.scale };
}

/** Returns the plan point at a screen position. */
export const planPoint = (camera: Camera, at: Point): Point => ({
  x: camera.x + at.x / camera.scale,
  y: camera.y + at.y / camera.scale,
});

/** The smallest scale at which what was opened can be read. */
const LEGIBLE = 0.5;

/** Shows what was opened: where it is if it fits, otherwise smaller, and what is too large even so from its beginning. */
export function unfold(camera: Camera, box: Point & Size, screen: Size, air = 24): Camera {
  const fits = Math.min((screen.width - 2 * air) / box.width, (screen.height - 2 * air) / box.height);
  const scale = Math.min(camera.scale, Math.max(fits, LEGIBLE));
  const near = { ...camera, scale };
  const [wide, high] = [screen.width / scale, screen.height / scale];
  const margin = air / scale;
  const start = (from: number, length: number, room: number, now: number): number => (length + 2 * margin > room ? from - margin : clamp(now, from + length + margin - room, from - margin));
  return { ...near, x: start(box.x, box.width, wide, camera.x), y: start(box.y, box.height, high, camera.y) };
}

/** Moves as little as needed to show a box with a margin. */
export function reveal(camera: Camera, box: Point & Size, screen: Size, air = 40): Camera {
  const wide = screen.width / camera.scale;
  const high = screen.height / camera.scale;
  const margin = Math.min(air / camera.scale, wide / 4, high / 4);
  const x = clamp(camera.x, box.x + box.width + margin - wide, box.x - margin);
  const y = clamp(camera.y, box.y + box.height + margin - high, box.y - margin);
  return { ...camera, x, y };
}
