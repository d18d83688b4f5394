// A workspace of its own, `waypost serve` and `waypost worker` in it, and a browser. Knows nothing of what is tested.
import { execFile, execFileSync, spawn } from "node:child_process";
import { mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const [packages, browserProgram, waypost, scratch, ...rest] = process.argv.slice(2);
const require = createRequire(join(packages, "from-here.js"));
const { chromium } = require("playwright-core");
/** The source of axe. */
export const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
export { rest, scratch };

/** How long anything may take that is waited for, in milliseconds. */
export const PATIENCE = 15_000;

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
];

/** Whatever was started ends with us. */
const started = new Set();
process.on("exit", () => {
  for (const child of started) child.kill("SIGKILL");
});

/** Calls `look` until it gives something, and says what was waited for if it never does. */
export async function until(what, look, patience = PATIENCE) {
  const end = Date.now() + patience;
  let last = null;
  for (;;) {
    try {
      const found = await look();
      if (found) return found;
    } catch (error) {
      last = error;
    }
    if (Date.now() > end) throw new Error(`waited ${patience} ms in vain: ${what}${last ? ` (${last.message})` : ""}`);
    await new Promise((go) => setTimeout(go, 25));
  }
}

/** Scrolls an element from its beginning to its end, as fast as somebody who looks at every part of it. */
export const scrollThrough = (locator) =>
  locator.evaluate(async (element) => {
    for (let top = 0; ; top += element.clientHeight * 0.8) {
      element.scrollTop = top;
      await new Promise((go) => setTimeout(go, 500));
      if (top + element.clientHeight >= element.scrollHeight) return;
    }
  });

/** A workspace with this configuration and everything that runs in it. */
export class Stage {
  #children = new Set();

  constructor(name, configuration) {
    this.folder = join(scratch, name);
    this.workspace = join(this.folder, "workspace");
    this.home = join(this.folder, "home");
    mkdirSync(join(this.workspace, ".waypost"), { recursive: true });
    mkdirSync(this.home, { recursive: true });
    writeFileSync(join(this.workspace, ".waypost", "config.toml"), configuration);
  }

