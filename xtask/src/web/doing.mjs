// What people do besides deciding: finding, moving, selecting, editing, creating, and talking about tasks. With the mouse and with
// the keys alone.
import assert from "node:assert/strict";

import { play, until } from "./stage.mjs";

const CONFIGURATION = `
[executors.steps]
kind = "process"
command = ["sh", "steps.sh"]

[shapes.patch]
description = "An edit of one file"
[shapes.patch.input_schema]
type = "object"
required = ["file"]
[shapes.patch.input_schema.properties.file]
type = "string"
maxLength = 200
[shapes.patch.input_schema.properties.mode]
enum = ["fast", "full"]
`;
const TASKS = [
  { id: "build", description: "Build the packages" },
  { id: "lint", description: "Read every warning" },
  { id: "deploy", description: "Deploy to staging", depends_on: ["build"] },
  { id: "announce", description: "Announce the release" },
];

const importPlan = (stage, id, title, tasks = TASKS) =>
  stage.run("person:ada", "import", stage.write(`${id}.json`, { format: "waypost/1", id, title, tasks }));
const task = (stage, plan, id) => stage.api("GET", `/plans/${plan}/tasks/${id}`);
const column = (page, name) => page.getByRole("region", { name: new RegExp(`^${name}, `) });

const palette = () =>
  play("palette", "", async (stage, browser) => {
    await importPlan(stage, "release", "Release 4.2");
    await importPlan(stage, "other", "Move the ledger", [{ id: "copy", description: "Copy the tables" }]);
    await stage.api("POST", "/plans/release/actions/start", {});
    const page = await browser.signIn(stage);
    await page.getByRole("link", { name: "Release 4.2" }).waitFor();
    // A task of any plan, with the keys alone.
    await page.keyboard.press("Control+k");
    const dialog = page.getByRole("dialog", { name: "Go to a plan, a task or a command" });
    const field = dialog.getByRole("combobox");
    await field.waitFor();
    await until("the field has the focus", () => field.evaluate((element) => element === document.activeElement));
    await page.keyboard.type("staging");
    await dialog.getByRole("option", { name: /Deploy to staging/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("complementary", { name: "Task deploy" }).waitFor();
    // Of the plans that need somebody none is left out.
    for (let plan = 0; plan < 8; plan++) {
      await importPlan(stage, `asks-${plan}`, `Asks ${plan}`, [{ id: "a", description: "A" }]);
      await stage.api("POST", `/plans/asks-${plan}/actions/request-approval`, {});
    }
    await page.keyboard.press("Control+k");
    await dialog.getByRole("option", { name: /^Asks/ }).nth(7).waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    // While a search is under way, a hasty Enter opens nothing that was found for other words.
    await page.keyboard.press("Control+k");
    await dialog.getByRole("option", { name: /^Asks/ }).nth(7).waitFor();
    await page.route("**/api/v1/search*", async (route) => {
      await new Promise((go) => setTimeout(go, 1_000));
      // A search that was overtaken is not waited for.
      await route.continue().catch(() => null);
    });
    await page.keyboard.type("tables");
    await page.keyboard.press("Enter");
    assert.equal(await dialog.isVisible(), true);
    await dialog.getByRole("option", { name: /Copy the tables/ }).waitFor();
    await page.unroute("**/api/v1/search*");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    // A command of the view on screen.
    await page.keyboard.press("Control+k");
    await field.waitFor();
    await until("the field has the focus", () => field.evaluate((element) => element === document.activeElement));
    await page.keyboard.type("pause");
    await dialog.getByRole("option", { name: "This plan: Pause" }).waitFor();
    await until("the command stands under the cursor", async () => {
      const at = await field.getAttribute("aria-activedescendant");
      return (await page.locator(`[id="${at}"]`).textContent()).includes("Pause");
    });
    await page.keyboard.press("Enter");
    await page.locator("header").getByText("paused by ada").waitFor();
    // A plan; and Escape gives the focus back.
    const opener = page.getByRole("button", { name: /^Search plans, tasks/ });
    await opener.click();
    await field.waitFor();
    await until("the field has the focus", () => field.evaluate((element) => element === document.activeElement));
    await page.keyboard.type("ledger");
    await dialog.getByRole("option", { name: /Move the ledger/ }).first().waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await until("the focus is where it was", () => opener.evaluate((element) => element === document.activeElement));
    // All that was found, as a page with an address.
    await page.goto(`${stage.site}/tasks?text=copy`);
    await page.getByRole("link", { name: "Copy the tables" }).click();
    await page.getByRole("complementary", { name: "Task copy" }).waitFor();
    assert.deepEqual(browser.complaints, []);
  });

const boards = () =>
  play("boards", "", async (stage, browser) => {
    await importPlan(stage, "release", "Release 4.2");
    const page = await browser.signIn(stage);
    // Plans: a draft is dragged to what runs, and is paused with the keys.
    await page.getByRole("button", { name: "Board" }).click();
    const plans = page.getByRole("group", { name: "Plans by status" });
    await plans.getByRole("listitem").filter({ hasText: "Release 4.2" }).dragTo(column(page, "Running"));
    await until("the plan was started", async () => (await stage.api("GET", "/plans/release")).phase === "active");
    await column(page, "Blocked or idle").getByRole("link", { name: "Release 4.2" }).waitFor();

    await page.goto(`${stage.site}/plans/release/board`);
    const board = page.getByRole("group", { name: "Tasks by status" });
    await column(page, "Ready").getByRole("link", { name: "Read every warning" }).waitFor();
    // A move asks for what its button asks for.
    await board.getByRole("listitem").filter({ hasText: "Read every warning" }).dragTo(column(page, "Failed"));
    const dialog = page.getByRole("dialog", { name: "Mark failed" });
    await dialog.getByText("Read every warning").waitFor();
    await dialog.getByRole("textbox").fill("too many");
    await dialog.getByRole("button", { name: "Mark failed" }).click();
    await column(page, "Failed").getByRole("link", { name: "Read every warning" }).waitFor();
    assert.equal((await task(stage, "release", "lint")).state.error, "too many");
    // With the keys: M opens the moves of the card with the focus.
    await column(page, "Ready").getByRole("link", { name: "Build the packages" }).focus();
    await page.keyboard.press("m");
    const moves = page.getByRole("menu", { name: "Move Build the packages" });
    await moves.getByRole("menuitem", { name: /Mark done/ }).waitFor();
    // A task for which nothing is asked cannot be made to run from here.
    assert.deepEqual((await moves.getByRole("menuitem").allTextContents()).map((text) => text.replace(/to .*/, "")), ["Hold", "Mark failed", "Mark done", "Skip"]);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Mark done" }).waitFor();
    await page.keyboard.type("built");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await column(page, "Done").getByRole("link", { name: "Build the packages" }).waitFor();
    // What waited for it is ready now, and stands there without being loaded again.
    await column(page, "Ready").getByRole("link", { name: "Deploy to staging" }).waitFor();
    // What is blocked is not dropped on done.
    await stage.api("POST", "/plans/release/tasks/build/actions/retry", {});
    await column(page, "Blocked").getByRole("link", { name: "Deploy to staging" }).waitFor();
    await board.getByRole("listitem").filter({ hasText: "Deploy to staging" }).dragTo(column(page, "Done"));
    await column(page, "Blocked").getByRole("link", { name: "Deploy to staging" }).waitFor();
    assert.equal((await task(stage, "release", "deploy")).standing, "blocked");
    assert.deepEqual(browser.complaints, []);
  });

const bulk = () =>
  play("bulk", CONFIGURATION, async (stage, browser) => {
    for (const [id, title] of [["one", "Plan one"], ["two", "Plan two"], ["three", "Plan three"]]) await importPlan(stage, id, title);
    const work = { id: "run", description: "Run it", work: { executor: "steps", inputs: {} } };
    for (const id of ["first", "second"]) {
      await stage.run("agent:planner", "import", stage.write("x.json", { format: "waypost/1", id, title: `Approve ${id}`, tasks: [work] }));
      await stage.api("POST", `/plans/${id}/actions/request-approval`, { message: "please" });
    }
    const page = await browser.signIn(stage);
    const bar = page.getByRole("region", { name: "Selected" });
    await page.getByLabel("Select Plan one").check();
    // The key selects the plan with the focus.
    await page.getByRole("link", { name: "Plan two" }).focus();
    await page.keyboard.press("x");
    await bar.getByText("2 selected").waitFor();
    await bar.getByRole("button", { name: "Archive" }).click();
    await page.getByText("2 plans archived").waitFor();
    await page.getByRole("link", { name: "Plan one" }).waitFor({ state: "detached" });
    assert.equal((await stage.api("GET", "/plans?archived=true")).total, 2);
    // It is taken back as easily as it was done.
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("2 plans restored").waitFor();
    assert.equal((await stage.api("GET", "/plans?archived=true")).total, 0);
    await page.getByRole("link", { name: "Plan one" }).waitFor();
    // Approvals are not given in bulk: they are reviewed one after the other.
    for (const id of ["first", "second"]) await page.getByLabel(`Select Approve ${id}`).check();
    await bar.getByRole("button", { name: "Review 2 plans" }).click();
    await page.getByText("1 plan to review after this one").waitFor();
    const seen = new URL(page.url()).pathname;
    await page.getByRole("link", { name: "Review the next plan" }).click();
    await until("the next plan is shown", () => new URL(page.url()).pathname !== seen && page.url().endsWith("/approval"));
    await page.getByText("to review after this one").waitFor({ state: "detached" });

    // Tasks: labels, assignee and retry for several, with the keys.
    await stage.api("POST", "/plans/three/actions/start", {});
    for (const id of ["build", "lint"]) await stage.api("POST", `/plans/three/tasks/${id}/actions/fail`, { error: "no disk" });
    await page.goto(`${stage.site}/plans/three/list`);
    const list = page.getByRole("listbox", { name: "Tasks" });
    await list.getByRole("option").filter({ hasText: "Build the packages" }).waitFor();
    await list.focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("x");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("x");
    await bar.getByText("2 selected").waitFor();
    await bar.getByRole("button", { name: "Label…" }).click();
    await page.getByLabel("Labels to add, separated by commas").fill("risky, disk");
    await page.keyboard.press("Enter");
    await page.getByText("2 tasks labelled risky, disk").waitFor();
    assert.deepEqual((await task(stage, "three", "lint")).state.labels, ["disk", "risky"]);
    await page.getByLabel("Label", { exact: true }).selectOption("risky");
    await until("two tasks are listed", async () => (await list.getByRole("option").count()) === 2);
    // The filter is saved, and is there after a reload.
    await page.getByRole("button", { name: "Save filter…" }).click();
    await page.getByLabel("Name of the filter").fill("Risky ones");
    await page.keyboard.press("Enter");
    await page.goto(`${stage.site}/plans/three/list`);
    await until("all tasks are listed", async () => (await list.getByRole("option").count()) === 4);
    await page.getByRole("button", { name: "Risky ones", exact: true }).click();
    await until("two tasks are listed again", async () => (await list.getByRole("option").count()) === 2);
    await page.getByRole("button", { name: "Select these 2" }).click();
    await bar.getByRole("button", { name: "Retry (2)" }).click();
    await page.getByText("2 tasks retried").waitFor();
    assert.equal((await task(stage, "three", "build")).standing, "ready");
    assert.deepEqual(browser.complaints, []);
  });

const editing = () =>
  play("editing", CONFIGURATION, async (stage, browser) => {
    await importPlan(stage, "release", "Release 4.2", [...TASKS, { id: "group", description: "After the release" }]);
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/release/list/deploy`);
    const panel = page.getByRole("complementary", { name: "Task deploy" });
    await panel.getByText("Deploy to staging").waitFor();
    await page.keyboard.press("e");
    const form = page.getByRole("dialog", { name: "Edit deploy" });
    const on = form.getByRole("combobox", { name: "Depends on" });
    await on.fill("warn");
    await form.getByRole("option", { name: /Read every warning/ }).waitFor();
    await page.keyboard.press("Enter");
    await form.getByRole("button", { name: "Remove build" }).click();
    const inside = form.getByRole("combobox", { name: /^Inside/ });
    await inside.fill("after the");
    await form.getByRole("option", { name: /After the release/ }).waitFor();
    await page.keyboard.press("Enter");
    // The inputs are those of the shape.
    await form.getByLabel("Executor").selectOption("steps");
    await form.getByLabel("Shape").selectOption("patch");
    await form.getByLabel("file", { exact: true }).fill("src/lib.rs");
    await form.getByLabel(/^mode/).selectOption("full");
    await form.getByText("Check, locks, retry, limits").click();
    await form.getByLabel(/^Locks/).fill("staging, disk:shared");
    await form.getByLabel("Attempts").fill("3");
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByText("deploy was changed").waitFor();
    const found = await task(stage, "release", "deploy");
    assert.deepEqual([found.depends_on, found.parent], [["lint"], "group"]);
    assert.deepEqual(found.work, { executor: "steps", inputs: { file: "src/lib.rs", mode: "full" }, shape: "patch" });
    assert.deepEqual(found.locks, ["staging", { key: "disk", mode: "shared" }]);
    assert.equal(found.retry.attempts, 3);
    // Undo takes all of it back.
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Undone: change task deploy").waitFor();
    const back = await task(stage, "release", "deploy");
    assert.deepEqual([back.depends_on, back.parent, back.work, back.locks], [["build"], undefined, undefined, undefined]);

    // In the tree a task is dragged into another, and moved out again with the keys.
    await stage.api("POST", "/plans/release/edits", { operations: [{ op: "revise", task: "lint", set: { work: { executor: "steps", inputs: {} } } }] });
    await page.goto(`${stage.site}/plans/release/tree/announce`);
    const tree = page.getByRole("tree");
    const row = (words) => tree.getByRole("treeitem").filter({ hasText: words });
    await row("Announce").waitFor();
    const over = async (words) => {
      // The second move is the one that tells where it is.
      await row(words).hover();
      await row(words).hover();
    };
    await over("Announce");
    await page.mouse.down();
    await over("After the release");
    await tree.locator(".over").waitFor();
    // A task that has work takes none in, and does not look as if it did.
    await over("Read every warning");
    await tree.locator(".over").waitFor({ state: "detached" });
    await over("After the release");
    await tree.locator(".over").waitFor();
    await page.mouse.up();
    await page.getByText("announce stands inside group now").waitFor();
    assert.equal((await task(stage, "release", "announce")).parent, "group");
    await until("the tree shows it", async () => (await row("Announce").getAttribute("aria-level")) === "2");
    await page.keyboard.press("Alt+ArrowLeft");
    await page.getByText("announce stands after group now").waitFor();
    assert.equal((await task(stage, "release", "announce")).parent, undefined);
    // What somebody else has changed since is not undone by itself.
    await stage.api("PATCH", "/plans/release", { goal: "another one" });
    await page.keyboard.press("Control+z");
    await page.getByText("The plan has changed since").waitFor();
    assert.equal((await stage.api("GET", "/plans/release")).goal, "another one");
    assert.deepEqual(browser.complaints.filter((one) => !one.includes("412")), []);
  });

const empty = () =>
  play("empty-plan", "", async (stage, browser) => {
    await importPlan(stage, "empty", "Nothing yet", []);
    const page = await browser.signIn(stage);
    await page.getByRole("row", { name: /Nothing yet/ }).getByText("no tasks").waitFor();
    for (const view of ["graph", "tree", "list", "board"]) {
      await page.goto(`${stage.site}/plans/empty/${view}`);
      await page.getByRole("button", { name: "Add a task", exact: true }).and(page.locator(".main")).waitFor();
    }
    assert.equal(await page.locator("header .main").count(), 0, "nothing can be started");
    await page.getByRole("button", { name: "Add a task", exact: true }).and(page.locator(".main")).click();
    const form = page.getByRole("dialog", { name: "Add a task" });
    await form.getByLabel("Description").fill("The first");
    await form.getByRole("button", { name: "Add", exact: true }).click();
    await column(page, "Ready").getByRole("link", { name: "The first" }).waitFor();
    assert.deepEqual(browser.complaints, []);
  });

const creating = () =>
  play("creating", "", async (stage, browser) => {
    const page = await browser.signIn(stage);
    const dialog = page.getByRole("dialog", { name: "New plan" });
    const begin = async (way) => {
      await page.goto(`${stage.site}/?new=plan`);
      await dialog.getByRole("button", { name: way, exact: true }).click();
    };
    const made = async (title) => {
      await dialog.getByRole("button", { name: "Create plan" }).click();
      await page.getByRole("heading", { level: 1, name: title }).waitFor();
      return new URL(page.url()).pathname.split("/")[2];
    };
    await begin("Form");
    await dialog.getByRole("textbox", { name: "Title" }).fill("From a form: (after: nothing)");
    await dialog.getByLabel(/^Tasks, one a line/).fill("- [ ] First\nSecond (after: x)\n\n");
    await dialog.getByLabel(/one after the other/).check();
    const formed = await made("From a form: (after: nothing)");
    assert.deepEqual((await stage.api("GET", `/plans/${formed}/tasks`)).tasks.map((one) => [one.id, one.description, one.depends_on ?? []]), [
      ["t1", "First", []],
      ["t2", "Second (after: x)", ["t1"]],
    ]);

    // A text is shown as it is understood, and its problems before it is sent.
    await begin("Text or file");
    const text = dialog.getByLabel(/The plan in any format/);
    await text.fill("# Release\n\n- [ ] a: First  (after: none)\n");
    await dialog.getByRole("alert").getByText(/none/).first().waitFor();
    assert.equal(await dialog.getByRole("button", { name: "Create plan" }).isDisabled(), true, "it has problems");
    // What is inside another task stands inside it, and what is done says so.
    await text.fill("# Release\n\n- [ ] a: First\n  - [ ] c: Part of it\n- [x] b: Second\n");
    const listed = dialog.getByRole("region", { name: "Preview" }).getByRole("listitem");
    await listed.filter({ hasText: "Second" }).getByText("done").waitFor();
    const left = async (words) => (await listed.filter({ hasText: words }).boundingBox()).x;
    assert.ok((await left("Part of it")) > (await left("First")), "it is inside");
    await text.fill("# Release\n\n- [ ] a: First\n- [ ] b: Second  (after: a)\n");
    await dialog.getByRole("region", { name: "Preview" }).getByText("after a").waitFor();
    await dialog.getByRole("button", { name: "Text", exact: true }).click();
    await dialog.getByRole("region", { name: "Preview" }).getByRole("heading", { name: "Release" }).waitFor();
    await made("Release");

    await begin("Text or file");
    await dialog.getByLabel("Choose a file…").setInputFiles({ name: "plan.md", mimeType: "text/markdown", buffer: Buffer.from("# From a file\n\n- [ ] a: Only one\n") });
    await dialog.getByText("1 task", { exact: false }).first().waitFor();
    await made("From a file");

    await begin("Template");
    await dialog.getByRole("button", { name: /^Migration/ }).click();
    await dialog.getByText("7 tasks").waitFor();
    const migration = await made("Move to the new database");
    assert.equal((await stage.api("GET", `/plans/${migration}`)).counts.total, 7);

    await begin("With a model");
    await dialog.getByLabel("What the plan is for").fill("Don't break it");
    await dialog.getByText(`waypost plan 'Don'\\''t break it'`).waitFor();
    assert.deepEqual(browser.complaints.filter((one) => !one.includes("422")), []);
  });

const comments = () =>
  play("comments", "", async (stage, browser) => {
    await importPlan(stage, "release", "Release 4.2");
    await stage.api("POST", "/plans/release/actions/start", {});
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/release/list/build`);
    const panel = page.getByRole("complementary", { name: "Task build" });
    await panel.getByText("Comments").waitFor();
    // With the keys: C leads to the comment.
    await page.keyboard.press("c");
    await page.keyboard.type("The mirror is read-only <b>until</b> Monday");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await panel.getByText("The mirror is read-only <b>until</b> Monday").waitFor();
    await panel.getByLabel("New label").fill("risky");
    await page.keyboard.press("Enter");
    await panel.getByRole("button", { name: "Remove the label risky" }).waitFor();
    await panel.getByRole("button", { name: "Assign to me" }).click();
    await panel.getByText("person:ada", { exact: true }).nth(1).waitFor();
    // The agent that claims the task reads it, and answers.
    const agent = await stage.agent("builder");
    const told = await agent.call("task_next", { plan: "release", task: "build" });
    assert.deepEqual(told.comments.map((one) => [one.by, one.text]), [["person:ada", "The mirror is read-only <b>until</b> Monday"]]);
    assert.deepEqual([told.labels, told.assignee], ["risky", "person:ada"]);
    await agent.call("plan_edit", { plan: "release", ops: [{ op: "comment", task: "build", text: "Understood" }] });
    await panel.getByText("Understood").waitFor();
    assert.deepEqual(browser.complaints, []);
  });

const changed = () =>
  play("changed", '[executors.reader]\nkind = "human"\n', async (stage, browser) => {
    await importPlan(stage, "release", "Release 4.2", [{ id: "read", description: "Read the notes", work: { executor: "reader", inputs: {} } }]);
    await stage.api("POST", "/plans/release/actions/start", {});
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/release/list/read`);
    await page.getByRole("complementary", { name: "Task read" }).getByRole("button", { name: "Mark done" }).click();
    const dialog = page.getByRole("dialog", { name: "Mark done" });
    await dialog.getByText("Read the notes").waitFor();
    await page.keyboard.type("all of it");
    await stage.api("POST", "/plans/release/edits", { operations: [{ op: "revise", task: "read", set: { description: "Read the notes and the licences" } }] });
    const done = dialog.getByRole("button", { name: "Mark done" });
    await done.click();
    await dialog.getByText("What it asks has changed while this was open").waitFor();
    assert.equal(await done.isDisabled(), true);
    assert.equal((await task(stage, "release", "read")).standing, "ready");
    await dialog.getByRole("button", { name: "Show what it asks now" }).click();
    await dialog.locator("p").filter({ hasText: "Read the notes and the licences" }).waitFor();
    assert.equal(await dialog.getByRole("textbox").inputValue(), "all of it");
    await done.click();
    await dialog.waitFor({ state: "detached" });
    await until("it is done", async () => (await task(stage, "release", "read")).standing === "done");
    assert.deepEqual(browser.complaints.filter((one) => !one.includes("409") && !one.includes("412")), []);
  });

const careful = () =>
  play("careful", "", async (stage, browser) => {
    const tasks = [{ id: "p", description: "Parent of others" }, { id: "q", description: "Quiet" }, { id: "r", description: "Rather" }];
    await importPlan(stage, "care", "Care", tasks);
    await stage.api("POST", "/plans/care/actions/start", {});
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/care/tree/q`);
    const form = page.getByRole("dialog", { name: "Edit q" });
    const description = form.getByLabel("Description");
    await page.getByRole("complementary", { name: "Task q" }).getByText("Quiet").waitFor();
    await page.keyboard.press("e");
    await description.waitFor();
    await until("the form begins with what it is about", () => description.evaluate((element) => element === document.activeElement));
    // Escape asks before it throws away what was typed.
    await description.fill("Quiet, as typed");
    await page.keyboard.press("Escape");
    await form.getByRole("button", { name: "Keep editing" }).click();
    assert.equal(await description.inputValue(), "Quiet, as typed");
    // Words that nobody chose are no dependency, and are not dropped.
    const depends = form.getByRole("combobox", { name: "Depends on" });
    await depends.fill("nope");
    await form.getByRole("button", { name: "Save" }).click();
    await form.getByRole("alert").getByText("no task is called “nope”").waitFor();
    // An id means its task, whatever other titles say.
    await depends.fill("r");
    await depends.press("Enter");
    await form.getByRole("button", { name: "Remove r" }).waitFor();
    await form.getByRole("button", { name: "Save" }).click();
    await form.waitFor({ state: "detached" });
    assert.deepEqual((await stage.api("GET", "/plans/care/tasks/q")).depends_on, ["r"]);
    // Two edits are undone one after the other.
    await page.keyboard.press("Alt+ArrowUp");
    const first = async () => (await stage.api("GET", "/plans/care/tasks")).tasks[0].id;
    await until("q stands first", async () => (await first()) === "q");
    await page.keyboard.press("Control+z");
    await until("p stands first", async () => (await first()) === "p");
    await page.getByText("q stands before p now").waitFor({ state: "detached" });
    await page.keyboard.press("Control+z");
    await until("q depends on nothing", async () => ((await stage.api("GET", "/plans/care/tasks/q")).depends_on ?? []).length === 0);
    // What was typed about a task or the plan is there again when somebody comes back.
    const comment = page.getByRole("complementary").getByRole("textbox", { name: "Comment" });
    await comment.fill("half a thought");
    await page.getByRole("treeitem", { name: /Rather/ }).click();
    await page.getByRole("complementary", { name: "Task r" }).waitFor();
    assert.equal(await comment.inputValue(), "");
    await page.getByRole("treeitem", { name: /Quiet/ }).click();
    await until("the comment is there again", async () => (await comment.inputValue()) === "half a thought");
    await comment.fill("");
    const view = (name) => page.getByRole("navigation", { name: "Views of the plan" }).getByRole("link", { name });
    await view("Document").click();
    await page.getByRole("region", { name: "Document" }).getByRole("button", { name: "Edit", exact: true }).click();
    await page.getByLabel("Goal").fill("half a goal");
    await view("Tree").click();
    await view("Document").click();
    assert.equal(await page.getByLabel("Goal").inputValue(), "half a goal");
    await page.getByRole("button", { name: "Discard" }).click();
    // A hasty Enter in the palette goes somewhere, and changes nothing.
    const { version } = await stage.api("GET", "/plans/care");
    await page.keyboard.press("Control+k");
    const palette = page.getByRole("dialog", { name: "Go to a plan, a task or a command" });
    await palette.getByRole("option").first().waitFor();
    await page.keyboard.press("Enter");
    await palette.waitFor({ state: "detached" });
    assert.equal((await stage.api("GET", "/plans/care")).version, version);
    assert.deepEqual(browser.complaints, []);
  });

const beside = () =>
  play("beside", "", async (stage, browser) => {
    await importPlan(stage, "shared", "Shared");
    const edit = (...operations) => stage.api("POST", "/plans/shared/edits", { operations });
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/shared/history`);
    await edit({ op: "revise", task: "lint", set: { notes: "first" } });
    // What is restored is what was shown, although others write meanwhile.
    await page.getByRole("button", { name: "Restore version 1" }).click();
    const dialog = page.getByRole("dialog", { name: "Restore version 1?" });
    await dialog.getByText("first").waitFor();
    let go = () => {};
    await page.route("**/diff?*", async (route) => {
      await new Promise((then) => (go = then));
      await route.continue().catch(() => null);
    });
    const asked = page.waitForRequest("**/diff?*");
    await edit({ op: "revise", task: "announce", set: { notes: "somebody else's" } });
    await asked;
    assert.equal(await dialog.getByRole("button", { name: "Restore", exact: true }).isDisabled(), true);
    await page.unroute("**/diff?*");
    go();
    await dialog.getByText("somebody else's").waitFor();
    await page.keyboard.press("Escape");
    // Two windows label one task, neither knowing what the other does.
    await page.goto(`${stage.site}/plans/shared/list/lint`);
    const panel = page.getByRole("complementary", { name: "Task lint" });
    await panel.getByLabel("New label").fill("here");
    await edit({ op: "label", task: "lint", add: ["elsewhere"] });
    await panel.getByRole("button", { name: "Add", exact: true }).click();
    await until("both labels are there", async () => (await task(stage, "shared", "lint")).state.labels?.length === 2);
    // A task that others depend on is deleted, and they no longer wait for it. The button is whole.
    await page.goto(`${stage.site}/plans/shared/list/build`);
    const build = page.getByRole("complementary", { name: "Task build" });
    await build.getByLabel("More actions on the task").click();
    const [inside, button] = await Promise.all([build.boundingBox(), build.getByRole("button", { name: "Delete task…" }).boundingBox()]);
    assert.ok(button.x >= inside.x && button.x + button.width <= inside.x + inside.width, JSON.stringify([inside, button]));
    await build.getByRole("button", { name: "Delete task…" }).click();
    const sure = page.getByRole("dialog", { name: "Delete build?" });
    await sure.getByText("depends on it, and will no longer wait for it").waitFor();
    await sure.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("build was deleted").waitFor();
    assert.deepEqual((await task(stage, "shared", "deploy")).depends_on ?? [], []);
    assert.deepEqual(browser.complaints, []);
  });

