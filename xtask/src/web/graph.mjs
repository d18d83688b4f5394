// The graph: groups that fold, search, focus, keys, and what stays where it is.
import assert from "node:assert/strict";

import { axe, play, until } from "./stage.mjs";

/** A release: three parents with eight tasks each, then single steps. */
function release(id) {
  const tasks = [{ id: "prepare", description: "Prepare" }];
  const group = (name, before) => {
    tasks.push({ id: name, description: `All ${name}` });
    for (let step = 1; step <= 8; step++) tasks.push({ id: `${name}-${step}`, description: `The ${name} ${step}`, parent: name, depends_on: [before(step)] });
  };
  group("build", () => "prepare");
  group("test", (step) => `build-${step}`);
  group("image", (step) => `test-${step}`);
  tasks.push({ id: "deploy", description: "Deploy to staging", depends_on: ["image", { plan: "ledger", task: "backfill" }] });
  tasks.push({ id: "announce", description: "Announce", depends_on: ["deploy"] });
  return { format: "waypost/1", id, title: "A release", tasks };
}

const ledger = { format: "waypost/1", id: "ledger", title: "Ledger schema", tasks: [{ id: "backfill", description: "Backfill" }] };

/** A box by its task or the key of its group. */
const box = (page, id) => page.locator(`.paper [data-task="${id}"]`).first();
const place = async (stage, plan, id) => (await stage.api("GET", `/plans/${plan}/graph`)).ids.indexOf(id);
const opened = (page) => page.locator('.paper [aria-expanded="true"]').count();

const folding = () =>
  play("folding", "", async (stage, browser) => {
    await stage.run("person:ada", "import", stage.write("ledger.json", ledger));
    await stage.run("person:ada", "import", stage.write("plan.json", release("rel")));
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/rel/graph`);
    // It fits, so that everything is open; the parents are frames.
    await box(page, await place(stage, "rel", "test-3")).waitFor();
    assert.equal(await opened(page), 3);
    await page.getByRole("button", { name: "Fold All test" }).click();
    await page.getByRole("button", { name: "All test" }).and(page.locator('[aria-expanded="false"]')).waitFor();
    assert.equal(await opened(page), 2);
    assert.match(decodeURIComponent(page.url()), /open=in\+build,in\+image/);
    // The address leads there again.
    await page.reload();
    await page.locator('.paper [aria-expanded="false"]').waitFor();
    assert.equal(await opened(page), 2);
    // A search opens only the way to its hit.
    await page.getByLabel("Find a task").fill("test 5");
    await page.getByLabel("Find a task").press("Enter");
    await page.waitForURL(/graph\/test-5/);
    await box(page, await place(stage, "rel", "test-5")).waitFor();
    // What another plan has to do first is drawn, with its state, and leads there.
    const other = page.getByRole("link", { name: /backfill/ });
    await other.waitFor();
    assert.match(await other.textContent(), /Ledger schema/);
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run(document, { runOnly: { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }, resultTypes: ["violations"] }));
    assert.deepEqual(found.violations.map((one) => `${one.id}: ${one.nodes[0].html}`), []);
    await page.keyboard.press("Escape");
    await other.click();
    await page.waitForURL(/plans\/ledger\/graph\/backfill/);
    assert.deepEqual(browser.complaints, []);
  });

const keyboard = () =>
  play("graph-keys", "", async (stage, browser) => {
    await stage.run("person:ada", "import", stage.write("ledger.json", ledger));
    await stage.run("person:ada", "import", stage.write("plan.json", release("rel")));
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/rel/graph/test-2`);
    await box(page, await place(stage, "rel", "test-2")).waitFor();
    const boxes = () => page.locator(".paper .box").count();
    const all = await boxes();
    await page.getByRole("complementary", { name: "Task test-2" }).waitFor();
    // F shows what is around it, D what depends on it, U what it depends on; the same key again shows everything.
    await page.keyboard.press("f");
    await page.waitForURL(/focus=test-2/);
    await until("fewer boxes", async () => (await boxes()) < all);
    await page.keyboard.press("u");
    await page.waitForURL(/direction=up/);
    await page.getByRole("button", { name: /Upstream of/ }).waitFor();
    await page.keyboard.press("u");
    await until("all boxes again", async () => (await boxes()) === all);
    // Arrow keys follow the edges, Space folds the group around.
    await box(page, await place(stage, "rel", "test-2")).focus();
    await page.keyboard.press("ArrowRight");
    await page.waitForURL(/graph\/image-2/);
    await page.keyboard.press("Space");
    await until("the group is folded", async () => (await page.locator('.paper [aria-expanded="false"]').count()) === 1);
    await until("it has the focus", () => page.evaluate(() => document.activeElement?.getAttribute("aria-expanded") === "false"));
    await page.keyboard.press("Space");
    await until("the group is open", async () => (await page.locator('.paper [aria-expanded="false"]').count()) === 0);
    assert.deepEqual(browser.complaints, []);
  });

