// What needs a person: the states of plans, the inbox, logs and the history of decisions.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { Browser, play, until } from "./stage.mjs";

const CONFIGURATION = `
[executors.steps]
kind = "process"
command = ["sh", "steps.sh"]
timeout_seconds = 60

[executors.reader]
kind = "human"
`;

const work = (part) => ({ executor: "steps", inputs: { part } });
const plan = (id, title, tasks) => ({ format: "waypost/1", id, title, tasks });
const status = (page, title) => page.getByRole("row").filter({ hasText: title }).getByRole("cell").nth(1);

/** Plans in every state that people tell apart. No worker serves the queue of the first. */
async function fill(stage) {
  const bring = (who, text) => stage.run(who, "import", stage.write(`${text.id}.json`, text));
  const start = (id) => stage.api("POST", `/plans/${id}/actions/start`, {});
  await bring("person:ada", { ...plan("idle", "Idle one", [{ id: "a", description: "A", work: work("a") }]), queue: "gpu" });
  await stage.approve("idle");
  await bring("person:ada", plan("human", "Human one", [{ id: "read", description: "Read the contract", work: { executor: "reader" } }, { id: "sign", description: "Sign", depends_on: ["read"] }]));
  await stage.approve("human");
  await bring("person:ada", plan("fails", "Failing one", [{ id: "a", description: "Fetch" }, { id: "b", description: "Build", depends_on: ["a"] }, { id: "c", description: "Other" }]));
  await start("fails");
  await bring("agent:planner", plan("asks", "Asking one", [{ id: "a", description: "Copy the orders" }, { id: "b", description: "Switch", depends_on: ["a"] }]));
  await start("asks");
  await bring("agent:planner", plan("rejected", "Rejected one", [{ id: "a", description: "A", work: work("a") }]));
  await stage.api("POST", "/plans/rejected/actions/request-approval", {});
  await stage.api("POST", "/plans/rejected/actions/reject", { reason: "split it" });
  await bring("agent:planner", plan("waits", "Waiting one", [{ id: "a", description: "A", work: work("a") }]));
  await stage.api("POST", "/plans/waits/actions/request-approval", {});
  const agent = await stage.agent("copier");
  await agent.call("task_next", { plan: "fails", task: "a" });
  await agent.call("task_report", { plan: "fails", task: "a", status: "failed", text: "no disk" });
  await agent.call("task_next", { plan: "asks", task: "a" });
  await agent.call("task_report", { plan: "asks", task: "a", status: "question", text: "What about old orders?", choices: ["Copy them", "Leave them out"] });
}

const truth = () =>
  play("truth", CONFIGURATION, async (stage, browser) => {
    await fill(stage);
    const page = await browser.signIn(stage);
    const states = { "Idle one": "idle: no worker", "Human one": "your task", "Failing one": "1 task failed", "Asking one": "1 question", "Rejected one": "rejected by ada", "Waiting one": "needs approval" };
    for (const [title, label] of Object.entries(states)) await status(page, title).getByText(label, { exact: true }).waitFor();
    // What needs a person stands first, and alone if that is wanted.
    const titles = () => page.locator("a.title").allTextContents();
    const needing = ["Waiting one", "Asking one", "Failing one", "Human one"];
    assert.deepEqual((await titles()).slice(0, 4).sort(), [...needing].sort());
    await page.getByRole("button", { name: /^Needs me/ }).click();
    await page.waitForURL(/needs_you=true/);
    await until("only what needs a person is left", async () => (await titles()).length === 4);
    // The same words in the plan, and percent is done of all.
    await page.goto(`${stage.site}/plans/fails/list`);
    await page.locator("header").getByText("1 task failed", { exact: true }).waitFor();
    await page.locator("header").getByText("0 of 3 done").waitFor();
    await page.goto(`${stage.site}/plans/rejected/list`);
    await page.locator("header").getByText("rejected by ada", { exact: true }).waitFor();
    await page.locator("header").getByText("split it").waitFor();
    // A task that does not exist has no status.
    await page.goto(`${stage.site}/plans/human/list/reed`);
    const panel = page.getByRole("complementary", { name: "Task reed" });
    await panel.getByRole("heading", { name: "Task not found" }).waitFor();
    assert.equal(await panel.getByText("blocked").count(), 0);
    assert.deepEqual(browser.complaints.filter((one) => !one.includes("404")), []);
  });

