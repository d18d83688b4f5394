// A plan from its making to its end, two who write at the same time, and a server that goes away.
import assert from "node:assert/strict";
import { statSync } from "node:fs";

import { Browser, play, scrollThrough, Stage, until } from "./stage.mjs";

const CONFIGURATION = `
[executors.steps]
kind = "process"
command = ["sh", "steps.sh"]
timeout_seconds = 60
`;

// Each step waits for its file, so that it is seen running; publishing fails the first time.
const STEPS = `
cat > /dev/null
echo "step $WAYPOST_TASK begins" >&2
until [ -e "$WAYPOST_TASK.go" ]; do sleep 0.05; done
[ "$WAYPOST_TASK" != publish ] || [ "$WAYPOST_ATTEMPT" -gt 1 ] || { echo "the mirror is busy" >&2; exit 1; }
echo "{\\"step\\": \\"$WAYPOST_TASK\\"}"
`;

const work = (part) => ({ executor: "steps", inputs: { part } });
const TASKS = [
  { id: "fetch", description: "Fetch the sources", work: work("sources") },
  { id: "build", description: "Build the packages", depends_on: ["fetch"], work: work("packages") },
  { id: "publish", description: "Publish the packages", depends_on: ["build"], work: work("mirror") },
];

/** The row of a task in the list view, as it stands. */
const row = (page, task, standing) =>
  page.getByRole("listbox", { name: "Tasks" }).getByRole("option").filter({ hasText: task }).filter({ hasText: standing });
const view = (page, name) => page.getByRole("navigation", { name: "Views of the plan" }).getByRole("link", { name });

const journey = () =>
  play("journey", CONFIGURATION, async (stage, browser) => {
    stage.write("steps.sh", STEPS);
    stage.work();
    const page = await browser.signIn(stage);
    // An empty store says how to begin.
    await page.getByRole("heading", { name: "No plans yet" }).waitFor();
    for (const name of ["Load the demo", "Copy the command", "New plan"]) await page.getByRole("button", { name }).waitFor();

    const agent = await stage.agent("planner");
    const { plan } = await agent.call("plan_create", { title: "Nightly packages", goal: "Fresh packages", tasks: TASKS });
    const asked = await agent.call("plan_start", { plan, wait: 0 });
    assert.equal(asked.phase, "awaiting_approval");

    // The list hears of it, without being loaded again.
    await page.getByText("1 thing waits for you in the inbox").waitFor();
    await page.getByRole("link", { name: "Nightly packages" }).click();
    await page.getByRole("link", { name: "Review & approve" }).click();
    const commands = page.getByRole("table", { name: "Tasks that run sh steps.sh" });
    await commands.getByText("mirror").first().waitFor();
    assert.equal(await commands.getByRole("row").count(), 1 + TASKS.length);

    // What is on screen stays there while an agent edits; nothing that was not seen can be approved.
    const approve = page.getByRole("button", { name: /^Approve version/ });
    const before = await approve.textContent();
    await agent.call("plan_edit", { plan, ops: [{ op: "revise", task: "publish", notes: "quickly" }] });
    await page.getByText(/came in while you were reading/).first().waitFor();
    assert.equal(await approve.textContent(), before);
    assert.equal(await approve.isDisabled(), true);
    await page.getByRole("button", { name: /^Review version/ }).click();
    await page.getByText("quickly").first().waitFor();
    await page.getByLabel("Note (optional)").fill("go ahead");
    await scrollThrough(page.getByRole("region", { name: "What is to be approved" }));
    await page.getByText("✓ seen").last().waitFor();
    await approve.click();

    await view(page, "Tasks").click();
    await row(page, "Fetch the sources", "running").waitFor();
    await row(page, "Build the packages", "blocked").waitFor();
    // The log of a task that runs comes as it is written.
    await row(page, "Fetch the sources", "running").click();
    await page.getByRole("button", { name: "Log", exact: true }).first().click();
    await page.getByLabel("Log of attempt 1").getByText("step fetch begins").waitFor();
    stage.write("fetch.go", "");
    await row(page, "Fetch the sources", "done").waitFor();
    await row(page, "Build the packages", "running").waitFor();

    // Loaded again in the middle, the page stands where it stood.
    await page.reload();
    await row(page, "Build the packages", "running").waitFor();
    stage.write("build.go", "");
    stage.write("publish.go", "");

    await row(page, "Publish the packages", "failed").click();
    const panel = page.getByRole("complementary", { name: "Task publish" });
    await panel.getByText("the mirror is busy").first().waitFor();
    await panel.getByRole("button", { name: "Retry", exact: true }).click();
    await row(page, "Publish the packages", "done").waitFor();
    await page.locator("header").getByText("completed").waitFor();

    await view(page, "Timeline").click();
    const attempts = page.getByRole("row").filter({ hasText: "Publish the packages" });
    await attempts.getByText("attempt 1, failed").waitFor();
    await attempts.getByText("attempt 2, done").waitFor();
    await view(page, "Activity").click();
    await page.getByRole("cell", { name: "plan approved" }).waitFor();
    assert.deepEqual(browser.complaints, []);
  });

