// Draws the whole picture of a plan on a canvas, to be saved as an image.

import type { Size } from "./camera";
import { cellPaths, edgePath, summary, tasksOf, worst } from "./layout";
import { SIGN, titled } from "./labels";
import type { Counts, Graph, Layout, Standing } from "./types";

/** Pixels per unit of the plan, if the limits allow. */
const PICTURE_SCALE = 2;
/** Maximum pixels of a side and of the area, which browsers can still export. */
export const PICTURE_SIDE_MAX = 8_192;
export const PICTURE_PIXELS_MAX = 32_000_000;
/** The margin around the plan. */
export const PICTURE_AIR = 24;

/** Returns the pixels per unit in a picture of the whole plan. */
export function pictureScale(plan: Size): number {
  const wide = plan.width + 2 * PICTURE_AIR;
  const high = plan.height + 2 * PICTURE_AIR;
  return Math.min(PICTURE_SCALE, PICTURE_SIDE_MAX / wide, PICTURE_SIDE_MAX / high, Math.sqrt(PICTURE_PIXELS_MAX / (wide * high)));
}

/** Draws everything, whatever is on the screen, in the colours of the page. */
export function drawWhole(element: Element, graph: Graph, layout: Layout, standing: Standing[], counts: Counts[]): HTMLCanvasElement {
  const style = getComputedStyle(element);
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const scale = pictureScale(layout);
  const canvas = document.createElement("canvas");
  canvas.width = Math.floor((layout.width + 2 * PICTURE_AIR) * scale);
  canvas.height = Math.floor((layout.height + 2 * PICTURE_AIR) * scale);
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  context.fillStyle = colour("page");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.scale(scale, scale);
  context.translate(PICTURE_AIR, PICTURE_AIR);
  const rectangle = (x: number, y: number, width: number, height: number, fill: string, line: string): void => {
    context.beginPath();
    context.roundRect(x, y, width, height, 6);
    context.fillStyle = fill;
    context.fill();
    context.strokeStyle = line;
    context.lineWidth = 1.3;
    context.stroke();
  };
  const text = (words: string, x: number, y: number, width: number, font: string, fill: string): void => {
    context.font = `${font} ${style.fontFamily}`;
    context.fillStyle = fill;
    let shown = words;
    while (shown.length > 1 && context.measureText(shown).width > width) shown = `${shown.slice(0, -2)}…`;
    context.fillText(shown, x, y);
  };
  const named = (task: number | undefined, name: string | undefined): string => (task === undefined ? (name ?? "") : titled(graph.labels[task], graph.ids[task]));

  for (const box of layout.boxes) if (box.kind === "frame") rectangle(box.x, box.y, box.width, box.height, colour("panel"), colour("line-strong"));
  context.lineWidth = 1.3;
  context.strokeStyle = colour("line-strong");
  context.fillStyle = colour("line-strong");
  for (const edge of layout.edges) {
    context.stroke(new Path2D(edgePath(edge)));
    const [x, y] = edge.points.slice(-2);
    if (x !== undefined && y !== undefined) context.fill(new Path2D(`M${x} ${y}l-7 -4v8z`));
  }
  layout.boxes.forEach((box, place) => {
    const own = counts[place];
    const status = box.kind === "outside" ? (box.status ?? "blocked") : box.kind === "task" ? (standing[box.task ?? -1] ?? "blocked") : own ? worst(own) : "blocked";
    if (box.kind !== "frame") rectangle(box.x, box.y, box.width, box.height, box.kind === "task" ? colour(`${status}-fill`) : colour("panel"), colour(status));
    text(SIGN[status], box.x + 9, box.y + 21, 20, "700 13px", colour(status));
    text(named(box.task, box.name), box.x + 27, box.y + 21, box.width - 36, "600 13px", colour("text"));
    if ((box.kind === "group" || box.kind === "outside") && own) text(box.kind === "group" ? summary(own) : (box.plan ?? box.agent ?? ""), box.x + 27, box.y + 39, box.width - 36, "11px", colour("dim"));
    if (box.kind !== "cells") return;
    context.save();
    context.translate(box.x, box.y);
    for (const [cells, path] of cellPaths(tasksOf(layout, place), box.columns ?? 1, layout.head, standing)) {
      context.fillStyle = colour(cells);
      context.fill(new Path2D(path), "evenodd");
    }
    context.restore();
  });
  return canvas;
}
