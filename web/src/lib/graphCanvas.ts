// Draws a plan's graph on a canvas. Knows tasks only by their index.

import type { Camera, Size } from "./camera";
import type { Graph, Standing } from "./types";
import { SIGN, titled } from "./labels";

export const BOX = { width: 200, height: 56 };
/** Below this scale boxes have no text. */
const WORDS_SCALE = 0.42;
/** Below this scale they have no sign either: it would be unrecognizable. */
const SIGN_SCALE = 0.12;
/** Below this scale edges have no arrowheads: all of them point down. */
const HEAD_SCALE = 0.3;
/** With more edges than this, none is drawn at small scales. */
const THIN_ARROWS_MAX = 20_000;

/** Pixels per plan unit in an exported picture, if the limits allow. */
const PICTURE_SCALE = 2;
/** Maximum pixels of a picture's side and of its area, which browsers can still export. */
export const PICTURE_SIDE_MAX = 8_192;
export const PICTURE_PIXELS_MAX = 32_000_000;
/** The margin around the plan in a picture. */
const PICTURE_AIR = 24;

export interface Colours {
  page: string;
  panel: string;
  text: string;
  dim: string;
  line: string;
  accent: string;
  own: Record<Standing, { line: string; fill: string }>;
}

/** Reads the current colours of the page. */
export function colours(element: Element): Colours {
  const style = getComputedStyle(element);
  const read = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const own = Object.fromEntries(
    Object.keys(SIGN).map((name) => [name, { line: read(name), fill: read(`${name}-fill`) }]),
  ) as Colours["own"];
  return { page: read("page"), panel: read("panel"), text: read("text"), dim: read("dim"), line: read("line-strong"), accent: read("accent"), own };
}

/** The dependencies and dependants of each task. */
export class Neighbours {
  readonly before: number[][];
  readonly after: number[][];

  constructor(graph: Graph) {
    this.before = Array.from({ length: graph.ids.length }, () => []);
    this.after = Array.from({ length: graph.ids.length }, () => []);
    graph.from.forEach((from, arrow) => {
      const to = graph.to[arrow];
      if (to === undefined) return;
      this.before[to]?.push(from);
      this.after[from]?.push(to);
    });
  }
}

export interface Scene {
  graph: Graph;
  standing: Standing[];
  camera: Camera;
  screen: Size;
  selected: number | null;
  hovered: number | null;
  critical: Set<number>;
  colours: Colours;
  /** While a person draws an edge: from this box to this point of the plan. */
  arrow: { from: number; x: number; y: number } | null;
}

/** Draws everything that is visible. */
export function draw(context: CanvasRenderingContext2D, scene: Scene): void {
  const { camera, screen } = scene;
  context.save();
  context.clearRect(0, 0, screen.width, screen.height);
  context.scale(camera.scale, camera.scale);
  context.translate(-camera.x, -camera.y);
  drawArrows(context, scene);
  drawBoxes(context, scene);
  drawNewArrow(context, scene);
  context.restore();
}

/** Returns the pixels per plan unit in a picture of the whole plan. */
export function pictureScale(plan: Size): number {
  const wide = plan.width + 2 * PICTURE_AIR;
  const high = plan.height + 2 * PICTURE_AIR;
  return Math.min(PICTURE_SCALE, PICTURE_SIDE_MAX / wide, PICTURE_SIDE_MAX / high, Math.sqrt(PICTURE_PIXELS_MAX / (wide * high)));
}

/** Whether boxes have text at this scale. */
export const hasWords = (scale: number): boolean => scale >= WORDS_SCALE;

