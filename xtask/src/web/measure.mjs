// How long a browser takes to draw large plans, to move them, and for how long it answers nobody meanwhile. Prints JSON.
import { createServer, request as callServer } from "node:http";

import { play, rest } from "./stage.mjs";
import { wide } from "./large.mjs";

/** Events a second that a page is sent, and for how long, in milliseconds. */
const FLOOD = 10_000;
const FLOOD_MS = 5_000;
/** How often each figure is taken; the middle one counts. */
const TURNS = Number(rest[0] ?? 3);
const middle = (values) => [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)];

/** Milliseconds from the beginning of a page until the mark that it sets when the first picture is there. */
const marked = (page, name) =>
  page.waitForFunction((mark) => performance.getEntriesByName(mark)[0]?.startTime, name).then((found) => found.jsonValue());

/** The longest time for which the page answered nobody, up to now. */
const blocked = (page) => page.evaluate(() => Math.max(0, ...(window.longTasks ?? [])));

/** What the page spent on script, styles and layout so far, in milliseconds. */
async function spent(session) {
  const { metrics } = await session.send("Performance.getMetrics");
  const of = (name) => metrics.find((one) => one.name === name).value * 1_000;
  return of("ScriptDuration") + of("LayoutDuration") + of("RecalcStyleDuration");
}

/** Milliseconds of script, styles and layout for each picture while `work` moves the graph, and between two pictures. */
async function moved(page, session, work) {
  await page.evaluate(() => {
    window.framesOver = false;
    window.frames = [];
    const next = (at) => {
      window.frames.push(at);
      if (!window.framesOver) requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  });
  const before = await spent(session);
  await work();
  const after = await spent(session);
  const frames = await page.evaluate(() => {
    window.framesOver = true;
    return window.frames;
  });
  const gaps = frames.slice(1).map((at, place) => at - frames[place]).sort((one, other) => one - other);
  return { work: (after - before) / Math.max(1, gaps.length), middle: gaps[Math.floor(gaps.length / 2)], worst: gaps.at(-1) };
}

/** A server before the server, which answers the stream of events with as many as it can up to 10,000 a second. */
async function flooding(stage, plan, tasks) {
  let sent = 0;
  const proxy = createServer((request, answer) => {
    const url = new URL(request.url, stage.site);
    if (url.pathname === "/api/v1/events" && (request.headers.accept ?? "").includes("event-stream")) {
      answer.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
      const begin = Date.now();
      const timer = setInterval(() => {
        const due = Math.floor(((Date.now() - begin) / 1_000) * FLOOD);
        let text = "";
        for (; sent < due; sent++) {
          const kind = ["task_started", "task_done", "task_failed"][sent % 3];
          text += `event: ${kind}\nid: ${sent + 1}\ndata: ${JSON.stringify({ sequence: sent + 1, index: 0, at: new Date().toISOString(), actor: "worker:mill:1", plan, version: 1_000_000 + sent, kind, task: `t${sent % tasks}`, event: {} })}\n\n`;
        }
        answer.write(text);
      }, 20);
      answer.once("close", () => clearInterval(timer));
      return;
    }
    const headers = { ...request.headers, host: url.host };
    if (headers.origin) headers.origin = stage.site;
    delete headers["accept-encoding"];
    const forward = callServer({ host: url.hostname, port: url.port, path: request.url, method: request.method, headers }, (found) => {
      answer.writeHead(found.statusCode, found.headers);
      found.pipe(answer);
    });
    forward.once("error", () => answer.destroy());
    request.pipe(forward);
  });
  await new Promise((go) => proxy.listen(0, "127.0.0.1", go));
  return { site: `http://127.0.0.1:${proxy.address().port}`, sent: () => sent, end: () => proxy.close() };
}

const figures = {};
await play("measure", "", async (stage, browser) => {
  for (const [id, count] of [["thousand", 1_000], ["ten", 10_000]]) {
    await stage.run("person:ada", "import", stage.write(`${id}.json`, wide(id, count)));
  }
  await browser.context.addInitScript(() => {
    window.longTasks = [];
    new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask", buffered: true });
  });
  const page = await browser.signIn(stage);
  // Once ahead: what is measured is the page, not the first start of a browser and the first look at a plan.
  await page.goto(`${stage.site}/plans/thousand/graph`);
  await marked(page, "graph drawn");
  const session = await browser.context.newCDPSession(page);
  await session.send("Performance.enable");
  const all = {};
  const note = (name, value) => (all[name] ??= []).push(Math.round(value * 10) / 10);
  for (let turn = 0; turn < TURNS; turn++) {
    await page.goto(`${stage.site}/plans/thousand/graph`);
    note("thousand_drawn_ms", await marked(page, "graph drawn"));
    note("thousand_blocked_ms", await blocked(page));
    const { x, y, width, height } = await page.locator(".paper").boundingBox();
    const [left, top] = [x + width / 2, y + height / 2];
    const pan = await moved(page, session, async () => {
      await page.mouse.move(left, top);
      await page.mouse.down();
      for (let step = 0; step < 90; step++) await page.mouse.move(left + 200 * Math.sin(step / 10), top + 120 * Math.cos(step / 10));
      await page.mouse.up();
    });
    note("thousand_frame_ms", pan.middle);
    note("thousand_frame_max_ms", pan.worst);
    note("thousand_pan_work_ms", pan.work);
    const zoom = await moved(page, session, async () => {
      await page.mouse.move(left, top);
      for (let step = 0; step < 60; step++) await page.mouse.wheel(0, step % 20 < 10 ? -120 : 120);
    });
    note("thousand_zoom_work_ms", zoom.work);

    await page.goto(`${stage.site}/plans/ten/graph`);
    note("ten_thousand_shown_ms", await marked(page, "graph drawn"));
    const begin = Date.now();
    await page.locator('.paper [aria-expanded="false"]').first().click();
    await page.locator('.paper [aria-expanded="true"]').waitFor();
    note("ten_thousand_level_ms", Date.now() - begin);
    note("ten_thousand_blocked_ms", await blocked(page));
  }

  // A page that hears 10,000 events a second still answers.
  const flood = await flooding(stage, "thousand", 1_000);
  await stage.crash();
  await stage.serve();
  const busy = await browser.context.newPage();
  await busy.goto(`${flood.site}/${new URL(stage.takeLink()).hash}`);
  await busy.getByRole("heading", { name: "Plans" }).waitFor();
  await busy.goto(`${flood.site}/plans/thousand/graph`);
  await marked(busy, "graph drawn");
  // The page takes them in: tasks have failed.
  await busy.getByRole("button", { name: /^failed [\d,]+/ }).waitFor();
  await busy.evaluate(() => void (window.longTasks = []));
  const [heard, from] = [flood.sent(), Date.now()];
  while (Date.now() - from < FLOOD_MS) {
    const pressed = Date.now();
    await busy.getByRole("button", { name: "Zoom in" }).click();
    await busy.evaluate(() => new Promise((go) => requestAnimationFrame(go)));
    note("flood_answer_ms", Date.now() - pressed);
  }
  figures.flood_events_per_second = Math.round(((flood.sent() - heard) / (Date.now() - from)) * 1_000);
  figures.flood_blocked_ms = await blocked(busy);
  figures.flood_answer_max_ms = Math.max(...all.flood_answer_ms);
  await busy.close();
  flood.end();
  for (const [name, values] of Object.entries(all)) figures[name] = middle(values);
  console.log(JSON.stringify({ turns: all }));
});
console.log(JSON.stringify(figures));
process.exit(0);