  /** As a pipeline does it: trusts the configuration as it is now, with the files that it names. */
  get #options() {
    const options = { cwd: this.workspace, env: { HOME: this.home, PATH: process.env.PATH } };
    const digest = execFileSync(waypost, ["trust", "--digest"], { ...options, encoding: "utf8" }).trim();
    return { ...options, env: { ...options.env, WAYPOST_TRUST: digest } };
  }

  write(name, text) {
    const file = join(this.workspace, name);
    writeFileSync(file, typeof text === "string" ? text : JSON.stringify(text));
    return file;
  }

  /** Runs a command as somebody and gives its JSON. */
  async run(who, ...words) {
    const { stdout } = await promisify(execFile)(waypost, ["--json", "--as", who, ...words], { ...this.#options, maxBuffer: 1 << 28 });
    return stdout.trim() === "" ? null : JSON.parse(stdout.trim().split("\n").at(-1));
  }

  /** The same in another folder. */
  async runAt(folder, who, ...words) {
    const { stdout } = await promisify(execFile)(waypost, ["--json", "--as", who, ...words], { ...this.#options, cwd: folder });
    return stdout.trim() === "" ? null : JSON.parse(stdout.trim().split("\n").at(-1));
  }

  #spawn(name, words) {
    const log = openSync(join(this.folder, `${name}.log`), "a");
    const child = spawn(waypost, words, { ...this.#options, stdio: ["ignore", "pipe", log] });
    this.#children.add(child);
    started.add(child);
    child.once("exit", () => {
      this.#children.delete(child);
      started.delete(child);
    });
    return child;
  }

  /** Starts the server; the same port again when there was one before. */
  async serve() {
    const child = this.#spawn("serve", ["--json", "--as", "person:ada", "serve", "--listen", this.address ?? "127.0.0.1:0"]);
    const line = await new Promise((tell, fail) => {
      createInterface(child.stdout).once("line", tell);
      child.once("exit", (code) => fail(new Error(`waypost serve ended with ${code}; see serve.log in ${this.folder}`)));
    });
    const said = JSON.parse(line);
    this.server = child;
    this.address = said.address;
    this.link = readFileSync(said.login_file, "utf8").trim();
    this.mcp = said.url;
    this.site = `http://${said.address}`;
    this.token ??= await this.#personsToken();
  }

  /** A person's token. Only a person at a terminal makes one, so the command gets a terminal of its own. */
  async #personsToken() {
    const words = [waypost, "--json", "token", "new", "--role", "person", "--name", "ada"];
    const command = words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
    const { stdout } = await promisify(execFile)("script", ["-qec", command, "/dev/null"], this.#options);
    return JSON.parse(stdout).token;
  }

  /** The sign-in link, which works once; after that the address of the page. */
  takeLink() {
    const link = this.link ?? this.site;
    this.link = null;
    return link;
  }

  /** Ends the server without a word, as a crash does. */
  async crash() {
    const gone = new Promise((tell) => this.server.once("exit", tell));
    this.server.kill("SIGKILL");
    await gone;
  }

  /** Starts a worker. */
  work() {
    this.worker = this.#spawn("worker", ["--json", "--as", "person:ada", "worker"]);
    this.worker.stdout.resume();
  }

  /** Asks the API as the person who started the server. */
  async api(method, path, body) {
    const headers = { authorization: `Bearer ${this.token}`, "content-type": "application/json" };
    const answer = await fetch(`${this.site}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${text}`);
    return text ? JSON.parse(text) : null;
  }

  /** Approves what a plan would run, as the person who started the server. */
  async approve(plan, note) {
    const { version, digest } = await this.api("GET", `/plans/${plan}/preview`);
    return this.api("POST", `/plans/${plan}/actions/approve`, { version, digest, note });
  }

  /** Answers what a task asks now, as the person who started the server. */
  async answer(plan, task, answer) {
    const { question_digest: digest } = await this.api("GET", `/plans/${plan}/tasks/${task}`);
    return this.api("POST", `/plans/${plan}/tasks/${task}/actions/answer`, { answer, digest });
  }

  /** An agent that speaks MCP over HTTP. */
  async agent(name) {
    const { token } = await this.run("person:ada", "token", "new", "--agent", name);
    const speaker = new Agent(this.mcp, token);
    await speaker.begin();
    return speaker;
  }

  async end() {
    const all = [...this.#children];
    const gone = all.map((child) => new Promise((tell) => child.once("exit", tell)));
    for (const child of all) child.kill("SIGKILL");
    await Promise.all(gone);
  }
}

class Agent {
  #next = 0;
  #session = null;

  constructor(url, token) {
    this.url = url;
    this.token = token;
  }

  async #send(message) {
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream", authorization: `Bearer ${this.token}` };
    if (this.#session) headers["mcp-session-id"] = this.#session;
    const answer = await fetch(this.url, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", ...message }) });
    this.#session = answer.headers.get("mcp-session-id") ?? this.#session;
    const text = await answer.text();
    if (!answer.ok) throw new Error(`MCP answered ${answer.status}: ${text}`);
    if (message.id === undefined) return null;
    const bodies = answer.headers.get("content-type")?.includes("event-stream")
      ? text.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim()).filter(Boolean)
      : [text];
    const found = bodies.map((body) => JSON.parse(body)).find((body) => body.id === message.id);
    if (!found || found.error) throw new Error(`MCP answered ${text}`);
    return found.result;
  }

  async begin() {
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "journey", version: "1" } };
    await this.#send({ id: ++this.#next, method: "initialize", params });
    await this.#send({ method: "notifications/initialized" });
  }

  /** Calls a tool and gives its structured answer. */
  async call(name, given) {
    const result = await this.#send({ id: ++this.#next, method: "tools/call", params: { name, arguments: given } });
    if (result.isError) throw new Error(`${name}: ${JSON.stringify(result.content)}`);
    return result.structuredContent ?? JSON.parse(result.content[0].text);
  }
}

/** The browser's process, with a new profile. */
let launched = null;

/** A browser that knows nobody: it shares nothing but the process with the others. What its pages complain about is collected. */
export class Browser {
  complaints = [];

  static async open(options = {}) {
    const own = new Browser();
    launched ??= await chromium.launch({ executablePath: await program(browserProgram), args: FLAGS });
    own.context = await launched.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    own.context.setDefaultTimeout(PATIENCE);
    own.context.on("page", (page) => own.#listen(page));
    return own;
  }

  #listen(page) {
    page.on("dialog", (dialog) => {
      this.complaints.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("pageerror", (error) => this.complaints.push(`an error of the page: ${error.message}`));
    page.on("console", (message) => {
      if (message.type() === "error") this.complaints.push(`on the console: ${message.text()} (${message.location().url})`);
    });
  }

  /** A new page, signed in: by the link, or by what an earlier page left in this browser. */
  async signIn(stage) {
    const page = await this.context.newPage();
    await page.goto(stage.takeLink());
    await page.getByRole("heading", { name: "Plans" }).waitFor();
    return page;
  }

  async close() {
    await this.context.close();
  }
}

async function program(name) {
  if (name.includes("/")) return name;
  const { stdout } = await promisify(execFile)("sh", ["-c", `command -v ${name}`]);
  return stdout.trim();
}

/** A stage and a browser for as long as `work` lasts; `before` sees the stage before the server starts. If it fails, pictures of the pages are left beside the logs. */
export async function play(name, configuration, work, before = () => {}) {
  const stage = new Stage(name, configuration);
  const browser = await Browser.open();
  try {
    before(stage);
    await stage.serve();
    await work(stage, browser);
  } catch (error) {
    for (const [place, page] of browser.context.pages().entries()) {
      await page.screenshot({ path: join(stage.folder, `page-${place}.png`), timeout: 2_000 }).catch(() => null);
    }
    error.stack += `\n    what is left is in ${stage.folder}; the pages complained of ${JSON.stringify(browser.complaints)}`;
    throw error;
  } finally {
    await browser.close();
    await stage.end();
  }
}

/** Runs sentences that are to be true, one after the other, and says how long each took. One failure does not hide the others. */
export async function tell(sentences) {
  const begin = Date.now();
  let well = true;
  for (const [sentence, work] of sentences) {
    const from = Date.now();
    try {
      await work();
    } catch (error) {
      console.error(`  ✕ ${sentence}\n${error.stack}`);
      well = false;
      continue;
    }
    console.log(`  ✓ ${sentence} (${Date.now() - from} ms)`);
  }
  console.log(`  all in ${((Date.now() - begin) / 1000).toFixed(1)} s`);
  return well;
}