/** Draws the whole plan on a new canvas, regardless of what is visible on screen. */
export function drawWhole(scene: Pick<Scene, "graph" | "standing" | "critical" | "colours">): HTMLCanvasElement {
  const plan = { width: scene.graph.width ?? 1, height: scene.graph.height ?? 1 };
  const scale = pictureScale(plan);
  const screen = { width: Math.floor((plan.width + 2 * PICTURE_AIR) * scale), height: Math.floor((plan.height + 2 * PICTURE_AIR) * scale) };
  const canvas = document.createElement("canvas");
  canvas.width = screen.width;
  canvas.height = screen.height;
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  const camera = { x: -PICTURE_AIR, y: -PICTURE_AIR, scale };
  draw(context, { ...scene, camera, screen, selected: null, hovered: null, arrow: null });
  context.globalCompositeOperation = "destination-over";
  context.fillStyle = scene.colours.page;
  context.fillRect(0, 0, screen.width, screen.height);
  return canvas;
}

function seen(scene: Scene, left: number, top: number, right: number, bottom: number): boolean {
  const { camera, screen } = scene;
  return (
    right >= camera.x &&
    bottom >= camera.y &&
    left <= camera.x + screen.width / camera.scale &&
    top <= camera.y + screen.height / camera.scale
  );
}

function curve(path: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  const bend = Math.max(18, Math.abs(y2 - y1) / 2);
  path.moveTo(x1, y1);
  path.bezierCurveTo(x1, y1 + bend, x2, y2 - bend, x2, y2);
}

function drawArrows(context: CanvasRenderingContext2D, scene: Scene): void {
  const { graph, colours, camera } = scene;
  const { x, y } = graph;
  if (!x || !y) return;
  const lit = scene.hovered ?? scene.selected;
  const strong: number[] = [];
  const thin = camera.scale < 0.2 && graph.from.length > THIN_ARROWS_MAX;
  context.lineWidth = Math.max(1, 0.7 / camera.scale);
  context.strokeStyle = colours.line;
  context.globalAlpha = camera.scale < 0.3 ? 0.35 : 0.6;
  const heads = camera.scale >= HEAD_SCALE ? new Set<number>() : null;
  context.beginPath();
  for (let arrow = 0; arrow < graph.from.length && !thin; arrow++) {
    const from = graph.from[arrow] ?? 0;
    const to = graph.to[arrow] ?? 0;
    const x1 = (x[from] ?? 0) + BOX.width / 2;
    const y1 = (y[from] ?? 0) + BOX.height;
    const x2 = (x[to] ?? 0) + BOX.width / 2;
    const y2 = y[to] ?? 0;
    if (!seen(scene, Math.min(x1, x2) - 4, Math.min(y1, y2), Math.max(x1, x2) + 4, Math.max(y1, y2))) continue;
    if (from === lit || to === lit || (scene.critical.has(from) && scene.critical.has(to))) strong.push(arrow);
    else {
      curve(context, x1, y1, x2, y2);
      heads?.add(to);
    }
  }
  context.stroke();
  for (const to of heads ?? []) head(context, (x[to] ?? 0) + BOX.width / 2, y[to] ?? 0, colours.line);
  context.globalAlpha = 1;
  for (const arrow of strong) {
    const from = graph.from[arrow] ?? 0;
    const to = graph.to[arrow] ?? 0;
    context.beginPath();
    context.strokeStyle = from === lit || to === lit ? colours.accent : colours.own.running.line;
    context.lineWidth = Math.max(2.2, 1.6 / camera.scale);
    curve(
      context,
      (x[from] ?? 0) + BOX.width / 2,
      (y[from] ?? 0) + BOX.height,
      (x[to] ?? 0) + BOX.width / 2,
      y[to] ?? 0,
    );
    context.stroke();
    head(context, (x[to] ?? 0) + BOX.width / 2, y[to] ?? 0, context.strokeStyle);
  }
}

function head(context: CanvasRenderingContext2D, x: number, y: number, colour: string): void {
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x - 5, y - 9);
  context.lineTo(x + 5, y - 9);
  context.closePath();
  context.fillStyle = colour;
  context.fill();
}

