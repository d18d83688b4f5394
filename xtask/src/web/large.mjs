// Large plans: in groups that fit the screen, and cells; and pictures of the whole.
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

/** Milliseconds from the beginning of the load until the picture is there. */
const drawn = async (page) => {
  await page.locator(".paper .box").first().waitFor();
  return page.waitForFunction(() => performance.getEntriesByName("graph drawn")[0]?.startTime).then((found) => found.jsonValue());
};

const thousand = () =>
  play("thousand", "", async (stage, browser) => {
    await stage.run("person:ada", "import", stage.write("plan.json", wide("thousand", 1_000)));
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/thousand/graph`);
    console.log(`    1,000 tasks are drawn ${Math.round(await drawn(page))} ms after the page began to load (unoptimised server)`);
    const { width, height } = await stage.api("GET", "/plans/thousand/layout?width=1440&height=800");
    // It fits the window at its full size, so that every word can be read.
    assert.ok(width <= 1440 && height <= 800, `${width} × ${height}`);
    assert.ok((await page.locator(".paper .box").count()) <= 60, "at most 60 boxes at first");
    // A hit in a folded group opens only that.
    await page.getByLabel("Find a task").fill("t777");
    await page.getByLabel("Find a task").press("Enter");
    await page.getByRole("complementary", { name: "Task t777" }).waitFor();
    await page.locator('.paper [data-task="777"]').waitFor();
    assert.equal(await page.locator('.paper [aria-expanded="true"]').count(), 1);
    for (const key of ["+", "+", "0"]) await page.keyboard.press(key);
    assert.deepEqual(browser.complaints, []);
  });

const tenThousand = () =>
  play("ten-thousand", "", async (stage, browser) => {
    await stage.run("person:ada", "import", stage.write("plan.json", wide("ten", 10_000)));
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/ten/graph`);
    console.log(`    10,000 tasks stand there in groups after ${Math.round(await drawn(page))} ms (unoptimised server)`);
    // A group of more than 200 tasks opens as cells; a cell leads to what is around its task.
    await page.locator('.paper [aria-expanded="false"]').first().click();
    const cells = page.locator("svg.cells");
    await cells.waitFor();
    await cells.focus();
    for (const key of ["ArrowRight", "ArrowRight", "Enter"]) await page.keyboard.press(key);
    await page.waitForURL(/graph\/t1\?focus=t1/);
    await page.locator('.paper [data-task="1"]').waitFor();
    await page.getByRole("button", { name: /^Focus:/ }).click();
    await page.keyboard.press("3");
    const list = page.getByRole("listbox", { name: "Tasks" });
    await list.focus();
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await page.getByRole("complementary", { name: "Task t9999" }).waitFor();
    assert.deepEqual(browser.complaints, []);
  });

const wholePicture = () =>
  play("picture", "", async (stage, browser) => {
    await stage.run("person:ada", "import", stage.write("plan.json", wide("picture", 1_000)));
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/picture/graph`);
    await drawn(page);
    const asked = await page.evaluate(() => performance.getEntriesByType("resource").find((one) => one.name.includes("/layout")).name);
    const layout = await stage.api("GET", asked.slice(asked.indexOf("/plans/")));
    // So near that most of it cannot be seen.
    for (let step = 0; step < 12; step++) await page.getByRole("button", { name: "Zoom in" }).click();
    await page.locator("summary[aria-label=Export]").click();
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: /^PNG/ }).click()]);
    assert.equal(download.suggestedFilename(), "picture.png");
    const png = readFileSync(await download.path());
    const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
    assert.ok(width <= 8_192 && height <= 8_192, `${width} × ${height}`);
    const scale = width / (layout.width + 48);
    assert.ok(Math.abs(height / (layout.height + 48) - scale) < 0.01, "it has the shape of the plan");
    // Each box is where the server placed it.
    const corners = layout.boxes.map((box) => [(box.x + 24 + box.width / 2) * scale, (box.y + 24 + 5) * scale]);
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
      [png.toString("base64"), corners],
    );
    assert.equal(missing, 0);
    assert.deepEqual(browser.complaints, []);
  });

export const large = [
  ["a plan of 1,000 tasks is drawn in groups that fit the screen", thousand],
  ["a plan of 10,000 tasks opens in cells, each of which leads to its surroundings", tenThousand],
  ["the picture of a plan shows all of it, whatever is on the screen", wholePicture],
];
