// Nothing is approved unseen, and nothing moves under the pointer.
import assert from "node:assert/strict";

import { play, scrollThrough, until } from "./stage.mjs";

const CONFIGURATION = `
[executors.steps]
kind = "process"
command = ["sh", "steps.sh"]
`;
const TASKS = 90;

const many = (count) => Array.from({ length: count }, (_, place) => ({ id: `t${place}`, description: `Step ${place}`, work: { executor: "steps", inputs: { part: `part ${place}` } } }));

/** Gives the page time for what must not happen: to notice what is on screen, twice. */
const settle = (page) => page.waitForTimeout(500);

const unseen = () =>
  play("unseen", CONFIGURATION, async (stage, browser) => {
    stage.write("steps.sh", "cat > /dev/null");
    await stage.run("agent:planner", "import", stage.write("plan.json", { format: "waypost/1", id: "many", title: "Many", tasks: many(TASKS) }));
    await stage.api("POST", "/plans/many/actions/request-approval", {});
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/many/approval`);
    const approve = page.getByRole("button", { name: /^Approve version/ });
    await approve.waitFor();
    const stillOff = async (after) => {
      await settle(page);
      assert.equal(await approve.isDisabled(), true, `Approve is enabled after ${after}`);
    };
    await stillOff("opening the page");
    // A filter shows less than the whole, down to nothing.
    const search = page.getByLabel("Find a command, input or task");
    for (const text of ["no such command", `part ${TASKS - 1}`, "steps.sh"]) {
      await search.fill(text);
      await stillOff(`searching for ${text}`);
    }
    await search.fill("");
    await stillOff("clearing the search");
    // A jump to the end leaves out the middle, by key or by focus. The list has the keys when the page opens.
    await page.reload();
    const list = page.getByRole("region", { name: "What is to be approved" });
    await until("the list has the focus", () => list.evaluate((element) => element === document.activeElement));
    await page.keyboard.press("End");
    await until("the list is at its end", () => list.evaluate((element) => element.scrollTop > 0 && element.scrollTop + element.clientHeight > element.scrollHeight - 2));
    await stillOff("a jump to the end");
    await page.keyboard.press("Home");
    // Long enough for what stands at the top, the plan's title, to count as read.
    await stillOff("a jump back to the top");
    const tick = page.getByRole("checkbox", { name: /by their pattern/ });
    await tick.focus();
    await stillOff("focusing the tick");
    assert.equal(await tick.evaluate((element) => element === document.activeElement), true);
    assert.equal(await page.evaluate(() => document.scrollingElement.scrollTop + document.getElementById("main").scrollTop), 0);
    // The tick accepts, and can be taken back; to read everything is enough as well.
    await tick.check();
    await until("the tick is enough", () => approve.isEnabled());
    await tick.uncheck();
    await stillOff("the tick was taken back");
    await scrollThrough(list);
    await page.getByText("✓ seen").waitFor();
    await until("reading is enough", () => approve.isEnabled());
    await approve.click();
    await until("it is approved", async () => (await stage.api("GET", "/plans/many/approval")).standing === "approved");
    // That it runs is not a change to review, and what came of it is not one of what was approved.
    stage.work();
    await page.locator("header").getByText("completed").waitFor();
    await settle(page);
    assert.equal(await page.getByText(/came in while you were reading/).count(), 0);
    await page.reload();
    const since = page.locator("section").filter({ has: page.getByRole("heading", { name: /What changed since/ }) });
    await since.getByText("Nothing differs.").waitFor();
    assert.equal(await tick.count(), 0, "there is nothing left to accept");
    // Only the list scrolls, not the page around it.
    assert.ok(await page.evaluate(() => document.documentElement.scrollHeight <= innerHeight), "the page itself does not scroll");
    assert.deepEqual(browser.complaints, []);
  });

const still = () =>
  play("still", CONFIGURATION, async (stage, browser) => {
    const ids = ["a", "b", "c", "d"];
    await stage.run("agent:planner", "import", stage.write("plan.json", { format: "waypost/1", id: "asks", title: "Asks", tasks: [...ids, "e", "f"].map((id) => ({ id, description: `Task ${id}` })) }));
    await stage.api("POST", "/plans/asks/actions/start", {});
    const agent = await stage.agent("asker");
    const begin = (task) => agent.call("task_next", { plan: "asks", task });
    const ask = async (task) => {
      await begin(task);
      await agent.call("task_report", { plan: "asks", task, status: "question", text: `May ${task} go on?`, choices: ["Yes", "No"] });
    };
    for (const task of ids) await ask(task);
    for (const task of ["e", "f"]) {
      await begin(task);
      await agent.call("task_report", { plan: "asks", task, status: "failed", text: `${task} broke` });
    }
    const answers = async (task) => ((await stage.api("GET", `/plans/asks/tasks/${task}`)).state.answers ?? []).map((one) => one.answer);
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/inbox`);
    const row = (task) => page.getByRole("listitem").filter({ hasText: `May ${task} go on?` });
    const yes = (task) => row(task).getByRole("button", { name: /^Yes/ });
    await yes("d").waitFor();
    const order = () => page.getByRole("main").getByRole("listitem").getByRole("heading", { level: 3 }).evaluateAll((all) => all.map((one) => one.firstChild.textContent));
    const [before, place] = [await order(), await yes("d").boundingBox()];

    // A question that comes in waits for a click, and one that was answered elsewhere stays where it is.
    await stage.run("agent:planner", "import", stage.write("new.json", { format: "waypost/1", id: "new", title: "New", tasks: [{ id: "a", description: "A", work: { executor: "steps" } }] }));
    await stage.api("POST", "/plans/new/actions/request-approval", {});
    await stage.answer("asks", "b", "No");
    await page.getByRole("navigation", { name: "Main" }).getByText("6 waiting for you").waitFor();
    await until("the answered question says so", async () => (await row("b").getByText("no longer waiting").count()) === 1 && (await yes("b").isDisabled()));
    const fresh = page.getByRole("button", { name: "1 new" });
    await fresh.waitFor();
    assert.deepEqual(await order(), before);
    assert.deepEqual(await yes("d").boundingBox(), place);

    // A double click acts on one item, and its row stays and says what was done.
    await yes("a").dblclick();
    await row("a").getByText("Answered: Yes").waitFor();
    await page.getByRole("navigation", { name: "Main" }).getByText("5 waiting for you").waitFor();
    assert.equal(await row("a").getByRole("button").count(), 0);
    const retry = page.getByRole("listitem").filter({ hasText: "broke" }).getByRole("button", { name: /^Retry/ }).first();
    const spot = await retry.boundingBox();
    await page.mouse.dblclick(spot.x + spot.width / 2, spot.y + spot.height / 2);
    await page.getByRole("listitem").getByText("Retried").waitFor();
    await settle(page);
    assert.deepEqual([await answers("a"), await answers("c"), await answers("d")], [["Yes"], [], []]);
    assert.deepEqual(await order(), before);
    assert.deepEqual(await yes("d").boundingBox(), place);

    // A question that is asked again, in the same words, is another one.
    await stage.answer("asks", "c", "No");
    await ask("c");
    await until("the question of before is over", async () => (await row("c").getByText("no longer waiting").count()) === 1 && (await yes("c").isDisabled()));
    assert.deepEqual(await yes("d").boundingBox(), place);

    await page.getByRole("button", { name: "2 new" }).click();
    await page.getByRole("heading", { name: "Approvals" }).waitFor();
    assert.equal(await row("a").count() + await row("b").count(), 0);
    assert.equal(await yes("c").isEnabled(), true);
    assert.deepEqual(browser.complaints, []);
  });

