import { describe, expect, it } from "vitest";

import cases from "./sgrCases.json";
import { SgrReader } from "./sgr";

describe("colours of a log", () => {
  it.each(cases.map((one) => [JSON.stringify(one.lines), one] as const))("%s", (_, { lines, spans }) => {
    const reader = new SgrReader();
    expect(lines.map((line) => reader.line(line).map((span) => [span.text, span.style]))).toEqual(spans);
  });
});
