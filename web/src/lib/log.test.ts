import { describe, expect, it } from "vitest";

import { errors, kindOf, LogReader, pieces, timeAt } from "./log";

const read = (...parts: string[]): LogReader => {
  const reader = new LogReader();
  for (const part of parts) reader.add(part);
  reader.finish();
  return reader;
};

describe("a log", () => {
  it("keeps the numbers of the file where lines of the protocol are left out", () => {
    const { lines } = read("one\nwaypost:progress 1 of 2\nthree\n");
    expect(lines.map((line) => [line.number, line.text])).toEqual([
      [1, "one"],
      [3, "three"],
    ]);
  });

  it("keeps the numbers of the file where only its end is read, and knows how much that is", () => {
    const reader = new LogReader();
    reader.skip(100);
    reader.begin(8);
    reader.add("eight\nnine\n");
    expect(reader.lines.map((line) => [line.number, line.from])).toEqual([
      [8, 100],
      [9, 106],
    ]);
    reader.lines.shift();
    expect(reader.bytes).toEqual({ kept: 5, read: 111 });
  });

  it("waits for the end of a line, and of a line end", () => {
    const { lines } = read("a", "b\r", "\nc\r", "d", "\n\u001b[31", "mred");
    expect(lines.map((line) => line.text)).toEqual(["ab", "d", "red"]);
    expect(lines[2]?.spans).toEqual([{ text: "red", style: "fg-red" }]);
  });

  it("counts a line of progress that overwrites itself once, as the file does", () => {
    const { lines } = read("progress 10%\rprogress 50%\rprogress 100%\r\nend\n");
    expect(lines.map((line) => [line.number, line.text])).toEqual([
      [1, "progress 100%"],
      [2, "end"],
    ]);
  });

  it("knows the byte of the file at which a line begins, and so when it was written", () => {
    const reader = new LogReader();
    reader.skip(100);
    reader.add("größer\r\nwaypost:progress 1\ntwo\n");
    expect(reader.lines.map((line) => line.from)).toEqual([100, 129]);
    const times = [{ from: 100, at: "a" }, { from: 129, at: "b" }];
    expect([0, 100, 128, 129, 500].map((place) => timeAt(times, place))).toEqual([null, "a", "a", "b", "b"]);
    expect(timeAt([], 0)).toBe(null);
  });

  it("shows control characters and those that reorder text as a sign", () => {
    expect(read("a\u0000\u202eb\n").lines[0]?.text).toBe("a\ufffdb");
  });

  it.each([
    ["error: no disk", "error"],
    ["ERROR something", "error"],
    ["thread 'main' panicked at src/main.rs:1", "error"],
    ["test a::b ... FAILED", "error"],
    ["Traceback (most recent call last):", "error"],
    ["warning: unused variable", "warning"],
    ["0 errors, 2 warnings", "plain"],
    ["test result: ok. 3 passed; 0 failed", "plain"],
    ["compiling error-chain v1", "plain"],
    ["all is well", "plain"],
  ])("%s is %s", (text, kind) => expect(kindOf(text)).toBe(kind));

  it("names the first line of each run of errors", () => {
    expect(errors(read("a\nerror 1\nerror 2\nb\nfatal: x\n").lines)).toEqual([1, 4]);
  });

  it("marks what is found, also across colours", () => {
    const line = read("x\u001b[31mab\u001b[0mc abc\n").lines[0];
    expect(line && pieces(line, "ABC").map((piece) => [piece.text, piece.style, piece.found])).toEqual([
      ["x", "", false],
      ["ab", "fg-red", true],
      ["c", "", true],
      [" ", "", false],
      ["abc", "", true],
    ]);
  });
});
