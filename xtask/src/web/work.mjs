// What ran over time and what it cost, who works now and on which files, and plans that a model writes.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

import { axe, play, until } from "./stage.mjs";

const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"];

/** Nothing that axe finds, light or dark. */
async function accessible(page) {
  await page.evaluate(axe);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const found = await page.evaluate((values) => window.axe.run(document, { runOnly: { type: "tag", values }, resultTypes: ["violations"] }), RULES);
    assert.deepEqual(found.violations.map((one) => `${colorScheme}: ${one.id}: ${one.nodes[0].html} ${one.nodes[0].failureSummary}`), []);
  }
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "no-preference" });
}

const runs = () =>
  play("runs", "", async (stage, browser) => {
    const nightly = (id) => ({ format: "waypost/1", id, title: "Nightly packages", tasks: [{ id: "fetch", description: "Fetch" }, { id: "build", description: "Build", depends_on: ["fetch"] }] });
    for (const id of ["monday", "tuesday"]) await stage.run("person:ada", "import", stage.write(`${id}.json`, nightly(id)));
    await stage.run("person:ada", "import", stage.write("other.json", { ...nightly("other"), title: "Something else" }));
    const agent = await stage.agent("builder");
    const does = async (plan, task, status) => {
      await agent.call("task_next", { plan, task });
      await agent.call("task_report", { plan, task, status, ...(status === "failed" ? { text: "no compiler" } : {}) });
    };
    for (const plan of ["monday", "tuesday"]) await stage.api("POST", `/plans/${plan}/actions/start`, {});
    await does("monday", "fetch", "done");
    await does("monday", "build", "failed");
    await stage.api("POST", "/plans/monday/actions/retry", {});
    await does("monday", "build", "done");
    await does("tuesday", "fetch", "done");

    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/tuesday/timeline`);
    await page.getByRole("button", { name: "Runs and cost" }).focus();
    await page.keyboard.press("Enter");
    await page.waitForURL(/lanes=runs/);
    const all = page.getByRole("table").first();
    // The latest first; a plan with another title is no run of this one.
    await until("both runs are listed", async () => (await all.getByRole("rowheader").count()) === 2);
    assert.match(await all.getByRole("rowheader").first().textContent(), /tuesday/);
    const monday = all.getByRole("row").filter({ hasText: "monday" });
    assert.match((await monday.textContent()).replace(/\\s+/g, " "), /completed.*3.*1.*2 of 2/);
    const build = page.getByRole("row", { name: /Build/ });
    await build.getByText(/done, .*2 attempts/).waitFor();
    await page.getByRole("heading", { name: "Days of this plan" }).waitFor();
    await page.getByText("Planning has used 0 tokens").waitFor();
    await accessible(page);
    // A run leads to its plan, with the keys alone.
    await monday.getByRole("link").focus();
    await page.keyboard.press("Enter");
    await page.waitForURL(/plans\/monday\/timeline\?lanes=runs/);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByRole("heading", { name: "Days of this plan" }).waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is wider than a phone");
    await accessible(page);
    assert.deepEqual(browser.complaints, []);
  });

const AGENT = `
[executors.coder]
kind = "agent"
command = ["sh", "agent.sh"]
prompt_to = "stdin"
worktree = true
author = "Builder <builder@example.org>"
timeout_seconds = 60
`;

const git = (stage, ...words) => execFileSync("git", ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", ...words], { cwd: stage.workspace, encoding: "utf8" });

const changes = () =>
  play("changes", AGENT, async (stage, browser) => {
    // It edits, reports, waits for its file outside of the worktree, and is done.
    const go = join(stage.folder, "go");
    stage.write("agent.sh", `cat > /dev/null; printf 'one\\n2 <b>two</b>\\n' > kept.txt; echo fresh > new.txt; echo "waypost:progress half of it" >&2; until [ -e ${go} ]; do sleep 0.05; done; echo done`);
    stage.write("kept.txt", "one\ntwo\n");
    stage.write(".gitignore", ".waypost/\n");
    git(stage, "init", "--quiet");
    git(stage, "add", "kept.txt", "agent.sh", ".gitignore");
    git(stage, "commit", "--quiet", "-m", "First");
    await stage.crash();
    await stage.serve();
    await stage.run("person:ada", "import", stage.write("plan.json", { format: "waypost/1", id: "code", title: "Code", tasks: [{ id: "edit", description: "Edit the file", work: { executor: "coder", inputs: {} } }] }));
    await stage.approve("code");
    stage.work();
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/agents`);
    const row = page.getByRole("table", { name: "Who works on what" }).getByRole("row").filter({ hasText: "Edit the file" });
    await row.getByText("half of it").waitFor();
    await row.getByText(/left|no end/).waitFor();
    await accessible(page);
    await row.getByRole("button", { name: "Changes of edit" }).focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Changes: edit, attempt 1" });
    await dialog.getByText("In its worktree, perhaps not committed yet").waitFor();
    await dialog.getByText("2 files").waitFor();
    // What an agent wrote is text and nothing else.
    await dialog.getByText("2 <b>two</b>").waitFor();
    await dialog.getByText("fresh").waitFor();
    await accessible(page);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    // Readers do not see what is not committed.
    const { token } = await stage.run("person:ada", "token", "new", "--role", "reader", "--name", "rita");
    const refused = await fetch(`${stage.site}/api/v1/plans/code/tasks/edit/changes`, { headers: { authorization: `Bearer ${token}` } });
    assert.equal(refused.status, 403);
    const before = git(stage, "status", "--porcelain");
    execFileSync("touch", [go]);
    await until("the task is done", async () => (await stage.api("GET", "/plans/code/tasks/edit")).standing === "done");
    // The worktree is gone, and its branch says the same.
    assert.equal(existsSync(join(stage.workspace, ".waypost/worktrees/code/edit.1")), false);
    await page.goto(`${stage.site}/plans/code/log/edit`);
    await page.getByRole("button", { name: "Changes of its worktree" }).click();
    await dialog.getByText("Committed on its branch").waitFor();
    await dialog.getByText("2 <b>two</b>").waitFor();
    assert.equal(git(stage, "status", "--porcelain"), before);
    assert.equal(readFileSync(join(stage.workspace, "kept.txt"), "utf8"), "one\ntwo\n");
    assert.deepEqual(browser.complaints, []);
  });

