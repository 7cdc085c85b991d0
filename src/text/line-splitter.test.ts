import { expect, test } from "vitest";
import { LineSplitter } from "./line-splitter.ts";

test.each([
  ["only line feeds", {}, ["a\r", "b\rc"], "d"],
  ["carriage returns, too", { takesReturns: true }, ["a", "b", "c"], "d"],
])("lines end at %s, for any position of a chunk's end", (_, options, expected, rest) => {
  const text = "a\r\nb\rc\nd";
  for (let cut = 0; cut <= text.length; cut++) {
    const lines = new LineSplitter(options);
    const found = [text.slice(0, cut), text.slice(cut)].flatMap((chunk) =>
      lines.add(Buffer.from(chunk)),
    );
    expect(found.map(String)).toEqual(expected);
    expect(String(lines.end())).toBe(rest);
  }
});

test("empty lines are lines", () => {
  const lines = new LineSplitter({ takesReturns: true });
  const found = ["\r", "\n\r\n", "\r\r", "\n\n"].flatMap((chunk) => lines.add(Buffer.from(chunk)));
  expect(found.map(String)).toEqual(["", "", "", "", ""]);
});

test("the bytes of an open line are counted over chunks", () => {
  const lines = new LineSplitter();
  lines.add(Buffer.from("ab"));
  lines.add(Buffer.from("cd"));
  expect(lines.openLength).toBe(4);
  lines.add(Buffer.from("\ne"));
  expect(lines.openLength).toBe(1);
});