const waiting = () =>
  play("inbox", CONFIGURATION, async (stage, browser) => {
    await fill(stage);
    const page = await browser.signIn(stage);
    const menu = page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: /Inbox/ });
    await menu.getByText("4 waiting for you").waitFor();
    await until("the title has the number", async () => (await page.title()) === "(4) Plans · Waypost");
    await until("the icon has the number", () => page.evaluate(() => document.querySelector("link[rel=icon]").href.startsWith("data:image/png")));
    await menu.click();
    for (const name of ["Approvals", "Questions", "Your tasks", "Failures"]) await page.getByRole("heading", { name }).waitFor();
    // By keys alone: the second item is the question, and its second choice is the answer.
    await page.keyboard.press("j");
    await page.locator("li[aria-current]").getByText("What about old orders?").waitFor();
    await page.keyboard.press("2");
    await page.getByText("Answered “What about old orders?”: Leave them out").waitFor();
    await page.getByRole("listitem").getByText("Answered: Leave them out").waitFor();
    assert.equal((await stage.api("GET", "/plans/asks/tasks/a")).state.answers[0].answer, "Leave them out");
    await page.getByRole("complementary").getByText("Answered asks/a: Leave them out").waitFor();
    // A person's task is done with a note, a failure is retried, and the number follows.
    await page.getByRole("button", { name: "Mark done…" }).click();
    await page.getByRole("dialog").getByRole("textbox").fill("read twice");
    await page.getByRole("dialog").getByRole("button", { name: "Mark done" }).click();
    await page.getByRole("listitem").getByText("Marked done").waitFor();
    await page.getByRole("button", { name: "Retry", exact: true }).click();
    await page.getByRole("listitem").getByText("Retried").waitFor();
    assert.equal((await stage.api("GET", "/plans/fails/tasks/a")).standing, "ready");
    await menu.getByText("1 waiting for you").waitFor();
    // What was done stays until the person asks for the list again.
    await page.getByRole("button", { name: "Refresh" }).click();
    for (const name of ["Questions", "Your tasks", "Failures"]) await page.getByRole("heading", { name }).waitFor({ state: "detached" });
    await page.getByRole("link", { name: /^Review & approve/ }).click();
    await page.waitForURL(/plans\/waits\/approval/);
    await stage.api("POST", "/plans/waits/actions/reject", { reason: "not now" });
    await menu.click();
    await page.getByRole("heading", { name: "Nothing waits for you" }).waitFor();
    assert.equal(await page.title(), "Inbox · Waypost");
    assert.deepEqual(browser.complaints, []);
  });

// 3,000 lines with colours; the error is in the middle. The second attempt waits for its file.
const STEPS = `
cat > /dev/null
if [ "$WAYPOST_ATTEMPT" -gt 1 ]; then
  echo "begins again" >&2
  until [ -e go ]; do sleep 0.05; done
  printf '\\033[32mwell\\033[0m done\\n' >&2
  exit 0
fi
echo "waypost:progress half way" >&2
i=0; while [ $i -lt 1500 ]; do i=$((i+1)); echo "line $i" >&2; done
printf '\\033[1;31merror\\033[0m: half_even \\033]0;title\\007differs\\033[2J\\n' >&2
while [ $i -lt 3000 ]; do i=$((i+1)); echo "line $i half_even" >&2; done
exit 1
`;

