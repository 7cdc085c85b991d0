import fc from "fast-check";
import { expect, test } from "vitest";
import { GatheredLines } from "./gathered-lines.ts";

const textOf = (blocks: readonly Buffer[]): string => Buffer.concat(blocks).toString("utf8");

test("gathered lines are taken once, in order, each with its line feed", () => {
  fc.assert(
    fc.property(fc.array(fc.array(fc.string({ unit: "grapheme" }))), (rounds) => {
      const gathered = new GatheredLines();
      for (const lines of rounds) {
        for (const line of lines) gathered.add(line);
        expect(textOf(gathered.take())).toBe(lines.map((line) => `${line}\n`).join(""));
      }
      expect(gathered.take()).toEqual([]);
    }),
  );
});

test("lines that do not fit into one block use several, and a long line has its own", () => {
  const gathered = new GatheredLines();
  const lines = ["ä".repeat(80_000), "b".repeat(50_000), "€".repeat(300_000), "d"];
  for (const line of lines) gathered.add(line);

  const blocks = gathered.take();

  expect(blocks.map((block) => block.length)).toEqual([160_001, 50_001, 900_001, 2]);
  expect(textOf(blocks)).toBe(lines.map((line) => `${line}\n`).join(""));
});
