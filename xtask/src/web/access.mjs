// Everybody can use it: axe finds nothing, light or dark, wide or narrow, and the keys are enough.
import assert from "node:assert/strict";

import { axe, play, until } from "./stage.mjs";

const PLAN = {
  format: "waypost/1",
  id: "release",
  title: "Release 2.0",
  goal: "Everybody has it",
  status: "nearly there",
  body: "# Release\n\nWith a [link](https://example.org), a list:\n\n- [ ] one\n- [x] two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
  tasks: [
    { id: "build", description: "Build it", notes: "twice", tools: ["make"], locks: ["tree"] },
    { id: "test", description: "Test it", depends_on: ["build"] },
    { id: "sign", description: "Sign it", depends_on: ["build"], parent: "test" },
    { id: "ship", description: "Ship it", depends_on: ["test", "sign"], complexity: "high" },
  ],
};
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"];

/** What axe finds on the page as it is, one text for each. */
async function judge(page, where) {
  const found = await page.evaluate(
    (values) => window.axe.run(document, { runOnly: { type: "tag", values }, resultTypes: ["violations"] }).then((answer) => answer.violations),
    RULES,
  );
  return found.flatMap((one) => one.nodes.map((node) => `${where}: ${one.id}: ${node.html}\n${node.failureSummary}`));
}

async function prepare(stage) {
  await stage.run("person:ada", "import", stage.write("plan.json", PLAN));
  await stage.run("agent:planner", "import", stage.write("other.json", { ...PLAN, id: "waits", title: "Waits" }));
  await stage.api("POST", "/plans/waits/actions/request-approval", { message: "please" });
  await stage.api("POST", "/plans/release/actions/start", {});
  const agent = await stage.agent("builder");
  await agent.call("task_next", { plan: "release", task: "build" });
  await agent.call("task_report", { plan: "release", task: "build", status: "failed", text: "no compiler" });
}

const VIEWS = ["graph", "tree", "list", "board", "timeline", "document", "approval", "history", "events"];
const ready = (page) => page.waitForFunction(() => !document.body.textContent.includes("Loading…") && document.querySelector("h1"));

const judged = () =>
  play("access", "", async (stage, browser) => {
    await prepare(stage);
    const page = await browser.signIn(stage);
    const paths = ["/", "/inbox", "/events", "/workers", "/tasks?text=it", "/nowhere", "/plans/nothing", ...VIEWS.map((name) => `/plans/release/${name}/build`), "/plans/release/list/nothing", "/plans/release/log/build", "/plans/waits/approval"];
    const found = [];
    const look = async (where) => {
      // Not as a script of the page: its policy allows none that comes from elsewhere.
      await page.evaluate(axe);
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        found.push(...(await judge(page, `${where} (${colorScheme})`)));
      }
    };
    for (const path of paths) {
      await page.goto(stage.site + path);
      await ready(page);
      await look(path);
    }
    // A phone hides words, and what they name keeps its name.
    const size = page.viewportSize();
    await page.setViewportSize({ width: 390, height: 844 });
    for (const path of ["/", "/inbox", "/tasks", "/plans/waits/approval", "/plans/release/board"]) {
      await page.goto(stage.site + path);
      await ready(page);
      await look(`${path} at 390 px`);
    }
    await page.setViewportSize(size);
    await page.goto(`${stage.site}/plans/release/document`);
    await page.getByRole("button", { name: "Edit", exact: true }).click();
    await look("the document's form");
    await page.goto(`${stage.site}/plans/release/list/build`);
    await page.getByRole("complementary").getByRole("button", { name: "Edit" }).click();
    await look("a task's form");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+k");
    await page.getByRole("option").filter({ hasText: "Waits" }).waitFor();
    await look("the palette");
    await page.keyboard.press("Escape");
    await page.goto(`${stage.site}/`);
    await page.getByLabel("Select Release 2.0").check();
    await page.getByRole("region", { name: "Selected" }).waitFor();
    await look("a selection");
    await page.getByRole("button", { name: "Board" }).click();
    await page.getByRole("group", { name: "Plans by status" }).waitFor();
    await look("the board of plans");
    await page.getByRole("button", { name: "Table" }).click();
    await page.goto(`${stage.site}/?new=plan`);
    await page.getByRole("dialog", { name: "New plan" }).waitFor();
    await look("a new plan");
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    const help = page.getByRole("dialog", { name: "Keys and signs" });
    await help.waitFor();
    await look("the help");
    const licences = await (await page.request.get(stage.site + (await help.getByRole("link", { name: /licences/ }).getAttribute("href")))).text();
    for (const name of ["svelte", "marked", "dompurify"]) assert.match(licences, new RegExp(`^${name} [0-9.]+ \\(`, "m"));
    await page.evaluate(() => localStorage.removeItem("waypost-session"));
    await page.reload();
    await page.getByRole("heading", { name: "Please sign in" }).waitFor();
    await look("the sign-in form");
    assert.equal(found.join("\n\n"), "");
  });

const narrow = () =>
  play("narrow", "", async (stage, browser) => {
    await prepare(stage);
    const page = await browser.signIn(stage);
    const wider = [];
    for (const [width, height] of [[360, 640], [3840, 2160]]) {
      await page.setViewportSize({ width, height });
      for (const path of ["/", "/inbox", "/events", "/workers", "/tasks", ...VIEWS.map((name) => `/plans/release/${name}`), "/plans/release/list/build", "/plans/release/log/build"]) {
        await page.goto(stage.site + path);
        await ready(page);
        const wide = await page.evaluate(() => Math.max(document.documentElement.scrollWidth, document.getElementById("main").scrollWidth));
        if (wide > width) wider.push(`${path}: ${wide} of ${width}`);
      }
    }
    assert.deepEqual(wider, []);
  });

