import { expect, test } from "vitest";

import { changed } from "./diff";

test.each([
  ["30 min", "2 h", [["30 min", true]], [["2 h", true]]],
  ["run the tests twice", "run the tests", [["run the tests", false], [" twice", true]], [["run the tests", false]]],
  ["speed: 1", "speed: 24", [["speed: ", false], ["1", true]], [["speed: ", false], ["24", true]]],
  ["a b c", "a x c", [["a ", false], ["b", true], [" c", false]], [["a ", false], ["x", true], [" c", false]]],
  ["", "new", [], [["new", true]]],
  ["same", "same", [["same", false]], [["same", false]]],
] as const)("%s to %s", (before, after, old, fresh) => {
  const found = changed(before, after);
  expect([found.before, found.after].map((parts) => parts.map((part) => [part.text, part.changed]))).toEqual([old, fresh]);
});
