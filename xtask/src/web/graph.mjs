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

const pressing = () =>
  play("graph-press", "", async (stage, browser) => {
    await stage.run("person:ada", "import", stage.write("ledger.json", ledger));
    await stage.run("person:ada", "import", stage.write("plan.json", release("rel")));
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/rel/graph`);
    const pressed = box(page, await place(stage, "rel", "build-2"));
    await pressed.waitFor();
    const before = await pressed.boundingBox();
    await pressed.click();
    await page.getByRole("complementary", { name: "Task build-2" }).getByText("The build 2").waitFor();
    // Its panel takes room, and what is above the picture another line.
    await until("the box is where it was", async () => {
      const after = await pressed.boundingBox();
      return Math.abs(after.x - before.x) < 1 && Math.abs(after.y - before.y) < 1;
    });
    // What the panel would cover comes into view.
    const far = box(page, await place(stage, "rel", "announce"));
    await far.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("complementary", { name: "Task announce" }).waitFor();
    const room = await page.locator(".paper").boundingBox();
    await until("the box is on screen", async () => {
      const { x, width } = await far.boundingBox();
      return x >= room.x && x + width <= room.x + room.width;
    });
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

/** A point in the middle of the line between two tasks, on the screen. */
async function onLine(stage, page, plan, from, to) {
  const asked = await page.evaluate(() => performance.getEntriesByType("resource").findLast((one) => one.name.includes("/layout")).name);
  const layout = await stage.api("GET", asked.slice(asked.indexOf("/plans/")));
  const [start, end] = [await place(stage, plan, from), await place(stage, plan, to)];
  const { points } = layout.edges.find((edge) => layout.boxes[edge.from].task === start && layout.boxes[edge.to].task === end);
  // Near its end no other edge shares its line, unless it leads to the same task.
  const [x, y] = [points.at(-2) - 12, points.at(-1)];
  return page.locator(".paper .world").evaluate((world, at) => {
    const matrix = new DOMMatrix(getComputedStyle(world).transform);
    const paper = world.parentElement.getBoundingClientRect();
    const point = matrix.transformPoint(new DOMPoint(at[0], at[1]));
    return [paper.left + point.x, paper.top + point.y];
  }, [x, y]);
}

const removal = () =>
  play("remove-edge", "", async (stage, browser) => {
    const tasks = [{ id: "a", description: "First" }, { id: "b", description: "Second", depends_on: ["a"] }, { id: "c", description: "Third", depends_on: ["a", "b"] }];
    await stage.run("person:ada", "import", stage.write("plan.json", { format: "waypost/1", id: "lines", title: "Lines", tasks }));
    const before = async (task) => ((await stage.api("GET", `/plans/lines/tasks/${task}`)).depends_on ?? []).join();
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/lines/graph`);
    await box(page, await place(stage, "lines", "c")).waitFor();
    const panel = page.getByRole("group", { name: "Dependency" });
    const removeAB = panel.getByRole("button", { name: "Remove: Second depends on First" });

    // A click on a line shows what it stands for, and Escape leaves it as it is.
    await page.mouse.click(...(await onLine(stage, page, "lines", "a", "b")));
    await removeAB.waitFor();
    await until("the button has the focus", () => removeAB.evaluate((element) => element === document.activeElement));
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run(document, { runOnly: { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }, resultTypes: ["violations"] }));
    assert.deepEqual(found.violations.map((one) => `${one.id}: ${one.nodes[0].html}`), []);
    await page.keyboard.press("Escape");
    await panel.waitFor({ state: "detached" });
    assert.equal(await before("b"), "a");
    await page.mouse.click(...(await onLine(stage, page, "lines", "a", "b")));
    await removeAB.click();
    await page.getByText("b no longer depends on a").waitFor();
    assert.equal(await before("b"), "");
    // The message offers to undo it.
    await page.getByRole("button", { name: "Undo" }).click();
    await until("the dependency is back", async () => (await before("b")) === "a");

    // With the keyboard: the lines of a box one after the other.
    await page.goto(`${stage.site}/plans/lines/graph/c`);
    await box(page, await place(stage, "lines", "c")).focus();
    await page.keyboard.press("Shift+ArrowLeft");
    await panel.getByText("Third depends on").waitFor();
    const first = await panel.textContent();
    await page.keyboard.press("Shift+ArrowLeft");
    await until("it is the other line", async () => (await panel.textContent()) !== first);
    const [, on] = /Third depends on (First|Second)/.exec((await panel.textContent()).replace(/\s+/g, " "));
    await page.keyboard.press("Delete");
    await page.getByText(`c no longer depends on ${on === "First" ? "a" : "b"}`).waitFor();
    assert.equal(await before("c"), on === "First" ? "b" : "a");
    await until("the focus is at the box", () => page.evaluate(() => document.activeElement?.closest("[data-box]") !== null));
    await page.keyboard.press("Control+z");
    await until("both are back", async () => (await before("c")) === "a,b");
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
  ["a click on a box leaves it under the pointer", pressing],
  ["the graph works with the keyboard alone", keyboard],
  ["a click on a line removes a dependency, with the keyboard too, and undo brings it back", removal],
  ["a change of status moves no box", stillness],
];
