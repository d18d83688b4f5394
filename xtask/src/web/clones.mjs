// What clones of a repository disagree about, and the commits of a task.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { axe, play, until } from "./stage.mjs";

const other = (stage) => join(stage.folder, "other");

/** A bare repository and two clones of it; the first is the workspace. */
function clone(stage) {
  const git = (folder, ...words) => execFileSync("git", ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", ...words], { cwd: folder, stdio: "pipe" });
  mkdirSync(join(stage.folder, "hub.git"));
  git(join(stage.folder, "hub.git"), "init", "--quiet", "--bare", "--initial-branch=main");
  git(stage.workspace, "init", "--quiet", "--initial-branch=main");
  git(stage.workspace, "remote", "add", "origin", join(stage.folder, "hub.git"));
  git(stage.workspace, "commit", "--quiet", "--allow-empty", "-m", "Begin");
  git(stage.workspace, "commit", "--quiet", "--allow-empty", "-m", "Read the parser\n\nWaypost-Task: release/parse");
  git(stage.workspace, "push", "--quiet", "origin", "main");
  git(stage.folder, "clone", "--quiet", "hub.git", "other");
}

/** Makes a plan that has two values of a description and of notes, and a task that ended in two ways. */
async function disagree(stage) {
  const [ada, bob] = [(...words) => stage.run("person:ada", ...words), (...words) => stage.runAt(other(stage), "person:bob", ...words)];
  const tasks = ["parse", "print", "sign"].map((id) => ({ id, description: `The task ${id}` }));
  await ada("init", "--git");
  await ada("import", stage.write("release.json", { format: "waypost/1", id: "release", title: "Release", tasks }));
  await ada("share", "release");
  await ada("sync");
  await bob("init", "--git");
  await bob("sync");
  for (const [person, name] of [[ada, "ada"], [bob, "bob"]]) {
    await person("task", "revise", "release", "parse", "--notes", `Use the parser of ${name}\nand its tests`);
    await person("task", "revise", "release", "print", "--description", `Print as ${name} does`);
  }
  await ada("done", "release", "sign", "--result", "signed twice");
  await bob("skip", "release", "sign");
  await ada("sync");
  await bob("sync");
  await ada("sync");
  return { ada, bob };
}

const clones = () =>
  play("clones", "", async (stage, browser) => {
    const { ada, bob } = await disagree(stage);
    const page = await browser.signIn(stage);
    const menu = page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: /Inbox/ });
    await menu.getByText("3 waiting for you").waitFor();
    await page.getByText("3 questions", { exact: true }).first().waitFor();
    await menu.click();
    await page.getByRole("heading", { name: "Clones disagree" }).waitFor();
    // Both values stand beside each other, with who wrote them, and which one is shown.
    const item = page.getByRole("listitem").filter({ hasText: "set notes to different values" });
    await item.getByText("Use the parser of ada").waitFor();
    const [first, second] = [item.getByRole("region", { name: "Version of ada" }), item.getByRole("region", { name: "Version of bob" })];
    const [left, right] = [await first.boundingBox(), await second.boundingBox()];
    assert.ok(Math.abs(left.y - right.y) < 2 && left.x !== right.x, "side by side");
    assert.equal(await item.getByText("shown now").count(), 1);
    await page.evaluate(axe);
    const found = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa"] }));
    assert.deepEqual(found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" ")}`), []);
    // What was answered elsewhere meanwhile is not answered again.
    const notes = (await stage.api("GET", "/plans/release/conflicts")).questions.find((one) => one.subject === "notes");
    await item.getByRole("button", { name: /^Take\s+ada/ }).click();
    await item.getByText("Answered: took the version of ada").waitFor();
    assert.equal((await stage.api("GET", "/plans/release/tasks/parse")).notes, "Use the parser of ada\nand its tests");
    await assert.rejects(stage.api("POST", "/plans/release/conflicts", { digest: notes.digest, answer: "take", version: notes.versions[0].record }), /question_changed/);
    await menu.getByText("2 waiting for you").waitFor();
    // In the plan, with another text.
    await page.goto(`${stage.site}/plans/release/list`);
    const head = page.getByRole("region", { name: "Clones disagree" });
    await head.getByText("2 things").waitFor();
    await head.getByRole("button", { name: "Decide…" }).click();
    const title = head.getByRole("listitem").filter({ hasText: "print description" });
    await title.getByRole("button", { name: "Write another text…" }).click();
    await title.getByRole("textbox").fill("Print as both do");
    await title.getByRole("button", { name: "Answer with this text" }).click();
    await head.getByText("1 thing", { exact: true }).waitFor();
    assert.equal((await stage.api("GET", "/plans/release/tasks/print")).description, "Print as both do");
    // In the task, whose status says so. What was ended in two ways can be done again.
    await page.goto(`${stage.site}/plans/release/list/sign`);
    const panel = page.getByRole("complementary", { name: "Task sign" });
    await panel.getByText("disputed").first().waitFor();
    await panel.getByText("signed twice").waitFor();
    await panel.getByRole("button", { name: "Neither: do the task again" }).click();
    await panel.getByRole("region", { name: "Clones disagree" }).waitFor({ state: "detached" });
    await until("the task waits again", async () => (await stage.api("GET", "/plans/release/tasks/sign")).standing === "ready");
    await until("nothing waits for anybody", async () => (await page.title()) === "Release · Waypost");
    // The answers travel.
    await ada("sync");
    await bob("sync");
    assert.match(JSON.stringify(await bob("task", "show", "release", "print")), /Print as both do/);
    assert.deepEqual((await bob("conflicts")).plans, []);
    // The commits of a task.
    await page.goto(`${stage.site}/plans/release/list/parse`);
    await page.getByRole("complementary", { name: "Task parse" }).getByText("Read the parser").waitFor();
    assert.deepEqual(browser.complaints, []);
  }, clone);

export const repository = [["what clones disagree about is decided in the inbox, in the plan and in the task", clones]];
