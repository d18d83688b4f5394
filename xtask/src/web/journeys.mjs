// What people do in the dashboard, in a browser, against the built binary. Each sentence waits for what it is about.
import { access } from "./access.mjs";
import { flow } from "./flow.mjs";
import { hostile } from "./hostile.mjs";
import { large } from "./large.mjs";
import { tell } from "./stage.mjs";

const well = await tell([...flow, ...hostile, ...access, ...large]);
process.exit(well ? 0 : 1);