const changed = () =>
  play("changed", CONFIGURATION, async (stage, browser) => {
    stage.write("steps.sh", "cat > /dev/null");
    await stage.run("agent:planner", "import", stage.write("plan.json", { format: "waypost/1", id: "many", title: "Many", tasks: many(TASKS) }));
    await stage.api("POST", "/plans/many/actions/request-approval", {});
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/many/approval`);
    const row = page.getByRole("cell", { name: "t0", exact: true });
    const reject = page.getByRole("button", { name: "Reject" });
    await row.waitFor();
    const places = async () => [await row.boundingBox(), await reject.boundingBox()];
    const before = await places();
    await page.getByText(/^\d+ tasks not yet seen/).waitFor();
    await scrollThrough(page.getByRole("region", { name: "What is to be approved" }));
    await page.getByText("✓ seen").waitFor();
    assert.equal(await page.locator("[data-unseen]").count(), 0, "what was seen has no mark");
    await page.getByRole("region", { name: "What is to be approved" }).evaluate((element) => element.scrollTo(0, 0));
    await stage.api("POST", "/plans/many/edits", {
      operations: [
        { op: "add", task: { id: "sneaky", description: "One more", work: { executor: "steps", inputs: { part: "sneaky part" } } } },
        { op: "revise", task: "t40", set: { work: { executor: "steps", inputs: { part: "another part" } } } },
      ],
    });
    // The banner says what differs, and moves nothing.
    const coming = page.getByRole("region", { name: /^What version \d+ changes/ });
    await coming.getByText("sneaky", { exact: true }).first().waitFor();
    await coming.getByText("another part").waitFor();
    if (process.env["SHOTS"]) await page.screenshot({ path: `${process.env["SHOTS"]}/coming.png` });
    assert.deepEqual(await places(), before);
    await page.getByRole("button", { name: /^Review version/ }).click();
    await page.getByRole("alert").waitFor({ state: "detached" });
    // What is new and what changed is marked and to be seen; the rest stays seen.
    const since = page.locator("section.card").filter({ has: page.getByRole("heading", { name: /^What changed since version \d+, which you read/ }) });
    await since.getByText("another part").waitFor();
    const rowOf = (id) => page.getByRole("row").filter({ has: page.getByText(id, { exact: true }) });
    await rowOf("sneaky").getByText("new", { exact: true }).waitFor();
    await rowOf("t40").getByText("changed", { exact: true }).waitFor();
    assert.equal(await page.getByRole("table").getByText(/^(new|changed)$/).count(), 2);
    await page.getByText(/^[12] tasks? not yet seen/).waitFor();
    assert.ok((await page.locator("tr[data-unseen]").count()) <= 2);
    if (process.env["SHOTS"]) await page.screenshot({ path: `${process.env["SHOTS"]}/review.png` });
    const approve = page.getByRole("button", { name: /^Approve version/ });
    assert.equal(await approve.isDisabled(), true);
    // A jump leads to what is missing, by key and by button.
    const next = page.getByRole("button", { name: "Next not yet seen" });
    await page.keyboard.press("n");
    for (let jumps = 0; jumps < 3 && (await next.count()) > 0; jumps++) {
      await next.click({ timeout: 1_000 }).catch(() => null);
      await settle(page);
    }
    await until("all of it was seen", () => approve.isEnabled());
    // Whoever rejects a version that they have not read is told so. Once rejected, it is not offered to reject it again.
    await stage.api("POST", "/plans/many/edits", { operations: [{ op: "add", task: { id: "late", description: "Late", work: { executor: "steps" } } }] });
    await page.getByText(/came in while you were reading/).waitFor();
    await page.getByLabel("Why not (the agent reads it)").fill("not so");
    await reject.click();
    await page.getByText(/^Rejected version \d+\. It came in while you were reading version \d+\.$/).waitFor();
    await page.getByRole("heading", { name: "Rejected." }).waitFor();
    assert.equal(await reject.count(), 0);
    await until("one button is the one to press", async () => (await page.locator("button.main, a.main").count()) === 1);
    if (process.env["SHOTS"]) await page.screenshot({ path: `${process.env["SHOTS"]}/rejected.png` });
    assert.deepEqual(browser.complaints, []);
  });

/** As many lines, each another. */
const lines = (word, count) => Array.from({ length: count }, (_, place) => `${word} ${place}.`).join("\n");

const words = () =>
  play("words", CONFIGURATION, async (stage, browser) => {
    stage.write("steps.sh", "cat > /dev/null");
    await stage.run("agent:planner", "import", stage.write("plan.json", { format: "waypost/1", id: "words", title: "Words", goal: lines("goal", 300), tasks: many(1) }));
    await stage.api("POST", "/plans/words/actions/request-approval", {});
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/words/approval`);
    const approve = page.getByRole("button", { name: /^Approve version/ });
    const goal = page.locator("[data-unseen]").filter({ hasText: "goal 299." });
    await goal.waitFor();
    const toEnd = async () => {
      for (let jumps = 0; jumps < 30 && !(await approve.isEnabled()); jumps++) {
        await page.keyboard.press("n");
        await settle(page);
      }
    };
    // The last task is enough for the groups, but not for the goal that is above them.
    await page.getByRole("region", { name: "What is to be approved" }).evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await page.getByText("✓ seen").waitFor();
    assert.equal(await approve.isDisabled(), true, "Approve is enabled without the goal");
    await page.getByText(/^The (title and the )?goal of the plan: not yet seen to the end/).waitFor();
    await toEnd();
    assert.equal(await approve.isEnabled(), true, "N leads through the goal");
    assert.equal(await goal.count(), 0);
    // Another goal is to be seen again, and what says the same is not.
    await stage.api("PATCH", "/plans/words", { goal: lines("aim", 300) });
    await page.getByRole("button", { name: /^Review version/ }).click();
    await page.getByRole("alert").waitFor({ state: "detached" });
    await settle(page);
    assert.equal(await approve.isDisabled(), true, "Approve is enabled without the new goal");
    await page.getByText("The goal of the plan: not yet seen to the end").waitFor();
    await toEnd();
    assert.equal(await approve.isEnabled(), true);
    assert.deepEqual(browser.complaints, []);
  });

