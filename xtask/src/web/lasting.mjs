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
    await form.getByRole("button", { name: "Add", exact: true }).click();
    await form.getByText("The server does not respond").waitFor();
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

export const lasting = [
  ["a restart signs nobody out, and what was typed meanwhile is sent afterwards", restart],
  ["a session that ends under an open form is begun again above it", signedOut],
];
