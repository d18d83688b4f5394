#!/usr/bin/env node
// Runs the binary of this platform, which npm installed as an optional dependency.
"use strict";

const { spawnSync } = require("node:child_process");
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
// The terminal sends its signals to both; the binary decides when to end.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGTSTP"]) process.on(signal, () => {});
const { status, signal, error } = spawnSync(file, process.argv.slice(2), { stdio: "inherit" });
if (error) fail(`${file} cannot be started: ${error.message}`, "install Waypost again");
if (signal) {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}
process.exit(status ?? 1);
