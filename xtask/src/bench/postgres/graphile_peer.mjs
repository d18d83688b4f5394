// Graphile Worker for the comparison: a task that does nothing, or runs a program. With its local queue and batched
// completions, as its documentation on performance recommends.
import { spawn } from "node:child_process";
import { makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

// Jobs of one process at the same time, those that it fetches ahead, and its connections.
const CONCURRENCY = 20;
const AHEAD = 200;
const CONNECTIONS = 4;

const [verb, url, ...rest] = process.argv.slice(2);
const late = [];

const tasks = {
  async one({ sent, kind }) {
    if (sent) late.push(Date.now() / 1000 - sent);
    if (kind === "process") {
      await new Promise((resolve, reject) => {
        const child = spawn("/bin/true", { stdio: "ignore" });
        child.on("error", reject);
        child.on("exit", resolve);
      });
    }
  },
};

async function sql(text, values = []) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await client.query(text, values);
  } finally {
    await client.end();
  }
}

if (verb === "setup") {
  const utils = await makeWorkerUtils({ connectionString: url });
  await utils.migrate();
  await utils.release();
  await sql("CREATE TABLE IF NOT EXISTS bench_submitted (jobs bigint NOT NULL)");
  await sql("INSERT INTO bench_submitted VALUES (0)");
} else if (verb === "submit") {
  const [count, kind] = rest;
  await sql(
    "SELECT count(graphile_worker.add_job('one', json_build_object('kind', $2::text))) FROM generate_series(1, $1::int)",
    [Number(count), kind],
  );
  await sql("UPDATE bench_submitted SET jobs = jobs + $1", [Number(count)]);
} else if (verb === "trickle") {
  const [rate, seconds] = rest.map(Number);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const begin = Date.now();
  let sent = 0;
  while ((Date.now() - begin) / 1000 < seconds) {
    const due = Math.floor(((Date.now() - begin) / 1000) * rate) + 1 - sent;
    for (let number = 0; number < due; number++) {
      await client.query("SELECT graphile_worker.add_job('one', json_build_object('sent', $1::float8))", [Date.now() / 1000]);
    }
    sent += due;
    await new Promise((resolve) => setTimeout(resolve, Math.max(1000 / rate, 10)));
  }
  await client.query("UPDATE bench_submitted SET jobs = jobs + $1", [sent]);
  await client.end();
  console.log(sent);
} else if (verb === "work") {
  const preset = {
    worker: {
      connectionString: url,
      concurrentJobs: CONCURRENCY,
      maxPoolSize: CONNECTIONS,
      localQueue: { size: AHEAD },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
  };
  const { Logger } = await import("graphile-worker");
  await run({ preset, taskList: tasks, noHandleSignals: true, logger: new Logger(() => () => {}) });
  console.log("ready");
  process.stdin.resume();
  process.stdin.on("end", () => {
    console.log(JSON.stringify(late));
    process.exit(0);
  });
}
