// Every text that somebody can write into a plan tries to become more than text.
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

import { play, until } from "./stage.mjs";

/** What a field says: each would set `pwned`, or would be found in the page. */
const evil = (field) =>
  `${field}<img class="evil" src="x" onerror="window.pwned='${field}'"><script class="evil">window.pwned='${field}'</script>` +
  `"><svg class="evil" onload="window.pwned='${field}'"></svg>{{constructor.constructor('window.pwned=1')()}}`;
/** The same where there is little room and no spaces. */
const short = (field) => `${field}"><img/class="evil"/src=x/onerror=window.pwned=1>`;
const BODY = `# ${evil("heading")}

${evil("body")}

[click](javascript:window.pwned=1) [data](data:text/html,<script>window.pwned=1</script>) ![x](x" onerror="window.pwned=1)

<a class="evil" href="javascript:window.pwned=1">go</a> <iframe class="evil" srcdoc="<script>parent.pwned=1</script>"></iframe>
<form class="evil" action="https://example.org"><input name="password"></form> <style class="evil">body { display: none }</style>

| ${evil("cell")} |
|---|
| \`${evil("code")}\` |
`;

const CONFIGURATION = `
[executors.steps]
kind = "process"
command = ["sh", "steps.sh"]
timeout_seconds = 60
`;

const common = (task) => ({
  description: evil(`description of ${task}`),
  notes: evil("notes"),
  tools: [short("tool")],
  locks: [short(`lock-${task}`)],
});
const strange = short("task");
const another = `held'onmouseover='window.pwned=1'</script><svg/class="evil"/onload=window.pwned=1>`;
const TASKS = [
  { id: "fails", ...common("fails") },
  { id: "asks", ...common("asks") },
  { id: "goes", ...common("goes") },
  { id: "skips", ...common("skips") },
  { id: "gives", ...common("gives"), provides: short("provides") },
  { id: strange, ...common("strange"), depends_on: ["gives"] },
  { id: another, ...common("another") },
  { id: "inside", parent: strange, ...common("inside"), depends_on: ["fails"] },
  {
    id: "checked",
    ...common("checked"),
    check: { executor: "steps", inputs: { text: evil("input of a check") } },
    thinking: { reasoning: evil("reasoning"), digest: { summary: evil("summary"), key_decisions: [evil("decision")], artifacts: [short("artifact")] } },
  },
  { id: "runs", ...common("runs"), work: { executor: "steps", inputs: { text: evil("input"), [short("key")]: 1 } } },
];

async function fill(stage) {
  stage.write("steps.sh", `cat > /dev/null; cat evil.txt >&2; printf 'waypost:progress %s\\n' "$(head -n 1 evil.txt)" >&2; cat evil.txt; exit 1\n`);
  stage.write("evil.txt", `${evil("log")}\n`);
  stage.work();
  const agent = await stage.agent("intruder");
  const text = { title: evil("title"), goal: evil("goal"), status: evil("status"), body: BODY, queue: "", tasks: TASKS };
  const { plan } = await agent.call("plan_create", { text: JSON.stringify({ format: "waypost/1", id: "hostile", ...text }), format: "native" });
  await agent.call("plan_start", { plan, wait: 0 });
  await stage.approve(plan, evil("note"));
  const report = async (task, status, more) => {
    await agent.call("task_next", { plan, task });
    await agent.call("task_report", { plan, task, status, ...more });
  };
  await report("fails", "failed", { text: evil("error") });
  await report("asks", "question", { text: evil("question"), choices: [short("choice")] });
  await report("goes", "progress", { text: evil("progress") });
  await report("skips", "skipped", { text: evil("reason") });
  await report("gives", "done", { text: evil("result"), output: { [short("name")]: evil("output") }, sure: true });
  await report("checked", "done", { text: evil("report") });
  await agent.call("plan_edit", { plan, ops: [{ op: "add", id: "later", description: evil("added later") }] });
  const said = [{ op: "comment", task: "gives", text: evil("comment") }, { op: "label", task: "gives", labels: [short("label")] }, { op: "assign", task: "gives", assignee: short("assignee") }];
  await agent.call("plan_edit", { plan, ops: said });
  // Somebody with a strange name works on a task with a strange name.
  await stage.run(`agent:${short("holder")}`, "start", plan, another);
  await strangers(stage);
  // A second plan, whose owner and author have strange names, and which is rejected with strange words.
  const second = { format: "waypost/1", id: "second", title: evil("second"), owner: short("owner"), tasks: [{ id: "a", ...common("a") }] };
  await stage.run(`agent:${short("someone")}`, "import", stage.write("second.json", second));
  await stage.api("POST", "/plans/second/actions/request-approval", { message: evil("message") });
  await stage.api("POST", "/plans/second/actions/reject", { reason: evil("rejection") });
  return plan;
}