const stillness = () =>
  play("graph-still", "", async (stage, browser) => {
    await stage.run("person:ada", "import", stage.write("ledger.json", ledger));
    await stage.run("person:ada", "import", stage.write("plan.json", release("rel")));
    await stage.api("POST", "/plans/rel/actions/start", {});
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/rel/graph`);
    const own = box(page, await place(stage, "rel", "build-4"));
    await own.waitFor();
    const before = await own.boundingBox();
    const agent = await stage.agent("builder");
    await agent.call("task_next", { plan: "rel", task: "prepare" });
    await page.getByRole("button", { name: /running 1/ }).waitFor();
    assert.deepEqual(await own.boundingBox(), before, "a status moves nothing");
    // The chip of a status leads to the task.
    await page.getByRole("button", { name: /running 1/ }).click();
    await page.waitForURL(/graph\/prepare\?status=running/);
    assert.deepEqual(browser.complaints, []);
  });

const timeline = () =>
  play("timeline", "", async (stage, browser) => {
    const tasks = [{ id: "first", description: "First" }, { id: "second", description: "Second", depends_on: ["first"] }, { id: "asks", description: "Asks" }];
    await stage.run("person:ada", "import", stage.write("plan.json", { format: "waypost/1", id: "clock", title: "Clock", tasks }));
    await stage.api("POST", "/plans/clock/actions/start", {});
    const [one, two] = [await stage.agent("one"), await stage.agent("two")];
    await one.call("task_next", { plan: "clock", task: "first" });
    await one.call("task_report", { plan: "clock", task: "first", status: "done" });
    await one.call("task_next", { plan: "clock", task: "second" });
    await two.call("task_next", { plan: "clock", task: "asks" });
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/clock/timeline`);
    const region = page.getByRole("region", { name: "When each task ran" });
    await region.getByRole("rowheader", { name: /agent:one/ }).waitFor();
    await region.getByRole("rowheader", { name: /agent:two works on 1 task/ }).waitFor();
    // A bar says when it was, and leads to its task; the address keeps the lanes.
    await page.getByRole("button", { name: "By task" }).focus();
    await page.keyboard.press("Enter");
    await page.waitForURL(/lanes=task/);
    await region.getByRole("rowheader", { name: "Second" }).waitFor();
    await region.getByRole("button", { name: /Second, attempt 1, running/ }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("complementary", { name: "Task second" }).waitFor();
    const chain = page.getByRole("region", { name: "Critical path" });
    await chain.getByRole("link", { name: "First" }).waitFor();
    await chain.getByText("1 of 2 done").waitFor();
    const wide = await region.evaluate((element) => element.scrollWidth);
    await page.getByRole("button", { name: "Zoom in" }).click();
    await until("it is wider", () => region.evaluate((element, before) => element.scrollWidth > before * 1.4, wide));
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run(document, { runOnly: { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }, resultTypes: ["violations"] }));
    assert.deepEqual(found.violations.map((one) => `${one.id}: ${one.nodes[0].html}`), []);
    assert.deepEqual(browser.complaints, []);
  });

export const graph = [
  ["the timeline shows who did what when, in lanes by worker or task", timeline],
  ["groups fold, the address keeps what is open, a search opens the way to its hit", folding],
  ["the graph works with the keyboard alone", keyboard],
  ["a change of status moves no box", stillness],
];
