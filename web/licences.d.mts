import type { Plugin } from "vite";

/** Writes `licences.txt` beside the built files. */
export function licences(): Plugin;
