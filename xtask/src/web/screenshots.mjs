// Pictures of the main views for the documentation: the examples of the repository, half run.
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { play, rest, until } from "./stage.mjs";

const [root, images] = rest;

// The steps of examples/release.json. One test fails; after half of it, steps wait.
const STEPS = `
job=$(cat)
if [ "$WAYPOST_TASK" = test-p07 ]; then
  for test in opens reads writes; do echo "test p07::$test ... ok" >&2; done
  echo "$(printf 'test p07::closes ... \\033[1;31mFAILED\\033[0m')" >&2
  echo "  left: 3 handles are open" >&2
  echo "  right: none" >&2
  echo "1 of 4 tests failed" >&2
  exit 1
fi
count=$(ls counted 2>/dev/null | wc -l)
mkdir -p counted && : > "counted/$WAYPOST_TASK"
if [ "$count" -gt 96 ]; then echo "waypost:progress waits for the disk" >&2; while :; do sleep 1; done; fi
sleep 0.1
printf '%s' "$job" | sh examples/workers/release.sh
`;

async function prepare(stage) {
  const example = (name) => join(stage.workspace, "examples", name);
  await stage.run("agent:releaser", "import", example("release.json"));
  await stage.api("PATCH", "/plans/release-2", { status: "waiting for the mirror", goal: "Version 2.0.0 of every part is built, signed and announced." });
  await stage.approve("release-2", "go ahead");
  stage.work();
  await stage.run("agent:planner", "import", example("fanout.json"), "--id", "fanout");
  await stage.api("PATCH", "/plans/fanout", { title: "Call Item Entry in three files", goal: "The name says what it is." });
  await stage.run("agent:planner", "request-approval", "fanout", "--message", "Three edits at once, then a check. Nothing else is touched.");
  await stage.run("agent:scout", "import", example("goals.frctl.json"), "--id", "goals");
  await stage.run("agent:scout", "import", example("auth.json"), "--id", "auth");
  await until("half of the release has run", async () => {
    const { counts } = await stage.api("GET", "/plans/release-2");
    return counts.failed === 1 && counts.running === 4 && counts.done > 90;
  }, 60_000);
}

/** The log of the task, and the words of those around it. */
async function nearer(page) {
  await page.getByRole("button", { name: "Log", exact: true }).click();
  await page.getByLabel("Log of attempt 1").getByText("1 of 4 tests failed").waitFor();
  await page.getByLabel("Log of attempt 1").evaluate((log) => log.scrollIntoView());
  // On a phone the task stands alone.
  if (page.viewportSize().width > 800) for (let step = 0; step < 4; step++) await page.getByRole("button", { name: "Zoom in" }).click();
  await page.evaluate(() => document.activeElement.blur());
}

/** The log has opened at its error. */
const atError = (page) => page.getByRole("region", { name: "Log of attempt 1" }).getByText("1 of 4 tests failed").waitFor();

/** Two versions stand side by side. */
const beside = (page) => page.getByRole("table", { name: /beside/ }).waitFor();

/** Tasks of all plans are found. */
async function find(page) {
  await page.getByRole("listbox", { name: "Tasks" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search plans, tasks and commands" }).fill("test");
  await page.getByRole("dialog").getByRole("option").nth(3).waitFor();
}

/** Windows: those of the pictures in the text come first, and have no number in their name. */
const SIZES = [[1440, 900], [1024, 768], [390, 844]];
const VIEWS = [
  ["inbox", "/inbox"],
  ["plans", "/"],
  ["graph", "/plans/release-2/graph"],
  ["task", "/plans/release-2/graph/test-p07", nearer],
  ["log", "/plans/release-2/log/test-p07", atError],
  ["board", "/plans/release-2/board", (page) => page.getByRole("group", { name: "Tasks by status" }).waitFor()],
  ["palette", "/plans/release-2/list", find],
  ["timeline", "/plans/release-2/timeline"],
  ["runs", "/plans/release-2/timeline?lanes=runs", (page) => page.getByRole("heading", { name: "Models" }).waitFor()],
  ["agents", "/agents"],
  ["approval", "/plans/fanout/approval"],
  ["history", "/plans/release-2/history?from=1&to=2", beside],
];

const configuration = readFileSync(join(root, "examples/config.toml"), "utf8").replace('"workers/', '"../examples/workers/').replace("examples/workers/release.sh", "steps.sh");
const before = (stage) => {
  cpSync(join(root, "examples"), join(stage.workspace, "examples"), { recursive: true });
  stage.write("steps.sh", STEPS);
};
await play("screenshots", configuration, async (stage, browser) => {
  await prepare(stage);
  const page = await browser.signIn(stage);
  for (const [[width, height], scheme] of SIZES.flatMap((size) => ["light", "dark"].map((scheme) => [size, scheme]))) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    for (const [name, path, then] of VIEWS) {
      await page.goto(stage.site + path);
      await page.waitForFunction(() => !document.body.innerText.includes("Loading…") && document.querySelector("h1"));
      await page.waitForLoadState("load");
      await then?.(page);
      // Two pictures of the browser: what was read is drawn then.
      await page.evaluate(() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go))));
      await page.screenshot({ path: join(images, `${name}${width === SIZES[0][0] ? "" : `-${width}`}-${scheme}.png`) });
    }
  }
}, before);
process.exit(0);
