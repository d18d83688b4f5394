import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

import { licences } from "./licences.mjs";

export default defineConfig({
  plugins: [svelte(), licences()],
  build: {
    target: "es2022",
    // The same source gives the same files, byte for byte: a check compares them with what is committed.
    outDir: "dist",
    emptyOutDir: true,
    sourcemap: false,
    modulePreload: { polyfill: false },
    // Plain names: the server tells by the content whether a browser has a file already.
    rollupOptions: {
      output: {
        entryFileNames: "assets/app.js",
        chunkFileNames: "assets/[name].js",
        // The style of the entry is fetched before the first paint, those of other chunks with them.
        assetFileNames: ({ names }) => (names.includes("index.css") ? "assets/app[extname]" : "assets/[name][extname]"),
      },
    },
  },
  server: { proxy: { "/api": "http://127.0.0.1:8787", "/login": "http://127.0.0.1:8787" } },
});