const conflict = () =>
  play("conflict", "", async (stage, browser) => {
    await stage.run("person:ada", "import", stage.write("plan.json", { format: "waypost/1", id: "words", title: "Words", tasks: [{ id: "a", description: "A" }] }));
    const [one, two] = [await browser.signIn(stage), await browser.signIn(stage)];
    for (const page of [one, two]) {
      await page.goto(`${stage.site}/plans/words/document`);
      await page.getByRole("button", { name: "Edit", exact: true }).click();
    }
    await one.getByLabel("Goal").fill("the goal of the first");
    await two.getByLabel("Goal").fill("the goal of the second");
    await one.getByRole("button", { name: "Save" }).click();
    await one.getByText("Saved").waitFor();

    // The other tab hears of it, and keeps what was typed.
    await two.getByText("Saving tells you what changed").waitFor();
    await two.getByRole("button", { name: "Save" }).click();
    const dialog = two.getByRole("dialog", { name: "This plan changed while you were editing" });
    await dialog.getByText("the goal of the first").waitFor();
    await dialog.getByText("the goal of the second").waitFor();
    await dialog.getByRole("button", { name: "Review their change" }).click();
    assert.equal(await two.getByLabel("Goal").inputValue(), "the goal of the second");
    await two.getByRole("button", { name: "Save" }).click();
    await dialog.getByRole("button", { name: "Overwrite with mine" }).click();
    await two.getByRole("button", { name: "Edit", exact: true }).waitFor();
    await one.getByText("the goal of the second").waitFor();
    assert.equal((await stage.api("GET", "/plans/words")).goal, "the goal of the second");
    assert.deepEqual(browser.complaints.filter((one) => !one.includes("412")), []);
  });

const formAndOthers = () =>
  play("form", "", async (stage, browser) => {
    await stage.run("person:ada", "import", stage.write("plan.json", { format: "waypost/1", id: "form", title: "Form", tasks: [{ id: "a", description: "A" }] }));
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/form/list/a`);
    const opener = page.getByRole("complementary").getByRole("button", { name: "Edit" });
    await opener.click();
    const form = page.getByRole("dialog", { name: "Edit a" });
    await form.getByLabel("Description").fill("A, as typed here");
    await stage.api("PATCH", "/plans/form", { title: "Form, as another has it" });
    await page.getByRole("heading", { level: 1, name: "Form, as another has it", includeHidden: true }).waitFor();
    assert.equal(await form.getByLabel("Description").inputValue(), "A, as typed here");
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Overwrite with mine" }).click();
    await form.waitFor({ state: "detached" });
    await page.getByRole("complementary").getByText("A, as typed here").waitFor();
    await until("the focus is where the form was opened", () => opener.evaluate((element) => element === document.activeElement));
  });

const reconnect = () =>
  play("reconnect", "", async (stage, browser) => {
    await stage.run("person:ada", "import", stage.write("plan.json", { format: "waypost/1", id: "long", title: "Long", tasks: [{ id: "a", description: "A" }, { id: "b", description: "B" }] }));
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/long/document`);
    await page.getByRole("button", { name: "Edit", exact: true }).click();
    await page.getByLabel("Goal").fill("typed before the server went away");
    await page.getByRole("status").getByText("live", { exact: true }).waitFor();
    await stage.crash();
    await page.getByRole("status").getByText("not connected").waitFor();
    // Meanwhile somebody writes.
    await stage.run("person:ada", "done", "long", "a");
    await stage.serve();
    await page.getByRole("status").getByText("live", { exact: true }).waitFor();
    assert.equal(await page.getByLabel("Goal").inputValue(), "typed before the server went away");
    await page.getByText("1 of 2 done").waitFor();
    await stage.run("person:ada", "done", "long", "b");
    await page.getByText("2 of 2 done").waitFor();
  });

