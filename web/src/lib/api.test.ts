import { expect, test } from "vitest";

import { sentence } from "./api";

test("what is wrong is said once, and names its task once", () => {
  const wrong = "task a: has both children and work";
  expect(sentence({ title: "Bad", status: 422, detail: wrong, problems: [{ task: "a", message: wrong }] })).toBe(wrong);
  const two = [{ task: "a", message: wrong }, { task: "b", message: "is too deep" }];
  expect(sentence({ title: "Bad", status: 422, detail: "2 problems", problems: two })).toBe(`2 problems\n${wrong}\nb: is too deep`);
});