/** A worker that shares the store says strange things of itself: what others write into a shared store nobody has checked. */
async function strangers(stage) {
  const store = new DatabaseSync(join(stage.workspace, ".waypost", "waypost.db"), { timeout: 5_000 });
  const row = await until("a worker is in the store", () => store.prepare("SELECT until, record FROM workers LIMIT 1").get());
  const known = JSON.parse(row.record);
  const other = { ...known, name: short("worker"), host: evil("host"), queues: [short("queue")], executors: [short("executor")] };
  store.prepare("INSERT INTO workers (name, until, record) VALUES (?, ?, ?)").run(other.name, row.until, JSON.stringify(other));
  store.close();
}

const VIEWS = ["graph", "tree", "list", "board", "timeline", "document", "approval", "history", "events"];

/** Nothing that was written became a part of the page. */
async function harmless(page, where) {
  const found = await page.evaluate(() => ({
    pwned: window.pwned ?? null,
    evil: document.querySelectorAll(".evil, script:not([src]), iframe, object, embed, [onerror], [onload], [onclick]").length,
    links: [...document.querySelectorAll("a[href]")].map((link) => link.protocol).filter((kind) => !["http:", "https:", "mailto:"].includes(kind)),
  }));
  assert.deepEqual(found, { pwned: null, evil: 0, links: [] }, where);
}

const injection = () =>
  play("hostile", CONFIGURATION, async (stage, browser) => {
    const plan = await fill(stage);
    const page = await browser.signIn(stage);
    const visit = async (path, words) => {
      await page.goto(stage.site + path);
      await page.getByText(words).first().waitFor();
      await harmless(page, path);
    };
    await visit("/", "title<img");
    await visit("/inbox", "question<img");
    for (const words of ["error<img", short("choice")]) await page.getByText(words).first().waitFor();
    await visit("/events", "error<img");
    await visit(`/plans/${plan}/log/runs`, "log<img");
    await visit("/workers", "intruder");
    for (const words of [short("worker"), short("queue"), short("executor"), short("holder"), another]) {
      await page.getByText(words).first().waitFor();
    }
    await visit("/tasks", "description of");
    for (const words of [short("label"), "title<img"]) await page.getByText(words).first().waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByText("title<img").first().waitFor();
    await page.keyboard.type("description");
    await page.getByRole("dialog").getByText("description of").first().waitFor();
    await harmless(page, "the palette");
    for (const name of VIEWS) {
      await visit(`/plans/${plan}/${name}`, "title<img");
      await visit(`/plans/second/${name}`, "second<img");
    }
    await page.goto(`${stage.site}/plans/${plan}/document`);
    await page.locator(".markdown h1").waitFor();
    assert.ok((await page.locator(".markdown").textContent()).includes("<iframe class=\"evil\""), "the text is shown as it was written");
    await harmless(page, "the document as it is shown");
    await page.getByRole("button", { name: "Edit", exact: true }).click();
    await page.locator(".preview h1").waitFor();
    await harmless(page, "the preview");
    const told = { fails: "error<img", asks: "question<img", goes: "progress<img", skips: "reason<img", gives: "output<img", [strange]: "output<img", [another]: short("holder"), checked: "steps failed", runs: "input<img" };
    for (const [task, words] of Object.entries(told)) {
      await visit(`/plans/${plan}/list/${encodeURIComponent(task)}`, `description of`);
      const panel = page.getByRole("complementary");
      await panel.getByText(words).first().waitFor();
      for (const log of await panel.getByRole("button", { name: "Log", exact: true }).all()) await log.click();
      if (task === "checked") for (const said of ["log<img", "reasoning<img", "summary<img", "decision<img"]) await panel.getByText(said).first().waitFor();
      if (task === "gives") for (const said of ["comment<img", short("label"), short("assignee")]) await panel.getByText(said).first().waitFor();
      if (task === "runs") await panel.getByText("log<img").first().waitFor();
      await panel.getByRole("button", { name: "Edit" }).click();
      await page.getByRole("dialog").waitFor();
      await harmless(page, `the form of ${task}`);
      await page.keyboard.press("Escape");
    }
    assert.deepEqual(browser.complaints, []);
  });