function drawBoxes(context: CanvasRenderingContext2D, scene: Scene): void {
  const { graph } = scene;
  const { x, y } = graph;
  if (!x || !y) return;
  const words = scene.camera.scale >= WORDS_SCALE;
  for (let place = 0; place < graph.ids.length; place++) {
    const left = x[place] ?? 0;
    const top = y[place] ?? 0;
    if (!seen(scene, left, top, left + BOX.width, top + BOX.height)) continue;
    drawBox(context, scene, place, left, top);
    if (words) drawWords(context, scene, place, left, top);
    else if (scene.camera.scale >= SIGN_SCALE) drawLargeSign(context, scene, place, left, top);
  }
}

function drawLargeSign(context: CanvasRenderingContext2D, scene: Scene, place: number, left: number, top: number): void {
  const standing = scene.standing[place] ?? "blocked";
  context.textBaseline = "middle";
  context.textAlign = "center";
  context.font = "700 40px system-ui, sans-serif";
  context.fillStyle = scene.colours.own[standing].line;
  context.fillText(SIGN[standing], left + 26 + (BOX.width - 26) / 2, top + BOX.height / 2 + 2);
}

function drawBox(context: CanvasRenderingContext2D, scene: Scene, place: number, left: number, top: number): void {
  const { colours, camera } = scene;
  const own = colours.own[scene.standing[place] ?? "blocked"];
  const lit = place === scene.selected || place === scene.hovered;
  context.beginPath();
  context.roundRect(left, top, BOX.width, BOX.height, 8);
  context.fillStyle = own.fill;
  context.fill();
  context.lineWidth = lit || scene.critical.has(place) ? Math.max(3, 2 / camera.scale) : Math.max(1.2, 0.8 / camera.scale);
  context.strokeStyle = place === scene.selected ? colours.accent : own.line;
  context.setLineDash(scene.standing[place] === "blocked" ? [5, 4] : []);
  context.stroke();
  context.setLineDash([]);
  // The stripe shows the status even where there is no room for a sign.
  context.beginPath();
  context.roundRect(left, top, 26, BOX.height, [8, 0, 0, 8]);
  context.fillStyle = own.line;
  context.fill();
}

function drawWords(context: CanvasRenderingContext2D, scene: Scene, place: number, left: number, top: number): void {
  const { graph, colours } = scene;
  const standing = scene.standing[place] ?? "blocked";
  context.textBaseline = "middle";
  context.textAlign = "center";
  context.font = "700 15px system-ui, sans-serif";
  context.fillStyle = colours.panel;
  context.fillText(SIGN[standing], left + 13, top + BOX.height / 2);
  context.textAlign = "left";
  const label = titled(graph.labels[place], graph.ids[place]);
  const [first, second] = lines(context, label, BOX.width - 42);
  context.fillStyle = colours.text;
  if (second === "") {
    context.fillText(first, left + 34, top + 20);
    context.font = "12px ui-monospace, monospace";
    context.fillStyle = colours.dim;
    context.fillText(cut(context, graph.ids[place] ?? "", BOX.width - 42), left + 34, top + 40);
  } else {
    context.fillText(first, left + 34, top + 19);
    context.fillText(second, left + 34, top + 38);
  }
}

/** Truncates a text to a width, with an ellipsis. */
function cut(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return `${text.slice(0, low)}…`;
}

/** Breaks a text into at most two lines. */
function lines(context: CanvasRenderingContext2D, text: string, width: number): [string, string] {
  context.font = "600 13px system-ui, sans-serif";
  if (context.measureText(text).width <= width) return [text, ""];
  const words = text.split(" ");
  let first = "";
  while (words.length > 0 && context.measureText(first ? `${first} ${words[0]}` : (words[0] ?? "")).width <= width) {
    first = first ? `${first} ${words.shift()}` : (words.shift() ?? "");
  }
  return first === "" ? [cut(context, text, width), ""] : [first, cut(context, words.join(" "), width)];
}