const logs = () =>
  play("logs", CONFIGURATION, async (stage, browser) => {
    stage.write("steps.sh", STEPS);
    await stage.run("person:ada", "import", stage.write("plan.json", plan("logs", "Logs", [{ id: "test", description: "Test it", work: work("a") }])));
    await stage.approve("logs");
    stage.work();
    await until("the first attempt failed", async () => (await stage.api("GET", "/plans/logs/tasks/test")).standing === "failed");
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/logs/log/test`);
    const log = page.getByRole("region", { name: "Log of attempt 1" });
    // It opens where the error is, in its colour, without what is no text.
    const error = log.locator(".line", { hasText: "error: half_even differs" });
    await until("the error is on screen", async () => (await error.boundingBox()) && error.evaluate((row) => row.getBoundingClientRect().top < innerHeight && row.getBoundingClientRect().top > 0));
    assert.equal(await error.locator(".fg-red.bold").textContent(), "error");
    assert.equal(await log.getByText("waypost:progress").count(), 0);
    assert.doesNotMatch(await log.textContent(), /\u001b|title|\[31m/);
    // Search goes from match to match.
    await page.getByLabel("Search the log").fill("half_even");
    await page.getByText("1 of 1,501").waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("2 of 1,501").waitFor();
    await page.getByLabel("Search the log").fill("");
    // Only errors; then a line has an address.
    await page.getByRole("button", { name: /^Errors 1/ }).click();
    await until("only errors are shown", async () => (await log.locator(".line").count()) === 1);
    await page.getByRole("button", { name: /^All/ }).click();
    await log.getByRole("link", { name: "Line 12", exact: true }).click();
    await page.waitForURL(/attempt=1&line=12/);
    await page.goto(`${stage.site}/plans/logs/log/test?attempt=1&line=2500`);
    await log.locator(".marked", { hasText: "line 2498" }).waitFor();
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download the log" }).click()]);
    assert.match(readFileSync(await file.path(), "utf8"), /half_even .*differs/);
    await page.getByRole("button", { name: "Wrap" }).click();
    await page.locator(".text.wrap").waitFor();
    // Another attempt is another tab; it is followed while it runs.
    await page.getByRole("button", { name: "Retry", exact: true }).click();
    await page.getByRole("navigation", { name: "Attempts" }).getByRole("link", { name: /Attempt 2/ }).click();
    const second = page.getByRole("region", { name: "Log of attempt 2" });
    await second.getByText("begins again").waitFor();
    await page.getByRole("button", { name: "Follow", pressed: true }).waitFor();
    stage.write("go", "");
    await second.locator(".fg-green", { hasText: "well" }).waitFor();
    assert.deepEqual(browser.complaints, []);
  });

// Longer than what is shown, and not of one byte a character.
const LONG = `
cat > /dev/null
awk 'BEGIN { for (i = 1; i <= 40000; i++) printf "Zeile %d: größer %0130d\\n", i, i > "/dev/stderr" }'
`;

const longLog = () =>
  play("long-log", CONFIGURATION, async (stage, browser) => {
    stage.write("steps.sh", LONG);
    await stage.run("person:ada", "import", stage.write("plan.json", plan("logs", "Logs", [{ id: "test", description: "Test it", work: work("a") }])));
    await stage.approve("logs");
    stage.work();
    await until("it is done", async () => (await stage.api("GET", "/plans/logs/tasks/test")).standing === "done");
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/logs/log/test`);
    await page.getByText(/only its last 4\.2 MB of 6\.\d MB are shown/).waitFor();
    // Its lines have the numbers that they have in the file.
    await page.goto(`${stage.site}/plans/logs/log/test?attempt=1&line=39000`);
    await page.getByRole("region", { name: "Log of attempt 1" }).locator(".marked", { hasText: "Zeile 39000: " }).waitFor();
    await page.reload();
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download the log" }).click()]);
    const whole = readFileSync(await file.path(), "utf8");
    assert.equal(file.suggestedFilename(), "test.1.log");
    assert.match(whole, /^Zeile 1: größer 0+1$/m);
    assert.match(whole, /^Zeile 40000: größer 0+40000$/m);
    assert.deepEqual(browser.complaints, []);
  });