const tall = () =>
  play("tall", CONFIGURATION, async (stage, browser) => {
    stage.write("steps.sh", "cat > /dev/null");
    const tasks = [1, 2, 3].map((place) => ({ id: `t${place}`, description: `Step ${place}`, work: { executor: "steps", inputs: { part: place === 1 ? "n".repeat(40_000) : `part ${place}` } } }));
    await stage.run("agent:planner", "import", stage.write("plan.json", { format: "waypost/1", id: "tall", title: "Tall", tasks }));
    await stage.api("POST", "/plans/tall/actions/request-approval", {});
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/tall/approval`);
    const list = page.getByRole("region", { name: "What is to be approved" });
    await page.getByRole("button", { name: "Next not yet seen" }).waitFor();
    await settle(page);
    const name = page.getByRole("cell", { name: "t1", exact: true });
    assert.ok((await name.boundingBox()).width >= 80, "a long word leaves room for the id");
    const top = () => list.evaluate((element) => element.scrollTop);
    const height = await list.evaluate((element) => element.clientHeight);
    // Every jump goes on by no more than what was on screen, so that nothing is passed over.
    for (let jumps = 0, before = await top(); jumps < 40 && (await page.locator("[data-unseen]").count()) > 0; jumps++) {
      await page.keyboard.press("n");
      await settle(page);
      const now = await top();
      assert.ok(now > before && now - before <= height, `jump ${jumps} goes from ${before} to ${now} in a window of ${height}`);
      before = now;
    }
    assert.equal(await page.getByRole("button", { name: /^Approve version/ }).isEnabled(), true);
    assert.deepEqual(browser.complaints, []);
  });

const pace = () =>
  play("pace", CONFIGURATION, async (stage, browser) => {
    stage.write("steps.sh", "cat > /dev/null");
    await stage.run("agent:planner", "import", stage.write("plan.json", { format: "waypost/1", id: "long", title: "Long", tasks: many(200) }));
    await stage.api("POST", "/plans/long/actions/request-approval", {});
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/long/approval`);
    await page.getByRole("button", { name: "Show 100 more" }).click();
    const list = page.getByRole("region", { name: "What is to be approved" });
    // The title is read first.
    await list.evaluate((element) => (element.scrollTop = 0));
    await until("the title was read", async () => (await page.getByText("The title of the plan: not yet seen").count()) === 0);
    // As a wheel does it, at a normal pace: each row is on screen for a quarter of a second and more.
    await list.evaluate(async (element) => {
      for (let top = 0; ; top += 40) {
        element.scrollTop = top;
        await new Promise((go) => setTimeout(go, 30));
        if (top + element.clientHeight >= element.scrollHeight) return;
      }
    });
    await page.getByText("✓ seen").waitFor();
    await until("it can be approved", () => page.getByRole("button", { name: /^Approve version/ }).isEnabled());
    assert.deepEqual(browser.complaints, []);
  });