/** Letters that reorder what follows, and letters that nobody sees. */
const TURNED = "\u202Egnp.exe";
const UNSEEN = "\u200b\u2060";

const turned = () =>
  play("turned", "", async (stage, browser) => {
    const tasks = [{ id: "a", description: `First ${TURNED}` }, { id: "b", description: UNSEEN }];
    await stage.run("agent:planner", "import", stage.write("turned.json", { format: "waypost/1", id: "turned", title: `Title ${TURNED}`, goal: `Goal ${TURNED}`, body: `Body ${TURNED}`, tasks }));
    await stage.run("agent:planner", "import", stage.write("unseen.json", { format: "waypost/1", id: "unseen", title: UNSEEN, tasks: [] }));
    const page = await browser.signIn(stage);
    await page.getByRole("link", { name: "Title \ufffdgnp.exe" }).waitFor();
    await page.getByRole("link", { name: "unseen" }).waitFor();
    for (const view of ["list", "tree", "document", "timeline", "graph", "history"]) {
      await page.goto(`${stage.site}/plans/turned/${view}`);
      await page.getByRole("heading", { level: 1, name: "Title \ufffdgnp.exe" }).waitFor();
      assert.equal(await page.title(), "Title \ufffdgnp.exe · Waypost");
      if (view === "list" || view === "tree") await page.getByText("First \ufffdgnp.exe").waitFor();
      if (view === "document") for (const word of ["Goal", "Body"]) await page.getByText(`${word} \ufffdgnp.exe`).waitFor();
    }
    // Nor what is said about its tasks, and why it is rejected.
    await stage.run("agent:planner", "import", stage.write("said.json", { format: "waypost/1", id: "said", title: "Said", tasks: ["p", "q"].map((id) => ({ id, description: `Task ${id}` })) }));
    await stage.api("POST", "/plans/said/actions/start", {});
    const agent = await stage.agent("talker");
    for (const [task, status] of [["p", "progress"], ["q", "question"]]) {
      await agent.call("task_next", { plan: "said", task });
      await agent.call("task_report", { plan: "said", task, status, text: `${status} ${TURNED}` });
    }
    await stage.api("POST", "/plans/turned/actions/request-approval", { message: `Please ${TURNED}` });
    await stage.api("POST", "/plans/turned/actions/reject", { reason: `rejection ${TURNED}` });
    const SAID = { "/inbox": ["progress", "question", "rejection"], "/activity": ["question", "rejection", "Please"], "/plans/said/list/p": ["progress"], "/plans/said/list/q": ["question"], "/plans/turned/list": ["rejection"], "/plans/turned/approval": ["rejection"] };
    for (const [path, words] of Object.entries(SAID)) {
      await page.goto(stage.site + path);
      for (const word of words) await page.getByText(`${word} \ufffdgnp.exe`).first().waitFor();
      assert.equal(await page.evaluate(() => document.body.innerText.includes("\u202e")), false, path);
    }
    // A question in the list of events is its text.
    await page.goto(`${stage.site}/activity`);
    await page.getByRole("cell", { name: "question \ufffdgnp.exe", exact: true }).waitFor();
    // A title of any length leaves room for the plan, and an id for the title beside it.
    const id = "i".repeat(200);
    await stage.run("agent:planner", "import", stage.write("long.json", { format: "waypost/1", id: "long", title: "Long words ".repeat(360), tasks: [{ id, description: "Short words" }, { id: "b", description: "Many words ".repeat(40) }] }));
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 844 });
      await page.goto(`${stage.site}/plans/long/tree`);
      const words = page.getByRole("treeitem").getByText("Short words");
      await words.waitFor();
      assert.equal(await words.evaluate((element) => element.scrollWidth > element.clientWidth), false, `the title is whole at ${width} px`);
      const { height } = await page.locator(".plan > header").boundingBox();
      assert.ok(height < 844 / 3, `the header is ${height} px high at ${width} px`);
    }
    assert.deepEqual(browser.complaints, []);
  });

export const hostile = [
  ["no text of a plan becomes a part of a page", injection],
  ["titles cannot reorder or hide what stands beside them", turned],
];
