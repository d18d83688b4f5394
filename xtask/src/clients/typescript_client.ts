// What the TypeScript client promises, behind a proxy that loses things: scenario.js URL, with the token in WAYPOST_TOKEN.

import assert from "node:assert/strict";

import { VersionConflict, Waypost, WaypostError } from "@waypost/client";

const pauses: number[] = [];
const sleep = (ms: number) => {
  pauses.push(ms);
  return new Promise<void>((resume) => setTimeout(resume, Math.min(ms, 50)));
};
const waypost = new Waypost(process.argv[2]!, process.env["WAYPOST_TOKEN"]!, { retries: { sleep } });

// Turned away once: the server says how long to wait.
assert.equal((await waypost.me()).role, "agent");
assert.deepEqual(pauses, [1000]);

// The reply is lost, and the plan was created: the same key gives the same plan.
const made = await waypost.createPlan("Lost replies", ["One", { description: "Two", depends_on: ["t1"] }]);
const found: string[] = [];
for await (const plan of waypost.plans({ text: "Lost replies" })) found.push(plan.id);
assert.deepEqual(found, [made.id]);
assert.equal(pauses.length, 2);

// A claim is not repeated when nobody knows whether it arrived.
await waypost.start(made.id);
await assert.rejects(waypost.claim({ plan: made.id }), TypeError);
const claim = await waypost.claim({ plan: made.id, lease_seconds: 60 });
assert.ok(claim);
assert.deepEqual([claim.id, claim.attempt, claim.leaseSeconds, claim.task.description], ["t1", 1, 60, "One"]);
await waypost.progress(claim, "half");
assert.equal((await waypost.done(claim, { result: "r", output: { n: 1 } })).standing, "done");
const second = await waypost.claim({ plan: made.id });
assert.deepEqual(second?.task.received_outputs?.["t1"], { n: 1 });
await waypost.release(second!, "later");

// Refusals are typed.
const add = { op: "add" as const, task: { description: "Three" } };
const stale = await waypost.edit(made.id, [add], made.version).catch((error: unknown) => error);
assert.ok(stale instanceof VersionConflict);
assert.equal(stale.problem.conflict?.known, made.version);
assert.deepEqual((await waypost.edit(made.id, [add])).added, ["t3"]);
const missing = await waypost.plan("nowhere").catch((error: unknown) => error);
assert.ok(missing instanceof WaypostError && missing.status === 404 && missing.code === "no_such_plan" && missing.hint);

// Each connection carries one event: all arrive, each once, in the order of the log.
const received = [];
for await (const event of waypost.events({ plan: made.id, after: "0" })) {
  received.push(event);
  if (received.length === 8) break;
}
const places = received.map(({ sequence, index }) => sequence * 1000 + index);
assert.deepEqual(places, [...new Set(places)].sort((one, other) => one - other));
assert.deepEqual([received[0]?.kind, received[0]?.plan], ["plan_created", made.id]);
const kinds = received.map(({ kind }) => kind);
assert.ok(kinds.includes("task_done") && kinds.includes("task_unblocked"), kinds.join());

assert.match(await waypost.exportPlan(made.id, "markdown"), /Lost replies/);
const ids: string[] = [];
for await (const task of waypost.tasks(made.id)) ids.push(task.id);
assert.deepEqual(ids, ["t1", "t2", "t3"]);
assert.equal((await waypost.task(made.id, "t1")).state.result, "r");

// A signal ends a stream that has nothing to say.
const stop = new AbortController();
setTimeout(() => stop.abort(), 200);
for await (const event of waypost.events({ plan: made.id, signal: stop.signal })) assert.fail(event.kind);
