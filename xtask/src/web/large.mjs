// Large plans: drawn whole up to some thousands of tasks, level by level beyond.
import assert from "node:assert/strict";

import { play } from "./stage.mjs";

/** Tasks in levels of forty; each depends on two of the level above. */
function wide(id, count) {
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

export const large = [
  ["a plan of 1,000 tasks is drawn whole", thousand],
  ["a plan of 10,000 tasks is drawn level by level", tenThousand],
];