const sessions = () =>
  play("sessions", "", async (stage, browser) => {
    const link = stage.takeLink();
    const page = await browser.context.newPage();
    await page.goto(link);
    await page.getByRole("heading", { name: "Plans" }).waitFor();
    await page.waitForURL(`${stage.site}/`);
    const other = new Stage("sessions-other", "");
    try {
      await other.serve();
      const second = await browser.signIn(other);
      // Both stay signed in, also when they are loaded again.
      for (const one of [page, second]) {
        await one.reload();
        await one.getByRole("status").getByText("live", { exact: true }).waitFor();
      }
      // A server on another port gets the cookies of both, and that is not enough.
      const cookies = await browser.context.cookies(stage.site);
      assert.equal(cookies.filter((one) => one.name.startsWith("waypost_session_") && one.httpOnly).length, 2);
      const replayed = await fetch(`${stage.site}/api/v1/me`, { headers: { cookie: cookies.map((one) => `${one.name}=${one.value}`).join("; ") } });
      assert.equal(replayed.status, 401);
    } finally {
      await other.end();
    }

    // The link works once; who is signed in does not notice, and others sign in with a token.
    await page.goto(link);
    await page.getByRole("heading", { name: "Plans" }).waitFor();
    const stranger = await Browser.open();
    try {
      const late = await stranger.context.newPage();
      await late.goto(link);
      await late.getByText("this sign-in link was used already").waitFor();
      await late.getByLabel(/^Token/).fill("waypost_none");
      await late.getByRole("button", { name: "Sign in" }).click();
      await late.getByText("unknown or revoked token").waitFor();
      await late.getByLabel(/^Token/).fill(stage.token);
      await late.getByRole("button", { name: "Sign in" }).click();
      await late.getByRole("heading", { name: "Plans" }).waitFor();
    } finally {
      await stranger.close();
    }
  });

const order = () =>
  play("order", "", async (stage, browser) => {
    const tasks = ["alpha", "beta", "gamma"].map((id) => ({ id, description: `Task ${id}` }));
    await stage.run("person:ada", "import", stage.write("plan.json", { format: "waypost/1", id: "order", title: "Order", tasks }));
    const ids = async () => (await stage.api("GET", "/plans/order/tasks")).tasks.map((task) => task.id).join(" ");
    const page = await browser.signIn(stage);
    const rows = page.getByRole("listbox", { name: "Tasks" }).getByRole("option");
    // The address of the view as it was called before leads to the same.
    await page.goto(`${stage.site}/plans/order/list/gamma`);
    await page.waitForURL(/plans\/order\/tasks\/gamma/);
    await page.getByRole("option", { name: /gamma/, selected: true }).waitFor();
    await page.getByRole("button", { name: "Move up" }).click();
    await until("gamma stands before beta", async () => (await ids()) === "alpha gamma beta");
    await rows.nth(1).filter({ hasText: "gamma" }).waitFor();
    await page.keyboard.press("Alt+ArrowUp");
    await until("gamma stands first", async () => (await ids()) === "gamma alpha beta");
    await rows.nth(0).filter({ hasText: "gamma" }).waitFor();
    await page.getByRole("button", { name: "Move up" }).click();
    await page.getByText("gamma is the first already").waitFor();
    await page.getByRole("button", { name: "Move down" }).click();
    await until("gamma stands second again", async () => (await ids()) === "alpha gamma beta");
    // What was searched for is a part of the address, also while tasks are opened and closed.
    await page.getByLabel("Search tasks").fill("bet");
    await page.waitForURL(/text=bet/);
    await rows.filter({ hasText: "beta" }).click();
    await page.waitForURL(/tasks\/beta\?text=bet/);
    await page.reload();
    await page.getByLabel("Search tasks").waitFor();
    assert.equal(await page.getByLabel("Search tasks").inputValue(), "bet");
    await rows.filter({ hasText: "beta" }).waitFor();
    assert.equal(await rows.count(), 1);
    await page.goto(`${stage.site}/plans/order/history?from=1&to=3`);
    await page.getByRole("heading", { name: "Version 1 → 3" }).waitFor();
    assert.deepEqual(browser.complaints, []);
  });

/** Where the middle of a task's box is on the screen, once the box has come to rest: after an edit it moves to its new place. */
async function middle(page, graph, task) {
  const box = page.locator(`.paper [data-task="${graph.ids.indexOf(task)}"]`);
  await box.waitFor();
  // Playwright's own wait for a box that does not move between two frames.
  await box.hover({ trial: true });
  const { x, y, width, height } = await box.boundingBox();
  return [x + width / 2, y + height / 2];
}