/** A model that answers what it is told to, once \`release\` was called. */
async function model(answers) {
  let release;
  const held = new Promise((go) => (release = go));
  const server = createServer((request, reply) => {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", async () => {
      await held;
      const content = answers.shift() ?? "{}";
      const usage = { prompt_tokens: 120, completion_tokens: 30, total_tokens: 150 };
      if (JSON.parse(body || "{}").stream) {
        reply.writeHead(200, { "content-type": "text/event-stream" });
        reply.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`);
        reply.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage })}\n\n`);
        reply.end("data: [DONE]\n\n");
      } else {
        reply.writeHead(200, { "content-type": "application/json" });
        reply.end(JSON.stringify({ choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }], usage }));
      }
    });
  });
  await new Promise((go) => server.listen(0, "127.0.0.1", go));
  return { url: `http://127.0.0.1:${server.address().port}/v1`, release, end: () => server.close() };
}

const written = async () => {
  const cycle = JSON.stringify({ title: "Auth", tasks: [{ id: "a", description: "First", depends_on: ["b"] }, { id: "b", description: "Second", depends_on: ["a"] }] });
  const good = JSON.stringify({ title: "Auth with JWT", tasks: [{ id: "read", description: "Read the code" }, { id: "write", description: "Write the tokens", depends_on: ["read"] }] });
  const own = await model([cycle, good]);
  try {
    await play("written", `[models.scripted]\napi = "openai"\nbase_url = "${own.url}"\nmodel = "m"\nprice_in = 1.0\nprice_out = 2.0\nretries = 0\n\n[planner]\nrepairs = 2\n`, async (stage, browser) => {
      const page = await browser.signIn(stage);
      await page.goto(`${stage.site}/?new=plan`);
      const dialog = page.getByRole("dialog", { name: "New plan" });
      await dialog.getByRole("button", { name: "With a model" }).click();
      await dialog.getByLabel("What the plan is for").fill("Refactor auth to JWT");
      await dialog.getByText("scripted is asked with the keys").waitFor();
      await accessible(page);
      await dialog.getByRole("button", { name: "Write the plan" }).focus();
      await page.keyboard.press("Enter");
      await dialog.getByText(/scripted writes for/).waitFor();
      // One at a time, and only by people.
      const again = await stage.api("POST", "/planner/jobs", { goal: "another" }).catch((error) => error.message);
      assert.match(again, /409.*already/);
      const { token } = await stage.run("person:ada", "token", "new", "--agent", "planner");
      const refused = await fetch(`${stage.site}/api/v1/planner/jobs`, { method: "POST", headers: { authorization: `Bearer ${token}`, "content-type": "application/json" }, body: '{"goal": "mine"}' });
      assert.equal(refused.status, 403);
      // The window can be closed; it goes on, and is found again.
      own.release();
      await dialog.getByText(/again: .*depend on each other/).waitFor();
      await dialog.getByRole("link", { name: "Open the draft" }).click();
      await page.getByRole("heading", { level: 1, name: "Refactor auth to JWT" }).waitFor();
      await page.locator("header").getByText("draft").first().waitFor();
      const plan = /plans\/([^/]+)/.exec(page.url())[1];
      const { phase, created_by } = await stage.api("GET", `/plans/${plan}`);
      assert.deepEqual([phase, created_by], ["draft", "agent:scripted"]);
      // What it cost is beside the timeline and among the agents.
      await page.goto(`${stage.site}/plans/${plan}/timeline?lanes=runs`);
      await page.getByText("Planning has used 300 tokens").waitFor();
      await page.getByRole("table", { name: "Model" }).getByRole("row", { name: /scripted 2 240 60/ }).waitFor();
      await page.goto(`${stage.site}/agents`);
      await page.getByRole("table", { name: "Plan" }).getByRole("link", { name: plan }).waitFor();
      await accessible(page);
      assert.deepEqual(browser.complaints, []);
    });
  } finally {
    own.end();
  }
};

export const work = [
  ["the runs of a plan stand beside each other, with their tasks, days and cost", runs],
  ["the page of agents says who works on what, and what an agent in a worktree changed", changes],
  ["a model writes a plan from the browser: one at a time, as a draft, with what it cost", written],
];
