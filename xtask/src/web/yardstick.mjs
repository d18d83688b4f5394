// The layout of the graph beside that of elkjs, for the same boxes and edges: time, size, crossings, bends. Prints a table. Not a part of
// the tests: elkjs is not installed for them. `node yardstick.mjs PACKAGES CHROMIUM WAYPOST SCRATCH FOLDER-WITH-ELKJS`
import { createRequire } from "node:module";
import { join } from "node:path";

import { wide } from "./large.mjs";
import { play, rest } from "./stage.mjs";

const Elk = createRequire(join(rest[0], "from-here.js"))("elkjs/lib/elk.bundled.js");

/** Plans of several shapes. The numbers are not random, so that each run measures the same. */
function plans() {
  const task = (id, depends_on, parent) => ({ id, description: `Task ${id}`, depends_on, ...(parent ? { parent } : {}) });
  const several = (count, make) => Array.from({ length: count }, (_, at) => make(at));
  const grouped = ["build", "test", "image"].flatMap((name, group, names) => [task(name, []), ...several(8, (at) => task(`${name}-${at}`, group === 0 ? [] : [`${names[group - 1]}-${at}`, `${names[group - 1]}-${(at + 3) % 8}`], name))]);
  return [
    ["chain-30", several(30, (at) => task(`t${at}`, at ? [`t${at - 1}`] : []))],
    ["fan-40", [task("first", []), ...several(40, (at) => task(`t${at}`, ["first"])), task("last", several(40, (at) => `t${at}`))]],
    ["diamonds-40", several(40, (at) => task(`t${at}`, at === 0 ? [] : at % 3 === 0 ? [`t${at - 1}`, `t${at - 2}`] : [`t${at - (at % 3)}`]))],
    ["spread-60", several(60, (at) => task(`t${at}`, [7, 11].map((step) => at - step).filter((on) => on >= 0).map((on) => `t${on}`)))],
    ["groups-27", grouped],
    ["wide-200", wide("x", 200).tasks],
    ["wide-1000 in groups", wide("x", 1_000).tasks],
  ];
}

const cross = ([a, b, c, d], [e, f, g, h]) => {
  const side = (x, y) => Math.sign((c - a) * (y - b) - (d - b) * (x - a));
  const other = (x, y) => Math.sign((g - e) * (y - f) - (h - f) * (x - e));
  return side(e, f) * side(g, h) < 0 && other(a, b) * other(c, d) < 0;
};
const segments = (points) => Array.from({ length: points.length / 2 - 1 }, (_, at) => points.slice(2 * at, 2 * at + 4));

/** Crossings of edges that share no end, bends, and edges through a box that is neither of their ends. */
function judged(edges, boxes, { width, height }) {
  let crossings = 0;
  const all = edges.map((edge) => ({ ...edge, parts: segments(edge.points) }));
  all.forEach((one, at) => {
    for (const other of all.slice(at + 1)) {
      if (one.from === other.from || one.to === other.to || one.from === other.to || one.to === other.from) continue;
      for (const a of one.parts) for (const b of other.parts) crossings += cross(a, b) ? 1 : 0;
    }
  });
  const bends = edges.reduce((sum, edge) => sum + Math.max(0, edge.points.length / 2 - 2), 0);
  const inside = (box, x, y) => x > box.x + 2 && x < box.x + box.width - 2 && y > box.y + 2 && y < box.y + box.height - 2;
  const through = all.filter((edge) => boxes.some((box, at) => box.leaf && at !== edge.from && at !== edge.to && edge.parts.some(([a, b, c, d]) => Array.from({ length: 21 }, (_, step) => inside(box, a + ((c - a) * step) / 20, b + ((d - b) * step) / 20)).includes(true)))).length;
  return { crossings, bends, through, size: `${Math.round(width)} × ${Math.round(height)}`, ratio: (width / height).toFixed(2) };
}

async function fastest(times, work) {
  let best = Infinity;
  let found;
  for (let turn = 0; turn < times; turn++) {
    const from = performance.now();
    found = await work();
    best = Math.min(best, performance.now() - from);
  }
  return [best, found];
}

/** The same boxes and edges, laid out by elkjs. */
async function byElk(layout) {
  const isOuter = (at) => layout.boxes[at].kind === "frame" || layout.boxes[at].kind === "cells";
  const nodes = layout.boxes.map((box, at) => ({ id: `${at}`, ...(isOuter(at) ? { layoutOptions: { "elk.padding": "[top=40,left=12,bottom=12,right=12]" }, children: [] } : { width: box.width, height: box.height }) }));
  const top = [];
  layout.boxes.forEach((box, at) => (box.outer === undefined ? top : nodes[box.outer].children).push(nodes[at]));
  const graph = {
    id: "root",
    layoutOptions: { "elk.algorithm": "layered", "elk.direction": "RIGHT", "elk.edgeRouting": "ORTHOGONAL", "elk.hierarchyHandling": "INCLUDE_CHILDREN", "elk.aspectRatio": "1.8", "elk.layered.mergeEdges": "true" },
    children: top,
    edges: layout.edges.map((edge, at) => ({ id: `e${at}`, sources: [`${edge.from}`], targets: [`${edge.to}`] })),
  };
  const [time, found] = await fastest(2, () => new Elk().layout(structuredClone(graph)));
  const boxes = [];
  const places = new Map([["root", [0, 0]]]);
  const walk = (node, x, y) => {
    for (const child of node.children ?? []) {
      const [left, above] = [x + child.x, y + child.y];
      places.set(child.id, [left, above]);
      boxes[Number(child.id)] = { x: left, y: above, width: child.width, height: child.height, leaf: !child.children };
      walk(child, left, above);
    }
  };
  walk(found, 0, 0);
  const edges = found.edges.map((edge, at) => {
    const [x, y] = places.get(edge.container ?? "root") ?? [0, 0];
    const points = (edge.sections ?? []).flatMap((part) => [part.startPoint, ...(part.bendPoints ?? []), part.endPoint]).flatMap((point) => [point.x + x, point.y + y]);
    return { ...layout.edges[at], points };
  });
  return { time, ...judged(edges, boxes, found) };
}

await play("yardstick", "", async (stage) => {
  const rows = [];
  for (const [at, [name, tasks]] of plans().entries()) {
    const id = `y${at}`;
    await stage.run("person:ada", "import", stage.write(`${id}.json`, { format: "waypost/1", id, title: name, tasks }));
    // All of a small plan is open; a large one has its groups, folded.
    const asked = `/plans/${id}/layout?width=1440&height=800${tasks.length <= 200 ? "&boxes=600" : "&open=[]"}`;
    const [graph] = await fastest(5, () => stage.api("GET", `/plans/${id}`));
    const [time, layout] = await fastest(5, () => stage.api("GET", asked));
    const boxes = layout.boxes.map((box) => ({ ...box, leaf: box.kind !== "frame" && box.kind !== "cells" }));
    rows.push({ plan: name, boxes: boxes.length, edges: layout.edges.length, by: "waypost", ms: Math.max(0, time - graph).toFixed(1), ...judged(layout.edges, boxes, layout) });
    const { time: ms, ...elk } = await byElk(layout);
    rows.push({ plan: name, boxes: boxes.length, edges: layout.edges.length, by: "elkjs", ms: ms.toFixed(1), ...elk });
  }
  console.table(rows);
});
process.exit(0);