const pull = () =>
  play("pull", "", async (stage, browser) => {
    const tasks = [{ id: "a", description: "First" }, { id: "b", description: "Second" }, { id: "c", description: "Third", depends_on: ["a"] }];
    await stage.run("person:ada", "import", stage.write("plan.json", { format: "waypost/1", id: "pull", title: "Pull", tasks }));
    const graph = await stage.api("GET", "/plans/pull/graph");
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/pull/graph`);
    await page.getByRole("button", { name: "Connect" }).waitFor();
    // Pointing at a task tells what it depends on.
    await page.mouse.move(...(await middle(page, graph, "c")));
    await page.locator("#graph-about").getByText("depends on First").waitFor();
    await page.getByRole("button", { name: "Connect" }).click();
    await page.mouse.move(...(await middle(page, graph, "b")));
    await page.mouse.down();
    await page.mouse.move(...(await middle(page, graph, "c")), { steps: 8 });
    await page.mouse.up();
    await page.getByText("c depends on b now").waitFor();
    assert.deepEqual((await stage.api("GET", "/plans/pull/tasks/c")).depends_on, ["a", "b"]);
    // One that would close a ring is refused in words, and nothing is written.
    const grown = await stage.api("GET", "/plans/pull/graph");
    await until("both arrows are drawn", () => page.evaluate(() => document.querySelectorAll(".paper svg.edges path[marker-end]").length >= 2));
    await until("the page has drawn it anew", () => page.evaluate((version) => document.body.textContent.includes(`v${version}`), grown.version));
    await page.mouse.move(...(await middle(page, grown, "c")));
    await page.mouse.down();
    await page.mouse.move(...(await middle(page, grown, "a")), { steps: 8 });
    await page.mouse.up();
    await page.getByText(/depend on each other/).waitFor();
    assert.equal((await stage.api("GET", "/plans/pull")).version, grown.version);
    assert.deepEqual(browser.complaints.filter((one) => !one.includes("409") && !one.includes("422")), []);
  });

const panel = () =>
  play("panel", CONFIGURATION, async (stage, browser) => {
    stage.write("steps.sh", `cat > /dev/null; echo "looked closely" >&2; echo '{"seen": 3}'`);
    const thinking = { reasoning: "Small enough", tokens: 1234, digest: { summary: "All is counted", key_decisions: ["count lines"], artifacts: ["size.txt"] } };
    const tasks = [{ id: "counted", description: "Count", thinking, check: work("count") }, { id: "asked", description: "Ask" }];
    await stage.run("person:ada", "import", stage.write("plan.json", { format: "waypost/1", id: "panel", title: "Panel", tasks }));
    // A plan of the store is shown before machines run it.
    await stage.approve("panel");
    const agent = await stage.agent("counter");
    await agent.call("task_next", { plan: "panel", task: "counted" });
    await agent.call("task_report", { plan: "panel", task: "counted", status: "done", text: "counted by hand" });
    await agent.call("task_next", { plan: "panel", task: "asked" });
    await agent.call("task_report", { plan: "panel", task: "asked", status: "question", text: "How many?", choices: ["one", "two"] });

    const page = await browser.signIn(stage);
    await page.getByRole("row", { name: /1 question/ }).waitFor();
    await page.goto(`${stage.site}/plans/panel/list/counted`);
    const side = page.getByRole("complementary");
    for (const words of ["All is counted", "count lines", "size.txt", "Small enough", "1,234", "steps passed", "looked closely", "sha256:"]) {
      await side.getByText(words).first().waitFor();
    }
    await page.goto(`${stage.site}/plans/panel/list/asked`);
    await side.getByRole("button", { name: "two", exact: true }).click();
    await side.getByText("How many? → two").waitFor();
    await side.getByText("asked", { exact: true }).first().waitFor();

    // The plan leaves in each format, and the formats are all there are to write.
    await page.goto(`${stage.site}/plans/panel/document`);
    const buttons = page.getByRole("group", { name: "Formats" }).getByRole("button");
    await buttons.first().waitFor();
    const names = [];
    for (const [at, one] of (await buttons.all()).entries()) {
      // A browser asks before a page saves its eleventh file in a row.
      if (at === 8) {
        await page.reload();
        await one.waitFor();
      }
      const [file] = await Promise.all([page.waitForEvent("download"), one.click()]);
      assert.ok(file.suggestedFilename().startsWith("panel."), file.suggestedFilename());
      assert.ok(statSync(await file.path()).size > 0, file.suggestedFilename());
      names.push((await one.textContent()).trim());
    }
    const known = (await stage.run("person:ada", "schema")).formats.filter((one) => one.write).map((one) => one.format);
    assert.deepEqual(names.sort(), known.sort());
    assert.deepEqual(browser.complaints, []);
  });

export const flow = [
  ["an agent's plan is approved, run, retried and completed in the page", journey],
  ["who writes second sees both sides, keeps what was typed, and writes on top", conflict],
  ["a form keeps what was typed while the plan changes, and gives the focus back", formAndOthers],
  ["the panel of a task tells evidence, digest and answers, and the plan leaves in each format", panel],
  ["a dependency is made by pulling, and a ring is refused", pull],
  ["tasks are given another place, and the address says what is searched and compared", order],
  ["two servers have a session each, other ports get no use of it, and a link works once", sessions],
  ["a page whose server went away says so and goes on when it is back", reconnect],
];
