// Large plans: drawn whole up to some thousands of tasks, level by level beyond; and pictures of the whole.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { play } from "./stage.mjs";

/** Tasks in levels of forty; each depends on two of the level above. */
export function wide(id, count) {
  const tasks = Array.from({ length: count }, (_, place) => {
    const depends_on = place < 40 ? [] : [`t${place - 40}`, `t${place - 40 + (place % 40 === 39 ? -1 : 1)}`];
    return { id: `t${place}`, description: `Step ${place} of many`, depends_on };
  });
  return { format: "waypost/1", id, title: `${count} tasks`, tasks };
}

/** Milliseconds from the beginning of the load to the first picture of the graph in which something is drawn. */
const drawn = (page) =>
  page.waitForFunction(() => {
    const canvas = document.querySelector(".hand canvas");
    if (!canvas || canvas.width < 400) return false;
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return pixels.some((value) => value !== 0) && Math.round(performance.now());
  });

const thousand = () =>
  play("thousand", "", async (stage, browser) => {
    await stage.run("person:ada", "import", stage.write("plan.json", wide("thousand", 1_000)));
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/thousand/graph`);
    const took = await (await drawn(page)).jsonValue();
    console.log(`    1,000 tasks are drawn ${took} ms after the page began to load (unoptimised server)`);
    await page.getByRole("application").focus();
    for (const key of ["+", "+", "0", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
    await page.getByRole("complementary", { name: "Task t40" }).waitFor();
    assert.deepEqual(browser.complaints, []);
  });

const tenThousand = () =>
  play("ten-thousand", "", async (stage, browser) => {
    await stage.run("person:ada", "import", stage.write("plan.json", wide("ten", 10_000)));
    const page = await browser.signIn(stage);
    const begin = Date.now();
    await page.goto(`${stage.site}/plans/ten/graph`);
    await page.getByText("This plan has 10,000 tasks; they are drawn level by level.").waitFor();
    console.log(`    10,000 tasks stand there by levels after ${Date.now() - begin} ms (unoptimised server)`);
    await page.locator(".groups button").first().click();
    await drawn(page);
    await page.getByRole("button", { name: "← All levels" }).click();
    await page.keyboard.press("3");
    const list = page.getByRole("listbox", { name: "Tasks" });
    await list.focus();
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await page.getByRole("complementary", { name: "Task t9999" }).waitFor();
    assert.deepEqual(browser.complaints, []);
  });

const wideLevel = () =>
  play("wide-level", "", async (stage, browser) => {
    const tasks = Array.from({ length: 2_600 }, (_, place) => ({ id: `t${place}`, description: `Beside ${place}` }));
    tasks.push({ id: "end", description: "The end", depends_on: ["t0"] });
    await stage.run("person:ada", "import", stage.write("plan.json", { format: "waypost/1", id: "wide", title: "Wide", tasks }));
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/wide/graph`);
    await page.getByRole("button", { name: "Level 1, tasks 2501–2600" }).click();
    await page.waitForURL(/levels=0-0\.5/);
    await drawn(page);
    await page.getByRole("application").focus();
    await page.keyboard.press("ArrowDown");
    await page.getByRole("complementary", { name: "Task t2500" }).waitFor();
    // The address leads there again.
    await page.reload();
    await page.getByRole("complementary", { name: "Task t2500" }).waitFor();
    await drawn(page);
    await page.getByRole("button", { name: "← All levels" }).click();
    await page.getByRole("button", { name: "Level 2" }).waitFor();
    assert.deepEqual(browser.complaints, []);
  });

const wholePicture = () =>
  play("picture", "", async (stage, browser) => {
    await stage.run("person:ada", "import", stage.write("plan.json", wide("picture", 200)));
    const graph = await stage.api("GET", "/plans/picture/graph");
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/picture/graph`);
    await drawn(page);
    // So near that most of it cannot be seen.
    await page.getByRole("application").focus();
    for (let step = 0; step < 12; step++) await page.keyboard.press("+");
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "PNG" }).click()]);
    assert.equal(download.suggestedFilename(), "picture.png");
    const png = readFileSync(await download.path());
    const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
    assert.ok(width <= 8_192 && height <= 8_192, `${width} × ${height}`);
    const scale = width / (graph.width + 48);
    assert.ok(Math.abs(height / (graph.height + 48) - scale) < 0.01, "it has the shape of the plan");
    // Each task has its stripe where the server placed it.
    const stripes = graph.ids.map((_, place) => [(graph.x[place] + 24 + 13) * scale, (graph.y[place] + 24 + 6) * scale]);
    const missing = await page.evaluate(
      async ([bytes, places]) => {
        const raw = Uint8Array.from(atob(bytes), (sign) => sign.charCodeAt(0));
        const image = await createImageBitmap(new Blob([raw], { type: "image/png" }));
        const canvas = new OffscreenCanvas(image.width, image.height);
        const context = canvas.getContext("2d");
        context.drawImage(image, 0, 0);
        const at = (x, y) => context.getImageData(Math.round(x), Math.round(y), 1, 1).data.join();
        const empty = at(1, 1);
        return places.filter(([x, y]) => at(x, y) === empty).length;
      },
      [png.toString("base64"), stripes],
    );
    assert.equal(missing, 0);
    assert.deepEqual(browser.complaints, []);
  });

export const large = [
  ["a plan of 1,000 tasks is drawn whole", thousand],
  ["a plan of 10,000 tasks is drawn level by level", tenThousand],
  ["a level with more tasks than can be drawn opens in parts, each with an address", wideLevel],
  ["the picture of a plan shows all of it, whatever is on the screen", wholePicture],
];
