#!/usr/bin/env node
// Runs the binary of this platform, which npm installed as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");
const { existsSync } = require("node:fs");

const NAMES = {
  "linux-x64": "@waypost/linux-x64",
  "linux-arm64": "@waypost/linux-arm64",
  "darwin-x64": "@waypost/darwin-x64",
  "darwin-arm64": "@waypost/darwin-arm64",
};

function binary() {
  if (process.env.WAYPOST_BINARY) return process.env.WAYPOST_BINARY;
  const platform = `${process.platform}-${process.arch}`;
  const name = NAMES[platform];
  if (!name) fail(`Waypost has no binary for ${platform}`, "build it with: cargo install waypost");
  try {
    return require.resolve(`${name}/bin/waypost`);
  } catch {
    return fail(`the package ${name} is not installed`, "install again without --omit=optional");
  }
}

function fail(message, hint) {
  console.error(`error: ${message}\nhint: ${hint}`);
  process.exit(1);
}

const file = binary();
if (!existsSync(file)) fail(`${file} does not exist`, "install Waypost again");
const child = spawn(file, process.argv.slice(2), { stdio: "inherit" });
// The binary decides when to end. A terminal sends its signals to both, and the second Ctrl-C means more than the first.
const atTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
  process.on(signal, () => {
    if (signal === "SIGTERM" || !atTerminal) child.kill(signal);
  });
}
child.on("error", (error) => fail(`${file} cannot be started: ${error.message}`, "install Waypost again"));
child.on("exit", (status, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  }
  process.exit(status ?? 1);
});
