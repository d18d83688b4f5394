// What outlasts a lost connection and an ended session: who is signed in, and what was typed.
import assert from "node:assert/strict";

import { play, until } from "./stage.mjs";

const PLAN = { format: "waypost/1", id: "long", title: "Long", tasks: [{ id: "a", description: "A" }] };

/** Opens the form of a new task and types into it. */
async function typed(page, text) {
  await page.getByRole("button", { name: "Add task" }).click();
  const form = page.getByRole("dialog", { name: "Add a task" });
  await form.getByLabel("Description").fill(text);
  return form;
}

const restart = () =>
  play("restart", "", async (stage, browser) => {
    await stage.run("person:ada", "import", stage.write("plan.json", PLAN));
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/long/list`);
    await page.getByRole("status").getByText("live", { exact: true }).waitFor();
    const form = await typed(page, "typed while nobody listened");
    await stage.crash();
    // The form and the page say so, and what cannot be sent stays.
    await form.getByText(/^Not connected since/).waitFor();
    assert.equal(await form.getByRole("button", { name: "Add", exact: true }).isDisabled(), true);
    assert.equal(await page.locator("header").getByText("Start", { exact: true }).isDisabled(), true);
    assert.equal(await form.getByLabel("Description").inputValue(), "typed while nobody listened");
    // Whoever was signed in still is, by the link as by a token, and the form is sent as it stands.
    await stage.serve();
    await page.getByText("live", { exact: true }).waitFor();
    await form.getByText(/^Not connected since/).waitFor({ state: "detached" });
    await form.getByRole("button", { name: "Add", exact: true }).click();
    await form.waitFor({ state: "detached" });
    await page.getByRole("listbox", { name: "Tasks" }).getByText("typed while nobody listened").waitFor();
    await page.reload();
    await page.getByRole("status").getByText("live", { exact: true }).waitFor();
  });

const signedOut = () =>
  play("signed-out", "", async (stage, browser) => {
    await stage.run("person:ada", "import", stage.write("plan.json", PLAN));
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/long/list`);
    await page.getByRole("status").getByText("live", { exact: true }).waitFor();
    const form = await typed(page, "typed before the session ended");
    await page.evaluate(() => fetch("/logout", { method: "POST", headers: { "x-waypost-session": localStorage.getItem("waypost-session") } }));
    // The form to sign in stands above the open one, and can be used.
    const above = page.getByRole("dialog", { name: "Sign in again" });
    await above.waitFor();
    await above.getByLabel(/^Token/).fill(stage.token);
    await above.getByRole("button", { name: "Sign in" }).click();
    await above.waitFor({ state: "detached" });
    assert.equal(await form.getByLabel("Description").inputValue(), "typed before the session ended");
    await form.getByRole("button", { name: "Add", exact: true }).click();
    await form.waitFor({ state: "detached" });
    await until("the task is there", async () => (await stage.api("GET", "/plans/long")).counts.total === 2);
  });

/** More tabs than a browser opens connections. */
const TABS = 8;

const tabs = () =>
  play("tabs", "", async (stage, browser) => {
    await stage.run("person:ada", "import", stage.write("plan.json", PLAN));
    const first = await browser.signIn(stage);
    const pages = [first];
    while (pages.length < TABS) pages.push(await first.context().newPage());
    for (const page of pages) {
      await page.goto(`${stage.site}/plans/long/list`);
      await page.getByRole("status").getByText("live", { exact: true }).waitFor();
    }
    const arrives = async (text) => {
      await stage.run("person:ada", "task", "add", "long", text);
      await Promise.all(pages.map((page) => page.getByRole("listbox", { name: "Tasks" }).getByText(text).waitFor()));
    };
    await arrives("all tabs hear it");
    // The last one has the stream. When it closes, or is put away, another one takes it.
    await pages.pop().close();
    await arrives("they hear it without that tab");
    await pages.at(-1).goto("about:blank");
    const away = pages.pop();
    await arrives("and while another is away");
    await away.goBack();
    pages.push(away);
    await arrives("it hears what came when it is back");
  });

/** Writes a line, and another once there is a file. */
const WAITS = `
cat > /dev/null
echo begins >&2
while [ ! -e go ]; do sleep 0.05; done
echo ends >&2
`;
const ENDING = `
[executors.waits]
kind = "process"
command = ["sh", "waits.sh"]
`;

const ending = () =>
  play("ending", ENDING, async (stage, browser) => {
    stage.write("waits.sh", WAITS);
    await stage.run("person:ada", "import", stage.write("plan.json", { format: "waypost/1", id: "slow", title: "Slow", tasks: [{ id: "a", description: "A", work: { executor: "waits" } }] }));
    await stage.approve("slow");
    await stage.api("POST", "/plans/slow/actions/start", {}).catch(() => null);
    const page = await browser.signIn(stage);
    await page.goto(`${stage.site}/plans/slow/log/a`);
    const log = page.getByRole("region", { name: "Log of attempt 1" });
    await log.getByText("begins").waitFor();
    // When each line was written stands beside it on request, also while it runs.
    await page.getByRole("button", { name: "Times" }).click();
    await log.locator("time").first().waitFor();
    assert.match(await log.locator("time").first().textContent(), /^\d\d:\d\d:\d\d$/);
    if (process.env["SHOTS"]) await page.screenshot({ path: `${process.env["SHOTS"]}/times.png` });
    await page.getByRole("status").getByText("live", { exact: true }).waitFor();
    // A server that ends when its task has ended says so, and does not claim to be as before.
    stage.server.kill("SIGTERM");
    await page.getByRole("alert").getByText("This server is shutting down.").waitFor();
    await page.getByRole("status").getByText("shutting down", { exact: true }).waitFor();
    if (process.env["SHOTS"]) await page.screenshot({ path: `${process.env["SHOTS"]}/ending.png` });
    const gone = new Promise((tell) => stage.server.once("exit", tell));
    stage.write("go", "");
    await gone;
    await page.getByText(/^Not connected since/).waitFor();
    await stage.serve();
    await page.getByRole("status").getByText("live", { exact: true }).waitFor();
    await page.getByText("This server is shutting down.").waitFor({ state: "detached" });
    await page.reload();
    await log.getByText("ends", { exact: true }).waitFor();
    assert.equal(await log.locator("time").count(), 2, "the choice lasts");
    // A log of an earlier version has none, and that is said.
    const { execFileSync } = await import("node:child_process");
    execFileSync("rm", [`${stage.workspace}/.waypost/logs/slow/a.1.times`]);
    await page.reload();
    await log.getByText("This log has no timestamps").waitFor();
  });

export const lasting = [
  ["a server that ends says so, and a log says when its lines were written", ending],
  ["a restart signs nobody out, and what was typed meanwhile is sent afterwards", restart],
  ["more tabs than connections hear everything, and another one takes the stream when its tab closes", tabs],
  ["a session that ends under an open form is begun again above it", signedOut],
];