/** More plans than a page of the list has. */
const MANY = 60;

const readers = () =>
  play("readers", CONFIGURATION, async (stage, browser) => {
    await fill(stage);
    for (let number = 0; number < MANY; number++) {
      await stage.api("POST", "/plans", { id: `many-${number}`, plan: plan(undefined, `Many ${number}`, [{ id: "a", description: "A", work: work("a") }]) });
      await stage.api("POST", `/plans/many-${number}/actions/request-approval`, {});
    }
    const page = await browser.signIn(stage);
    // Numbers are of everything, not of what is loaded.
    const needs = page.getByRole("button", { name: `Needs me ${MANY + 4}` });
    await needs.waitFor();
    await needs.click();
    const titles = page.locator("a.title");
    await until("a page is listed", async () => (await titles.count()) === 50);
    await page.getByRole("button", { name: `Show more of ${MANY + 4}` }).click();
    await until("all are listed", async () => (await titles.count()) === MANY + 4);
    // What needs an approval, an answer or a person comes before what failed.
    assert.equal(await titles.last().textContent(), "Failing one");

    // A reader is offered nothing that only others can do.
    const { token } = await stage.run("person:ada", "token", "new", "--role", "reader", "--name", "guest");
    const guest = await Browser.open();
    try {
      const other = await guest.context.newPage();
      await other.goto(stage.site);
      await other.getByLabel(/^Token/).fill(token);
      await other.getByRole("button", { name: "Sign in" }).click();
      await other.getByRole("button", { name: /^Needs a person/ }).first().waitFor();
      assert.equal(await other.getByText(/waiting for you|wait for you/).count(), 0);
      await other.goto(`${stage.site}/inbox`);
      await other.getByRole("heading", { name: "Nothing waits for you" }).waitFor();
      await other.getByText(`${MANY + 4} things wait for people`).waitFor();
      assert.equal(await other.getByRole("link", { name: /^Review/ }).count(), 0);
      assert.equal(await other.title(), "Inbox · Waypost");
    } finally {
      await guest.close();
    }
    assert.deepEqual(browser.complaints, []);
  });

