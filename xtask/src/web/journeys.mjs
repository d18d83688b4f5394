// What people do in the dashboard, in a browser, against the built binary. Each sentence waits for what it is about.
import { access } from "./access.mjs";
import { repository } from "./clones.mjs";
import { doing } from "./doing.mjs";
import { flow } from "./flow.mjs";
import { graph } from "./graph.mjs";
import { hostile } from "./hostile.mjs";
import { inbox } from "./inbox.mjs";
import { large } from "./large.mjs";
import { lasting } from "./lasting.mjs";
import { tell } from "./stage.mjs";
import { stillness } from "./still.mjs";

/** Milliseconds for all of it, on the slowest machine. */
const ALL_MAX = 480_000;
setTimeout(() => {
  console.error(`  ✕ all of it took longer than ${ALL_MAX} ms`);
  process.exit(1);
}, ALL_MAX).unref();

const well = await tell([
  ...flow, ...doing, ...inbox, ...lasting, ...stillness, ...hostile, ...access, ...graph, ...repository, ...large,
]);
process.exit(well ? 0 : 1);
