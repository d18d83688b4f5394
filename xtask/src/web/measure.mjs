// How long a browser takes to draw large plans, to move them, and for how long it answers nobody meanwhile. Prints JSON.
import { play } from "./stage.mjs";
import { wide } from "./large.mjs";

/** Milliseconds from the beginning of a page until the mark that it sets when the first picture is there. */
const marked = (page, name) =>
  page.waitForFunction((mark) => performance.getEntriesByName(mark)[0]?.startTime, name).then((found) => found.jsonValue());

/** The longest time for which the page answered nobody, up to now. */
const blocked = (page) => page.evaluate(() => Math.max(0, ...(window.longTasks ?? [])));

/** Milliseconds between pictures while the graph is pulled to and fro. */
async function moved(page) {
  const { x, y, width, height } = await page.locator(".paper").boundingBox();
  const [left, top] = [x + width / 2, y + height / 2];
  await page.evaluate(() => {
    window.frames = [];
    const next = (at) => {
      window.frames.push(at);
      if (!window.framesOver) requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  });
  await page.mouse.move(left, top);
  await page.mouse.down();
  for (let step = 0; step < 90; step++) await page.mouse.move(left + 200 * Math.sin(step / 10), top + 120 * Math.cos(step / 10));
  await page.mouse.up();
  const frames = await page.evaluate(() => {
    window.framesOver = true;
    return window.frames;
  });
  return frames.slice(1).map((at, place) => at - frames[place]).sort((one, other) => one - other);
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
  await page.goto(`${stage.site}/plans/thousand/graph`);
  figures.thousand_drawn_ms = await marked(page, "graph drawn");
  figures.thousand_blocked_ms = await blocked(page);
  const frames = await moved(page);
  figures.thousand_frame_ms = frames[Math.floor(frames.length / 2)];
  figures.thousand_frame_max_ms = frames.at(-1);

  await page.goto(`${stage.site}/plans/ten/graph`);
  figures.ten_thousand_shown_ms = await marked(page, "graph drawn");
  const begin = Date.now();
  await page.locator('.paper [aria-expanded="false"]').first().click();
  await page.locator('.paper [aria-expanded="true"]').waitFor();
  figures.ten_thousand_level_ms = Date.now() - begin;
  figures.ten_thousand_blocked_ms = await blocked(page);
});
console.log(JSON.stringify(figures));
process.exit(0);