const away = () =>
  play("away", "", async (stage, browser) => {
    await importPlan(stage, "there", "There");
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/inbox`);
    await page.getByRole("status").getByText("live", { exact: true }).waitFor();
    // The parts of the page come ahead, so that all of them work while the server is away.
    await until("the parts are there", () => page.evaluate(() => performance.getEntriesByType("resource").some((one) => one.name.includes("markdown"))));
    await stage.crash();
    await page.getByRole("status").getByText("not connected").waitFor();
    await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Plans" }).click();
    await page.getByText("The plans could not be read").waitFor();
    assert.equal(await page.getByText("No plans yet").count(), 0);
    await page.getByRole("button", { name: /^Search/ }).first().click();
    await page.getByRole("dialog", { name: "Go to a plan, a task or a command" }).waitFor();
    await page.keyboard.press("Escape");
    await stage.serve();
    await page.getByRole("link", { name: "There" }).waitFor();
    assert.equal(await page.getByText("The server does not respond").count(), 0);
  });

export const doing = [
  ["the palette finds a task of any plan and runs a command, with the keys alone", palette],
  ["a card that is moved does what its button does, be it dragged or moved with the keys", boards],
  ["several plans and tasks are archived, labelled and retried at once, and approvals reviewed one by one", bulk],
  ["a task is edited with pickers and the fields of its shape, moved in the tree, and all of it undone", editing],
  ["an empty plan offers its first task where it is empty", empty],
  ["a plan comes from a form, a text, a file or a template", creating],
  ["a decision about what has changed meanwhile is not taken, and what is asked now is shown", changed],
  ["nothing that was typed is lost or taken for something else, and a hasty key changes nothing", careful],
  ["what others write at the same moment is neither restored over nor lost, and a task that others need can be deleted", beside],
  ["a page without its server says nothing about the store, and all of it works again", away],
  ["what a person says about a task reaches the agent that claims it", comments],
];