function drawNewArrow(context: CanvasRenderingContext2D, scene: Scene): void {
  const { arrow, graph, colours } = scene;
  if (!arrow || !graph.x || !graph.y) return;
  context.beginPath();
  context.setLineDash([6, 4]);
  context.lineWidth = 2.5;
  context.strokeStyle = colours.accent;
  curve(context, (graph.x[arrow.from] ?? 0) + BOX.width / 2, (graph.y[arrow.from] ?? 0) + BOX.height, arrow.x, arrow.y);
  context.stroke();
  context.setLineDash([]);
}

/** Returns the box at a point of the plan. */
export function boxAt(graph: Graph, x: number, y: number): number | null {
  if (!graph.x || !graph.y) return null;
  for (let place = graph.ids.length - 1; place >= 0; place--) {
    const left = graph.x[place] ?? 0;
    const top = graph.y[place] ?? 0;
    if (x >= left && x <= left + BOX.width && y >= top && y <= top + BOX.height) return place;
  }
  return null;
}

/** Draws a small overview of the whole plan, with a frame around the visible part. */
export function drawMap(context: CanvasRenderingContext2D, scene: Scene, size: Size): void {
  const { graph, colours, camera, screen } = scene;
  context.clearRect(0, 0, size.width, size.height);
  if (!graph.x || !graph.y) return;
  const { scale, left, top } = mapFrame(graph, size);
  for (let place = 0; place < graph.ids.length; place++) {
    context.fillStyle = colours.own[scene.standing[place] ?? "blocked"].line;
    context.fillRect(left + (graph.x[place] ?? 0) * scale, top + (graph.y[place] ?? 0) * scale, Math.max(1.5, BOX.width * scale), Math.max(1.5, BOX.height * scale));
  }
  // What is beyond the plan is not on the map: the frame ends at its border.
  const within = (value: number, most: number): number => Math.min(most - 1, Math.max(1, value));
  const [x1, y1] = [within(left + camera.x * scale, size.width), within(top + camera.y * scale, size.height)];
  const x2 = within(left + (camera.x + screen.width / camera.scale) * scale, size.width);
  const y2 = within(top + (camera.y + screen.height / camera.scale) * scale, size.height);
  context.strokeStyle = colours.accent;
  context.lineWidth = 2;
  context.strokeRect(x1, y1, x2 - x1, y2 - y1);
}

/** Returns the pixels per plan unit in the overview, and where the plan begins in its middle. */
export function mapFrame(graph: Graph, size: Size): { scale: number; left: number; top: number } {
  const [width, height] = [Math.max(1, graph.width ?? 1), Math.max(1, graph.height ?? 1)];
  const air = 6;
  const scale = Math.min((size.width - 2 * air) / width, (size.height - 2 * air) / height);
  return { scale, left: (size.width - width * scale) / 2, top: (size.height - height * scale) / 2 };
}

/** Whether the whole plan is on screen, so that nobody needs the overview. */
export const isWhole = (graph: Graph, camera: Camera, screen: Size): boolean =>
  camera.x <= 0 && camera.y <= 0 && camera.x + screen.width / camera.scale >= (graph.width ?? 0) && camera.y + screen.height / camera.scale >= (graph.height ?? 0);

/** Returns the task that an arrow key selects: up and down along the edges, left and right in the same row. */
export function step(graph: Graph, neighbours: Neighbours, from: number, key: string): number | null {
  const x = graph.x;
  const y = graph.y;
  if (!x || !y) return null;
  const nearest = (among: number[]): number | null =>
    among.reduce<number | null>(
      (best, one) =>
        best === null || Math.abs((x[one] ?? 0) - (x[from] ?? 0)) < Math.abs((x[best] ?? 0) - (x[from] ?? 0)) ? one : best,
      null,
    );
  if (key === "ArrowUp") return nearest(neighbours.before[from] ?? []);
  if (key === "ArrowDown") return nearest(neighbours.after[from] ?? []);
  const right = key === "ArrowRight";
  if (!right && key !== "ArrowLeft") return null;
  const row = graph.ids.map((_, place) => place).filter((place) => y[place] === y[from] && place !== from);
  return nearest(row.filter((place) => ((x[place] ?? 0) > (x[from] ?? 0)) === right));
}
