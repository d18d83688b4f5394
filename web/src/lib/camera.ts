// From the plan's coordinates to the screen's and back. Pure.

export interface Point {
  x: number;
  y: number;
}

export interface Camera {
  /** What of the plan stands in the upper left corner. */
  x: number;
  y: number;
  /** Screen pixels for one of the plan's. */
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

export const SCALE_MIN = 0.02;
export const SCALE_MAX = 3;
/** A plan that fits is not blown up beyond this. */
const FIT_MAX = 1.1;

const clamp = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));

/** Shows all of it, with some air around. */
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

/** Nearer or farther, with the point under `at` staying where it is. */
export function zoom(camera: Camera, factor: number, at: Point): Camera {
  const scale = clamp(camera.scale * factor, SCALE_MIN, SCALE_MAX);
  return {
    scale,
    x: camera.x + at.x / camera.scale - at.x / scale,
    y: camera.y + at.y / camera.scale - at.y / scale,
  };
}

/** Moves by so many pixels of the screen. */
export function pan(camera: Camera, dx: number, dy: number): Camera {
  return { ...camera, x: camera.x - dx / camera.scale, y: camera.y - dy / camera.scale };
}

/** The point of the plan that stands there on the screen. */
export const planPoint = (camera: Camera, at: Point): Point => ({
  x: camera.x + at.x / camera.scale,
  y: camera.y + at.y / camera.scale,
});

/** Moves as little as needed for a box to be seen, with some air around. */
export function reveal(camera: Camera, box: Point & Size, screen: Size, air = 40): Camera {
  const wide = screen.width / camera.scale;
  const high = screen.height / camera.scale;
  const margin = Math.min(air / camera.scale, wide / 4, high / 4);
  const x = clamp(camera.x, box.x + box.width + margin - wide, box.x - margin);
  const y = clamp(camera.y, box.y + box.height + margin - high, box.y - margin);
  return { ...camera, x, y };
}