const decisions = () =>
  play("decisions", "", async (stage, browser) => {
    await stage.run("person:ada", "import", stage.write("plan.json", plan("told", "Told", [{ id: "a", description: "Run it for 30 min" }, { id: "b", description: "B" }, { id: "z", description: "Stays open" }])));
    await stage.api("POST", "/plans/told/actions/start", {});
    const agent = await stage.agent("worker");
    for (const task of ["a", "b"]) {
      await agent.call("task_next", { plan: "told", task });
      await agent.call("task_report", { plan: "told", task, status: "done", text: "well" });
    }
    const { version } = await stage.api("GET", "/plans/told");
    await stage.api("POST", "/plans/told/edits", { operations: [{ op: "add", task: { id: "c", description: "One more" } }] });
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/told/history`);
    // How the plan ran is folded, and opens.
    const fold = page.getByRole("button", { name: new RegExp(`^Show versions \\d+ to ${version}$`) });
    await fold.waitFor();
    assert.equal(await page.getByRole("radio", { name: `Compare to version ${version}` }).count(), 0);
    await fold.click();
    await page.getByRole("radio", { name: `Compare to version ${version}` }).waitFor();
    // Two versions side by side.
    await page.goto(`${stage.site}/plans/told/history?from=1&to=${version + 1}`);
    await page.getByRole("heading", { name: `Version 1 → ${version + 1}` }).waitFor();
    await page.getByRole("table", { name: /beside/ }).getByText("One more").first().waitFor();
    // A restore shows first what it would do.
    await page.getByRole("button", { name: "Restore version 1" }).click();
    const dialog = page.getByRole("dialog", { name: "Restore version 1?" });
    await dialog.getByText("was removed").waitFor();
    await dialog.getByText("No result and no output is lost.").waitFor();
    await dialog.getByRole("button", { name: "Restore", exact: true }).click();
    await page.getByText("Version 1 is restored").waitFor();
    await page.getByLabel("Search history").fill("nobody wrote this");
    await page.getByText("No versions match").waitFor();
    assert.deepEqual(browser.complaints, []);
  });

const turns = () =>
  play("turns", CONFIGURATION, async (stage, browser) => {
    const tasks = [
      { id: "group", description: "All of it" },
      { id: "g1", description: "First part", parent: "group" },
      { id: "g2", description: "Second part", parent: "group" },
      { id: "g3", description: "Third part", parent: "group", depends_on: ["g2"] },
      { id: "read", description: "Read the contract", work: { executor: "reader" } },
    ];
    await stage.run("person:ada", "import", stage.write("pay.json", plan("pay", "Pay", tasks)));
    await stage.approve("pay");
    const agent = await stage.agent("copier");
    await agent.call("task_next", { plan: "pay", task: "g1" });
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/pay/tree`);
    const row = (title) => page.getByRole("treeitem").filter({ hasText: title });
    // A parent runs while a task in it runs, and no longer.
    await row("All of it").getByText("running").waitFor();
    await agent.call("task_report", { plan: "pay", task: "g1", status: "done", text: "well" });
    await agent.call("task_next", { plan: "pay", task: "g2" });
    await agent.call("task_report", { plan: "pay", task: "g2", status: "question", text: "Which one?" });
    await row("All of it").getByText("asking").waitFor();
    // What is a person's turn is so in every view, and in the header beside a question.
    await row("Read the contract").getByText("your task").waitFor();
    const header = page.locator("header").getByRole("link", { name: "your task" });
    await header.waitFor();
    await page.goto(`${stage.site}/plans/pay/board`);
    await page.getByLabel(/^Waits for a person, /).getByText("Read the contract").waitFor();
    await page.goto(`${stage.site}/plans/pay/graph`);
    await page.locator(".paper .box.person", { hasText: "your task" }).waitFor();
    await page.keyboard.press("n");
    await page.waitForURL(/graph\/g2/);
    await page.keyboard.press("n");
    await page.waitForURL(/graph\/read/);
    // A parent offers nothing that is always refused, and says what it waits for.
    await page.goto(`${stage.site}/plans/pay/list/group`);
    const panel = page.getByRole("complementary", { name: "Task group" });
    await panel.getByText("the tasks in it: g2 (asking), g3 (blocked)").waitFor();
    await panel.getByRole("button", { name: "Cancel task…" }).waitFor();
    assert.equal(await panel.getByRole("button", { name: /^(Mark done|Mark failed|Take it back|Answer|Skip)$/ }).count(), 0);
    await panel.getByRole("button", { name: "Hold" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Hold" }).click();
    await panel.getByText("held", { exact: true }).waitFor();
    await panel.getByRole("button", { name: "Release the hold" }).waitFor();
    // The inbox names who asked for the approval of this version, not who wrote an earlier one.
    await stage.run("person:ada", "import", stage.write("appr.json", plan("appr", "To be approved", [{ id: "a", description: "A", work: work("a") }])));
    await stage.run("agent:builder", "request-approval", "appr");
    await page.goto(`${stage.site}/inbox`);
    await page.getByText(/version 2 by agent:builder/).waitFor();
    assert.deepEqual(browser.complaints, []);
  });

export const inbox = [
  ["a parent and a person's task say whose turn it is in every view, and offer only what is taken", turns],
  ["a plan says what needs somebody most, in the list and in the plan", truth],
  ["the inbox has everything that waits, and keys are enough to answer", waiting],
  ["a log has its colours, opens at the error, and is searched, linked and followed", logs],
  ["a long log says how much of it is shown, and all of it can be saved", longLog],
  ["numbers are of everything that waits, and a reader is offered nothing that only people do", readers],
  ["the history folds how the plan ran, compares side by side, and shows what a restore does", decisions],
];
