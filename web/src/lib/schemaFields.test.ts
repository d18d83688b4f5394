import { expect, test } from "vitest";

import { fill, inputsOf, readJson, schemaFields } from "./schemaFields";

const SCHEMA = {
  type: "object",
  required: ["file"],
  properties: {
    file: { type: "string", maxLength: 100, description: "path" },
    mode: { enum: ["fast", "full"] },
    count: { type: "integer" },
    dry: { type: "boolean" },
    list: { type: "array" },
  },
};
const fields = schemaFields(SCHEMA) ?? [];

test("each property becomes a field of its type", () => {
  expect(fields.map((one) => [one.name, one.kind, one.required])).toEqual([
    ["file", "text", true],
    ["mode", "choice", false],
    ["count", "number", false],
    ["dry", "yes", false],
    ["list", "json", false],
  ]);
  expect(schemaFields({ type: "string" })).toBeNull();
  expect(schemaFields(true)).toBeNull();
});

test("inputs come back as they were", () => {
  const inputs = { file: "a", mode: "fast", count: 3, dry: false, list: [1, { a: 2 }], unknown: { b: 1 } };
  expect(inputsOf(fields, fill(fields, inputs))).toEqual(inputs);
});

test("a value that does not fit its field is kept", () => {
  const inputs = { file: 7, mode: "slow", count: "many" };
  const filled = fill(fields, inputs);
  expect(JSON.parse(filled.others)).toEqual(inputs);
  expect(inputsOf(fields, { texts: {}, others: filled.others })).toEqual(inputs);
});

test("a list of texts or numbers is written one a line", () => {
  const own = schemaFields({ type: "object", properties: { names: { type: "array", items: { type: "string" } }, sizes: { type: "array", items: { type: "integer" } } } }) ?? [];
  expect(own.map((one) => one.kind)).toEqual(["lines", "numbers"]);
  const inputs = { names: ["one two", "three"], sizes: [1, 2] };
  expect(fill(own, inputs).texts).toEqual({ names: "one two\nthree", sizes: "1\n2" });
  expect(inputsOf(own, fill(own, inputs))).toEqual(inputs);
  // What no line can hold is kept as JSON.
  expect(inputsOf(own, fill(own, { names: ["a\nb"] }))).toEqual({ names: ["a\nb"] });
  expect(() => inputsOf(own, { texts: { sizes: "many" }, others: "" })).toThrow(/^sizes: numbers/);
});

test("a required text is sent even if it is empty, others are left out", () => {
  expect(inputsOf(fields, { texts: {}, others: "" })).toEqual({ file: "" });
});

test("what is not JSON is named by its field", () => {
  expect(() => inputsOf(fields, { texts: { list: "[1" }, others: "" })).toThrow(/^list: /);
  expect(() => inputsOf(fields, { texts: {}, others: "[1]" })).toThrow(/^other inputs: /);
  expect(readJson(" ", "x")).toBeUndefined();
});
