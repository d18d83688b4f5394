import { expect, test } from "vitest";

import { EventParser } from "./eventStream";

const TEXT = ': started\n\nid: 1.0\ndata: {"a":1}\n\nevent: progress\ndata: first\ndata:second\n\nid: 2.0\n\n';
const EVENTS = [
  { id: "1.0", name: "message", data: '{"a":1}' },
  { id: "1.0", name: "progress", data: "first\nsecond" },
];

test.each([1, 2, 3, 7, TEXT.length])("events are the same in pieces of %i characters", (size) => {
  for (const text of [TEXT, TEXT.replaceAll("\n", "\r\n"), `${TEXT.replaceAll("\n", "\r")}\n`]) {
    const parser = new EventParser();
    const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, at) => text.slice(at * size, (at + 1) * size));
    expect(pieces.flatMap((piece) => parser.take(piece))).toEqual(EVENTS);
  }
});

test("an event that is not complete is not delivered", () => {
  const parser = new EventParser();
  expect(parser.take("id: 1\ndata: half")).toEqual([]);
  expect(parser.take("\n")).toEqual([]);
  expect(parser.take("\n")).toEqual([{ id: "1", name: "message", data: "half" }]);
});