/** Ids of the greatest length take no room from titles, tabs and buttons. */
const longIds = () =>
  play("long-ids", "", async (stage, browser) => {
    const plan = "plan-".padEnd(128, "long-id-");
    const ids = ["first", "second", "third"].map((name) => `${name}-`.padEnd(250, "long-id-"));
    const tasks = ids.map((id, at) => ({ id, description: ["Short words", "Ask somebody", "Wait for it"][at], depends_on: at === 2 ? [ids[0]] : [] }));
    await stage.run("person:ada", "import", stage.write("plan.json", { format: "waypost/1", id: plan, title: "Long ids", tasks }));
    await stage.api("POST", `/plans/${plan}/actions/start`, {});
    const agent = await stage.agent("builder");
    await agent.call("task_next", { plan, task: ids[1] });
    await agent.call("task_report", { plan, task: ids[1], status: "question", text: "Which?", choices: ["left", "right"] });
    const page = await browser.signIn(stage);
    for (const [width, height] of [[1440, 900], [1024, 768], [390, 844]]) {
      await page.setViewportSize({ width, height });
      for (const path of ["/", "/inbox", "/activity", "/agents", "/tasks?text=words", ...VIEWS.map((name) => `/plans/${plan}/${name}`), `/plans/${plan}/list/${ids[0]}`, `/plans/${plan}/log/${ids[0]}`]) {
        await page.goto(stage.site + path);
        await ready(page);
        const where = `${path.replaceAll("long-id-", "")} at ${width} px`;
        const main = await page.evaluate(() => Math.max(document.documentElement.scrollWidth, document.getElementById("main").scrollWidth));
        assert.ok(main <= width, `${where} is ${main} px wide`);
        const facts = page.locator(".plan > header .facts");
        if (width > 720 && (await facts.count()) > 0) {
          const tabs = await page.getByRole("navigation", { name: "Views of the plan" }).getByRole("link").last().boundingBox();
          const first = await facts.locator("> :first-child").boundingBox();
          assert.ok(tabs.x + tabs.width <= first.x, `${where}: the facts cover the tabs`);
        }
      }
      await page.goto(`${stage.site}/plans/${plan}/list`);
      const title = page.getByRole("option").getByText("Short words");
      await title.waitFor();
      assert.equal(await title.evaluate((element) => element.scrollWidth > element.clientWidth), false, `the title is whole at ${width} px`);
      await page.goto(`${stage.site}/inbox`);
      const answer = await page.getByRole("button", { name: /^left/ }).boundingBox();
      assert.ok(answer.x >= 0 && answer.x + answer.width <= width, `the answer is on the screen at ${width} px`);
    }
    assert.deepEqual(browser.complaints, []);
  });

const keys = () =>
  play("keys", "", async (stage, browser) => {
    await stage.run("person:ada", "import", stage.write("plan.json", PLAN));
    const page = await browser.signIn(stage);
    const tabTo = async (what, locator) => {
      for (let step = 0; step < 60; step++) {
        if (await locator.evaluate((element) => element === document.activeElement)) return;
        await page.keyboard.press("Tab");
      }
      assert.fail(`sixty steps of the tab key do not lead to ${what}`);
    };
    const plan = page.getByRole("link", { name: "Release 2.0" });
    await plan.waitFor();
    await tabTo("the plan", plan);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Release 2.0" }).waitFor();

    // In the graph, the arrow keys follow the arrows.
    const first = page.locator(".paper [data-task]").first();
    await first.waitFor();
    await tabTo("the first task", first);
    await page.keyboard.press("Enter");
    await page.getByRole("complementary", { name: "Task build" }).waitFor();
    await page.keyboard.press("ArrowRight");
    await page.waitForURL(/graph\/(test|sign)$/);
    await page.keyboard.press("Escape");
    await page.waitForURL(/graph$/);

    // In the list, a task is chosen and marked as done.
    await page.keyboard.press("3");
    const list = page.getByRole("listbox", { name: "Tasks" });
    await list.waitFor();
    await tabTo("the list", list);
    await page.keyboard.press("Home");
    await page.keyboard.press("Enter");
    const panel = page.getByRole("complementary", { name: "Task build" });
    const mark = panel.getByRole("button", { name: "Mark done" });
    await mark.waitFor();
    await tabTo("the button", mark);
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Mark done" });
    await dialog.waitFor();
    await tabTo("the words", dialog.getByRole("textbox"));
    await page.keyboard.type("built by hand");
    await tabTo("the button of the dialog", dialog.getByRole("button", { name: "Mark done" }));
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    await panel.getByText("built by hand").waitFor();
    await mark.waitFor({ state: "detached" });
    await until("the focus stays in the panel", () => panel.evaluate((element) => element.contains(document.activeElement)));
    assert.deepEqual(browser.complaints, []);
  });

export const access = [
  ["axe finds nothing on any view, light or dark", judged],
  ["no view is wider than its screen, be it 360 pixels or 4K", narrow],
  ["ids of 250 characters take no room from titles, tabs and answers", longIds],
  ["the keys are enough to open a plan, choose a task and mark it as done", keys],
];