const list = () =>
  play("list", CONFIGURATION, async (stage, browser) => {
    const bring = (id) => stage.run("agent:planner", "import", stage.write(`${id}.json`, { format: "waypost/1", id, title: `Plan ${id}`, tasks: [{ id: "a", description: "A", work: { executor: "steps" } }] }));
    for (const id of ["first", "second", "third"]) await bring(id);
    const page = await browser.signIn(stage);
    const titles = () => page.locator("a.title").allTextContents();
    await until("all are listed", async () => (await titles()).length === 3);
    const before = await titles();
    // What needs a person would come first, but the pointer is on the list.
    await page.getByRole("link", { name: before[1] }).hover();
    const last = before[2].replace("Plan ", "");
    await stage.api("POST", `/plans/${last}/actions/request-approval`, {});
    await page.getByRole("table").getByText("needs approval", { exact: true }).waitFor();
    assert.deepEqual(await titles(), before);
    await page.getByRole("heading", { name: "Plans" }).hover();
    await until("it comes first", async () => (await titles())[0] === before[2]);
    // Without a pointer on it, the list follows by itself.
    await stage.api("POST", `/plans/${last}/actions/reject`, { reason: "not now" });
    await stage.api("POST", `/plans/${before[0].replace("Plan ", "")}/actions/request-approval`, {});
    await until("the other comes first", async () => (await titles())[0] === before[0]);
    assert.deepEqual(browser.complaints, []);
  });

export const stillness = [
  ["nothing is approved that was not on screen: not by a search, a jump or the focus", unseen],
  ["a newer version of what is to be approved moves nothing on the page, and says and marks what differs", changed],
  ["the words of a plan have to be seen to their end, and again when they change", words],
  ["what is higher than the window is read in steps", tall],
  ["rows that pass at a normal pace count as seen", pace],
  ["the list of plans keeps its order under the pointer, and follows when it is gone", list],
  ["the inbox holds still: what is new waits for a click, and a double click acts once", still],
];
